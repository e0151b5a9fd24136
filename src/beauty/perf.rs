//! The default style: the line layout of perf trace.
//!
//! ```text
//!      0.780 ( 0.019 ms): sh/20131 openat(dfd: CWD, filename: "/tmp/x", flags: RDONLY|CLOEXEC)           = 3</tmp/x>
//! ```
//! A line has the time at which the call began, its duration, the task, the call, and its result from column 70 of the
//! call's text on. An unknown value is `?`; an unknown duration is blank.
//!
//! This style differs from perf trace where perf's text is wrong or ambiguous. Modes are octal, addresses are printed
//! in full, errors have their names, and a comm of 15 bytes is not cut to 14. The line of a call that was shown in
//! flight before begins with `... [continued]: ` as in perf trace, but has all arguments, like every other line. perf
//! trace omits all arguments that are zero; this style omits only zeros that carry no information (`default.rs`). Of a
//! struct, it shows the members that the row of the struct names (`brief=`), and `...` in place of the others.
//!
//! This module only formats: [`super::decode`] provides the values.

mod change;
pub mod frames;
mod notice;
pub mod value;
mod width;

use super::decode::{Argument, Context, Decoded, Values};
use super::netlink::{Families, Joined};
use super::style::{Style, StyleContext};
use super::value::{Failure, Returned};
use super::{errno, lookup, stamp::Stamps, tracepoint::TracepointDecoder};
use crate::event::{Call, EntryState, Event, EventKind, ExitState, Time, Verdict};
use crate::session::Session;
use crate::show::Show;
use crate::text::{escape, number, time_unit};
use owo_colors::Color;
use owo_colors::colors::{Cyan, Red, Yellow};
use rustc_hash::FxHashMap;

/// The perf style, which prints each event as a line.
pub struct Perf {
    show: Show,
    color: bool,
    stamps: Stamps,
    /// Decoders by event index, created at the first record of an event.
    tracepoints: Vec<Option<TracepointDecoder>>,
    /// The numbers of generic netlink families that the calls up to now were told.
    families: Families,
    /// The names that the user gave to syscalls, by the name of their row.
    names: FxHashMap<String, String>,
    /// The output is a terminal, so durations have units that are easy to read instead of always milliseconds.
    terminal: bool,
    /// Maximum number of columns of a line.
    width: Option<usize>,
}

impl Perf {
    pub fn new(show: &Show, session: &Session, color: bool) -> Perf {
        Perf {
            show: show.clone(),
            color,
            stamps: Stamps::new(show.time, session),
            tracepoints: Vec::new(),
            families: Families::default(),
            names: session.names.clone(),
            terminal: false,
            width: None,
        }
    }

    #[inline]
    fn line(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        match &event.kind {
            EventKind::Call(call) | EventKind::Pending(call) => {
                let mut families = std::mem::take(&mut self.families);
                families.learn(call);
                let joined = Joined::default();
                let of_call = Context::new(context.comm, self.show.string_limit).brief(!self.show.full);
                let of_call = of_call.families(&families).joined(&joined);
                self.call(out, event, call, &Decoded::new(call, of_call));
                self.families = families;
            }
            EventKind::Fault(fault) => self.fault(out, event, fault),
            EventKind::Signal(signal) => self.signal(out, event, signal, context),
            EventKind::Exit(end) => self.task_end(out, event, *end),
            EventKind::Lost(loss) => self.lost(out, event, *loss),
            EventKind::Tracepoint { event: index, raw, caller, call, .. } => {
                if let Some(spec) = context.session.events.get(*index).filter(|spec| spec.shown) {
                    self.tracepoint(out, event, (*index, spec), (raw, caller.as_deref(), call.as_deref()), context);
                }
            }
            EventKind::Fork { .. } | EventKind::Exec { .. } | EventKind::Aggregate(_) | EventKind::Tally(_) | EventKind::Notice(_) => {}
        }
    }

    /// Writes the line of a call, whether it has returned or is in flight.
    pub fn call(&mut self, out: &mut Vec<u8>, event: &Event, call: &Call, decoded: &Decoded) {
        let line = out.len();
        let start = (call.entry == EntryState::Seen).then_some(call.id.start);
        self.head(out, event, start, call.duration());
        let continued = call.shown_pending && call.exit != ExitState::Pending;
        let mut columns = Columns::begin(out);
        if continued {
            out.extend_from_slice(b" ... [continued]: ");
        }
        columns.hidden += self.colored(out, Cyan::ANSI_FG, |out| self.name(out, call, decoded));
        out.push(b'(');
        let args = out.len();
        self.arguments(out, call, decoded);
        let args = args..out.len();
        out.push(b')');
        let outcome = self.outcome(out, &decoded.returned(), columns);
        if call.exit == ExitState::Never && lookup::requests::opcode(call.nr).is_some() {
            out.extend_from_slice(b" (no completion asked)");
        }
        out.extend_from_slice(if call.injected.answered { b" (injected)" } else { b"" });
        out.extend_from_slice(if call.injected.delayed { b" (delayed)" } else { b"" });
        if let Some(width) = self.width {
            width::fit_call(out, line, args, outcome, width);
        }
        out.push(b'\n');
    }

    fn name(&self, out: &mut Vec<u8>, call: &Call, decoded: &Decoded) {
        match lookup::user_name(&self.names, call.abi, call.nr) {
            Some(name) => escape::plain(out, name.as_bytes()),
            None => lookup::write_name(out, decoded.row(), call.abi, call.nr),
        }
    }

    fn head(&mut self, out: &mut Vec<u8>, event: &Event, start: Option<Time>, duration: Option<u64>) {
        self.time_columns(out, Some(event.cpu), start, duration);
        if self.show.comm {
            match &event.comm {
                Some(comm) => escape::plain(out, comm),
                None => out.push(b'?'),
            }
            out.push(b'/');
        }
        number::int(out, i64::from(event.task.tid));
        out.push(b' ');
    }

    fn time_columns(&mut self, out: &mut Vec<u8>, cpu: Option<u32>, start: Option<Time>, duration: Option<u64>) {
        if self.show.timestamps {
            let begin = out.len();
            self.stamps.line(out, start);
            self.dim_decimals(out, begin);
            out.push(b' ');
        }
        if let Some(cpu) = cpu.filter(|_| self.show.cpu) {
            out.push(b'[');
            number::zero_padded(out, u64::from(cpu), 3);
            out.extend_from_slice(b"] ");
        }
        if self.show.durations {
            out.push(b'(');
            match duration {
                Some(duration) => _ = self.duration(out, duration),
                None => number::blanks(out, 9),
            }
            out.extend_from_slice(b"): ");
        }
    }

    fn duration(&self, out: &mut Vec<u8>, nanoseconds: u64) -> usize {
        let color = match nanoseconds {
            1_000_000.. => Red::ANSI_FG,
            10_000.. => Yellow::ANSI_FG,
            _ => "",
        };
        self.colored(out, color, |out| {
            if self.terminal {
                return out.extend_from_slice(format!("{:>9}", time_unit::short(nanoseconds)).as_bytes());
            }
            number::millis(out, i64::try_from(nanoseconds).unwrap_or(i64::MAX), 6);
            out.extend_from_slice(b" ms");
        })
    }

    /// Dims the digits of a stamp after the decimal point on a coloured terminal.
    fn dim_decimals(&self, out: &mut Vec<u8>, begin: usize) {
        if self.terminal
            && self.color
            && let Some(point) = out[begin..].iter().rposition(|byte| *byte == b'.')
        {
            let decimals = out.split_off(begin + point);
            out.extend_from_slice(b"\x1b[2m");
            out.extend_from_slice(&decimals);
            out.extend_from_slice(b"\x1b[0m");
        }
    }

    fn arguments(&self, out: &mut Vec<u8>, call: &Call, decoded: &Decoded) {
        if call.args.is_none() && call.request.is_none() {
            if decoded.row().is_none_or(|row| !row.args.is_empty()) {
                out.push(b'?');
            }
            return;
        }
        let zeros = self.show.zeros || !self.show.arg_names;
        let mut first = true;
        for argument in decoded.args().filter(Argument::is_used) {
            let values = argument.values();
            if let Values::Entry(only) | Values::Exit(only) = &values
                && !zeros
                && argument.is_default(only)
            {
                continue;
            }
            if !first {
                out.extend_from_slice(b", ");
            }
            first = false;
            if self.show.arg_names && !argument.name().is_empty() {
                out.extend_from_slice(argument.name().as_bytes());
                out.extend_from_slice(b": ");
            }
            write_argument(out, &values, self.show.prefixes);
        }
    }

    /// Writes the result of a call. Returns the position at which it begins.
    fn outcome(&self, out: &mut Vec<u8>, returned: &Returned, columns: Columns) -> usize {
        if *returned == Returned::Pending {
            columns.pad(out, self.show.alignment.saturating_sub(4), 0);
            out.extend_from_slice(b" ...");
            return out.len() - 4;
        }
        columns.pad(out, self.show.alignment, 1);
        let begin = out.len();
        out.extend_from_slice(b"= ");
        match returned {
            Returned::Value(value) => value::write(out, value, self.show.prefixes),
            Returned::Timeout => failure(out, Failure::Timeout),
            Returned::Error(errno) => _ = self.colored(out, Red::ANSI_FG, |out| failure(out, Failure::Error(*errno))),
            Returned::Restart(errno) => failure(out, Failure::Restart(*errno)),
            Returned::Never | Returned::Pending => out.push(b'?'),
            Returned::Unseen => out.extend_from_slice(b"? (exit not seen)"),
        }
        begin
    }

    /// Writes text in a colour, if colours are on. Returns the number of bytes of the escape sequences, which fill no
    /// columns.
    fn colored(&self, out: &mut Vec<u8>, color: &str, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        const PLAIN: &[u8] = b"\x1b[0m";
        if !self.color || color.is_empty() {
            write(out);
            return 0;
        }
        out.extend_from_slice(color.as_bytes());
        write(out);
        out.extend_from_slice(PLAIN);
        color.len() + PLAIN.len()
    }
}

impl Style for Perf {
    /// Writes the line of an event, and the lines of its stack. There is no line for a fork and an exec, since the
    /// calls that caused them have lines, nor for tracepoints that the user did not request. Notices are on stderr.
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        if self.stamps.has_no_origin()
            && let Some(origin) = super::stamp::origin_of(event, context.session)
        {
            self.stamps.count_from(origin);
        }
        let before = out.len();
        self.line(out, event, context);
        if let Some(width) = self.width.filter(|_| !matches!(event.kind, EventKind::Call(_) | EventKind::Pending(_)))
            && out.len() > before
            && out.pop().is_some()
        {
            width::fit_end(out, before, width);
            out.push(b'\n');
        }
        if let Some(stack) = event.kind.stack()
            && out.len() > before
        {
            frames::write(out, event.task.pid, stack, frames::INDENT, context.names);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>, verdict: &Verdict, _: &Session) {
        if verdict.unplaced > 0 {
            self.lost_at_unknown_times(out, verdict.unplaced, verdict.gaps_without_size);
        }
    }

    fn on_terminal(&mut self, width: Option<usize>) {
        (self.terminal, self.width) = (true, width);
    }
}

/// Counts the columns that were written since a position in the output.
struct Columns {
    begin: usize,
    /// Number of bytes since then that fill no column.
    hidden: usize,
}

impl Columns {
    fn begin(out: &[u8]) -> Columns {
        Columns { begin: out.len(), hidden: 0 }
    }

    /// Writes blanks up to a column, but at least `least`. A character of several bytes counts as one column.
    fn pad(&self, out: &mut Vec<u8>, column: usize, least: usize) {
        let written = &out[self.begin..];
        // A character has at most four bytes, so this many bytes fill the columns in any case.
        if written.len() - self.hidden >= column.saturating_add(least).saturating_mul(4) {
            return number::blanks(out, least);
        }
        // Most lines are ASCII, which is found out faster than the number of characters.
        let continuations = if written.is_ascii() { 0 } else { written.iter().filter(|byte| **byte & 0xc0 == 0x80).count() };
        let filled = written.len() - self.hidden - continuations;
        number::blanks(out, column.saturating_sub(filled).max(least));
    }
}

/// Writes an argument's value, or its values at entry and exit if the call changed it.
pub fn write_argument(out: &mut Vec<u8>, values: &Values, prefixes: bool) {
    match values {
        Values::Entry(only) | Values::Exit(only) => value::write(out, only, prefixes),
        Values::Both(both) => change::write(out, &both[0], &both[1], prefixes),
    }
}

/// Writes the result of a call that returned no value.
fn failure(out: &mut Vec<u8>, failure: Failure) {
    match failure {
        Failure::Timeout => out.extend_from_slice(b"0 (Timeout)"),
        Failure::Error(errno) => error(out, b"-1 ", errno),
        Failure::Restart(errno) => error(out, b"? ", errno),
    }
}

/// Writes an error after `first`: `-1 ENOENT (No such file or directory)`.
fn error(out: &mut Vec<u8>, first: &[u8], errno: i32) {
    out.extend_from_slice(first);
    match (errno::name(errno), errno::text(errno)) {
        (Some(name), Some(text)) => {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" (");
            out.extend_from_slice(text.as_bytes());
        }
        _ => {
            out.extend_from_slice(b"(unknown error ");
            number::int(out, i64::from(errno));
        }
    }
    out.push(b')');
}

#[cfg(test)]
mod tests;
