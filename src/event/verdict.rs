//! The verdict: how many calls and records a finished trace has, what it lacks, and why.

/// The verdict of a finished trace. Messages on stderr and the last JSON object are two ways to show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The account of the calls; `None` if the kernel's number of the calls is not known.
    pub calls: Option<CallsVerdict>,
    /// The requested events other than calls whose records the kernel counts.
    pub events: Vec<EventVerdict>,
    /// The events that a tracefs instance records, which the kernel counts only together.
    pub instance: Option<InstanceVerdict>,
    /// The events whose counts do not add up: received + lost differs from issued.
    pub disagreements: Vec<EventVerdict>,
    /// Number of lost records of all events. A lost call may have had two.
    pub lost_records: u64,
    /// Number of lost records for which the stream has no lost event, so that the time of the loss is unknown.
    pub unplaced: u64,
    /// Whether some lost events have no number of records.
    pub gaps_without_size: bool,
    /// Number of lost records that the kernel counted but did not write, because their tasks were moved to another
    /// cgroup, or because interrupts hit the events while their CPUs were idle.
    pub unwritten: u64,
    /// Number of signals of all processes of which the kernel wrote no record for the second reason. Lines of signals
    /// that a traced process ignores may be missing.
    pub unwritten_signals: u64,
    /// Number of calls that were held back because a value that the filter needs is not known.
    pub undecided: u64,
    /// Number of calls that were held back because they ended outside the span of `--time`, as far as the recording was
    /// read.
    pub outside_span: u64,
    /// Calls that are missing in the output because it could not be written.
    pub given_up: u64,
    /// Number of calls that are neither shown nor counted, because the user may not trace the programs that made them.
    pub not_permitted: u64,
    /// The requests of io_uring that do the same as selected syscalls, and that were not traced because `-e` names no
    /// request.
    pub untraced_requests: Vec<RequestCount>,
    /// The kinds of data that are missing for other reasons than lost records.
    pub shortages: Vec<Shortage>,
    /// The files that could not be read for stacks, because their file systems do not answer.
    pub unanswered_files: Vec<Vec<u8>>,
    /// Why nothing was shown; `None` if something that was requested was shown.
    pub nothing_shown: Option<NothingShown>,
}

impl Verdict {
    /// Moves calls from `shown` to `given_up`, because their output could not be written.
    pub fn give_up(&mut self, calls: u64) {
        self.given_up += calls;
        if let Some(of) = &mut self.calls {
            of.given_up += calls;
            of.shown = of.shown.saturating_sub(calls);
        }
    }
}

/// The account of the issued calls. `shown`, `lost`, `held_back` and `given_up` add up to `issued`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsVerdict {
    /// Calls that the kernel counted where they began.
    pub issued: u64,
    /// Calls that are in the output.
    pub shown: u64,
    /// Calls of which a record was lost.
    pub lost: u64,
    /// Calls that a filter, a switch or a limit excluded from the output.
    pub held_back: u64,
    /// Calls that are missing in the output because it could not be written.
    pub given_up: u64,
}

/// The account of an event's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventVerdict {
    /// The name in the kernel.
    pub name: String,
    /// The name that the user gave to the event, if any.
    pub called: Option<String>,
    /// The kernel's count of the event.
    pub issued: u64,
    /// The records that rtrace received.
    pub received: u64,
    /// The records that the kernel dropped.
    pub lost: u64,
}

/// The account of the records of a tracefs instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceVerdict {
    /// The names of its events. An event that the user has named has that name.
    pub events: Vec<String>,
    /// The events that the kernel counted.
    pub issued: u64,
    /// The records that rtrace received.
    pub received: u64,
    /// The records that were overwritten before rtrace read them.
    pub lost: u64,
    /// Whether the counts do not add up.
    pub disagrees: bool,
}

/// How many requests of one kind were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCount {
    /// The name as in lines (`io_uring:openat`).
    pub name: String,
    /// The number of requests.
    pub count: u64,
}

/// Why nothing was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NothingShown {
    /// The names and patterns of `-e`, as they were written.
    pub selected: Vec<String>,
    /// Calls that were traced and not shown.
    pub held_back: u64,
    /// The options that held selected calls back, as they were written.
    pub limits: Vec<String>,
    /// Syscalls that were not selected and whose names are similar to the selected ones; empty if there are `limits`.
    pub similar: Vec<&'static str>,
    /// Whether signals were shown.
    pub signals: bool,
}

/// A kind of data that is missing, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shortage {
    /// What is missing.
    pub kind: ShortageKind,
    /// How often data is missing, or at most how often; `None` if the number is not known.
    pub count: Option<u64>,
}

/// The kind of data that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ShortageKind {
    /// Tasks that were not followed, because the kernel had no memory for that.
    Tasks,
    /// The memory that arguments of calls point to, because the kernel had no memory for the copy.
    Memory,
    /// The ends of truncated data of calls.
    Data,
    /// Signals and task exits.
    Ends,
    /// The first calls of 32-bit programs.
    CompatCalls,
    /// Calls, because the kernel skipped a BPF program. The count is an upper bound.
    SkippedCalls,
    /// Tasks or task exits, because the kernel skipped a BPF program. The count is an upper bound.
    SkippedTasks,
    /// Records of the user's BPF programs, because the kernel skipped these programs. The count is an upper bound.
    SkippedObjects,
    /// Tasks for which the user's BPF programs did not run.
    ObjectTasks,
    /// Threads that were created and ended while events were opened.
    Threads,
    /// Path names, because too many calls used path names at once. The count is an upper bound.
    NamesOfCalls,
    /// Path names, because too many threads of the machine used path names. The count is an upper bound.
    NamesOfThreads,
    /// Answers of `--inject`: the kernel executed these calls.
    UnchangedCalls,
}

impl ShortageKind {
    /// All kinds.
    pub const ALL: [ShortageKind; 13] = [
        ShortageKind::Tasks,
        ShortageKind::Memory,
        ShortageKind::Data,
        ShortageKind::Ends,
        ShortageKind::CompatCalls,
        ShortageKind::SkippedCalls,
        ShortageKind::SkippedTasks,
        ShortageKind::SkippedObjects,
        ShortageKind::ObjectTasks,
        ShortageKind::Threads,
        ShortageKind::NamesOfCalls,
        ShortageKind::NamesOfThreads,
        ShortageKind::UnchangedCalls,
    ];

    /// Returns the name that JSON uses.
    pub const fn name(self) -> &'static str {
        match self {
            ShortageKind::Tasks => "tasks",
            ShortageKind::Memory => "memory",
            ShortageKind::Data => "data",
            ShortageKind::Ends => "ends",
            ShortageKind::CompatCalls => "compat_calls",
            ShortageKind::SkippedCalls => "skipped_calls",
            ShortageKind::SkippedTasks => "skipped_tasks",
            ShortageKind::SkippedObjects => "skipped_objects",
            ShortageKind::ObjectTasks => "object_tasks",
            ShortageKind::Threads => "threads",
            ShortageKind::NamesOfCalls => "names_of_calls",
            ShortageKind::NamesOfThreads => "names_of_threads",
            ShortageKind::UnchangedCalls => "unchanged_calls",
        }
    }

    /// Returns a shortage of this kind, unless its count is zero.
    pub fn counted(self, count: u64) -> Option<Shortage> {
        (count > 0).then_some(Shortage { kind: self, count: Some(count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_given_up_are_shown_no_more() {
        let calls = CallsVerdict { issued: 9, shown: 7, lost: 2, held_back: 0, given_up: 0 };
        let mut verdict = Verdict { calls: Some(calls), ..Verdict::default() };
        verdict.give_up(3);
        assert_eq!((verdict.calls, verdict.given_up), (Some(CallsVerdict { shown: 4, given_up: 3, ..calls }), 3));
    }

    #[test]
    fn the_manual_page_describes_each_shortage() {
        let page = include_str!("../../man/rtrace-json.5");
        for kind in ShortageKind::ALL {
            let name = kind.name();
            let forms = [format!("\n.B {name}\n"), format!("\n.BR {name} ,")];
            assert!(forms.iter().any(|form| page.contains(form)), "{name}");
        }
    }
}
