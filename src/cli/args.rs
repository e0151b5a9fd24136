//! The definitions of all options for clap: the only place that has their names, help texts and headings.
//!
//! `--help`, the man page and the completions are generated from this file. `parse` decides what the options mean
//! together.

use crate::show::{SummaryObject, Width};
use crate::text::quantity;
use clap::{Arg, ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Traces the system calls of a command, of processes or of the whole machine, and reports how many it missed.
#[derive(Debug, Parser)]
#[command(
    name = "rtrace",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true,
    args_override_self = true,
    override_usage = "rtrace [OPTIONS] [--] COMMAND [ARG]...\n       rtrace [OPTIONS] -p PID | -t TID | -u USER | -G CGROUP | -C CPUS | -a [COMMAND [ARG]...]\n       rtrace list | check | probe | completions",
    after_help = "Without a command and without a target, the whole machine is traced. With a target, COMMAND is not traced: it only sets how long.\n\
                  COMMAND begins at the first word that is not an option; `rtrace -- list` traces a program called list.\n\
                  rtrace-filter(7) describes the languages of -e and --filter, rtrace-probe(7) that of --probe, rtrace(1) everything else."
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

    /// The command to trace, or to wait for if there is a target, with its arguments
    #[arg(hide = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Returns the definition of the command line for clap.
///
/// rtrace defines `-h` and `--help` itself, as two options with different texts. That disables clap's own help option
/// in the subcommands as well, so this function adds one to each of them.
pub fn command() -> clap::Command {
    fn with_help(command: clap::Command) -> clap::Command {
        let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help");
        command.disable_help_subcommand(true).arg(help).mut_subcommands(with_help)
    }
    Cli::command().mut_subcommands(with_help)
}

#[derive(Debug, Subcommand)]
pub enum Sub {
    /// List what can be traced here: syscalls, groups, events; the arguments of a syscall, the values of a table
    #[command(override_usage = "rtrace list [syscalls|groups|events|tables] [GLOB]\n       rtrace list usdt:PROGRAM")]
    List {
        /// What to list, then a name or glob that selects from it; either may be left out
        #[arg(value_name = "KIND|GLOB", num_args = 0..=2)]
        words: Vec<String>,
        /// Print one JSON object per line, with everything that is known about each thing (rtrace-json(5))
        #[arg(long)]
        json: bool,
    },
    /// Report what this user can trace here, what is missing, and which commands enable it
    Check {
        /// Print the commands that let members of a group trace programs of their own without root
        #[arg(long)]
        setup: bool,
        /// The name of that group
        #[arg(long, value_name = "NAME", default_value = "rtrace", requires = "setup")]
        group: String,
        /// The rtrace file that the members run, if it is not this one
        #[arg(long, value_name = "FILE", requires = "setup", value_hint = clap::ValueHint::FilePath)]
        program: Option<PathBuf>,
        /// Print one JSON object per line (rtrace-json(5))
        #[arg(long, conflicts_with = "setup")]
        json: bool,
    },
    /// Add probes that stay after rtrace ends; list, show and delete them; write records of user events
    #[command(subcommand_required = true, arg_required_else_help = false)]
    Probe {
        #[command(subcommand)]
        what: ProbeSub,
    },
    /// Record calls and events in a file, which `rtrace -i FILE` shows; perf reads it too
    #[command(
        override_usage = "rtrace record [OPTIONS] [--] COMMAND [ARG]...\n       rtrace record [OPTIONS] -p PID | -t TID | -u USER | -G CGROUP | -C CPUS | -a [COMMAND [ARG]...]"
    )]
    Record(Box<RecordArgs>),
    /// Print the records of a recording, one a line, as they are in the file
    Script {
        /// The recording
        #[arg(short, long, value_name = "FILE", default_value = "rtrace.data", value_hint = clap::ValueHint::FilePath)]
        input: PathBuf,
        /// Print only the records of this part of the recording: seconds as the lines have them, times since its
        /// beginning with units (20ms), times of day or shares (10%,20%); either may be empty
        #[arg(long, value_name = "FROM,TO")]
        time: Option<String>,
    },
    /// List the events of a recording
    Evlist {
        /// The recording
        #[arg(short, long, value_name = "FILE", default_value = "rtrace.data", value_hint = clap::ValueHint::FilePath)]
        input: PathBuf,
        /// Print how each event was opened, too
        #[arg(short, long)]
        verbose: bool,
        /// Print the names of the fields of tracepoints, too
        #[arg(long)]
        trace_fields: bool,
    },
    /// Show the call paths of a recording: where its calls come from, how many there are, and how long they took
    Report(Box<ReportArgs>),
    /// Compare two recordings or JSON traces: what fails, is missing, new or slower in the second one; the status is 1
    /// if they differ
    Diff(Box<DiffArgs>),
    /// Write the calls of a recording for tools that do not know rtrace's records
    Convert {
        /// The form of the calls
        #[arg(long, value_name = "FORM")]
        to: ConvertTo,
        /// The recording
        #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        input: PathBuf,
        /// Write to FILE; an existing FILE is renamed to FILE.old
        #[arg(short, long, value_name = "FILE", default_value = "perf.data", value_hint = clap::ValueHint::FilePath)]
        output: PathBuf,
    },
    /// Print a completion script
    Completions { shell: clap_complete::Shell },
    /// Print the candidates for the last word, for the completion scripts
    #[command(name = "__complete", hide = true)]
    Complete {
        #[arg(last = true)]
        words: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ProbeSub {
    /// List this kernel's dynamic events with their owners, their numbers of hits and misses, and their definitions
    List {
        /// Names or globs of the events to list: GROUP:EVENT or EVENT
        #[arg(value_name = "EVENT")]
        events: Vec<String>,
        /// Print one JSON object per line (rtrace-json(5))
        #[arg(long)]
        json: bool,
    },
    /// Show the definition, fields, filter, triggers and histograms of an event
    Show {
        /// GROUP:EVENT, or EVENT if only one event has that name
        event: String,
    },
    /// Add probes that stay until `rtrace probe del` or the next boot, and print their names
    #[command(override_usage = "rtrace probe add SPEC\n       rtrace probe add [--force] -f FILE")]
    Add {
        /// A line of the kernel's dynamic_events, in which symbols and variables may stand for offsets and registers:
        /// 'p do_sys_openat2 filename', 'u:test u32 count'
        #[arg(required_unless_present = "file", conflicts_with = "file", allow_hyphen_values = true)]
        spec: Option<String>,
        /// Carry out all lines of FILE (- is stdin), or none if one fails: lines as in tracefs, # comments, and -: to
        /// delete
        #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Let -: in FILE delete events that others created
        #[arg(long, requires = "file")]
        force: bool,
    },
    /// Delete probes that `rtrace probe add` created
    Del {
        /// GROUP:EVENT or EVENT; each may be a glob
        #[arg(value_name = "EVENT", required = true)]
        events: Vec<String>,
        /// Also delete events that others created
        #[arg(long)]
        force: bool,
    },
    /// Write a record of a user event, as a program that has this event would
    Emit {
        /// user_events:EVENT or EVENT
        event: String,
        /// A value for each field: 'count=3 msg="two words"'; structs and other bytes in hexadecimal
        #[arg(value_name = "FIELD=VALUE", allow_hyphen_values = true)]
        values: Vec<String>,
    },
}

/// The words of `rtrace convert --to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConvertTo {
    /// Records of raw_syscalls:sys_enter and sys_exit in a perf.data file, which `perf trace -i` shows
    PerfTracepoints,
}

/// The options of `rtrace record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Record to FILE; an existing FILE is renamed to FILE.old [default: rtrace.data]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Exit with status 124 if anything was lost
    #[arg(long)]
    pub strict: bool,
    /// Lose no call: delay COMMAND while a ring buffer is nearly full
    #[arg(long)]
    pub lossless: bool,
    /// Copy at most N bytes of a string [default: 32]
    #[arg(long, value_name = "N")]
    pub string_limit: Option<usize>,
    /// Copy at most N bytes of netlink messages and of control messages [default: 4096]
    #[arg(long, value_name = "N")]
    pub struct_limit: Option<usize>,
    /// Record the call stack of each call and signal, by frame pointers (fp) or as a copy of up to SIZE bytes of the
    /// stack (dwarf)
    #[arg(long, value_name = "fp|dwarf[,SIZE]")]
    pub call_graph: Option<String>,
    /// Record the kernel's stack of each call as well
    #[arg(long)]
    pub kernel_stack: bool,
    /// Record the debug information of all programs and libraries, which `rtrace -i FILE --lines` and --inline need
    #[arg(long)]
    pub lines: bool,
    /// Compress the recording by zstd
    #[arg(short = 'z', long = "compress", value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(i32).range(1..=22))]
    pub compression: Option<i32>,
    /// Record so that `perf trace -i FILE` shows the calls: from the tracepoints of raw_syscalls, without strings
    #[arg(long)]
    pub for_perf: bool,
    /// Keep only the newest records in memory, and write them to FILE.TIME at each SIGUSR2
    #[arg(long)]
    pub snapshot: bool,
    /// Write them when a call satisfies EXPR too, which is a --filter that the kernel can evaluate (implies --snapshot)
    #[arg(long, value_name = "EXPR")]
    pub snapshot_on: Option<String>,
    /// Write at most N files because of --snapshot-on; further calls that satisfy it are counted [default: 10]
    #[arg(long, value_name = "N", requires = "snapshot_on", value_parser = clap::value_parser!(u32).range(1..))]
    pub snapshot_max: Option<u32>,
    /// Write them when the trace ends, too (implies --snapshot)
    #[arg(long)]
    pub snapshot_at_end: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub what: WhatArgs,
    #[command(flatten)]
    pub common: CommonArgs,
    /// The command to trace, or to wait for if there is a target, with its arguments
    #[arg(hide = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// The options of `rtrace diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The first recording, or a trace that --json wrote
    #[arg(value_name = "A", value_hint = clap::ValueHint::FilePath)]
    pub first: PathBuf,
    /// The second one
    #[arg(value_name = "B", value_hint = clap::ValueHint::FilePath)]
    pub second: PathBuf,
    /// Compare only what ended in this part of both: seconds since the first event, times with units (20ms), times of
    /// day or shares (10%,20%); either may be empty
    #[arg(long, alias = "time-span", value_name = "FROM,TO")]
    pub time: Option<String>,
    /// Print one JSON object per line (rtrace-json(5))
    #[arg(long)]
    pub json: bool,
    /// Print colours; auto means on a terminal
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorArg>,
    #[command(flatten)]
    pub what: Box<WhatArgs>,
}

/// The options of `rtrace report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The recording, of rtrace or of perf
    #[arg(short, long, value_name = "FILE", default_value = "rtrace.data", value_hint = clap::ValueHint::FilePath)]
    pub input: PathBuf,
    /// Show only calls that ended in this part of the recording: seconds since the first event, times with units
    /// (20ms), times of day or shares (10%,20%); either may be empty
    #[arg(long, value_name = "FROM,TO")]
    pub time: Option<String>,
    /// Order call paths by the total time of their calls, their number, their average time, or by name
    #[arg(long, value_name = "KEY", default_value = "time")]
    pub sort: SortArg,
    /// Begin paths with the syscall, and show its callers below it
    #[arg(short = 'G', long)]
    pub inverted: bool,
    /// Leave out branches of the tree whose share is smaller; a line says how many these are
    #[arg(long, value_name = "PERCENT", default_value = "0.5", value_parser = quantity::percent)]
    pub percent_limit: f64,
    /// Show at most N frames of a path: the outermost ones, or the innermost ones with --inverted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_stack: Option<u16>,
    /// Show functions that the compiler inlined as frames of their own
    #[arg(long)]
    pub inline: bool,
    /// Write the call paths with their weights to FILE as well, in the format that flame graph programs read
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub folded: Option<PathBuf>,
    /// Draw the call paths as a flame graph in FILE as well: an SVG picture
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub flamegraph: Option<PathBuf>,
    /// Print one JSON object for each call path (rtrace-json(5))
    #[arg(long)]
    pub json: bool,
    /// Write to FILE instead of stdout (an existing FILE is renamed to FILE.old)
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<OsString>,
    /// Exit with status 124 if anything was lost
    #[arg(long)]
    pub strict: bool,
    /// Print no notes on stderr
    #[arg(short, long, action = ArgAction::Count)]
    pub quiet: u8,
    /// Ignore configuration files
    #[arg(long)]
    pub no_config: bool,
    #[command(flatten)]
    pub what: WhatArgs,
}

/// The words of `rtrace report --sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortArg {
    Time,
    Count,
    Average,
    Name,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Whom to trace")]
pub struct TargetArgs {
    /// Show a recording (of `rtrace record`, --record or perf) instead of tracing
    #[arg(short = 'i', long, value_name = "FILE", value_hint = clap::ValueHint::FilePath,
          conflicts_with_all = ["all_cpus", "pid", "tid", "uid", "cgroup", "container", "cpu", "delay", "run_as", "env", "chdir", "inject"])]
    pub input: Option<PathBuf>,
    /// Trace the whole machine; a COMMAND then only sets how long
    #[arg(short = 'a', long, conflicts_with_all = ["pid", "tid", "uid"])]
    pub all_cpus: bool,
    /// Trace these running processes, and the children that they start from now on
    #[arg(short, long, value_name = "PID,...", action = ArgAction::Append, conflicts_with_all = ["tid", "uid", "cgroup", "container"])]
    pub pid: Vec<String>,
    /// Trace these running threads alone, without the threads and children that they start
    #[arg(short, long, value_name = "TID,...", action = ArgAction::Append, conflicts_with_all = ["uid", "cgroup", "container"])]
    pub tid: Vec<String>,
    /// Trace all processes of this user (a name or a number)
    #[arg(short, long, value_name = "USER", value_hint = clap::ValueHint::Username, conflicts_with_all = ["cgroup", "container"])]
    pub uid: Option<String>,
    /// Trace this cgroup (its path below the cgroup mount) and the cgroups below it
    #[arg(short = 'G', long, value_name = "CGROUP", conflicts_with = "container")]
    pub cgroup: Option<String>,
    /// Trace this container of docker, podman, containerd, CRI-O, systemd-nspawn or lxc: its ID, the beginning of its
    /// ID, or its name (POD/NAME in kubernetes)
    #[arg(long, value_name = "ID|NAME")]
    pub container: Option<String>,
    /// Trace on these CPUs only; without another target, trace everything that runs on them
    #[arg(short = 'C', long, value_name = "CPU,FIRST-LAST,...")]
    pub cpu: Option<String>,
    /// Leave out these processes or threads
    #[arg(long, value_name = "PID,...", action = ArgAction::Append)]
    pub filter_pids: Vec<String>,
    /// Do not follow children and new threads
    #[arg(long)]
    pub no_inherit: bool,
    /// Begin to trace this long after the start (a bare number is milliseconds)
    #[arg(short = 'D', long, value_name = "TIME", value_parser = quantity::duration)]
    pub delay: Option<u64>,
    /// Start COMMAND as this user, with its groups and environment; UID:GID has no other groups
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
    /// Trace these syscalls, globs (epoll_*), groups (%file), /regexes/, events (sched:*), BPF programs (file.bpf.c);
    /// ! removes an item; several -e add up
    #[arg(short = 'e', long, visible_alias = "expr", value_name = "LIST", action = ArgAction::Append)]
    pub event: Vec<String>,
    /// Create a probe for this run and trace it: a line of the kernel's dynamic_events, in which names may stand for
    /// numbers: 'p tcp_sendmsg sk size', 'r /bin/bash:readline +0($retval):string'
    #[arg(long, value_name = "SPEC", action = ArgAction::Append, allow_hyphen_values = true)]
    pub probe: Vec<String>,
    /// Show only what meets this condition; it applies to the -e or --probe before it, or to everything if there is
    /// none: 'ret < 0 && filename ~ "/etc/*"'
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true)]
    pub filter: Vec<String>,
    /// Trace syscalls as well if -e selects only events
    #[arg(long, overrides_with = "no_syscalls")]
    pub syscalls: bool,
    /// Trace no syscalls, only events and page faults
    #[arg(long, overrides_with = "syscalls")]
    pub no_syscalls: bool,
    /// Show only calls that name this path or use a descriptor that is open on it; it may be a glob ('/etc/*')
    #[arg(long, value_name = "PATH", action = ArgAction::Append, value_hint = clap::ValueHint::AnyPath)]
    pub path: Vec<OsString>,
    /// Show only calls that took at least this long (a bare number is milliseconds)
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub duration: Option<u64>,
    /// Show only calls that failed
    #[arg(long)]
    pub failure: bool,
    /// Answer, delay or disturb calls of COMMAND: openat:error=ENOENT:when=2, read:delay_enter=5ms, close:retval=0,
    /// write:signal=USR1; several --inject add up
    #[arg(long, value_name = "SET:ACTION", action = ArgAction::Append)]
    pub inject: Vec<String>,
    /// Trace page faults: all, major (maj) or minor (min)
    #[arg(short = 'F', long, value_name = "KIND")]
    pub pf: Option<FaultsArg>,
    /// Show all signals, even if only events are traced or a filter is given
    #[arg(long, overrides_with = "no_signals")]
    pub signals: bool,
    /// Show no signals
    #[arg(long, overrides_with = "signals")]
    pub no_signals: bool,
    /// Show in the summary how long each thread ran on a CPU
    #[arg(long)]
    pub sched: bool,
    /// Also trace the calls that show which file each descriptor is open on, if -e does not select them
    #[arg(long)]
    pub fd_paths: bool,
    /// Start printing at this event
    #[arg(long, value_name = "EVENT")]
    pub switch_on: Option<String>,
    /// Stop printing at this event
    #[arg(long, value_name = "EVENT")]
    pub switch_off: Option<String>,
    /// Print the events of --switch-on and --switch-off as well
    #[arg(long)]
    pub show_on_off_events: bool,
    /// End the trace after N lines; a traced command runs on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_events: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Summary")]
pub struct SummaryArgs {
    /// Print a table of counts, errors and times instead of lines
    #[arg(short, long)]
    pub summary: bool,
    /// Print lines, then the table
    #[arg(short = 'S', long)]
    pub with_summary: bool,
    /// Count each errno in the table (implies -s unless -S is given)
    #[arg(long)]
    pub errno_summary: bool,
    /// Print tables in the layout of perf trace: one for each thread, process or cgroup, or one of all calls
    #[arg(long, value_name = "MODE")]
    pub summary_mode: Option<SummaryArg>,
    /// Print a row for each syscall and each value of path, fd, peer, comm, errno, or of an argument (arg:NAME)
    #[arg(long, value_name = "WHAT")]
    pub by: Option<SummaryObject>,
    /// Draw below each row how many calls took how long, in powers of two
    #[arg(long)]
    pub histogram: bool,
    /// Print a table for each such interval, and one for the whole trace at its end (a bare number is milliseconds)
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub interval: Option<u64>,
    /// Print at most N rows of a table; 0 prints all [default: 12 with -a, otherwise all; all with --json]
    #[arg(long, value_name = "N")]
    pub max_summary: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Lines")]
pub struct LinesArgs {
    /// Print time stamps of the monotonic clock instead of milliseconds since the first event
    #[arg(short = 'T', long, overrides_with = "time_format")]
    pub time: bool,
    /// Show only what ended in this part of a recording (-i): seconds since the first event, times with units (20ms),
    /// times of day or shares (10%,20%); either may be empty. `--time FROM,TO` is the same
    #[arg(long, value_name = "FROM,TO", requires = "input")]
    pub time_span: Option<String>,
    /// Choose the format of time stamps
    #[arg(long, value_name = "FORMAT", overrides_with = "time")]
    pub time_format: Option<TimeArg>,
    /// Print thread names
    #[arg(long, overrides_with = "no_comm")]
    pub comm: bool,
    /// Do not print thread names
    #[arg(long, overrides_with = "comm")]
    pub no_comm: bool,
    /// Print the CPU of each line
    #[arg(long)]
    pub show_cpu: bool,
    /// Choose the format of lines [default: perf]
    #[arg(long, value_name = "STYLE", conflicts_with = "json")]
    pub style: Option<StyleArg>,
    /// Write one JSON object per line, as rtrace-json(5) describes [default with -o FILE.jsonl]
    #[arg(long)]
    pub json: bool,
    /// Print all arguments that are zero, even those for which nearly every caller passes zero
    #[arg(long)]
    pub show_zeros: bool,
    /// Print all members of structs and up to 32 elements of arrays, instead of those that people look for first
    #[arg(long)]
    pub full: bool,
    /// Print a call that takes long while it is still in flight, and again when it returns [default: to a terminal or a
    /// pipe]
    #[arg(long, overrides_with = "no_pending")]
    pub pending: bool,
    /// Print a call only when it returns [default: to a file]
    #[arg(long, overrides_with = "pending")]
    pub no_pending: bool,
    /// On a terminal, shorten arguments so that lines fit its width (auto) or N columns; in files and pipes, lines are
    /// never cut [default: none]
    #[arg(long, value_name = "auto|N|none")]
    pub width: Option<Width>,
    /// Print at most N bytes of a string [default: 32]
    #[arg(long, value_name = "N")]
    pub string_limit: Option<usize>,
    /// Copy at most N bytes of netlink messages and of control messages, which have to be decoded [default: 4096]
    #[arg(long, value_name = "N")]
    pub struct_limit: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Call graphs")]
pub struct GraphArgs {
    /// Print the call stack of each call, and where the task was at each signal, by frame pointers (fp) or by unwinding
    /// a copy of up to SIZE bytes of the stack (dwarf, which works with all programs)
    #[arg(long, value_name = "fp|dwarf[,SIZE]", visible_alias = "call-stack")]
    pub call_graph: Option<String>,
    /// Print at most N frames (implies --call-graph dwarf)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_stack: Option<u16>,
    /// Show only calls with at least N frames (implies --call-graph dwarf)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub min_stack: Option<u16>,
    /// Print kernel frames as well, or these alone if user frames are not asked for
    #[arg(long, visible_alias = "kernel-syscall-graph")]
    pub kernel_stack: bool,
    /// Print each frame's source file and line
    #[arg(long)]
    pub lines: bool,
    /// Print functions that the compiler inlined as frames of their own
    #[arg(long)]
    pub inline: bool,
    /// Look up function names at the end of the trace, when all debug information is available; lines are printed then
    #[arg(long)]
    pub resolve_at_end: bool,
    /// Write call paths with their weights to FILE, one per line, in the format that flame graph programs read
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub folded: Option<PathBuf>,
    /// Draw call paths with their weights as a flame graph in FILE: an SVG picture to view and search in a browser
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub flamegraph: Option<PathBuf>,
    /// Weigh call paths by the time that their calls took, or by the number of calls
    #[arg(long, value_name = "WHAT", default_value = "time")]
    pub stack_weight: WeightArg,
    /// With -s or -S: show for each syscall the N call paths that took most time [default: 5]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "5", value_parser = clap::value_parser!(u16).range(1..))]
    pub stack_summary: Option<u16>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write to FILE (an existing FILE is renamed to FILE.old); - is stdout, '|CMD' a pipe to a command
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<OsString>,
    /// Start a new FILE before it grows larger than SIZE bytes (K, M, G)
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, requires = "output", conflicts_with = "output_separately")]
    pub max_size: Option<u64>,
    /// With --max-size: keep N old files, FILE.1 (the newest) to FILE.N [default: 1]
    #[arg(long, value_name = "N", requires = "max_size", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub rotate: Option<u32>,
    /// Record the trace in FILE as well, which `rtrace -i FILE` shows (`rtrace record` only records)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "input")]
    pub record: Option<PathBuf>,
    /// Write a file for each process: FILE.PID
    #[arg(long, requires = "output")]
    pub output_separately: bool,
    /// Print colours; auto means on a terminal
    #[arg(long, value_name = "WHEN")]
    pub color: Option<ColorArg>,
    /// Exit with status 124 if anything was lost
    #[arg(long)]
    pub strict: bool,
    /// Lose no call: delay COMMAND while a ring buffer is nearly full
    #[arg(long)]
    pub lossless: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "General")]
pub struct RunArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Accepted for compatibility with strace: children are always followed
    #[arg(short = 'f', long = "follow-forks", action = ArgAction::Count, hide = true)]
    pub follow: u8,
    /// Accepted for compatibility with strace: descriptors are always decoded
    #[arg(short = 'y', action = ArgAction::Count, hide = true)]
    pub yes: u8,
    /// Accepted for compatibility with perf: events are always in order
    #[arg(long)]
    pub sort_events: bool,
    /// Accepted for compatibility with perf: rtrace always uses the cheapest mechanism
    #[arg(long, overrides_with = "no_bpf_summary")]
    pub bpf_summary: bool,
    /// Accepted for compatibility with perf
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

/// The options that `rtrace record` has as well.
#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Size of the ring buffer of each CPU, with K, M or G; a bare number is pages [default: rtrace chooses, -v prints
    /// it]
    #[arg(short, long, value_name = "PAGES|SIZE")]
    pub mmap_pages: Option<String>,
    /// Choose how the kernel is asked for calls and events
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineArg,
    /// Choose how to get path names without BPF (selects the tracepoint engine)
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub strings_by: StringsArg,
    /// Choose how calls are changed (--inject)
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub inject_by: InjectArg,
    /// Print no lines about the ends of tasks, and no notes on stderr
    #[arg(short, long, action = ArgAction::Count)]
    pub quiet: u8,
    /// Report what is traced, by which means and why, and what it costs other tasks; -vv reports more
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Ignore configuration files and RTRACE_OPTS
    #[arg(long)]
    pub no_config: bool,
}

/// The words of `--pf`: the page faults that are traced.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FaultsArg {
    All,
    Maj,
    Min,
}

/// The words of `--summary-mode` and of `summary_mode` in configuration files: what has a table of its own.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SummaryArg {
    Thread,
    Process,
    Total,
    Cgroup,
}

/// The words of `--style`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StyleArg {
    /// The lines of perf trace
    Perf,
    /// The lines of strace
    Strace,
}

/// The words of `--time-format` and of `time_format` in configuration files.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TimeArg {
    /// Milliseconds since the first event
    Relative,
    /// Milliseconds since the previous line
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

/// The words of `--stack-weight`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WeightArg {
    Time,
    Count,
}

/// The words of `--color` and of `color` in configuration files.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ColorArg {
    Auto,
    Always,
    Never,
}

/// The words of `--strings-by`: the methods of the tracepoint engine to read path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum StringsArg {
    /// The most reliable of these methods that the kernel supports (-v reports which, and why)
    Auto,
    /// A return probe of rtrace's own on the function that copies names into the kernel (needs kprobes): complete names
    Getname,
    /// The event probe:vfs_getname, if somebody has created it (perf probe does)
    VfsGetname,
    /// The copies in syscalls: events, from Linux 6.19 on: cut, and with dots for unprintable bytes
    Events,
    /// An event probe of rtrace's own that reads names when calls return (needs eprobes, synthetic events and
    /// histograms): complete names
    Eprobe,
    /// No path names: addresses
    None,
}

/// The words of `--inject-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InjectArg {
    /// override where the kernel and the actions permit it, otherwise seccomp (-v reports why)
    Auto,
    /// BPF programs that override the results of the kernel's functions (CONFIG_BPF_KPROBE_OVERRIDE): for running tasks
    /// too
    Override,
    /// A seccomp filter of the command, and a process that answers
    Seccomp,
}

/// The words of `--engine`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineArg {
    /// bpf where the kernel accepts the programs, otherwise tracepoint (-v reports why)
    Auto,
    /// Kernel tracepoints through perf_event_open
    Tracepoint,
    /// BPF programs, which also read the memory of arguments and write one record per call
    Bpf,
}
