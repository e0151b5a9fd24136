//! The command line of strace, under the name strace and as `rtrace strace`: translates it to rtrace's own options and
//! to what only lines of strace have ([`Lines`]).
//!
//! Options that cannot change what is printed, because they say how strace stops the program, are accepted. Other
//! options that rtrace does not have are refused with a sentence.

mod calls;
mod check;
mod expressions;
mod getopt;
mod options;
mod texts;
mod values;

use crate::show::Outcomes;
use crate::show::descriptors::Descriptors;
use crate::show::strace::{CallSet, InHex, Lines, Pids, Precision, Stamps, Summary};
use clap::Parser;
use expressions::{Expressions, Quiet};
use options::Options;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The bytes that are copied of each buffer if `-e read=` or `-e write=` asks for all of them. The BPF programs copy no
/// more.
const DUMP_BYTES: usize = 4096;

/// The bytes of a string that are shown without `-s`.
const SHOWN_BYTES: usize = 32;

/// The limit of `-s` is below this one.
const LIMIT_MAX: usize = 1 << 30;

/// The frames of a stack that are shown without `--stack-trace-frame-limit`.
const FRAMES: u16 = 256;

/// The translation of a command line.
#[derive(Debug)]
pub struct Translated {
    /// The words of rtrace's own command line, without the program's name.
    pub words: Vec<OsString>,
    /// How lines are printed.
    pub lines: Lines,
    /// How the calls that are shown end.
    pub outcomes: Outcomes,
    /// The descriptors whose calls are shown; `None` if all are.
    pub descriptors: Option<Descriptors>,
    /// `--argv0`: the first argument of the program.
    pub argv0: Option<OsString>,
    /// `-A`: the output file keeps its text.
    pub appends: bool,
    /// Messages about options without effect.
    pub notices: Vec<String>,
}

/// Why there is no translation.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The user asked for this text.
    Text(String),
    /// The message after `strace: `.
    Wrong(String),
    /// A message after `strace: `, which a line about `strace -h` follows.
    Usage(String),
}

/// Translates the words after the program's name.
///
/// # Errors
/// Help or the version was asked for, or something is wrong or not supported.
pub fn translate(words: &[OsString]) -> Result<Translated, Refused> {
    let argv = std::iter::once(OsString::from("strace")).chain(getopt::read(words).map_err(Refused::Usage)?);
    let options = Options::try_parse_from(argv).map_err(|error| Refused::Usage(error.kind().to_string()))?;
    if options.help {
        return Err(Refused::Text(texts::HELP.to_owned()));
    }
    let expressions = Expressions::read(&options)?;
    check_values(&options)?;
    let lines = lines(&options, &expressions)?;
    let words = words_of(&options, &expressions)?;
    if options.version > 0 {
        return Err(Refused::Text(texts::version()));
    }
    check::check(&options, &expressions)?;
    let notices = check::notices(&options, &expressions);
    let Expressions { outcomes, descriptors, .. } = expressions;
    Ok(Translated { words, lines, outcomes, descriptors, argv0: options.argv0.clone(), appends: options.append, notices })
}

/// Checks the values that have no other effect.
fn check_values(options: &Options) -> Result<(), Refused> {
    let check = |option: &str, value: &Option<String>, known: &[&str]| match value.as_deref().filter(|value| !known.contains(value)) {
        Some(value) => Err(values::invalid(option, value)),
        None => Ok(()),
    };
    if let Some(other) = options.detach_on.as_deref().filter(|call| *call != "execve") {
        return Err(Refused::Wrong(format!("Syscall '{other}' for -b isn't supported")));
    }
    if let Some(pid) = options.pids().find(|pid| !pid.parse::<i32>().is_ok_and(|pid| pid > 0)) {
        return Err(Refused::Wrong(format!("Invalid process id: '{pid}'")));
    }
    check("-I", &options.interruptible, &["1", "2", "3", "4", "anywhere", "waiting", "never", "never_tstp"])?;
    check("--color", &options.color, &["auto", "always", "never"])?;
    check("--daemonize", &options.daemonize_as, &["grandchild", "pgroup", "pgrp", "session"])?;
    options.tips.as_deref().map_or(Ok(()), values::tips)
}

/// Returns the words of rtrace's own command line.
fn words_of(options: &Options, expressions: &Expressions) -> Result<Vec<OsString>, Refused> {
    let mut words: Vec<OsString> = vec!["--no-config".into(), "--style=strace".into()];
    let mut add = |more: &[&OsString]| words.extend(more.iter().map(|word| (*word).clone()));
    let word = |text: &str| OsString::from(text);
    if !options.follows() && options.attach.is_empty() {
        add(&[&word("--no-inherit")]);
    }
    if options.is_separate() && !options.output.as_ref().is_some_and(is_to_command) {
        add(&[&word("--output-separately")]);
    }
    options.output.iter().for_each(|file| add(&[&word("-o"), &output(file)]));
    if let Some(limit) = &options.syscall_limit {
        let number: std::num::NonZeroU64 = values::number("--syscall-limit", limit)?;
        add(&[&word("--max-events"), &word(&number.to_string())]);
    }
    let attached: Vec<&str> = options.pids().collect();
    if !attached.is_empty() {
        // Without -f, strace attaches to one thread, which has the number of its process.
        add(&[&word(if options.follows() { "-p" } else { "-t" }), &word(&attached.join(","))]);
    }
    options.trace_path.iter().for_each(|path| add(&[&word("--path"), path]));
    let dumps = !expressions.read.is_empty() || !expressions.written.is_empty();
    match string_limit(options)? {
        limit if dumps => add(&[&word("--string-limit"), &word(&limit.unwrap_or_default().max(DUMP_BYTES).to_string())]),
        Some(limit) => add(&[&word("--string-limit"), &word(&limit.to_string())]),
        None => {}
    }
    if expressions.abbreviated.is_some() {
        add(&[&word("--full")]);
    }
    if options.summary_only {
        add(&[&word("-s")]);
    }
    if options.summary {
        add(&[&word("-S")]);
    }
    match stacks(options)?.filter(|_| !options.summary_only) {
        None if options.summary_only => {}
        None if options.instruction_pointer => add(&[&word("--call-graph=fp"), &word("--max-stack=1")]),
        None => {}
        Some((limit, has_lines)) => {
            add(&[&word("--call-graph=dwarf"), &word("--max-stack"), &word(&limit.to_string())]);
            if has_lines {
                add(&[&word("--lines")]);
            }
        }
    }
    options.env.iter().for_each(|variable| add(&[&word("--env"), variable]));
    options.user.iter().for_each(|user| add(&[&word("--run-as"), user]));
    options.engine.iter().for_each(|engine| add(&[&word("--engine"), engine]));
    if options.lossless {
        add(&[&word("--lossless")]);
    }
    if options.debug {
        add(&[&word("-v")]);
    }
    expressions.injections.iter().chain(&expressions.selection).for_each(|more| add(&[more]));
    add(&[&word("--")]);
    words.extend(options.command.iter().cloned());
    Ok(words)
}

/// Returns how many frames of stacks are shown, and whether with their source lines; `None` if none are.
fn stacks(options: &Options) -> Result<Option<(u16, bool)>, Refused> {
    let limit =
        options.stack_trace_frame_limit.as_deref().map_or(Ok(FRAMES), |limit| values::number("--stack-trace-frame-limit", limit))?;
    Ok(match (options.stack_trace.as_deref(), options.stacks) {
        (None, 0) => None,
        (Some("symbol" | "symbols"), _) | (None, 1) => Some((limit, false)),
        (Some("source" | "sources"), _) | (None, _) => Some((limit, true)),
        (Some(other), _) => return Err(values::invalid("--stack-trace", other)),
    })
}

fn string_limit(options: &Options) -> Result<Option<usize>, Refused> {
    let limit = options.string_limit.as_deref().map(|limit| values::number("-s", limit)).transpose()?;
    match (limit, options.string_limit.as_deref()) {
        (Some(LIMIT_MAX..), Some(typed)) => Err(values::invalid("-s", typed)),
        _ => Ok(limit),
    }
}

/// Returns whether the output of `-o` is a command.
fn is_to_command(file: &OsString) -> bool {
    file.as_bytes().starts_with(b"|") || file.as_bytes().starts_with(b"!")
}

/// Returns where the output goes, in rtrace's words.
fn output(file: &OsString) -> OsString {
    match is_to_command(file) {
        true => OsString::from_vec([b"|", &file.as_bytes()[1..]].concat()),
        false => file.clone(),
    }
}

/// Returns how lines are printed.
fn lines(options: &Options, expressions: &Expressions) -> Result<Lines, Refused> {
    let stamps = |is_unix, precision| Some(Stamps { is_unix, precision });
    let precision = |is_default: bool, option: &'static str, value: &Option<String>| match value {
        Some(value) => values::precision(option, value).map(Some),
        None => Ok(is_default.then_some(Precision::Micros)),
    };
    let is_file = options.output.is_some();
    let has_several = options.follows() || options.pids().nth(1).is_some();
    let pids = match is_file {
        true if options.is_separate() => Pids::Never,
        _ if has_several && is_file || options.always_show_pid => Pids::Column,
        false if has_several => Pids::Brackets,
        _ => Pids::Never,
    };
    let defaults = Lines::default();
    Ok(Lines {
        stamps: match (options.absolute_timestamps.as_deref(), options.stamps) {
            (Some(value), _) => values::stamps(value)?,
            (None, 0) => None,
            (None, 1) => stamps(false, Precision::Seconds),
            (None, 2) => stamps(false, Precision::Micros),
            (None, _) => stamps(true, Precision::Micros),
        },
        relative: precision(options.relative, "--relative-timestamps", &options.relative_timestamps)?,
        durations: precision(options.durations, "--syscall-times", &options.syscall_times)?,
        pids,
        hex: match (&options.strings_in_hex, options.hex) {
            (Some(value), _) => values::in_hex(value)?,
            (None, 0) => InHex::Never,
            (None, 1) => InHex::NotAscii,
            (None, _) => InHex::Always,
        },
        constants: options.const_print_style.as_deref().map_or(Ok(defaults.constants), values::constants)?,
        string_limit: string_limit(options)?.or(Some(SHOWN_BYTES)),
        files: expressions.files,
        comms: expressions.pids.contains(expressions::Pids::COMM),
        own_pids: expressions.pids.contains(expressions::Pids::PIDNS),
        attached: options.follows() && !is_file && !expressions.quiet.contains(Quiet::ATTACH),
        detaches: options.detach_on.is_some(),
        detached: !is_file && !expressions.quiet.contains(Quiet::ATTACH),
        attaches: options.daemonize > 0 || options.daemonize_as.is_some(),
        targets: !expressions.quiet.contains(Quiet::ATTACH),
        ends: !expressions.quiet.contains(Quiet::EXIT),
        abis: !expressions.quiet.contains(Quiet::PERSONALITY) && (expressions.has_quiet || !is_file),
        superseded: !expressions.quiet.contains(Quiet::SUPERSEDED),
        signals: expressions.signals,
        calls: expressions.personalities.clone(),
        numbers: options.numbers,
        names: options.names,
        instruction_pointers: options.instruction_pointer,
        stacks: options.stacks > 0 || options.stack_trace.is_some(),
        column: options.columns.as_deref().map_or(Ok(defaults.column), |column| values::number("-a", column))?,
        abbreviated: expressions.abbreviated.clone().unwrap_or(CallSet::none()),
        dereferenced: expressions.dereferenced.clone(),
        raw: expressions.raw.clone(),
        read: expressions.read.clone(),
        written: expressions.written.clone(),
        summary: summary(options)?,
    })
}

/// Returns what the table of `-c` shows.
fn summary(options: &Options) -> Result<Summary, Refused> {
    let defaults = Summary::default();
    Ok(Summary {
        sort_by: options.summary_sort_by.as_deref().map_or(Ok(defaults.sort_by), values::sort_by)?,
        columns: options.summary_columns.as_deref().map_or(Ok(defaults.columns), values::columns)?,
        overhead: options.summary_syscall_overhead.as_deref().map_or(Ok(defaults.overhead), values::overhead)?,
    })
}

/// Returns whether a program of this path has the name strace.
pub fn is_name(program: &OsString) -> bool {
    std::path::Path::new(program).file_name().is_some_and(|name| name.as_bytes() == b"strace")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::strace::Files;

    fn translated(words: &[&str]) -> Result<(String, Lines), Refused> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let Translated { words, lines, .. } = translate(&words)?;
        let words: Vec<String> = words.iter().skip(2).map(|word| word.to_string_lossy().into_owned()).collect();
        Ok((words.join(" "), lines))
    }

    fn refused(words: &[&str]) -> String {
        match translated(words) {
            Err(Refused::Wrong(text) | Refused::Usage(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_are_translated() {
        let (words, lines) = translated(&["-f", "-tt", "-T", "-o", "log", "-e", "trace=%file,?bogus", "make", "-j2"]).unwrap();
        assert_eq!(words, "-o log -e %file -- make -j2");
        let stamps = Some(Stamps { is_unix: false, precision: Precision::Micros });
        assert_eq!((lines.pids, lines.stamps, lines.durations), (Pids::Column, stamps, Some(Precision::Micros)));
        let (words, lines) = translated(&["-fs", "100", "-e!getpid,close", "-y", "ls"]).unwrap();
        assert_eq!(
            (words.as_str(), lines.pids, lines.files),
            ("--string-limit 100 -e !/^getpid$/ -e !/^close$/ -- ls", Pids::Brackets, Files::PATH)
        );
        assert_eq!(translated(&["-p", "1 2", "-p3", "-ff", "-o", "x"]).unwrap().0, "--output-separately -o x -p 1,2,3 --");
        assert_eq!(translated(&["-A", "-o", "it's", "--syscall-limit=2", "ls"]).unwrap().0, "--no-inherit -o it's --max-events 2 -- ls");
        assert_eq!(translated(&["-efile", "-D", "--seccomp-bpf", "ls"]).unwrap().0, "--no-inherit -e %file -- ls");
        assert_eq!(translated(&["-e", "none", "-e", "signal=none", "ls"]).unwrap().0, "--no-inherit --no-syscalls --signals -- ls");
        let changes = |expression: &str| translated(&["-e", expression, "ls"]).unwrap().0;
        let first = "--no-inherit --inject /^openat$/,%net:error=ENOENT:when=2+ -- ls";
        assert_eq!(changes("inject=openat,%net:error=ENOENT:when=2+"), first);
        assert_eq!(changes("inject=!close:delay_enter=3"), "--no-inherit --inject !/^close$/:delay_enter=3 -- ls");
        assert_eq!(changes("fault=all:when=3"), "--no-inherit --inject all:error=ENOSYS:when=3 -- ls");
        assert_eq!(changes("fault=/^open"), "--no-inherit --inject /^open/:error=ENOSYS -- ls");
        assert_eq!(changes("fault=?bogus"), "--no-inherit -- ls");
        assert_eq!(
            translated(&["--fault=close", "--inject=open:retval=3", "ls"]).unwrap().0,
            "--no-inherit --inject /^close$/:error=ENOSYS --inject /^open$/:retval=3 -- ls"
        );
        let (_, lines) = translated(&["-e", "signal=!usr1,SIGCHLD", "-e", "quiet=exit", "ls"]).unwrap();
        assert_eq!((lines.signals, lines.ends), (!(1 << 10 | 1 << 17), false));
    }

    #[test]
    fn what_is_wrong_has_the_words_of_strace() {
        assert_eq!(refused(&[]), "must have PROG [ARGS] or -p PID");
        assert_eq!(refused(&["-Q", "ls"]), "invalid option -- 'Q'");
        assert_eq!(refused(&["-q", "--quiet=exit", "ls"]), "-q and -e quiet/--quiet cannot be provided simultaneously");
        assert_eq!(refused(&["-b", "fork", "ls"]), "Syscall 'fork' for -b isn't supported");
        assert_eq!(refused(&["-p", "0"]), "Invalid process id: '0'");
        assert_eq!(refused(&["-e", "bogus", "ls"]), "invalid system call 'bogus'");
        assert_eq!(refused(&["-e", "signal=bogus", "ls"]), "invalid signal 'bogus'");
        assert_eq!(
            refused(&["-e", "inject=openat:bogus=1", "ls"]),
            "invalid inject argument 'openat:bogus=1': bogus=1: an action is error=, retval=, signal=, delay_enter= or when="
        );
        assert!(refused(&["-e", "inject=openat", "ls"]).starts_with("invalid inject argument 'openat': "));
        assert!(refused(&["-e", "fault=openat:retval=1", "ls"]).starts_with("invalid fault argument 'openat:retval=1': "));
        assert!(refused(&["-e", "inject=openat:delay_exit=1", "ls"]).contains("only before (delay_enter=)"));
        assert_eq!(refused(&["-e", "inject=bogus:error=1", "ls"]), "invalid system call 'bogus'");
    }
}
