//! Every option, as clap is told about it: the one place for names, help texts and headings.
//!
//! `--help`, the man page and the completions are made of this. What the options mean together is `parse`'s.

use crate::show::{SummaryObject, Width};
use crate::text::units;
use clap::{Arg, ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Traces system calls: prints what a command, a process or the whole machine asks of the kernel, and says what it missed.
#[derive(Debug, Parser)]
#[command(
    name = "rtrace",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true,
    args_override_self = true,
    override_usage = "rtrace [OPTIONS] [--] COMMAND [ARG]...\n       rtrace [OPTIONS] -p PID | -t TID | -u USER | -G CGROUP | -C CPUS | -a [COMMAND [ARG]...]\n       rtrace list | check | probe | completions",
    after_help = "Without a command and without a target, the whole machine is traced. With a target, a command only says how long.\n\
                  The words of the command begin at the first word that is no option; `rtrace -- list` traces a program called list.\n\
                  The languages of -e and --filter are in rtrace-filter(7), that of --probe is in rtrace-probe(7), everything else in rtrace(1)."
)]
pub struct Cli {
    #[command(subcommand)]
    pub subcommand: Option<Sub>,

    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub what: WhatArgs,
    #[command(flatten)]
    pub summary: SummaryArgs,
    #[command(flatten)]
    pub lines: LinesArgs,
    #[command(flatten)]
    pub graphs: GraphArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub run: RunArgs,

    /// The command to trace, or to wait for, with its arguments
    #[arg(hide = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// The command line as clap knows it. `-h` and `--help` are two options of rtrace's own, which takes clap's away from the subcommands as well.
pub fn command() -> clap::Command {
    fn with_help(command: clap::Command) -> clap::Command {
        let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help");
        command.disable_help_subcommand(true).arg(help).mut_subcommands(with_help)
    }
    Cli::command().mut_subcommands(with_help)
}

#[derive(Debug, Subcommand)]
pub enum Sub {
    /// Show what can be traced here: syscalls, groups, events; a syscall's arguments, a table's values
    #[command(override_usage = "rtrace list [syscalls|groups|events|tables] [GLOB]\n       rtrace list usdt:PROGRAM")]
    List {
        /// What to list, then a name or glob of what is wanted; either may be left out
        #[arg(value_name = "KIND|GLOB", num_args = 0..=2)]
        words: Vec<String>,
    },
    /// Say what works here for this user, and what would give the rest
    Check {
        /// Print the commands that let members of a group trace programs of their own without root
        #[arg(long)]
        setup: bool,
        /// That group
        #[arg(long, value_name = "NAME", default_value = "rtrace", requires = "setup")]
        group: String,
        /// The file that they are to run, if it is not this one
        #[arg(long, value_name = "FILE", requires = "setup", value_hint = clap::ValueHint::FilePath)]
        program: Option<PathBuf>,
    },
    /// Make probes that stay, list, show and delete them; write records of user events
    #[command(subcommand_required = true, arg_required_else_help = false)]
    Probe {
        #[command(subcommand)]
        what: ProbeSub,
    },
    /// Print a completion script
    Completions { shell: clap_complete::Shell },
    /// Say what the last word may become, for the completion scripts
    #[command(name = "__complete", hide = true)]
    Complete {
        #[arg(last = true)]
        words: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ProbeSub {
    /// List this kernel's dynamic events: whose they are, how often they were hit and missed, how they are defined
    List {
        /// Names or globs of those that are wanted: GROUP:EVENT or EVENT
        #[arg(value_name = "EVENT")]
        events: Vec<String>,
    },
    /// Show all of an event: fields, filter, triggers, histograms
    Show {
        /// GROUP:EVENT, or EVENT if there is one of that name only
        event: String,
    },
    /// Make probes that stay until `rtrace probe del` (or the next start of the machine), and print their names
    #[command(override_usage = "rtrace probe add SPEC\n       rtrace probe add [--force] -f FILE")]
    Add {
        /// A line of the kernel's dynamic_events, with symbols and names where it wants offsets and registers: 'p do_sys_openat2 filename', 'u:test u32 count'
        #[arg(required_unless_present = "file", conflicts_with = "file", allow_hyphen_values = true)]
        spec: Option<String>,
        /// All lines of FILE (- is stdin) or none: as in tracefs, with # comments, and -: to delete
        #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Let -: in FILE delete what others made
        #[arg(long, requires = "file")]
        force: bool,
    },
    /// Delete probes that `rtrace probe add` made
    Del {
        /// GROUP:EVENT or EVENT, or globs
        #[arg(value_name = "EVENT", required = true)]
        events: Vec<String>,
        /// Delete also what others made
        #[arg(long)]
        force: bool,
    },
    /// Write a record of a user event, as its program would
    Emit {
        /// user_events:EVENT or EVENT
        event: String,
        /// A value for each field: 'count=3 msg="two words"'; structs and other bytes in hexadecimal
        #[arg(value_name = "FIELD=VALUE", allow_hyphen_values = true)]
        values: Vec<String>,
    },
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Whom to trace")]
pub struct TargetArgs {
    /// Everything on this machine; a COMMAND only says how long
    #[arg(short = 'a', long, conflicts_with_all = ["pid", "tid", "uid"])]
    pub all_cpus: bool,
    /// Processes that are there, with the children they make from now on
    #[arg(short, long, value_name = "PID,...", action = ArgAction::Append, conflicts_with_all = ["tid", "uid", "cgroup", "container"])]
    pub pid: Vec<String>,
    /// Single threads that are there, and nothing they make
    #[arg(short, long, value_name = "TID,...", action = ArgAction::Append, conflicts_with_all = ["uid", "cgroup", "container"])]
    pub tid: Vec<String>,
    /// Everything this user runs (a name or a number)
    #[arg(short, long, value_name = "USER", value_hint = clap::ValueHint::Username, conflicts_with_all = ["cgroup", "container"])]
    pub uid: Option<String>,
    /// Everything in this cgroup (its path below the cgroup mount) and those below it
    #[arg(short = 'G', long, value_name = "CGROUP", conflicts_with = "container")]
    pub cgroup: Option<String>,
    /// Everything in this container of docker, podman, containerd, CRI-O, systemd-nspawn or lxc: its ID, the beginning of it, or its name (POD/NAME in kubernetes)
    #[arg(long, value_name = "ID|NAME")]
    pub container: Option<String>,
    /// On these CPUs only; without another target, everything there
    #[arg(short = 'C', long, value_name = "CPU,FIRST-LAST,...")]
    pub cpu: Option<String>,
    /// All but these processes or threads
    #[arg(long, value_name = "PID,...", action = ArgAction::Append)]
    pub filter_pids: Vec<String>,
    /// Do not follow children and new threads
    #[arg(long)]
    pub no_inherit: bool,
    /// Begin so long after the start (a bare number is milliseconds)
    #[arg(short = 'D', long, value_name = "TIME", value_parser = units::duration)]
    pub delay: Option<u64>,
    /// Start COMMAND as this user, with its groups and environment
    #[arg(long, value_name = "USER", value_hint = clap::ValueHint::Username)]
    pub run_as: Option<String>,
    /// Set a variable in COMMAND's environment, or remove it (VAR alone)
    #[arg(short = 'E', long = "env", value_name = "VAR[=VALUE]", action = ArgAction::Append)]
    pub env: Vec<OsString>,
    /// Start COMMAND in this directory
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub chdir: Option<PathBuf>,
    /// Do not wait for children that COMMAND leaves behind
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What to trace")]
pub struct WhatArgs {
    /// Syscalls, globs (epoll_*), groups (%file), /regexes/, events (sched:*), BPF programs (file.bpf.c); ! takes away; repeated -e add up
    #[arg(short = 'e', long, visible_alias = "expr", value_name = "LIST", action = ArgAction::Append)]
    pub event: Vec<String>,
    /// Make a probe for this run, by a line of the kernel's dynamic events with names where it wants numbers: 'p tcp_sendmsg sk size', 'r /bin/bash:readline +0($retval):string'
    #[arg(long, value_name = "SPEC", action = ArgAction::Append, allow_hyphen_values = true)]
    pub probe: Vec<String>,
    /// A condition for the -e or --probe before it, or for everything: 'ret < 0 && filename ~ "/etc/*"'
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true)]
    pub filter: Vec<String>,
    /// Trace syscalls beside the events of -e
    #[arg(long, overrides_with = "no_syscalls")]
    pub syscalls: bool,
    /// Trace no syscalls: events and page faults only
    #[arg(long, overrides_with = "syscalls")]
    pub no_syscalls: bool,
    /// Only calls that name this path, or have a descriptor open on it; globs ('/etc/*')
    #[arg(long, value_name = "PATH", action = ArgAction::Append, value_hint = clap::ValueHint::AnyPath)]
    pub path: Vec<OsString>,
    /// Only calls that took at least so long (a bare number is milliseconds)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<u64>,
    /// Only calls that failed
    #[arg(long)]
    pub failure: bool,
    /// Page faults
    #[arg(short = 'F', long, value_name = "KIND")]
    pub pf: Option<FaultsArg>,
    /// All signals, also beside events or a filter
    #[arg(long, overrides_with = "no_signals")]
    pub signals: bool,
    /// No signals
    #[arg(long, overrides_with = "signals")]
    pub no_signals: bool,
    /// Time on the CPU for each thread, shown in the summary
    #[arg(long)]
    pub sched: bool,
    /// Also trace what tells which files descriptors are, where -e alone would not
    #[arg(long)]
    pub fd_paths: bool,
    /// Print from this event on
    #[arg(long, value_name = "EVENT")]
    pub switch_on: Option<String>,
    /// Print up to this event
    #[arg(long, value_name = "EVENT")]
    pub switch_off: Option<String>,
    /// Print the switching events themselves, too
    #[arg(long)]
    pub show_on_off_events: bool,
    /// End after so many lines; a command runs on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_events: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Summary")]
pub struct SummaryArgs {
    /// A table of counts, errors and times instead of lines
    #[arg(short, long)]
    pub summary: bool,
    /// Lines, then the table
    #[arg(short = 'S', long)]
    pub with_summary: bool,
    /// Count each errno in the table (implies -s unless -S is given)
    #[arg(long)]
    pub errno_summary: bool,
    /// perf's table, one for each of these, instead of one table of all
    #[arg(long, value_name = "MODE")]
    pub summary_mode: Option<SummaryArg>,
    /// A row for each of these and syscall: path, fd, peer, comm, errno, or arg:NAME for an argument
    #[arg(long, value_name = "WHAT")]
    pub by: Option<SummaryObject>,
    /// Draw below each row how many calls took how long, by powers of two
    #[arg(long)]
    pub histogram: bool,
    /// Print what happened in each such time while it runs, and the whole at the end (a bare number is milliseconds)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub interval: Option<u64>,
    /// At most so many rows in a table; 0 is all [default: 12 with -a, otherwise all]
    #[arg(long, value_name = "N")]
    pub max_summary: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Lines")]
pub struct LinesArgs {
    /// Time stamps of the monotonic clock instead of milliseconds since the first event
    #[arg(short = 'T', long, overrides_with = "time_format")]
    pub time: bool,
    /// How time stamps are written
    #[arg(long, value_name = "FORMAT", overrides_with = "time")]
    pub time_format: Option<TimeArg>,
    /// Print the thread's name
    #[arg(long, overrides_with = "no_comm")]
    pub comm: bool,
    /// Do not print the thread's name
    #[arg(long, overrides_with = "comm")]
    pub no_comm: bool,
    /// Print the CPU
    #[arg(long)]
    pub show_cpu: bool,
    /// Write one JSON object a line, as rtrace-json(5) describes it [default with -o FILE.jsonl]
    #[arg(long)]
    pub json: bool,
    /// Print all arguments that are zero, also where zero is what nearly every caller passes
    #[arg(long)]
    pub show_zeros: bool,
    /// Print a call that takes long while it is still in flight, and again when it is over [default: to a terminal or a pipe]
    #[arg(long, overrides_with = "no_pending")]
    pub pending: bool,
    /// Print a call only when it is over [default: to a file]
    #[arg(long, overrides_with = "pending")]
    pub no_pending: bool,
    /// On a terminal, cut lines inside their arguments to its width (auto) or to N columns; files and pipes have whole lines [default: none]
    #[arg(long, value_name = "auto|N|none")]
    pub width: Option<Width>,
    /// Print at most so many bytes of a string [default: 32]
    #[arg(long, value_name = "N")]
    pub string_limit: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Call graphs")]
pub struct GraphArgs {
    /// Print where each call was made from, by frame pointers (fp) or by unwinding up to SIZE bytes of stack (dwarf, which works with all programs)
    #[arg(long, value_name = "fp|dwarf[,SIZE]", visible_alias = "call-stack")]
    pub call_graph: Option<String>,
    /// At most so many frames (implies --call-graph dwarf)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_stack: Option<u16>,
    /// Only calls with so many frames or more (implies --call-graph dwarf)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub min_stack: Option<u16>,
    /// Frames inside the kernel, too; alone, only these
    #[arg(long, visible_alias = "kernel-syscall-graph")]
    pub kernel_stack: bool,
    /// Print each frame's source file and line
    #[arg(long)]
    pub lines: bool,
    /// Print functions that the compiler inlined, as frames of their own
    #[arg(long)]
    pub inline: bool,
    /// Name functions at the end only, when all debug information that can be had is there; lines come then
    #[arg(long)]
    pub resolve_at_end: bool,
    /// Write call paths with their weights to FILE, a line each, as flame graph programs read them
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub folded: Option<PathBuf>,
    /// Draw call paths with their weights as a flame graph: an SVG picture that a browser shows and searches
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub flamegraph: Option<PathBuf>,
    /// What call paths weigh: the time that calls took, or their number
    #[arg(long, value_name = "WHAT", default_value = "time")]
    pub stack_weight: WeightArg,
    /// With -s or -S: for each syscall the N call paths that took most time [default: 5]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "5", value_parser = clap::value_parser!(u16).range(1..))]
    pub stack_summary: Option<u16>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write to FILE (an old one becomes FILE.old); - is stdout, '|CMD' a pipe to a command
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<OsString>,
    /// Begin FILE anew when it would become larger than so many bytes (K, M, G)
    #[arg(long, value_name = "SIZE", value_parser = units::size, requires = "output", conflicts_with = "output_separately")]
    pub max_size: Option<u64>,
    /// With --max-size: keep N old files, FILE.1 (the newest) to FILE.N [default: 1]
    #[arg(long, value_name = "N", requires = "max_size", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub rotate: Option<u32>,
    /// A file for each process: FILE.PID
    #[arg(long, requires = "output")]
    pub output_separately: bool,
    /// Colours; auto means on a terminal
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorArg>,
    /// Exit with status 124 if anything was lost
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How")]
pub struct RunArgs {
    /// Buffer for each CPU: a size with K, M or G; a bare number is pages [default: chosen, as -v says]
    #[arg(short, long, value_name = "PAGES|SIZE")]
    pub mmap_pages: Option<String>,
    /// The mechanism
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineArg,
    /// Without BPF: how path names are known (chooses the tracepoint engine)
    #[arg(long, value_name = "WAY", default_value = "auto")]
    pub strings_by: StringsArg,
    /// Accepted for strace's sake: children are always followed
    #[arg(short = 'f', long = "follow-forks", action = ArgAction::Count, hide = true)]
    pub follow: u8,
    /// Accepted for strace's sake: what descriptors are is always printed
    #[arg(short = 'y', action = ArgAction::Count, hide = true)]
    pub yes: u8,
    /// Print no lines about how tasks end, and no notes on stderr
    #[arg(short, long, action = ArgAction::Count)]
    pub quiet: u8,
    /// Say what is traced how and why, and what it costs others; twice: more
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Ignore configuration files and RTRACE_OPTS
    #[arg(long)]
    pub no_config: bool,
    /// Accepted for perf's sake: events are always in order
    #[arg(long)]
    pub sort_events: bool,
    /// Accepted for perf's sake: the cheapest way is taken anyhow
    #[arg(long, overrides_with = "no_bpf_summary")]
    pub bpf_summary: bool,
    /// Accepted for perf's sake
    #[arg(long, overrides_with = "bpf_summary", hide = true)]
    pub no_bpf_summary: bool,
    /// Print one screen of help
    #[arg(short = 'h')]
    pub short_help: bool,
    /// Print all options
    #[arg(long, action = ArgAction::HelpShort)]
    pub help: Option<bool>,
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    pub version: Option<bool>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FaultsArg {
    All,
    Maj,
    Min,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SummaryArg {
    Thread,
    Process,
    Total,
    Cgroup,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TimeArg {
    /// Milliseconds since the first event
    Relative,
    /// Milliseconds since the line before
    Delta,
    /// Local time of day
    Local,
    /// Local date and time
    LocalDate,
    /// Date and time in UTC
    Utc,
    /// Seconds since 1970
    Epoch,
    /// The kernel's monotonic clock
    Monotonic,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WeightArg {
    Time,
    Count,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ColorArg {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum StringsArg {
    /// The truest of these that the kernel has (-v says which, and why)
    Auto,
    /// A return probe of rtrace's own, where the kernel copies names (needs kprobes): whole names
    Getname,
    /// The event probe:vfs_getname, if somebody made it (perf probe does)
    VfsGetname,
    /// What the syscalls: events bring along from Linux 6.19 on: cut, and with dots for what is unprintable
    Events,
    /// An event probe of rtrace's own that reads them when calls return (needs eprobes, synthetic events and histograms): whole names
    Eprobe,
    /// Addresses
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineArg {
    /// bpf where the kernel takes it, otherwise tracepoint (-v says why)
    Auto,
    /// Kernel tracepoints through perf_event_open
    Tracepoint,
    /// BPF programs: arguments' memory too, one record a call
    Bpf,
}
