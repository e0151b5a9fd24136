//! Parses argv, the environment and the configuration files into a [`Request`].
//!
//! RTRACE_OPTS overrides the configuration files, and the command line overrides both. The parser reads no other files:
//! whether a process, a user or an event exists is checked when the plan is made.

mod graphs;
mod probe;
mod recording;
mod show;
mod target;
mod time_span;
mod usage;
mod what;

use super::args::{self, Cli, ConvertTo, Sub};
use super::config::Config;
use super::habits;
use super::short_help::SHORT_HELP;
use super::strace;
use super::words;
use crate::request::{
    self, AnswerFormat, Conversion, EventSelection, EventsOf, Item, Listing, Request, Selector, Setup, Target, TimeSpan, Trace,
};
use crate::show::{Style, TimeFormat};
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use recording::{with_selection, words_of_diff};

/// The reason why parsing ended without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user asked for this text (help, version). It belongs on stdout, and rtrace exits with 0.
    Text(String),
    /// The command line is wrong. This message belongs on stderr, after `rtrace: `.
    Wrong(String),
    /// A command line of strace is wrong. This message belongs on stderr, after `strace: `.
    WrongForStrace(String),
    /// The same, and a line follows that names `strace -h`.
    WrongUsageOfStrace(String),
}

/// The environment variables and files that the request depends on, beside argv.
pub struct Surroundings<'a> {
    /// Returns an environment variable.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
    /// Returns the text of a file; `None` if it does not exist.
    pub read: &'a dyn Fn(&Path) -> std::io::Result<Option<String>>,
    /// The size of a page of memory, in bytes.
    pub page_bytes: u64,
}

/// Returns what the user asks for. `argv` begins with the program's name.
///
/// # Errors
/// Help or the version was asked for, or something is wrong with the command line, RTRACE_OPTS or a configuration file.
pub fn request(argv: &[OsString], around: &Surroundings) -> Result<Request, Stop> {
    let typed = argv.get(1..).unwrap_or_default();
    match typed.split_first() {
        _ if argv.first().is_some_and(strace::is_name) => return request_of_strace(typed, around),
        Some((first, words)) if first == "strace" => return request_of_strace(words, around),
        _ => {}
    }
    if let Some(answer) = habits::answer(typed) {
        return Err(wrong(answer));
    }
    let without_environment = matches(typed)?;
    if without_environment.get_flag("short_help") {
        return Err(Stop::Text(format!("{SHORT_HELP}\n")));
    }
    if let Some(subcommand) = cli(&without_environment)?.subcommand {
        refuse_options_before(&without_environment)?;
        return match (subcommand, without_environment.subcommand()) {
            (Sub::Record(args), Some((_, matches))) => recording::record(*args, matches, around),
            (Sub::Report(args), Some((_, matches))) => recording::report(*args, matches, &report_words(typed), around),
            (Sub::Diff(args), Some((_, matches))) => recording::diff(*args, matches, around),
            (subcommand, _) => request_of_subcommand(subcommand),
        };
    }
    let no_config = without_environment.get_flag("no_config");
    let config = if no_config { Config::default() } else { read_config(around)? };
    let options = if no_config { Vec::new() } else { options_of_environment(around)? };
    let words = [&options, typed].concat();
    let matches = if options.is_empty() { without_environment } else { matches(&words)? };
    let cli = cli(&matches)?;
    if cli.target.input.is_some() {
        return recording::replay(cli, &matches, &words, &config, around);
    }
    trace(cli, &matches, &config, around).map(|trace| Request::Trace(Box::new(trace)))
}

fn request_of_subcommand(subcommand: Sub) -> Result<Request, Stop> {
    match subcommand {
        Sub::List { words, json } => list(&words, answer_format(json)),
        Sub::Check { setup: false, json, .. } => Ok(Request::Check(answer_format(json))),
        Sub::Check { group, program, .. } => setup(group, program),
        Sub::Probe { what } => Ok(Request::Probe(probe::probing(what))),
        Sub::Script { input, time } => {
            let span = time.map(|text| span(&text, TimeFormat::Monotonic)).transpose()?;
            Ok(Request::Script { recording: input, span })
        }
        Sub::Evlist { input, verbose, trace_fields } => {
            Ok(Request::EventList { recording: input, what: EventsOf { attributes: verbose, fields: trace_fields } })
        }
        Sub::Convert { to: ConvertTo::PerfTracepoints, input, output } => Ok(Request::Convert(Conversion { input, output })),
        Sub::Completions { shell } => Ok(Request::Completions(shell)),
        Sub::Complete { words } => Ok(Request::Complete(words)),
        // The caller has the words.
        Sub::Record(_) | Sub::Report(_) | Sub::Diff(_) => Err(wrong("the options of the command are missing")),
    }
}

/// Checks the name of the group. It must be well-formed, because it is written into a script that root runs.
fn setup(group: String, program: Option<PathBuf>) -> Result<Request, Stop> {
    let begins = group.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let is_plain = |other: char| other.is_ascii_lowercase() || other.is_ascii_digit() || "_-".contains(other);
    match begins && group.len() <= 32 && group.chars().all(is_plain) {
        true => Ok(Request::Setup(Setup { group, program })),
        false => Err(wrong(format!(
            "--group {}: a group name begins with a lowercase letter or _, has only these, digits and -, and at most 32 characters",
            group.escape_debug()
        ))),
    }
}

fn wrong(text: impl Into<String>) -> Stop {
    Stop::Wrong(text.into())
}

fn span(text: &str, format: TimeFormat) -> Result<TimeSpan, Stop> {
    TimeSpan::parse(text, format).map_err(|why| wrong(format!("--time: {why}")))
}

/// Returns the options of a command line.
fn cli(matches: &ArgMatches) -> Result<Cli, Stop> {
    Cli::from_arg_matches(matches).map_err(|error| usage::refused(&error, &[]))
}

fn matches(words: &[OsString]) -> Result<ArgMatches, Stop> {
    let argv = std::iter::once(OsString::from("rtrace")).chain(time_span::spelled_out(words));
    args::command().try_get_matches_from(argv).map_err(|error| usage::refused(&error, words))
}

/// Returns what a command line of strace asks for.
fn request_of_strace(words: &[OsString], around: &Surroundings) -> Result<Request, Stop> {
    let translated = strace::translate(words).map_err(|refused| match refused {
        strace::Refused::Text(text) => Stop::Text(text),
        strace::Refused::Wrong(text) => Stop::WrongForStrace(text),
        strace::Refused::Usage(text) => Stop::WrongUsageOfStrace(text),
    })?;
    let matches = matches(&translated.words)?;
    let cli = cli(&matches)?;
    let mut trace = trace(cli, &matches, &Config::default(), around)?;
    trace.show.strace = translated.lines;
    trace.show.outcomes = translated.outcomes;
    trace.show.descriptors = translated.descriptors;
    trace.notices.extend(translated.notices);
    trace.notices.extend(trace.what.injections.iter().filter_map(|injection| injection.effect.warning()).collect::<Vec<_>>());
    trace.run.as_strace = true;
    trace.output.to = match trace.output.to {
        request::Sink::File(path) if translated.appends => request::Sink::Append(path),
        to => to,
    };
    if let Target::Command(command) = &mut trace.target {
        command.argv0 = translated.argv0;
    }
    Ok(Request::Trace(Box::new(trace)))
}

/// Refuses options before a subcommand. They are options for tracing, so the user probably means a program of that
/// name.
fn refuse_options_before(matches: &ArgMatches) -> Result<(), Stop> {
    let command = args::command();
    let is_typed = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine) && id.as_str() != "no_config";
    match (matches.subcommand_name(), command.get_arguments().map(|arg| arg.get_id()).find(is_typed)) {
        (Some(name), Some(_)) => Err(wrong(format!(
            "`rtrace {name}` does not accept the options before it; to trace a program called {name}, put -- before its name"
        ))),
        _ => Ok(()),
    }
}

/// Returns the words of `rtrace report` with `--no-config` behind the name, the only option that may precede it.
fn report_words(typed: &[OsString]) -> Vec<OsString> {
    let (Some(name), before) = (typed.iter().find(|word| *word == recording::REPORT), "--no-config") else { return typed.to_vec() };
    let own = typed.iter().skip_while(|word| *word != recording::REPORT).skip(1);
    let is_before = typed.iter().take_while(|word| *word != recording::REPORT).any(|word| word == before);
    std::iter::once(name.clone()).chain(is_before.then(|| before.into())).chain(own.cloned()).collect()
}

fn options_of_environment(around: &Surroundings) -> Result<Vec<OsString>, Stop> {
    let in_variable = |what: String| wrong(format!("in RTRACE_OPTS: {what}"));
    let Some(text) = (around.var)("RTRACE_OPTS") else { return Ok(Vec::new()) };
    let text = text.into_string().map_err(|_| in_variable("it is not UTF-8".to_owned()))?;
    let options: Vec<OsString> = words::split(&text).map_err(in_variable)?.into_iter().map(OsString::from).collect();
    let matches = matches(&options).map_err(|stop| match stop {
        Stop::Wrong(text) => in_variable(text),
        text => text,
    })?;
    let word = matches.get_many::<OsString>("command").and_then(|mut words| words.next()).map(|word| word.to_string_lossy().into_owned());
    match word.as_deref().or(matches.subcommand_name()) {
        Some(word) => Err(in_variable(format!("`{word}` is not an option"))),
        None => Ok(options),
    }
}

fn read_config(around: &Surroundings) -> Result<Config, Stop> {
    let mut config = Config::default();
    let read = |path: &Path| (around.read)(path).map_err(|error| wrong(format!("{}: cannot be read: {error}", path.display())));
    if let Some(path) = (around.var)("PERF_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
        && let Some(text) = read(&path)?
    {
        config.read_perf(&path, &text).map_err(wrong)?;
    }
    // A relative path would name a different directory wherever rtrace is started, perhaps one of another user's. The
    // XDG Base Directory Specification says to ignore such a path.
    let home = |name: &str| (around.var)(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = home("XDG_CONFIG_HOME").or_else(|| home("HOME").map(|home| home.join(".config")));
    if let Some(path) = folder.map(|folder| folder.join("rtrace/config.toml"))
        && let Some(text) = read(&path)?
    {
        config.read_toml(&path, &text).map_err(wrong)?;
    }
    Ok(config)
}

/// Returns the format of a command's answer: JSON with `--json`, otherwise text.
fn answer_format(json: bool) -> AnswerFormat {
    if json { AnswerFormat::Json } else { AnswerFormat::Text }
}

fn list(words: &[String], format: AnswerFormat) -> Result<Request, Stop> {
    if let [word] = words
        && let Some(program) = word.strip_prefix("usdt:")
    {
        return match program {
            "" => Err(wrong("usdt: needs a program or library: rtrace list usdt:/usr/bin/python3")),
            program => Ok(Request::ListUsdt { program: PathBuf::from(program), format }),
        };
    }
    let kind = words.first().and_then(|word| {
        Some(match word.as_str() {
            "syscalls" => Listing::Syscalls,
            "groups" => Listing::Groups,
            "events" => Listing::Events,
            "tables" => Listing::Tables,
            _ => return None,
        })
    });
    let of = |what, glob: Option<&String>| Ok(Request::List { what, glob: glob.cloned(), format });
    match (kind, words) {
        (Some(what), [_]) => of(what, None),
        (Some(what), [_, glob]) => of(what, Some(glob)),
        (None, []) => of(Listing::Everything, None),
        (None, [glob]) => of(Listing::Everything, Some(glob)),
        _ => Err(wrong(format!("`{}` cannot be listed, only syscalls, groups, events and tables can", words[0]))),
    }
}

fn trace(cli: Cli, matches: &ArgMatches, config: &Config, around: &Surroundings) -> Result<Trace, Stop> {
    let notices = notices(&cli);
    let (what, show) = (what::what(&cli, matches, config)?, show::show(&cli, config)?);
    if show.style == Style::Strace {
        refuse_without_lines(&what, &cli)?;
    }
    if cli.output.lossless {
        target::refuse_not_delayed(&cli)?;
    }
    let span = cli.lines.time_span.as_ref().map(|text| span(text, show.time)).transpose()?;
    Ok(Trace {
        what,
        span,
        show,
        graphs: graphs::graphs(&cli)?,
        output: show::output(&cli, config, around)?,
        run: show::run(&cli, config, around)?,
        recording: recording::beside(&cli, matches, config)?,
        target: target::target(cli)?,
        notices,
    })
}

/// Refuses what lines of strace cannot show.
fn refuse_without_lines(what: &EventSelection, cli: &Cli) -> Result<(), Stop> {
    let is_event =
        |item: &Item| !item.negated && matches!(item.selector, Selector::Event { .. } | Selector::Probe(_) | Selector::Object(_));
    let refused = if what.items.iter().any(is_event) {
        "events and probes"
    } else if what.faults.is_some() {
        "page faults"
    } else if cli.graphs.kernel_stack {
        "the kernel's stacks"
    } else {
        return Ok(());
    };
    Err(wrong(format!("--style strace: lines of strace do not show {refused}; leave --style out to see them")))
}

/// Returns notes about options that rtrace carries out, but that mean something else in strace.
fn notices(cli: &Cli) -> Vec<String> {
    let mut notices = Vec::new();
    let words: Vec<_> = cli.command.iter().map(|word| word.to_string_lossy()).collect();
    if let Some(program) = words.first() {
        let line = words.join(" ").escape_debug().to_string();
        if let Some(user) = &cli.target.uid {
            notices.push(format!(
                "`{program}` only sets how long {user}'s processes are traced; to trace it as {user}: rtrace --run-as {user} {line}"
            ));
        } else if !cli.target.pid.is_empty() || !cli.target.tid.is_empty() {
            let option = if cli.target.pid.is_empty() { "-t" } else { "-p" };
            notices.push(format!("`{program}` only sets how long the trace lasts; to trace it, leave {option} out: rtrace {line}"));
        }
    }
    if cli.lines.time {
        notices.push("-T prints time stamps of the monotonic clock; how long a call took (strace's -T) is always shown".to_owned());
    }
    notices
}

#[cfg(test)]
mod tests;
