//! Starts the supervisor of a command whose calls are changed (`--inject`).

use crate::bpf::Programs;
use crate::inject::Supervisor;
use crate::plan::Plan;
use crate::request::Trace;
use crate::sys::seccomp::Filter;
use crate::sys::spawn::{Child, Program};
use anyhow::anyhow;
use rustix::process::{Pid, Signal, kill_process};
use std::io;

/// Gives the program the filter that makes the kernel ask a supervisor.
pub(super) fn add_filter(plan: &Plan, program: Option<&mut Program>) {
    let calls = &plan.injections.calls;
    if let Some(program) = program.filter(|_| plan.injector.is_supervisor()) {
        program.filter = Some(Filter::new(calls.iter().map(|(abi, nr, _)| (*abi, *nr))));
    }
}

/// Starts the supervisor, if calls of the command are changed.
///
/// # Errors
/// The kernel does not accept the filter, or the supervisor cannot be started. The command is killed then, because it
/// might wait for an answer forever.
pub(super) fn supervise(
    request: &Trace,
    plan: &Plan,
    programs: Option<&Programs>,
    child: Option<&Child>,
) -> anyhow::Result<Option<Supervisor>> {
    let Some(child) = child.filter(|_| plan.injector.is_supervisor()) else { return Ok(None) };
    // The BPF programs copy the memory of answered calls themselves.
    let memory = (request.show.string_limit, plan.bpf.is_none());
    let signals = programs.and_then(Programs::due_signals);
    let started = child
        .installed()
        .map_err(|error| refusal(&error))
        .and_then(|installed| Supervisor::start(&plan.injections, child.pid, installed, request.what.no_inherit, memory, signals));
    if started.is_err()
        && let Some(pid) = Pid::from_raw(child.pid)
    {
        let _ = kill_process(pid, Signal::KILL);
        child.try_wait(true);
    }
    started.map(Some)
}

/// Says why the kernel does not accept the filter.
fn refusal(error: &io::Error) -> anyhow::Error {
    match error.raw_os_error() {
        Some(libc::EACCES) => anyhow!(
            "--inject needs CAP_SYS_ADMIN (run rtrace as root): without it, the kernel accepts a seccomp filter only from a process that \
             gives up set-user-ID programs (no_new_privs), and that would change the command"
        ),
        Some(libc::EBUSY) => {
            anyhow!("--inject: rtrace itself runs under a seccomp filter that asks a supervisor, and the kernel accepts only one of these")
        }
        Some(libc::EINVAL | libc::ENOSYS) => anyhow!("--inject needs Linux 5.6 with CONFIG_SECCOMP_FILTER"),
        _ => anyhow!("--inject: the filter of the command cannot be installed: {error}"),
    }
}
