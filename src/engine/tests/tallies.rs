//! Calls of which only numbers are shown.

use super::fixture::{PAIRED, Ring, paired_session, session as tracepoints, task};
use super::random::{Dice, generate_calls, write_rings};
use crate::bpf::record::tests::{returned, written};
use crate::bpf::record::{CallRecord, RecordKind};
use crate::engine::Engine;
use crate::event::{Comm, Event, EventKind, Synthesized, TaskId, Time};
use crate::session::Session;
use crate::source::record_writer::RecordWriter;
use crate::source::{Chunk, Input, Round};
use crate::stack::library::Closed;
use proptest::prelude::*;

const READ: i32 = 0;
const OPENAT: i32 = 257;

/// Returns the events of these chunks, with calls tallied or not.
fn run(session: &Session, chunks: &[Chunk], is_tallied: bool) -> (Vec<Event>, Engine) {
    let mut engine = Engine::new(session, None, Box::new(Closed));
    if is_tallied {
        engine.tally(std::array::from_fn(|_| vec![true; crate::beauty::tables::SYSCALLS.len()]));
    }
    let mut events = Vec::new();
    let round = Round { started: Time(1), chunks: chunks.to_vec(), synthesized: Vec::new() };
    engine.input(session, Input::Round(round), &mut events);
    engine.end(session, &mut events);
    (events, engine)
}

/// A call as a summary has it: the task with its comm, the number, the duration if it is known, and the errno.
type Numbers = (TaskId, Option<Comm>, i64, Option<u64>, i32);

/// Returns what a summary has of each call.
fn numbers(events: &[Event]) -> Vec<Numbers> {
    let mut all = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::Call(call) => all.push((event.task, event.comm.clone(), call.nr, call.duration(), call.errno().unwrap_or(0))),
            EventKind::Tally(tally) => all.extend(tally.calls.iter().map(|call| {
                let (task, comm) = tally.tasks[usize::from(call.task)].clone();
                (task, comm, call.nr.into(), Some(call.duration), call.errno.into())
            })),
            _ => {}
        }
    }
    all
}

#[test]
fn tallied_calls_have_the_place_of_their_event_among_the_others() {
    let session = paired_session();
    let (seven, eight, again) = (task(7, 7), task(8, 8), task(9, 8));
    let mut ring = RecordWriter::new(&session.events, 0);
    let mut call = |of: TaskId, seen: CallRecord| _ = ring.sample(PAIRED, of, seen.end, &written(&CallRecord { pid: of.pid, ..seen }, &[]));
    call(seven, returned(7, READ, 10, 20));
    call(eight, CallRecord { ret: -11, ..returned(8, READ, 12, 22) });
    call(seven, returned(7, OPENAT, 30, 35));
    call(seven, returned(7, READ, 40, 41));
    ring.comm(seven, Time(50), b"other", false);
    let mut call = |of: TaskId, seen: CallRecord| _ = ring.sample(PAIRED, of, seen.end, &written(&CallRecord { pid: of.pid, ..seen }, &[]));
    call(seven, returned(7, READ, 60, 65));
    // Another process has the thread's number now, which no record says.
    call(again, returned(8, READ, 70, 72));
    call(seven, CallRecord { kind: RecordKind::Never, ..returned(7, READ, 80, 80) });
    let chunks = [ring.chunk()];
    let (events, engine) = run(&session, &chunks, true);
    let kinds: Vec<u64> =
        events.iter().map(|event| event.kind.calls() + 100 * u64::from(matches!(event.kind, EventKind::Call(_)))).collect();
    assert_eq!(kinds, [2, 101, 1, 2, 101]);
    let (single, all) = run(&session, &chunks, false);
    assert_eq!(numbers(&events), numbers(&single));
    assert_eq!(numbers(&events)[1], (eight, None, i64::from(READ), Some(10), 11));
    assert_eq!(numbers(&events)[4].1.as_deref(), Some(&b"other"[..]));
    assert_eq!(format!("{:?}", engine.ledger()), format!("{:?}", all.ledger()));
}

#[test]
fn many_tasks_and_many_calls_have_several_tallies() {
    let session = paired_session();
    let mut ring = RecordWriter::new(&session.events, 0);
    for at in 0..3_000u64 {
        let tid = if at < 2_000 { 7 } else { 10 + (at % 40) as i32 };
        let seen = returned(tid, READ, 10 * at, 10 * at + at % 9);
        ring.sample(PAIRED, task(tid, tid), seen.end, &written(&seen, &[]));
    }
    let chunks = [ring.chunk()];
    let (events, _) = run(&session, &chunks, true);
    assert!(events.len() < 200, "{}", events.len());
    assert_eq!(numbers(&events), numbers(&run(&session, &chunks, false).0));
}

#[test]
fn a_call_in_flight_of_one_thread_leaves_those_of_others_tallied() {
    let session = paired_session();
    let found = |is_tallied: bool| {
        let mut engine = Engine::new(&session, None, Box::new(Closed));
        if is_tallied {
            engine.tally(std::array::from_fn(|_| vec![true; crate::beauty::tables::SYSCALLS.len()]));
        }
        let pending = CallRecord { kind: RecordKind::Pending, ..returned(8, READ, 10, 20) };
        let call = Synthesized::InFlight { task: task(8, 8), call: written(&pending, &[]), last: false, stack: None, copies: Vec::new() };
        let mut ring = RecordWriter::new(&session.events, 0);
        let mut write = |seen: CallRecord| _ = ring.sample(PAIRED, task(seen.tid, seen.tid), seen.end, &written(&seen, &[]));
        (3..9).for_each(|at| write(returned(7, READ, 10 * at, 10 * at + 5)));
        write(returned(8, READ, 10, 95));
        let rounds = [(vec![], vec![(Time(20), call)]), (vec![ring.chunk()], vec![])].map(|(chunks, synthesized)| Round {
            started: Time(1),
            chunks,
            synthesized,
        });
        let mut events = Vec::new();
        rounds.into_iter().for_each(|round| engine.input(&session, Input::Round(round), &mut events));
        engine.end(&session, &mut events);
        events
    };
    let events = found(true);
    let sizes: Vec<usize> =
        events.iter().map(|event| if let EventKind::Tally(tally) = &event.kind { tally.calls.len() } else { 0 }).collect();
    // The call that was found in flight, the tally, and the end of that call.
    assert_eq!(sizes, [0, 6, 0], "{events:?}");
    assert_eq!(numbers(&events), numbers(&found(false)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tallied_calls_have_the_numbers_of_single_ones(seed: u64, lossy: bool) {
        let dice = &mut Dice(seed);
        // Without reads of /proc, no event waits for one.
        let session = Session { fds_complete: false, ..tracepoints() };
        let (written, _) = generate_calls(dice);
        let (mut rings, ..) = write_rings(&session, &written, dice, lossy);
        let chunks: Vec<Chunk> = rings.iter_mut().map(Ring::chunk).collect();
        let ((tallied, tallying), (single, all)) = (run(&session, &chunks, true), run(&session, &chunks, false));
        prop_assert_eq!(numbers(&tallied), numbers(&single));
        prop_assert_eq!(format!("{:?}", tallying.ledger()), format!("{:?}", all.ledger()));
        let has_complete = single.iter().any(|event| matches!(&event.kind, EventKind::Call(call) if call.duration().is_some()));
        prop_assert_eq!(tallied.iter().any(|event| matches!(event.kind, EventKind::Tally(_))), has_complete);
    }
}
