//! `rtrace check`: reports what this user can trace on this machine, what is missing, and which command enables it.
//!
//! What can be tried is tried, the rest is read from files. [`TracingSupport`] is gathered once, so that the report on
//! it is a pure function and can be tested for machines that are not available.

use super::{ExitCode, stdout};
use crate::arm;
use crate::bpf;
use crate::kernel::features::Features;
use crate::kernel::lockdown;
use crate::kernel::privileges::{Capability, LEVEL_MAX, Privileges};
use crate::kernel::refused::{self, Refused};
use crate::kernel::tracefs::{Tracefs, TracefsError};
use crate::kernel::{machine, syscall_event};
use crate::plan;
use crate::sys::file_capabilities;
use crate::sys::perf::{Attr, Counts, On, PerfEvent, StackFields};
use crate::text::os_error;
use anyhow::Context;
use std::io::{self, Write};

/// What this machine and the privileges of this user support.
#[derive(Debug)]
pub struct TracingSupport {
    pub release: String,
    /// Whether the kernel is locked down for confidentiality. If so, the other fields mean nothing.
    pub is_locked_down: bool,
    pub tracefs: Result<String, TracefsError>,
    /// The tracepoint ID of `raw_syscalls:sys_enter`; `None` if it does not exist or cannot be read.
    pub raw_syscalls: Option<u64>,
    /// The number of `syscalls:sys_enter_*` tracepoints.
    pub syscall_events: usize,
    /// Whether the event `probe:vfs_getname` exists.
    pub vfs_getname: bool,
    /// How many bytes of each string the records of `syscalls:` events have; `None` before Linux 6.19.
    pub copied_bytes: Option<u32>,
    pub privileges: Privileges,
    /// The number of CPUs that are online.
    pub cpus: usize,
    pub features: Features,
    /// Whether the kernel loads the BPF programs, or why not.
    pub bpf: Result<(), String>,
    /// Whether the privileges are those of rtrace's file, and not this user's.
    pub is_lent: bool,
}

/// A perf event to try to open. `event` is the ID of the tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The calling task on one CPU, inherited by its children: what tracing a command needs.
    OwnTask { event: u64 },
    /// All tasks on one CPU: what `-a` needs.
    WholeCpu { event: u64 },
}

/// Opens a perf event with perf_event_open(2) and closes it again.
pub type TryOpen<'a> = &'a dyn Fn(Attempt) -> io::Result<()>;

/// The state of an item, which is the first word of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ok,
    /// It works, with a limit that users may notice.
    Limited,
    Missing,
}

/// A line of the report.
struct Line {
    state: State,
    item: &'static str,
    finding: String,
    /// The command that enables the item.
    command: Option<String>,
}

impl TracingSupport {
    /// Reads /proc, sysfs and tracefs, and tries to load the BPF programs.
    ///
    /// # Errors
    /// /proc or sysfs is not mounted.
    pub fn gather() -> anyhow::Result<TracingSupport> {
        let release = machine::release()?;
        let tracefs = Tracefs::find();
        let readable = tracefs.as_ref().ok();
        let openat = readable.and_then(|tracefs| tracefs.format("syscalls", "sys_enter_openat").ok());
        let copies = openat.is_some_and(|format| !format.user_copies().is_empty());
        Ok(TracingSupport {
            raw_syscalls: readable.and_then(|tracefs| tracefs.id("raw_syscalls", "sys_enter").ok()),
            syscall_events: readable.map_or(0, |tracefs| tracefs.syscalls().len()),
            copied_bytes: copies.then(|| syscall_event::copy_limit(&release)),
            vfs_getname: readable.is_some_and(plan::has_vfs_getname),
            privileges: Privileges::read(),
            cpus: machine::online_cpus()?.len(),
            features: Features::find(readable),
            bpf: bpf(&tracefs),
            is_locked_down: lockdown::refuses(),
            is_lent: file_capabilities::are_present(),
            tracefs: tracefs.map(|tracefs| match tracefs.root() {
                root if root.is_mounted() => root.to_string(),
                _ => "not mounted; rtrace mounts it for itself, where nobody else sees it".to_owned(),
            }),
            release,
        })
    }
}

/// Tries to load the BPF programs. The error is the sentence that says why they cannot trace here.
fn bpf(tracefs: &Result<Tracefs, TracefsError>) -> Result<(), String> {
    if let (Err(error), true) = (tracefs, bpf::may_be_interrupted()) {
        return Err(format!("on this kernel its programs are attached to tracepoints, which cannot be found: {error}"));
    }
    arm::try_bpf().map_err(|error| format!("{error:#}"))
}

/// Prints the report on stdout. The exit status says whether rtrace can trace commands that this user starts.
///
/// # Errors
/// Those of [`TracingSupport::gather`], or stdout cannot be written.
pub fn check() -> anyhow::Result<ExitCode> {
    let support = TracingSupport::gather()?;
    let mut text = Vec::new();
    let code = report(&support, &try_open, &mut text).context("cannot write the report")?;
    stdout::print(&text).map(|_| code)
}

/// Opens a perf event on the first CPU that is online, and closes it again.
fn try_open(attempt: Attempt) -> io::Result<()> {
    let (event, on) = match attempt {
        Attempt::OwnTask { event } => (event, On::Task(0)),
        Attempt::WholeCpu { event } => (event, On::Everyone),
    };
    let cpu = machine::online_cpus().ok().and_then(|cpus| cpus.first().copied()).unwrap_or(0);
    let attr =
        Attr { counts: Counts::Tracepoint(event), inherit: matches!(on, On::Task(_)), watermark: 4096, stack: StackFields::default() };
    PerfEvent::open(&attr, on, cpu).map(drop)
}

/// Writes one line per item: its state, its name, what was found, and after `; run:` the command that enables it.
///
/// # Errors
/// Those of the writer.
pub fn report(support: &TracingSupport, try_open: TryOpen, out: &mut impl Write) -> io::Result<ExitCode> {
    if support.is_locked_down {
        let lines = [Line::ok("kernel", support.release.clone()), Line::missing("engine", lockdown::REFUSES)];
        return write_lines(&lines, out).map(|()| ExitCode::Failed);
    }
    let own = attempt(support, try_open, "own commands", |event| Attempt::OwnTask { event });
    let without_tracefs = support.tracefs.is_err() && support.bpf.is_ok();
    let works = own.state != State::Missing || without_tracefs;
    let everything = match support.is_lent {
        true => Line::missing("whole machine", "rtrace lends its privileges only for programs of the caller (man rtrace, SECURITY)")
            .by("sudo rtrace"),
        false => attempt(support, try_open, "whole machine", |event| Attempt::WholeCpu { event }),
    };
    let mut lines = vec![
        Line::ok("kernel", support.release.clone()),
        tracefs(support),
        raw_syscalls(support),
        syscall_events(support),
        privileges(&support.privileges),
        own,
        everything,
        ring_memory(support),
        descriptors(support),
    ];
    lines.extend(probes(support));
    lines.extend(needs_of_bpf(support));
    lines.push(path_names(support));
    lines.push(match without_tracefs {
        true => Line::limited("engine", "bpf: only syscalls, no signals and no other events"),
        false => engine(works, &support.bpf),
    });
    write_lines(&lines, out)?;
    Ok(if works { ExitCode::Success } else { ExitCode::Failed })
}

fn write_lines(lines: &[Line], out: &mut impl Write) -> io::Result<()> {
    for line in lines {
        let command = line.command.as_ref().map(|command| format!("; run: {command}")).unwrap_or_default();
        writeln!(out, "{:<8} {:<16} {}{command}", line.state.word(), line.item, line.finding)?;
    }
    Ok(())
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        }
    }
}

impl Line {
    fn ok(item: &'static str, finding: impl Into<String>) -> Line {
        Line { state: State::Ok, item, finding: finding.into(), command: None }
    }

    fn missing(item: &'static str, finding: impl Into<String>) -> Line {
        Line { state: State::Missing, item, finding: finding.into(), command: None }
    }

    fn limited(item: &'static str, finding: impl Into<String>) -> Line {
        Line { state: State::Limited, item, finding: finding.into(), command: None }
    }

    fn by(self, command: impl Into<String>) -> Line {
        Line { command: Some(command.into()), ..self }
    }

    /// Adds what makes the kernel permit a system call that needs these capabilities: the command, or a sentence of
    /// advice if no command here helps (in a container, or under a seccomp filter).
    fn granted(self, call: &str, privileges: &Privileges, needed: &[Capability], command: &str) -> Line {
        match Refused::of(privileges, needed) {
            Refused::NotRoot => self.by(command),
            _ => Line { finding: format!("{}; {}", self.finding, refused::advice(call, privileges, needed)), ..self },
        }
    }
}

fn tracefs(support: &TracingSupport) -> Line {
    match &support.tracefs {
        Ok(root) => Line::ok("tracefs", root.as_str()),
        Err(TracefsError::NotMounted(why)) => match why.command() {
            Some(command) => Line::missing("tracefs", "not mounted").by(command),
            None => Line::missing("tracefs", format!("not mounted, and {why}")),
        },
        Err(TracefsError::NoPermission { path, .. }) if support.is_lent && support.bpf.is_ok() => {
            Line::ok("tracefs", format!("this user may not read {}, and does not need to on this kernel", path.display()))
        }
        Err(TracefsError::NoPermission { path, mode, uid, gid }) => {
            Line::missing("tracefs", format!("{} has mode {mode:03o}, owner {uid}:{gid}", path.display()))
                .by(format!("sudo mount -o remount,mode=750,gid=$(id -g) {}", path.display()))
        }
        Err(error) => Line::missing("tracefs", error.to_string()),
    }
}

fn raw_syscalls(support: &TracingSupport) -> Line {
    match (support.raw_syscalls, &support.tracefs) {
        (Some(_), _) => Line::ok("raw_syscalls", "all syscalls, including those of 32-bit programs"),
        (None, Ok(_)) => {
            Line::missing("raw_syscalls", "this kernel was built without CONFIG_HAVE_SYSCALL_TRACEPOINTS: another kernel is needed")
        }
        (None, Err(_)) => Line::missing("raw_syscalls", "unknown without tracefs"),
    }
}

fn syscall_events(support: &TracingSupport) -> Line {
    let strings = match support.copied_bytes {
        Some(bytes) => format!("with {bytes} bytes of each string"),
        None => "without strings (Linux 6.19 and later have them)".to_owned(),
    };
    match (support.syscall_events, &support.tracefs) {
        (0, Ok(_)) => {
            Line::limited("syscalls events", "this kernel was built without CONFIG_FTRACE_SYSCALLS: rtrace uses raw_syscalls for all calls")
        }
        (0, Err(_)) => Line::missing("syscalls events", "unknown without tracefs"),
        (count, _) => Line::ok("syscalls events", format!("{count}, {strings}")),
    }
}

/// Reports kernel.perf_event_paranoid and CAP_PERFMON. Whether they suffice, [`attempt`] finds out by trying.
fn privileges(privileges: &Privileges) -> Line {
    let level = match privileges.paranoid {
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None => return Line::missing("perf events", "this kernel was built without CONFIG_PERF_EVENTS: another kernel is needed"),
    };
    let holds = if privileges.has(Capability::PerfMon) { "with" } else { "without" };
    let finding = format!("{level}, {holds} cap_perfmon");
    if privileges.has(Capability::PerfMon) && privileges.is_above_perfmon() {
        let finding =
            format!("{finding}, which may not be enough: kernels of Debian and Ubuntu require cap_sys_admin above level {LEVEL_MAX}");
        return Line::limited("perf events", finding).by(format!("sudo sysctl kernel.perf_event_paranoid={LEVEL_MAX}"));
    }
    if privileges.may_read_tracepoints() {
        Line::ok("perf events", finding)
    } else {
        let limited = Line::limited("perf events", format!("{finding}: this user may not open every tracepoint"));
        limited.granted("perf_event_open", privileges, &[Capability::PerfMon], GRANT)
    }
}

/// The command that lets a user trace programs of his own.
const GRANT: &str = "rtrace check --setup";

fn attempt(support: &TracingSupport, try_open: TryOpen, item: &'static str, of: impl Fn(u64) -> Attempt) -> Line {
    let Some(event) = support.raw_syscalls else {
        return Line::missing(item, "not tried, because the ID of the tracepoint raw_syscalls:sys_enter is unknown (see above)");
    };
    match try_open(of(event)) {
        Ok(()) => Line::ok(item, "perf_event_open works"),
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let error = os_error::without_error_numbers(&error.to_string());
                let missing = Line::missing(item, format!("perf_event_open: {error}"));
                missing.granted("perf_event_open", &support.privileges, &[Capability::PerfMon], GRANT)
            }
            _ => Line::missing(item, format!("perf_event_open: {error}")),
        },
    }
}

/// KiB of ring buffer per CPU that hold a burst of some 80,000 records.
const BURST_KIB: u64 = 8 * 1024;

fn ring_memory(support: &TracingSupport) -> Line {
    match support.privileges.ring_bytes_max(support.cpus) {
        None => Line::ok("ring memory", "unlimited"),
        Some(bytes) => {
            let kib = bytes / 1024;
            let state = if kib >= BURST_KIB { Line::ok } else { Line::limited };
            let line = state("ring memory", format!("{kib} KiB per CPU (kernel.perf_event_mlock_kb and ulimit -l)"));
            if line.state == State::Ok { line } else { line.by(format!("sudo sysctl kernel.perf_event_mlock_kb={}", BURST_KIB + 4)) }
        }
    }
}

/// Reports whether RLIMIT_NOFILE allows the perf events of a trace. Any trace opens a few on each CPU; each syscall
/// that is selected by its name adds two on each CPU.
fn descriptors(support: &TracingSupport) -> Line {
    const EVENTS_OF_A_PLAIN_TRACE: u64 = 12;
    let (soft, hard) = support.privileges.files;
    let needed = EVENTS_OF_A_PLAIN_TRACE * support.cpus as u64 + 64;
    let Some(limit) = hard.or(soft) else { return Line::ok("descriptors", "unlimited") };
    let names = limit.saturating_sub(needed) / (2 * support.cpus.max(1) as u64);
    if limit < needed {
        Line::missing("descriptors", format!("RLIMIT_NOFILE is at most {limit}, a trace on {} CPUs needs {needed}", support.cpus))
            .by(format!("ulimit -n {needed}"))
    } else {
        Line::ok("descriptors", format!("RLIMIT_NOFILE is at most {limit}: enough for {names} syscalls by name on {} CPUs", support.cpus))
    }
}

fn probes(support: &TracingSupport) -> Vec<Line> {
    if support.tracefs.is_err() {
        return vec![Line::missing("probes", "unknown without tracefs")];
    }
    let features = &support.features;
    let kinds = [
        ("kprobes", features.kprobes, "CONFIG_KPROBE_EVENTS"),
        ("fprobes", features.fprobes, "CONFIG_FPROBE_EVENTS"),
        ("uprobes", features.uprobes, "CONFIG_UPROBE_EVENTS"),
        ("eprobes", features.eprobes, "CONFIG_EPROBE_EVENTS"),
        ("synthetic events", features.synthetic, "CONFIG_SYNTH_EVENTS"),
        ("user_events", features.user_events, "CONFIG_USER_EVENTS"),
    ];
    let line = |(item, is_available, option)| match is_available {
        true => Line::ok(item, "available"),
        false => Line::missing(item, format!("this kernel was built without {option}")),
    };
    kinds.into_iter().map(line).collect()
}

fn needs_of_bpf(support: &TracingSupport) -> Vec<Line> {
    let btf = match support.features.btf {
        true => Line::ok("BTF", "/sys/kernel/btf/vmlinux"),
        false => Line::missing("BTF", "this kernel was built without CONFIG_DEBUG_INFO_BTF"),
    };
    let needed = [Capability::Bpf, Capability::PerfMon];
    let is_refused = support.bpf.as_ref().is_err_and(|why| arm::is_no_permission(why));
    let capability = match Refused::of(&support.privileges, &needed) {
        Refused::Filtered if is_refused => Line::missing("BPF", refused::advice("bpf", &support.privileges, &needed)),
        _ if support.privileges.has(Capability::Bpf) => Line::ok("BPF", "cap_bpf"),
        _ => Line::missing("BPF", "no cap_bpf").granted("bpf", &support.privileges, &needed, GRANT),
    };
    vec![btf, capability]
}

/// Reports the methods of `--strings-by` that work here, beginning with the one that `auto` selects.
fn path_names(support: &TracingSupport) -> Line {
    let copies = support.copied_bytes.map(|bytes| format!("events (cut to {bytes} bytes)"));
    let whole = [("getname", support.features.kprobes), ("vfs_getname", support.vfs_getname)]
        .into_iter()
        .filter(|(_, is_available)| *is_available)
        .map(|(method, _)| method.to_owned());
    let features = support.features;
    let at_exit = (features.eprobes && features.synthetic && features.histograms).then(|| "eprobe".to_owned());
    let methods: Vec<String> = whole.chain(copies).chain(at_exit).collect();
    match methods.first() {
        None => Line::missing("path names", "without BPF only addresses: this kernel supports no method of --strings-by"),
        Some(first) if first.starts_with("events") => Line::limited("path names", format!("without BPF: {}", methods.join(", "))),
        Some(_) => Line::ok("path names", format!("without BPF: {}", methods.join(", "))),
    }
}

/// Reports the engine that `--engine auto` selects.
fn engine(works: bool, bpf: &Result<(), String>) -> Line {
    match (works, bpf) {
        (true, Ok(())) => Line::ok("engine", "bpf: reads the memory of arguments and the files of descriptors during the call"),
        (true, Err(why)) => {
            Line::limited("engine", format!("tracepoint: addresses instead of strings; bpf: {}", os_error::without_error_numbers(why)))
        }
        (false, _) => Line::missing("engine", "none works for this user"),
    }
}

#[cfg(test)]
mod tests;
