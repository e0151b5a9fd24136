//! `-s` and `-S`: the number, results and durations of calls by syscall, for all tasks or by thread, process or cgroup;
//! additionally by an object of the calls (`--by`), and repeatedly (`--interval`).
//!
//! Groups are ordered by their number of events, the busiest first (perf trace prints it last). A call is counted once,
//! when it has ended. A call whose entry or exit was not seen is counted but not timed. If the kernel dropped records,
//! the head has the number of missing calls.
//!
//! The sink first computes the tables, and then formats them as text or as JSON objects. It writes them at the next
//! tick, so that they follow the lines that were printed to the same output before.

mod columns;
mod groups;
mod histogram;
mod json;
mod numbers;
mod objects;
mod stat;
mod table;

use super::output::SharedOutput;
use super::{Sink, TraceResult, View};
use crate::beauty::stamp::Stamps;
use crate::event::{Comm, Event, EventKind, TaskId, Time};
use crate::session::{EventSpec, Role};
use crate::show::{Mode, Show, Style, SummaryBy, TimeFormat};
use crate::syscall::ledger::Ledger;
use crate::task::Tasks;
use groups::{Groups, Span};
use numbers::{CallKey, Counts, GroupNumbers, Numbers};
use objects::{ObjectId, Objects};
use smallvec::SmallVec;
use stat::Stat;
use std::cmp::Reverse;
use std::fmt::Write;
use std::io;
use std::sync::PoisonError;
use table::Row;

/// The sink that counts calls and prints the tables at the end.
pub struct Summary {
    options: TableOptions,
    output: SharedOutput,
    groups: Groups,
    objects: Objects,
    /// The numbers since the present interval began, or since the start.
    numbers: Numbers,
    interval: Option<Interval>,
    /// The formatted tables that are not written yet.
    waiting: Vec<u8>,
    /// The number of calls that are printed only in the tables.
    calls: u64,
    /// Whether the last table could be written.
    is_written: bool,
}

/// Options of the tables.
struct TableOptions {
    style: Style,
    by: SummaryBy,
    errnos: bool,
    histogram: bool,
    max_rows: Option<usize>,
    beside_lines: bool,
}

/// The table of a group.
#[derive(Default)]
struct Table {
    group: u32,
    counts: Counts,
    /// All rows, in descending order of their total duration.
    rows: Vec<Row>,
}

/// The time that tables cover.
struct Period {
    from: Time,
    to: Time,
    /// Whether the period is an interval of `--interval` and not the whole trace.
    is_interval: bool,
}

/// The state of `--interval`.
struct Interval {
    /// The length in nanoseconds.
    length: u64,
    /// The beginning of the present interval; `None` before the first event or tick. The first interval begins with the
    /// trace.
    begun: Option<Time>,
    /// The numbers of the earlier intervals, if there were any.
    before: Option<Numbers>,
    format: TimeFormat,
    stamps: Option<Stamps>,
}

impl Summary {
    /// Creates the sink, which prints its tables to `output` at the end.
    pub fn new(show: &Show, output: SharedOutput) -> Summary {
        let interval =
            show.interval.map(|length| Interval { length: length.max(1), begun: None, before: None, format: show.time, stamps: None });
        Summary {
            options: TableOptions {
                style: show.style,
                by: show.summary_by,
                errnos: show.errno_summary,
                histogram: show.histogram,
                max_rows: show.max_summary,
                beside_lines: show.mode == Mode::Both,
            },
            output,
            groups: Groups::new(show.summary_by),
            objects: Objects::new(show.summary_object.clone(), show.string_limit, show.style),
            numbers: Numbers::default(),
            interval,
            waiting: Vec::new(),
            calls: 0,
            is_written: true,
        }
    }

    fn tracepoint(&mut self, event: &Event, spec: Option<&EventSpec>, raw: &[u8], view: &View) {
        let Some(spec) = spec else { return };
        if spec.role == Role::StatRuntime
            && let Some((task, runtime)) = runtime(spec, raw, event.task, view)
        {
            let group = self.groups.of(task, None, event.time, Span::Moment, view);
            self.numbers.counts(group).add_runtime(runtime);
        }
        if spec.shown {
            let group = self.group(event, Span::Moment, view);
            self.numbers.counts(group).events += 1;
        }
    }

    fn group(&mut self, event: &Event, span: Span, view: &View) -> u32 {
        self.groups.of(event.task, event.comm.as_ref(), event.time, span, view)
    }

    /// Prints the intervals that have ended at `now`.
    fn print_finished_intervals(&mut self, now: Time, view: &View) -> io::Result<()> {
        let Some(interval) = &mut self.interval else { return Ok(()) };
        let begun = *interval.begun.get_or_insert_with(|| {
            let mut stamps = Stamps::new(interval.format, view.session);
            // Relative time stamps count from the start of the trace.
            stamps.line(&mut Vec::new(), Some(view.session.started));
            interval.stamps = Some(stamps);
            view.session.started
        });
        if now.since(begun) < interval.length {
            return Ok(());
        }
        let end = Time(begun.0 + interval.length);
        interval.begun = Some(Time(begun.0 + now.since(begun) / interval.length * interval.length));
        self.print_interval(begun, end, view)
    }

    fn print_interval(&mut self, from: Time, to: Time, view: &View) -> io::Result<()> {
        let numbers = std::mem::take(&mut self.numbers);
        let tables = self.tables(&numbers, view.tasks);
        let Some(interval) = &mut self.interval else { return Ok(()) };
        interval.before.get_or_insert_default().add(&numbers);
        if self.options.style == Style::Json {
            return self.print_objects(&tables, &Period { from, to, is_interval: true }, view);
        }
        let stamps = interval.stamps.get_or_insert_with(|| Stamps::new(interval.format, view.session));
        let mut stamp = |time| {
            let mut text = Vec::new();
            stamps.moment(&mut text, time);
            String::from_utf8_lossy(&text).into_owned()
        };
        let mut out = format!("\n Summary of events from {} to {}:\n\n", stamp(from), stamp(to));
        if numbers.events() == 0 {
            out.push_str(" no events\n\n");
        }
        self.print_tables(&mut out, &tables);
        self.waiting.extend_from_slice(out.as_bytes());
        Ok(())
    }

    /// Prints the tables of the whole trace.
    fn print_trace(&mut self, ledger: &Ledger, view: &View) -> io::Result<()> {
        match self.options.style {
            Style::Json => {
                let tables = self.tables_of_trace(view.tasks);
                self.print_objects(&tables, &Period { from: view.session.started, to: view.now, is_interval: false }, view)
            }
            Style::Perf | Style::Strace => {
                let text = self.text(ledger, view.tasks);
                self.waiting.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }

    fn print_objects(&mut self, tables: &[Table], period: &Period, view: &View) -> io::Result<()> {
        Ok(json::write(&mut self.waiting, tables, period, (&self.groups, &self.objects, &self.options), view.session)?)
    }

    fn text(&mut self, ledger: &Ledger, tasks: &Tasks) -> String {
        let mut out = String::from("\n Summary of events:\n\n");
        missing(&mut out, ledger);
        let tables = self.tables_of_trace(tasks);
        self.print_tables(&mut out, &tables);
        out
    }

    fn tables_of_trace(&mut self, tasks: &Tasks) -> Vec<Table> {
        let numbers = std::mem::take(&mut self.numbers);
        let tables = self.tables(&numbers, tasks);
        self.numbers = numbers;
        tables
    }

    /// Returns the tables of a period, beginning with that of the busiest group.
    fn tables(&mut self, numbers: &Numbers, tasks: &Tasks) -> Vec<Table> {
        let same = self.groups.resolve_cgroups(tasks);
        let mut groups = numbers.of_groups(&same);
        groups.sort_by_key(|(group, of)| (Reverse(of.counts.events), *group));
        let row = |((object, call), stat): ((ObjectId, CallKey), Stat)| Row {
            call,
            name: call.name(),
            object,
            object_name: self.objects.name(object).to_owned(),
            stat,
        };
        let table = |(group, GroupNumbers { counts, stats }): (u32, GroupNumbers)| {
            let mut rows: Vec<Row> = stats.into_iter().map(row).collect();
            table::sort(&mut rows);
            Table { group, counts, rows }
        };
        groups.into_iter().map(table).collect()
    }

    fn print_tables(&self, out: &mut String, tables: &[Table]) {
        let all = tables.iter().map(|table| table.counts.events).sum();
        for Table { group, counts, rows } in tables {
            let calls: u64 = rows.iter().map(|row| row.stat.calls).sum();
            self.head(out, *group, counts, (calls, all));
            if self.options.by == SummaryBy::OneTable || self.objects.title().is_some() {
                columns::write(out, rows, &self.options, self.objects.title());
            } else {
                table::write(out, rows, &self.options);
            }
            let mut legends: Vec<&str> = rows.iter().filter_map(|row| self.objects.legend(row.object)).collect();
            legends.sort_unstable();
            legends.dedup();
            legends.into_iter().for_each(|legend| _ = writeln!(out, "   {legend}"));
            out.push('\n');
        }
    }

    /// Prints ` comm (tid), N events, P%, ...`. For a table of all tasks, prints only facts that the table does not
    /// have.
    fn head(&self, out: &mut String, group: u32, counts: &Counts, (calls, all): (u64, u64)) {
        let mut words = Vec::new();
        match self.options.by {
            SummaryBy::OneTable if counts.events == calls && counts.major_faults + counts.minor_faults == 0 && counts.runtime.is_none() => {
            }
            SummaryBy::OneTable => words.push(format!("{} events", counts.events)),
            _ => {
                let share = if all == 0 { 0.0 } else { 100.0 * counts.events as f64 / all as f64 };
                words.extend([self.groups.name(group), format!("{} events", counts.events), format!("{share:.1}%")]);
            }
        }
        let faults = [(counts.major_faults, "majfaults"), (counts.minor_faults, "minfaults")];
        words.extend(faults.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
        words.extend(counts.runtime.map(|runtime| format!("{:.3} msec", runtime as f64 / 1e6)));
        if !words.is_empty() {
            let _ = writeln!(out, " {}\n", words.join(", "));
        }
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let written = self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, &self.waiting);
        self.waiting.clear();
        Ok(written?)
    }
}

impl Sink for Summary {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        if matches!(event.kind, EventKind::Notice(_)) {
            return Ok(());
        }
        self.print_finished_intervals(event.time, view)?;
        if !self.options.beside_lines {
            self.calls += event.kind.calls();
        }
        match &event.kind {
            EventKind::Call(call) => {
                let group = self.group(event, Span::Moment, view);
                let object = self.objects.of(event, call, view);
                self.numbers.call(group, object, call, self.options.errnos);
            }
            EventKind::Fault(fault) => {
                let group = self.group(event, Span::Moment, view);
                let counts = self.numbers.counts(group);
                counts.events += 1;
                *(if fault.major { &mut counts.major_faults } else { &mut counts.minor_faults }) += 1;
            }
            EventKind::Tracepoint { event: index, raw, .. } => self.tracepoint(event, view.session.events.get(*index), raw, view),
            EventKind::Fork { child, .. } => self.groups.forget(child.tid),
            EventKind::Tally(tally) => {
                let group = |(task, comm): &(TaskId, Option<Comm>)| self.groups.of(*task, comm.as_ref(), event.time, Span::Moment, view);
                let groups: SmallVec<[u32; 8]> = tally.tasks.iter().map(group).collect();
                for call in &tally.calls {
                    let group = groups.get(usize::from(call.task)).copied().unwrap_or_default();
                    self.numbers.tallied(group, call, self.options.errnos);
                }
            }
            EventKind::Aggregate(aggregate) => {
                let group = self.group(event, Span::Life, view);
                aggregate.sums.iter().for_each(|sum| self.numbers.sum(group, sum, self.options.errnos));
            }
            EventKind::Pending(_) | EventKind::Signal(_) | EventKind::Exec { .. } | EventKind::Exit(_) | EventKind::Lost(_) => {}
            EventKind::Notice(_) => {}
        }
        Ok(())
    }

    fn tick(&mut self, view: &View) -> io::Result<()> {
        self.print_finished_intervals(view.now, view)?;
        self.write_waiting()
    }

    fn end(&mut self, result: &TraceResult, view: &View) -> io::Result<()> {
        // An unfinished interval is printed as well, so that the intervals add up to the total.
        if let Some((begun, true)) = self.interval.as_ref().and_then(|interval| Some((interval.begun?, interval.before.is_some()))) {
            self.print_interval(begun, view.now, view)?;
        }
        if let Some(before) = self.interval.as_mut().and_then(|interval| interval.before.take()) {
            self.numbers.add(&before);
        }
        self.print_trace(result.ledger, view)?;
        let written = self.write_waiting();
        self.is_written = written.is_ok();
        written
    }

    fn unwritten(&self) -> u64 {
        if self.is_written { 0 } else { self.calls }
    }
}

/// Prints at the head of the tables how many calls or records they lack.
fn missing(out: &mut String, ledger: &Ledger) {
    let records = ledger.lost_records();
    let _ = match ledger.calls_account().map(|account| account.lost) {
        Some(calls @ 1..) if calls == records => {
            writeln!(out, " PARTIAL: {calls} calls are missing because their records were lost; a larger -m loses fewer\n")
        }
        Some(calls @ 1..) => {
            writeln!(out, " PARTIAL: {calls} calls are missing because {records} records were lost; a larger -m loses fewer\n")
        }
        _ if records > 0 => writeln!(out, " PARTIAL: {records} records were lost; a larger -m loses fewer\n"),
        _ => Ok(()),
    };
}

/// Returns the task and the run time of a `sched:sched_stat_runtime` record.
fn runtime(spec: &EventSpec, raw: &[u8], current: TaskId, view: &View) -> Option<(TaskId, u64)> {
    let format = spec.format.as_ref()?;
    let tid = format.field("pid")?.number(raw)? as i32;
    let runtime = format.field("runtime")?.unsigned(raw)?;
    let task = if tid == current.tid { current } else { TaskId { pid: view.tasks.pid(tid).unwrap_or(tid), tid } };
    Some((task, runtime))
}

#[cfg(test)]
mod tests;
