//! How events are to be shown, in lines and in summaries.

use std::ffi::OsString;

/// What is printed, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    pub style: Style,
    /// Lines, the summary, both, or neither.
    pub mode: Mode,
    pub errno_summary: bool,
    pub summary_by: SummaryBy,
    pub max_summary: Option<usize>,
    /// `--path`: only calls that name one of these or have a descriptor open on it; paths or globs.
    pub paths: Vec<OsString>,
    /// `--by`: rows are told apart by this, too.
    pub summary_object: Option<SummaryObject>,
    pub histogram: bool,
    /// `--interval`, nanoseconds.
    pub interval: Option<u64>,
    /// `--duration`, nanoseconds: only calls that took at least so long.
    pub duration: Option<u64>,
    pub failure: bool,
    pub max_events: Option<u64>,
    pub time: TimeFormat,
    /// `--comm` / `--no-comm`
    pub comm: bool,
    pub cpu: bool,
    pub zeros: bool,
    /// `--pending`, `--no-pending`; `None` leaves it to where the lines go.
    pub pending: Option<bool>,
    /// perf's `trace.show_arg_names`, `show_duration`, `show_timestamp`, `show_prefix`, `args_alignment`.
    pub arg_names: bool,
    pub durations: bool,
    pub timestamps: bool,
    pub prefixes: bool,
    pub alignment: usize,
    /// `--width`: how long lines may be on a terminal.
    pub width: Width,
    pub string_limit: usize,
}

/// How events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Lines as perf trace has them.
    #[default]
    Perf,
    /// One JSON object a line.
    Json,
}

/// How long lines may be on a terminal; elsewhere they are never cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// They are as long as they are.
    #[default]
    Any,
    /// As the terminal is wide.
    Terminal,
    Columns(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Lines,
    Summary,
    Both,
    /// Neither: call paths go to files of their own.
    Nothing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryBy {
    /// One table of all that was asked for, as rtrace has it; the others are perf's.
    #[default]
    Whole,
    Thread,
    Process,
    Total,
    Cgroup,
}

/// What calls are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryObject {
    Path,
    Fd,
    Peer,
    Comm,
    Errno,
    /// An argument, by its name.
    Arg(String),
}

impl SummaryObject {
    /// What a column of them is called.
    pub fn name(&self) -> &str {
        match self {
            SummaryObject::Path => "path",
            SummaryObject::Fd => "fd",
            SummaryObject::Peer => "peer",
            SummaryObject::Comm => "comm",
            SummaryObject::Errno => "errno",
            SummaryObject::Arg(name) => name,
        }
    }

    /// It is found in descriptors.
    pub fn is_of_descriptors(&self) -> bool {
        matches!(self, SummaryObject::Path | SummaryObject::Fd | SummaryObject::Peer)
    }
}

/// `--time-format`; `-T` is `Monotonic`, as perf prints it in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Milliseconds since the first event.
    #[default]
    Relative,
    /// Milliseconds since the line before.
    Delta,
    /// The time of day, here.
    Local,
    /// The same with the date.
    LocalDate,
    Utc,
    Epoch,
    Monotonic,
}
