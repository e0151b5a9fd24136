//! The names of the BPF programs, and which of them a trace needs.

use super::may_be_interrupted;
use crate::bpf::encode::HookSet;
use crate::bpf::settings::{Hooks, Settings, TaskScope};
use crate::kernel::procfs::is_in_initial_pid_namespace;

/// The names of the programs for one kind of tracepoints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProgramNames {
    /// The programs on calls. The exit program is attached first, so that no traced call lacks its exit.
    pub leave: &'static str,
    pub enter: &'static str,
    /// The programs that follow tasks.
    pub tasks: [&'static str; 3],
    /// Whether closing is slow, as it is for the last descriptor of a tracepoint's event ([`crate::sys::closer`]).
    pub slow: bool,
}

/// The programs on raw tracepoints.
const RAW: ProgramNames = ProgramNames { leave: "leave", enter: "enter", tasks: ["forked", "executed", "ended"], slow: false };
/// The programs on signals, on every kernel.
pub(super) const SIGNALS: [&str; 2] = ["sent", "delivered"];
/// The programs on the perf events of tracepoints.
pub(super) const EVENTS: ProgramNames =
    ProgramNames { leave: "leave_event", enter: "enter_event", tasks: ["awoken", "executed", "ended_event"], slow: true };

impl ProgramNames {
    /// Returns the programs that trace all calls on this kernel.
    pub fn on_all() -> &'static ProgramNames {
        if may_be_interrupted() { &EVENTS } else { &RAW }
    }
}

/// Returns whether a program is needed. Programs without a task are not loaded, because verifying them takes time.
pub(super) fn is_needed(program: &str, settings: &Settings, on: HookSet, calls: &ProgramNames, tasks: &ProgramNames) -> bool {
    match program {
        _ if is_of_calls(program) => program == calls.enter || program == calls.leave,
        _ if on == HookSet::Compat => false,
        _ if is_of_tasks(program) => tasks.tasks.contains(&program),
        _ if SIGNALS.contains(&program) => settings.signals,
        "seed" => needs_seeds(settings),
        "living" => settings.attaches,
        "find_own_namespace" => !is_in_initial_pid_namespace(),
        "list_begun" | "list_pending" => !settings.sums,
        "list_stacks" => lists_stacks(settings),
        "list_aggregates" => settings.sums,
        _ => true,
    }
}

/// Returns whether calls in flight are listed with their stacks.
pub(super) fn lists_stacks(settings: &Settings) -> bool {
    !settings.sums && !settings.stacks.kinds.is_empty()
}

/// Returns whether a program is attached to syscalls, on either kind of tracepoints.
pub(super) fn is_of_calls(program: &str) -> bool {
    [RAW, EVENTS].iter().any(|of| program == of.enter || program == of.leave)
}

/// Returns whether a program follows tasks, on either kind of tracepoints.
fn is_of_tasks(program: &str) -> bool {
    [RAW, EVENTS].iter().any(|of| of.tasks.contains(&program))
}

/// Returns whether existing tasks must be iterated over: to mark the traced ones, or to find 32-bit programs.
pub(super) fn needs_seeds(settings: &Settings) -> bool {
    settings.scope == TaskScope::Tasks || settings.hooks != Hooks::All
}
