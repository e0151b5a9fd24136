//! Parses the options that say what is printed, where it is written, and by which means rtrace traces.

use super::{Stop, Surroundings, wrong};
use crate::cli::args::{Cli, ColorArg, EngineArg, InjectArg, StringsArg, StyleArg, SummaryArg, TimeArg};
use crate::cli::config::Config;
use crate::request::inject::InjectBy;
use crate::request::{Color, Engine, Output, Rotation, Run, Sink, StringsBy};
use crate::show::{Mode, Outcomes, Show, Style, SummaryBy, TimeFormat, strace};
use crate::text::quantity;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The default number of rows in a summary of the whole machine. With them, the summary fits into a terminal of 24
/// lines.
const ROWS_OF_ALL: usize = 12;

/// Whether the name of the output file asks for JSON.
fn is_json_file(cli: &Cli) -> bool {
    cli.output.output.as_ref().is_some_and(|name| name.as_bytes().ends_with(b".jsonl") && !name.as_bytes().starts_with(b"|"))
}

/// Parses the options that say which lines and tables are printed, and how.
///
/// # Errors
/// Two options cannot be combined, or a value is wrong.
pub fn show(cli: &Cli, config: &Config) -> Result<Show, Stop> {
    let summary = &cli.summary;
    // With --folded or --flamegraph, lines are printed only if -o or --json asks for them.
    let is_drawn = cli.graphs.folded.is_some() || cli.graphs.flamegraph.is_some();
    let mode = match (summary.summary || summary.errno_summary, summary.with_summary) {
        (_, true) => Mode::Both,
        (true, false) => Mode::Summary,
        (false, false) if is_drawn && cli.output.output.is_none() && !cli.lines.json => Mode::Nothing,
        (false, false) => Mode::Lines,
    };
    if matches!(mode, Mode::Lines | Mode::Nothing) {
        let options = [
            (summary.summary_mode.is_some(), "--summary-mode"),
            (summary.by.is_some(), "--by"),
            (summary.histogram, "--histogram"),
            (summary.interval.is_some(), "--interval"),
            (summary.max_summary.is_some(), "--max-summary"),
        ];
        if let Some((_, option)) = options.into_iter().find(|(is_given, _)| *is_given) {
            return Err(wrong(format!("{option} needs a summary: add -s or -S")));
        }
    }
    if summary.interval == Some(0) {
        return Err(wrong("--interval 0: the interval must be longer than 0, for example 1s"));
    }
    let summary_by = summary.summary_mode.or(config.summary_mode).map(SummaryBy::from).unwrap_or_default();
    let max_summary = summary.max_summary.or(config.max_summary).map(|n| n as usize);
    let target = &cli.target;
    let is_named =
        !target.pid.is_empty() || !target.tid.is_empty() || target.uid.is_some() || target.cgroup.is_some() || target.container.is_some();
    let is_of_all = !is_named && target.input.is_none() && (target.all_cpus || target.cpu.is_some() || cli.command.is_empty());
    let lines = &cli.lines;
    let arg_names = config.show_arg_names.unwrap_or(true);
    let style = match lines.style {
        Some(StyleArg::Strace) => Style::Strace,
        Some(StyleArg::Perf) => Style::Perf,
        None if lines.json || is_json_file(cli) => Style::Json,
        None => Style::Perf,
    };
    // The table of the whole machine has many rows that say little.
    let default_rows = (summary_by == SummaryBy::OneTable && style != Style::Json && max_summary.is_none()).then_some(ROWS_OF_ALL);
    Ok(Show {
        style,
        strace: strace::Lines::default(),
        mode,
        errno_summary: summary.errno_summary,
        summary_by,
        max_summary: max_summary.or(default_rows.filter(|_| is_of_all)).filter(|rows| *rows > 0),
        max_summary_of_all: default_rows.filter(|_| target.input.is_some()),
        summary_object: summary.by.clone(),
        histogram: summary.histogram,
        interval: summary.interval,
        paths: cli.what.path.clone(),
        duration: cli.what.duration,
        outcomes: if cli.what.failure { Outcomes::FAILED } else { Outcomes::all() },
        descriptors: None,
        max_events: cli.what.max_events,
        time: if lines.time {
            TimeFormat::Monotonic
        } else {
            lines.time_format.or(config.time_format).map(TimeFormat::from).unwrap_or_default()
        },
        comm: lines.comm || !lines.no_comm && config.show_comm.unwrap_or(true),
        cpu: lines.show_cpu || config.show_cpu == Some(true),
        // Without argument names, readers could not tell which argument was left out.
        zeros: lines.show_zeros || config.show_zeros == Some(true) || !arg_names,
        // In JSON, each call has one object unless --pending asks for more, whatever the output is.
        pending: (lines.pending || lines.no_pending || style == Style::Json).then_some(lines.pending),
        arg_names,
        durations: config.show_duration.unwrap_or(true),
        timestamps: config.show_timestamp.unwrap_or(true),
        prefixes: config.show_prefix.unwrap_or(false),
        alignment: config.args_alignment.unwrap_or(70),
        width: lines.width.unwrap_or_default(),
        string_limit: lines.string_limit.or(config.string_limit).unwrap_or(32),
        struct_limit: lines.struct_limit.or(config.struct_limit).unwrap_or(4096),
        full: lines.full,
    })
}

/// Parses the options about the output.
///
/// # Errors
/// `--max-size` is 0, or the output is not a file.
pub fn output(cli: &Cli, config: &Config, around: &Surroundings) -> Result<Output, Stop> {
    let to = match &cli.output.output {
        None => Sink::Stderr,
        Some(name) if name == "-" => Sink::Stdout,
        Some(name) => match name.as_bytes().strip_prefix(b"|") {
            Some(command) => Sink::Pipe(OsString::from_vec(command.to_vec())),
            None => Sink::File(PathBuf::from(name)),
        },
    };
    let color = color(cli.output.color.or(config.color), around);
    let rotation = cli.output.max_size.map(|max_size| Rotation { max_size, keep: cli.output.rotate.unwrap_or(1) });
    match (rotation, &to) {
        (Some(Rotation { max_size: 0, .. }), _) => Err(wrong("--max-size 0: the size must be at least one byte, for example 100M")),
        (Some(_), Sink::Stderr | Sink::Stdout | Sink::Pipe(_)) => Err(wrong("--max-size needs an output file: add -o FILE")),
        _ => Ok(Output { to, separately: cli.output.output_separately, color, rotation }),
    }
}

/// Returns whether there are colours, by the option or configuration, or else by the environment.
pub fn color(chosen: Option<ColorArg>, around: &Surroundings) -> Color {
    let set = |name: &str| (around.var)(name).is_some_and(|value| !value.is_empty() && (name == "NO_COLOR" || value != "0"));
    match chosen {
        Some(color) => Color::from(color),
        None if set("NO_COLOR") => Color::Never,
        None if set("CLICOLOR_FORCE") => Color::Always,
        None => Color::Auto,
    }
}

/// Parses the options about engine, ring buffers and messages.
///
/// # Errors
/// Two options cannot be combined, or a value is wrong.
pub fn run(cli: &Cli, config: &Config, around: &Surroundings) -> Result<Run, Stop> {
    let ring = cli.run.common.mmap_pages.as_ref().or(config.mmap_pages.as_ref());
    let ring_bytes = ring
        .map(|text| quantity::pages_or_size(text, around.page_bytes).map_err(|what| wrong(format!("-m {text}: {what}"))))
        .transpose()?;
    let engine = match cli.run.common.engine {
        EngineArg::Auto => Engine::Auto,
        EngineArg::Tracepoint => Engine::Tracepoint,
        EngineArg::Bpf => Engine::Bpf,
    };
    let strings_by = match cli.run.common.strings_by {
        StringsArg::Auto => StringsBy::Auto,
        StringsArg::Getname => StringsBy::Getname,
        StringsArg::VfsGetname => StringsBy::VfsGetname,
        StringsArg::Events => StringsBy::Events,
        StringsArg::Eprobe => StringsBy::Eprobe,
        StringsArg::None => StringsBy::None,
    };
    let inject_by = match cli.run.common.inject_by {
        InjectArg::Auto => InjectBy::Auto,
        InjectArg::Override => InjectBy::Override,
        InjectArg::Seccomp => InjectBy::Seccomp,
    };
    let engine = match (engine, strings_by) {
        (engine, StringsBy::Auto) => engine,
        (Engine::Bpf, _) => {
            return Err(wrong("--strings-by is for tracing without BPF: leave it out, or leave --engine bpf out"));
        }
        (Engine::Auto | Engine::Tracepoint, _) => Engine::Tracepoint,
    };
    let (quiet, verbose) = (cli.run.common.quiet > 0, cli.run.common.verbose);
    Ok(Run {
        ring_bytes,
        strict: cli.output.strict,
        lossless: cli.output.lossless,
        wait: !cli.target.no_wait,
        quiet,
        verbose,
        engine,
        strings_by,
        inject_by,
        as_strace: false,
    })
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
