//! The options of strace, as [`super::getopt`] writes them. Values are parsed by the other modules, so that what is
//! wrong with them is said in strace's words.

use clap::{ArgAction, Parser};
use std::ffi::OsString;

/// The options of strace that are no expressions of `-e`, and those that rtrace has besides.
#[derive(Debug, Parser)]
#[command(name = "strace", disable_help_flag = true, disable_version_flag = true, args_override_self = true)]
pub struct Options {
    #[arg(short = 'f', action = ArgAction::Count)]
    pub(super) follow: u8,
    #[arg(long, action = ArgAction::Count)]
    pub(super) follow_forks: u8,
    /// The old form of `-f`.
    #[arg(short = 'F', action = ArgAction::Count)]
    pub(super) old_follow: u8,
    #[arg(long)]
    pub(super) output_separately: bool,
    #[arg(short)]
    pub(super) output: Option<OsString>,
    #[arg(short = 'p', action = ArgAction::Append)]
    pub(super) attach: Vec<String>,
    #[arg(short = 'e', action = ArgAction::Append)]
    pub(super) expression: Vec<String>,
    /// How often the expressions are short for `-z`, `-Z` or their long forms.
    #[arg(short = 'z', action = ArgAction::Count)]
    pub(super) outcomes: u8,
    #[arg(short = 'P', action = ArgAction::Append)]
    pub(super) trace_path: Vec<OsString>,
    #[arg(short = 'c')]
    pub(super) summary_only: bool,
    #[arg(short = 'C')]
    pub(super) summary: bool,
    #[arg(short = 'S')]
    pub(super) summary_sort_by: Option<String>,
    #[arg(short = 'U')]
    pub(super) summary_columns: Option<String>,
    #[arg(short = 'O')]
    pub(super) summary_syscall_overhead: Option<String>,
    #[arg(short = 'w')]
    pub(super) summary_wall_clock: bool,
    #[arg(short = 's')]
    pub(super) string_limit: Option<String>,
    #[arg(short = 'a')]
    pub(super) columns: Option<String>,
    #[arg(short = 't', action = ArgAction::Count)]
    pub(super) stamps: u8,
    #[arg(long)]
    pub(super) absolute_timestamps: Option<String>,
    #[arg(short = 'r')]
    pub(super) relative: bool,
    #[arg(long)]
    pub(super) relative_timestamps: Option<String>,
    #[arg(short = 'T')]
    pub(super) durations: bool,
    #[arg(long)]
    pub(super) syscall_times: Option<String>,
    #[arg(short = 'x', action = ArgAction::Count)]
    pub(super) hex: u8,
    #[arg(long)]
    pub(super) strings_in_hex: Option<String>,
    #[arg(short = 'X')]
    pub(super) const_print_style: Option<String>,
    #[arg(short = 'y', action = ArgAction::Count)]
    pub(super) files: u8,
    #[arg(short = 'n')]
    pub(super) numbers: bool,
    #[arg(short = 'N')]
    pub(super) names: bool,
    #[arg(short)]
    pub(super) instruction_pointer: bool,
    #[arg(short = 'k', action = ArgAction::Count)]
    pub(super) stacks: u8,
    #[arg(long)]
    pub(super) stack_trace: Option<String>,
    #[arg(long)]
    pub(super) stack_trace_frame_limit: Option<String>,
    #[arg(long)]
    pub(super) syscall_limit: Option<String>,
    #[arg(short = 'A')]
    pub(super) append: bool,
    #[arg(short = 'q', action = ArgAction::Count)]
    pub(super) quieter: u8,
    #[arg(short = 'E', action = ArgAction::Append)]
    pub(super) env: Vec<OsString>,
    #[arg(short)]
    pub(super) user: Option<OsString>,
    #[arg(long)]
    pub(super) argv0: Option<OsString>,
    #[arg(long)]
    pub(super) always_show_pid: bool,
    #[arg(long)]
    pub(super) color: Option<String>,
    #[arg(short = 'b')]
    pub(super) detach_on: Option<String>,
    #[arg(short)]
    pub(super) debug: bool,
    /// What only says how strace stops the program.
    #[arg(short = 'D', action = ArgAction::Count)]
    pub(super) daemonize: u8,
    #[arg(long = "daemonize")]
    pub(super) daemonize_as: Option<String>,
    #[arg(short = 'I')]
    pub(super) interruptible: Option<String>,
    #[arg(long)]
    pub(super) seccomp_bpf: bool,
    #[arg(long)]
    pub(super) kill_on_exit: bool,
    #[arg(long)]
    pub(super) tips: Option<String>,
    #[arg(short = 'h')]
    pub(super) help: bool,
    #[arg(short = 'V', action = ArgAction::Count)]
    pub(super) version: u8,
    #[arg(long)]
    pub(super) engine: Option<OsString>,
    #[arg(long)]
    pub(super) lossless: bool,
    #[arg(last = true)]
    pub(super) command: Vec<OsString>,
}

impl Options {
    /// Returns whether new processes are traced, too.
    pub fn follows(&self) -> bool {
        self.follow > 0 || self.follow_forks > 0 || self.old_follow > 0
    }

    /// Returns whether each process has a file of its own. Without a file, strace ignores it.
    pub fn is_separate(&self) -> bool {
        (self.output_separately || self.follow > 1) && self.output.is_some()
    }

    /// Returns whether a table of calls is printed.
    pub fn has_summary(&self) -> bool {
        self.summary_only || self.summary
    }

    /// Returns the processes of `-p`, as they were written.
    pub fn pids(&self) -> impl Iterator<Item = &str> {
        self.attach.iter().flat_map(|list| list.split([' ', ',', '\n', '\t'])).filter(|pid| !pid.is_empty())
    }
}
