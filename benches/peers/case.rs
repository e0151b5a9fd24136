//! What is compared.

use crate::run::{self, Measured, Scratch};
use crate::table::Counts;
use crate::tool::{Kind, Tool};
use anyhow::Context;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    NothingMatches,
    ToDevNull,
    ToFile,
    Summary,
    Beside,
    True,
}

impl Case {
    pub const ALL: [Case; 6] = [Case::NothingMatches, Case::ToDevNull, Case::ToFile, Case::Summary, Case::Beside, Case::True];

    pub fn title(self) -> &'static str {
        match self {
            Case::NothingMatches => "(a) a filter that matches nothing",
            Case::ToDevNull => "(b) everything, to /dev/null",
            Case::ToFile => "(c) everything, to a file",
            Case::Summary => "(d) -s",
            Case::Beside => "(e) untraced, beside a traced process",
            Case::True => "(f) `true`",
        }
    }

    pub fn measure(self, tool: Option<&Tool>) -> anyhow::Result<Measured> {
        match (self, tool) {
            (Case::True, tool) => start_and_end(tool),
            (Case::Beside, Some(tool)) => beside(tool),
            (_, tool) => dd_under(self, tool),
        }
    }
}

/// How many bytes `dd` copies, one at a time. Tracers differ by orders of magnitude: each gets what takes it some seconds.
pub fn bytes(tool: Option<&Tool>) -> u64 {
    match tool.map(|tool| tool.kind) {
        None | Some(Kind::Rtrace) => 500_000,
        Some(Kind::Perf) => 100_000,
        Some(Kind::Strace) => 30_000,
    }
}

/// dd, within a program that reports what it alone used.
fn dd(usage: &str, bytes: u64) -> anyhow::Result<Vec<String>> {
    let myself = std::env::current_exe()?.to_str().context("the target directory's name is not UTF-8")?.to_owned();
    let count = format!("count={bytes}");
    let words = [&myself, "usage", usage, "dd", "if=/dev/zero", "of=/dev/null", "bs=1", &count, "status=none"];
    Ok(words.map(str::to_owned).into())
}

fn dd_under(case: Case, tool: Option<&Tool>) -> anyhow::Result<Measured> {
    let scratch = Scratch::new()?;
    let usage = scratch.path("usage");
    let dd = dd(&usage, bytes(tool))?;
    let untraced = untraced(&dd, &usage)?;
    let file = scratch.path("lines");
    let output = if case == Case::ToDevNull { "/dev/null" } else { &file };
    let mut words = tool.map(|tool| tool.words(case, Some(output))).unwrap_or_default();
    words.extend(dd);
    let errors = scratch.path("stderr");
    let ran = run::run(&words, &errors)?.with_orphans();
    let counts = match tool {
        Some(tool) => Counts::of(tool.kind, case, &file, &errors)?,
        None => Counts::default(),
    };
    Ok(Measured::new(&ran, run::usage(&usage)?, untraced, counts))
}

/// What `dd` uses when nobody looks.
fn untraced(dd: &[String], usage: &str) -> anyhow::Result<Duration> {
    run::run(dd, "/dev/null")?;
    run::usage(usage)
}

/// `dd` runs untraced while a tracer follows a process that sleeps.
fn beside(tool: &Tool) -> anyhow::Result<Measured> {
    let scratch = Scratch::new()?;
    let usage = scratch.path("usage");
    let dd = dd(&usage, bytes(None))?;
    let untraced = untraced(&dd, &usage)?;
    let mut words = tool.words(Case::Beside, Some("/dev/null"));
    words.extend(["sh", "-c", "echo up; exec sleep 1000"].map(str::to_owned));
    let mut tracer = Command::new(&words[0]);
    tracer.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut tracer = tracer.spawn()?;
    BufReader::new(tracer.stdout.as_mut().context("stdout is a pipe")?).read_line(&mut String::new())?;
    let ran = run::run(&dd, "/dev/null");
    rustix::process::kill_process_group(rustix::process::Pid::from_child(&tracer), rustix::process::Signal::TERM)?;
    tracer.wait()?;
    Ok(Measured::new(&ran?, run::usage(&usage)?, untraced, Counts::default()))
}

/// The kernel closes the tracepoints of whoever ran before for a while yet, and an open waits for that: what is measured is a start on a quiet machine.
const QUIET: Duration = Duration::from_secs(2);

/// How long it takes until the first line is there, and until the prompt is back.
fn start_and_end(tool: Option<&Tool>) -> anyhow::Result<Measured> {
    let mut words = tool.map(|tool| tool.words(Case::True, None)).unwrap_or_default();
    words.push("true".to_owned());
    std::thread::sleep(QUIET);
    let start = Instant::now();
    let mut child = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stderr.take().context("stderr is a pipe")?).lines();
    let mut first_line = None;
    for line in lines {
        if line?.contains('(') && first_line.is_none() {
            first_line = Some(start.elapsed());
        }
    }
    child.wait()?;
    let wall = start.elapsed();
    run::wait_for_orphans();
    Ok(Measured { wall, first_line, ..Measured::default() })
}
