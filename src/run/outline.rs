//! Reads a whole recording for `rtrace diff`.

use super::display::Sinks;
use super::programs::{Programs, RecordedNames};
use super::replay::{bind, naming, say_damages, say_missing, session, span};
use super::verdict::Selection;
use super::work::{Shown, Work};
use crate::diff::{Outline, Outliner, Words};
use crate::engine::Engine;
use crate::event::Verdict;
use crate::gate;
use crate::interrupt;
use crate::recording::Reader;
use crate::request::{Sink, Trace};
use crate::say;
use crate::sink::output::Output;
use crate::stack::library::Closed;
use anyhow::bail;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the outline of a recording. `words` are those of the recording before, and are returned with those of this
/// one. `has_own_selection` says that the request selects calls and events itself, and not as the recorder did. What
/// the recording lacks is said on stderr.
///
/// # Errors
/// The selection does not apply to the recording, or the user asked rtrace to end.
pub fn outline(
    path: &Path,
    (request, has_own_selection): (&Trace, bool),
    mut reader: Reader,
    words: Words,
) -> anyhow::Result<(Outline, Words)> {
    let session = Arc::new(session(request, reader.begin().session.clone(), has_own_selection));
    let outliner = Outliner::new(words);
    let gate = gate::Settings { span: span(request, &session, reader.lasts())?, ..bind(request, &session)? };
    let shown = Shown { gate, selection: Selection::of(request), enough: Arc::new(AtomicBool::new(false)) };
    let naming = naming(request, reader.files(), Box::new(RecordedNames { kernel: reader.kernel_symbols(), files: reader.files() }));
    // Nothing is written to it.
    let output = Output::open(&crate::request::Output { to: Sink::Stdout, ..request.output.clone() })?.shared();
    let engine = Engine::new(&session, None, Box::new(Closed));
    let mut work = Work::new(session, engine, shown, Sinks::new((vec![outliner.sink()], output)), (naming, |_| Vec::new()));
    let mut events = Vec::new();
    while let Some(input) = reader.next_input() {
        work.process(input, &mut events);
        reader.recycle(work.spent());
        if interrupt::first().is_some() {
            bail!("the comparison was interrupted");
        }
    }
    let outcome = work.finish(&mut events);
    let of = format!("{}: ", path.display());
    say_missing(&of, &outcome.verdict, &Programs::Recorded(reader.files()));
    say_not_compared(path, &outcome.verdict);
    say_damages(&of, reader.damages(), reader.unreadable());
    Ok(finished(path, outliner))
}

/// Says what the comparison lacks.
pub(super) fn say_not_compared(path: &Path, verdict: &Verdict) {
    let path = path.display();
    if verdict.lost_records > 0 {
        say!("rtrace: {path} lacks {} lost records: what is missing in it may have happened", verdict.lost_records);
    }
    if verdict.given_up > 0 {
        say!("rtrace: {path} lacks {} calls that could not be written: what is missing in it may have happened", verdict.given_up);
    }
}

/// Returns the outline, and says what is not in it.
pub(super) fn finished(path: &Path, outliner: Outliner) -> (Outline, Words) {
    let (outline, words) = outliner.finish();
    if outline.left_out > 0 {
        say!("rtrace: {} has too many different calls: {} calls are not compared", path.display(), outline.left_out);
    }
    (outline, words)
}
