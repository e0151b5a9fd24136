//! The validated command line. Nothing is looked up for it: no file is opened and no name is resolved.

pub mod filter;
pub mod inject;
mod probe_command;
mod recording;
pub mod select;
mod time_span;

pub use probe_command::{ProbeCommand, ProbeSource};
pub use recording::{Comparison, Conversion, EventsOf, Order, Recording, Replay, Report, Snapshots};
#[cfg(test)]
pub use time_span::Bound;
pub use time_span::{Bounds, TimeSpan};

use crate::probe::grammar::Probe;
use crate::session::{CallGraph, Terms};
use crate::show::Show;
use crate::text::glob;
use filter::Expr;
use inject::Injection;
use std::ffi::OsString;
use std::path::PathBuf;

/// A command of rtrace with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Trace a command or running tasks.
    Trace(Box<Trace>),
    /// Show a recording.
    Replay(Box<Replay>),
    /// `rtrace diff`: compare two recordings or traces.
    Diff(Comparison),
    /// `rtrace script`: print the records of a recording.
    Script {
        /// The recording.
        recording: PathBuf,
        /// `--time FROM,TO`: the part of it whose records are printed.
        span: Option<TimeSpan>,
    },
    /// `rtrace evlist`: print the events of a recording.
    EventList {
        /// The recording.
        recording: PathBuf,
        /// What is printed of each event.
        what: EventsOf,
    },
    /// `rtrace convert`: write the calls of a recording for other tools.
    Convert(Conversion),
    /// `rtrace list`: list what can be traced.
    List {
        /// What to list.
        what: Listing,
        /// The pattern that the names of listed entries match; `None` for all.
        glob: Option<String>,
        /// The format of the answer.
        format: AnswerFormat,
    },
    /// List the USDT tracepoints of this program.
    ListUsdt {
        /// The path of the program or library.
        program: PathBuf,
        /// The format of the answer.
        format: AnswerFormat,
    },
    /// `rtrace check`: print what this machine and the rights of the caller allow.
    Check(AnswerFormat),
    /// Print the commands that allow the members of a group to use rtrace.
    Setup(Setup),
    /// `rtrace probe`: list, create or delete dynamic events.
    Probe(ProbeCommand),
    /// Print the completion script of this shell.
    Completions(clap_complete::Shell),
    /// Print completions of the last of these words, for completion scripts.
    Complete(Vec<OsString>),
}

/// The format in which a command prints what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerFormat {
    /// Lines for people.
    #[default]
    Text,
    /// `--json`: one JSON object per line.
    Json,
}

/// The arguments of `rtrace check --setup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The group; the name is valid for groupadd(8).
    pub group: String,
    /// The program that the members are to run; `None` is this one.
    pub program: Option<PathBuf>,
}

/// The subject of `rtrace list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// All of the others together.
    Everything,
    /// The syscalls that have a row.
    Syscalls,
    /// The groups of syscalls (`%file`).
    Groups,
    /// The events of tracefs.
    Events,
    /// The tables of constants and the structs.
    Tables,
}

/// A tracing run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The tasks that are traced.
    pub target: Target,
    /// The events that are traced, and the conditions under which they are shown.
    pub what: EventSelection,
    /// Which parts of an event are shown, and how.
    pub show: Show,
    /// The call chains that are recorded, and the graphs that are written from them.
    pub graphs: Graphs,
    /// Where the lines go.
    pub output: Output,
    /// The options for the run of rtrace itself.
    pub run: Run,
    /// The recording of the trace, if one is requested.
    pub recording: Option<Recording>,
    /// `--time FROM,TO`: the part of a recording that is shown.
    pub span: Option<TimeSpan>,
    /// Messages about the command line, which `-q` suppresses.
    pub notices: Vec<String>,
}

/// The traced tasks.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A command, and the tasks that it creates.
    Command(Command),
    /// Running tasks.
    Running {
        /// The options that select them.
        tasks: TaskSelection,
        /// The command at whose end tracing ends. It is not traced unless the options select it.
        timer: Option<Command>,
    },
}

/// The options that select running tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskSelection {
    /// `-a`, `-C` without another target, or no target.
    All,
    /// `-p`
    Pids(Vec<i32>),
    /// `-t`
    Tids(Vec<i32>),
    /// `-u`: the name or the ID of a user.
    User(String),
    /// `-G`: a path below the cgroup mount.
    Cgroup(String),
    /// `--container`: an ID, a prefix of one, or a name.
    Container(String),
}

/// A command to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The first argument, if it is not the name of the program (`strace --argv0`).
    pub argv0: Option<OsString>,
    /// `--run-as`
    pub run_as: Option<String>,
    /// `-E VAR=VALUE` (set) and `-E VAR` (remove), in order.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// `--chdir`
    pub chdir: Option<PathBuf>,
}

/// The traced syscalls and events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventSelection {
    /// The items of all `-e` options and the probes, in the order of the command line.
    pub items: Vec<Item>,
    /// The `--filter` before any `-e`, or after an `-e` that only excludes. It applies to all syscalls and events.
    pub filter: Option<Expr>,
    /// `--syscalls` or `--no-syscalls`; `None` without these options.
    pub syscalls: Option<bool>,
    /// `-F`
    pub faults: Option<Faults>,
    /// `--sched`: show in the summary how long each thread ran on a CPU.
    pub sched: bool,
    /// `--signals` or `--no-signals`. By default, signals are traced if syscalls are.
    pub signals: Option<bool>,
    /// `--switch-on`: the event at which printing starts.
    pub switch_on: Option<Selector>,
    /// `--switch-off`: the event at which printing stops.
    pub switch_off: Option<Selector>,
    /// `--show-on-off-events`: print these events too.
    pub show_on_off_events: bool,
    /// `--fd-paths`: arm the events that are needed for paths of file descriptors, even if these are not printed.
    pub fd_paths: bool,
    /// `-C`
    pub cpus: Option<Vec<u32>>,
    /// `--filter-pids`
    pub without_pids: Vec<i32>,
    /// `--no-inherit`
    pub no_inherit: bool,
    /// `-D`, in nanoseconds.
    pub delay: Option<u64>,
    /// `--inject`: the calls of the command that are answered, delayed or accompanied by a signal. A later one replaces
    /// what earlier ones say of a call.
    pub injections: Vec<Injection>,
}

/// The page faults of `-F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Both kinds.
    All,
    /// Page faults that needed I/O.
    Major,
    /// Page faults without I/O.
    Minor,
}

/// One item of `-e`, or a `--probe`.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// `!`: the item excludes.
    pub negated: bool,
    /// What the item selects.
    pub selector: Selector,
    /// The terms between slashes after the name.
    pub terms: Terms,
    /// The `--filter` options after the item's `-e` or `--probe`, joined by `&&`.
    pub filter: Option<Expr>,
    /// The index of the `-e` option that contains the item, from 0; `add_events` of a configuration file comes first.
    /// [`select::resolve`] says how the lists are combined.
    pub list: usize,
}

/// A name or pattern of `-e`, or a probe of `--probe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The name of a syscall or a glob, without a colon.
    Syscall(String),
    /// `%group`, without the percent sign.
    Group(String),
    /// `/regex/`, without the slashes.
    Regex(String),
    /// `subsystem:event`; both may be globs.
    Event {
        /// The trace system or the group of a probe.
        subsystem: String,
        /// The event in it.
        name: String,
    },
    /// `io_uring:NAME` or `%io_uring`: the requests of io_uring with this name (`openat`) or pattern.
    Request(String),
    /// `--probe`: a probe that rtrace creates for this run.
    Probe(Box<Probe>),
    /// A file with BPF programs of the user: an object file (`.bpf.o`), or C source that rtrace compiles (`.bpf.c`).
    Object(PathBuf),
}

impl Selector {
    /// Returns whether the selector is a tracepoint or a pattern of tracepoints, and selects this one.
    pub fn selects_event(&self, group: &str, event: &str) -> bool {
        let matches = |pattern: &str, text: &str| glob::matches(pattern.as_bytes(), text.as_bytes());
        matches!(self, Selector::Event { subsystem, name } if matches(subsystem, group) && matches(name, event))
    }

    /// Returns the probe, if the selector is one of `--probe`.
    pub fn probe(&self) -> Option<&Probe> {
        match self {
            Selector::Probe(probe) => Some(probe),
            _ => None,
        }
    }

    /// Returns whether it selects syscalls; otherwise it selects events.
    pub fn selects_syscalls(&self) -> bool {
        !matches!(self, Selector::Event { .. } | Selector::Request(_) | Selector::Probe(_) | Selector::Object(_))
    }
}

/// The options for call graphs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graphs {
    /// The method for user-space frames of all events; items of `-e` may have another one.
    pub user: Option<CallGraph>,
    /// `--kernel-stack`
    pub kernel: bool,
    /// `--max-stack`: the maximum number of frames that are shown.
    pub max: Option<u16>,
    /// `--min-stack`: only events with at least as many frames are shown.
    pub min: Option<u16>,
    /// `--lines`: show the source file and line of each frame.
    pub lines: bool,
    /// `--inline`: show inlined functions as frames.
    pub inlined: bool,
    /// `--resolve-at-end`
    pub names_at_end: bool,
    /// `--folded`: the file for call paths with their weights.
    pub folded: Option<PathBuf>,
    /// `--flamegraph`: the file for the SVG picture of call paths.
    pub flamegraph: Option<PathBuf>,
    /// The quantity that `--folded`, `--flamegraph` and `--stack-summary` add up.
    pub weight: Weight,
    /// `--stack-summary`: the number of call paths that are shown for each syscall.
    pub summary: Option<u16>,
    /// `rtrace report`
    pub report: Option<Report>,
}

/// The weight of a call path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// The total duration of its calls, in nanoseconds.
    #[default]
    Time,
    /// The number of its calls.
    Count,
}

/// The destination of the output.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// `-o`: the stream, file or command.
    pub to: Sink,
    /// `--output-separately`: write a file for each process.
    pub separately: bool,
    /// `--color`: when to color text.
    pub color: Color,
    /// `--max-size`: when to start a new file; `None` for never.
    pub rotation: Option<Rotation>,
}

/// `--max-size` and `--rotate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The maximum size of a file, in bytes.
    pub max_size: u64,
    /// The number of old files that are kept.
    pub keep: u32,
}

/// The stream, file or command that receives the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Standard error, without `-o`.
    Stderr,
    /// `-`: standard output.
    Stdout,
    /// A file; an existing one is renamed to `FILE.old`.
    File(PathBuf),
    /// A file whose text stays, and to which lines are appended (strace's `-A`).
    Append(PathBuf),
    /// `'|command'`, which the shell runs.
    Pipe(OsString),
}

/// `--color`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, subject to the variables NO_COLOR and CLICOLOR_FORCE.
    #[default]
    Auto,
    /// In files and pipes too.
    Always,
    /// Nowhere.
    Never,
}

/// The options for the run of rtrace itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// `-m`: the size of a ring buffer, in bytes per CPU; `None` lets rtrace choose.
    pub ring_bytes: Option<u64>,
    /// `--strict`: exit with status 124 if records were lost.
    pub strict: bool,
    /// `--lossless`: delay the command while a ring is nearly full.
    pub lossless: bool,
    /// Wait for background children of the command; `--no-wait` clears it.
    pub wait: bool,
    /// `-q`
    pub quiet: bool,
    /// The number of `-v` options.
    pub verbose: u8,
    /// `--engine`
    pub engine: Engine,
    /// `--strings-by`
    pub strings_by: StringsBy,
    /// `--inject-by`
    pub inject_by: inject::InjectBy,
    /// The command line was one of strace: messages and exit status are those of strace.
    pub as_strace: bool,
}

/// The mechanism of tracing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The cheapest one that supports all options.
    #[default]
    Auto,
    /// Only perf events: tracepoints and probes.
    Tracepoint,
    /// The BPF programs. The run fails if the kernel does not take them.
    Bpf,
}

/// The method for reading path names when the BPF engine is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StringsBy {
    /// The most accurate one that the kernel supports.
    #[default]
    Auto,
    /// A return probe that rtrace creates.
    Getname,
    /// The event `probe:vfs_getname`.
    VfsGetname,
    /// The copies in `syscalls:` events.
    Events,
    /// An event probe that rtrace creates, on the exits of syscalls.
    Eprobe,
    /// Path names are not read.
    None,
}
