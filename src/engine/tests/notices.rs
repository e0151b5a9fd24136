//! Tests of notices and of missing data, which are synthesized records of the stream.

use super::fixture::*;
use crate::event::verdict::{Shortage, ShortageKind};
use crate::event::{EventKind, Notice, NoticeCode, Synthesized, Time};

#[test]
fn a_notice_is_an_event_in_its_place_and_has_no_task() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, READ, &[]).exit(110, a, READ, 2).enter(200, a, READ, &[]).exit(210, a, READ, 3);
    let said = |at: u64| {
        let notice = Notice { code: NoticeCode::Remark, text: format!("said at {at}") };
        (Time(at), Synthesized::Notice(notice))
    };
    let (events, _) = run(&session, vec![&mut ring], vec![said(150), said(5), said(150)]);
    let lines = events.iter().map(|event| match &event.kind {
        EventKind::Notice(notice) => format!("{} {:?} {}", event.time.0, event.task, notice.text),
        EventKind::Call(call) => format!("{} read = {:?}", event.time.0, call.ret()),
        other => format!("{other:?}"),
    });
    let nobody = format!("{:?}", task(0, 0));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            format!("5 {nobody} said at 5"),
            "110 read = Some(2)".to_owned(),
            format!("150 {nobody} said at 150"),
            format!("150 {nobody} said at 150"),
            "210 read = Some(3)".to_owned(),
        ]
    );
}

#[test]
fn what_is_missing_is_in_the_account() {
    let session = session();
    let skipped = Shortage { kind: ShortageKind::SkippedCalls, count: Some(3) };
    let requests = Synthesized::UntracedRequests { counts: vec![(18, 3)] };
    let synthesized =
        vec![(Time(50), Synthesized::Shortage(skipped)), (Time(60), Synthesized::NotPermitted { calls: 4 }), (Time(60), requests)];
    let (events, engine) = run(&session, vec![], synthesized);
    assert_eq!((events.len(), engine.ledger().not_permitted), (0, 4));
    assert_eq!(engine.ledger().shortages, [skipped]);
    assert_eq!(engine.ledger().untraced_requests, [(18, 3)]);
}
