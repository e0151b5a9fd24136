//! Runs a command and measures the CPU time and memory of it and its descendants.

use crate::table::Counts;
use anyhow::{Context, bail};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The measurements of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// CPU time of the traced program alone.
    pub program_cpu: Duration,
    /// CPU time of the program in an untraced run just before.
    pub untraced_cpu: Duration,
    /// CPU time of the tracer and of everything else that it started.
    pub tracer_cpu: Duration,
    pub wall: Duration,
    pub first_line: Option<Duration>,
    pub counts: Counts,
    /// The peak memory of the largest process, in bytes.
    pub peak: u64,
}

/// The time and memory of a finished command and of its descendants that were waited for.
#[derive(Debug)]
pub struct Ran {
    wall: Duration,
    cpu: Duration,
    peak: u64,
}

impl Ran {
    /// Adds the processes that the command left running, so that a tracer's helpers count for the tracer.
    pub fn with_orphans(self) -> Ran {
        Ran { cpu: self.cpu + wait_for_orphans(), ..self }
    }
}

impl Measured {
    pub fn new(ran: &Ran, program_cpu: Duration, untraced_cpu: Duration, counts: Counts) -> Measured {
        let tracer_cpu = ran.cpu.saturating_sub(program_cpu);
        Measured { program_cpu, untraced_cpu, tracer_cpu, wall: ran.wall, first_line: None, counts, peak: ran.peak }
    }
}

/// Reads the CPU time that [`report_usage`] wrote.
pub fn usage(file: &str) -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{file}: the program did not run"))?;
    Ok(Duration::from_micros(text.trim().parse().with_context(|| format!("{file}: {text:?}"))?))
}

/// A directory for one run.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> anyhow::Result<Scratch> {
        let dir = std::env::temp_dir().join(format!("rtrace-peers-{}", std::process::id()));
        std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        Ok(Scratch(dir))
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a command to its end.
pub fn run(words: &[String], errors: &str) -> anyhow::Result<Ran> {
    let start = Instant::now();
    let child = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(errors)?).spawn();
    let child = child.with_context(|| words[0].clone())?;
    let (status, usage) = wait4(child.id() as i32).context("wait4")?;
    let wall = start.elapsed();
    if status != 0 {
        bail!("{}: wait status {status:#x}: {}", words.join(" "), std::fs::read_to_string(errors).unwrap_or_default());
    }
    Ok(Ran { wall, cpu: cpu(&usage), peak: usage.ru_maxrss as u64 * 1024 })
}

/// Waits for all children, including those whose first parent has ended, and returns their CPU time.
pub fn wait_for_orphans() -> Duration {
    std::iter::from_fn(|| wait4(-1)).map(|(_, usage)| cpu(&usage)).sum()
}

/// Makes orphaned descendants children of this process instead of init.
pub fn adopt_orphans() {
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// `usage FILE COMMAND...`: runs the command and writes the microseconds of CPU that it used to the file.
pub fn report_usage(file: &str, command: &[String]) -> anyhow::Result<()> {
    let [program, words @ ..] = command else { bail!("usage FILE COMMAND...") };
    let child = Command::new(program).args(words).spawn().with_context(|| program.clone())?;
    let (status, usage) = wait4(child.id() as i32).context("wait4")?;
    std::fs::write(file, cpu(&usage).as_micros().to_string()).with_context(|| file.to_owned())?;
    if status != 0 {
        bail!("{program}: wait status {status:#x}");
    }
    Ok(())
}

fn wait4(pid: i32) -> Option<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage, and both pointers are to live values of the right type.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    (waited > 0).then_some((status, usage))
}

fn cpu(usage: &libc::rusage) -> Duration {
    let time = |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
    time(usage.ru_utime) + time(usage.ru_stime)
}
