//! Whether calls may be summed up in the kernel, so that none of them need come here: if nothing is asked for but how many there were, how they ended and how long they took.

use super::graphs;
use crate::request::Trace;
use crate::show::Mode;

/// Why each call is needed here; `None` if sums will do.
pub fn hindrance(request: &Trace) -> Option<&'static str> {
    let (what, show) = (&request.what, &request.show);
    let asked = [
        (show.mode != Mode::Summary, "lines are printed"),
        (show.summary_object.is_some(), "--by is about each call"),
        (show.interval.is_some(), "--interval tells of calls when they end, and sums come later"),
        (graphs::any(request), "stacks are of each call"),
        (!show.paths.is_empty(), "--path is about each call"),
        (show.duration.is_some(), "--duration is about each call"),
        (show.failure, "--failure is about each call"),
        (what.filter.is_some() || what.items.iter().any(|item| item.filter.is_some()), "--filter is about each call"),
        (show.max_events.is_some(), "--max-events counts them here"),
        (what.items.iter().any(|item| item.terms.nr.is_some()), "nr= counts them here"),
        (what.switch_on.is_some() || what.switch_off.is_some(), "an event switches them on and off"),
    ];
    asked.into_iter().find_map(|(asked, why)| asked.then_some(why))
}
