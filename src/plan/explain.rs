//! The plan in words, for `-v`.

use super::{Mechanism, Plan};
use crate::session::Whom;
use crate::sys::perf::{Counts, StackFields};
use std::fmt;

/// What of the stack comes with an event.
fn stack(fields: StackFields) -> String {
    let dump = if fields.bytes > 0 { format!(", with up to {} bytes of stack", fields.bytes) } else { String::new() };
    let chain = match (fields.user_chain, fields.kernel_chain) {
        (true, true) => ", with frames of program and kernel",
        (true, false) => ", with frames by frame pointers",
        (false, true) => ", with frames of the kernel",
        (false, false) => "",
    };
    dump + chain
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whom = match &self.whom {
            Whom::Command => "the command and all that it starts".to_owned(),
            Whom::Tasks { tids, .. } => format!("{} threads that are there, and what they start", tids.len()),
            Whom::Everyone => "everything that runs".to_owned(),
            Whom::Cgroup(path) => format!("the tasks of cgroup {}", path.display()),
            Whom::User(uid) => format!("what is of user {uid} when it makes a call"),
        };
        let engine = if self.bpf.is_some() { "bpf" } else { "tracepoint" };
        writeln!(f, "plan: engine {engine}, on {} CPUs: {whom}", self.cpus.len())?;
        let of_bpf = self.bpf.as_ref().map(|bpf| if bpf.sums { ", summed up in the kernel" } else { ", one record a call" });
        match &self.mechanism {
            Mechanism::None => writeln!(f, "plan: no syscalls")?,
            Mechanism::OwnEvents { why } => {
                let by = of_bpf.map_or("events of their own".to_owned(), |how| format!("BPF programs on events of their own{how}"));
                writeln!(f, "plan: syscalls by {by}, because {why}; a call of another kind costs some 20 ns")?;
                writeln!(f, "plan: these events do not see calls by the 32-bit entry (int 0x80) of 64-bit programs")?;
            }
            Mechanism::Raw { why } => {
                let by = of_bpf.map_or("raw_syscalls".to_owned(), |how| format!("BPF programs on all calls{how}"));
                let cost = if of_bpf.is_some() { 70 } else { 110 };
                writeln!(f, "plan: syscalls by {by}, because {why}; a call that is not wanted costs some {cost} ns")?
            }
        }
        if self.bpf.as_ref().is_some_and(|bpf| bpf.failures || bpf.least.is_some()) {
            writeln!(f, "plan: --duration and --failure are decided in the kernel: calls that are left out have no record")?;
        }
        for event in &self.events {
            let filter = event.filter.as_ref().map(|text| format!(", the kernel lets through: {text}")).unwrap_or_default();
            let use_of = if event.spec.shown { "" } else { " (needed, not shown)" };
            let way = match event.counts {
                _ if event.spec.is_by_instance() => ", by a tracefs instance (perf gives nothing of it)",
                Counts::Probe(_) => ", made by opening it (nothing of it is in tracefs)",
                _ => "",
            };
            writeln!(f, "plan: event {}{use_of}{way}{}{filter}", event.spec.name, stack(event.stack))?;
        }
        write!(f, "{}", self.buffers)?;
        match self.fds {
            _ if self.bpf.as_ref().is_some_and(|bpf| bpf.sums) => {}
            _ if self.bpf.is_some() => writeln!(f, "plan: paths of descriptors are read from the kernel at the call")?,
            Ok(()) => writeln!(f, "plan: paths of descriptors are followed")?,
            Err(why) => writeln!(f, "plan: paths of descriptors are not known: {why}")?,
        }
        if let Some(path_names) = &self.path_names {
            writeln!(f, "plan: {path_names}")?;
        }
        for out in &self.excluded {
            writeln!(f, "plan: left out: {} ({}), {}", out.pid, String::from_utf8_lossy(&out.comm).escape_debug(), out.reason)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}
