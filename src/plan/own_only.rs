//! What rtrace does for a caller to whom it lends its privileges ([`crate::sys::lent`]): it traces what is his alone,
//! as ptrace(2) would let him, and nothing else.
//!
//! What is refused here is refused with a sentence. That nothing of others is shown does not rest on it: the BPF
//! programs ask at each call whose it is (`src/bpf/own.h`), and whatever opens files and processes here does so with
//! the caller's own rights. So there are only those programs, which can ask, and no event that tells of other tasks.

use super::Plan;
use crate::kernel::procfs;
use crate::request::{Engine, Selector, Target, Trace, Who};
use crate::session::Role;
use crate::show::SummaryBy;
use crate::sys::lent;
use anyhow::anyhow;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Refuses what cannot be limited to the caller's own programs, before anything is opened.
///
/// # Errors
/// A sentence that says what, why and what to do.
pub fn check_request(request: &Trace) -> anyhow::Result<()> {
    if !lent::is_lent() {
        return Ok(());
    }
    match hindrances(request).find_map(|(asked, why)| asked.then_some(why)) {
        Some(why) => Err(refused(why)),
        None => check_targets(&request.target),
    }
}

fn refused(why: &str) -> anyhow::Error {
    anyhow!("{why}, and rtrace lends its privileges to its callers for programs of their own alone; root may do it (sudo rtrace ...)")
}

/// What is asked for of what only root may have, and why.
pub(crate) fn hindrances(request: &Trace) -> impl Iterator<Item = (bool, &'static str)> {
    let Trace { what, show, graphs, run, .. } = request;
    let who = match &request.target {
        Target::There { who, .. } => Some(who),
        Target::Command(_) => None,
    };
    let switches = [&what.switch_on, &what.switch_off];
    let selectors = || what.items.iter().filter(|item| !item.negated).map(|item| &item.selector).chain(switches.into_iter().flatten());
    let any = |is: fn(&Selector) -> bool| selectors().any(is);
    let kernel = graphs.kernel || what.items.iter().any(|item| item.terms.kernel_stack);
    [
        (what.cpus.is_some(), "-C shows what all users' programs do on a CPU"),
        (matches!(who, Some(Who::All)), "-a shows what all users' programs do"),
        (matches!(who, Some(Who::User(_))), "-u shows all that has a user's number, more rights or not"),
        (matches!(who, Some(Who::Cgroup(_))), "-G shows what all users' programs do in a cgroup"),
        (matches!(who, Some(Who::Container(_))), "--container shows what all users' programs do in a container"),
        (any(|one| matches!(one, Selector::Probe(_))), "--probe changes the kernel for all"),
        (any(|one| matches!(one, Selector::Object(_))), "BPF programs of -e see the memory of all programs and of the kernel"),
        (
            any(|one| matches!(one, Selector::Event { .. })),
            "events other than syscalls tell of others' programs and of the kernel's memory",
        ),
        (what.faults.is_some(), "page faults are told by the kernel whoever's program it is that a task executes"),
        (what.sched, "--sched takes an event of the scheduler's"),
        (kernel, "kernel stacks tell where the kernel is in memory"),
        (show.summary_by == SummaryBy::Cgroup, "a summary by cgroup follows all users' programs from one to the other"),
        (run.engine == Engine::Tracepoint, "--engine tracepoint cannot tell at each call whose it is"),
    ]
    .into_iter()
}

/// Refuses a plan with anything but the BPF programs and the side band. A request that came so far has been looked at;
/// this is for what it did not think of.
///
/// # Errors
/// A sentence.
pub fn check_plan(plan: &Plan) -> anyhow::Result<()> {
    if !lent::is_lent() {
        return Ok(());
    }
    let is_ours = |role: Role| matches!(role, Role::SideBand | Role::BpfCall);
    if let Some(event) = plan.events.iter().find(|event| !is_ours(event.spec.role) || event.stack.kernel_chain) {
        return Err(refused(&format!("{} tells of more than one's own programs", event.spec.name)));
    }
    match &plan.bpf {
        Some(settings) if settings.own_only.is_some() && !plan.whom.is_anyone() => Ok(()),
        _ => Err(refused("only the BPF programs can tell at each call whose it is, and they trace nothing here")),
    }
}

/// The kernel is asked whether the caller may read the memory of what is to be traced (`PTRACE_MODE_ATTACH_FSCREDS` in
/// kernel/ptrace.c), for which nothing that is lent is in effect.
fn check_targets(target: &Target) -> anyhow::Result<()> {
    let Target::There { who: Who::Pids(ids) | Who::Tids(ids), .. } = target else { return Ok(()) };
    for id in ids {
        // That it is not there, or no more, is for the plan to say.
        let memory = openat(CWD, format!("/proc/{id}/mem"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        if let Err(Errno::ACCESS | Errno::PERM) = memory {
            return Err(not_own(*id));
        }
    }
    Ok(())
}

fn not_own(id: i32) -> anyhow::Error {
    let name = procfs::comm(id).map(|comm| format!(" ({})", String::from_utf8_lossy(&comm))).unwrap_or_default();
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let yama = match scope.trim() {
        "" | "0" => String::new(),
        level => format!("; kernel.yama.ptrace_scope is {level} here, which allows less"),
    };
    refused(&format!(
        "the kernel does not let you trace {id}{name}: its users and groups are not all yours, it has capabilities, or it hides its memory (it is not dumpable){yama}"
    ))
}
