//! `rtrace check`: what works here as this user, what is missing, and the one command that gives it.
//!
//! What can be tried is tried; the rest is read from files. [`Facts`] are gathered once, so that the verdict on them is pure and can be tested for machines
//! that are not at hand.

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
use crate::sys::lent;
use crate::sys::perf::{Attr, Counts, On, PerfEvent, StackFields};
use crate::text::plain;
use anyhow::Context;
use std::io::{self, Write};

/// What is known of this machine and this user.
#[derive(Debug)]
pub struct Facts {
    pub release: String,
    /// The kernel is locked down for confidentiality: what else there is of it cannot be seen.
    pub is_locked_down: bool,
    pub tracefs: Result<String, TracefsError>,
    /// The number of `raw_syscalls:sys_enter`; `None` if it is not there or cannot be read.
    pub raw_syscalls: Option<u64>,
    /// How many `syscalls:sys_enter_*` there are.
    pub syscall_events: usize,
    /// The event `probe:vfs_getname` is there.
    pub vfs_getname: bool,
    /// The bytes of strings that `syscalls:` events bring along; `None` before Linux 6.19.
    pub copied_bytes: Option<u32>,
    pub privileges: Privileges,
    pub cpus: usize,
    pub features: Features,
    /// Why the kernel does not take the BPF programs, if it does not.
    pub bpf: Result<(), String>,
    /// The privileges are rtrace's, not this user's.
    pub is_lent: bool,
}

/// Something to try with perf_event_open(2), with the number of the tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The calling task on one CPU, inherited by what it makes: what a traced command needs.
    OwnTask { event: u64 },
    /// All of one CPU: what `-a` needs.
    WholeCpu { event: u64 },
}

/// Tries one thing; the event is closed again.
pub type TryOpen<'a> = &'a dyn Fn(Attempt) -> io::Result<()>;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ok,
    /// It works, with a bound that may be felt.
    Limited,
    Missing,
}

/// One line.
struct Line {
    state: State,
    thing: &'static str,
    what: String,
    /// What gives it, as a command.
    command: Option<String>,
}

impl Facts {
    /// Looks.
    ///
    /// # Errors
    /// /proc or sysfs is not mounted.
    pub fn gather() -> anyhow::Result<Facts> {
        let release = machine::release()?;
        let tracefs = Tracefs::find();
        let here = tracefs.as_ref().ok();
        let openat = here.and_then(|tracefs| tracefs.format("syscalls", "sys_enter_openat").ok());
        let copies = openat.is_some_and(|format| !format.user_copies().is_empty());
        Ok(Facts {
            raw_syscalls: here.and_then(|tracefs| tracefs.id("raw_syscalls", "sys_enter").ok()),
            syscall_events: here.map_or(0, |tracefs| tracefs.syscalls().len()),
            copied_bytes: copies.then(|| syscall_event::copy_limit(&release)),
            vfs_getname: here.is_some_and(plan::has_vfs_getname),
            privileges: Privileges::read(),
            cpus: machine::online_cpus()?.len(),
            features: Features::find(here),
            bpf: bpf(&tracefs),
            is_locked_down: lockdown::refuses(),
            is_lent: lent::is_lent(),
            tracefs: tracefs.map(|tracefs| match tracefs.root() {
                root if root.is_mounted() => root.to_string(),
                _ => "not mounted; rtrace reads it by a mount of its own that nobody else sees".to_owned(),
            }),
            release,
        })
    }
}

/// Whether the BPF programs can trace here.
fn bpf(tracefs: &Result<Tracefs, TracefsError>) -> Result<(), String> {
    if let (Err(error), true) = (tracefs, bpf::may_be_interrupted()) {
        return Err(format!("its programs are on events of this kernel, which cannot be found: {error}"));
    }
    arm::try_bpf().map_err(|error| format!("{error:#}"))
}

/// Prints the findings on stdout. The status says whether rtrace can trace this user's own commands.
///
/// # Errors
/// [`Facts::gather`]'s, or stdout cannot be written.
pub fn check() -> anyhow::Result<ExitCode> {
    let facts = Facts::gather()?;
    let mut text = Vec::new();
    let code = report(&facts, &try_open, &mut text).context("cannot make the report")?;
    stdout::print(&text).map(|_| code)
}

/// Opens what a trace would open first, on the first CPU that is online, and closes it again.
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

/// Writes one line a thing: state, thing, what it is, and after `; run:` the command.
///
/// # Errors
/// The writer's.
pub fn report(facts: &Facts, try_open: TryOpen, out: &mut impl Write) -> io::Result<ExitCode> {
    if facts.is_locked_down {
        let lines = [Line::ok("kernel", facts.release.clone()), Line::missing("engine", lockdown::REFUSES)];
        return write_lines(&lines, out).map(|()| ExitCode::Failed);
    }
    let own = attempt(facts, try_open, "own commands", |event| Attempt::OwnTask { event });
    let without_tracefs = facts.tracefs.is_err() && facts.bpf.is_ok();
    let works = own.state != State::Missing || without_tracefs;
    let everything = match facts.is_lent {
        true => Line::missing("whole machine", "rtrace lends its privileges for a caller's own programs alone (man rtrace, SECURITY)")
            .by("sudo rtrace"),
        false => attempt(facts, try_open, "whole machine", |event| Attempt::WholeCpu { event }),
    };
    let mut lines = vec![
        Line::ok("kernel", facts.release.clone()),
        tracefs(facts),
        raw_syscalls(facts),
        syscall_events(facts),
        privileges(&facts.privileges),
        own,
        everything,
        ring_memory(facts),
        descriptors(facts),
    ];
    lines.extend(probes(facts));
    lines.extend(needs_of_bpf(facts));
    lines.push(path_names(facts));
    lines.push(match without_tracefs {
        true => Line::limited("engine", "bpf: only syscalls, no signals and no other events"),
        false => engine(works, &facts.bpf),
    });
    write_lines(&lines, out)?;
    Ok(if works { ExitCode::Success } else { ExitCode::Failed })
}

fn write_lines(lines: &[Line], out: &mut impl Write) -> io::Result<()> {
    for line in lines {
        let command = line.command.as_ref().map(|command| format!("; run: {command}")).unwrap_or_default();
        writeln!(out, "{:<8} {:<16} {}{command}", line.state.word(), line.thing, line.what)?;
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
    fn ok(thing: &'static str, what: impl Into<String>) -> Line {
        Line { state: State::Ok, thing, what: what.into(), command: None }
    }

    fn missing(thing: &'static str, what: impl Into<String>) -> Line {
        Line { state: State::Missing, thing, what: what.into(), command: None }
    }

    fn limited(thing: &'static str, what: impl Into<String>) -> Line {
        Line { state: State::Limited, thing, what: what.into(), command: None }
    }

    fn by(self, command: impl Into<String>) -> Line {
        Line { command: Some(command.into()), ..self }
    }

    /// What gives a call that these capabilities are needed for: this command, unless that has to be done outside a container.
    fn granted(self, call: &str, may: &Privileges, needed: &[Capability], command: &str) -> Line {
        match Refused::of(may, needed) {
            Refused::NotRoot => self.by(command),
            _ => Line { what: format!("{}; {}", self.what, refused::advice(call, may, needed)), ..self },
        }
    }
}

fn tracefs(facts: &Facts) -> Line {
    match &facts.tracefs {
        Ok(root) => Line::ok("tracefs", root.as_str()),
        Err(TracefsError::NotMounted(why)) => match why.command() {
            Some(command) => Line::missing("tracefs", "not mounted").by(command),
            None => Line::missing("tracefs", format!("not mounted, and {why}")),
        },
        Err(TracefsError::NoPermission { path, .. }) if facts.is_lent && facts.bpf.is_ok() => {
            Line::ok("tracefs", format!("{} is not for this user, who needs it for nothing here", path.display()))
        }
        Err(TracefsError::NoPermission { path, mode, uid, gid }) => {
            Line::missing("tracefs", format!("{} has mode {mode:03o}, owner {uid}:{gid}", path.display()))
                .by(format!("sudo mount -o remount,mode=750,gid=$(id -g) {}", path.display()))
        }
        Err(error) => Line::missing("tracefs", error.to_string()),
    }
}

fn raw_syscalls(facts: &Facts) -> Line {
    match (facts.raw_syscalls, &facts.tracefs) {
        (Some(_), _) => Line::ok("raw_syscalls", "every syscall, 32-bit ones too"),
        (None, Ok(_)) => {
            Line::missing("raw_syscalls", "this kernel was built without CONFIG_HAVE_SYSCALL_TRACEPOINTS: another kernel is needed")
        }
        (None, Err(_)) => Line::missing("raw_syscalls", "cannot be seen without tracefs"),
    }
}

fn syscall_events(facts: &Facts) -> Line {
    let strings = match facts.copied_bytes {
        Some(bytes) => format!("with {bytes} bytes of each string"),
        None => "without strings (these come with Linux 6.19)".to_owned(),
    };
    match (facts.syscall_events, &facts.tracefs) {
        (0, Ok(_)) => {
            Line::limited("syscalls events", "this kernel was built without CONFIG_FTRACE_SYSCALLS: all goes through raw_syscalls")
        }
        (0, Err(_)) => Line::missing("syscalls events", "cannot be seen without tracefs"),
        (count, _) => Line::ok("syscalls events", format!("{count}, {strings}")),
    }
}

/// Level and capability; whether they suffice is tried, not concluded.
fn privileges(privileges: &Privileges) -> Line {
    let level = match privileges.paranoid {
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None => return Line::missing("perf events", "this kernel was built without CONFIG_PERF_EVENTS: another kernel is needed"),
    };
    let holds = if privileges.has(Capability::PerfMon) { "with" } else { "without" };
    let what = format!("{level}, {holds} cap_perfmon");
    if privileges.has(Capability::PerfMon) && privileges.is_above_perfmon() {
        let what = format!("{what}, which may not be enough: kernels of Debian and Ubuntu ask for cap_sys_admin above {LEVEL_MAX}");
        return Line::limited("perf events", what).by(format!("sudo sysctl kernel.perf_event_paranoid={LEVEL_MAX}"));
    }
    if privileges.may_read_tracepoints() {
        Line::ok("perf events", what)
    } else {
        let limited = Line::limited("perf events", format!("{what}: not every tracepoint is open to this user"));
        limited.granted("perf_event_open", privileges, &[Capability::PerfMon], GRANT)
    }
}

/// What lets a user trace his own programs.
const GRANT: &str = "rtrace check --setup";

fn attempt(facts: &Facts, try_open: TryOpen, thing: &'static str, of: impl Fn(u64) -> Attempt) -> Line {
    let Some(event) = facts.raw_syscalls else { return Line::missing(thing, "not tried: the tracepoint's number is unknown (see above)") };
    match try_open(of(event)) {
        Ok(()) => Line::ok(thing, "perf_event_open works"),
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let error = plain::without_numbers(&error.to_string());
                let missing = Line::missing(thing, format!("perf_event_open: {error}"));
                missing.granted("perf_event_open", &facts.privileges, &[Capability::PerfMon], GRANT)
            }
            _ => Line::missing(thing, format!("perf_event_open: {error}")),
        },
    }
}

/// Ring memory a CPU that holds a burst of some 80,000 records.
const BURST_KIB: u64 = 8 * 1024;

fn ring_memory(facts: &Facts) -> Line {
    match facts.privileges.ring_bytes_max(facts.cpus) {
        None => Line::ok("ring memory", "unlimited"),
        Some(bytes) => {
            let kib = bytes / 1024;
            let state = if kib >= BURST_KIB { Line::ok } else { Line::limited };
            let line = state("ring memory", format!("{kib} KiB per CPU (kernel.perf_event_mlock_kb and ulimit -l)"));
            if line.state == State::Ok { line } else { line.by(format!("sudo sysctl kernel.perf_event_mlock_kb={}", BURST_KIB + 4)) }
        }
    }
}

/// A few events are open on every CPU for any trace; naming many syscalls adds two a name and CPU.
fn descriptors(facts: &Facts) -> Line {
    const EVENTS_OF_A_PLAIN_TRACE: u64 = 12;
    let (soft, hard) = facts.privileges.files;
    let needed = EVENTS_OF_A_PLAIN_TRACE * facts.cpus as u64 + 64;
    let Some(limit) = hard.or(soft) else { return Line::ok("descriptors", "unlimited") };
    let names = limit.saturating_sub(needed) / (2 * facts.cpus.max(1) as u64);
    if limit < needed {
        Line::missing("descriptors", format!("RLIMIT_NOFILE is at most {limit}, a trace on {} CPUs needs {needed}", facts.cpus))
            .by(format!("ulimit -n {needed}"))
    } else {
        Line::ok("descriptors", format!("RLIMIT_NOFILE is at most {limit}: room for {names} events by name on {} CPUs", facts.cpus))
    }
}

fn probes(facts: &Facts) -> Vec<Line> {
    if facts.tracefs.is_err() {
        return vec![Line::missing("probes", "cannot be seen without tracefs")];
    }
    let features = &facts.features;
    let kinds = [
        ("kprobes", features.kprobes, "CONFIG_KPROBE_EVENTS"),
        ("fprobes", features.fprobes, "CONFIG_FPROBE_EVENTS"),
        ("uprobes", features.uprobes, "CONFIG_UPROBE_EVENTS"),
        ("eprobes", features.eprobes, "CONFIG_EPROBE_EVENTS"),
        ("synthetic events", features.synthetic, "CONFIG_SYNTH_EVENTS"),
        ("user_events", features.user_events, "CONFIG_USER_EVENTS"),
    ];
    let line = |(thing, there, option)| match there {
        true => Line::ok(thing, "available"),
        false => Line::missing(thing, format!("this kernel was built without {option}")),
    };
    kinds.into_iter().map(line).collect()
}

fn needs_of_bpf(facts: &Facts) -> Vec<Line> {
    let btf = match facts.features.btf {
        true => Line::ok("BTF", "/sys/kernel/btf/vmlinux"),
        false => Line::missing("BTF", "this kernel was built without CONFIG_DEBUG_INFO_BTF"),
    };
    let needed = [Capability::Bpf, Capability::PerfMon];
    let is_refused = facts.bpf.as_ref().is_err_and(|why| arm::is_no_permission(why));
    let capability = match Refused::of(&facts.privileges, &needed) {
        Refused::Filtered if is_refused => Line::missing("BPF", refused::advice("bpf", &facts.privileges, &needed)),
        _ if facts.privileges.has(Capability::Bpf) => Line::ok("BPF", "cap_bpf"),
        _ => Line::missing("BPF", "no cap_bpf").granted("bpf", &facts.privileges, &needed, GRANT),
    };
    vec![btf, capability]
}

/// The ways of `--strings-by`, that which is taken first.
fn path_names(facts: &Facts) -> Line {
    let copies = facts.copied_bytes.map(|bytes| format!("events (cut to {bytes} bytes)"));
    let whole = [("getname", facts.features.kprobes), ("vfs_getname", facts.vfs_getname)]
        .into_iter()
        .filter(|(_, there)| *there)
        .map(|(way, _)| way.to_owned());
    let features = facts.features;
    let at_exit = (features.eprobes && features.synthetic && features.histograms).then(|| "eprobe".to_owned());
    let ways: Vec<String> = whole.chain(copies).chain(at_exit).collect();
    match ways.first() {
        None => Line::missing("path names", "without BPF only addresses: this kernel has none of the ways of --strings-by"),
        Some(way) if way.starts_with("events") => Line::limited("path names", format!("without BPF: {}", ways.join(", "))),
        Some(_) => Line::ok("path names", format!("without BPF: {}", ways.join(", "))),
    }
}

/// What `--engine auto` takes.
fn engine(works: bool, bpf: &Result<(), String>) -> Line {
    match (works, bpf) {
        (true, Ok(())) => Line::ok("engine", "bpf: arguments' memory and descriptors' files are read at the call"),
        (true, Err(why)) => {
            Line::limited("engine", format!("tracepoint: addresses instead of strings; bpf: {}", plain::without_numbers(why)))
        }
        (false, _) => Line::missing("engine", "none works for this user"),
    }
}

#[cfg(test)]
mod tests;
