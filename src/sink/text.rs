//! The lines: each event in the style that was asked for, given out in large writes.
//!
//! What is printed leaves at the next tick at the latest, or when 64 KiB are together. It decides nothing: events that are not to be seen do not come here, save for those that
//! rtrace needs for itself (`shown` of their event says so).

use super::output::Shared;
use super::{Over, Sink, View};
use crate::beauty::style::{self, CallsVerdict, EventVerdict, Known, Style, Verdict};
use crate::event::{Event, Exit, What};
use crate::session::Session;
use crate::show::{Show, Width};
use crate::stream::Unwritten;
use rustc_hash::FxHashMap;
use std::io;
use std::sync::PoisonError;

/// Bytes that are worth a write of their own.
const BATCH: usize = 64 * 1024;

/// Prints lines.
pub struct Text {
    show: Show,
    color: bool,
    /// Made at the first event, when it is known what was armed.
    style: Option<Box<dyn Style>>,
    output: Shared,
    lines: Lines,
    /// Calls whose lines could not be written.
    unwritten: u64,
}

/// What waits to be written.
enum Lines {
    Together(Batch),
    /// By process; `None` is for what concerns all of them.
    Separately {
        line: Vec<u8>,
        waiting: FxHashMap<Option<i32>, Batch>,
        bytes: usize,
    },
}

/// Lines, and where those of calls end.
#[derive(Debug, Default)]
struct Batch {
    lines: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// What the event is was just written behind the lines.
    fn ended(&mut self, event: &Event) {
        self.ends.extend((event.what.calls() > 0).then_some(self.lines.len()));
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.ends.clear();
    }

    /// Writes it, and counts the calls of which not all could be written.
    fn write(&self, output: &Shared, pid: Option<i32>, unwritten: &mut u64) -> io::Result<()> {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write(pid, &self.lines).map_err(|Unwritten { error, written }| {
            *unwritten += self.ends.iter().filter(|end| **end > written).count() as u64;
            error
        })
    }
}

impl Text {
    pub fn new(show: &Show, color: bool, output: Shared) -> Text {
        let separate = output.lock().unwrap_or_else(PoisonError::into_inner).is_separate();
        let lines = match separate {
            true => Lines::Separately { line: Vec::new(), waiting: FxHashMap::default(), bytes: 0 },
            false => Lines::Together(Batch { lines: Vec::with_capacity(BATCH + 4096), ends: Vec::new() }),
        };
        Text { show: show.clone(), color, style: None, output, lines, unwritten: 0 }
    }

    /// A terminal may have become wider or narrower since it was asked last.
    fn look_at_terminal(&mut self) {
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
            // Each has a file of its own: one that cannot be written is no reason to leave the others out.
            Lines::Separately { waiting, bytes, .. } => {
                *bytes = 0;
                waiting.drain().map(|(pid, batch)| batch.write(output, pid, unwritten)).fold(Ok(()), io::Result::and)
            }
        }
    }
}

impl Sink for Text {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        if self.style.is_none() {
            self.style = Some(style::of(&self.show, view.session, self.color));
            self.look_at_terminal();
        }
        let style = self.style.get_or_insert_with(|| style::of(&self.show, view.session, self.color));
        let full = match &mut self.lines {
            Lines::Together(batch) => {
                print(style.as_mut(), &mut batch.lines, event, view);
                batch.ended(event);
                batch.lines.len() >= BATCH
            }
            Lines::Separately { line, waiting, bytes } => {
                print(style.as_mut(), line, event, view);
                let pid = if matches!(event.what, What::Lost(_)) { None } else { Some(event.task.pid) };
                if !line.is_empty() {
                    let batch = waiting.entry(pid).or_default();
                    batch.lines.extend_from_slice(line);
                    batch.ended(event);
                }
                *bytes += line.len();
                line.clear();
                *bytes >= BATCH
            }
        };
        if full { self.flush() } else { Ok(()) }
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        self.look_at_terminal();
        self.flush()
    }

    fn end(&mut self, over: &Over, view: &View) -> io::Result<()> {
        self.flush()?;
        let verdict = verdict(over, view.session, self.unwritten);
        let mut last = Vec::new();
        self.style.get_or_insert_with(|| style::of(&self.show, view.session, self.color)).end(&mut last, &verdict, view.session);
        match last.is_empty() {
            true => Ok(()),
            false => Ok(self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, &last)?),
        }
    }

    fn unwritten(&self) -> u64 {
        self.unwritten
    }
}

fn print(style: &mut dyn Style, out: &mut Vec<u8>, event: &Event, view: &View) {
    // A call that is in flight to the end has its line already, if it was shown as pending.
    if matches!(&event.what, What::Call(call) if call.shown_pending && call.exit == Exit::Pending) {
        return;
    }
    let comm = |tid| view.tasks.comm_at(tid, event.time);
    style.event(out, event, &Known { session: view.session, comm: &comm, names: view.names });
}

/// How the trace went, of which so many calls were not written.
fn verdict(over: &Over, session: &Session, given_up: u64) -> Verdict {
    let Over { ledger, account } = over;
    let calls = ledger.calls_account().map(|calls| CallsVerdict {
        issued: calls.issued + ledger.left_out,
        shown: account.calls_shown.saturating_sub(given_up),
        lost: calls.lost,
        held_back: account.calls_held_back + ledger.left_out,
        given_up,
    });
    let shown = session.events.events.iter().zip(&ledger.events).filter(|(spec, _)| spec.shown && !spec.role.is_of_syscalls());
    let events = shown.filter_map(|(spec, counts)| {
        let (issued, lost) = (counts.issued?, counts.lost?);
        Some(EventVerdict { name: spec.name.clone(), issued, received: counts.counted, lost })
    });
    let events = events.collect();
    let unplaced = ledger.lost_records().saturating_sub(ledger.lost_placed);
    Verdict { calls, events, unplaced, gaps_without_size: ledger.gaps_unsized > 0 }
}

#[cfg(test)]
mod tests;
