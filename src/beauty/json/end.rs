//! The objects about the trace itself: notices, and the verdict, which is the last object.

use super::write::array;
use super::{Clock, Elements, line, object};
use crate::event::verdict::{EventVerdict, InstanceVerdict, NothingShown, RequestCount};
use crate::event::{Event, Notice, Verdict};

/// Writes the object of a notice.
pub(super) fn notice(out: &mut Vec<u8>, event: &Event, notice: &Notice, clock: &mut Clock) {
    line(out, |o| {
        o.word("type", "notice");
        clock.write(o.member("time"), event.time);
        o.word("severity", notice.code.severity().name());
        o.word("code", notice.code.name());
        o.bytes("text", notice.text.as_bytes());
    });
}

/// Writes the members of the last object.
pub(super) fn end(o: &mut Elements, verdict: &Verdict) {
    o.word("type", "end");
    if let Some(calls) = &verdict.calls {
        o.object("calls", |o| {
            o.uint("issued", calls.issued);
            o.uint("shown", calls.shown);
            o.uint("lost", calls.lost);
            o.uint("held_back", calls.held_back);
            o.uint("given_up", calls.given_up);
        });
    }
    events(o, "events", &verdict.events);
    if let Some(InstanceVerdict { events, issued, received, lost, disagrees }) = &verdict.instance {
        o.object("instance", |o| {
            o.array("events", |a| events.iter().for_each(|name| bytes(a, name)));
            counts(o, *issued, *received, *lost);
            o.mark("disagrees", *disagrees);
        });
    }
    events(o, "disagreements", &verdict.disagreements);
    o.uint("lost_records", verdict.lost_records);
    o.uint("unplaced_losses", verdict.unplaced);
    o.mark("losses_of_unknown_size", verdict.gaps_without_size);
    o.uint("unwritten_losses", verdict.unwritten);
    if verdict.unwritten_signals > 0 {
        o.uint("unwritten_signals", verdict.unwritten_signals);
    }
    o.uint("undecided", verdict.undecided);
    o.uint("not_permitted", verdict.not_permitted);
    if !verdict.untraced_requests.is_empty() {
        o.array("untraced_requests", |a| {
            for RequestCount { name, count } in &verdict.untraced_requests {
                object(a.item(), |o| {
                    o.word("name", name);
                    o.uint("count", *count);
                });
            }
        });
    }
    o.array("shortages", |a| {
        for shortage in &verdict.shortages {
            object(a.item(), |o| {
                o.word("of", shortage.kind.name());
                shortage.count.iter().for_each(|count| o.uint("count", *count));
            });
        }
    });
    o.array("unanswered_files", |a| verdict.unanswered_files.iter().for_each(|path| super::write::bytes(a.item(), path)));
    if let Some(nothing) = &verdict.nothing_shown {
        o.object("nothing_shown", |o| nothing_shown(o, nothing));
    }
}

fn events(o: &mut Elements, name: &str, events: &[EventVerdict]) {
    array(o.named(name), |a| {
        for EventVerdict { name, called, issued, received, lost } in events {
            object(a.item(), |o| {
                o.bytes("name", name.as_bytes());
                called.iter().for_each(|called| o.bytes("called", called.as_bytes()));
                counts(o, *issued, *received, *lost);
            });
        }
    });
}

fn counts(o: &mut Elements, issued: u64, received: u64, lost: u64) {
    o.uint("issued", issued);
    o.uint("received", received);
    o.uint("lost", lost);
}

fn nothing_shown(o: &mut Elements, nothing: &NothingShown) {
    o.array("selected", |a| nothing.selected.iter().for_each(|name| bytes(a, name)));
    o.uint("held_back", nothing.held_back);
    o.array("held_back_by", |a| nothing.limits.iter().for_each(|option| bytes(a, option)));
    o.array("similar", |a| nothing.similar.iter().for_each(|name| bytes(a, name)));
    o.mark("signals_shown", nothing.signals);
}

fn bytes(elements: &mut Elements, text: &str) {
    super::write::bytes(elements.item(), text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::json::Json;
    use crate::beauty::samples;
    use crate::beauty::style::{Style, StyleContext};
    use crate::event::verdict::{CallsVerdict, Shortage, ShortageKind};
    use crate::event::{EventKind, NoticeCode, Time};
    use crate::session::Session;
    use crate::stack::name::Nameless;

    /// Returns the lines that the style writes.
    fn lines(write: impl FnOnce(&mut Json, &mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut Json::new(32, &Session::default()), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_notice_has_a_code_for_programs_and_the_sentence() {
        let notice = Notice { code: NoticeCode::NoPathNames, text: "path names are not available: \"x\"\u{1b}".to_owned() };
        let event = samples::event(Time(5), EventKind::Notice(Box::new(notice)));
        let context = StyleContext { session: &Session::default(), comm: &|_| None, cgroup: &|_| None, names: &Nameless };
        assert_eq!(
            lines(|json, out| json.event(out, &event, &context)),
            "{\"type\":\"notice\",\"time\":{\"monotonic\":\"5\",\"realtime\":\"5\"},\"severity\":\"warning\",\
             \"code\":\"no_path_names\",\"text\":\"path names are not available: \\\"x\\\"\\u001b\"}\n"
        );
    }

    #[test]
    fn the_last_object_has_every_member_of_the_verdict() {
        let instance = InstanceVerdict { events: vec!["eprobes:e".into()], issued: 5, received: 3, lost: 2, disagrees: false };
        let mine = EventVerdict { name: "probe:p".into(), called: Some("mine".into()), issued: 9, received: 8, lost: 0 };
        let nothing = NothingShown { selected: vec!["getpgid".into()], similar: vec!["setpgid"], ..NothingShown::default() };
        let verdict = Verdict {
            calls: Some(CallsVerdict { issued: 7, shown: 0, lost: 2, held_back: 4, given_up: 1 }),
            events: vec![mine.clone()],
            instance: Some(instance),
            disagreements: vec![mine],
            lost_records: 4,
            unplaced: 3,
            gaps_without_size: true,
            unwritten: 2,
            unwritten_signals: 7,
            undecided: 1,
            outside_span: 0,
            given_up: 1,
            not_permitted: 6,
            untraced_requests: vec![RequestCount { name: "io_uring:openat".to_owned(), count: 3 }],
            shortages: [ShortageKind::Memory.counted(8), Some(Shortage { kind: ShortageKind::Threads, count: None })]
                .into_iter()
                .flatten()
                .collect(),
            unanswered_files: vec![b"/mnt/\xff".to_vec()],
            nothing_shown: Some(nothing),
        };
        assert_eq!(
            lines(|json, out| json.end(out, &verdict, &Session::default())),
            "{\"type\":\"end\",\"calls\":{\"issued\":7,\"shown\":0,\"lost\":2,\"held_back\":4,\"given_up\":1},\
             \"events\":[{\"name\":\"probe:p\",\"called\":\"mine\",\"issued\":9,\"received\":8,\"lost\":0}],\
             \"instance\":{\"events\":[\"eprobes:e\"],\"issued\":5,\"received\":3,\"lost\":2},\
             \"disagreements\":[{\"name\":\"probe:p\",\"called\":\"mine\",\"issued\":9,\"received\":8,\"lost\":0}],\
             \"lost_records\":4,\"unplaced_losses\":3,\"losses_of_unknown_size\":true,\"unwritten_losses\":2,\"unwritten_signals\":7,\"undecided\":1,\
             \"not_permitted\":6,\"untraced_requests\":[{\"name\":\"io_uring:openat\",\"count\":3}],\
             \"shortages\":[{\"of\":\"memory\",\"count\":8},{\"of\":\"threads\"}],\
             \"unanswered_files\":[{\"bytes\":\"2f6d6e742fff\"}],\
             \"nothing_shown\":{\"selected\":[\"getpgid\"],\"held_back\":0,\"held_back_by\":[],\"similar\":[\"setpgid\"]}}\n"
        );
    }
}
