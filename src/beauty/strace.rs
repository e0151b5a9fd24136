//! The style of strace 7.2: its text, by default as `strace -f` prints it.
//!
//! ```text
//! 20131 openat(AT_FDCWD, "/tmp/x", O_RDONLY|O_CLOEXEC) = 3
//! ```
//! A call is one line, in the order in which calls end. A call that was shown in flight has two, with
//! `<unfinished ...>` and `<... openat resumed>`.
//!
//! This module only formats: [`super::decode`] provides the values.

mod change;
mod forms;
mod head;
mod quote;
mod value;

use self::head::Head;
use super::decode::{Argument, Context, Decoded, Values};
use super::netlink::{Families, Joined};
use super::row::{Flow, Form, Part, Test};
use super::style::{Style, StyleContext};
use super::value::{Failure, Returned, Value};
use super::{lookup, signal};
use crate::event::{Call, Event, EventKind, ExitState, Loss, Signal, TaskEnd, Verdict};
use crate::session::Session;
use crate::show::Show;
use crate::text::number;
use smallvec::SmallVec;
use std::io::Write;

/// The kernel's internal errors (include/linux/errno.h), and what strace says about them.
const RESTARTS: [(i32, &str, &str); 4] = [
    (512, "ERESTARTSYS", "To be restarted if SA_RESTART is set"),
    (513, "ERESTARTNOINTR", "To be restarted"),
    (514, "ERESTARTNOHAND", "To be restarted if no handler"),
    (516, "ERESTART_RESTARTBLOCK", "Interrupted by signal"),
];

/// Which part of a call a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Both,
    /// What is known when it begins (`<unfinished ...>`).
    First,
    /// What is known when it ends (`<... read resumed>`).
    Second,
}

/// The strace style, which prints each event as a line.
pub struct Strace {
    show: Show,
    values: value::Options,
    head: Head,
    /// The numbers of generic netlink families that the calls up to now were told.
    families: Families,
}

impl Strace {
    pub fn new(show: &Show, session: &Session) -> Strace {
        let values = value::Options { whole: show.full, hex: show.strace.hex, files: show.strace.files, comms: show.strace.comms };
        Strace { show: show.clone(), values, head: Head::new(&show.strace, session), families: Families::default() }
    }

    fn call(&mut self, out: &mut Vec<u8>, event: &Event, call: &Call, decoded: &Decoded) {
        let line = out.len();
        let is_resumed = call.shown_pending && call.exit != ExitState::Pending;
        self.head.write(out, event.task.tid, event.comm.as_ref(), if is_resumed { event.time } else { call.id.start });
        if self.show.strace.numbers {
            // Writing to a Vec does not fail.
            _ = write!(out, "[{:4}] ", call.nr);
        }
        out.extend_from_slice(if is_resumed { b"<... " } else { b"" });
        lookup::write_name(out, decoded.row(), call.abi, call.nr);
        out.extend_from_slice(if is_resumed { b" resumed>" } else { b"(" });
        let half = match call.exit {
            ExitState::Pending => Half::First,
            _ if is_resumed => Half::Second,
            _ => Half::Both,
        };
        self.arguments(out, decoded, half);
        if call.exit == ExitState::Pending {
            out.extend_from_slice(b" <unfinished ...>\n");
            return;
        }
        out.extend_from_slice(b") ");
        let column = out.len() - line;
        number::blanks(out, self.show.strace.column.saturating_sub(column));
        out.extend_from_slice(b"= ");
        let returned = decoded.returned();
        self.outcome(out, &returned);
        if matches!(returned, Returned::Value(_)) {
            self.behind(out, decoded);
        }
        if let Some(duration) = call.duration().filter(|_| self.show.strace.durations) {
            // Writing to a Vec does not fail.
            _ = write!(out, " <{}.{:06}>", duration / 1_000_000_000, duration / 1000 % 1_000_000);
        }
        out.push(b'\n');
    }

    /// Writes the arguments that a half of a call shows: those before the first one that the kernel writes, or the
    /// others.
    fn arguments(&self, out: &mut Vec<u8>, decoded: &Decoded, half: Half) {
        let parts = decoded.row().and_then(|row| forms::of_call(row.name));
        let of_part = |part: &'static Part| {
            let argument = decoded.args().find(|argument| argument.name() == part.name)?;
            (argument.is_used() || part.test == Test::Unused).then_some((argument, Some(part)))
        };
        let arguments: SmallVec<[(Argument, Option<&Part>); 6]> = match parts {
            None => decoded.args().filter(Argument::is_used).map(|argument| (argument, None)).collect(),
            Some(parts) => parts.iter().filter(|part| !part.is_behind).filter_map(of_part).collect(),
        };
        let is_written = |(argument, part): &(Argument, Option<&Part>)| {
            let is_output = argument.row().is_some_and(|row| row.flow != Flow::In);
            is_output && part.is_none_or(|part| part.form != Form::Before)
        };
        let first_written = arguments.iter().position(is_written).unwrap_or(arguments.len());
        let shown = match half {
            Half::Both => 0..arguments.len(),
            Half::First => 0..first_written,
            Half::Second => first_written..arguments.len(),
        };
        for (at, (argument, part)) in arguments[shown.clone()].iter().enumerate() {
            out.extend_from_slice(if shown.start + at > 0 { b", " } else { b"" });
            label(out, part.map_or("", |part| part.label));
            self.argument(out, &argument.values(), part.map_or(Form::Plain, |part| part.form));
        }
    }

    /// Writes what the call has written to the arguments that strace shows behind the result: ` (in [3])`.
    fn behind(&self, out: &mut Vec<u8>, decoded: &Decoded) {
        let parts = decoded.row().and_then(|row| forms::of_call(row.name)).unwrap_or_default();
        let mut separator: &[u8] = b" (";
        for part in parts.iter().filter(|part| part.is_behind) {
            let Some(argument) = decoded.args().find(|argument| argument.name() == part.name) else { continue };
            let values = argument.values();
            let Some(value) = values.exit().or(values.entry()).filter(|value| !is_nothing(value)) else { continue };
            out.extend_from_slice(std::mem::replace(&mut separator, b", "));
            if !part.label.is_empty() {
                out.extend_from_slice(part.label.as_bytes());
                out.push(b' ');
            }
            value::write_as(out, value, part.form, self.values);
        }
        out.extend_from_slice(if separator == b", " { b")" } else { b"" });
    }

    fn argument(&self, out: &mut Vec<u8>, values: &Values, form: Form) {
        match (values, form) {
            (Values::Entry(only) | Values::Exit(only), form) => value::write_as(out, only, form, self.values),
            (Values::Both(both), Form::Before) => value::write(out, &both[0], self.values),
            (Values::Both(both), Form::After) => value::write(out, &both[1], self.values),
            (Values::Both(both), _) => change::write(out, &both[0], &both[1], self.values),
        }
    }

    fn outcome(&self, out: &mut Vec<u8>, returned: &Returned) {
        match returned {
            Returned::Value(Value::Flags { bits: 0, .. }) => out.push(b'0'),
            Returned::Value(value @ Value::Flags { bits, .. }) => {
                number::hex(out, *bits);
                out.extend_from_slice(b" (flags ");
                value::write(out, value, self.values);
                out.push(b')');
            }
            // What a number means follows it in parentheses.
            Returned::Value(value @ Value::Signal(signal @ 1..)) => self.number_and_name(out, i64::from(*signal), value),
            Returned::Value(value @ Value::Symbol { value: number, table }) if table.name(*number).is_some() => {
                self.number_and_name(out, *number as i64, value);
            }
            Returned::Value(value) => value::write(out, value, self.values),
            Returned::Timeout => value::failure(out, Failure::Timeout),
            Returned::Error(errno) => value::failure(out, Failure::Error(*errno)),
            Returned::Restart(errno) => match RESTARTS.iter().find(|(known, ..)| known == errno) {
                // Writing to a Vec does not fail.
                Some((_, name, text)) => _ = write!(out, "? {name} ({text})"),
                None => value::failure(out, Failure::Restart(*errno)),
            },
            Returned::Never | Returned::Pending | Returned::Unseen => out.push(b'?'),
        }
    }

    /// Returns whether lines of a signal are shown.
    fn shows(&self, signal: i32) -> bool {
        u32::try_from(signal).ok().and_then(|signal| self.show.strace.signals.checked_shr(signal)).is_none_or(|bits| bits & 1 != 0)
    }

    fn number_and_name(&self, out: &mut Vec<u8>, number: i64, value: &Value) {
        number::int(out, number);
        out.extend_from_slice(b" (");
        value::write(out, value, self.values);
        out.push(b')');
    }

    fn signal(&mut self, out: &mut Vec<u8>, event: &Event, of: &Signal) {
        self.head.write(out, event.task.tid, event.comm.as_ref(), event.time);
        out.extend_from_slice(b"--- ");
        value::write_signal(out, of.number);
        out.extend_from_slice(b" {si_signo=");
        value::write_signal(out, of.number);
        let mut member = |name: &str, text: String| _ = write!(out, ", {name}={text}");
        if let Some(code) = of.code {
            member("si_code", signal::code_name(of.number, code).map_or_else(|| format!("{code:#x}"), str::to_owned));
        }
        let info = &of.info;
        let is_child = of.number == libc::SIGCHLD;
        info.pid.into_iter().for_each(|pid| member("si_pid", pid.to_string()));
        info.uid.into_iter().for_each(|uid| member("si_uid", uid.to_string()));
        if let Some(status) = info.status.filter(|_| is_child) {
            let name = |status: i32| {
                let mut name = Vec::new();
                value::write_signal(&mut name, status);
                String::from_utf8_lossy(&name).into_owned()
            };
            member("si_status", if of.code == Some(libc::CLD_EXITED) { status.to_string() } else { name(status) });
            let ticks = |ticks: i64| match ticks {
                0 => "0".to_owned(),
                _ => format!("{ticks} /* {}.{:02} s */", ticks / 100, ticks % 100),
            };
            info.utime.into_iter().for_each(|time| member("si_utime", ticks(time)));
            info.stime.into_iter().for_each(|time| member("si_stime", ticks(time)));
        }
        let pointer = |address: u64| if address == 0 { "NULL".to_owned() } else { format!("{address:#x}") };
        info.address.into_iter().for_each(|address| member("si_addr", pointer(address)));
        info.timer.into_iter().for_each(|timer| member("si_timerid", if timer == 0 { "0".to_owned() } else { format!("{timer:#x}") }));
        info.overrun.into_iter().for_each(|overrun| member("si_overrun", overrun.to_string()));
        if let Some(value) = info.value {
            member("si_int", (value as i32).to_string());
            member("si_ptr", pointer(value));
        }
        out.extend_from_slice(b"} ---\n");
    }

    fn task_end(&mut self, out: &mut Vec<u8>, event: &Event, end: TaskEnd) {
        self.head.write(out, event.task.tid, event.comm.as_ref(), event.time);
        match end {
            // Writing to a Vec does not fail.
            TaskEnd::Exited(status) => _ = write!(out, "+++ exited with {status} +++"),
            TaskEnd::Killed { signal, core_dumped } => {
                out.extend_from_slice(b"+++ killed by ");
                value::write_signal(out, signal);
                out.extend_from_slice(if core_dumped == Some(true) { b" (core dumped) +++" } else { b" +++" });
            }
            TaskEnd::Unknown => out.extend_from_slice(b"+++ exited with ? +++"),
            TaskEnd::NotTraced => out.extend_from_slice(b"+++ not traced any more: a set-user-ID program +++"),
        }
        out.push(b'\n');
    }

    /// Writes where records were lost, which strace never does.
    fn lost(&self, out: &mut Vec<u8>, loss: Loss) {
        match loss.records {
            // Writing to a Vec does not fail.
            Some(records) => _ = writeln!(out, "+++ {records} records lost +++"),
            None => out.extend_from_slice(b"+++ some records lost +++\n"),
        }
    }
}

/// Writes the name of an argument, if strace shows one.
fn label(out: &mut Vec<u8>, label: &str) {
    if !label.is_empty() {
        out.extend_from_slice(label.as_bytes());
        out.push(b'=');
    }
}

/// Returns whether there is nothing that could be shown behind a result.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(of) => of.items.is_empty(),
        Value::Unread(_) | Value::Address(_) => true,
        _ => false,
    }
}

impl Style for Strace {
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        match &event.kind {
            EventKind::Call(call) | EventKind::Pending(call) => {
                let mut families = std::mem::take(&mut self.families);
                families.learn(call);
                let joined = Joined::default();
                let of_call = Context::new(context.comm, self.show.string_limit).elements(usize::MAX).families(&families).joined(&joined);
                self.call(out, event, call, &Decoded::new(call, of_call));
                self.families = families;
            }
            // A tracer that stops tasks never sees this one.
            EventKind::Signal(signal) if signal.number == libc::SIGKILL || !self.shows(signal.number) => {}
            EventKind::Signal(signal) => self.signal(out, event, signal),
            EventKind::Exit(end) => {
                if self.show.strace.ends {
                    self.task_end(out, event, *end);
                }
                self.head.ended(event.task.tid);
            }
            EventKind::Fork { child, .. } => {
                self.head.begun(child.tid);
                if self.show.strace.attached {
                    // Writing to a Vec does not fail.
                    _ = writeln!(out, "strace: Process {} attached", child.tid);
                }
            }
            EventKind::Lost(loss) => self.lost(out, *loss),
            EventKind::Tracepoint { .. }
            | EventKind::Fault(_)
            | EventKind::Exec { .. }
            | EventKind::Aggregate(_)
            | EventKind::Notice(_) => {}
        }
    }

    fn end(&mut self, _: &mut Vec<u8>, _: &Verdict, _: &Session) {}
}
