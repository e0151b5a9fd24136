//! The JSON style: one object per line, as rtrace-json(5) and `schema/rtrace-1.json` describe it.
//!
//! An object has the known facts as typed values; formatting them as text is left to the reader. Unknown values are
//! omitted, or `null` in an array.

mod value;
mod write;

use super::decode::{Argument, Context, Decoded};
use super::style::{EventVerdict, Style, StyleContext, Verdict};
use super::tracepoint::TracepointDecoder;
use super::value::{Returned, Value};
use super::{errno, lookup};
use crate::event::frame::StackEnd;
use crate::event::{
    Call, Caller, Disposition, EntryState, Event, EventIndex, EventKind, ExitState, Fault, Loss, MapRef, Signal, Stack, TaskEnd, Time,
};
use crate::session::{EventSpec, Session};
use write::{Elements, object};

/// The version of the schema. It increases when an existing member changes or is removed, and stays the same when
/// members are added.
const SCHEMA: u64 = 1;

/// The JSON style, which writes each event as an object.
pub struct Json {
    string_limit: usize,
    has_begun: bool,
    /// Decoders by event index, created at the first record of an event.
    tracepoints: Vec<Option<TracepointDecoder>>,
}

impl Json {
    /// Creates the style. `string_limit` is the maximum number of bytes of a string that is not a path.
    pub fn new(string_limit: usize) -> Json {
        Json { string_limit, has_begun: false, tracepoints: Vec::new() }
    }

    /// Writes the first object, which describes the trace, unless it was written before.
    fn begin(&mut self, out: &mut Vec<u8>, session: &Session) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        line(out, |o| {
            o.word("type", "trace");
            o.uint("schema", SCHEMA);
            o.word("rtrace", env!("CARGO_PKG_VERSION"));
            o.bytes("release", session.release.as_bytes());
            o.word("abi", session.abi.name());
            time(o, "started", session.started, session);
        });
    }

    fn call(&self, o: &mut Elements, event: &Event, call: &Call, context: &StyleContext) {
        let decoded = Decoded::new(call, Context::new(context.comm, self.string_limit));
        o.word("abi", call.abi.name());
        o.int("number", call.nr);
        // Names of syscalls need no escapes.
        let name = o.member("name");
        name.push(b'"');
        lookup::write_name(name, decoded.row(), call.abi, call.nr);
        name.push(b'"');
        if let Some(name) = lookup::user_name(&context.session.names, call.abi, call.nr) {
            o.bytes("called", name.as_bytes());
        }
        let entry = match call.entry {
            EntryState::Seen => "seen",
            EntryState::Unseen => "none",
            EntryState::Lost => "lost",
        };
        o.word("entry", entry);
        let exit = match call.exit {
            ExitState::Returned { .. } => "returned",
            ExitState::Never => "never",
            ExitState::Pending => "pending",
            ExitState::Unseen => "unseen",
        };
        o.word("exit", exit);
        if call.entry == EntryState::Seen {
            time(o, "start", call.id.start, context.session);
        }
        call.duration().iter().for_each(|duration| o.uint("duration", *duration));
        match call.args {
            Some(_) => o.array("arguments", |a| decoded.args().for_each(|of| object(a.item(), |o| argument(o, call, &of)))),
            None => o.member("arguments").extend_from_slice(b"null"),
        }
        if let ExitState::Returned { ret, .. } = call.exit {
            o.object("return", |o| returned(o, ret, &decoded.returned()));
        }
        o.mark("shown_pending", call.shown_pending && call.exit != ExitState::Pending);
        if call.lost_before > 0 {
            o.uint("lost_before", call.lost_before);
        }
        stack(o, event, call.stack.as_deref(), context);
    }

    fn tracepoint(
        &mut self,
        o: &mut Elements,
        event: &Event,
        (index, spec): (EventIndex, &EventSpec),
        (raw, caller): (&[u8], Option<&Caller>),
        context: &StyleContext,
    ) {
        o.bytes("name", spec.name.as_bytes());
        spec.terms.name.iter().for_each(|name| o.bytes("called", name.as_bytes()));
        let place = usize::from(index.0);
        if self.tracepoints.len() <= place {
            self.tracepoints.resize_with(place + 1, || None);
        }
        let Some(format) = &spec.format else { return };
        let Session { abi, copied_bytes, .. } = context.session;
        let decoder = self.tracepoints[place]
            .get_or_insert_with(|| TracepointDecoder::new(format, spec.terms.function.as_deref(), *abi, *copied_bytes));
        if let Some((function, returned_to)) = decoder.returned(raw) {
            o.object("function", |o| {
                o.hex("address", function);
                let named = spec.terms.function.as_ref().map(|name| (name.as_bytes().into(), 0)).or_else(|| context.names.kernel(function));
                symbol(o, named);
            });
            o.object("returned_to", |o| {
                o.hex("address", returned_to);
                match caller {
                    Some(caller) => {
                        symbol(o, context.names.function(event.task.pid, &caller.frame));
                        map(o, "file", Some(&caller.place));
                    }
                    None => symbol(o, context.names.kernel(returned_to)),
                }
            });
        }
        o.array("fields", |a| {
            for (name, value) in decoder.decode(raw, context.comm) {
                object(a.item(), |o| {
                    o.bytes("name", name.as_bytes());
                    match value {
                        Value::Code(address) => o.object("value", |o| {
                            o.hex("code", address);
                            symbol(o, context.names.kernel(address));
                        }),
                        value => value::write(o.member("value"), &value),
                    }
                });
            }
        });
    }
}

impl Style for Json {
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        let session = context.session;
        self.begin(out, session);
        let kind = match &event.kind {
            EventKind::Call(_) => "call",
            EventKind::Pending(_) => "pending",
            EventKind::Tracepoint { event, .. } if session.events.get(*event).is_some_and(|spec| spec.shown) => "event",
            EventKind::Fault(_) => "fault",
            EventKind::Signal(_) => "signal",
            EventKind::Exit(_) => "exit",
            EventKind::Lost(loss) => return lost(out, event, *loss, session),
            EventKind::Tracepoint { .. } | EventKind::Aggregate(_) | EventKind::Fork { .. } | EventKind::Exec { .. } => return,
        };
        line(out, |o| {
            o.word("type", kind);
            time(o, "time", event.time, session);
            o.int("pid", i64::from(event.task.pid));
            o.int("tid", i64::from(event.task.tid));
            event.comm.iter().for_each(|comm| o.bytes("comm", comm));
            o.uint("cpu", u64::from(event.cpu));
            match &event.kind {
                EventKind::Call(call) | EventKind::Pending(call) => self.call(o, event, call, context),
                EventKind::Tracepoint { event: index, raw, caller, stack: of } => {
                    if let Some(spec) = session.events.get(*index) {
                        self.tracepoint(o, event, (*index, spec), (raw, caller.as_ref()), context);
                    }
                    stack(o, event, of.as_deref(), context);
                }
                EventKind::Fault(of) => {
                    fault(o, of);
                    stack(o, event, of.stack.as_deref(), context);
                }
                EventKind::Signal(of) => signal(o, of),
                EventKind::Exit(end) => task_end(o, *end),
                _ => {}
            }
        });
    }

    fn end(&mut self, out: &mut Vec<u8>, verdict: &Verdict, session: &Session) {
        self.begin(out, session);
        line(out, |o| {
            o.word("type", "end");
            if let Some(calls) = &verdict.calls {
                o.object("calls", |o| {
                    o.uint("issued", calls.issued);
                    o.uint("shown", calls.shown);
                    o.uint("lost", calls.lost);
                    o.uint("held_back", calls.held_back);
                    o.uint("given_up", calls.given_up);
                });
            }
            o.array("events", |a| {
                for EventVerdict { name, issued, received, lost } in &verdict.events {
                    object(a.item(), |o| {
                        o.bytes("name", name.as_bytes());
                        o.uint("issued", *issued);
                        o.uint("received", *received);
                        o.uint("lost", *lost);
                    });
                }
            });
            o.uint("unplaced_losses", verdict.unplaced);
        });
    }
}

fn line(out: &mut Vec<u8>, fill: impl FnOnce(&mut Elements)) {
    object(out, fill);
    out.push(b'\n');
}

/// Writes a time by CLOCK_MONOTONIC and by CLOCK_REALTIME, in nanoseconds.
fn time(o: &mut Elements, name: &str, time: Time, session: &Session) {
    o.object(name, |o| {
        value::nanoseconds(o.member("monotonic"), i128::from(time.0));
        value::nanoseconds(o.member("realtime"), i128::from(time.0) + i128::from(session.realtime_offset));
    });
}

fn argument(o: &mut Elements, call: &Call, argument: &Argument) {
    if !argument.name().is_empty() {
        o.word("name", argument.name());
    }
    if let Some(registers) = &call.args {
        let (first, count) = match argument.word() {
            Some(word) => (usize::from(word.register), word.registers()),
            None => (argument.index(), 1),
        };
        value::registers(o.member("registers"), registers.iter().copied().skip(first).take(count));
    }
    o.mark("unused", !argument.is_used());
    if argument.is_used() {
        let values = argument.values();
        for (name, value) in [("entry", values.entry()), ("exit", values.exit())] {
            value.into_iter().for_each(|value| value::write(o.member(name), value));
        }
    }
}

fn returned(o: &mut Elements, raw: i64, returned: &Returned) {
    o.int("raw", raw);
    match returned {
        Returned::Value(value) => value::write(o.member("value"), value),
        Returned::Timeout => o.mark("timeout", true),
        Returned::Error(number) | Returned::Restart(number) => {
            o.int("errno", i64::from(*number));
            errno::name(*number).iter().for_each(|name| o.word("name", name));
            o.mark("restarts", matches!(returned, Returned::Restart(_)));
        }
        Returned::Never | Returned::Unseen | Returned::Pending => {}
    }
}

fn symbol(o: &mut Elements, named: Option<(Box<[u8]>, u64)>) {
    if let Some((name, offset)) = named {
        o.bytes("symbol", &name);
        o.uint("offset", offset);
    }
}

fn map(o: &mut Elements, name: &str, map: Option<&MapRef>) {
    if let Some(map) = map {
        o.object(name, |o| {
            o.bytes("path", &map.path);
            o.hex("offset", map.offset);
            o.mark("executable", map.executable);
        });
    }
}

fn fault(o: &mut Elements, fault: &Fault) {
    o.word("fault", if fault.major { "major" } else { "minor" });
    o.hex("ip", fault.ip);
    map(o, "ip_file", fault.ip_at.as_ref());
    o.hex("address", fault.address);
    map(o, "address_file", fault.address_at.as_ref());
}

fn signal(o: &mut Elements, signal: &Signal) {
    value::write(o.member("signal"), &Value::Signal(signal.number));
    o.word(
        "fate",
        match signal.disposition {
            Disposition::Default => "default",
            Disposition::Kills => "kills",
            Disposition::Handled => "handled",
            Disposition::Ignored => "ignored",
        },
    );
    if let Some(sender) = &signal.sender {
        o.object("sender", |o| {
            o.int("pid", i64::from(sender.pid));
            o.int("tid", i64::from(sender.tid));
        });
    }
    o.object("siginfo", |o| {
        o.int("si_signo", i64::from(signal.number));
        signal.errno.iter().for_each(|errno| o.int("si_errno", i64::from(*errno)));
        if let Some(code) = signal.code {
            value::write(o.member("si_code"), &Value::SignalCode { signal: signal.number, code });
        }
        let of = &signal.info;
        let numbers = [
            ("si_pid", of.pid.map(i64::from)),
            ("si_uid", of.uid.map(i64::from)),
            ("si_status", of.status.map(i64::from)),
            ("si_utime", of.utime),
            ("si_stime", of.stime),
            ("si_timerid", of.timer.map(i64::from)),
            ("si_overrun", of.overrun.map(i64::from)),
            ("si_band", of.band),
            ("si_fd", of.fd.map(i64::from)),
            ("si_syscall", of.call.map(i64::from)),
            ("si_arch", of.arch.map(i64::from)),
        ];
        numbers.iter().for_each(|(name, number)| number.iter().for_each(|number| o.int(name, *number)));
        for (name, address) in [("si_addr", of.address), ("si_value", of.value), ("si_call_addr", of.call_address)] {
            address.iter().for_each(|address| o.hex(name, *address));
        }
    });
}

fn task_end(o: &mut Elements, end: TaskEnd) {
    match end {
        TaskEnd::Exited(status) => o.int("status", i64::from(status)),
        TaskEnd::Killed(signal) => value::write_signal(o.member("killed"), signal),
        TaskEnd::Unknown => o.mark("unknown", true),
        TaskEnd::NotTraced => o.mark("not_traced", true),
    }
}

/// Writes the line of lost records. A ring buffer lost them, so the object has no task.
fn lost(out: &mut Vec<u8>, event: &Event, loss: Loss, session: &Session) {
    line(out, |o| {
        o.word("type", "lost");
        time(o, "time", event.time, session);
        o.uint("cpu", u64::from(event.cpu));
        loss.records.iter().for_each(|records| o.uint("records", *records));
        loss.after.iter().for_each(|after| time(o, "after", *after, session));
    });
}

fn stack(o: &mut Elements, event: &Event, stack: Option<&Stack>, context: &StyleContext) {
    let Some(stack) = stack else { return };
    o.array("stack", |a| {
        context.names.frames(event.task.pid, stack, &mut |frame| {
            object(a.item(), |o| {
                o.hex("address", frame.address);
                frame.file.iter().for_each(|file| o.bytes("file", file));
                frame.function.iter().for_each(|function| o.bytes("function", function));
                if let Some((file, line)) = frame.line {
                    o.bytes("source", file);
                    o.uint("line", u64::from(line));
                }
                o.mark("kernel", frame.kernel);
            });
        });
    });
    if let Some(end) = stack.end.filter(|end| *end != StackEnd::Root) {
        let why = match end {
            StackEnd::Root => "root",
            StackEnd::Limit => "limit",
            StackEnd::Truncated => "truncated",
            StackEnd::OtherStack { .. } => "other_stack",
            StackEnd::NoRule { .. } => "no_unwind_rule",
            StackEnd::Unread { .. } => "file_not_read",
            StackEnd::NoRegister { .. } | StackEnd::NoRegisters => "no_registers",
            StackEnd::Unmapped { .. } => "unmapped",
            StackEnd::NoCode { .. } => "no_code",
            StackEnd::NoProgress { .. } => "no_progress",
            StackEnd::ReturnProbe => "return_probe",
        };
        o.word("stack_ends", why);
    }
}
