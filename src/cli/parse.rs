//! From argv, environment and configuration files to a [`Request`].
//!
//! The order of precedence: configuration files, then RTRACE_OPTS, then the command line. Nothing is looked up but the configuration; whether a process, a user or
//! an event exists is the plan's question.

mod graphs;
mod probe;
mod show;
mod target;
mod what;

use super::args::{self, Cli, Sub};
use super::config::Config;
use super::habits;
use super::short_help::SHORT_HELP;
use super::words;
use crate::request::{Listing, Request, Setup, Trace};
use crate::text::near;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Why there is no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user asked for this text (help, version): to stdout, and all is well.
    Text(String),
    /// The command line is wrong: a text for stderr, to be put behind `rtrace: `.
    Wrong(String),
}

/// What the command line depends on beside itself.
pub struct Surroundings<'a> {
    /// A variable of the environment.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
    /// A file's text; `None` if it does not exist.
    pub read: &'a dyn Fn(&Path) -> std::io::Result<Option<String>>,
    /// Bytes of a page of memory.
    pub page_bytes: u64,
}

/// What the user asks for. `argv` has the program's name first.
///
/// # Errors
/// Help or version were asked for, or something is wrong with the command line, RTRACE_OPTS or a configuration file.
pub fn request(argv: &[OsString], around: &Surroundings) -> Result<Request, Stop> {
    refuse_strace(argv)?;
    let typed = argv.get(1..).unwrap_or_default();
    if let Some(answer) = habits::answer(typed) {
        return Err(wrong(answer));
    }
    let alone = matches(typed)?;
    if alone.get_flag("short_help") {
        return Err(Stop::Text(format!("{SHORT_HELP}\n")));
    }
    if let Some(subcommand) = Cli::from_arg_matches(&alone).map_err(wrong_usage)?.subcommand {
        refuse_options_before(&alone)?;
        return without_tracing(subcommand);
    }
    let plain = alone.get_flag("no_config");
    let config = if plain { Config::default() } else { read_config(around)? };
    let options = if plain { Vec::new() } else { options_of_environment(around)? };
    let matches = if options.is_empty() { alone } else { matches(&[&options, typed].concat())? };
    let cli = Cli::from_arg_matches(&matches).map_err(wrong_usage)?;
    refuse_reserved(typed, &cli.command)?;
    trace(cli, &matches, &config, around).map(|trace| Request::Trace(Box::new(trace)))
}

fn without_tracing(subcommand: Sub) -> Result<Request, Stop> {
    match subcommand {
        Sub::List { words } => list(&words),
        Sub::Check { setup: false, .. } => Ok(Request::Check),
        Sub::Check { group, program, .. } => setup(group, program),
        Sub::Probe { what } => Ok(Request::Probe(probe::probing(what))),
        Sub::Completions { shell } => Ok(Request::Completions(shell)),
        Sub::Complete { words } => Ok(Request::Complete(words)),
    }
}

/// The group's name stands in a script for root, so it has to be one.
fn setup(group: String, program: Option<PathBuf>) -> Result<Request, Stop> {
    let begins = group.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let is_plain = |other: char| other.is_ascii_lowercase() || other.is_ascii_digit() || "_-".contains(other);
    match begins && group.len() <= 32 && group.chars().all(is_plain) {
        true => Ok(Request::Setup(Setup { group, program })),
        false => Err(wrong(format!(
            "--group {}: a group's name begins with a small letter or _, has only these, digits and -, and no more than 32 of them",
            group.escape_debug()
        ))),
    }
}

fn wrong(text: impl Into<String>) -> Stop {
    Stop::Wrong(text.into())
}

fn matches(words: &[OsString]) -> Result<ArgMatches, Stop> {
    let argv = std::iter::once(OsString::from("rtrace")).chain(words.iter().cloned());
    args::command().try_get_matches_from(argv).map_err(wrong_usage)
}

/// What clap says is wrong, without its tips (it advises to give unknown options to the command) and without the usage.
fn wrong_usage(error: clap::Error) -> Stop {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return Stop::Text(text);
    }
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) = (error.kind(), error.get(ContextKind::InvalidArg)) {
        return unknown_option(option);
    }
    // Where a part is missing, the usage says which parts there are.
    let with_usage = matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand);
    let parts = text.split("\n\n").enumerate().filter(|(at, part)| *at == 0 || with_usage && part.starts_with("Usage:"));
    let indented = |part: &str| format!("    {}", part.replace('\n', "\n    "));
    let parts = parts.map(|(at, part)| if at == 0 { part.trim_end().to_owned() } else { indented(part.trim_end()) });
    let sentence = parts.collect::<Vec<_>>().join("\n\n");
    wrong(sentence.strip_prefix("error: ").unwrap_or(&sentence))
}

fn unknown_option(option: &str) -> Stop {
    let command = args::command();
    let long: Vec<String> =
        command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long()).map(|name| format!("--{name}")).collect();
    let near = match option.strip_prefix("--") {
        Some(_) => near::nearest(option, long.iter().map(String::as_str), 3),
        None => Vec::new(),
    };
    wrong(format!("there is no option {option}{} (`rtrace --help` shows all)", near::hint(&near)))
}

/// strace's letters mean other things than rtrace's: to guess would be to do something else than was asked.
fn refuse_strace(argv: &[OsString]) -> Result<(), Stop> {
    let called = argv.first().map(Path::new).and_then(Path::file_name);
    match called {
        Some(name) if name == "strace" => {
            Err(wrong("called by the name strace, but this version does not take strace's command line; call it rtrace"))
        }
        _ => Ok(()),
    }
}

/// The subcommands take none of the options for tracing: whoever gives some means a program of that name.
fn refuse_options_before(matches: &ArgMatches) -> Result<(), Stop> {
    let command = args::command();
    let given = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine) && id.as_str() != "no_config";
    match (matches.subcommand_name(), command.get_arguments().map(|arg| arg.get_id()).find(given)) {
        (Some(name), Some(_)) => {
            Err(wrong(format!("`rtrace {name}` takes none of the options before it; to trace a program called {name}, put -- before it")))
        }
        _ => Ok(()),
    }
}

const RESERVED: [&str; 5] = ["record", "script", "report", "evlist", "convert"];

/// Words that name parts of rtrace which this version does not have: not to be taken for programs.
fn refuse_reserved(typed: &[OsString], command: &[OsString]) -> Result<(), Stop> {
    let Some(first) = command.first() else { return Ok(()) };
    let before = typed.len().checked_sub(command.len() + 1).and_then(|i| typed.get(i));
    let escaped = before.is_some_and(|word| word == "--");
    match RESERVED.iter().find(|word| first == **word) {
        Some(word) if !escaped => Err(wrong(format!(
            "this version has no `rtrace {word}` (the word is reserved); to trace a program called {word}: rtrace -- {word}"
        ))),
        _ => Ok(()),
    }
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
        Some(word) => Err(in_variable(format!("`{word}` is no option"))),
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
    // What is not absolute would mean another folder wherever rtrace is started, one of somebody else's among them: the XDG Base Directory Specification says to ignore it.
    let home = |name: &str| (around.var)(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = home("XDG_CONFIG_HOME").or_else(|| home("HOME").map(|home| home.join(".config")));
    if let Some(path) = folder.map(|folder| folder.join("rtrace/config.toml"))
        && let Some(text) = read(&path)?
    {
        config.read_toml(&path, &text).map_err(wrong)?;
    }
    Ok(config)
}

fn list(words: &[String]) -> Result<Request, Stop> {
    if let [word] = words
        && let Some(program) = word.strip_prefix("usdt:")
    {
        return match program {
            "" => Err(wrong("usdt: is followed by a program or library: rtrace list usdt:/usr/bin/python3")),
            program => Ok(Request::ListUsdt(PathBuf::from(program))),
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
    match (kind, words) {
        (Some(what), [_]) => Ok(Request::List { what, glob: None }),
        (Some(what), [_, glob]) => Ok(Request::List { what, glob: Some(glob.clone()) }),
        (None, []) => Ok(Request::List { what: Listing::Everything, glob: None }),
        (None, [glob]) => Ok(Request::List { what: Listing::Everything, glob: Some(glob.clone()) }),
        _ => Err(wrong(format!("`{}` is nothing that can be listed (syscalls, groups, events, tables)", words[0]))),
    }
}

fn trace(cli: Cli, matches: &ArgMatches, config: &Config, around: &Surroundings) -> Result<Trace, Stop> {
    let notices = notices(&cli);
    Ok(Trace {
        what: what::what(&cli, matches, config)?,
        show: show::show(&cli, config)?,
        graphs: graphs::graphs(&cli)?,
        output: show::output(&cli, config, around)?,
        run: show::run(&cli, config, around)?,
        target: target::target(cli)?,
        notices,
    })
}

/// What is done as it was asked for, but is something else for strace's users.
fn notices(cli: &Cli) -> Vec<String> {
    let mut notices = Vec::new();
    let words: Vec<_> = cli.command.iter().map(|word| word.to_string_lossy()).collect();
    if let Some(program) = words.first() {
        let line = words.join(" ").escape_debug().to_string();
        if let Some(user) = &cli.target.uid {
            notices.push(format!(
                "`{program}` only says how long {user}'s processes are traced; to trace it as {user}: rtrace --run-as {user} {line}"
            ));
        } else if !cli.target.pid.is_empty() || !cli.target.tid.is_empty() {
            let option = if cli.target.pid.is_empty() { "-t" } else { "-p" };
            notices.push(format!("`{program}` only says how long the trace takes; to trace it, leave {option} out: rtrace {line}"));
        }
    }
    if cli.lines.time {
        notices.push("-T is time stamps of the monotonic clock; how long a call takes (strace's -T) is always shown".to_owned());
    }
    notices
}

#[cfg(test)]
mod tests;
