//! Notices: the messages that rtrace prints while it traces.

/// A sentence about the trace that rtrace prints while the trace runs. It is printed on stderr at once, and is an event
/// of the stream as well.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Notice {
    /// The subject, by which programs recognize the message.
    pub code: NoticeCode,
    /// The sentence. It may contain names and paths that others chose, which are not escaped.
    pub text: String,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The trace is as it was requested.
    Note,
    /// The trace may lack something.
    Warning,
    /// Something could not be done.
    Error,
}

impl Severity {
    /// Returns the name that JSON uses.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The subject of a notice, by which programs recognize it. rtrace-json(5) describes each name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum NoticeCode {
    /// A remark about how rtrace understood the command line, or about what it cannot do on this machine.
    Remark,
    /// Signals and other events than syscalls are not traced.
    OnlySyscalls,
    /// The rings are drained without real-time priority.
    NoRealtimePriority,
    /// Tasks of the command are not delayed as `--lossless` asks.
    NotDelayed,
    /// Calls of the command are not changed as `--inject` asks.
    NotInjected,
    /// Moves of tasks between cgroups are not seen.
    CgroupMovesUnseen,
    /// Path names cannot be read as planned.
    NoPathNames,
    /// Another tracer's BPF programs may make the kernel drop records.
    OtherBpfPrograms,
    /// Names of functions are missing in stacks.
    NamesMissing,
    /// A ring buffer's head is invalid.
    InvalidRing,
    /// The buffer of the tracefs instance cannot be read.
    InstanceNotRead,
    /// The counts of the tracefs instance cannot be read.
    CountsNotRead,
    /// The run's dynamic events could not be removed.
    ProbesNotRemoved,
    /// A signal arrived before the command was started.
    CommandNotStarted,
    /// The command could not be executed.
    CommandNotExecuted,
    /// The command has ended, and processes that it left running are still traced.
    WaitingForProcesses,
    /// The command has not ended after a signal was forwarded to it.
    CommandOverdue,
    /// The trace is complete before the command has ended.
    TraceComplete,
    /// The files of call graphs are written.
    GraphsWritten,
    /// The recording is a snapshot: why and when it was taken, and what it has.
    Snapshot,
    /// No further snapshot is taken because of a call.
    SnapshotsEnough,
}

impl NoticeCode {
    /// All subjects.
    #[cfg(test)]
    pub const ALL: [NoticeCode; 21] = [
        NoticeCode::Remark,
        NoticeCode::OnlySyscalls,
        NoticeCode::NoRealtimePriority,
        NoticeCode::NotDelayed,
        NoticeCode::NotInjected,
        NoticeCode::CgroupMovesUnseen,
        NoticeCode::NoPathNames,
        NoticeCode::OtherBpfPrograms,
        NoticeCode::NamesMissing,
        NoticeCode::InvalidRing,
        NoticeCode::InstanceNotRead,
        NoticeCode::CountsNotRead,
        NoticeCode::ProbesNotRemoved,
        NoticeCode::CommandNotStarted,
        NoticeCode::CommandNotExecuted,
        NoticeCode::WaitingForProcesses,
        NoticeCode::CommandOverdue,
        NoticeCode::TraceComplete,
        NoticeCode::GraphsWritten,
        NoticeCode::Snapshot,
        NoticeCode::SnapshotsEnough,
    ];

    /// Returns the name and the severity.
    const fn row(self) -> (&'static str, Severity) {
        match self {
            NoticeCode::Remark => ("remark", Severity::Note),
            NoticeCode::OnlySyscalls => ("only_syscalls", Severity::Warning),
            NoticeCode::NoRealtimePriority => ("no_realtime_priority", Severity::Warning),
            NoticeCode::NotDelayed => ("not_delayed", Severity::Warning),
            NoticeCode::NotInjected => ("not_injected", Severity::Warning),
            NoticeCode::CgroupMovesUnseen => ("cgroup_moves_unseen", Severity::Warning),
            NoticeCode::NoPathNames => ("no_path_names", Severity::Warning),
            NoticeCode::OtherBpfPrograms => ("other_bpf_programs", Severity::Warning),
            NoticeCode::NamesMissing => ("names_missing", Severity::Warning),
            NoticeCode::InvalidRing => ("invalid_ring", Severity::Error),
            NoticeCode::InstanceNotRead => ("instance_not_read", Severity::Error),
            NoticeCode::CountsNotRead => ("counts_not_read", Severity::Error),
            NoticeCode::ProbesNotRemoved => ("probes_not_removed", Severity::Error),
            NoticeCode::CommandNotStarted => ("command_not_started", Severity::Warning),
            NoticeCode::CommandNotExecuted => ("command_not_executed", Severity::Error),
            NoticeCode::WaitingForProcesses => ("waiting_for_processes", Severity::Note),
            NoticeCode::CommandOverdue => ("command_overdue", Severity::Warning),
            NoticeCode::TraceComplete => ("trace_complete", Severity::Note),
            NoticeCode::GraphsWritten => ("graphs_written", Severity::Note),
            NoticeCode::Snapshot => ("snapshot", Severity::Note),
            NoticeCode::SnapshotsEnough => ("snapshots_enough", Severity::Note),
        }
    }

    /// Returns the name that JSON uses.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns how much notices on this subject matter.
    pub const fn severity(self) -> Severity {
        self.row().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_manual_page_describes_each_code() {
        let page = include_str!("../../man/rtrace-json.5");
        for code in NoticeCode::ALL {
            assert!(page.contains(&format!("\n\\fB{}\\fR ", code.name())), "{}", code.name());
        }
    }

    #[test]
    fn each_code_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = NoticeCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), NoticeCode::ALL.len());
    }
}
