//! What is printed, where it goes, and how rtrace goes about it.

use super::{Stop, Surroundings, wrong};
use crate::cli::args::{Cli, ColorArg, EngineArg, StringsArg, SummaryArg, TimeArg};
use crate::cli::config::Config;
use crate::request::{Color, Engine, Output, Rotation, Run, Sink, StringsBy};
use crate::show::{Mode, Show, Style, SummaryBy, TimeFormat};
use crate::text::units;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// With -a, a summary has so many rows if nothing else is said: all of it fits into a terminal of 24 lines.
const ROWS_OF_ALL: usize = 12;

/// Whether the name of the output says that it has JSON.
fn is_json_file(cli: &Cli) -> bool {
    cli.output.output.as_ref().is_some_and(|name| name.as_bytes().ends_with(b".jsonl") && !name.as_bytes().starts_with(b"|"))
}

pub fn show(cli: &Cli, config: &Config) -> Result<Show, Stop> {
    let summary = &cli.summary;
    // A picture of the calls is what was asked for; lines are, where there is a place for them.
    let is_drawn = cli.graphs.folded.is_some() || cli.graphs.flamegraph.is_some();
    let mode = match (summary.summary || summary.errno_summary, summary.with_summary) {
        (_, true) => Mode::Both,
        (true, false) => Mode::Summary,
        (false, false) if is_drawn && cli.output.output.is_none() => Mode::Nothing,
        (false, false) => Mode::Lines,
    };
    if matches!(mode, Mode::Lines | Mode::Nothing) {
        let asked = [
            (summary.summary_mode.is_some(), "--summary-mode"),
            (summary.by.is_some(), "--by"),
            (summary.histogram, "--histogram"),
            (summary.interval.is_some(), "--interval"),
            (summary.max_summary.is_some(), "--max-summary"),
        ];
        if let Some((_, option)) = asked.into_iter().find(|(asked, _)| *asked) {
            return Err(wrong(format!("{option} says how a summary looks; ask for one with -s or -S")));
        }
    }
    if summary.interval == Some(0) {
        return Err(wrong("--interval 0: an interval is longer than nothing (1s)"));
    }
    let summary_by = summary.summary_mode.or(config.summary_mode).map(SummaryBy::from).unwrap_or_default();
    let max_summary = summary.max_summary.or(config.max_summary).map(|n| n as usize);
    let named = &cli.target;
    let is_named =
        !named.pid.is_empty() || !named.tid.is_empty() || named.uid.is_some() || named.cgroup.is_some() || named.container.is_some();
    let is_of_all = !is_named && (named.all_cpus || named.cpu.is_some() || cli.command.is_empty()) && summary_by == SummaryBy::Whole;
    let lines = &cli.lines;
    let arg_names = config.show_arg_names.unwrap_or(true);
    let style = if lines.json || is_json_file(cli) { Style::Json } else { Style::Perf };
    if style == Style::Json && mode != Mode::Lines {
        return Err(wrong(
            "--json is about calls and events as they come: it does not go with a summary yet (-s, -S); leave one of them out",
        ));
    }
    if style == Style::Json && cli.output.output_separately {
        return Err(wrong("--json writes one stream: it does not go with --output-separately"));
    }
    Ok(Show {
        style,
        mode,
        errno_summary: summary.errno_summary,
        summary_by,
        max_summary: max_summary.or(is_of_all.then_some(ROWS_OF_ALL)).filter(|rows| *rows > 0),
        summary_object: summary.by.clone(),
        histogram: summary.histogram,
        interval: summary.interval,
        paths: cli.what.path.clone(),
        duration: cli.what.duration,
        failure: cli.what.failure,
        max_events: cli.what.max_events,
        time: if lines.time {
            TimeFormat::Monotonic
        } else {
            lines.time_format.or(config.time_format).map(TimeFormat::from).unwrap_or_default()
        },
        comm: lines.comm || !lines.no_comm && config.show_comm.unwrap_or(true),
        cpu: lines.show_cpu || config.show_cpu == Some(true),
        // Without names, an argument that is left out could not be missed.
        zeros: lines.show_zeros || config.show_zeros == Some(true) || !arg_names,
        // Each call has one object, whoever reads along, unless more are asked for.
        pending: (lines.pending || lines.no_pending || style == Style::Json).then_some(lines.pending),
        arg_names,
        durations: config.show_duration.unwrap_or(true),
        timestamps: config.show_timestamp.unwrap_or(true),
        prefixes: config.show_prefix.unwrap_or(false),
        alignment: config.args_alignment.unwrap_or(70),
        width: lines.width.unwrap_or_default(),
        string_limit: lines.string_limit.or(config.string_limit).unwrap_or(32),
    })
}

/// # Errors
/// `--max-size` stands with what is no file.
pub fn output(cli: &Cli, config: &Config, around: &Surroundings) -> Result<Output, Stop> {
    let to = match &cli.output.output {
        None => Sink::Stderr,
        Some(name) if name == "-" => Sink::Stdout,
        Some(name) => match name.as_bytes().strip_prefix(b"|") {
            Some(command) => Sink::Pipe(OsString::from_vec(command.to_vec())),
            None => Sink::File(PathBuf::from(name)),
        },
    };
    let set = |name: &str| (around.var)(name).is_some_and(|value| !value.is_empty() && (name == "NO_COLOR" || value != "0"));
    let color = match cli.output.color.or(config.color) {
        Some(color) => Color::from(color),
        None if set("NO_COLOR") => Color::Never,
        None if set("CLICOLOR_FORCE") => Color::Always,
        None => Color::Auto,
    };
    let rotation = cli.output.max_size.map(|max_size| Rotation { max_size, keep: cli.output.rotate.unwrap_or(1) });
    match (rotation, &to) {
        (Some(Rotation { max_size: 0, .. }), _) => Err(wrong("--max-size 0: a file has room for a byte at least (100M)")),
        (Some(_), Sink::Stderr | Sink::Stdout | Sink::Pipe(_)) => Err(wrong("--max-size is about a file: it needs -o FILE")),
        _ => Ok(Output { to, separately: cli.output.output_separately, color, rotation }),
    }
}

pub fn run(cli: &Cli, config: &Config, around: &Surroundings) -> Result<Run, Stop> {
    let ring = cli.run.mmap_pages.as_ref().or(config.mmap_pages.as_ref());
    let ring_bytes =
        ring.map(|text| units::pages_or_size(text, around.page_bytes).map_err(|what| wrong(format!("-m {text}: {what}")))).transpose()?;
    let engine = match cli.run.engine {
        EngineArg::Auto => Engine::Auto,
        EngineArg::Tracepoint => Engine::Tracepoint,
        EngineArg::Bpf => Engine::Bpf,
    };
    let strings_by = match cli.run.strings_by {
        StringsArg::Auto => StringsBy::Auto,
        StringsArg::Getname => StringsBy::Getname,
        StringsArg::VfsGetname => StringsBy::VfsGetname,
        StringsArg::Events => StringsBy::Events,
        StringsArg::Eprobe => StringsBy::Eprobe,
        StringsArg::None => StringsBy::None,
    };
    let engine = match (engine, strings_by) {
        (engine, StringsBy::Auto) => engine,
        (Engine::Bpf, _) => return Err(wrong("--strings-by is for tracing without BPF; with --engine bpf, the programs read strings")),
        (Engine::Auto | Engine::Tracepoint, _) => Engine::Tracepoint,
    };
    let (quiet, verbose) = (cli.run.quiet > 0, cli.run.verbose);
    Ok(Run { ring_bytes, strict: cli.output.strict, wait: !cli.target.no_wait, quiet, verbose, engine, strings_by })
}

impl From<SummaryArg> for SummaryBy {
    fn from(by: SummaryArg) -> SummaryBy {
        match by {
            SummaryArg::Thread => SummaryBy::Thread,
            SummaryArg::Process => SummaryBy::Process,
            SummaryArg::Total => SummaryBy::Total,
            SummaryArg::Cgroup => SummaryBy::Cgroup,
        }
    }
}

impl From<TimeArg> for TimeFormat {
    fn from(format: TimeArg) -> TimeFormat {
        match format {
            TimeArg::Relative => TimeFormat::Relative,
            TimeArg::Delta => TimeFormat::Delta,
            TimeArg::Local => TimeFormat::Local,
            TimeArg::LocalDate => TimeFormat::LocalDate,
            TimeArg::Utc => TimeFormat::Utc,
            TimeArg::Epoch => TimeFormat::Epoch,
            TimeArg::Monotonic => TimeFormat::Monotonic,
        }
    }
}

impl From<ColorArg> for Color {
    fn from(color: ColorArg) -> Color {
        match color {
            ColorArg::Auto => Color::Auto,
            ColorArg::Always => Color::Always,
            ColorArg::Never => Color::Never,
        }
    }
}
