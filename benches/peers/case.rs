//! The cases in which the tools are compared.

use crate::run::{self, Measured, Scratch};
use crate::table::Counts;
use crate::tool::{Kind, Placement, Tool};
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
    Stacks,
    TrueWithStacks,
    Gcc,
    GccFiltered,
    Sqlite,
}

impl Case {
    pub const ALL: [Case; 11] = [
        Case::NothingMatches,
        Case::ToDevNull,
        Case::ToFile,
        Case::Summary,
        Case::Beside,
        Case::True,
        Case::Stacks,
        Case::TrueWithStacks,
        Case::Gcc,
        Case::GccFiltered,
        Case::Sqlite,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Case::NothingMatches => "(a) a filter that matches nothing",
            Case::ToDevNull => "(b) everything, to /dev/null",
            Case::ToFile => "(c) everything, to a file",
            Case::Summary => "(d) -s",
            Case::Beside => "(e) untraced, beside a traced process",
            Case::True => "(f) `true`",
            Case::Stacks => "(g) call graphs, to a file",
            Case::TrueWithStacks => "(h) `true`, with call graphs",
            Case::Gcc => "(i) 20 runs of gcc",
            Case::GccFiltered => "(j) the same, `-e openat,execve`",
            Case::Sqlite => "(k) 500 transactions of sqlite3",
        }
    }

    /// Whether the start and the end of a trace are measured, and not the cost of calls.
    pub fn is_start(self) -> bool {
        matches!(self, Case::True | Case::TrueWithStacks)
    }

    /// Whether the traced program is one that people use.
    pub fn is_real(self) -> bool {
        matches!(self, Case::Gcc | Case::GccFiltered | Case::Sqlite)
    }

    /// Returns the placements of tool and program. In `Beside`, the tool does not start the program, so only one is
    /// measured.
    pub fn placements(self) -> &'static [Placement] {
        if self == Case::Beside { &[Placement::Free] } else { &Placement::BOTH }
    }

    pub fn measure(self, tool: Option<&Tool>, placement: Placement) -> anyhow::Result<Measured> {
        match (self, tool) {
            (Case::True | Case::TrueWithStacks, tool) => start_and_end(self, tool, placement),
            (Case::Beside, Some(tool)) => beside(tool),
            (_, tool) => program_under(self, tool, placement),
        }
    }
}

/// Returns how many bytes `dd` copies, one at a time. Tracers differ by orders of magnitude, so each gets a number that
/// takes it some seconds.
pub fn bytes(tool: Option<&Tool>) -> u64 {
    match tool.map(|tool| tool.kind) {
        None | Some(Kind::Rtrace) => 500_000,
        Some(Kind::Perf) => 100_000,
        Some(Kind::Strace) => 30_000,
    }
}

/// Returns how often `many` opens and closes a file. perf reads its ring buffers too late, so they must hold all
/// records.
fn rounds(tool: Option<&Tool>) -> u64 {
    match tool.map(|tool| tool.kind) {
        Some(Kind::Perf) => 3_000,
        _ => 20_000,
    }
}

/// Returns how many calls the program makes.
pub fn calls(case: Case, tool: Option<&Tool>) -> u64 {
    match case {
        Case::Stacks => rounds(tool) * 2,
        Case::Beside => bytes(None) * 2,
        _ => bytes(tool) * 2,
    }
}

/// Wraps a command in a program that reports the CPU time of the command alone.
fn reported(usage: &str, command: &[&str]) -> anyhow::Result<Vec<String>> {
    let myself = std::env::current_exe()?.to_str().context("the target directory's name is not UTF-8")?.to_owned();
    Ok([&[&myself, "usage", usage], command].concat().into_iter().map(str::to_owned).collect())
}

fn dd(usage: &str, bytes: u64) -> anyhow::Result<Vec<String>> {
    reported(usage, &["dd", "if=/dev/zero", "of=/dev/null", "bs=1", &format!("count={bytes}"), "status=none"])
}

/// Compiles the test program that opens and closes a file, in a thread, a few functions deep. Returns its command line.
fn many(scratch: &Scratch, usage: &str, rounds: u64) -> anyhow::Result<Vec<String>> {
    let (source, program) = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/stacks/many.c"), scratch.path("many"));
    run::run(&["cc", "-O2", "-pthread", "-o", &program, source].map(str::to_owned), &scratch.path("stderr"))?;
    reported(usage, &[&program, "1", &rounds.to_string()])
}

/// Compiles a small C program twenty times: each run is a driver, a compiler and an assembler.
fn gcc(scratch: &Scratch, usage: &str) -> anyhow::Result<Vec<String>> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/stacks/many.c");
    let script = format!("for run in $(seq 20); do gcc -O2 -c -o {} {source} || exit; done", scratch.path("many.o"));
    reported(usage, &["sh", "-c", &script])
}

/// Inserts rows into a new database, each in a transaction that is written to disk.
fn sqlite(scratch: &Scratch, usage: &str) -> anyhow::Result<Vec<String>> {
    let (database, script) = (scratch.path("database"), scratch.path("script"));
    let inserts: String = (0..500).map(|row| format!("insert into rows values ({row}, 'row {row}');\n")).collect();
    std::fs::write(&script, format!("create table rows (number, text);\n{inserts}")).with_context(|| script.clone())?;
    reported(usage, &["sh", "-c", &format!("rm -f {database}; exec sqlite3 {database} <{script}")])
}

fn program_under(case: Case, tool: Option<&Tool>, placement: Placement) -> anyhow::Result<Measured> {
    let scratch = Scratch::new()?;
    let usage = scratch.path("usage");
    let program = match case {
        Case::Stacks => many(&scratch, &usage, rounds(tool))?,
        Case::Gcc | Case::GccFiltered => gcc(&scratch, &usage)?,
        Case::Sqlite => sqlite(&scratch, &usage)?,
        _ => dd(&usage, bytes(tool))?,
    };
    let untraced = untraced(&placement.place(program.clone()), &usage)?;
    let file = scratch.path("lines");
    let output = if case == Case::ToDevNull { "/dev/null" } else { &file };
    let mut words = tool.map(|tool| tool.words(case, Some(output))).unwrap_or_default();
    words.extend(program);
    let errors = scratch.path("stderr");
    let ran = run::run(&placement.place(words), &errors)?.with_orphans();
    let counts = match tool {
        Some(tool) => Counts::of(tool.kind, case, &file, &errors)?,
        None => Counts::default(),
    };
    Ok(Measured::new(&ran, run::usage(&usage)?, untraced, counts))
}

/// Runs the program untraced, and returns its CPU time.
fn untraced(program: &[String], usage: &str) -> anyhow::Result<Duration> {
    run::run(program, "/dev/null")?;
    run::usage(usage)
}

/// Measures an untraced `dd` while a tracer follows a process that sleeps.
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

/// The pause before each start. After a tracer ends, the kernel still closes its tracepoints for a while, and an open
/// waits for that; the case measures a start without this wait.
const QUIET: Duration = Duration::from_secs(2);

/// Measures the time until the first line is printed, and until the tracer has ended.
fn start_and_end(case: Case, tool: Option<&Tool>, placement: Placement) -> anyhow::Result<Measured> {
    let mut words = tool.map(|tool| tool.words(case, None)).unwrap_or_default();
    words.push("true".to_owned());
    let words = placement.place(words);
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
