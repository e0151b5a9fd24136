//! Decides whether the kernel may aggregate calls in place of writing a record of each: only if the request asks for no
//! more than the number of calls, their results and their durations.

use super::graphs;
use crate::request::Trace;
use crate::show::{Mode, Outcomes};

/// Returns the reason why rtrace needs a record of each call; `None` if aggregates are enough.
pub fn why_records(request: &Trace) -> Option<&'static str> {
    let (what, show) = (&request.what, &request.show);
    let asked = [
        (show.mode != Mode::Summary, "lines are printed"),
        (show.summary_object.is_some(), "--by is about each call"),
        (show.interval.is_some(), "--interval counts calls when they end, and aggregates are read later"),
        (graphs::any(request), "each call has a stack of its own"),
        (!show.paths.is_empty(), "--path is about each call"),
        (show.descriptors.is_some(), "the descriptors of each call matter"),
        (show.strace.calls.is_some(), "the ABI of each call matters"),
        (show.strace.detaches, "the calls before and after an execve differ"),
        (show.duration.is_some(), "--duration is about each call"),
        (show.outcomes != Outcomes::all(), "--failure is about each call"),
        (what.filter.is_some() || what.items.iter().any(|item| item.filter.is_some()), "--filter is about each call"),
        (show.max_events.is_some(), "--max-events counts single calls"),
        (what.items.iter().any(|item| item.terms.nr.is_some()), "nr= counts single calls"),
        (!what.injections.is_empty(), "--inject changes single calls"),
        (what.switch_on.is_some() || what.switch_off.is_some(), "--switch-on or --switch-off selects single calls"),
    ];
    asked.into_iter().find_map(|(asked, why)| asked.then_some(why))
}
