//! What is asked of recordings.

use super::filter::Expr;
use super::{AnswerFormat, Color, Trace};
use std::ffi::OsString;
use std::path::PathBuf;

/// `rtrace record` and `--record`: a trace is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// The options that select calls and events, as words of a command line. A replay selects by them.
    pub selection: Vec<String>,
    /// The trace is only recorded, and not shown.
    pub is_alone: bool,
    /// `-z`: the level of zstd by which records are compressed; `None` if they are not.
    pub compression: Option<i32>,
    /// `--for-perf`: `perf trace -i` can show the calls.
    pub for_perf: bool,
    /// `--snapshot`: only the newest records are kept, and written when somebody asks for them.
    pub snapshots: Option<Snapshots>,
}

/// `--snapshot`: when snapshots are taken, beside SIGUSR2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// `--snapshot-on`: a snapshot is taken when a call satisfies this.
    pub on: Option<Expr>,
    /// `--snapshot-max`: after this many snapshots that calls asked for, further matches are only counted.
    pub max: u32,
    /// `--snapshot-at-end`: a snapshot is taken when the trace ends.
    pub at_end: bool,
}

/// `-i`: a recording is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The recording.
    pub file: PathBuf,
    /// What is shown of it, and how. The target means nothing.
    pub trace: Trace,
    /// The words of the command line, for parsing them again behind those of the recording.
    pub words: Vec<OsString>,
    /// The words select calls and events.
    pub selects: bool,
}

/// `rtrace report`: how the call paths of a recording are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// `--sort`
    pub order: Order,
    /// `--inverted`: paths go from the syscall to its callers.
    pub is_inverted: bool,
    /// `--max-stack`: the maximum number of frames of a path.
    pub frames_max: Option<usize>,
    /// `--percent-limit`: paths with a smaller share are left out.
    pub share_min: f64,
}

/// What the call paths of a report are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The total time of their calls.
    Time,
    /// The number of their calls.
    Count,
    /// The average time of their calls.
    Average,
    /// Their names.
    Name,
}

/// `rtrace convert --to perf-tracepoints`: the calls of a recording are written as records of `raw_syscalls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The recording.
    pub input: PathBuf,
    /// The file that is written.
    pub output: PathBuf,
}

/// `rtrace diff`: two recordings, or traces in JSON, are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The files.
    pub files: [PathBuf; 2],
    /// The options that select calls and events, as words of a command line; without any, what the recorders selected
    /// is compared.
    pub selection: Vec<String>,
    /// `--time FROM,TO`: the part of both that is compared.
    pub span: Option<String>,
    /// The format of the answer.
    pub format: AnswerFormat,
    /// Whether the answer has colours.
    pub color: Color,
}

/// What is printed of the events of a recording, beside their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventsOf {
    /// `-v`: how the event was opened.
    pub attributes: bool,
    /// `--trace-fields`: the names of the fields of tracepoints.
    pub fields: bool,
}
