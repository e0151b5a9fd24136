//! `rtrace check`: reports what this user can trace on this machine, what is missing, and which command enables it.
//!
//! What can be tried is tried, the rest is read from files. [`TracingSupport`] is gathered once, so that the report on
//! it is a pure function and can be tested for machines that are not available. A report consists of items, which are
//! printed as lines or as JSON objects.

mod item;
mod report;

use super::{ExitCode, json, stdout};
use crate::arm;
use crate::bpf;
use crate::kernel::features::Features;
use crate::kernel::lockdown;
use crate::kernel::privileges::Privileges;
use crate::kernel::tracefs::{Tracefs, TracefsError};
use crate::kernel::{machine, syscall_event};
use crate::plan;
use crate::request::AnswerFormat;
use crate::sys::file_capabilities;
use crate::sys::perf::{Attr, Counts, Delivery, On, PerfEvent, StackFields};
use item::Item;
use report::report;
use std::io;

/// What this machine and the privileges of this user support.
#[derive(Debug)]
pub struct TracingSupport {
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// Whether the kernel is locked down for confidentiality. If so, the other fields mean nothing.
    pub is_locked_down: bool,
    /// The path at which tracefs is mounted; `None` if it is not mounted but rtrace can mount it for itself.
    pub tracefs: Result<Option<String>, TracefsError>,
    /// The tracepoint ID of `raw_syscalls:sys_enter`; `None` if it does not exist or cannot be read.
    pub raw_syscalls: Option<u64>,
    /// The number of `syscalls:sys_enter_*` tracepoints.
    pub syscall_events: usize,
    /// Whether the event `probe:vfs_getname` exists.
    pub vfs_getname: bool,
    /// How many bytes of each string the records of `syscalls:` events have; `None` before Linux 6.19.
    pub copied_bytes: Option<u32>,
    /// The privileges of this process, with the limits that the kernel sets for users without privileges.
    pub privileges: Privileges,
    /// The number of CPUs that are online.
    pub cpus: usize,
    /// The kernel's kinds of dynamic events, and its BTF. Without a readable tracefs, only the BTF is known.
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

impl TracingSupport {
    /// Reads /proc, sysfs and tracefs, and tries to load the BPF programs.
    ///
    /// # Errors
    /// /proc or sysfs is not mounted.
    pub fn gather() -> anyhow::Result<TracingSupport> {
        let release = machine::release()?;
        let tracefs = Tracefs::find();
        let readable = tracefs.as_ref().ok();
        // A kernel that copies path names into the events of syscalls does so for openat(2).
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
            tracefs: tracefs.map(|tracefs| tracefs.root().is_mounted().then(|| tracefs.root().to_string())),
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
pub fn check(format: AnswerFormat) -> anyhow::Result<ExitCode> {
    let report = report(&TracingSupport::gather()?, &try_open);
    match format {
        AnswerFormat::Text => stdout::print(report.items.iter().map(Item::line).collect::<String>().as_bytes())?,
        AnswerFormat::Json => json::print("check", &report.items)?,
    };
    Ok(report.exit_code())
}

/// Opens a perf event on the first CPU that is online, and closes it again.
fn try_open(attempt: Attempt) -> io::Result<()> {
    let (event, on) = match attempt {
        Attempt::OwnTask { event } => (event, On::Task(0)),
        Attempt::WholeCpu { event } => (event, On::Everyone),
    };
    let cpu = machine::online_cpus().ok().and_then(|cpus| cpus.first().copied()).unwrap_or(0);
    let attr = Attr {
        counts: Counts::Tracepoint(event),
        inherit: matches!(on, On::Task(_)),
        watermark: 4096,
        stack: StackFields::default(),
        delivery: Delivery::Kept,
    };
    PerfEvent::attempt(&attr, on, cpu)
}

#[cfg(test)]
mod tests;
