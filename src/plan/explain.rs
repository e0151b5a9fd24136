//! Prints the plan for `-v`, and says what a user may not expect of it.

use super::{Mechanism, Plan};
use crate::request::{Target, TaskSelection, Trace};
use crate::session::Targets;
use crate::show::Mode;
use crate::sys::perf::{Counts, StackFields};
use std::fmt;

/// Describes which stack data an event's records have.
fn stack(fields: StackFields) -> String {
    let dump = if fields.bytes > 0 { format!(", with up to {} bytes of stack", fields.bytes) } else { String::new() };
    let chain = match (fields.user_chain, fields.kernel_chain) {
        (true, true) => ", with call chains of the program and the kernel",
        (true, false) => ", with call chains by frame pointers",
        (false, true) => ", with call chains of the kernel",
        (false, false) => "",
    };
    dump + chain
}

/// Returns a remark on a trace of the whole machine that prints nothing before the user ends it.
pub(super) fn without_end(request: &Trace) -> Option<String> {
    let is_endless = matches!(request.target, Target::Running { tasks: TaskSelection::All, timer: None });
    let what = match &request.recording {
        // A recorder in memory says how to get a snapshot.
        Some(recording) if recording.is_alone && recording.snapshots.is_none() => "recorded; Ctrl-C ends the recording",
        _ if request.show.mode == Mode::Summary && request.show.interval.is_none() => "counted; Ctrl-C ends the trace and prints the table",
        _ => return None,
    };
    is_endless.then(|| format!("all tasks are {what}"))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets = match &self.targets {
            Targets::Command => "the command and all tasks that it starts".to_owned(),
            Targets::Tasks { tids, .. } => format!("{} running threads and the tasks that they start", tids.len()),
            Targets::SystemWide => "all tasks of the machine".to_owned(),
            Targets::Cgroup(path) => format!("the tasks of cgroup {}", path.display()),
            Targets::User(uid) => format!("tasks of user {uid}, checked at each call"),
        };
        let engine = if self.bpf.is_some() { "bpf" } else { "tracepoint" };
        writeln!(f, "plan: engine {engine}, on {} CPUs: {targets}", self.cpus.len())?;
        let of_bpf = self.bpf.as_ref().map(|bpf| if bpf.sums { ", summed up in the kernel" } else { ", one record a call" });
        match &self.mechanism {
            Mechanism::None => writeln!(f, "plan: no syscalls")?,
            Mechanism::OwnEvents { why } => {
                let by = of_bpf
                    .map_or("the events of each syscall".to_owned(), |how| format!("BPF programs on the events of each syscall{how}"));
                writeln!(f, "plan: syscalls by {by}, because {why}; each call of another syscall costs about 20 ns")?;
                writeln!(f, "plan: these events do not fire for calls that 64-bit programs make by the 32-bit entry (int 0x80)")?;
            }
            Mechanism::Raw { why } => {
                let by = of_bpf.map_or("raw_syscalls".to_owned(), |how| format!("BPF programs on the tracepoints of all syscalls{how}"));
                let cost = if of_bpf.is_some() { 70 } else { 110 };
                writeln!(f, "plan: syscalls by {by}, because {why}; each call that is not traced costs about {cost} ns")?
            }
        }
        if self.bpf.as_ref().is_some_and(|bpf| bpf.failures || bpf.min_duration.is_some()) {
            writeln!(
                f,
                "plan: --duration and --failure are decided in the kernel, which writes no record for the calls that they exclude"
            )?;
        }
        if let Some(snapshots) = &self.snapshots {
            let kib = snapshots.side_band_ring >> 10;
            writeln!(f, "plan: rings are overwritten; records about tasks are kept, in a ring of {kib} KiB a CPU")?;
            match snapshots.matches.as_ref().map(|event| &event.filter) {
                Some(Some(filter)) => writeln!(f, "plan: --snapshot-on: raw_syscalls:sys_exit with the kernel's filter {filter}")?,
                Some(None) => writeln!(f, "plan: --snapshot-on: evaluated by the BPF programs, or true for all recorded calls")?,
                None => {}
            }
        }
        for event in &self.events {
            let filter = event.filter.as_ref().map(|text| format!(", the kernel lets through: {text}")).unwrap_or_default();
            let use_of = if event.spec.shown { "" } else { " (needed, not shown)" };
            let counted_by = match event.counts {
                _ if event.spec.is_by_instance() => ", read from a tracefs instance (perf events return no records of it)",
                Counts::Probe(_) => ", created by perf_event_open (not in tracefs)",
                _ => "",
            };
            writeln!(f, "plan: event {}{use_of}{counted_by}{}{filter}", event.spec.name, stack(event.stack))?;
        }
        write!(f, "{}", self.buffers)?;
        match self.fds {
            _ if self.bpf.as_ref().is_some_and(|bpf| bpf.sums) => {}
            _ if self.bpf.is_some() => writeln!(f, "plan: paths of descriptors are read in the kernel at each call")?,
            Ok(()) => writeln!(f, "plan: paths of descriptors are derived from the calls that open and close them")?,
            Err(why) => writeln!(f, "plan: paths of descriptors are not known: {why}")?,
        }
        write!(f, "{}", self.injector)?;
        if let Some(path_names) = &self.path_names {
            writeln!(f, "plan: {path_names}")?;
        }
        for out in &self.excluded {
            writeln!(f, "plan: left out: {} ({}), {}", out.pid, String::from_utf8_lossy(&out.comm).escape_debug(), out.reason)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}
