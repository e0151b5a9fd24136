//! The style of strace 7.2: its text, by default as `strace -f` prints it.
//!
//! ```text
//! 20131 openat(AT_FDCWD, "/tmp/x", O_RDONLY|O_CLOEXEC) = 3
//! ```
//! A call is one line, in the order in which calls end. A call that was shown in flight has two, with
//! `<unfinished ...>` and `<... openat resumed>`, unless no other line came between: then its line goes on.
//!
//! This module only formats: [`super::decode`] provides the values.

mod arguments;
mod change;
mod constants;
mod date;
mod dump;
mod forms;
mod frames;
mod handle;
mod head;
mod later;
mod netlink;
mod numbers;
mod outcome;
mod part;
mod path;
mod quote;
mod value;
mod words;

use self::arguments::Half;
use self::head::Head;
use self::later::Later;
use super::decode::{Context, Decoded};
use super::lookup;
use super::netlink::{Families, Joined};
use super::style::{Style, StyleContext};
use super::task_begin;
use super::value::Returned;
use crate::event::{Abi, Call, CallId, Disposition, Event, EventKind, ExitState, Loss, Signal, TaskEnd, Time, Verdict};
use crate::session::{Session, Zone};
use crate::show::Show;
use crate::show::strace::Constants;
use crate::stack::name::{Nameless, Names};
use crate::text::number;
use rustc_hash::FxHashMap;
use std::io::Write;

/// The calls of which strace shows only how many entries of a directory they return.
const COUNTED: [&str; 2] = ["getdents", "getdents64"];

/// The ends of lines of calls that have not returned.
const UNFINISHED: &[u8] = b" <unfinished ...>\n";
const DETACHED: &[u8] = b" <detached ...>\n";

/// The bit of the numbers of x32 (arch/x86/include/uapi/asm/unistd.h).
const X32_BIT: u64 = 1 << 30;

/// The strace style, which prints each event as a line.
pub struct Strace {
    show: Show,
    values: value::Options<'static>,
    head: Head,
    /// The time zone of dates.
    zone: Zone,
    /// The numbers of generic netlink families that the calls up to now were told.
    families: Families,
    /// The stacks of the calls that ended their tasks, which strace prints behind the lines about these ends.
    last_stacks: FxHashMap<i32, Vec<u8>>,
    /// The ABI of each task's last call.
    abis: FxHashMap<i32, Abi>,
    /// The machine's own ABI.
    native: Abi,
    later: Later,
    /// The call in flight whose line has begun.
    open: Option<OpenLine>,
}

/// A line that goes on when its call ends.
#[derive(Clone, Copy, Debug)]
struct OpenLine {
    call: CallId,
    /// The number of bytes that the line has.
    bytes: usize,
}

impl Strace {
    pub fn new(show: &Show, session: &Session) -> Strace {
        let lines = &show.strace;
        let values = value::Options {
            whole: show.full,
            hex: lines.hex,
            constants: lines.constants,
            files: lines.files,
            dereferenced: true,
            comms: lines.comms,
            own_pids: lines.own_pids,
            string_limit: lines.string_limit.unwrap_or(show.string_limit),
            zone: None,
        };
        Strace {
            show: show.clone(),
            values,
            head: Head::new(lines, session),
            zone: session.zone.clone(),
            families: Families::default(),
            last_stacks: FxHashMap::default(),
            abis: FxHashMap::default(),
            native: session.abi,
            later: Later::default(),
            open: None,
        }
    }

    /// Writes the frames of a call, which are those of the task's end if the call has not returned because of it.
    fn stack(&mut self, out: &mut Vec<u8>, event: &Event, call: &Call, names: &dyn Names) {
        let Some(stack) = call.stack.as_ref().filter(|_| self.show.strace.stacks) else { return };
        match call.exit {
            ExitState::Pending => {}
            ExitState::Never => frames::write(self.last_stacks.entry(event.task.tid).or_default(), event.task.pid, stack, names),
            ExitState::Returned { .. } | ExitState::Unseen => frames::write(out, event.task.pid, stack, names),
        }
    }

    fn options(&self) -> value::Options<'_> {
        value::Options { zone: Some(&self.zone), ..self.values }
    }

    /// Returns how the values of a call are written.
    fn options_of(&self, row: Option<u16>) -> value::Options<'_> {
        let lines = &self.show.strace;
        let whole = self.show.full && !lines.abbreviated.contains(row);
        value::Options { whole, dereferenced: lines.dereferenced.contains(row), ..self.options() }
    }

    fn call(&mut self, out: &mut Vec<u8>, event: &Event, call: &Call, decoded: &Decoded) {
        self.abi(out, event, call.abi);
        let is_superseding = self.superseded(out, event, call, decoded);
        let begun = self.open.take_if(|open| open.call == call.id && !is_superseding);
        let is_resumed = is_superseding || begun.is_none() && call.shown_pending && call.exit != ExitState::Pending;
        let line = out.len();
        let row = lookup::index(call.abi, call.nr);
        let is_traced = self.show.strace.calls.as_ref().is_none_or(|calls| calls[call.abi as usize].contains(row));
        if call.detached && !is_traced {
            return self.detached(out, event.task.pid);
        }
        if begun.is_none() {
            let time = if is_resumed { event.time } else { call.id.start };
            let pointer = call.stack.as_ref().and_then(|stack| Some(stack.frames.get(stack.kernel)?.avma));
            self.head.of_call(out, event.task.tid, event.comm.as_ref(), time, call.nr, pointer);
            out.extend_from_slice(if is_resumed { b"<... " } else { b"" });
            name(out, decoded, call);
            out.extend_from_slice(if is_resumed { b" resumed>" } else { b"(" });
        }
        let is_second = is_resumed || begun.is_some();
        // strace sees no result of a call in which the task is killed, and nothing that the call has written.
        let is_cut = (call.killed || call.exit == ExitState::Never) && arguments::has_second_half(decoded);
        let half = match call.exit {
            ExitState::Pending if begun.is_some() => Half::Neither,
            _ if call.detached && is_second => Half::Second,
            _ if call.detached => Half::First,
            ExitState::Pending => Half::First,
            _ if is_second => Half::Second,
            _ if is_cut => Half::First,
            _ => Half::Both,
        };
        let is_raw = self.show.strace.raw.contains(row);
        match (is_raw, half) {
            (false, Half::Second) if is_cut => {}
            (false, _) => arguments::write(out, decoded, half, self.show.strace.names, self.options_of(row)),
            (true, Half::Second | Half::Neither) => {}
            (true, Half::First | Half::Both) => arguments::write_raw(out, decoded, self.show.strace.names),
        }
        if call.detached {
            self.detached(out, event.task.pid);
            return out.extend_from_slice(DETACHED);
        }
        if call.exit == ExitState::Pending {
            // The call itself, and not a notice of it, has no end if the trace ends before it returns.
            let is_last = matches!(event.kind, EventKind::Call(_));
            return out.extend_from_slice(if is_last { DETACHED } else { UNFINISHED });
        }
        out.extend_from_slice(if is_cut && !is_raw { b" <unfinished ...>) " } else { b") " });
        let column = out.len() - line + begun.map_or(0, |begun| begun.bytes);
        number::blanks(out, self.show.strace.column.saturating_sub(column));
        out.extend_from_slice(b"= ");
        let returned = if call.killed { Returned::Never } else { decoded.returned() };
        let returned = if call.injected.as_value { decoded.returned_as_value().unwrap_or(returned) } else { returned };
        match (is_raw, call.exit, &returned) {
            (true, ExitState::Returned { ret, .. }, Returned::Value(_)) => constants::hex(out, ret as u64),
            _ => self.outcome(out, decoded, &returned),
        }
        if !is_raw && matches!(returned, Returned::Value(_)) {
            arguments::behind(out, decoded, self.options_of(row));
        }
        out.extend_from_slice(if call.injected.answered { b" (INJECTED)" } else { b"" });
        out.extend_from_slice(if call.injected.delayed { b" (DELAYED)" } else { b"" });
        if let (Some(precision), Some(duration)) = (self.show.strace.durations, call.duration()) {
            // Writing to a Vec does not fail.
            _ = write!(out, " <{}", duration / 1_000_000_000);
            head::fraction(out, duration % 1_000_000_000, precision);
            out.push(b'>');
        }
        out.push(b'\n');
    }

    /// Says that a process is not shown any more.
    fn detached(&mut self, out: &mut Vec<u8>, pid: i32) {
        if self.show.strace.detached {
            // Writing to a Vec does not fail.
            _ = writeln!(out, "strace: Process {pid} detached");
        }
        self.head.ended(pid);
    }

    /// Writes the line about another ABI than that of the task's previous call.
    fn abi(&mut self, out: &mut Vec<u8>, event: &Event, abi: Abi) {
        let tid = event.task.tid;
        if !self.show.strace.abis || self.abis.insert(tid, abi).unwrap_or(self.native) == abi {
            return;
        }
        self.head.write(out, tid, event.comm.as_ref(), event.time);
        let mode = match abi {
            Abi::X86_64 | Abi::Aarch64 => "64 bit",
            Abi::I386 => "32 bit",
            Abi::X32 => "x32",
        };
        // Writing to a Vec does not fail.
        _ = writeln!(out, "[ Process PID={tid} runs in {mode} mode. ]");
    }

    /// Writes what precedes the result of a program's execution by another thread than the leader, which goes on with
    /// the leader's number: the first half of its call, and the line about the end of the leader. Returns whether it is
    /// such a call.
    fn superseded(&mut self, out: &mut Vec<u8>, event: &Event, call: &Call, decoded: &Decoded) -> bool {
        let is_execution = call.ret() == Some(0) && decoded.row().is_some_and(|row| matches!(row.name, "execve" | "execveat"));
        if !is_execution {
            return false;
        }
        self.later.executed(event.task.pid);
        let (tid, comm) = (event.task.tid, event.comm.as_ref());
        if call.id.tid == tid {
            return false;
        }
        if !call.shown_pending {
            self.head.of_call(out, call.id.tid, comm, call.id.start, call.nr, None);
            name(out, decoded, call);
            out.push(b'(');
            arguments::write(out, decoded, Half::Both, self.show.strace.names, self.options_of(lookup::index(call.abi, call.nr)));
            out.extend_from_slice(UNFINISHED);
        }
        self.head.ended(call.id.tid);
        if self.show.strace.superseded {
            self.head.write(out, tid, comm, event.time);
            // Writing to a Vec does not fail.
            _ = writeln!(out, "+++ superseded by execve in pid {} +++", call.id.tid);
        }
        true
    }

    fn signal(&mut self, out: &mut Vec<u8>, event: &Event, of: &Signal, names: &dyn Names) {
        // A tracer that stops tasks never sees SIGKILL.
        if of.number == libc::SIGKILL || !self.show.strace.shows(of.number) {
            return;
        }
        self.head.write(out, event.task.tid, event.comm.as_ref(), event.time);
        let style = self.show.strace.constants;
        out.extend_from_slice(b"--- ");
        value::write_signal(out, of.number);
        out.extend_from_slice(b" {si_signo=");
        value::styled_signal(out, of.number, style);
        if let Some(code) = of.code {
            out.extend_from_slice(b", si_code=");
            value::signal_code(out, of.number, code, style);
        }
        let mut member = |name: &str, text: String| _ = write!(out, ", {name}={text}");
        let info = &of.info;
        let is_child = of.number == libc::SIGCHLD;
        info.pid.into_iter().for_each(|pid| member("si_pid", pid.to_string()));
        info.uid.into_iter().for_each(|uid| member("si_uid", uid.to_string()));
        if let Some(status) = info.status.filter(|_| is_child) {
            let name = |status: i32| {
                let mut name = Vec::new();
                value::styled_signal(&mut name, status, style);
                String::from_utf8_lossy(&name).into_owned()
            };
            member("si_status", if of.code == Some(libc::CLD_EXITED) { status.to_string() } else { name(status) });
            let ticks = |ticks: i64| match ticks {
                _ if ticks == 0 || style == Constants::Raw => ticks.to_string(),
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
        let stack = of.stack.iter().filter(|_| self.show.strace.stacks);
        stack.for_each(|stack| frames::write(out, event.task.pid, stack, names));
    }

    /// Writes the signals of a task that were sent up to the time `at`, with that time.
    fn signals(&mut self, out: &mut Vec<u8>, tid: i32, at: Time, names: &dyn Names) {
        for event in self.later.signals(tid, at) {
            self.kept(out, &event, names);
        }
    }

    /// Writes an event whose line was to come later.
    fn kept(&mut self, out: &mut Vec<u8>, event: &Event, names: &dyn Names) {
        match &event.kind {
            EventKind::Signal(signal) => self.signal(out, event, signal, names),
            EventKind::Exit(end) => self.task_end(out, event, *end),
            _ => {}
        }
    }

    /// Writes the end of a task, and the stack of the call that ended it.
    fn task_end(&mut self, out: &mut Vec<u8>, event: &Event, end: TaskEnd) {
        if self.show.strace.ends && !matches!(end, TaskEnd::Killed { signal, .. } if !self.show.strace.shows(signal)) {
            self.head.write(out, event.task.tid, event.comm.as_ref(), event.time);
            super::task_end::write(out, end, value::write_signal);
            out.push(b'\n');
        }
        out.extend(self.last_stacks.remove(&event.task.tid).unwrap_or_default());
        self.head.ended(event.task.tid);
        self.abis.remove(&event.task.tid);
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

/// Writes the name of a call, or its number if it has no name.
fn name(out: &mut Vec<u8>, decoded: &Decoded, call: &Call) {
    if call.request.is_some() || lookup::name(decoded.row(), call.abi, call.nr).is_some() {
        return lookup::write_name(out, decoded.row(), call.abi, call.nr);
    }
    out.extend_from_slice(b"syscall_");
    let bit = if call.abi == Abi::X32 { X32_BIT } else { 0 };
    constants::hex(out, call.nr as u64 | bit);
}

impl Style for Strace {
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        let begin = out.len();
        self.text(out, event, context);
        // The line of a call ends before another one begins.
        if out.len() > begin && self.open.take().is_some() {
            out.splice(begin..begin, UNFINISHED.iter().copied());
        }
    }

    fn open(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        let begin = out.len();
        self.event(out, event, context);
        if let (EventKind::Pending(call), true) = (&event.kind, out.ends_with(UNFINISHED)) {
            out.truncate(out.len() - UNFINISHED.len());
            let line = out[begin..].iter().rposition(|byte| *byte == b'\n').map_or(begin, |newline| begin + newline + 1);
            self.open = Some(OpenLine { call: call.id, bytes: out.len() - line });
        }
    }

    fn end(&mut self, out: &mut Vec<u8>, _: &Verdict, _: &Session) {
        out.extend_from_slice(if self.open.take().is_some() { UNFINISHED } else { b"" });
        self.later.take_all().iter().for_each(|event| self.kept(out, event, &Nameless));
        // The ends of these tasks were not seen.
        let mut last: Vec<_> = self.last_stacks.drain().collect();
        last.sort_unstable_by_key(|(tid, _)| *tid);
        out.extend(last.into_iter().flat_map(|(_, stack)| stack));
    }
}

impl Strace {
    /// Appends the text of an event.
    fn text(&mut self, out: &mut Vec<u8>, event: &Event, context: &StyleContext) {
        match &event.kind {
            EventKind::Call(call) | EventKind::Pending(call) => {
                self.later.seen(event.task);
                let tid = event.task.tid;
                self.signals(out, tid, call.id.start, context.names);
                let mut families = std::mem::take(&mut self.families);
                families.learn(call);
                let joined = Joined::default();
                // Without -v, the entries of directories are only counted.
                let has_entries = lookup::row(call.abi, call.nr).is_some_and(|row| COUNTED.contains(&row.name));
                let counts = has_entries && !self.options_of(lookup::index(call.abi, call.nr)).whole;
                let of_call =
                    |limit| Context::new(context.comm, limit).elements(usize::MAX).families(&families).joined(&joined).brief(counts);
                self.call(out, event, call, &Decoded::new(call, of_call(self.values.string_limit)));
                self.stack(out, event, call, context.names);
                let lines = &self.show.strace;
                if !lines.read.is_empty() || !lines.written.is_empty() {
                    dump::write(out, &Decoded::new(call, of_call(self.show.string_limit)), lines);
                }
                self.families = families;
                if call.exit != ExitState::Pending {
                    self.signals(out, tid, event.time, context.names);
                }
            }
            // A tracer that stops tasks never sees this one.
            EventKind::Signal(signal) if signal.number == libc::SIGKILL => {}
            EventKind::Signal(signal) if matches!(signal.disposition, Disposition::Ignored | Disposition::Kills) => self.later.keep(event),
            EventKind::Signal(signal) => {
                self.signals(out, event.task.tid, event.time, context.names);
                self.signal(out, event, signal, context.names);
            }
            EventKind::Exit(_) => {
                self.signals(out, event.task.tid, event.time, context.names);
                for event in self.later.ended(event) {
                    self.kept(out, &event, context.names);
                }
            }
            EventKind::Fork { child, .. } => {
                self.head.begun(event.task.tid);
                self.head.begun(child.tid);
                self.later.seen(*child);
                if let Some(abi) = self.abis.get(&event.task.tid).copied() {
                    self.abis.insert(child.tid, abi);
                }
                if self.show.strace.attached {
                    task_begin::write(out, *child);
                }
            }
            EventKind::Lost(loss) => self.lost(out, *loss),
            EventKind::Tracepoint { .. }
            | EventKind::Fault(_)
            | EventKind::Exec { .. }
            | EventKind::Aggregate(_)
            | EventKind::Tally(_)
            | EventKind::Notice(_) => {}
        }
    }
}
