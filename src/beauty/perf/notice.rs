//! The lines of events other than calls: tracepoints, page faults, signals, exits of tasks, lost records.

use super::{Perf, value};
use crate::beauty::decode::Context;
use crate::beauty::netlink::Joined;
use crate::beauty::style::StyleContext;
use crate::beauty::tracepoint::{Field, Part, TracepointDecoder};
use crate::beauty::value::Value;
use crate::beauty::{signal, task_end};
use crate::event::{Call, Caller, Event, EventIndex, Fault, Loss, MapRef, Signal, TaskEnd};
use crate::session::{EventSpec, Session};
use crate::text::{escape, number};
use owo_colors::Color;
use owo_colors::colors::Red;

impl Perf {
    /// Writes the line of a tracepoint: `subsystem:name(field: value, ...)`. The fields of a return probe begin with
    /// the return address and the function: `caller+0x1a <- function`.
    pub(super) fn tracepoint(
        &mut self,
        out: &mut Vec<u8>,
        event: &Event,
        (index, spec): (EventIndex, &EventSpec),
        (raw, caller, call): (&[u8], Option<&Caller>, Option<&Call>),
        context: &StyleContext,
    ) {
        self.head(out, event, Some(event.time), None);
        call.into_iter().for_each(|call| self.families.learn(call));
        escape::plain(out, spec.terms.name.as_ref().unwrap_or(&spec.name).as_bytes());
        out.push(b'(');
        let place = usize::from(index.0);
        if self.tracepoints.len() <= place {
            self.tracepoints.resize_with(place + 1, || None);
        }
        if let Some(format) = &spec.format {
            let Session { abi, copied_bytes, .. } = context.session;
            let decoder = self.tracepoints[place]
                .get_or_insert_with(|| TracepointDecoder::new(format, spec.terms.function.as_deref(), *abi, *copied_bytes));
            let zeros = self.show.zeros || !self.show.arg_names;
            let mut is_first = true;
            if let Some((function, returned_to)) = decoder.returned(raw) {
                returns(
                    out,
                    (function, spec.terms.function.as_deref()),
                    (returned_to, caller.map(|caller| (event.task.pid, caller))),
                    context,
                );
                is_first = false;
            }
            let joined = Joined::default();
            let of_call = Context::new(context.comm, self.show.string_limit).brief(!self.show.full);
            let of_call = of_call.families(&self.families).joined(&joined);
            let is_shown = |field: &Field| field.part != Part::Hidden && (zeros || !field.is_default);
            for Field { name, value, .. } in decoder.fields(raw, call, of_call).iter().filter(|field| is_shown(field)) {
                if !std::mem::take(&mut is_first) {
                    out.extend_from_slice(b", ");
                }
                if self.show.arg_names {
                    escape::plain(out, name.as_bytes());
                    out.extend_from_slice(b": ");
                }
                match value {
                    Value::Code(address) => code(out, *address, context),
                    value => value::write(out, value, self.show.prefixes),
                }
            }
        }
        out.extend_from_slice(b")\n");
    }

    pub(super) fn fault(&mut self, out: &mut Vec<u8>, event: &Event, fault: &Fault) {
        self.head(out, event, Some(event.time), None);
        out.extend_from_slice(if fault.major { b"majfault [" } else { b"minfault [" });
        mapped_address(out, fault.ip_at.as_ref(), b"+", fault.ip);
        out.extend_from_slice(b"] => ");
        mapped_address(out, fault.address_at.as_ref(), b"@", fault.address);
        out.extend_from_slice(match &fault.address_at {
            Some(map) if map.executable => b" (x",
            Some(_) => b" (d",
            None => b" (?",
        });
        let in_kernel = fault.address >> 63 == 1;
        out.extend_from_slice(if in_kernel { b"k)\n" } else { b".)\n" });
    }

    /// Writes a signal as strace does, without unknown members:
    /// `--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=123 (sh), si_uid=0} ---`.
    pub(super) fn signal(&mut self, out: &mut Vec<u8>, event: &Event, signal: &Signal, context: &StyleContext) {
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
        members(out, signal, context);
        out.extend_from_slice(b"} ---\n");
    }

    pub(super) fn task_end(&mut self, out: &mut Vec<u8>, event: &Event, end: TaskEnd) {
        self.head(out, event, Some(event.time), None);
        task_end::write(out, end, signal::write_name);
        out.push(b'\n');
    }

    /// Writes the line of lost records. A ring buffer lost them, so the line has no task.
    pub(super) fn lost(&mut self, out: &mut Vec<u8>, event: &Event, loss: Loss) {
        self.time_columns(out, Some(event.cpu), Some(event.time), None);
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

    /// Writes the line of records that the kernel counted as lost, but for which it wrote no lost record with a number:
    /// its ring buffer stayed full until the end. `gaps` means that lost records without a number were shown, which may
    /// account for some of them.
    pub fn lost_at_unknown_times(&mut self, out: &mut Vec<u8>, records: u64, gaps: bool) {
        self.time_columns(out, None, None, None);
        self.lost_records(out, Some(records));
        out.extend_from_slice(if gaps {
            b" at times that are not known, including the lines \"LOST some records\"\n"
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

/// Writes the members of siginfo_t that depend on signal and code.
fn members(out: &mut Vec<u8>, signal: &Signal, context: &StyleContext) {
    let of = &signal.info;
    if let Some(pid) = of.pid {
        member(out, "si_pid");
        number::int(out, i64::from(pid));
        let of_number = || (context.comm)(pid).filter(|_| signal.pids_are_known);
        if let Some(comm) = signal.sender.and_then(|sender| (context.comm)(sender.tid)).or_else(of_number) {
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

/// Writes the return address and the function of a return probe: `caller+0x1a <- function`.
fn returns(
    out: &mut Vec<u8>,
    (function, name): (u64, Option<&str>),
    (returned_to, caller): (u64, Option<(i32, &Caller)>),
    context: &StyleContext,
) {
    match caller {
        Some((pid, caller)) => match context.names.function(pid, &caller.frame) {
            Some((name, offset)) => symbol(out, &name, offset),
            None => mapped_address(out, Some(&caller.place), b"+", returned_to),
        },
        None => code(out, returned_to, context),
    }
    out.extend_from_slice(b" <- ");
    match name {
        Some(name) => escape::plain(out, name.as_bytes()),
        None => code(out, function, context),
    }
}

/// Writes an address in the kernel's code by the name of its function, if it is known.
fn code(out: &mut Vec<u8>, address: u64, context: &StyleContext) {
    match context.kernel_function(address) {
        Some((name, offset)) => symbol(out, &name, offset),
        None => number::hex(out, address),
    }
}

/// Writes an address as a symbol and an offset: `function+0x1a`.
fn symbol(out: &mut Vec<u8>, function: &[u8], offset: u64) {
    escape::plain(out, function);
    if offset > 0 {
        out.push(b'+');
        number::hex(out, offset);
    }
}

/// Writes an address as a file and an offset, or the plain address if no mapping is known.
fn mapped_address(out: &mut Vec<u8>, map: Option<&MapRef>, joint: &[u8], address: u64) {
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
