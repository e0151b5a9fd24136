//! Tests which events of a stream are shown for several command lines. The settings are bound to nothing but the
//! stream, as for a stream that is read from a file.

use super::traced;
use crate::beauty::tables::SYSCALLS;
use crate::event::EventIndex;
use crate::gate::{self, Condition, Settings, Stream, Switch};
use crate::kernel::format::Format;
use crate::kernel::machine::NATIVE_ABI;
use crate::request::select;
use crate::session::{EventSpec, Role, Scope, Terms};

const FORMAT: &str = "name: x\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int prio;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

fn event(name: &str, created_for: Option<u16>) -> EventSpec {
    EventSpec {
        name: name.to_owned(),
        role: Role::Tracepoint,
        sample_type: 1,
        format: Some(Format::parse(FORMAT).unwrap()),
        shown: true,
        terms: Terms { created_for, ..Terms::default() },
    }
}

/// Binds a command line to two events of the scheduler, the event of the third item, and an event that rtrace needs for
/// itself.
fn bind(words: &[&str], filtered: &[EventIndex]) -> Result<Settings, String> {
    let own = EventSpec { shown: false, ..event("synthetic:rtrace_1_2__path_address", None) };
    let events = [event("sched:sched_switch", None), event("sched:sched_wakeup", None), event("rtrace_1_2:f", Some(2)), own];
    let request = traced(words);
    let selection = select::resolve(&request.what.items, request.what.syscalls, SYSCALLS, &[]).unwrap();
    let stream =
        Stream { events: events.iter().collect(), scope: Scope::Command, abi: NATIVE_ABI, paths: &[], filtered: filtered.to_vec() };
    gate::bind(&request, &selection, &stream).map_err(|error| format!("{error:#}"))
}

/// Returns the items that select each event.
fn items(settings: &Settings) -> Vec<Vec<u16>> {
    let of_event = |criteria: &gate::Criteria| criteria.items.iter().map(|(at, _)| *at).collect();
    settings.events.iter().map(|criteria| criteria.as_ref().map(of_event).unwrap_or_default()).collect()
}

/// Returns for each item of the first event whether its filter is evaluated.
fn is_filtered(settings: &Settings) -> Vec<bool> {
    settings.events[0].iter().flat_map(|criteria| &criteria.items).map(|(_, condition)| *condition != Condition::Always).collect()
}

#[test]
fn items_show_the_events_that_they_name_or_that_were_created_for_them() {
    let settings = bind(&["-e", "sched:*", "-e", "!sched:sched_wakeup", "--probe", "p vfs_read", "-e", "synthetic:*"], &[]).unwrap();
    assert_eq!(items(&settings), [vec![0], vec![], vec![2], vec![]]);
    let again = bind(&["-e", "sched:*", "-e", "!sched:*", "-e", "sched:sched_wakeup"], &[]).unwrap();
    assert_eq!(items(&again)[..2], [vec![], vec![2]]);
    assert!(items(&bind(&["-e", "openat"], &[]).unwrap()).iter().all(Vec::is_empty));
}

#[test]
fn filters_that_the_kernel_evaluates_are_not_evaluated_again() {
    let one = ["-e", "sched:sched_switch", "--filter", "prio == 3"];
    assert_eq!(is_filtered(&bind(&one, &[]).unwrap()), [true]);
    assert_eq!(is_filtered(&bind(&one, &[EventIndex(0)]).unwrap()), [false]);
    let two = [&one[..], &["-e", "sched:*"]].concat();
    assert_eq!(is_filtered(&bind(&two, &[EventIndex(0)]).unwrap()), [true, false], "records of other items arrive as well");
}

#[test]
fn a_filter_that_applies_to_no_event_of_the_stream_is_an_error() {
    let error = bind(&["-e", "sched:sched_switch", "--filter", "priority == 3"], &[]).unwrap_err();
    assert!(error.starts_with("--filter 'priority == 3': "), "{error}");
}

#[test]
fn switches_are_events_of_the_stream_or_traced_syscalls() {
    let switch = |words: &[&str]| bind(words, &[]).map(|settings| settings.switch_on);
    assert_eq!(switch(&["-e", "openat", "--switch-on", "sched:*"]), Ok(Some(Switch::Events(vec![EventIndex(0), EventIndex(1)]))));
    assert!(matches!(switch(&["-e", "openat", "--switch-on", "openat"]), Ok(Some(Switch::Syscalls(rows))) if rows.len() == 1));
    let untraced = switch(&["-e", "openat", "--switch-on", "close"]).unwrap_err();
    assert_eq!(untraced, "close switches the output, so it must be traced: add it to -e");
}
