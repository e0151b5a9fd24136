//! What the user typed, validated, nothing looked up: no file is opened and no name resolved here.

pub mod filter;
pub mod select;

use crate::probe::grammar::Probe;
use crate::session::{CallGraph, Terms};
use crate::show::Show;
use filter::Expr;
use std::ffi::OsString;
use std::path::PathBuf;

/// What rtrace is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Trace(Box<Trace>),
    List {
        what: Listing,
        glob: Option<String>,
    },
    /// The USDT tracepoints of this program.
    ListUsdt(PathBuf),
    Check,
    /// The commands that let a group in.
    Setup(Setup),
    Probe(Probing),
    Completions(clap_complete::Shell),
    /// What the last of these words may become: for completion scripts.
    Complete(Vec<OsString>),
}

/// `rtrace check --setup`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// A name that groupadd(8) takes.
    pub group: String,
    /// The file that members are to run; `None` is this one.
    pub program: Option<PathBuf>,
}

/// The parts of `rtrace probe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probing {
    List {
        patterns: Vec<String>,
    },
    Show {
        event: String,
    },
    /// `force`: lines that delete may delete what others made.
    Add {
        lines: Lines,
        force: bool,
    },
    Delete {
        patterns: Vec<String>,
        force: bool,
    },
    /// The values are `NAME=VALUE`, one or more a word.
    Emit {
        event: String,
        values: Vec<String>,
    },
}

/// Lines of dynamic events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    One(String),
    /// `-` is stdin.
    File(PathBuf),
}

/// The parts of `rtrace list`.
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
    pub what: What,
    pub show: Show,
    pub graphs: Graphs,
    pub output: Output,
    pub run: Run,
    /// What the user ought to know of the command line; not said with `-q`.
    pub notices: Vec<String>,
}

/// Whom to trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A command and what it starts.
    Command(Command),
    /// What is there already; the command, if any, is only the timer.
    There { who: Who, timer: Option<Command> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// `-a`, or no target at all, or `-C` alone.
    All,
    /// `-p`
    Pids(Vec<i32>),
    /// `-t`
    Tids(Vec<i32>),
    /// `-u`: a name or a number.
    User(String),
    /// `-G`: a path below the cgroup mount.
    Cgroup(String),
    /// `--container`: an ID, the beginning of one, or a name.
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

/// What to trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct What {
    /// The items of every `-e` and the probes, in order.
    pub items: Vec<Item>,
    /// `--filter` before any `-e`, or behind one that only takes away: holds for everything.
    pub filter: Option<Expr>,
    /// `--syscalls` / `--no-syscalls`, when given.
    pub syscalls: Option<bool>,
    /// `-F`
    pub faults: Option<Faults>,
    pub sched: bool,
    /// `--signals`, `--no-signals`; if neither is said, signals go with syscalls.
    pub signals: Option<bool>,
    /// `--switch-on`, `--switch-off`: an event each.
    pub switch_on: Option<Selector>,
    pub switch_off: Option<Selector>,
    pub show_on_off_events: bool,
    /// `--fd-paths`: arm what is needed to know descriptors' paths even if it is not printed.
    pub fd_paths: bool,
    /// `-C`
    pub cpus: Option<Vec<u32>>,
    /// `--filter-pids`
    pub without_pids: Vec<i32>,
    /// `--no-inherit`
    pub no_inherit: bool,
    /// `-D`, nanoseconds.
    pub delay: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    All,
    Major,
    Minor,
}

/// One item of `-e`, or a `--probe`.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// `!`: takes away.
    pub negated: bool,
    pub selector: Selector,
    pub terms: Terms,
    /// The `--filter` that followed the item's `-e` or `--probe`; several are joined by `&&`.
    pub filter: Option<Expr>,
    /// Which `-e` it stood in, counted from 0; `add_events` of a configuration file comes first. See [`select::resolve`] for how lists add up.
    pub list: usize,
}

/// A name or pattern of `-e`, or what `--probe` makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A syscall's name or glob, without a colon.
    Syscall(String),
    /// `%group`, without the percent sign.
    Group(String),
    /// `/regex/`, without the slashes.
    Regex(String),
    /// `subsystem:event`, both may be globs.
    Event { subsystem: String, name: String },
    /// `--probe`: made for this run.
    Probe(Box<Probe>),
    /// A file of the user's own BPF programs: an object (`.bpf.o`), or C that becomes one (`.bpf.c`).
    Object(PathBuf),
}

impl Selector {
    pub fn probe(&self) -> Option<&Probe> {
        match self {
            Selector::Probe(probe) => Some(probe),
            _ => None,
        }
    }

    /// It selects syscalls; otherwise events.
    pub fn is_of_syscalls(&self) -> bool {
        !matches!(self, Selector::Event { .. } | Selector::Probe(_) | Selector::Object(_))
    }
}

/// Where calls come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graphs {
    /// How the user's frames of every event are taken; items of `-e` may have a way of their own.
    pub user: Option<CallGraph>,
    /// `--kernel-stack`
    pub kernel: bool,
    /// `--max-stack`, `--min-stack`: frames.
    pub max: Option<u16>,
    pub min: Option<u16>,
    /// `--lines`, `--inline`
    pub lines: bool,
    pub inlined: bool,
    /// `--resolve-at-end`
    pub names_at_end: bool,
    pub folded: Option<PathBuf>,
    pub flamegraph: Option<PathBuf>,
    /// What `--folded`, `--flamegraph` and `--stack-summary` add up.
    pub weight: Weight,
    /// `--stack-summary`: call paths for each syscall.
    pub summary: Option<u16>,
}

/// What a call path weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Nanoseconds that calls took.
    #[default]
    Time,
    /// One a call.
    Count,
}

/// Where it goes.
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
    /// Bytes of a file at most.
    pub max_size: u64,
    /// So many old files are kept.
    pub keep: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    Stderr,
    Stdout,
    File(PathBuf),
    /// `'|command'`, run by the shell.
    Pipe(OsString),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// How rtrace itself goes about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// `-m`: bytes per CPU; `None` chooses.
    pub ring_bytes: Option<u64>,
    /// `--strict`: status 124 when something was lost.
    pub strict: bool,
    /// `--no-wait`: do not wait for the command's background children.
    pub wait: bool,
    /// `-q`
    pub quiet: bool,
    /// `-v`, counted.
    pub verbose: u8,
    /// `--engine`
    pub engine: Engine,
    /// `--strings-by`
    pub strings_by: StringsBy,
}

/// The mechanism that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The cheapest that answers.
    #[default]
    Auto,
    Tracepoint,
    Bpf,
}

/// The way that path names are asked to be known by, without BPF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StringsBy {
    /// The truest that this kernel has.
    #[default]
    Auto,
    /// A return probe of our own.
    Getname,
    /// The event `probe:vfs_getname`.
    VfsGetname,
    /// The copies in `syscalls:` events.
    Events,
    /// An event probe of our own, when calls return.
    Eprobe,
    /// Not at all.
    None,
}
