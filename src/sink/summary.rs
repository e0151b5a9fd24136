//! `-s` and `-S`: how often each syscall was called, how it ended and how long it took, by thread, process, cgroup or for all.
//!
//! Groups stand in the order of their events, the busiest first (perf trace has it last, where the table is long). A call is counted once, when it is over; one whose entry or
//! exit was not seen is counted but not timed. When the kernel dropped records, the head says how many calls are missing.

mod stat;
mod table;

use super::output::Shared;
use super::{Sink, View};
use crate::beauty::{errno, escape, lookup, tables::SYSCALLS};
use crate::cli::request::{Show, SummaryBy};
use crate::event::{Abi, Call, Comm, Event, Exit, Sum, TaskId, Time, What};
use crate::source::session::{EventSpec, Role};
use crate::syscall::ledger::Ledger;
use rustc_hash::FxHashMap;
use stat::Stat;
use std::cmp::Reverse;
use std::fmt::Write;
use std::io;
use std::sync::{Arc, PoisonError};
use table::Row;

/// Counts, and prints at the end.
pub struct Summary {
    by: SummaryBy,
    errnos: bool,
    max_rows: Option<usize>,
    output: Shared,
    groups: Vec<Group>,
    /// From a tid, or a pid when grouped by process, to its group: of the task that has it now.
    of_task: FxHashMap<i32, u32>,
    of_cgroup: FxHashMap<Option<Arc<[u8]>>, u32>,
    /// The last task asked for: events come in bursts of one task.
    recent: Option<(i32, u32)>,
    stats: Vec<Stat>,
    of_call: FxHashMap<(u32, CallKey), u32>,
}

/// Tasks that are counted together.
#[derive(Debug)]
struct Group {
    who: Who,
    name: Option<Comm>,
    events: u64,
    major_faults: u64,
    minor_faults: u64,
    /// Nanoseconds on a CPU, from sched_stat_runtime; none if that was not asked for.
    runtime: Option<u64>,
}

#[derive(Clone, Debug)]
enum Who {
    /// A thread or a process.
    Task(i32),
    Cgroup(Option<Arc<[u8]>>),
    Total,
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
            by: show.summary_by,
            errnos: show.errno_summary,
            max_rows: show.max_summary,
            output,
            groups: Vec::new(),
            of_task: FxHashMap::default(),
            of_cgroup: FxHashMap::default(),
            recent: None,
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
            let group = self.group(task, None, event.time, view);
            *self.groups[group as usize].runtime.get_or_insert(0) += runtime;
        }
        if spec.shown {
            let group = self.group(event.task, event.comm.as_ref(), event.time, view);
            self.groups[group as usize].events += 1;
        }
    }

    /// The group of a task; named after its latest name, a process after its first thread.
    fn group(&mut self, task: TaskId, comm: Option<&Comm>, time: Time, view: &View) -> u32 {
        let key = match self.by {
            SummaryBy::Thread | SummaryBy::Cgroup => task.tid,
            SummaryBy::Process => task.pid,
            SummaryBy::Total => 0,
        };
        let group = match self.recent {
            Some((recent, group)) if recent == key => group,
            _ => {
                let group = self.of_task.get(&key).copied().unwrap_or_else(|| self.begin_group(key, time, view));
                self.recent = Some((key, group));
                group
            }
        };
        let names = matches!(self.by, SummaryBy::Thread) || matches!(self.by, SummaryBy::Process) && task.tid == task.pid;
        let known = &mut self.groups[group as usize].name;
        if let Some(comm) = comm
            && names
            && !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, comm))
        {
            *known = Some(comm.clone());
        }
        group
    }

    fn begin_group(&mut self, key: i32, time: Time, view: &View) -> u32 {
        let new = self.groups.len() as u32;
        let (who, name) = match self.by {
            SummaryBy::Thread | SummaryBy::Process => (Who::Task(key), view.tasks.comm_at(key, time)),
            SummaryBy::Cgroup => (Who::Cgroup(view.tasks.cgroup(key)), None),
            SummaryBy::Total => (Who::Total, None),
        };
        let group = match &who {
            Who::Cgroup(cgroup) => *self.of_cgroup.entry(cgroup.clone()).or_insert(new),
            Who::Task(_) | Who::Total => new,
        };
        if group == new {
            self.groups.push(Group { who, name, events: 0, major_faults: 0, minor_faults: 0, runtime: None });
        }
        self.of_task.insert(key, group);
        group
    }

    /// The next task with this number is another one.
    fn forget(&mut self, key: i32) {
        if !matches!(self.by, SummaryBy::Total) {
            self.of_task.remove(&key);
            self.recent = None;
        }
    }

    fn text(&self, ledger: &Ledger) -> String {
        let mut out = String::from("\n Summary of events:\n\n");
        missing(&mut out, ledger);
        let mut rows: Vec<Vec<Row>> = self.groups.iter().map(|_| Vec::new()).collect();
        for ((group, key), place) in &self.of_call {
            rows[*group as usize].push(Row { name: key.name(), stat: self.stats[*place as usize].clone() });
        }
        let all: u64 = self.groups.iter().map(|group| group.events).sum();
        let mut groups: Vec<_> =
            self.groups.iter().zip(rows).filter(|(group, rows)| group.events > 0 || group.runtime.is_some() || !rows.is_empty()).collect();
        groups.sort_by_key(|(group, _)| Reverse(group.events));
        for (group, rows) in groups {
            group.head(&mut out, all);
            table::write(&mut out, rows, self.max_rows);
            out.push('\n');
        }
        out
    }
}

impl Sink for Summary {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        let group = |summary: &mut Summary| summary.group(event.task, event.comm.as_ref(), event.time, view);
        match &event.what {
            What::Call(call) => {
                let group = group(self);
                self.groups[group as usize].events += 1;
                self.call(group, call);
            }
            What::Fault(fault) => {
                let group = group(self);
                let group = &mut self.groups[group as usize];
                group.events += 1;
                *(if fault.major { &mut group.major_faults } else { &mut group.minor_faults }) += 1;
            }
            What::Tracepoint { event: index, raw, .. } => self.tracepoint(event, view.session.events.get(*index), raw, view),
            What::Fork { child, .. } => self.forget(child.tid),
            What::Tally(tally) => {
                let group = group(self);
                self.groups[group as usize].events += tally.calls();
                tally.sums.iter().for_each(|sum| self.sum(group, sum));
            }
            What::Pending(_) | What::Signal { .. } | What::Exec { .. } | What::Exit(_) | What::Lost(_) => {}
        }
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, ledger: &Ledger, _: &View) -> io::Result<()> {
        let text = self.text(ledger);
        self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, text.as_bytes())
    }
}

impl Group {
    /// ` comm (tid), N events, P%, ...`
    fn head(&self, out: &mut String, all: u64) {
        let _ = match &self.who {
            Who::Task(id) => write!(out, " {} ({id})", self.name.as_deref().map_or_else(|| "?".to_owned(), shown)),
            Who::Cgroup(Some(path)) => write!(out, " cgroup {}", shown(path)),
            Who::Cgroup(None) => write!(out, " cgroup ?"),
            Who::Total => write!(out, " total"),
        };
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
