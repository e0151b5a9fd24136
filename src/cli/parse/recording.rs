//! Parses the options for recordings: `rtrace record`, `--record` and `-i`.

use super::{Stop, matches, read_config, trace, wrong};
use crate::cli::args::{Cli, DiffArgs, RecordArgs, ReportArgs, SortArg, Sub, WeightArg, WhatArgs};
use crate::cli::config::Config;
use crate::request::filter;
use crate::request::{Comparison, Engine, Order, Recording, Replay, Report, Request, Snapshots, Target, TaskSelection};
use crate::show::Mode;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The name of the subcommand that is carried out by a replay.
pub const REPORT: &str = "report";

/// Options that say what to trace and are no selection of events: a recording does not need them to be shown.
const NOT_SELECTING: [&str; 2] = ["inject", "max_events"];

/// How many snapshots calls may ask for if the user says nothing else. A condition that holds more often than its
/// author thought must not fill the disk.
const SNAPSHOTS_MAX: u32 = 10;

/// Returns the request of `rtrace record`. `matches` are those of the subcommand.
///
/// # Errors
/// An option is wrong, or does not apply to recordings.
pub fn record(args: RecordArgs, matches: &ArgMatches, around: &super::Surroundings) -> Result<Request, Stop> {
    let config = if args.common.no_config { Config::default() } else { read_config(around)? };
    let path = args.output.unwrap_or_else(|| PathBuf::from("rtrace.data"));
    let mut cli = super::cli(&super::matches(&[])?)?;
    let (compression, for_perf) = (args.compression, args.for_perf);
    let on = args.snapshot_on.as_deref().map(|text| filter::parse(text).map_err(|error| wrong(format!("--snapshot-on: {error}"))));
    let snapshots = Snapshots { on: on.transpose()?, max: args.snapshot_max.unwrap_or(SNAPSHOTS_MAX), at_end: args.snapshot_at_end };
    let snapshots = (args.snapshot || snapshots.on.is_some() || snapshots.at_end).then_some(snapshots);
    cli.target = args.target;
    cli.what = args.what;
    cli.graphs.call_graph = args.call_graph;
    cli.graphs.kernel_stack = args.kernel_stack;
    cli.graphs.lines = args.lines;
    cli.lines.string_limit = args.string_limit;
    cli.lines.struct_limit = args.struct_limit;
    cli.output.strict = args.strict;
    cli.output.lossless = args.lossless;
    cli.run.common = args.common;
    cli.command = args.command;
    if cli.target.input.is_some() {
        return Err(wrong("record -i: a recording is read by `rtrace -i FILE`, and not recorded again"));
    }
    if cli.what.max_events.is_some() {
        return Err(wrong("record --max-events: a recorder does not count lines; give it to `rtrace -i FILE`"));
    }
    if let Some(snapshots) = &snapshots {
        check_snapshots(snapshots, &cli, &path)?;
    }
    let selection = selection(matches, &config)?;
    let mut trace = trace(cli, matches, &config, around)?;
    trace.recording = Some(Recording { path, selection, is_alone: true, compression, for_perf, snapshots });
    if for_perf {
        if trace.run.engine == Engine::Bpf {
            return Err(wrong("record --for-perf: perf does not understand the records of --engine bpf; leave that out"));
        }
        trace.run.engine = Engine::Tracepoint;
    }
    Ok(Request::Trace(Box::new(trace)))
}

/// Returns the request of `rtrace diff`. `matches` are those of the subcommand.
///
/// # Errors
/// An option is wrong, or does not apply to recordings.
pub fn diff(args: DiffArgs, matches: &ArgMatches, around: &super::Surroundings) -> Result<Request, Stop> {
    if matches.contains_id("inject") {
        return Err(wrong("diff --inject: the calls of a recording were already made"));
    }
    let selection = selection(matches, &Config::default())?;
    let files = [args.first, args.second];
    // Mistakes in the options are reported once, and before a recording is read.
    with_selection(&selection, &words_of_diff(&files[0], args.time.as_deref()), around)?;
    let color = super::show::color(args.color.or(read_config(around)?.color), around);
    let format = super::answer_format(args.json);
    Ok(Request::Diff(Comparison { files, selection, span: args.time, format, color }))
}

/// Returns the options, beside the selection, by which a file of `rtrace diff` is read.
pub fn words_of_diff(file: &Path, span: Option<&str>) -> Vec<OsString> {
    let span = span.map(|span| format!("--time-span={span}").into());
    [OsString::from("--no-config"), "-i".into(), file.into()].into_iter().chain(span).collect()
}

/// Checks that snapshots can be taken as the other options say.
///
/// # Errors
/// An option does not go together with snapshots.
fn check_snapshots(snapshots: &Snapshots, cli: &Cli, path: &Path) -> Result<(), Stop> {
    let option = match snapshots {
        Snapshots { on: Some(_), .. } => "--snapshot-on",
        Snapshots { at_end: true, .. } => "--snapshot-at-end",
        _ => "--snapshot",
    };
    if cli.output.lossless {
        return Err(wrong(format!("record {option} --lossless: snapshots have only the newest records; leave one of the two out")));
    }
    if path == Path::new("-") {
        return Err(wrong(format!("record {option} -o -: each snapshot is a file; give -o the beginning of their names")));
    }
    if !cli.what.inject.is_empty() {
        return Err(wrong(format!("record {option} --inject: a snapshot does not say which calls were changed before it; leave one out")));
    }
    Ok(())
}

/// Returns what `--record` asks for, if it is given.
pub fn beside(cli: &Cli, matches: &ArgMatches, config: &Config) -> Result<Option<Recording>, Stop> {
    let Some(path) = cli.output.record.clone() else { return Ok(None) };
    Ok(Some(Recording {
        path,
        selection: selection(matches, config)?,
        is_alone: false,
        compression: None,
        for_perf: false,
        snapshots: None,
    }))
}

/// Returns the request of `-i FILE`. `words` are the options, those of RTRACE_OPTS included.
///
/// # Errors
/// An option is wrong, or does not apply to recordings.
pub fn replay(cli: Cli, matches: &ArgMatches, words: &[OsString], config: &Config, around: &super::Surroundings) -> Result<Request, Stop> {
    let file = cli.target.input.clone().unwrap_or_default();
    if let Some(word) = cli.command.first() {
        return Err(wrong(format!("-i {}: a recording has its command already; leave `{}` out", file.display(), word.to_string_lossy())));
    }
    let selects = chosen(matches).next().is_some();
    // What the recorder's configuration selected is in the recording.
    let config = Config { add_events: None, signals: None, ..config.clone() };
    let mut trace = trace(cli, matches, &config, around)?;
    trace.target = Target::Running { tasks: TaskSelection::All, timer: None };
    Ok(Request::Replay(Box::new(Replay { file, trace, words: words.to_vec(), selects })))
}

/// Returns the request of `rtrace report`, which is a replay with another output. `matches` are those of the
/// subcommand, and `words` begin with its name.
///
/// # Errors
/// An option is wrong, or does not apply to recordings.
pub fn report(args: ReportArgs, matches: &ArgMatches, words: &[OsString], around: &super::Surroundings) -> Result<Request, Stop> {
    if !args.what.inject.is_empty() {
        return Err(wrong("report --inject: the calls of a recording cannot be changed any more"));
    }
    let config = if args.no_config { Config::default() } else { read_config(around)? };
    let mut cli = super::cli(&super::matches(&[])?)?;
    cli.target.input = Some(args.input);
    cli.what = args.what;
    cli.graphs.inline = args.inline;
    cli.graphs.folded = args.folded;
    cli.graphs.flamegraph = args.flamegraph;
    cli.graphs.stack_weight = if args.sort == SortArg::Count { WeightArg::Count } else { WeightArg::Time };
    cli.lines.json = args.json;
    cli.lines.time_span = args.time;
    cli.output.output = Some(args.output.unwrap_or_else(|| "-".into()));
    cli.output.strict = args.strict;
    cli.run.common.quiet = args.quiet;
    let request = replay(cli, matches, words, &config, around)?;
    let Request::Replay(mut request) = request else { return Ok(request) };
    request.trace.show.mode = Mode::Report;
    request.trace.graphs.report = Some(Report {
        order: match args.sort {
            SortArg::Time => Order::Time,
            SortArg::Count => Order::Count,
            SortArg::Average => Order::Average,
            SortArg::Name => Order::Name,
        },
        is_inverted: args.inverted,
        frames_max: args.max_stack.map(usize::from),
        share_min: args.percent_limit,
    });
    Ok(Request::Replay(request))
}

/// Returns the request of `-i FILE` or `rtrace report` with the selection of the recording. `recorded` are its words,
/// and `words` those of the request.
///
/// # Errors
/// This version does not know the recorder's options.
pub fn with_selection(recorded: &[String], words: &[OsString], around: &super::Surroundings) -> Result<Request, Stop> {
    let (command, own) = words.split_at(usize::from(words.first().is_some_and(|first| first == REPORT)));
    let words: Vec<OsString> = command.iter().cloned().chain(recorded.iter().map(OsString::from)).chain(own.iter().cloned()).collect();
    let matches = matches(&words)?;
    if let (Some(Sub::Report(args)), Some((_, matches))) = (super::cli(&matches)?.subcommand, matches.subcommand()) {
        return report(*args, matches, &words, around);
    }
    let no_config = matches.get_flag("no_config");
    let config = if no_config { Config::default() } else { read_config(around)? };
    let cli = super::cli(&matches)?;
    replay(cli, &matches, &words, &config, around)
}

/// Returns the options that select calls and events, as words in the order of the command line.
fn selection(matches: &ArgMatches, config: &Config) -> Result<Vec<String>, Stop> {
    let mut words = Vec::new();
    if let Some(text) = &config.add_events {
        words.extend(["-e".to_owned(), text.clone()]);
    }
    let mut typed = Vec::new();
    for arg in chosen(matches) {
        let id = arg.get_id().as_str();
        let option = format!("--{}", arg.get_long().unwrap_or_default());
        let indices: Vec<usize> = matches.indices_of(id).into_iter().flatten().collect();
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            typed.push((indices.first().copied().unwrap_or_default(), option, None));
            continue;
        }
        for (index, value) in indices.into_iter().zip(matches.get_raw(id).into_iter().flatten()) {
            let value = String::from_utf8(value.to_os_string().into_vec()).map_err(|_| wrong(format!("{option}: it is not UTF-8")))?;
            typed.push((index, option.clone(), Some(value)));
        }
    }
    typed.sort_by_key(|(index, ..)| *index);
    let has_items = matches.contains_id("event") || matches.contains_id("probe");
    // Events of the configuration are traced beside the syscalls, not instead of them.
    if config.add_events.is_some() && !has_items {
        words.push("--syscalls".to_owned());
    }
    words.extend(typed.into_iter().map(|(_, option, value)| value.map_or(option.clone(), |value| format!("{option}={value}"))));
    match config.signals {
        Some(on) if !words.iter().any(|word| word == "--signals" || word == "--no-signals") => {
            words.push(if on { "--signals" } else { "--no-signals" }.to_owned());
        }
        _ => {}
    }
    Ok(words)
}

/// Returns the options that select calls and events and are on the command line.
fn chosen(matches: &ArgMatches) -> impl Iterator<Item = Arg> {
    let all: Vec<Arg> = WhatArgs::augment_args(clap::Command::new("rtrace")).get_arguments().cloned().collect();
    all.into_iter().filter(|arg| {
        let id = arg.get_id().as_str();
        !NOT_SELECTING.contains(&id) && matches.value_source(id) == Some(ValueSource::CommandLine)
    })
}
