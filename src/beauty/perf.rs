//! The default style: perf trace's line layout.
//!
//! ```text
//!      0.780 ( 0.019 ms): sh/20131 openat(dfd: CWD, filename: "/etc/passwd", flags: RDONLY|CLOEXEC)      = 3</etc/passwd>
//! ```
//! A line has the time at which the call began, how long it took, who made it, the call, and from column 70 of the
//! call's text on what it returned. What is not known is `?`; a duration that is not known is blank.
//!
//! Where perf trace's text is wrong or ambiguous, this style differs. Modes are octal, addresses are whole, errors
//! have their names and names of 15 bytes are not cut to 14. The line that ends a call that was shown in flight begins
//! with `... [continued]: ` as perf's does, but has all arguments, as every other line. perf leaves out all arguments
//! that are zero; this style leaves out those alone whose zero says nothing (`default.rs`).
//!
//! Nothing is decoded here and nothing is looked up: values come from [`super::decode`].

mod change;
pub mod frames;
mod notice;
pub mod value;
mod width;

use super::decode::{Argument, Context, Decoded};
use super::style::{Known, Style, Verdict};
use super::value::{Returned, Value};
use super::{errno, lookup, stamp::Stamps, tracepoint::Decoder};
use crate::event::{Call, Entry, Event, Exit, Time, What};
use crate::session::Session;
use crate::show::Show;
use crate::text::{escape, number, unit};
use owo_colors::Color;
use owo_colors::colors::{Cyan, Red, Yellow};
use rustc_hash::FxHashMap;

/// Prints events.
pub struct Perf {
    show: Show,
    color: bool,
    stamps: Stamps,
    /// By event index, made at an event's first record.
    tracepoints: Vec<Option<Decoder>>,
    /// What the user calls syscalls, by the place of their row.
    names: FxHashMap<u16, String>,
    /// Somebody reads the lines on a terminal: times are for eyes, not for programs.
    terminal: bool,
    /// Longer lines are cut.
    width: Option<usize>,
}

/// Whether this style has a line for the event.
fn has_line(event: &Event, session: &Session) -> bool {
    match &event.what {
        What::Fork { .. } | What::Exec { .. } | What::Tally(_) => false,
        What::Tracepoint { event, .. } => session.events.get(*event).is_some_and(|spec| spec.shown),
        _ => true,
    }
}

/// What the stamps of a command's trace count from: its own execve, which nothing of it is older than. Any other first
/// line may have ended before one that began earlier, so that the trace's beginning is what is older than all.
fn beginning(event: &Event, session: &Session) -> Time {
    match &event.what {
        What::Call(call) if call.entry == Entry::Seen && lookup::row(call.abi, call.nr).is_some_and(|row| row.name == "execve") => {
            call.id.start
        }
        _ => session.started,
    }
}

impl Perf {
    pub fn new(show: &Show, session: &Session, color: bool) -> Perf {
        Perf {
            show: show.clone(),
            color,
            stamps: Stamps::new(show.time, session),
            tracepoints: Vec::new(),
            names: session.names.clone(),
            terminal: false,
            width: None,
        }
    }

    #[inline]
    fn line(&mut self, out: &mut Vec<u8>, event: &Event, known: &Known) {
        match &event.what {
            What::Call(call) | What::Pending(call) => {
                let decoded = Decoded::new(call, Context::new(known.comm, self.show.string_limit));
                self.call(out, event, call, &decoded);
            }
            What::Fault(fault) => self.fault(out, event, fault),
            What::Signal(signal) => self.signal(out, event, signal, known),
            What::Exit(end) => self.task_end(out, event, *end),
            What::Lost(loss) => self.lost(out, event, *loss),
            What::Tracepoint { event: index, raw, caller, .. } => {
                if let Some(spec) = known.session.events.get(*index).filter(|spec| spec.shown) {
                    self.tracepoint(out, event, (*index, spec), (raw, caller.as_ref()), known);
                }
            }
            What::Fork { .. } | What::Exec { .. } | What::Tally(_) => {}
        }
    }

    /// A call's line; also for a call that is still in flight or was shown so before.
    pub fn call(&mut self, out: &mut Vec<u8>, event: &Event, call: &Call, decoded: &Decoded) {
        let line = out.len();
        let start = (call.entry == Entry::Seen).then_some(call.id.start);
        self.head(out, event, start, call.duration());
        let continued = call.shown_pending && call.exit != Exit::Pending;
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
        if let Some(width) = self.width {
            width::fit_call(out, line, args, outcome, width);
        }
        out.push(b'\n');
    }

    fn name(&self, out: &mut Vec<u8>, call: &Call, decoded: &Decoded) {
        let chosen = if self.names.is_empty() { None } else { lookup::index(call.abi, call.nr).and_then(|row| self.names.get(&row)) };
        match chosen {
            Some(name) => escape::plain(out, name.as_bytes()),
            None => lookup::write_name(out, decoded.row(), call.abi, call.nr),
        }
    }

    fn head(&mut self, out: &mut Vec<u8>, event: &Event, start: Option<Time>, duration: Option<u64>) {
        self.when(out, Some(event.cpu), start, duration);
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

    fn when(&mut self, out: &mut Vec<u8>, cpu: Option<u32>, start: Option<Time>, duration: Option<u64>) {
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
                return out.extend_from_slice(format!("{:>9}", unit::short(nanoseconds)).as_bytes());
            }
            number::millis(out, i64::try_from(nanoseconds).unwrap_or(i64::MAX), 6);
            out.extend_from_slice(b" ms");
        })
    }

    /// On a coloured terminal, what is behind the point of a stamp steps back behind whole milliseconds or seconds.
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
        if call.args.is_none() {
            if decoded.row().is_none_or(|row| !row.args.is_empty()) {
                out.push(b'?');
            }
            return;
        }
        let zeros = self.show.zeros || !self.show.arg_names;
        let mut first = true;
        for argument in decoded.args().filter(Argument::is_used) {
            let (entry, exit) = (argument.entry(), argument.exit());
            let is_default = |value: &Value| !zeros && argument.is_default(value);
            if let (Some(only), None) | (None, Some(only)) = (&entry, &exit)
                && is_default(only)
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
            write_argument(out, entry.as_ref(), exit.as_ref(), self.show.prefixes);
        }
    }

    /// What became of a call, and where that begins.
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
            Returned::Timeout => out.extend_from_slice(b"0 (Timeout)"),
            Returned::Error(errno) => _ = self.colored(out, Red::ANSI_FG, |out| error(out, b"-1 ", *errno)),
            Returned::Restart(errno) => error(out, b"? ", *errno),
            Returned::Never | Returned::Pending => out.push(b'?'),
            Returned::Unseen => out.extend_from_slice(b"? (exit not seen)"),
        }
        begin
    }

    /// Writes in a colour, if there are colours, and says how many bytes that took which fill no column.
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
    /// An event's line. There is none for a task's making and an exec (the calls that did it have theirs), and for tracepoints that were not asked for.
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, known: &Known) {
        if self.stamps.has_no_origin() && has_line(event, known.session) {
            self.stamps.count_from(beginning(event, known.session));
        }
        let before = out.len();
        self.line(out, event, known);
        if let Some(width) = self.width.filter(|_| !matches!(event.what, What::Call(_) | What::Pending(_)))
            && out.len() > before
            && out.pop().is_some()
        {
            width::fit_end(out, before, width);
            out.push(b'\n');
        }
        if let Some(stack) = event.what.stack()
            && out.len() > before
        {
            frames::write(out, event.task.pid, stack, frames::INDENT, known.names);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>, verdict: &Verdict, _: &Session) {
        if verdict.unplaced > 0 {
            self.lost_somewhere(out, verdict.unplaced, verdict.gaps_without_size);
        }
    }

    /// Times are for eyes then, and longer lines are cut.
    fn on_terminal(&mut self, width: Option<usize>) {
        (self.terminal, self.width) = (true, width);
    }
}

/// Counts the columns that were filled since a place in the line.
struct Columns {
    begin: usize,
    /// Bytes since then that fill none.
    hidden: usize,
}

impl Columns {
    fn begin(out: &[u8]) -> Columns {
        Columns { begin: out.len(), hidden: 0 }
    }

    /// Blanks up to a column, at least `least`. A character counts as one column; its bytes after the first do not.
    fn pad(&self, out: &mut Vec<u8>, column: usize, least: usize) {
        let written = &out[self.begin..];
        // A character has at most four bytes.
        if written.len() - self.hidden >= column.saturating_add(least).saturating_mul(4) {
            return number::blanks(out, least);
        }
        let continuations = written.iter().filter(|byte| **byte & 0xc0 == 0x80).count();
        let filled = written.len() - self.hidden - continuations;
        number::blanks(out, column.saturating_sub(filled).max(least));
    }
}

/// An argument's value, or its values at both moments, where the call changed it.
pub fn write_argument(out: &mut Vec<u8>, entry: Option<&Value>, exit: Option<&Value>, prefixes: bool) {
    match (entry, exit) {
        (Some(entry), Some(exit)) => change::write(out, entry, exit, prefixes),
        (Some(only), None) | (None, Some(only)) => value::write(out, only, prefixes),
        (None, None) => {}
    }
}

/// `-1 ENOENT (No such file or directory)`
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
