//! The options for the presentation of events in lines and in summaries.

pub mod descriptors;
pub mod strace;

use bitflags::bitflags;
use descriptors::Descriptors;
use std::ffi::OsString;

/// Which events are printed, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Show {
    /// `--json`: the format of events.
    pub style: Style,
    /// What lines of strace show besides, with [`Style::Strace`].
    pub strace: strace::Lines,
    /// `-s`, `-S`: lines, a summary, or both.
    pub mode: Mode,
    /// `--errno-summary`: count each errno in the summary.
    pub errno_summary: bool,
    /// `--summary-mode`: the grouping of the summary's tables.
    pub summary_by: SummaryBy,
    /// `--max-summary`: the maximum number of rows of a table; `None` for all.
    pub max_summary: Option<usize>,
    /// The maximum number of rows of a table if a recording turns out to be of the whole machine.
    pub max_summary_of_all: Option<usize>,
    /// `--path`: show only calls that name one of these files or have a descriptor of one. Paths or globs.
    pub paths: Vec<OsString>,
    /// `--by`: a second key of the rows of the summary.
    pub summary_object: Option<SummaryObject>,
    /// `--histogram`: draw below each row how many calls took how long.
    pub histogram: bool,
    /// `--interval`, in nanoseconds.
    pub interval: Option<u64>,
    /// `--duration`: show only calls that took at least as long, in nanoseconds.
    pub duration: Option<u64>,
    /// `--failure`: show only calls that ended so.
    pub outcomes: Outcomes,
    /// Show only calls with a descriptor of this set (`strace -e trace-fds=`); `None` for all calls.
    pub descriptors: Option<Descriptors>,
    /// `--max-events`: the number of lines after which the trace ends.
    pub max_events: Option<u64>,
    /// `-T`, `--time-format`: the format of time stamps.
    pub time: TimeFormat,
    /// `--comm` or `--no-comm`
    pub comm: bool,
    /// `--show-cpu`: print the CPU of each event.
    pub cpu: bool,
    /// `--show-zeros`: print all arguments that are zero.
    pub zeros: bool,
    /// `--pending` or `--no-pending`. `None`: it depends on the destination of the lines.
    pub pending: Option<bool>,
    /// perf's setting `trace.show_arg_names`: print the names of arguments.
    pub arg_names: bool,
    /// perf's setting `trace.show_duration`: print the duration of each call.
    pub durations: bool,
    /// perf's setting `trace.show_timestamp`: print the time stamp of each line.
    pub timestamps: bool,
    /// perf's setting `trace.show_prefix`: print the common prefix of constants (`O_`).
    pub prefixes: bool,
    /// perf's setting `trace.args_alignment`: the column of a line at which the return value begins.
    pub alignment: usize,
    /// `--width`: the maximum length of lines on a terminal.
    pub width: Width,
    /// `--string-limit`: the maximum number of bytes of a string that are printed.
    pub string_limit: usize,
    /// `--struct-limit`: the maximum number of bytes that are copied of netlink messages and of control messages.
    pub struct_limit: usize,
    /// `--full`: all members of structs, and up to 32 elements of arrays.
    pub full: bool,
}

bitflags! {
    /// How calls end.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Outcomes: u8 {
        /// They return, and not with an error.
        const SUCCESSFUL = 1;
        /// They return an error.
        const FAILED = 2;
        /// They do not return.
        const UNFINISHED = 4;
        /// They return, and the trace lacks with what.
        const UNAVAILABLE = 8;
    }
}

/// The format of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// The lines of perf trace.
    #[default]
    Perf,
    /// One JSON object per line.
    Json,
    /// The lines of strace.
    Strace,
}

/// The maximum length of lines on a terminal. In files and pipes, lines are never shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// Lines are not shortened.
    #[default]
    Any,
    /// The width of the terminal.
    Terminal,
    /// This many columns.
    Columns(u16),
}

/// Whether lines or a summary are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A line for each event.
    Lines,
    /// Tables at the end.
    Summary,
    /// Lines, and then tables.
    Both,
    /// Neither: only call paths are written, to their own files.
    Nothing,
    /// The report of call paths at the end (`rtrace report`).
    Report,
}

/// The grouping of the summary. All but the first are those of perf trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryBy {
    /// One table of all traced tasks, in the format of rtrace.
    #[default]
    OneTable,
    /// A table for each thread.
    Thread,
    /// A table for each process.
    Process,
    /// One table of all calls.
    Total,
    /// A table for each cgroup.
    Cgroup,
}

/// The second key of the summary's rows, which is a property of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryObject {
    /// The path of the file that a descriptor of the call is open on.
    Path,
    /// The number of the call's descriptor.
    Fd,
    /// The remote address of the socket that a descriptor of the call is open on.
    Peer,
    /// The comm of the task at the end of the call.
    Comm,
    /// The name of the errno that the call returned.
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
    /// The time of day and the date in UTC.
    Utc,
    /// Seconds since the beginning of 1970 in UTC.
    Epoch,
    /// The time of CLOCK_MONOTONIC.
    Monotonic,
}

impl TimeFormat {
    /// Returns whether the stamps are in the machine's time zone.
    pub fn is_local(self) -> bool {
        matches!(self, TimeFormat::Local | TimeFormat::LocalDate)
    }
}
