//! The command line of strace, under the name strace and as `rtrace strace`: translates it to rtrace's own options and
//! to what only lines of strace have ([`Lines`]).
//!
//! Options that cannot change what is printed, because they say how strace stops the program, are accepted. Other
//! options that rtrace does not have are refused with a sentence.

use crate::beauty::{lookup, signal};
use crate::request::select::GROUPS;
use crate::show::strace::{InHex, Lines, Pids, SortBy, Stamps};
use crate::text::glob;
use clap::{ArgAction, Parser};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The options of strace that rtrace understands.
#[derive(Debug, Parser)]
#[command(name = "strace", disable_help_flag = true, disable_version_flag = true, infer_long_args = true, args_override_self = true)]
struct Options {
    #[arg(short = 'f', long = "follow-forks", action = ArgAction::Count)]
    follow: u8,
    #[arg(long)]
    output_separately: bool,
    #[arg(short, long, value_name = "FILE")]
    output: Option<OsString>,
    #[arg(short = 'p', long = "attach", action = ArgAction::Append)]
    attach: Vec<String>,
    #[arg(short = 'e', long = "expr", action = ArgAction::Append)]
    expression: Vec<String>,
    #[arg(long)]
    trace: Option<String>,
    #[arg(long)]
    signal: Option<String>,
    #[arg(long)]
    status: Option<String>,
    #[arg(short = 'P', long, action = ArgAction::Append)]
    trace_path: Vec<OsString>,
    #[arg(short = 'c', long = "summary-only")]
    summary_only: bool,
    #[arg(short = 'C', long)]
    summary: bool,
    #[arg(short = 'S', long)]
    summary_sort_by: Option<String>,
    #[arg(short = 'w', long)]
    summary_wall_clock: bool,
    #[arg(short = 's', long)]
    string_limit: Option<usize>,
    #[arg(short = 'a', long)]
    columns: Option<usize>,
    #[arg(short = 'v', long = "no-abbrev", action = ArgAction::Count)]
    verbose: u8,
    #[arg(short = 't', action = ArgAction::Count)]
    stamps: u8,
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "s")]
    absolute_timestamps: Option<String>,
    #[arg(short = 'r', long = "relative-timestamps", action = ArgAction::Count)]
    relative: u8,
    #[arg(short = 'T', long = "syscall-times", action = ArgAction::Count)]
    durations: u8,
    #[arg(short = 'x', action = ArgAction::Count)]
    hex: u8,
    #[arg(short = 'y', action = ArgAction::Count)]
    files: u8,
    #[arg(short = 'Y')]
    comms: bool,
    #[arg(short = 'n', long = "syscall-number")]
    numbers: bool,
    #[arg(long)]
    syscall_limit: Option<u64>,
    #[arg(short = 'A', long = "output-append-mode")]
    append: bool,
    #[arg(short = 'q', action = ArgAction::Count)]
    quiet: u8,
    #[arg(short = 'z', long)]
    successful_only: bool,
    #[arg(short = 'Z', long)]
    failed_only: bool,
    #[arg(short = 'E', long, action = ArgAction::Append)]
    env: Vec<OsString>,
    #[arg(short = 'u', long)]
    user: Option<OsString>,
    #[arg(long)]
    always_show_pid: bool,
    /// What only says how strace stops the program.
    #[arg(short = 'D', long = "daemonize", action = ArgAction::Count)]
    daemonize: u8,
    #[arg(short = 'I', long)]
    interruptible: Option<String>,
    #[arg(long)]
    seccomp_bpf: bool,
    #[arg(long)]
    kill_on_exit: bool,
    #[arg(short = 'h', long)]
    help: bool,
    #[arg(short = 'V', long)]
    version: bool,
    #[arg(long)]
    engine: Option<OsString>,
    #[arg(long)]
    lossless: bool,
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// The translation of a command line.
#[derive(Debug, Default)]
pub struct Translated {
    /// The words of rtrace's own command line, without the program's name.
    pub words: Vec<OsString>,
    /// How lines are printed.
    pub lines: Lines,
}

/// Why there is no translation.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The user asked for this text.
    Text(String),
    /// The message after `strace: `.
    Wrong(String),
}

/// Translates the words after the program's name.
///
/// # Errors
/// Help or the version was asked for, or something is wrong or not supported.
pub fn translate(words: &[OsString]) -> Result<Translated, Refused> {
    let argv = std::iter::once(OsString::from("strace")).chain(words.iter().cloned());
    let options = Options::try_parse_from(argv).map_err(|error| Refused::Wrong(usage(&error)))?;
    if options.help {
        return Err(Refused::Text(HELP.to_owned()));
    }
    if options.version {
        return Err(Refused::Text(format!("strace -- rtrace {}\n", env!("CARGO_PKG_VERSION"))));
    }
    if options.command.is_empty() && options.attach.is_empty() {
        return Err(Refused::Wrong("must have PROG [ARGS] or -p PID\nTry 'strace -h' for more information.".to_owned()));
    }
    let expressions = expressions(&options)?;
    let mut translated = Translated { lines: lines(&options, &expressions)?, ..Translated::default() };
    let mut add = |words: &[&OsString]| translated.words.extend(words.iter().map(|word| (*word).clone()));
    let word = |text: &str| OsString::from(text);
    add(&[&word("--no-config"), &word("--style=strace")]);
    if options.follow == 0 && options.attach.is_empty() {
        add(&[&word("--no-inherit")]);
    }
    if options.output_separately || options.follow > 1 {
        add(&[&word("--output-separately")]);
    }
    options.output.iter().for_each(|file| add(&[&word("-o"), &output(file, options.append)]));
    options.syscall_limit.iter().for_each(|limit| add(&[&word("--max-events"), &word(&limit.to_string())]));
    for pids in &options.attach {
        add(&[&word("-p"), &word(&pids.split([' ', '\n', '\t']).filter(|pid| !pid.is_empty()).collect::<Vec<_>>().join(","))]);
    }
    options.trace_path.iter().for_each(|path| add(&[&word("--path"), path]));
    options.string_limit.iter().for_each(|limit| add(&[&word("--string-limit"), &word(&limit.to_string())]));
    if options.verbose > 0 {
        add(&[&word("--full")]);
    }
    match (options.summary_only, options.summary) {
        (true, true) => return Err(Refused::Wrong("-c/--summary-only and -C/--summary are mutually exclusive".to_owned())),
        (true, false) => add(&[&word("-s")]),
        (false, true) => add(&[&word("-S")]),
        (false, false) => {}
    }
    options.env.iter().for_each(|variable| add(&[&word("--env"), variable]));
    options.user.iter().for_each(|user| add(&[&word("--run-as"), user]));
    options.engine.iter().for_each(|engine| add(&[&word("--engine"), engine]));
    if options.lossless {
        add(&[&word("--lossless")]);
    }
    expressions.words.iter().for_each(|more| add(&[more]));
    add(&[&word("--")]);
    translated.words.extend(options.command);
    Ok(translated)
}

/// Returns where the output goes. rtrace does not append to files, but a command may.
fn output(file: &OsString, append: bool) -> OsString {
    if !append || file.as_bytes().starts_with(b"|") {
        return file.clone();
    }
    let quoted = file.as_bytes().iter().flat_map(|byte| if *byte == b'\'' { b"'\\''".to_vec() } else { vec![*byte] });
    OsString::from_vec(b"|cat >>'".iter().copied().chain(quoted).chain(*b"'").collect())
}

/// Returns how lines are printed.
fn lines(options: &Options, expressions: &Expressions) -> Result<Lines, Refused> {
    let stamps = match (options.stamps, options.absolute_timestamps.as_deref()) {
        (0, None) => Stamps::None,
        (1, None) | (_, Some("s" | "time")) => Stamps::Seconds,
        (2, None) | (_, Some("us")) => Stamps::Microseconds,
        (_, None) | (_, Some("unix,us")) => Stamps::Unix,
        (_, Some(other)) => {
            return Err(Refused::Wrong(format!("the format {other} of --absolute-timestamps is not supported: use s or us")));
        }
    };
    let is_file = options.output.is_some();
    let pids = match (options.follow, is_file) {
        _ if options.always_show_pid => Pids::Column,
        (1, true) => Pids::Column,
        (1.., false) => Pids::Brackets,
        _ => Pids::Never,
    };
    let hex = [InHex::Never, InHex::NotAscii, InHex::Always][usize::from(options.hex.min(2))];
    Ok(Lines {
        stamps,
        pids,
        hex,
        relative: options.relative > 0,
        durations: options.durations > 0,
        files: options.files > 0,
        addresses: options.files > 1,
        numbers: options.numbers,
        comms: options.comms,
        attached: options.follow == 1 && !is_file && options.quiet == 0 && !expressions.hides_attached,
        ends: options.quiet < 2 && !expressions.hides_ends,
        signals: expressions.signals,
        column: options.columns.unwrap_or(40),
        sort_by: match options.summary_sort_by.as_deref() {
            None | Some("time" | "time-total" | "total-time") => SortBy::Time,
            Some("calls" | "count") => SortBy::Calls,
            Some("errors" | "error") => SortBy::Errors,
            Some("name" | "syscall" | "syscall-name") => SortBy::Name,
            Some("none" | "nothing") => SortBy::Nothing,
            Some(other) => return Err(Refused::Wrong(format!("invalid sortby: '{other}'"))),
        },
    })
}

/// What `-e` and its long forms say.
#[derive(Debug, Default)]
struct Expressions {
    /// Words of rtrace's own command line.
    words: Vec<OsString>,
    /// The signals that are shown, as bits.
    signals: u128,
    hides_attached: bool,
    hides_ends: bool,
}

/// Translates what `-e`, `-z`, `-Z`, `--trace`, `--signal` and `--status` say.
fn expressions(options: &Options) -> Result<Expressions, Refused> {
    let mut expressions = Expressions { signals: u128::MAX, ..Expressions::default() };
    let mut words = Vec::new();
    let long = [("trace", &options.trace), ("signal", &options.signal), ("status", &options.status)];
    let long = long.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let (mut traced, mut status) = (None, None);
    for expression in options.expression.iter().cloned().chain(long) {
        let (name, value) = expression.split_once('=').unwrap_or(("trace", &expression));
        match name {
            "trace" | "t" => traced = Some(value.to_owned()),
            "signal" | "signals" | "s" => expressions.signals = signals(value)?,
            "quiet" | "silent" | "silence" | "q" => quiet(value, &mut expressions)?,
            "status" => status = Some(value.to_owned()),
            "abbrev" | "a" if value == "none" => words.push("--full".into()),
            "verbose" | "v" | "abbrev" | "a" if value == "all" => {}
            "abbrev" | "a" | "verbose" | "v" | "raw" | "x" | "read" | "reads" | "r" | "write" | "writes" | "w" | "fault" | "inject"
            | "kvm" | "decode-fds" | "decode-fd" | "decode-pids" | "decode-pid" | "trace-fds" | "trace-fd" | "namespace" => {
                return Err(Refused::Wrong(format!("-e {expression} is not supported yet (rtrace has no such option)")));
            }
            _ => traced = Some(expression.clone()),
        }
    }
    let status = match (options.successful_only, options.failed_only) {
        (true, _) => Some("successful".to_owned()),
        (_, true) => Some("failed".to_owned()),
        _ => status,
    };
    match status.as_deref() {
        None | Some("all") => {}
        Some("failed" | "!successful") => words.push("--failure".into()),
        Some("successful" | "!failed") => words.extend(["--filter", "ret >= 0"].map(OsString::from)),
        Some(other) => return Err(Refused::Wrong(format!("--status={other} is not supported yet: use successful or failed"))),
    }
    if let Some(traced) = traced {
        words.extend(selection(&traced)?);
    }
    Ok(Expressions { words, ..expressions })
}

/// Returns the signals of a set, as bits.
fn signals(set: &str) -> Result<u128, Refused> {
    let (is_negated, list) = set.strip_prefix('!').map_or((false, set), |list| (true, list));
    let bits = match list {
        "all" => u128::MAX,
        "none" => 0,
        _ => list.split(',').try_fold(0, |bits, name| {
            let number = name.parse().ok().or_else(|| signal::number(&name.to_uppercase())).filter(|number| (1..128).contains(number));
            number.map(|number| bits | 1 << number).ok_or_else(|| Refused::Wrong(format!("invalid signal '{name}'")))
        })?,
    };
    Ok(if is_negated { !bits } else { bits })
}

/// Applies a set of kinds of lines that are not printed.
fn quiet(set: &str, expressions: &mut Expressions) -> Result<(), Refused> {
    for word in set.split(',') {
        match word {
            "attach" => expressions.hides_attached = true,
            "exit" | "exits" => expressions.hides_ends = true,
            "all" => (expressions.hides_attached, expressions.hides_ends) = (true, true),
            "none" => (expressions.hides_attached, expressions.hides_ends) = (false, false),
            // rtrace never prints these.
            "path-resolution" | "path-resolve" | "personality" | "thread-execve" | "superseded" => {}
            other => return Err(Refused::Wrong(format!("invalid quiet keyword '{other}'"))),
        }
    }
    Ok(())
}

/// Translates a set of system calls.
fn selection(set: &str) -> Result<Vec<OsString>, Refused> {
    let (is_negated, list) = set.strip_prefix('!').map_or((false, set), |list| (true, list));
    match (list, is_negated) {
        ("all", false) | ("none", true) => return Ok(Vec::new()),
        ("none", false) | ("all", true) => return Ok(nothing()),
        _ => {}
    }
    let items: Vec<Option<String>> = list.split(',').map(item).collect::<Result<_, _>>()?;
    let sign = if is_negated { "!" } else { "" };
    let items: Vec<String> = items.into_iter().flatten().map(|item| format!("{sign}{item}")).collect();
    Ok(if items.is_empty() { nothing() } else { vec!["-e".into(), items.join(",").into()] })
}

/// No system calls. Signals are shown nevertheless.
fn nothing() -> Vec<OsString> {
    ["--no-syscalls", "--signals"].map(OsString::from).to_vec()
}

/// Translates an item of a set; `None` for a name after `?` that does not exist.
fn item(item: &str) -> Result<Option<String>, Refused> {
    let (is_optional, name) = item.strip_prefix('?').map_or((false, item), |name| (true, name));
    let unknown = || Refused::Wrong(format!("invalid system call '{name}'"));
    if let Some(expression) = name.strip_prefix('/') {
        return Ok(Some(format!("/{}/", expression.strip_suffix('/').unwrap_or(expression))));
    }
    let group = name.strip_prefix('%').unwrap_or(name);
    // Without the percent sign, these are the names that strace had first.
    const PLAIN: [&str; 8] = ["file", "process", "network", "signal", "ipc", "desc", "memory", "net"];
    if GROUPS.iter().any(|(known, ..)| *known == group) && (name.starts_with('%') || PLAIN.contains(&name)) {
        return Ok(Some(format!("%{group}")));
    }
    match lookup::index_by_name(name).is_some() || glob::is_pattern(name) {
        true => Ok(Some(name.to_owned())),
        false if is_optional => Ok(None),
        false => Err(unknown()),
    }
}

/// Returns the message about a word that clap does not understand, in strace's words where it has any.
fn usage(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let hint = "\nTry 'strace -h' for more information.";
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) => match option.strip_prefix("--") {
            Some(_) => format!("unrecognized option '{option}'{hint}"),
            None => format!("invalid option -- '{}'{hint}", option.trim_start_matches('-')),
        },
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}{hint}", first.strip_prefix("error: ").unwrap_or(first))
        }
    }
}

/// Returns whether a program of this path has the name strace.
pub fn is_name(program: &OsString) -> bool {
    std::path::Path::new(program).file_name().is_some_and(|name| name.as_bytes() == b"strace")
}

const HELP: &str = "\
Usage: strace [-AcCfnqqrtttTvwxxyYzZ] [-S SORTBY] [-e EXPR] [-a COLUMN] [-o FILE] [-s STRSIZE] [-P PATH]... [-u USER] [-E VAR=VAL]...
              { -p PID | PROG [ARGS] }

rtrace prints the lines of strace, without stopping the program. rtrace(1) lists the options that it understands; options
of rtrace that it has besides: --engine, --lossless.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(words: &[&str]) -> Result<(String, Lines), Refused> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let Translated { words, lines } = translate(&words)?;
        let words: Vec<String> = words.iter().skip(2).map(|word| word.to_string_lossy().into_owned()).collect();
        Ok((words.join(" "), lines))
    }

    fn refused(words: &[&str]) -> String {
        match translated(words) {
            Err(Refused::Wrong(text)) => text.lines().next().unwrap_or_default().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_are_translated() {
        let (words, lines) = translated(&["-f", "-tt", "-T", "-o", "log", "-e", "trace=%file,?bogus", "make", "-j2"]).unwrap();
        assert_eq!(words, "-o log -e %file -- make -j2");
        assert_eq!((lines.pids, lines.stamps, lines.durations), (Pids::Column, Stamps::Microseconds, true));
        let (words, lines) = translated(&["-fs", "100", "-e!getpid,close", "-y", "ls"]).unwrap();
        assert_eq!((words.as_str(), lines.pids, lines.files), ("--string-limit 100 -e !getpid,!close -- ls", Pids::Brackets, true));
        assert_eq!(translated(&["-p", "1 2", "-p3", "-ff", "-o", "x"]).unwrap().0, "--output-separately -o x -p 1,2 -p 3 --");
        assert_eq!(
            translated(&["-A", "-o", "it's", "--syscall-limit=2", "ls"]).unwrap().0,
            r"--no-inherit -o |cat >>'it'\''s' --max-events 2 -- ls"
        );
        assert_eq!(translated(&["-Z", "-efile", "-D", "--seccomp-bpf", "ls"]).unwrap().0, "--no-inherit --failure -e %file -- ls");
        assert_eq!(translated(&["-e", "none", "-e", "signal=none", "ls"]).unwrap().0, "--no-inherit --no-syscalls --signals -- ls");
        let (_, lines) = translated(&["-e", "signal=!usr1,SIGCHLD", "-e", "quiet=exit", "ls"]).unwrap();
        assert_eq!((lines.signals, lines.ends), (!(1 << 10 | 1 << 17), false));
    }

    #[test]
    fn what_is_wrong_has_the_words_of_strace() {
        assert_eq!(refused(&[]), "must have PROG [ARGS] or -p PID");
        assert_eq!(refused(&["-Q", "ls"]), "invalid option -- 'Q'");
        assert_eq!(refused(&["--bogus", "ls"]), "unrecognized option '--bogus'");
        assert_eq!(refused(&["-e", "bogus", "ls"]), "invalid system call 'bogus'");
        assert_eq!(refused(&["-e", "signal=bogus", "ls"]), "invalid signal 'bogus'");
        assert!(refused(&["-e", "inject=openat:error=ENOENT", "ls"]).contains("not supported"));
    }
}
