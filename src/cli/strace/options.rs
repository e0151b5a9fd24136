//! The letters and words of strace's command line. Values are parsed by the other modules, so that what is wrong with
//! them is said in strace's words.

use clap::{ArgAction, Parser};
use std::ffi::OsString;

/// The options of strace that rtrace understands.
#[derive(Debug, Parser)]
#[command(name = "strace", disable_help_flag = true, disable_version_flag = true, infer_long_args = true, args_override_self = true)]
pub struct Options {
    #[arg(short = 'f', long = "follow-forks", action = ArgAction::Count)]
    pub(super) follow: u8,
    #[arg(long)]
    pub(super) output_separately: bool,
    #[arg(short, long)]
    pub(super) output: Option<OsString>,
    #[arg(short = 'p', long = "attach", action = ArgAction::Append)]
    pub(super) attach: Vec<String>,
    #[arg(short = 'e', long = "expr", action = ArgAction::Append, allow_hyphen_values = true)]
    pub(super) expression: Vec<String>,
    #[arg(long)]
    pub(super) trace: Option<String>,
    #[arg(long, visible_aliases = ["trace-fd"])]
    pub(super) trace_fds: Option<String>,
    #[arg(long, visible_aliases = ["signals"])]
    pub(super) signal: Option<String>,
    #[arg(long)]
    pub(super) status: Option<String>,
    #[arg(long, action = ArgAction::Append)]
    pub(super) inject: Vec<String>,
    #[arg(long, action = ArgAction::Append)]
    pub(super) fault: Vec<String>,
    #[arg(long)]
    pub(super) abbrev: Option<String>,
    #[arg(long)]
    pub(super) verbose: Option<String>,
    #[arg(long)]
    pub(super) raw: Option<String>,
    #[arg(long, visible_aliases = ["reads"])]
    pub(super) read: Option<String>,
    #[arg(long, visible_aliases = ["writes"])]
    pub(super) write: Option<String>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "attach,personality", visible_aliases = ["silent", "silence"])]
    pub(super) quiet: Option<String>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "path")]
    pub(super) decode_fds: Option<String>,
    #[arg(long)]
    pub(super) decode_pids: Option<String>,
    #[arg(short = 'P', long, action = ArgAction::Append)]
    pub(super) trace_path: Vec<OsString>,
    #[arg(short = 'c', long = "summary-only")]
    pub(super) summary_only: bool,
    #[arg(short = 'C', long)]
    pub(super) summary: bool,
    #[arg(short = 'S', long)]
    pub(super) summary_sort_by: Option<String>,
    #[arg(short = 'U', long)]
    pub(super) summary_columns: Option<String>,
    #[arg(short = 'O', long)]
    pub(super) summary_syscall_overhead: Option<String>,
    #[arg(short = 'w', long)]
    pub(super) summary_wall_clock: bool,
    #[arg(short = 's', long, allow_hyphen_values = true)]
    pub(super) string_limit: Option<String>,
    #[arg(short = 'a', long, allow_hyphen_values = true)]
    pub(super) columns: Option<String>,
    #[arg(short = 'v', long = "no-abbrev", action = ArgAction::Count)]
    pub(super) whole: u8,
    #[arg(short = 't', action = ArgAction::Count)]
    pub(super) stamps: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "time")]
    pub(super) absolute_timestamps: Option<String>,
    #[arg(short = 'r', action = ArgAction::Count)]
    pub(super) relative: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "us")]
    pub(super) relative_timestamps: Option<String>,
    #[arg(short = 'T', action = ArgAction::Count)]
    pub(super) durations: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "us")]
    pub(super) syscall_times: Option<String>,
    #[arg(short = 'x', action = ArgAction::Count)]
    pub(super) hex: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(super) strings_in_hex: Option<String>,
    #[arg(short = 'X', long)]
    pub(super) const_print_style: Option<String>,
    #[arg(short = 'y', action = ArgAction::Count)]
    pub(super) files: u8,
    #[arg(short = 'Y')]
    pub(super) comms: bool,
    #[arg(short = 'n', long = "syscall-number")]
    pub(super) numbers: bool,
    #[arg(short = 'N', long = "arg-names")]
    pub(super) names: bool,
    #[arg(short = 'i', long)]
    pub(super) instruction_pointer: bool,
    #[arg(short = 'k', action = ArgAction::Count)]
    pub(super) stacks: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "symbol", visible_aliases = ["stack-traces"])]
    pub(super) stack_trace: Option<String>,
    #[arg(long)]
    pub(super) stack_trace_frame_limit: Option<String>,
    #[arg(long)]
    pub(super) syscall_limit: Option<String>,
    #[arg(short = 'A', long = "output-append-mode")]
    pub(super) append: bool,
    #[arg(short = 'q', action = ArgAction::Count)]
    pub(super) quieter: u8,
    #[arg(short = 'z', long)]
    pub(super) successful_only: bool,
    #[arg(short = 'Z', long)]
    pub(super) failed_only: bool,
    #[arg(short = 'E', long, action = ArgAction::Append)]
    pub(super) env: Vec<OsString>,
    #[arg(short = 'u', long)]
    pub(super) user: Option<OsString>,
    #[arg(long)]
    pub(super) argv0: Option<OsString>,
    #[arg(long)]
    pub(super) always_show_pid: bool,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    pub(super) color: Option<String>,
    /// What only says how strace stops the program.
    #[arg(short = 'D', action = ArgAction::Count)]
    pub(super) daemonize: u8,
    #[arg(long = "daemonize", num_args = 0..=1, require_equals = true, default_missing_value = "grandchild")]
    pub(super) daemonize_as: Option<String>,
    #[arg(short = 'I', long)]
    pub(super) interruptible: Option<String>,
    #[arg(long)]
    pub(super) seccomp_bpf: bool,
    #[arg(long)]
    pub(super) kill_on_exit: bool,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(super) tips: Option<String>,
    /// What rtrace cannot do.
    #[arg(short = 'b', long)]
    pub(super) detach_on: Option<String>,
    #[arg(short = 'h', long)]
    pub(super) help: bool,
    #[arg(short = 'V', long)]
    pub(super) version: bool,
    #[arg(long)]
    pub(super) engine: Option<OsString>,
    #[arg(long)]
    pub(super) lossless: bool,
    #[arg(trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,
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
