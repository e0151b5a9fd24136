//! Text output: renders each event in the requested style and writes the lines in large batches.
//!
//! Lines are written at the next tick at the latest, or when 64 KiB have accumulated. This sink filters nothing: events
//! that are not shown do not reach it, except those that rtrace needs for itself (the event's `shown` is false).

use super::output::SharedOutput;
use super::{Sink, TraceResult, View};
use crate::beauty::style::{self, Style, StyleContext};
use crate::event::{Event, EventKind, ExitState};
use crate::show::{self, Mode, Show, TimeFormat, Width};
use crate::stream::Unwritten;
use rustc_hash::FxHashMap;
use std::io;
use std::sync::PoisonError;

/// The number of bytes at which a batch is written at once.
const BATCH: usize = 64 * 1024;

/// The sink that writes lines.
pub struct Text {
    show: Show,
    color: bool,
    /// Created at the first event, when the armed events are known.
    style: Option<Box<dyn Style>>,
    /// Whether an event had a line that was passed over.
    has_first_line: bool,
    output: SharedOutput,
    lines: Lines,
    /// The number of calls whose lines could not be written.
    unwritten: u64,
}

/// The lines that are not written yet.
enum Lines {
    Together(Batch),
    /// A batch per process; `None` is for lines of no single process.
    Separately {
        line: Vec<u8>,
        waiting: FxHashMap<Option<i32>, Batch>,
        bytes: usize,
    },
}

/// Lines, with the offsets at which those of calls end.
#[derive(Debug, Default)]
struct Batch {
    lines: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// Records the end of an event's text, which was just appended.
    fn end_event(&mut self, event: &Event) {
        self.ends.extend((event.kind.calls() > 0).then_some(self.lines.len()));
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.ends.clear();
    }

    /// Writes the batch, and counts the calls whose text was not written completely.
    fn write(&self, output: &SharedOutput, pid: Option<i32>, unwritten: &mut u64) -> io::Result<()> {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write(pid, &self.lines).map_err(|Unwritten { error, written }| {
            *unwritten += self.ends.iter().filter(|end| **end > written).count() as u64;
            error
        })
    }
}

impl Text {
    pub fn new(show: &Show, color: bool, output: SharedOutput) -> Text {
        let separate = output.lock().unwrap_or_else(PoisonError::into_inner).is_separate();
        let lines = match separate {
            true => Lines::Separately { line: Vec::new(), waiting: FxHashMap::default(), bytes: 0 },
            false => Lines::Together(Batch { lines: Vec::with_capacity(BATCH + 4096), ends: Vec::new() }),
        };
        Text { show: show.clone(), color, style: None, has_first_line: false, output, lines, unwritten: 0 }
    }

    /// Creates the style if it does not exist yet.
    fn begin(&mut self, view: &View) {
        if self.style.is_none() {
            let style = style::create(&self.show, view.session, self.color);
            self.output.lock().unwrap_or_else(PoisonError::into_inner).begin_files_with(style.header());
            self.style = Some(style);
            self.update_terminal_width();
        }
    }

    /// Reads the terminal's width, which may have changed.
    fn update_terminal_width(&mut self) {
        let columns = self.output.lock().unwrap_or_else(PoisonError::into_inner).columns_of_terminal();
        if let (Some(style), Some(columns)) = (&mut self.style, columns) {
            style.on_terminal(match self.show.width {
                Width::Any => None,
                Width::Terminal => Some(usize::from(columns)).filter(|columns| *columns > 0),
                Width::Columns(columns) => Some(usize::from(columns)),
            });
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Text { lines, output, unwritten, .. } = self;
        match lines {
            Lines::Together(batch) if batch.lines.is_empty() => Ok(()),
            Lines::Together(batch) => {
                let done = batch.write(output, None, unwritten);
                batch.clear();
                done
            }
            // Each process has a file of its own: a failed write to one file does not prevent the writes to the others.
            Lines::Separately { waiting, bytes, .. } => {
                *bytes = 0;
                waiting.drain().map(|(pid, batch)| batch.write(output, pid, unwritten)).fold(Ok(()), io::Result::and)
            }
        }
    }
}

/// Which text of an event is printed.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    /// The beginning of a call in flight.
    Beginning,
}

impl Text {
    fn print(&mut self, event: &Event, view: &View, part: Part) -> io::Result<()> {
        self.begin(view);
        // If only a summary or a report is shown, JSON has no objects of events other than notices.
        if matches!(self.show.mode, Mode::Summary | Mode::Report) && !matches!(event.kind, EventKind::Notice(_)) {
            return Ok(());
        }
        let Some(style) = &mut self.style else { return Ok(()) };
        let full = match &mut self.lines {
            Lines::Together(batch) => {
                print(style.as_mut(), &mut batch.lines, event, view, part);
                batch.end_event(event);
                batch.lines.len() >= BATCH
            }
            Lines::Separately { line, waiting, bytes } => {
                print(style.as_mut(), line, event, view, part);
                let pid = if matches!(event.kind, EventKind::Lost(_) | EventKind::Notice(_)) { None } else { Some(event.task.pid) };
                if !line.is_empty() {
                    let batch = waiting.entry(pid).or_default();
                    batch.lines.extend_from_slice(line);
                    batch.end_event(event);
                }
                *bytes += line.len();
                line.clear();
                *bytes >= BATCH
            }
        };
        if full { self.flush() } else { Ok(()) }
    }
}

impl Sink for Text {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        self.print(event, view, Part::Whole)
    }

    fn open(&mut self, event: &Event, view: &View) -> io::Result<()> {
        self.print(event, view, Part::Beginning)
    }

    fn pass_over(&mut self, event: &Event, view: &View) {
        self.begin(view);
        // An object of JSON depends on no other, but the first one of a process says where the process comes from.
        let is_origin = matches!(event.kind, EventKind::Fork { .. } | EventKind::Exec { .. });
        if self.show.style == show::Style::Json && !is_origin {
            return;
        }
        // Relative stamps count from the first line. In some styles each line depends on the one before.
        let depends = is_origin || self.show.time == TimeFormat::Delta || self.show.style == show::Style::Strace;
        if let Some(style) = self.style.as_mut().filter(|_| depends || !self.has_first_line) {
            let mut line = Vec::new();
            print(style.as_mut(), &mut line, event, view, Part::Whole);
            self.has_first_line |= !line.is_empty();
        }
    }

    fn tick(&mut self, view: &View) -> io::Result<()> {
        // Other sinks may write to this output before the first event.
        self.begin(view);
        self.update_terminal_width();
        self.flush()
    }

    fn end(&mut self, result: &TraceResult, view: &View) -> io::Result<()> {
        self.flush()?;
        self.begin(view);
        if self.show.style == show::Style::Json { Ok(()) } else { self.write_end(result, view) }
    }

    /// In JSON, the verdict is the last object, after the objects of the summary.
    fn finish(&mut self, result: &TraceResult, view: &View) -> io::Result<()> {
        self.flush()?;
        if self.show.style == show::Style::Json { self.write_end(result, view) } else { Ok(()) }
    }

    fn unwritten(&self) -> u64 {
        self.unwritten
    }
}

impl Text {
    fn write_end(&mut self, result: &TraceResult, view: &View) -> io::Result<()> {
        let mut last = Vec::new();
        self.style.iter_mut().for_each(|style| style.end(&mut last, result.verdict, view.session));
        match last.is_empty() {
            true => Ok(()),
            false => Ok(self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, &last)?),
        }
    }
}

fn print(style: &mut dyn Style, out: &mut Vec<u8>, event: &Event, view: &View, part: Part) {
    // A call that is in flight at the end already has its line if it was shown as pending.
    if matches!(&event.kind, EventKind::Call(call) if call.shown_pending && call.exit == ExitState::Pending) {
        return;
    }
    let comm = |tid| view.tasks.comm_at(tid, event.time);
    let cgroup = |tid| view.tasks.cgroup_history(tid)?.at(event.time)?.cgroup.clone();
    let known = StyleContext { session: view.session, comm: &comm, cgroup: &cgroup, names: view.names };
    match part {
        Part::Whole => style.event(out, event, &known),
        Part::Beginning => style.open(out, event, &known),
    }
}

#[cfg(test)]
mod tests;
