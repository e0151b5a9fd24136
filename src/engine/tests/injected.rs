//! Calls that the supervisor of `--inject` changed, whose reports precede their records.

use super::fixture::*;
use crate::event::synthesized::MemoryCopy;
use crate::event::{Abi, Injected, PieceState, Synthesized, TaskId, Time};
use crate::session::{InjectedCalls, Session};

fn report(at: u64, of: TaskId, nr: u64, args: [u64; 6], (answered, delayed): (bool, bool)) -> (Time, Synthesized) {
    let copies = if answered {
        vec![
            MemoryCopy { arg: 1, wanted: 3, bytes: b"ab".to_vec(), is_whole: true },
            MemoryCopy { arg: 2, wanted: 9, bytes: Vec::new(), is_whole: false },
        ]
    } else {
        Vec::new()
    };
    (Time(at), Synthesized::Injected { tid: of.tid, abi: Abi::X86_64, nr: nr as i64, args, answered, delayed, killable: true, copies })
}

fn marks(injected: Injected) -> (bool, bool) {
    (injected.answered, injected.delayed)
}

/// The close was not executed, so the path of descriptor 5 is still known.
#[test]
fn an_answered_call_has_the_start_and_the_arguments_of_its_report() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READ, &[5], 1).exit(260, a, CLOSE, -5).call(300, a, READ, &[5], 2).exit(450, a, READ, 3);
    let reports = vec![report(200, a, CLOSE, [5, 6, 7, 0, 0, 0], (true, true))];
    let (events, engine) = run(&session, vec![&mut ring], reports);
    assert_eq!(call_lines(&events), ["7 0@100 = 1 (10)", "7 3@200 = -5 (60)", "7 0@300 = 2 (10)", "7 0@450 unseen = 3 (?)"]);
    let all = calls(&events);
    let marked: Vec<_> = all.iter().map(|call| marks(call.injected)).collect();
    assert_eq!(marked, [(false, false), (true, true), (false, false), (false, false)]);
    assert_eq!(all[1].args, Some([5, 6, 7, 0, 0, 0]));
    let pieces: Vec<_> = all[1].pieces.iter().map(|piece| (piece.arg, piece.address, all[1].bytes(piece), piece.state)).collect();
    assert_eq!(pieces, [(1, 6, &b"ab"[..], PieceState::Ok), (2, 7, &b""[..], PieceState::Fault)]);
    let ledger = engine.ledger();
    assert_eq!((ledger.calls, ledger.without_entry, ledger.lost_entries), (4, 2, 0), "an answered call is an exit without an entry");
}

#[test]
fn a_delayed_call_begins_with_its_delay() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READ, &[], 1).call(500, a, READ, &[], 2).call(600, a, READ, &[], 3);
    let (events, _) = run(&session, vec![&mut ring], vec![report(200, a, READ, [0; 6], (false, true))]);
    assert_eq!(call_lines(&events), ["7 0@100 = 1 (10)", "7 0@200 = 2 (310)", "7 0@600 = 3 (10)"]);
    assert_eq!(calls(&events).iter().map(|call| marks(call.injected)).collect::<Vec<_>>(), [(false, false), (false, true), (false, false)]);
}

/// The task was killed while it waited, or the record was lost: the report belongs to no other call.
#[test]
fn a_report_without_its_record_changes_no_other_call() {
    let session = session();
    let (a, b) = (task(7, 7), task(8, 8));
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READ, &[], 1).call(101, b, READ, &[], 1).call(300, a, CLOSE, &[9], 0).exit(400, a, READ, -4);
    let reports = vec![report(200, a, READ, [0; 6], (true, false)), report(201, task(9, 9), READ, [0; 6], (true, false))];
    let (events, _) = run(&session, vec![&mut ring], reports);
    assert_eq!(call_lines(&events), ["7 0@100 = 1 (10)", "8 0@101 = 1 (10)", "7 3@300 = 0 (10)", "7 0@400 unseen = -4 (?)"]);
    assert!(calls(&events).iter().all(|call| call.injected == Injected::default()));
}

/// Only a fatal signal ends the wait of a call that the supervisor has received; another one ends that of a call that
/// it has not, and the kernel repeats the call.
#[test]
fn a_call_that_a_signal_interrupts_before_its_answer_was_not_executed() {
    let session = Session {
        injected: InjectedCalls { supervised: [(Abi::X86_64, READ as u32)].into_iter().collect(), ..Default::default() },
        ..session()
    };
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READ, &[], 1).exit(160, a, READ, -512).exit(250, a, READ, -512).exit(350, a, READ, -512).exit(380, a, CLOSE, -512);
    let reports = vec![report(200, a, READ, [5; 6], (false, true)), report(300, a, READ, [6; 6], (true, false))];
    let (events, engine) = run(&session, vec![&mut ring], reports);
    assert_eq!(call_lines(&events), ["7 0@100 = 1 (10)", "7 0@200 Never", "7 0@300 = -512 (50)", "7 3@380 unseen = -512 (?)"]);
    assert_eq!(
        calls(&events).iter().map(|call| marks(call.injected)).collect::<Vec<_>>(),
        [(false, false), (false, true), (true, false), (false, false)]
    );
    assert!(engine.ledger().calls_account().is_none_or(|account| account.is_conserved()));
}

/// A parent that gets 0 from a clone that was not made is no new task.
#[test]
fn any_value_can_be_the_answer() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READ, &[], 1).exit(250, a, CLONE, 0);
    let (events, _) = run(&session, vec![&mut ring], vec![report(200, a, CLONE, [0; 6], (true, false))]);
    assert_eq!(call_lines(&events), ["7 0@100 = 1 (10)", "7 56@200 = 0 (50)"]);
}
