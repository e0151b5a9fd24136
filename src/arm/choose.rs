//! Chooses the engine: BPF if it can be used, tracepoints otherwise.
//!
//! rtrace finds out by loading the programs. Privileges, type information, kernel version and kernel configuration all
//! matter, and only the kernel knows them all.

use super::{fallback, path_names, too_old};
use crate::bpf::user::Output;
use crate::bpf::{Programs, Settings};
use crate::kernel::lockdown;
use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::tracefs::Tracefs;
use crate::plan::{self, PathNames, Plan};
use crate::probe::run_events::RunEvents;
use crate::request::{Engine, Trace};
use crate::sys::file_capabilities;
use anyhow::anyhow;

/// Builds the plan, and loads the BPF programs if they trace; otherwise creates the events that read path names.
/// `outputs` are the outputs of the user's own programs.
///
/// # Errors
/// The errors of the plan; the error of the BPF engine if the user requires that engine; and the error of the source of
/// path names if the user requires a certain one. If the kernel permits no tracing at all, the error says so.
pub fn choose(
    request: &Trace,
    tracefs: &Tracefs,
    run_events: &mut RunEvents,
    outputs: &[Output],
) -> anyhow::Result<(Plan, Option<Programs>)> {
    engine(request, tracefs, run_events, outputs).map_err(lockdown::explain)
}

fn engine(request: &Trace, tracefs: &Tracefs, run_events: &mut RunEvents, outputs: &[Output]) -> anyhow::Result<(Plan, Option<Programs>)> {
    // Tracepoints cannot check at each call whether the task is the caller's own.
    let engine = if file_capabilities::are_present() { Engine::Bpf } else { request.run.engine };
    if engine == Engine::Tracepoint {
        return Ok((by_tracepoints(request, tracefs, run_events, outputs)?, None));
    }
    let mut plan = plan::build(request, tracefs, run_events, outputs, Engine::Bpf)?;
    let Some(settings) = &plan.bpf else { return Ok((plan, None)) };
    let refused = match unsupported(request).map_or_else(|| load(settings), Err) {
        Ok(programs) => {
            let programs = answering(request, &mut plan, programs)?;
            return Ok((plan, Some(programs)));
        }
        Err(refused) => refused,
    };
    let may = Privileges::read();
    if engine == Engine::Bpf {
        return Err(anyhow!(fallback::advised(&refused, &may)));
    }
    let mut plan = by_tracepoints(request, tracefs, run_events, outputs).map_err(|error| match tracefs.why_absent() {
        // Without tracefs, BPF is the alternative if it is permitted.
        Some(_) if may.has(Capability::Bpf) && may.has(Capability::PerfMon) => {
            anyhow!("{error:#}; the BPF engine needs no tracefs, but {}", fallback::advised(&refused, &may))
        }
        _ => error,
    })?;
    plan.notes.push(format!("plan: not by BPF: {refused:#}"));
    let names = plan.path_names.as_ref().map(PathNames::source);
    plan.remarks.extend(fallback::sentence(request, names, &refused, &may));
    Ok((plan, None))
}

/// Builds the plan for tracepoints, and creates the events that read path names.
///
/// # Errors
/// The errors of the plan, and the error of the source of path names if the user requires a certain one.
fn by_tracepoints(request: &Trace, tracefs: &Tracefs, run_events: &mut RunEvents, outputs: &[Output]) -> anyhow::Result<Plan> {
    let mut plan = plan::build(request, tracefs, run_events, outputs, Engine::Tracepoint)?;
    path_names::create(&mut plan, tracefs, run_events)?;
    plan.remarks.extend(plan::unknown_paths(request, plan.path_names.as_ref()));
    Ok(plan)
}

/// Tries to load the BPF programs with this user's privileges.
///
/// # Errors
/// The reason why they cannot be loaded.
pub fn try_bpf() -> anyhow::Result<()> {
    load(&Settings::default()).map(drop)
}

/// Attaches the program that answers calls (`--inject`). If the kernel refuses that, a supervisor answers them.
///
/// # Errors
/// The kernel refuses it, and there can be no supervisor.
fn answering(request: &Trace, plan: &mut Plan, mut programs: Programs) -> anyhow::Result<Programs> {
    let Err(refused) = programs.begin_to_answer() else { return Ok(programs) };
    drop(programs);
    plan.leave_to_supervisor(request, format!("the kernel refuses the BPF program for that: {refused:#}"))?;
    load(plan.bpf.as_ref().unwrap_or(&Settings::default()))
}

fn load(settings: &Settings) -> anyhow::Result<Programs> {
    Programs::load(settings).map_err(too_old::explain)
}

/// Returns an error for requests that the BPF engine does not support.
fn unsupported(request: &Trace) -> Option<anyhow::Error> {
    request.what.cpus.as_ref().map(|_| anyhow!("the BPF engine follows calls from CPU to CPU and cannot trace single CPUs (-C)"))
}
