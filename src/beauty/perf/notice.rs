//! The lines of what is no call: tracepoints, page faults, signals, the ends of tasks, gaps.

use super::{Known, Perf, value};
use crate::beauty::signal;
use crate::beauty::tracepoint::Decoder;
use crate::beauty::value::Value;
use crate::event::{Caller, Event, EventIndex, Fault, Loss, MapRef, Signal, TaskEnd};
use crate::session::{EventSpec, Session};
use crate::text::{escape, number};
use owo_colors::Color;
use owo_colors::colors::Red;

impl Perf {
    /// A tracepoint's line: `subsystem:name(field: value, ...)`. That of a return probe begins with where the function returned to: `caller+0x1a <- function`.
    pub(super) fn tracepoint(
        &mut self,
        out: &mut Vec<u8>,
        event: &Event,
        (index, spec): (EventIndex, &EventSpec),
        (raw, caller): (&[u8], Option<&Caller>),
        known: &Known,
    ) {
        self.head(out, event, Some(event.time), None);
        escape::plain(out, spec.terms.name.as_ref().unwrap_or(&spec.name).as_bytes());
        out.push(b'(');
        let place = usize::from(index.0);
        if self.tracepoints.len() <= place {
            self.tracepoints.resize_with(place + 1, || None);
        }
        if let Some(format) = &spec.format {
            let Session { abi, copied_bytes, .. } = known.session;
            let decoder =
                self.tracepoints[place].get_or_insert_with(|| Decoder::new(format, spec.terms.function.as_deref(), *abi, *copied_bytes));
            // What a probe fetches was asked for one by one, and that it is nothing is an answer.
            let zeros = self.show.zeros || !self.show.arg_names || decoder.is_of_probe();
            let mut is_first = true;
            if let Some((function, returned_to)) = decoder.returned(raw) {
                returns(
                    out,
                    (function, spec.terms.function.as_deref()),
                    (returned_to, caller.map(|caller| (event.task.pid, caller))),
                    known,
                );
                is_first = false;
            }
            for (field, value) in decoder.decode(raw, known.comm).iter().filter(|(_, value)| zeros || !value::is_nothing(value)) {
                if !std::mem::take(&mut is_first) {
                    out.extend_from_slice(b", ");
                }
                if self.show.arg_names {
                    escape::plain(out, field.as_bytes());
                    out.extend_from_slice(b": ");
                }
                match value {
                    Value::Code(address) => code(out, *address, known),
                    value => value::write(out, value, self.show.prefixes),
                }
            }
        }
        out.extend_from_slice(b")\n");
    }

    pub(super) fn fault(&mut self, out: &mut Vec<u8>, event: &Event, fault: &Fault) {
        self.head(out, event, Some(event.time), None);
        out.extend_from_slice(if fault.major { b"majfault [" } else { b"minfault [" });
        place(out, fault.ip_at.as_ref(), b"+", fault.ip);
        out.extend_from_slice(b"] => ");
        place(out, fault.address_at.as_ref(), b"@", fault.address);
        out.extend_from_slice(match &fault.address_at {
            Some(map) if map.executable => b" (x",
            Some(_) => b" (d",
            None => b" (?",
        });
        let in_kernel = fault.address >> 63 == 1;
        out.extend_from_slice(if in_kernel { b"k)\n" } else { b".)\n" });
    }

    /// A signal as strace shows it: `--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=123 (sh), si_uid=0} ---`, without what is not known.
    pub(super) fn signal(&mut self, out: &mut Vec<u8>, event: &Event, signal: &Signal, known: &Known) {
        self.head(out, event, Some(event.time), None);
        out.extend_from_slice(b"--- ");
        signal::write_name(out, signal.number);
        out.extend_from_slice(b" {si_signo=");
        signal::write_name(out, signal.number);
        if let Some(errno) = signal.errno.filter(|errno| *errno != 0) {
            member(out, "si_errno");
            number::int(out, i64::from(errno));
        }
        if let Some(code) = signal.code {
            member(out, "si_code");
            match signal::code_name(signal.number, code) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => number::int(out, i64::from(code)),
            }
        }
        members(out, signal, known);
        out.extend_from_slice(b"} ---\n");
    }

    pub(super) fn task_end(&mut self, out: &mut Vec<u8>, event: &Event, end: TaskEnd) {
        self.head(out, event, Some(event.time), None);
        match end {
            TaskEnd::Exited(status) => {
                out.extend_from_slice(b"+++ exited with ");
                number::int(out, i64::from(status));
            }
            TaskEnd::Killed(signal) => {
                out.extend_from_slice(b"+++ killed by ");
                signal::write_name(out, signal);
            }
            TaskEnd::Unknown => out.extend_from_slice(b"+++ exited with ?"),
            TaskEnd::NotTraced => out.extend_from_slice(b"+++ not traced any more: a set-user-ID program"),
        }
        out.extend_from_slice(b" +++\n");
    }

    /// The line of a gap. It concerns a ring, so it names no task.
    pub(super) fn lost(&mut self, out: &mut Vec<u8>, event: &Event, loss: Loss) {
        self.when(out, Some(event.cpu), Some(event.time), None);
        self.lost_records(out, loss.records);
        out.extend_from_slice(b" on CPU ");
        number::uint(out, u64::from(event.cpu));
        match loss.after {
            Some(after) => {
                out.extend_from_slice(b" between ");
                self.stamps.moment(out, after);
                out.extend_from_slice(b" and ");
            }
            None => out.extend_from_slice(b" before "),
        }
        self.stamps.moment(out, event.time);
        out.push(b'\n');
    }

    /// The line of records that the kernel counted as lost without a record in their place: those of a ring that stayed full to the end; or of `gaps` that have lines which do not
    /// say how many.
    pub fn lost_somewhere(&mut self, out: &mut Vec<u8>, records: u64, gaps: bool) {
        self.when(out, None, None, None);
        self.lost_records(out, Some(records));
        out.extend_from_slice(if gaps {
            b" where it says some, or at times that are not known\n"
        } else {
            b" at times that are not known\n"
        });
    }

    fn lost_records(&self, out: &mut Vec<u8>, records: Option<u64>) {
        self.colored(out, Red::ANSI_FG, |out| {
            out.extend_from_slice(b"LOST ");
            match records {
                Some(records) => number::uint(out, records),
                None => out.extend_from_slice(b"some"),
            }
            out.extend_from_slice(if records == Some(1) { b" record" } else { b" records" });
        });
    }
}

fn member(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b", ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
}

/// What this kind of signal has beside its code.
fn members(out: &mut Vec<u8>, signal: &Signal, known: &Known) {
    let of = &signal.members;
    if let Some(pid) = of.pid {
        member(out, "si_pid");
        number::int(out, i64::from(pid));
        let of_number = || (known.comm)(pid).filter(|_| signal.pids_are_known);
        if let Some(comm) = signal.sender.and_then(|sender| (known.comm)(sender.tid)).or_else(of_number) {
            out.extend_from_slice(b" (");
            escape::plain(out, &comm);
            out.push(b')');
        }
    }
    if let Some(uid) = of.uid {
        member(out, "si_uid");
        number::uint(out, u64::from(uid));
    }
    if let Some(status) = of.status {
        member(out, "si_status");
        match signal.code {
            Some(libc::CLD_EXITED) => number::int(out, i64::from(status)),
            _ => signal::write_name(out, status),
        }
    }
    let pointer = |out: &mut Vec<u8>, name, address: Option<u64>| {
        if let Some(address) = address {
            member(out, name);
            out.extend_from_slice(b"0x");
            number::hex_digits(out, address);
        }
    };
    let decimal = |out: &mut Vec<u8>, name, value: Option<i64>| {
        if let Some(value) = value {
            member(out, name);
            number::int(out, value);
        }
    };
    pointer(out, "si_addr", of.address);
    decimal(out, "si_timerid", of.timer.map(i64::from));
    decimal(out, "si_overrun", of.overrun.map(i64::from));
    decimal(out, "si_int", of.value.map(|value| i64::from(value as i32)));
    pointer(out, "si_ptr", of.value);
    decimal(out, "si_band", of.band);
    decimal(out, "si_fd", of.fd.map(i64::from));
    pointer(out, "si_call_addr", of.call_address);
    decimal(out, "si_syscall", of.call.map(i64::from));
    pointer(out, "si_arch", of.arch.map(u64::from));
}

/// `caller+0x1a <- function`
fn returns(out: &mut Vec<u8>, (function, name): (u64, Option<&str>), (returned_to, caller): (u64, Option<(i32, &Caller)>), known: &Known) {
    match caller {
        Some((pid, caller)) => match known.names.function(pid, &caller.frame) {
            Some((name, offset)) => behind(out, &name, offset),
            None => place(out, Some(&caller.place), b"+", returned_to),
        },
        None => code(out, returned_to, known),
    }
    out.extend_from_slice(b" <- ");
    match name {
        Some(name) => escape::plain(out, name.as_bytes()),
        None => code(out, function, known),
    }
}

/// An address of the kernel's code by its function, where that has a name.
fn code(out: &mut Vec<u8>, address: u64, known: &Known) {
    let is_of_kernel = address >> 63 == 1;
    match is_of_kernel.then(|| known.names.kernel(address)).flatten() {
        Some((name, offset)) => behind(out, &name, offset),
        None => number::hex(out, address),
    }
}

/// `function+0x1a`
fn behind(out: &mut Vec<u8>, function: &[u8], offset: u64) {
    escape::plain(out, function);
    if offset > 0 {
        out.push(b'+');
        number::hex(out, offset);
    }
}

/// A place in a mapped file, or the bare address.
fn place(out: &mut Vec<u8>, map: Option<&MapRef>, joint: &[u8], address: u64) {
    match map {
        Some(map) => {
            escape::plain(out, &map.path);
            out.extend_from_slice(joint);
            out.extend_from_slice(b"0x");
            number::hex_digits(out, map.offset);
        }
        None => {
            out.extend_from_slice(b"0x");
            number::hex_digits(out, address);
        }
    }
}
