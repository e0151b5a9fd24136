//! The JSON style: one object per line, as rtrace-json(5) and `schema/rtrace-1.json` describe it.
//!
//! An object has the known facts as typed values; formatting them as text is left to the reader. Unknown values are
//! omitted, or `null` in an array.

mod clock;
mod end;
mod heads;
mod origins;
mod other;
#[cfg(test)]
mod round_trip;
pub mod stack;
mod tracepoint;
pub mod value;
mod write;

use super::decode::{Argument, Context, Decoded, Values};
use super::netlink::{Families, Joined};
use super::special::Special;
use super::style::{Style, StyleContext};
use super::tracepoint::TracepointDecoder;
use super::value::{Failure, Returned};
use crate::event::{Call, EntryState, Event, EventKind, ExitState, Verdict};
use crate::session::{Scope, Session};
use clock::Clock;
use heads::{Heads, begin_argument};
use origins::Origins;
use stack::stack;
use write::{Elements, object};

/// The version of the schema. It increases when an existing member changes or is removed, and stays the same when
/// members are added.
pub const SCHEMA: u64 = 1;

/// The JSON style, which writes each event as an object.
pub struct Json {
    string_limit: usize,
    /// The first object, which describes the trace.
    header: Vec<u8>,
    clock: Clock,
    heads: Heads,
    origins: Origins,
    /// Decoders by event index, created at the first record of an event.
    tracepoints: Vec<Option<TracepointDecoder>>,
    /// The numbers of generic netlink families that the calls up to now were told.
    families: Families,
}

impl Json {
    /// Creates the style. `string_limit` is the maximum number of bytes of a string that is not a path.
    pub fn new(string_limit: usize, session: &Session) -> Json {
        let (mut header, mut clock) = (Vec::new(), Clock::new(session.realtime_offset));
        line(&mut header, |o| {
            o.word("type", "trace");
            o.uint("schema", SCHEMA);
            o.word("rtrace", env!("CARGO_PKG_VERSION"));
            o.bytes("release", session.release.as_bytes());
            o.word("abi", session.abi.name());
            let scope = match session.scope {
                Scope::Command => "command",
                Scope::Tasks => "tasks",
                Scope::System => "system",
            };
            o.word("scope", scope);
            clock.write(o.member("started"), session.started);
        });
        Json {
            string_limit,
            header,
            clock,
            heads: Heads::default(),
            origins: Origins::default(),
            tracepoints: Vec::new(),
            families: Families::default(),
        }
    }

    fn call(&mut self, o: &mut Elements, event: &Event, call: &Call, context: &StyleContext) {
        self.families.learn(call);
        let joined = Joined::default();
        let of_call = Context::new(context.comm, self.string_limit).families(&self.families).joined(&joined);
        let decoded = Decoded::new(call, of_call);
        let head = self.heads.call(o, call, decoded.row(), context.session);
        if let (EntryState::Seen, ExitState::Returned { .. }) = (call.entry, call.exit) {
            // Nearly all calls are such.
            o.members(br#","entry":"seen","exit":"returned""#);
        } else {
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
        }
        if call.entry == EntryState::Seen {
            self.clock.write(o.member("start"), call.id.start);
        }
        call.duration().iter().for_each(|duration| o.uint("duration", *duration));
        let has_none = decoded.row().is_some_and(|row| row.args.is_empty());
        match call.args {
            None if !has_none && call.request.is_none() => o.member("arguments").extend_from_slice(b"null"),
            _ => o.array("arguments", |a| {
                for of in decoded.args() {
                    let out = a.item();
                    match head.and_then(|head| head.argument(&of)) {
                        Some(text) => out.extend_from_slice(text),
                        None => begin_argument(out, of.name()),
                    }
                    argument(out, &of);
                }
            }),
        }
        if let ExitState::Returned { ret, .. } = call.exit {
            o.object("return", |o| returned(o, ret, &decoded.returned()));
        }
        o.mark("executes", decoded.row().is_some_and(|row| row.does == Special::Execve));
        o.mark("shown_pending", call.shown_pending && call.exit != ExitState::Pending);
        o.mark("injected", call.injected.answered);
        o.mark("delayed", call.injected.delayed);
        if call.lost_before > 0 {
            o.uint("lost_before", call.lost_before);
        }
        stack(o, event, call.stack.as_deref(), context);
    }
}

impl Style for Json {
    fn header(&self) -> &[u8] {
        &self.header
    }

    fn event(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        let session = context.session;
        let kind = match &event.kind {
            EventKind::Call(_) => "call",
            EventKind::Pending(_) => "pending",
            EventKind::Tracepoint { event, .. } if session.events.get(*event).is_some_and(|spec| spec.shown) => "event",
            EventKind::Fault(_) => "fault",
            EventKind::Signal(_) => "signal",
            EventKind::Exit(_) => "exit",
            EventKind::Lost(loss) => return other::lost(out, event, *loss, &mut self.clock),
            EventKind::Notice(notice) => return end::notice(out, event, notice, &mut self.clock),
            EventKind::Fork { .. } | EventKind::Exec { .. } => return self.origins.learn(event),
            EventKind::Tracepoint { .. } | EventKind::Aggregate(_) | EventKind::Tally(_) => return,
        };
        line(out, |o| {
            o.word("type", kind);
            self.clock.write(o.member("time"), event.time);
            self.heads.task(o, event, (context.cgroup)(event.task.tid));
            self.origins.write(o, event.task.pid);
            o.uint("cpu", u64::from(event.cpu));
            match &event.kind {
                EventKind::Call(call) | EventKind::Pending(call) => self.call(o, event, call, context),
                EventKind::Tracepoint { event: index, raw, caller, call, stack: of } => {
                    if let Some(spec) = session.events.get(*index) {
                        self.tracepoint(o, event, (*index, spec), (raw, caller.as_deref(), call.as_deref()), context);
                    }
                    stack(o, event, of.as_deref(), context);
                }
                EventKind::Fault(of) => {
                    other::fault(o, of);
                    stack(o, event, of.stack.as_deref(), context);
                }
                EventKind::Signal(of) => {
                    other::signal(o, of, context);
                    stack(o, event, of.stack.as_deref(), context);
                }
                EventKind::Exit(end) => other::task_end(o, *end),
                _ => {}
            }
        });
    }

    fn end(&mut self, out: &mut Vec<u8>, verdict: &Verdict, _: &Session) {
        line(out, |o| end::end(o, verdict));
    }
}

fn line(out: &mut Vec<u8>, fill: impl FnOnce(&mut Elements)) {
    object(out, fill);
    out.push(b'\n');
}

/// Writes an argument from its registers on.
fn argument(out: &mut Vec<u8>, argument: &Argument) {
    for (at, register) in argument.registers().iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write::hex(out, *register);
    }
    out.push(b']');
    let o = &mut Elements::further(out);
    let is_used = argument.is_used();
    o.mark("unused", !is_used);
    if is_used {
        let values = argument.values();
        values.entry().into_iter().for_each(|value| value::write(o.member("entry"), value));
        values.exit().into_iter().for_each(|value| value::write(o.member("exit"), value));
        let is_default = matches!(&values, Values::Entry(only) | Values::Exit(only) if argument.is_default(only));
        o.mark("default", is_default);
    }
    o.out.push(b'}');
}

fn returned(o: &mut Elements, raw: i64, returned: &Returned) {
    o.int("raw", raw);
    match returned {
        Returned::Value(value) => value::write(o.member("value"), value),
        Returned::Timeout => value::failure(o, Failure::Timeout),
        Returned::Error(number) => value::failure(o, Failure::Error(*number)),
        Returned::Restart(number) => value::failure(o, Failure::Restart(*number)),
        Returned::Never | Returned::Unseen | Returned::Pending => {}
    }
}
