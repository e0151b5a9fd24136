//! The limits of a trace whose caller is lent rtrace's privileges ([`crate::sys::file_capabilities`]). rtrace then
//! traces only the caller's own programs, which ptrace(2) would let the caller trace too.
//!
//! The checks here refuse such requests with a clear message. They are not what protects other users: the BPF programs
//! check at each call whether the task is the caller's own (`src/bpf/own.h`), and rtrace opens files, processes and the
//! events of the side band with the caller's rights ([`crate::sys::perf`]). Therefore only those BPF programs are used,
//! which can check this, and no event that records all tasks.

use super::Plan;
use crate::kernel::procfs;
use crate::request::{Engine, Selector, Target, TaskSelection, Trace};
use crate::session::Role;
use crate::show::SummaryBy;
use crate::sys::file_capabilities;
use anyhow::anyhow;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Refuses requests that cannot be limited to the caller's own programs, before anything is opened.
///
/// # Errors
/// The error says what is refused, why, and what to do.
pub fn check_request(request: &Trace) -> anyhow::Result<()> {
    if !file_capabilities::are_present() {
        return Ok(());
    }
    match root_only(request).find_map(|(asked, why)| asked.then_some(why)) {
        Some(why) => Err(refused(why)),
        None => check_targets(&request.target),
    }
}

fn refused(why: &str) -> anyhow::Error {
    anyhow!("{why}, and rtrace lends its privileges only for tracing the caller's own programs; root may do it (sudo rtrace ...)")
}

/// Returns for each facility that only root may use whether the request asks for it, and the reason.
pub(crate) fn root_only(request: &Trace) -> impl Iterator<Item = (bool, &'static str)> {
    let Trace { what, show, graphs, run, .. } = request;
    let who = match &request.target {
        Target::Running { tasks, .. } => Some(tasks),
        Target::Command(_) => None,
    };
    let switches = [&what.switch_on, &what.switch_off];
    let selectors = || what.items.iter().filter(|item| !item.negated).map(|item| &item.selector).chain(switches.into_iter().flatten());
    let any = |is: fn(&Selector) -> bool| selectors().any(is);
    let kernel = graphs.kernel || what.items.iter().any(|item| item.terms.kernel_stack);
    [
        (what.cpus.is_some(), "-C shows what all users' programs do on a CPU"),
        (matches!(who, Some(TaskSelection::All)), "-a shows what all users' programs do"),
        (matches!(who, Some(TaskSelection::User(_))), "-u shows all tasks of a user, also those with more rights"),
        (matches!(who, Some(TaskSelection::Cgroup(_))), "-G shows what all users' programs do in a cgroup"),
        (matches!(who, Some(TaskSelection::Container(_))), "--container shows what all users' programs do in a container"),
        (any(|one| matches!(one, Selector::Request(_))), "requests of io_uring are recorded whichever user's program submits them"),
        (any(|one| matches!(one, Selector::Probe(_))), "--probe changes the kernel for all users"),
        (any(|one| matches!(one, Selector::Object(_))), "BPF programs of -e see the memory of all programs and of the kernel"),
        (any(|one| matches!(one, Selector::Event { .. })), "events other than syscalls show other users' programs and the kernel's memory"),
        (what.faults.is_some(), "page faults are recorded whichever user's program a task executes"),
        (what.sched, "--sched uses an event of the scheduler"),
        (kernel, "kernel stacks show where the kernel is in memory"),
        (show.summary_by == SummaryBy::Cgroup, "a summary by cgroup follows all users' programs between cgroups"),
        (run.lossless, "--lossless changes how much CPU time programs get"),
        (run.engine == Engine::Tracepoint, "--engine tracepoint cannot check at each call which user makes it"),
    ]
    .into_iter()
}

/// Refuses a plan with anything but the BPF programs and the side band. [`check_request`] has already refused the known
/// cases; this check is for the ones that it misses.
///
/// # Errors
/// The error says what is refused and why.
pub fn check_plan(plan: &Plan) -> anyhow::Result<()> {
    if !file_capabilities::are_present() {
        return Ok(());
    }
    let is_ours = |role: Role| matches!(role, Role::SideBand | Role::BpfCall);
    if let Some(event) = plan.events.iter().find(|event| !is_ours(event.spec.role) || event.stack.kernel_chain) {
        return Err(refused(&format!("{} shows more than the caller's own programs", event.spec.name)));
    }
    match &plan.bpf {
        Some(settings) if settings.own_only.is_some() && !plan.targets.is_open_ended() => Ok(()),
        _ => Err(refused("only the BPF programs can check at each call which user makes it, and they trace nothing in this run")),
    }
}

/// Refuses targets that the caller may not trace. The kernel decides whether the caller may read the target's memory
/// (`PTRACE_MODE_ATTACH_FSCREDS` in kernel/ptrace.c), because the lent privileges are not in effect for this. The
/// target may execute another program afterwards, so the kernel decides again when events are opened on it
/// ([`crate::sys::perf`]).
fn check_targets(target: &Target) -> anyhow::Result<()> {
    let Target::Running { tasks: TaskSelection::Pids(ids) | TaskSelection::Tids(ids), .. } = target else { return Ok(()) };
    for id in ids {
        // A target that does not exist is reported when the plan is made.
        let memory = openat(CWD, format!("/proc/{id}/mem"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        if let Err(Errno::ACCESS | Errno::PERM) = memory {
            return Err(not_own(*id));
        }
    }
    Ok(())
}

/// Returns the error for a task that the caller may not trace.
pub fn not_own(id: i32) -> anyhow::Error {
    let name = procfs::comm(id).map(|comm| format!(" ({})", String::from_utf8_lossy(&comm))).unwrap_or_default();
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let yama = match scope.trim() {
        "" | "0" => String::new(),
        level => format!("; kernel.yama.ptrace_scope is {level}, which allows less"),
    };
    refused(&format!(
        "the kernel does not let you trace {id}{name}: its users and groups are not all yours, it has capabilities, or it hides its memory (it is not dumpable){yama}"
    ))
}
