//! Which engine traces: the BPF one where it can be had, otherwise tracepoints.
//!
//! Whether it can be had is found out by loading it: privileges, type information, kernel version and configuration all matter, and only the kernel knows.

use super::{fallback, too_old};
use crate::bpf::user::Output;
use crate::bpf::{Programs, Settings};
use crate::kernel::lockdown;
use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::tracefs::Tracefs;
use crate::plan::{self, Plan};
use crate::probe::made::Made;
use crate::request::{Engine, Trace};
use crate::sys::lent;
use anyhow::anyhow;

/// The plan, and the programs if they trace. `outputs`: what programs of the user's own give.
///
/// # Errors
/// The plan's; and that of the BPF engine, if the user asks for it. Where the kernel lets nobody trace, that is the error.
pub fn choose(request: &Trace, tracefs: &Tracefs, made: &mut Made, outputs: &[Output]) -> anyhow::Result<(Plan, Option<Programs>)> {
    engine(request, tracefs, made, outputs).map_err(lockdown::explain)
}

fn engine(request: &Trace, tracefs: &Tracefs, made: &mut Made, outputs: &[Output]) -> anyhow::Result<(Plan, Option<Programs>)> {
    // Tracepoints cannot tell at each call whose it is.
    let asked = if lent::is_lent() { Engine::Bpf } else { request.run.engine };
    if asked == Engine::Tracepoint {
        return Ok((plan::build(request, tracefs, made, outputs, Engine::Tracepoint)?, None));
    }
    let plan = plan::build(request, tracefs, made, outputs, Engine::Bpf)?;
    let Some(settings) = &plan.bpf else { return Ok((plan, None)) };
    let refused = match refusal(request).map_or_else(|| load(settings), Err) {
        Ok(programs) => return Ok((plan, Some(programs))),
        Err(refused) => refused,
    };
    let may = Privileges::read();
    if asked == Engine::Bpf {
        return Err(anyhow!(fallback::advised(&refused, &may)));
    }
    let plan = plan::build(request, tracefs, made, outputs, Engine::Tracepoint);
    let mut plan = plan.map_err(|error| match tracefs.why_absent() {
        // Where there is no tracefs, BPF is the other way, if that may be gone.
        Some(_) if may.has(Capability::Bpf) && may.has(Capability::PerfMon) => {
            anyhow!("{error:#}; BPF would do without tracefs, but {}", fallback::advised(&refused, &may))
        }
        _ => error,
    })?;
    plan.notes.push(format!("plan: not by BPF: {refused:#}"));
    let names = plan.path_names.as_ref().map(|names| &names.way);
    plan.remarks.extend(fallback::sentence(request, names, &refused, &may));
    Ok((plan, None))
}

/// Tries whether the kernel takes the programs of this user.
///
/// # Errors
/// Why not.
pub fn try_bpf() -> anyhow::Result<()> {
    load(&Settings::default()).map(drop)
}

fn load(settings: &Settings) -> anyhow::Result<Programs> {
    Programs::load(settings).map_err(too_old::explain)
}

/// What the BPF engine does not do.
fn refusal(request: &Trace) -> Option<anyhow::Error> {
    request
        .what
        .cpus
        .as_ref()
        .map(|_| anyhow!("calls are followed from CPU to CPU by BPF, so some CPUs alone (-C) are traced by tracepoints"))
}
