//! Whether calls may be summed up in the kernel, so that none of them need come here: if nothing is asked for but how many there were, how they ended and how long they took.

use super::graphs;
use crate::cli::request::{Mode, Trace};

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

#[cfg(test)]
mod tests {
    use crate::cli::parse::{Surroundings, request};
    use crate::cli::request::Request;
    use std::ffi::OsString;

    fn hindrance(words: &str) -> Option<&'static str> {
        let argv: Vec<OsString> = std::iter::once("rtrace").chain(words.split(' ')).map(OsString::from).collect();
        match request(&argv, &Surroundings { var: &|_| None, read: &|_| Ok(None), page_bytes: 4096 }) {
            Ok(Request::Trace(trace)) => super::hindrance(&trace),
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn only_what_sums_answer_is_left_to_the_kernel() {
        for summed in ["-s -a", "-s -e read,sched:sched_switch -p 1", "--errno-summary -a", "-s -F all --sched --summary-mode cgroup -a"] {
            assert_eq!(hindrance(summed), None, "{summed}");
        }
        for (each, why) in [
            ("-S -a", "lines"),
            ("-a", "lines"),
            ("-s --duration 5 -a", "--duration"),
            ("-s --failure -a", "--failure"),
            ("-s -e read --filter ret<0 -a", "--filter"),
            ("-s --filter ret<0 -a", "--filter"),
            ("-s --max-events 5 -a", "--max-events"),
            ("-s -e read/nr=5/ -a", "nr="),
            ("-s -e read,write --switch-on read -a", "switches"),
        ] {
            assert!(hindrance(each).is_some_and(|told| told.contains(why)), "{each}: {:?}", hindrance(each));
        }
    }
}
