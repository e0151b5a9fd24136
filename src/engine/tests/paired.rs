//! Calls from paired records.

use super::fixture::{PAIRED, call_lines, calls, paired_session, task};
use crate::bpf::aggregate::tests as aggregate;
use crate::bpf::record::tests::{returned, written};
use crate::bpf::record::{CallRecord, RecordKind};
use crate::engine::Engine;
use crate::event::{Abi, Event, EventKind, Synthesized, TaskEnd, TaskId, Time};
use crate::session::Session;
use crate::source::record_writer::RecordWriter;
use crate::source::{Input, Round};
use crate::syscall::ledger::CallsAccount;

const READ: i32 = 0;

/// Returns the events for these records.
fn run(session: &Session, write: impl FnOnce(&mut RecordWriter), synthesized: Vec<(Time, Synthesized)>) -> (Vec<Event>, Engine) {
    let mut engine = Engine::new(session, None, Box::new(crate::stack::library::Closed));
    let mut ring = RecordWriter::new(&session.events, 0);
    write(&mut ring);
    let mut events = Vec::new();
    let round = Round { started: Time(1), chunks: vec![ring.chunk()], synthesized };
    engine.input(session, Input::Round(round), &mut events);
    engine.end(session, &mut events);
    (events, engine)
}

fn record(ring: &mut RecordWriter, of: TaskId, seen: &CallRecord) {
    ring.sample(PAIRED, of, seen.end, &written(seen, &[]));
}

fn in_flight(seen: &CallRecord, at: u64, last: bool) -> (Time, Synthesized) {
    let pending = CallRecord { kind: RecordKind::Pending, ..*seen };
    (
        Time(at),
        Synthesized::InFlight { task: task(seen.tid, seen.tid), call: written(&pending, &[]), last, stack: None, copies: Vec::new() },
    )
}

fn counted(issued: u64, lost: u64) -> (Time, Synthesized) {
    (Time(10_000), Synthesized::Count { event: PAIRED, issued, lost, from_afar: 0 })
}

#[test]
fn each_paired_record_is_a_call() {
    let session = paired_session();
    let unseen = CallRecord { no_entry: true, ret: -13, ..returned(7, READ, 60, 60) };
    let (events, engine) = run(
        &session,
        |ring| {
            record(ring, task(7, 7), &returned(7, READ, 10, 30));
            record(ring, task(7, 7), &returned(7, READ, 31, 39));
            record(ring, task(7, 7), &CallRecord { kind: RecordKind::Unseen, lost: 2, ..returned(7, READ, 40, 50) });
            record(ring, task(7, 7), &unseen);
        },
        vec![counted(6, 2)],
    );
    assert_eq!(call_lines(&events), ["7 0@10 = 0 (20)", "7 0@31 = 0 (8)", "7 0@40 Unseen", "7 0@60 unseen = -13 (?)"]);
    assert_eq!(calls(&events).iter().map(|call| call.lost_before).collect::<Vec<_>>(), [0, 0, 2, 0]);
    assert_eq!(engine.ledger().calls_account(), Some(CallsAccount { issued: 6, printed: 4, lost: 2 }));
    assert_eq!(engine.ledger().disagreements().count(), 0);
}

#[test]
fn a_call_in_flight_is_shown_and_completed() {
    let session = paired_session();
    let (quick, slow) = (returned(7, READ, 10, 500), CallRecord { shown: true, ..returned(8, READ, 20, 600) });
    let (events, engine) = run(
        &session,
        |ring| {
            record(ring, task(7, 7), &quick);
            record(ring, task(8, 8), &slow);
        },
        vec![in_flight(&slow, 300, false), in_flight(&returned(9, READ, 30, 0), 700, true), counted(3, 0)],
    );
    assert_eq!(call_lines(&events), ["pending: 8 0@20 Pending", "7 0@10 = 0 (490)", "8 0@20 = 0 (580)", "9 0@30 Pending"]);
    assert!(calls(&events)[1].shown_pending && !calls(&events)[0].shown_pending);
    assert_eq!(engine.ledger().calls_account(), Some(CallsAccount { issued: 3, printed: 3, lost: 0 }));
    assert_eq!(engine.ledger().disagreements().count(), 0);
}

/// The call was shown as in flight, so its end must be shown too; and it is not counted as lost, because it has its
/// line.
#[test]
fn a_call_in_flight_whose_record_is_lost_ends_unseen() {
    let session = paired_session();
    let (first, second) = (returned(7, READ, 10, 0), returned(8, READ, 20, 0));
    let (events, engine) = run(
        &session,
        |ring| record(ring, task(7, 7), &CallRecord { lost: 1, ..returned(7, READ, 800, 900) }),
        vec![in_flight(&first, 300, false), in_flight(&second, 301, false), counted(3, 2)],
    );
    let expected = ["pending: 7 0@10 Pending", "pending: 8 0@20 Pending", "7 0@10 Unseen", "7 0@800 = 0 (100)", "8 0@20 Unseen"];
    assert_eq!(call_lines(&events), expected);
    assert_eq!(engine.ledger().calls_account(), Some(CallsAccount { issued: 3, printed: 3, lost: 0 }));
}

#[test]
fn task_ends_have_the_kernel_s_exit_code() {
    let session = paired_session();
    let ends = |code: i64| CallRecord { kind: RecordKind::TaskEnd, ret: code, ..returned(7, READ, 0, 40) };
    let killed = |signal, core_dumped| TaskEnd::Killed { signal, core_dumped: Some(core_dumped) };
    for (code, end) in [(0x300, TaskEnd::Exited(3)), (9, killed(9, false)), (0x8b, killed(11, true))] {
        // Older kernels remove the task's perf events before the programs write the record.
        for exit_at in [41, 39] {
            let (events, engine) = run(
                &session,
                |ring| {
                    if exit_at > 40 {
                        record(ring, task(7, 7), &ends(code));
                    }
                    ring.exit(task(7, 7), task(1, 1), Time(exit_at));
                    if exit_at < 40 {
                        record(ring, task(7, 7), &ends(code));
                    }
                },
                vec![counted(0, 0)],
            );
            let lines: Vec<_> =
                events.iter().filter_map(|event| if let EventKind::Exit(end) = event.kind { Some(end) } else { None }).collect();
            assert_eq!(lines, [end]);
            assert_eq!(engine.ledger().disagreements().count(), 0, "the end of a task is no call");
        }
    }
}

/// One aggregate comes as a record and one from /proc, 8 calls together. Calls of a thread that executed a program keep
/// the thread's old tid.
#[test]
fn aggregated_calls_are_emitted_together() {
    let session = paired_session();
    let body = |calls| aggregate::written(&[(READ as u32, [calls, 500 * calls, 500, 500], 0, &[(300, 1)])]);
    let sums =
        CallRecord { kind: RecordKind::Aggregate, ret: 5, pid: 7, args: [aggregate::ALL, 0, 0, 0, 0, 0], ..returned(9, READ, 0, 700) };
    let (events, engine) = run(
        &session,
        |ring| {
            record(ring, task(7, 7), &returned(7, READ, 10, 30));
            ring.sample(PAIRED, task(7, 7), Time(700), &written(&sums, &body(5)));
            ring.sample(PAIRED, task(7, 7), Time(701), &written(&sums, &body(5)[..100]));
        },
        vec![
            (
                Time(800),
                Synthesized::InFlight {
                    task: task(8, 8),
                    call: written(&CallRecord { tid: 8, ..sums }, &body(3)),
                    last: true,
                    stack: None,
                    copies: Vec::new(),
                },
            ),
            counted(11, 2),
        ],
    );
    let aggregates: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Aggregate(aggregate) => Some((event.task, aggregate.calls(), aggregate.sums[0].nr)),
            _ => None,
        })
        .collect();
    assert_eq!(aggregates, [(task(7, 9), 5, i64::from(READ)), (task(8, 8), 3, i64::from(READ))]);
    assert_eq!(engine.ledger().calls_account(), Some(CallsAccount { issued: 11, printed: 9, lost: 2 }));
    assert_eq!(engine.ledger().disagreements().count(), 0);
}

/// The programs write an answered call at its exit, and the report has its start.
#[test]
fn calls_that_were_changed_have_the_start_of_their_report() {
    let session = paired_session();
    let report = |at, answered, delayed| {
        let (abi, args, copies) = (Abi::X86_64, [0; 6], Vec::new());
        (Time(at), Synthesized::Injected { tid: 7, abi, nr: i64::from(READ), args, answered, delayed, killable: true, copies })
    };
    let unseen = CallRecord { no_entry: true, ret: -5, ..returned(7, READ, 160, 160) };
    let (events, engine) = run(
        &session,
        |ring| {
            record(ring, task(7, 7), &returned(7, READ, 10, 30));
            record(ring, task(7, 7), &unseen);
            record(ring, task(7, 7), &returned(7, READ, 300, 310));
            record(ring, task(7, 7), &CallRecord { no_entry: true, ..returned(7, READ, 400, 400) });
        },
        vec![report(100, true, false), report(200, false, true), counted(4, 0)],
    );
    assert_eq!(call_lines(&events), ["7 0@10 = 0 (20)", "7 0@100 = -5 (60)", "7 0@200 = 0 (110)", "7 0@400 unseen = 0 (?)"]);
    let marks: Vec<_> = calls(&events).iter().map(|call| (call.injected.answered, call.injected.delayed)).collect();
    assert_eq!(marks, [(false, false), (true, false), (false, true), (false, false)]);
    assert_eq!(engine.ledger().disagreements().count(), 0);
}

/// The content of such a record is unknown, but the account shows that it is missing.
#[test]
fn an_unreadable_record_shows_in_the_account() {
    let session = paired_session();
    let (events, engine) = run(
        &session,
        |ring| {
            record(ring, task(7, 7), &returned(7, READ, 10, 30));
            ring.sample(PAIRED, task(7, 7), Time(50), &[0xff; 100]);
        },
        vec![counted(2, 0)],
    );
    assert_eq!(call_lines(&events).len(), 1);
    assert_eq!(engine.ledger().disagreements().count(), 1);
}
