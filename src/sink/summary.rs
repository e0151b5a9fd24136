//! `-s` and `-S`: how often each syscall was called, how it ended and how long it took, by thread, process, cgroup or for all.
//!
//! Groups stand in the order of their events, the busiest first (perf trace has it last, where the table is long). A call is counted once, when it is over; one whose entry or
//! exit was not seen is counted but not timed. When the kernel dropped records, the head says how many calls are missing.

mod groups;
mod stat;
mod table;

use super::output::Shared;
use super::{Sink, View};
use crate::beauty::{errno, escape, lookup, tables::SYSCALLS};
use crate::cli::request::Show;
use crate::event::{Abi, Call, Event, Exit, Sum, TaskId, What};
use crate::source::session::{EventSpec, Role};
use crate::syscall::ledger::Ledger;
use crate::task::Tasks;
use groups::{Groups, Span};
use rustc_hash::FxHashMap;
use stat::Stat;
use std::cmp::Reverse;
use std::fmt::Write;
use std::io;
use std::sync::PoisonError;
use table::Row;

/// Counts, and prints at the end.
pub struct Summary {
    errnos: bool,
    max_rows: Option<usize>,
    output: Shared,
    groups: Groups,
    /// What was counted beside calls, by group.
    counts: Vec<Counts>,
    stats: Vec<Stat>,
    of_call: FxHashMap<(u32, CallKey), u32>,
}

/// What a group did beside its calls.
#[derive(Clone, Debug, Default)]
struct Counts {
    events: u64,
    major_faults: u64,
    minor_faults: u64,
    /// Nanoseconds on a CPU, from sched_stat_runtime; none if that was not asked for.
    runtime: Option<u64>,
}

/// A syscall: its row, so that the ABIs' numbers for it are one; its number where there is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CallKey {
    Row(u16),
    Number(Abi, i64),
}

impl Summary {
    /// It is printed to `output` when everything is over.
    pub fn new(show: &Show, output: Shared) -> Summary {
        Summary {
            errnos: show.errno_summary,
            max_rows: show.max_summary,
            output,
            groups: Groups::new(show.summary_by),
            counts: Vec::new(),
            stats: Vec::new(),
            of_call: FxHashMap::default(),
        }
    }

    fn stat(&mut self, group: u32, abi: Abi, nr: i64) -> &mut Stat {
        let key = lookup::index(abi, nr).map_or(CallKey::Number(abi, nr), CallKey::Row);
        let place = *self.of_call.entry((group, key)).or_insert_with(|| {
            self.stats.push(Stat::default());
            self.stats.len() as u32 - 1
        });
        &mut self.stats[place as usize]
    }

    fn call(&mut self, group: u32, call: &Call) {
        let errnos = self.errnos;
        let stat = self.stat(group, call.abi, call.nr);
        stat.calls += 1;
        match call.duration() {
            Some(duration) => stat.times.add(duration),
            None => stat.untimed += u64::from(call.exit != Exit::Never),
        }
        if let Some(errno) = call.errno().filter(|errno| !errno::is_restart(*errno)) {
            stat.errors += 1;
            if errnos {
                stat.count_errno(errno, 1);
            }
        }
    }

    fn sum(&mut self, group: u32, sum: &Sum) {
        let errnos = self.errnos;
        let stat = self.stat(group, sum.abi, sum.nr);
        stat.calls += sum.calls;
        stat.times.add_all(sum.calls, &sum.times);
        for &(errno, count) in sum.errnos.iter().filter(|(errno, _)| !errno::is_restart(*errno)) {
            stat.errors += count;
            if errnos {
                stat.count_errno(errno, count);
            }
        }
    }

    fn tracepoint(&mut self, event: &Event, spec: Option<&EventSpec>, raw: &[u8], view: &View) {
        let Some(spec) = spec else { return };
        if spec.role == Role::StatRuntime
            && let Some((task, runtime)) = runtime(spec, raw, event.task, view)
        {
            let group = self.groups.of(task, None, event.time, Span::Moment, view);
            *self.counts(group).runtime.get_or_insert(0) += runtime;
        }
        if spec.shown {
            let group = self.group(event, event.task, Span::Moment, view);
            self.counts(group).events += 1;
        }
    }

    fn group(&mut self, event: &Event, task: TaskId, span: Span, view: &View) -> u32 {
        let comm = event.comm.as_ref().filter(|_| task == event.task);
        self.groups.of(task, comm, event.time, span, view)
    }

    fn counts(&mut self, group: u32) -> &mut Counts {
        let at = group as usize;
        if self.counts.len() <= at {
            self.counts.resize_with(at + 1, Counts::default);
        }
        &mut self.counts[at]
    }

    fn text(&mut self, ledger: &Ledger, tasks: &Tasks) -> String {
        let mut out = String::from("\n Summary of events:\n\n");
        missing(&mut out, ledger);
        let same = self.groups.settle(tasks);
        let mut groups: FxHashMap<u32, (Counts, FxHashMap<CallKey, Stat>)> = FxHashMap::default();
        for (group, counts) in self.counts.iter().enumerate() {
            groups.entry(same[group]).or_default().0.add(counts);
        }
        for ((group, key), place) in &self.of_call {
            groups.entry(same[*group as usize]).or_default().1.entry(*key).or_default().add(&self.stats[*place as usize]);
        }
        let all: u64 = self.counts.iter().map(|counts| counts.events).sum();
        let mut groups: Vec<_> =
            groups.into_iter().filter(|(_, (counts, rows))| counts.events > 0 || counts.runtime.is_some() || !rows.is_empty()).collect();
        groups.sort_by_key(|(group, (counts, _))| (Reverse(counts.events), *group));
        for (group, (counts, rows)) in groups {
            counts.head(&mut out, &self.groups.name(group), all);
            let rows = rows.into_iter().map(|(key, stat)| Row { name: key.name(), stat }).collect();
            table::write(&mut out, rows, self.max_rows);
            out.push('\n');
        }
        out
    }
}

impl Sink for Summary {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        match &event.what {
            What::Call(call) => {
                let group = self.group(event, event.task, Span::Moment, view);
                self.counts(group).events += 1;
                self.call(group, call);
            }
            What::Fault(fault) => {
                let group = self.group(event, event.task, Span::Moment, view);
                let counts = self.counts(group);
                counts.events += 1;
                *(if fault.major { &mut counts.major_faults } else { &mut counts.minor_faults }) += 1;
            }
            What::Tracepoint { event: index, raw, .. } => self.tracepoint(event, view.session.events.get(*index), raw, view),
            What::Fork { child, .. } => self.groups.forget(child.tid),
            What::Tally(tally) => {
                let group = self.group(event, event.task, Span::Life, view);
                self.counts(group).events += tally.calls();
                tally.sums.iter().for_each(|sum| self.sum(group, sum));
            }
            What::Pending(_) | What::Signal(_) | What::Exec { .. } | What::Exit(_) | What::Lost(_) => {}
        }
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, ledger: &Ledger, view: &View) -> io::Result<()> {
        let text = self.text(ledger, view.tasks);
        self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, text.as_bytes())
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.events += other.events;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
        if let Some(runtime) = other.runtime {
            *self.runtime.get_or_insert(0) += runtime;
        }
    }

    /// ` comm (tid), N events, P%, ...`
    fn head(&self, out: &mut String, name: &str, all: u64) {
        let _ = write!(out, " {name}");
        let share = if all == 0 { 0.0 } else { 100.0 * self.events as f64 / all as f64 };
        let _ = write!(out, ", {} events, {share:.1}%", self.events);
        for (count, what) in [(self.major_faults, "majfaults"), (self.minor_faults, "minfaults")] {
            if count > 0 {
                let _ = write!(out, ", {count} {what}");
            }
        }
        if let Some(runtime) = self.runtime {
            let _ = write!(out, ", {:.3} msec", runtime as f64 / 1e6);
        }
        out.push_str("\n\n");
    }
}

impl CallKey {
    fn name(self) -> String {
        let mut name = Vec::new();
        match self {
            CallKey::Row(row) => name.extend_from_slice(SYSCALLS[usize::from(row)].name.as_bytes()),
            CallKey::Number(abi, nr) => lookup::write_name(&mut name, None, abi, nr),
        }
        shown(&name)
    }
}

/// Says at the head of the tables what they lack.
fn missing(out: &mut String, ledger: &Ledger) {
    let records = ledger.lost_records();
    let _ = match ledger.calls_account().map(|account| account.lost) {
        Some(calls @ 1..) if calls == records => {
            writeln!(out, " PARTIAL: {calls} calls are missing here, as their records were lost; a larger -m loses less\n")
        }
        Some(calls @ 1..) => {
            writeln!(out, " PARTIAL: {calls} calls are missing here, as {records} records were lost; a larger -m loses less\n")
        }
        _ if records > 0 => writeln!(out, " PARTIAL: {records} records were lost; a larger -m loses less\n"),
        _ => Ok(()),
    };
}

/// Whose time it was, and how much, of a `sched:sched_stat_runtime` record.
fn runtime(spec: &EventSpec, raw: &[u8], current: TaskId, view: &View) -> Option<(TaskId, u64)> {
    let format = spec.format.as_ref()?;
    let tid = format.field("pid")?.number(raw)? as i32;
    let runtime = format.field("runtime")?.unsigned(raw)?;
    let task = if tid == current.tid { current } else { TaskId { pid: view.tasks.pid(tid).unwrap_or(tid), tid } };
    Some((task, runtime))
}

fn shown(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    escape::plain(&mut text, bytes);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests;
