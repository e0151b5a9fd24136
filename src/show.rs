//! The options for the presentation of events in lines and in summaries.

use std::ffi::OsString;

/// Which events are printed, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    pub style: Style,
    pub mode: Mode,
    pub errno_summary: bool,
    pub summary_by: SummaryBy,
    pub max_summary: Option<usize>,
    /// `--path`: show only calls that name one of these files or have a descriptor of one. Paths or globs.
    pub paths: Vec<OsString>,
    /// `--by`: a second key of the rows of the summary.
    pub summary_object: Option<SummaryObject>,
    pub histogram: bool,
    /// `--interval`, in nanoseconds.
    pub interval: Option<u64>,
    /// `--duration`: show only calls that took at least as long, in nanoseconds.
    pub duration: Option<u64>,
    pub failure: bool,
    pub max_events: Option<u64>,
    pub time: TimeFormat,
    /// `--comm` or `--no-comm`
    pub comm: bool,
    pub cpu: bool,
    pub zeros: bool,
    /// `--pending` or `--no-pending`. `None`: it depends on the destination of the lines.
    pub pending: Option<bool>,
    /// perf's settings `trace.show_arg_names`, `show_duration`, `show_timestamp`, `show_prefix` and `args_alignment`.
    pub arg_names: bool,
    pub durations: bool,
    pub timestamps: bool,
    pub prefixes: bool,
    pub alignment: usize,
    /// `--width`: the maximum length of lines on a terminal.
    pub width: Width,
    pub string_limit: usize,
    /// `--full`: all members of structs, and up to 32 elements of arrays.
    pub full: bool,
}

/// The format of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// The lines of perf trace.
    #[default]
    Perf,
    /// One JSON object per line.
    Json,
}

/// The maximum length of lines on a terminal. In files and pipes, lines are never shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// Lines are not shortened.
    #[default]
    Any,
    /// The width of the terminal.
    Terminal,
    Columns(u16),
}

/// Whether lines or a summary are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Lines,
    Summary,
    Both,
    /// Neither: only call paths are written, to their own files.
    Nothing,
}

/// The grouping of the summary. All but the first are those of perf trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryBy {
    /// One table of all traced tasks, in the format of rtrace.
    #[default]
    OneTable,
    Thread,
    Process,
    Total,
    Cgroup,
}

/// The second key of the summary's rows, which is a property of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryObject {
    Path,
    Fd,
    Peer,
    Comm,
    Errno,
    /// The value of an argument, by the argument's name.
    Arg(String),
}

impl SummaryObject {
    /// Returns the title of the column.
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

    /// Returns whether the key is a property of file descriptors.
    pub fn requires_descriptors(&self) -> bool {
        matches!(self, SummaryObject::Path | SummaryObject::Fd | SummaryObject::Peer)
    }
}

/// `--time-format`. `-T` is `Monotonic`, which perf prints in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Milliseconds since the first event.
    #[default]
    Relative,
    /// Milliseconds since the previous line.
    Delta,
    /// The local time of day.
    Local,
    /// The local time of day with the date.
    LocalDate,
    Utc,
    Epoch,
    Monotonic,
}
