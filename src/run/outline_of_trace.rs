//! Reads a whole trace in JSON for `rtrace diff`.

use super::outline::{finished, say_not_compared};
use super::programs::Programs;
use super::replay::{bind, say_missing, session, span};
use crate::diff::{Outline, Outliner, Words};
use crate::engine::view::View;
use crate::event::{Event, EventIndex, EventKind};
use crate::gate::{self, Gate, Span};
use crate::interrupt;
use crate::json_trace::JsonTrace;
use crate::recording::RecordedFiles;
use crate::request::{EventSelection, Trace};
use crate::say;
use crate::session::Session;
use crate::stack::name::Nameless;
use crate::task::Tasks;
use anyhow::bail;
use std::path::Path;

/// Returns the outline of a trace, as [`super::outline()`] does of a recording. Without a selection of the request, all
/// that the trace has is in it.
///
/// # Errors
/// The trace cannot be read or has no calls, the selection does not apply to it, or the user asked rtrace to end.
pub fn outline_of_trace(
    path: &Path,
    (request, has_own_selection): (&Trace, bool),
    mut trace: JsonTrace,
    words: Words,
) -> anyhow::Result<(Outline, Words)> {
    let outliner = Outliner::new(words);
    let described = session(request, trace.session().clone(), has_own_selection);
    let span = span(request, &described, trace.lasts())?;
    let gate = if has_own_selection { Some(Gate::new(bind(request, &described)?)) } else { None };
    let mut shown = Shown { what: &request.what, gate, span, undecided: 0 };
    let tasks = Tasks::default();
    while let Some(mut line) = trace.next_line()? {
        for mut event in std::mem::take(&mut line.events) {
            let view = View { session: trace.session(), tasks: &tasks, now: event.time, names: &Nameless };
            if let Some(place) = shown.place(&mut event, &view) {
                outliner.take(&event, &line.given(&event), trace.session(), place == Place::Outside);
            }
        }
        if interrupt::first().is_some() {
            bail!("the comparison was interrupted");
        }
    }
    if trace.is_summary() {
        bail!("{} has only a summary or a report, and no calls: write a trace without those options, and compare that", path.display());
    }
    let verdict = trace.verdict();
    say_missing(&format!("{}: ", path.display()), &verdict, &Programs::Recorded(RecordedFiles::default()));
    say_not_compared(path, &verdict);
    if shown.undecided > 0 {
        say!("rtrace: {} has not all values that the filter needs: {} calls and events are not compared", path.display(), shown.undecided);
    }
    let (damages, more) = trace.damages();
    damages.iter().for_each(|damage| say!("rtrace: {}:{damage}", path.display()));
    if more > 0 {
        say!("rtrace: {} has {more} more lines that are left out", path.display());
    }
    Ok(finished(path, outliner))
}

/// What of a trace is compared.
struct Shown<'r> {
    what: &'r EventSelection,
    /// What the request selects; `None` if it selects nothing itself.
    gate: Option<Gate>,
    span: Option<Span>,
    /// The number of calls and tracepoints about which a filter cannot decide, because structs in memory and fields are
    /// not read for it.
    undecided: u64,
}

/// Where an event is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    InSpan,
    Outside,
}

impl Shown<'_> {
    /// Returns where an event is; `None` if it is not selected.
    fn place(&mut self, event: &mut Event, view: &View) -> Option<Place> {
        let selected = match (&mut self.gate, &event.kind) {
            (None, _) => true,
            (Some(_), EventKind::Tracepoint { event, .. }) => self.selects(*event, view.session),
            (Some(gate), kind) => {
                // The result of a call that does not return is known in no recording either.
                let has_returned = matches!(kind, EventKind::Call(call) if call.ret().is_some());
                let before = gate.account().undecided;
                let passes = gate.lets_through(event, view);
                self.undecided += if has_returned { gate.account().undecided - before } else { 0 };
                passes
            }
        };
        let is_inside = |span: &mut Span| span.has(event, view.session);
        selected.then(|| if self.span.as_mut().is_none_or(is_inside) { Place::InSpan } else { Place::Outside })
    }

    /// Returns whether the items select a tracepoint. The gate knows only the events of its beginning.
    fn selects(&mut self, event: EventIndex, session: &Session) -> bool {
        let Some(spec) = session.events.get(event) else { return false };
        let selected_by = gate::selected_by(&self.what.items, spec);
        let has_filter = |at: &u16| self.what.items.get(usize::from(*at)).is_some_and(|item| item.filter.is_some());
        let is_undecided = !selected_by.is_empty() && (self.what.filter.is_some() || selected_by.iter().any(has_filter));
        self.undecided += u64::from(is_undecided);
        !selected_by.is_empty() && !is_undecided
    }
}
