//! The letters and words of strace's command line. Values are parsed by the other modules, so that what is wrong with
//! them is said in strace's words.

use clap::{ArgAction, Parser};
use std::ffi::OsString;

/// The options of strace that rtrace understands.
#[derive(Debug, Parser)]
#[command(name = "strace", disable_help_flag = true, disable_version_flag = true, infer_long_args = true, args_override_self = true)]
pub struct Options {
    #[arg(short = 'f', long = "follow-forks", action = ArgAction::Count)]
    pub follow: u8,
    #[arg(long)]
    pub output_separately: bool,
    #[arg(short, long)]
    pub output: Option<OsString>,
    #[arg(short = 'p', long = "attach", action = ArgAction::Append)]
    pub attach: Vec<String>,
    #[arg(short = 'e', long = "expr", action = ArgAction::Append, allow_hyphen_values = true)]
    pub expression: Vec<String>,
    #[arg(long)]
    pub trace: Option<String>,
    #[arg(long, visible_aliases = ["trace-fd"])]
    pub trace_fds: Option<String>,
    #[arg(long, visible_aliases = ["signals"])]
    pub signal: Option<String>,
    #[arg(long)]
    pub status: Option<String>,
    #[arg(long, action = ArgAction::Append)]
    pub inject: Vec<String>,
    #[arg(long, action = ArgAction::Append)]
    pub fault: Vec<String>,
    #[arg(long)]
    pub abbrev: Option<String>,
    #[arg(long)]
    pub verbose: Option<String>,
    #[arg(long)]
    pub raw: Option<String>,
    #[arg(long, visible_aliases = ["reads"])]
    pub read: Option<String>,
    #[arg(long, visible_aliases = ["writes"])]
    pub write: Option<String>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "attach,personality", visible_aliases = ["silent", "silence"])]
    pub quiet: Option<String>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "path")]
    pub decode_fds: Option<String>,
    #[arg(long)]
    pub decode_pids: Option<String>,
    #[arg(short = 'P', long, action = ArgAction::Append)]
    pub trace_path: Vec<OsString>,
    #[arg(short = 'c', long = "summary-only")]
    pub summary_only: bool,
    #[arg(short = 'C', long)]
    pub summary: bool,
    #[arg(short = 'S', long)]
    pub summary_sort_by: Option<String>,
    #[arg(short = 'U', long)]
    pub summary_columns: Option<String>,
    #[arg(short = 'O', long)]
    pub summary_syscall_overhead: Option<String>,
    #[arg(short = 'w', long)]
    pub summary_wall_clock: bool,
    #[arg(short = 's', long, allow_hyphen_values = true)]
    pub string_limit: Option<String>,
    #[arg(short = 'a', long, allow_hyphen_values = true)]
    pub columns: Option<String>,
    #[arg(short = 'v', long = "no-abbrev", action = ArgAction::Count)]
    pub whole: u8,
    #[arg(short = 't', action = ArgAction::Count)]
    pub stamps: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "time")]
    pub absolute_timestamps: Option<String>,
    #[arg(short = 'r', action = ArgAction::Count)]
    pub relative: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "us")]
    pub relative_timestamps: Option<String>,
    #[arg(short = 'T', action = ArgAction::Count)]
    pub durations: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "us")]
    pub syscall_times: Option<String>,
    #[arg(short = 'x', action = ArgAction::Count)]
    pub hex: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub strings_in_hex: Option<String>,
    #[arg(short = 'X', long)]
    pub const_print_style: Option<String>,
    #[arg(short = 'y', action = ArgAction::Count)]
    pub files: u8,
    #[arg(short = 'Y')]
    pub comms: bool,
    #[arg(short = 'n', long = "syscall-number")]
    pub numbers: bool,
    #[arg(short = 'N', long = "arg-names")]
    pub names: bool,
    #[arg(short = 'i', long)]
    pub instruction_pointer: bool,
    #[arg(short = 'k', action = ArgAction::Count)]
    pub stacks: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "symbol", visible_aliases = ["stack-traces"])]
    pub stack_trace: Option<String>,
    #[arg(long)]
    pub stack_trace_frame_limit: Option<String>,
    #[arg(long)]
    pub syscall_limit: Option<String>,
    #[arg(short = 'A', long = "output-append-mode")]
    pub append: bool,
    #[arg(short = 'q', action = ArgAction::Count)]
    pub quieter: u8,
    #[arg(short = 'z', long)]
    pub successful_only: bool,
    #[arg(short = 'Z', long)]
    pub failed_only: bool,
    #[arg(short = 'E', long, action = ArgAction::Append)]
    pub env: Vec<OsString>,
    #[arg(short = 'u', long)]
    pub user: Option<OsString>,
    #[arg(long)]
    pub argv0: Option<OsString>,
    #[arg(long)]
    pub always_show_pid: bool,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    pub color: Option<String>,
    /// What only says how strace stops the program.
    #[arg(short = 'D', action = ArgAction::Count)]
    pub daemonize: u8,
    #[arg(long = "daemonize", num_args = 0..=1, require_equals = true, default_missing_value = "grandchild")]
    pub daemonize_as: Option<String>,
    #[arg(short = 'I', long)]
    pub interruptible: Option<String>,
    #[arg(long)]
    pub seccomp_bpf: bool,
    #[arg(long)]
    pub kill_on_exit: bool,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub tips: Option<String>,
    /// What rtrace cannot do.
    #[arg(short = 'b', long)]
    pub detach_on: Option<String>,
    #[arg(short = 'h', long)]
    pub help: bool,
    #[arg(short = 'V', long)]
    pub version: bool,
    #[arg(long)]
    pub engine: Option<OsString>,
    #[arg(trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// Returns the message about words that clap does not understand, in strace's words.
pub fn usage(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.as_str(),
        _ => "",
    };
    match error.kind() {
        ErrorKind::UnknownArgument => match option.strip_prefix("--") {
            Some(_) => format!("unrecognized option '{option}'"),
            None => format!("invalid option -- '{}'", option.trim_start_matches('-')),
        },
        // clap names all spellings of the option: `--expr <EXPRESSION>`.
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues => {
            let long = option.split([' ', '=']).next().unwrap_or_default();
            match letter(long) {
                Some(letter) => format!("option requires an argument -- '{letter}'"),
                None => format!("option '{long}' requires an argument"),
            }
        }
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    }
}

/// Returns the letter of an option that has a long form, too.
fn letter(long: &str) -> Option<char> {
    use clap::CommandFactory;
    let name = long.strip_prefix("--")?;
    Options::command().get_arguments().find(|option| option.get_long() == Some(name))?.get_short()
}
