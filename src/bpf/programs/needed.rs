//! The names of the BPF programs, and which of them a trace needs.

use super::may_be_interrupted;
use crate::bpf::encode::HookSet;
use crate::bpf::settings::{Hooks, Requests, Settings, TaskScope};
use crate::kernel::procfs::is_in_initial_pid_namespace;

/// The names of the programs for one kind of tracepoints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProgramNames {
    /// The programs on calls. The exit program is attached first, so that no traced call lacks its exit.
    pub leave: &'static str,
    /// The program that runs when a call begins.
    pub enter: &'static str,
    /// The program that begins answered calls at their exit ([`Settings::answered`]). It is attached before `leave`,
    /// which completes them.
    pub answer: &'static str,
    /// The programs that follow tasks.
    pub tasks: [&'static str; 3],
    /// Whether closing is slow, as it is for the last descriptor of a tracepoint's event ([`crate::sys::closer`]).
    pub slow: bool,
}

/// The programs on raw tracepoints.
const RAW: ProgramNames =
    ProgramNames { leave: "leave", enter: "enter", answer: "answer", tasks: ["forked", "executed", "ended"], slow: false };
/// The programs on signals, on every kernel.
pub(super) const SIGNALS: [&str; 2] = ["sent", "delivered"];
/// The programs on submissions of io_uring: one for Linux 6.3 and later, one for older kernels.
const REQUESTS: [&str; 2] = ["submit_req", "submit_sqe"];
/// The programs that only count these submissions.
const COUNTED_REQUESTS: [&str; 2] = ["count_req", "count_sqe"];
/// The program that answers calls ([`Settings::effects`]).
pub(super) const OVERRIDE: &str = "override";
/// The program on completions of io_uring.
const REQUEST_ENDS: &str = "complete_request";
/// The programs on the perf events of tracepoints.
pub(super) const EVENTS: ProgramNames = ProgramNames {
    leave: "leave_event",
    enter: "enter_event",
    answer: "answer_event",
    tasks: ["awoken", "executed", "ended_event"],
    slow: true,
};

impl ProgramNames {
    /// Returns the programs that trace all calls on this kernel.
    pub fn on_all() -> &'static ProgramNames {
        if may_be_interrupted() { &EVENTS } else { &RAW }
    }
}

/// Returns whether a program is needed. Programs without a task are not loaded, because verifying them takes time.
pub(super) fn is_needed(program: &str, settings: &Settings, on: HookSet, calls: &ProgramNames, tasks: &ProgramNames) -> bool {
    match program {
        _ if is_of_calls(program) && !settings.traces_calls() => false,
        _ if is_of_calls(program) => {
            program == calls.enter || program == calls.leave || program == calls.answer && settings.begins_answered()
        }
        _ if on == HookSet::Compat => false,
        _ if is_of_tasks(program) => tasks.tasks.contains(&program),
        _ if SIGNALS.contains(&program) => settings.signals,
        _ if is_of_requests(program) => settings.request_programs().any(|needed| needed == program),
        "seed" => needs_seeds(settings),
        "living" => settings.attaches,
        OVERRIDE => settings.overrides(),
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
    [RAW, EVENTS].iter().any(|of| program == of.enter || program == of.leave || program == of.answer)
}

/// Returns whether a program follows tasks, on either kind of tracepoints.
fn is_of_tasks(program: &str) -> bool {
    [RAW, EVENTS].iter().any(|of| of.tasks.contains(&program))
}

fn is_of_requests(program: &str) -> bool {
    REQUESTS.contains(&program) || COUNTED_REQUESTS.contains(&program) || program == REQUEST_ENDS
}

/// Returns whether existing tasks must be iterated over: to mark the traced ones, or to find 32-bit programs.
pub(super) fn needs_seeds(settings: &Settings) -> bool {
    settings.scope == TaskScope::Tasks || settings.hooks != Hooks::All
}

impl Settings {
    /// Returns whether any calls are traced.
    pub(super) fn traces_calls(&self) -> bool {
        self.unknown || !self.calls.is_empty() || !self.others.is_empty()
    }

    /// Returns whether answered calls are begun at their exit.
    pub(super) fn begins_answered(&self) -> bool {
        self.answered && !self.sums
    }

    /// Returns whether the programs answer calls themselves.
    fn overrides(&self) -> bool {
        self.effects.as_ref().is_some_and(|effects| !effects.functions.is_empty())
    }

    /// Returns the programs on requests of io_uring, if their arguments are read or they are counted.
    pub(super) fn request_programs(&self) -> impl Iterator<Item = &'static str> {
        let Requests { opcodes, counted, old_name } = &self.requests;
        let (of_arguments, of_counts) = (REQUESTS[usize::from(*old_name)], COUNTED_REQUESTS[usize::from(*old_name)]);
        let programs = match (opcodes.is_empty(), counted.is_empty()) {
            (false, _) => [Some(REQUEST_ENDS), Some(of_arguments)],
            (true, false) => [Some(of_counts), None],
            (true, true) => [None, None],
        };
        programs.into_iter().flatten()
    }
}
