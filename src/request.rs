//! The validated command line. Nothing is looked up for it: no file is opened and no name is resolved.

pub mod filter;
pub mod select;

use crate::probe::grammar::Probe;
use crate::session::{CallGraph, Terms};
use crate::show::Show;
use filter::Expr;
use std::ffi::OsString;
use std::path::PathBuf;

/// A command of rtrace with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Trace(Box<Trace>),
    List {
        what: Listing,
        glob: Option<String>,
        format: AnswerFormat,
    },
    /// List the USDT tracepoints of this program.
    ListUsdt {
        program: PathBuf,
        format: AnswerFormat,
    },
    Check(AnswerFormat),
    /// Print the commands that allow the members of a group to use rtrace.
    Setup(Setup),
    Probe(ProbeCommand),
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

/// A subcommand of `rtrace probe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeCommand {
    List {
        patterns: Vec<String>,
        format: AnswerFormat,
    },
    Show {
        event: String,
    },
    /// With `force`, lines that delete events may delete those that rtrace did not create.
    Add {
        lines: ProbeSource,
        force: bool,
    },
    Delete {
        patterns: Vec<String>,
        force: bool,
    },
    /// The values are `NAME=VALUE`, one or more in a word.
    Emit {
        event: String,
        values: Vec<String>,
    },
}

/// The source of definitions of dynamic events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeSource {
    /// A definition on the command line.
    One(String),
    /// A file; `-` is stdin.
    File(PathBuf),
}

/// The subject of `rtrace list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    Everything,
    Syscalls,
    Groups,
    Events,
    Tables,
}

/// A tracing run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub target: Target,
    pub what: EventSelection,
    pub show: Show,
    pub graphs: Graphs,
    pub output: Output,
    pub run: Run,
    /// Messages about the command line, which `-q` suppresses.
    pub notices: Vec<String>,
}

/// The traced tasks.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A command, and the tasks that it creates.
    Command(Command),
    /// Running tasks. If there is a command `timer`, tracing ends when it ends.
    Running { tasks: TaskSelection, timer: Option<Command> },
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
    pub argv: Vec<OsString>,
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
    pub sched: bool,
    /// `--signals` or `--no-signals`. By default, signals are traced if syscalls are.
    pub signals: Option<bool>,
    /// The events of `--switch-on` and `--switch-off`.
    pub switch_on: Option<Selector>,
    pub switch_off: Option<Selector>,
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
}

/// The page faults of `-F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    All,
    Major,
    Minor,
}

/// One item of `-e`, or a `--probe`.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// `!`: the item excludes.
    pub negated: bool,
    pub selector: Selector,
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
    Event { subsystem: String, name: String },
    /// `--probe`: a probe that rtrace creates for this run.
    Probe(Box<Probe>),
    /// A file with BPF programs of the user: an object file (`.bpf.o`), or C source that rtrace compiles (`.bpf.c`).
    Object(PathBuf),
}

impl Selector {
    pub fn probe(&self) -> Option<&Probe> {
        match self {
            Selector::Probe(probe) => Some(probe),
            _ => None,
        }
    }

    /// Returns whether it selects syscalls; otherwise it selects events.
    pub fn selects_syscalls(&self) -> bool {
        !matches!(self, Selector::Event { .. } | Selector::Probe(_) | Selector::Object(_))
    }
}

/// The options for call graphs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graphs {
    /// The method for user-space frames of all events; items of `-e` may have another one.
    pub user: Option<CallGraph>,
    /// `--kernel-stack`
    pub kernel: bool,
    /// `--max-stack` and `--min-stack`, in frames.
    pub max: Option<u16>,
    pub min: Option<u16>,
    /// `--lines` and `--inline`
    pub lines: bool,
    pub inlined: bool,
    /// `--resolve-at-end`
    pub names_at_end: bool,
    pub folded: Option<PathBuf>,
    pub flamegraph: Option<PathBuf>,
    /// The quantity that `--folded`, `--flamegraph` and `--stack-summary` add up.
    pub weight: Weight,
    /// `--stack-summary`: the number of call paths that are shown for each syscall.
    pub summary: Option<u16>,
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
    pub to: Sink,
    pub separately: bool,
    pub color: Color,
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
    Stderr,
    Stdout,
    File(PathBuf),
    /// `'|command'`, which the shell runs.
    Pipe(OsString),
}

/// `--color`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// The options for the run of rtrace itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// `-m`: the size of a ring buffer, in bytes per CPU; `None` lets rtrace choose.
    pub ring_bytes: Option<u64>,
    /// `--strict`: exit with status 124 if records were lost.
    pub strict: bool,
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
}

/// The mechanism of tracing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The cheapest one that supports all options.
    #[default]
    Auto,
    Tracepoint,
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
