//! The lines: each event in perf's style, given out in large writes.
//!
//! What is printed leaves at the next tick at the latest, or when 64 KiB are together. It decides nothing: events that are not to be seen do not come here, save for those that
//! rtrace needs for itself (`shown` of their event says so).

use super::output::Shared;
use super::{Sink, View};
use crate::beauty::perf::Perf;
use crate::cli::request::{Show, Width};
use crate::event::{Event, Exit, What};
use crate::syscall::ledger::Ledger;
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
    style: Option<Perf>,
    output: Shared,
    lines: Lines,
}

/// What waits to be written.
enum Lines {
    Together(Vec<u8>),
    /// By process; `None` is for what concerns all of them.
    Separately {
        line: Vec<u8>,
        waiting: FxHashMap<Option<i32>, Vec<u8>>,
        bytes: usize,
    },
}

impl Text {
    pub fn new(show: &Show, color: bool, output: Shared) -> Text {
        let separate = output.lock().unwrap_or_else(PoisonError::into_inner).is_separate();
        let lines = match separate {
            true => Lines::Separately { line: Vec::new(), waiting: FxHashMap::default(), bytes: 0 },
            false => Lines::Together(Vec::with_capacity(BATCH + 4096)),
        };
        Text { show: show.clone(), color, style: None, output, lines }
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
        match &mut self.lines {
            Lines::Together(lines) if lines.is_empty() => Ok(()),
            Lines::Together(lines) => {
                let done = self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, lines);
                lines.clear();
                done
            }
            Lines::Separately { waiting, bytes, .. } => {
                *bytes = 0;
                let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.drain().try_for_each(|(pid, lines)| output.write(pid, &lines))
            }
        }
    }
}

impl Sink for Text {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        if self.style.is_none() {
            self.style = Some(Perf::new(&self.show, view.session, self.color));
            self.look_at_terminal();
        }
        let style = self.style.get_or_insert_with(|| Perf::new(&self.show, view.session, self.color));
        let full = match &mut self.lines {
            Lines::Together(lines) => {
                print(style, lines, event, view);
                lines.len() >= BATCH
            }
            Lines::Separately { line, waiting, bytes } => {
                print(style, line, event, view);
                let pid = if matches!(event.what, What::Lost(_)) { None } else { Some(event.task.pid) };
                if !line.is_empty() {
                    waiting.entry(pid).or_default().extend_from_slice(line);
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

    fn end(&mut self, ledger: &Ledger, view: &View) -> io::Result<()> {
        self.flush()?;
        let unplaced = ledger.lost_records().saturating_sub(ledger.lost_placed);
        if unplaced == 0 {
            return Ok(());
        }
        let mut line = Vec::new();
        self.style.get_or_insert_with(|| Perf::new(&self.show, view.session, self.color)).lost_somewhere(
            &mut line,
            unplaced,
            ledger.gaps_unsized > 0,
        );
        self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, &line)
    }
}

fn print(style: &mut Perf, out: &mut Vec<u8>, event: &Event, view: &View) {
    // A call that is in flight to the end has its line already, if it was shown as pending.
    if matches!(&event.what, What::Call(call) if call.shown_pending && call.exit == Exit::Pending) {
        return;
    }
    style.event(out, event, view.session, &|tid| view.tasks.comm_at(tid, event.time), view.names);
}

#[cfg(test)]
mod tests;
