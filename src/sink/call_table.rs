//! The table of `strace -c`: the number of calls and errors of each system call, and its time between entry and return,
//! as with `strace -w`. A call that does not return is not counted.

use super::output::SharedOutput;
use super::{Sink, TraceResult, View};
use crate::beauty::{errno, lookup, task_begin};
use crate::event::{Abi, Event, EventKind, ExitState};
use crate::show::strace::{Column, Lines, Summary};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::fmt::Write;
use std::io;
use std::sync::PoisonError;

/// The sink that counts calls, and prints the table at the end.
pub struct CallTable {
    options: Summary,
    rows: FxHashMap<(Abi, i64), Row>,
    output: SharedOutput,
    /// Whether new tasks are announced when they begin, which the lines do themselves.
    attached: bool,
    /// Whether lines show each call besides.
    beside_lines: bool,
    /// The number of calls that the table would have shown, if it could not be written.
    unwritten: u64,
}

/// The numbers of a system call. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    calls: u64,
    errors: u64,
    total: u64,
    min: u64,
    max: u64,
}

impl Row {
    fn add(&mut self, more: &Row) {
        if more.calls > 0 {
            self.min = if self.calls == 0 { more.min } else { self.min.min(more.min) };
        }
        self.max = self.max.max(more.max);
        self.total = self.total.saturating_add(more.total);
        self.calls += more.calls;
        self.errors += more.errors;
    }

    fn average(&self) -> u64 {
        self.total.checked_div(self.calls).unwrap_or_default()
    }
}

impl CallTable {
    /// Creates the sink, which prints its table to `output`.
    pub fn new(show: &Lines, beside_lines: bool, output: SharedOutput) -> CallTable {
        let (options, attached) = (show.summary.clone(), show.attached && !beside_lines);
        CallTable { options, rows: FxHashMap::default(), output, attached, beside_lines, unwritten: 0 }
    }

    fn text(&self) -> String {
        let name = |&(abi, nr): &(Abi, i64)| {
            let mut name = Vec::new();
            lookup::write_name(&mut name, lookup::row(abi, nr), abi, nr);
            String::from_utf8_lossy(&name).into_owned()
        };
        let mut rows: Vec<(i64, String, Row)> = self.rows.iter().map(|(key, row)| (key.1, name(key), *row)).collect();
        rows.sort_by_key(|(nr, ..)| *nr);
        match self.options.sort_by {
            None => {}
            Some(Column::TotalTime | Column::TimePercent | Column::WallTotal) => rows.sort_by_key(|(.., row)| Reverse(row.total)),
            Some(Column::MinTime | Column::WallMin) => rows.sort_by_key(|(.., row)| Reverse(row.min)),
            Some(Column::MaxTime | Column::WallMax) => rows.sort_by_key(|(.., row)| Reverse(row.max)),
            Some(Column::AvgTime | Column::WallAvg) => rows.sort_by_key(|(.., row)| Reverse(row.average())),
            Some(Column::Calls) => rows.sort_by_key(|(.., row)| Reverse(row.calls)),
            Some(Column::Errors) => rows.sort_by_key(|(.., row)| Reverse(row.errors)),
            Some(Column::Name) => rows.sort_by(|a, b| a.1.cmp(&b.1)),
        }
        let mut total = Row::default();
        rows.iter().for_each(|(.., row)| total.add(row));
        let mut out = String::new();
        if rows.is_empty() {
            return out;
        }
        self.line(&mut out, |column| title(column).to_owned());
        let rule = |column| "-".repeat(width(column).unsigned_abs() as usize);
        self.line(&mut out, rule);
        for (_, name, row) in &rows {
            self.line(&mut out, |column| cell(column, name, row, total.total));
        }
        self.line(&mut out, rule);
        self.line(&mut out, |column| cell(column, "total", &total, total.total));
        out
    }

    /// Writes a line. A name in the last column has no blanks behind it.
    fn line(&self, out: &mut String, cell: impl Fn(Column) -> String) {
        for (at, column) in self.options.columns.iter().enumerate() {
            let is_last = at + 1 == self.options.columns.len();
            let width = width(*column);
            // Writing to a String does not fail.
            let _ = match width {
                ..0 if is_last => write!(out, "{}", cell(*column)),
                ..0 => write!(out, "{:<1$} ", cell(*column), width.unsigned_abs() as usize),
                _ => write!(out, "{:>1$}{2}", cell(*column), width as usize, if is_last { "" } else { " " }),
            };
        }
        out.push('\n');
    }
}

/// Returns the title of a column.
fn title(column: Column) -> &'static str {
    match column {
        Column::TimePercent => "% time",
        Column::TotalTime => "seconds",
        Column::MinTime => "shortest",
        Column::MaxTime => "longest",
        Column::AvgTime => "usecs/call",
        Column::WallTotal => "wall-total",
        Column::WallMin => "wall-min",
        Column::WallMax => "wall-max",
        Column::WallAvg => "wall-avg",
        Column::Calls => "calls",
        Column::Errors => "errors",
        Column::Name => "syscall",
    }
}

/// Returns the width of a column; negative if its cells begin at the left.
fn width(column: Column) -> i32 {
    match column {
        Column::TimePercent => 6,
        Column::TotalTime | Column::AvgTime | Column::WallTotal | Column::WallAvg => 11,
        Column::MinTime | Column::MaxTime | Column::WallMin | Column::WallMax => 8,
        Column::Calls | Column::Errors => 9,
        Column::Name => -16,
    }
}

fn cell(column: Column, name: &str, row: &Row, whole: u64) -> String {
    let seconds = |time: u64| format!("{}.{:06}", time / 1_000_000_000, time / 1000 % 1_000_000);
    match column {
        Column::TimePercent => format!("{:.2}", 100.0 * row.total as f64 / whole.max(1) as f64),
        Column::TotalTime | Column::WallTotal => seconds(row.total),
        Column::MinTime | Column::WallMin => seconds(row.min),
        Column::MaxTime | Column::WallMax => seconds(row.max),
        Column::AvgTime | Column::WallAvg => (row.average() / 1000).to_string(),
        Column::Calls => row.calls.to_string(),
        Column::Errors if row.errors == 0 => String::new(),
        Column::Errors => row.errors.to_string(),
        Column::Name => name.to_owned(),
    }
}

impl Sink for CallTable {
    fn event(&mut self, event: &Event, _: &View) -> io::Result<()> {
        let CallTable { options, rows, .. } = self;
        let less = |time: u64, calls: u64| time.saturating_sub(calls.saturating_mul(options.overhead));
        let mut add = |abi: Abi, nr: i64, more: Row| rows.entry((abi, nr)).or_default().add(&more);
        match &event.kind {
            EventKind::Call(call) if matches!(call.exit, ExitState::Returned { .. }) => {
                let time = less(call.duration().unwrap_or_default(), 1);
                let errors = u64::from(call.errno().is_some_and(|errno| !errno::is_restart(errno)));
                add(call.abi, call.nr, Row { calls: 1, errors, total: time, min: time, max: time });
            }
            EventKind::Tally(tally) => {
                for call in &tally.calls {
                    let time = less(call.duration, 1);
                    let errors = u64::from(call.errno != 0 && !errno::is_restart(call.errno.into()));
                    add(call.abi, call.nr.into(), Row { calls: 1, errors, total: time, min: time, max: time });
                }
            }
            EventKind::Aggregate(aggregate) => {
                for sum in &aggregate.sums {
                    let (calls, times) = (sum.times.count(), &sum.times);
                    let errors = sum.errnos.iter().filter(|(errno, _)| !errno::is_restart(*errno)).map(|(_, count)| count).sum();
                    let [total, min, max] = [less(times.total, calls), less(times.min, 1), less(times.max, 1)];
                    add(sum.abi, sum.nr, Row { calls, errors, total, min, max });
                }
            }
            EventKind::Fork { child, .. } if self.attached => {
                let mut line = Vec::new();
                task_begin::write(&mut line, *child);
                self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, &line)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &TraceResult, _: &View) -> io::Result<()> {
        self.rows.retain(|_, row| row.calls > 0);
        let written = self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, self.text().as_bytes());
        if written.is_err() && !self.beside_lines {
            self.unwritten = self.rows.values().map(|row| row.calls).sum();
        }
        Ok(written?)
    }

    fn unwritten(&self) -> u64 {
        self.unwritten
    }
}
