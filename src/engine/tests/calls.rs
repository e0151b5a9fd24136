//! Pairing of entries and exits to calls.

use super::fixture::*;
use crate::event::{Abi, EventKind, ExitState, PieceState, Synthesized, TaskEnd, Time};
use crate::session::Scope;

#[test]
fn entry_and_exit_are_one_call() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, READ, &[3, 0x7000, 9]).exit(150, a, READ, 9);
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 0@100 = 9 (50)"]);
    assert_eq!(calls(&events)[0].args, Some([3, 0x7000, 9, 0, 0, 0]));
    assert_eq!(events[0].time, Time(150));
    assert_eq!((engine.ledger().calls, engine.ledger().events[0].received), (1, 1));
}

#[test]
fn a_new_entry_closes_an_older_one() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, READ, &[]).enter(200, a, READ, &[]).exit(210, a, READ, 1);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 0@100 Unseen", "7 0@200 = 1 (10)"]);
    assert_eq!(events[0].time, Time(200));
}

#[test]
fn exits_without_an_entry_are_emitted_as_calls() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.exit(100, a, 35, 0).call(200, a, READ, &[], 5).exit(300, a, 39, -1).enter(400, a, READ, &[]).exit(410, a, 1, 4);
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(
        call_lines(&events),
        ["7 35@100 unseen = 0 (?)", "7 0@200 = 5 (10)", "7 39@300 unseen = -1 (?)", "7 0@400 Unseen", "7 1@410 unseen = 4 (?)"]
    );
    assert_eq!(engine.ledger().without_entry, 3);
}

#[test]
fn the_second_return_of_clone_is_no_call() {
    let session = session();
    let (parent, child, thread) = (task(7, 7), task(8, 8), task(7, 9));
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, parent, CLONE, &[]).fork(110, child, parent).new_task(111, parent, 8, 0).exit(120, parent, CLONE, 8);
    ring.exit(130, child, CLONE, 0).call(140, child, READ, &[], 0);
    ring.enter(200, parent, 435, &[]).fork(210, thread, parent).new_task(211, parent, 9, 0x10f00).exit(215, thread, 435, 0);
    ring.exit(220, parent, 435, 9).exit(230, thread, 39, -1);
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 56@100 = 8 (20)", "8 0@140 = 0 (10)", "7 435@200 = 9 (20)", "9 39@230 unseen = -1 (?)"]);
    assert_eq!(engine.ledger().second_returns, 2);
    let forks: Vec<_> = events.iter().filter(|e| matches!(e.kind, EventKind::Fork { .. })).collect();
    assert_eq!(forks.len(), 2);
    assert!(matches!(forks[1].kind, EventKind::Fork { child, flags: Some(0x10f00) } if child == thread));
}

#[test]
fn a_second_return_is_recognized_without_the_fork_record() {
    let session = session();
    let mut ring = Ring::new(&session, 0);
    ring.exit(130, task(8, 8), CLONE, 0);
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!((call_lines(&events).len(), engine.ledger().second_returns), (0, 1));
}

#[test]
fn exec_by_another_thread_returns_in_the_leader() {
    let session = session();
    let (leader, other) = (task(7, 7), task(7, 9));
    let mut ring = Ring::new(&session, 0);
    ring.enter(90, leader, READ, &[]).enter(100, other, EXECVE, &[0x5000]).end(150, leader);
    ring.comm(160, leader, b"sh", true).exec(170, leader, 9, b"/bin/sh").exit(200, leader, EXECVE, 0).call(300, leader, READ, &[], 1);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 0@90 Never", "7 59@100 = 0 (100)", "7 0@300 = 1 (10)"]);
    let exec = calls(&events)[1];
    assert_eq!((exec.id.tid, exec.bytes(exec.piece(0).unwrap())), (9, &b"/bin/sh"[..]));
    assert_eq!(exec.piece(0).unwrap().address, 0x5000);
}

#[test]
fn execveat_relative_to_a_descriptor_gets_no_other_path() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, 322, &[5, 0x5000]).exec(110, a, 7, b"/dev/fd/5/sh").exit(120, a, 322, 0);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert!(calls(&events)[0].pieces.is_empty());
}

#[test]
fn an_exit_numbered_minus_one_closes_rt_sigreturn() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, 15, &[]).exit(110, a, -1i64 as u64, 77).enter(200, a, READ, &[]).exit(210, a, -1i64 as u64, 0);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 15@100 = 77 (10)", "7 0@200 Unseen", "7 -1@210 unseen = 0 (?)"]);
}

#[test]
fn calls_that_do_not_return_are_emitted_at_once_or_at_the_end() {
    let session = session();
    let (a, b) = (task(7, 7), task(7, 8));
    let mut ring = Ring::new(&session, 0);
    ring.enter(50, b, READ, &[]).enter(100, a, EXIT_GROUP, &[3]).end(200, b).end(210, a);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 231@100 Never", "8 0@50 Never"]);
    assert_eq!(events.iter().map(|e| e.time.0).collect::<Vec<_>>(), [100, 200, 200, 210]);
}

#[test]
fn x32_numbers_are_stored_without_their_bit() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, 1 << 30 | 520, &[], -2);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!((calls(&events)[0].abi, calls(&events)[0].nr), (Abi::X32, 520));
}

#[test]
fn a_task_s_abi_comes_from_its_synthesized_record() {
    let session = session();
    let a = task(7, 7);
    let record =
        Synthesized::Task { task: a, comm: b"old".to_vec(), ppid: 1, started: Time(0), cgroup: None, abi: Some(Abi::I386), nested: false };
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, 1, &[5]);
    let (events, _) = run(&session, vec![&mut ring], vec![(Time(50), record)]);
    assert_eq!((calls(&events)[0].abi, calls(&events)[0].exit), (Abi::I386, ExitState::Never), "1 is exit for i386");
}

#[test]
fn calls_in_flight_are_shown_and_then_completed() {
    let session = session();
    let a = task(7, 7);
    let mut run = Run::with_pending(&session, Some(100));
    let mut ring = Ring::new(&session, 0);
    run.round(50, vec![ring.enter(60, a, READ, &[]).chunk()], vec![], &mut NoProc);
    run.round(100, vec![], vec![], &mut NoProc).round(150, vec![], vec![], &mut NoProc);
    assert_eq!(call_lines(&run.events).len(), 0);
    run.round(200, vec![], vec![], &mut NoProc).round(300, vec![], vec![], &mut NoProc).round(400, vec![], vec![], &mut NoProc);
    run.round(500, vec![Ring::new(&session, 0).exit(450, a, READ, 2).enter(460, a, READ, &[]).chunk()], vec![], &mut NoProc);
    let (events, engine) = run.end();
    assert_eq!(call_lines(&events), ["pending: 7 0@60 Pending", "7 0@60 = 2 (390)", "7 0@460 Pending"]);
    assert_eq!(events[0].time, Time(200));
    assert!(calls(&events)[0].shown_pending && !calls(&events)[1].shown_pending);
    assert_eq!(engine.ledger().calls, 2);
}

#[test]
fn a_sleeping_call_is_paired_with_its_exit_or_stays_pending() {
    let session = session();
    let sleeping = |tid: i32| Synthesized::Sleeping {
        task: task(tid, tid),
        nr: READ as i64,
        args: [5, 0, 0, 0, 0, 0],
        stack: None,
        copies: Vec::new(),
    };
    let mut ring = Ring::new(&session, 0);
    ring.exit(100, task(7, 7), READ, 2).enter(40, task(9, 9), READ, &[]);
    let (events, engine) = run(&session, vec![&mut ring], vec![(Time(50), sleeping(7)), (Time(50), sleeping(8)), (Time(50), sleeping(9))]);
    assert_eq!(call_lines(&events), ["7 0@50 unseen = 2 (?)", "9 0@40 Pending", "8 0@50 unseen Pending"]);
    assert_eq!(calls(&events)[0].args.map(|args| args[0]), Some(5));
    assert_eq!(engine.ledger().without_entry, 2, "the entry of the third was seen");
}

#[test]
fn records_are_not_paired_across_a_gap() {
    let session = session();
    let (a, b) = (task(7, 7), task(8, 8));
    let mut ring = Ring::new(&session, 0);
    ring.enter(1_000, a, READ, &[]).enter(1_100, b, READ, &[]).lost(9_000, 4);
    ring.exit(10_000, a, READ, 1).exit(11_000, b, 1, 1).call(12_000, a, READ, &[], 2);
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 0@1000 Unseen", "8 0@1100 Unseen", "8 1@11000 lost = 1 (?)", "7 0@12000 = 2 (10)"]);
    assert!(events.iter().any(|e| matches!(e.kind, EventKind::Lost(loss) if loss.records == Some(4) && loss.after == Some(Time(1_100)))));
    assert_eq!((engine.ledger().untrusted_exits, engine.ledger().lost_entries, engine.ledger().lost_placed), (1, 1, 4));
}

#[test]
fn long_calls_are_not_paired_across_a_gap_on_another_cpu() {
    let session = session();
    let (a, b) = (task(7, 7), task(8, 8));
    let (mut here, mut there) = (Ring::new(&session, 0), Ring::new(&session, 1));
    there.call(1_000, b, READ, &[], 0).lost(90_000, 3).call(90_001, b, READ, &[], 0);
    here.call(500, a, READ, &[], 1)
        .enter(10_000, a, READ, &[])
        .exit(80_000, a, READ, 2)
        .enter(81_000, a, READ, &[])
        .exit(81_500, a, READ, 3);
    let (events, _) = run(&session, vec![&mut here, &mut there], vec![]);
    let lines: Vec<_> = call_lines(&events).into_iter().filter(|line| line.starts_with('7')).collect();
    assert_eq!(lines, ["7 0@500 = 1 (10)", "7 0@10000 Unseen", "7 0@81000 = 3 (500)"], "the last call is too short for a migration");
}

#[test]
fn the_command_begins_with_its_execve() {
    let mut session = session();
    session.scope = Scope::Command;
    let a = task(7, 7);
    let spawned =
        Synthesized::Spawned { task: a, path: b"/bin/ls".to_vec(), argv: vec![b"ls".to_vec()], fds: vec![], cgroup: None, nested: false };
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READ, &[], 1).call(200, a, CLOSE, &[3], 0).enter(300, a, EXECVE, &[0x5000]).exit(310, a, EXECVE, -2).enter(
        400,
        a,
        EXIT_GROUP,
        &[127],
    );
    let (events, engine) = run(&session, vec![&mut ring], vec![(Time(50), spawned)]);
    assert_eq!(call_lines(&events), ["7 59@300 = -2 (10)"], "calls after a failed execve are rtrace's own");
    let exec = calls(&events)[0];
    assert_eq!(exec.bytes(exec.piece(0).unwrap()), b"/bin/ls");
    assert_eq!(engine.ledger().set_up, 5);
}

#[test]
fn failed_execves_of_the_running_command_are_emitted() {
    let mut session = session();
    session.scope = Scope::Command;
    let a = task(7, 7);
    let spawned =
        Synthesized::Spawned { task: a, path: b"/bin/ls".to_vec(), argv: vec![b"ls".to_vec()], fds: vec![], cgroup: None, nested: false };
    let mut ring = Ring::new(&session, 0);
    ring.enter(300, a, EXECVE, &[0x5000]).exec(305, a, 7, b"/bin/ls");
    ring.writer.comm(a, Time(306), b"ls", true);
    ring.exit(310, a, EXECVE, 0).call(400, a, EXECVE, &[0x5000], -2).call(500, a, READ, &[], 1);
    let (events, _) = run(&session, vec![&mut ring], vec![(Time(50), spawned)]);
    assert_eq!(call_lines(&events).len(), 3, "{:?}", call_lines(&events));
}

#[test]
fn unselected_calls_are_neither_emitted_nor_counted() {
    let mut session = session();
    session.events.events.iter_mut().filter(|event| event.role.records_calls()).for_each(|event| event.shown = false);
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READ, &[], 1).exit(200, a, CLOSE, 0).enter(300, a, EXIT_GROUP, &[5]);
    ring.writer.exit(a, a, Time(310));
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert!(calls(&events).is_empty());
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::Exit(TaskEnd::Exited(5)))), "the end of the task is still known");
    assert_eq!(engine.ledger().calls, 0);
}

#[test]
fn a_call_reported_by_two_perf_events_is_emitted_once() {
    let mut session = session();
    session.scope = Scope::Tasks;
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    for (origin, nr) in [(10, 0), (50, 0)] {
        ring.writer.sample_from(origin, a, Time(100), &enter_raw(nr, [0; 6]));
    }
    for origin in [51, 11] {
        ring.writer.sample_from(origin, a, Time(120), &exit_raw(0, 5));
    }
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 0@100 = 5 (20)"]);
    assert_eq!(engine.ledger().duplicates, 2);
}

#[test]
fn a_fork_reported_twice_is_emitted_once() {
    let session = session();
    let (parent, child) = (task(7, 7), task(8, 8));
    let mut ring = Ring::new(&session, 0);
    ring.fork(110, child, parent).fork(111, child, parent).new_task(112, parent, 8, 0).exit(130, child, CLONE, 0).enter(
        140,
        child,
        READ,
        &[],
    );
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(events.iter().filter(|e| matches!(e.kind, EventKind::Fork { .. })).count(), 1);
    assert_eq!((call_lines(&events), engine.ledger().second_returns), (vec!["8 0@140 Pending".to_string()], 1));
}

#[test]
fn excluded_tasks_are_counted_and_not_shown() {
    let mut session = session();
    session.excluded = vec![7];
    let mut ring = Ring::new(&session, 0);
    ring.call(100, task(7, 9), READ, &[], 1).call(200, task(8, 8), READ, &[], 1);
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["8 0@200 = 1 (10)"]);
    assert_eq!(engine.ledger().excluded, 2);
}

#[test]
fn strings_in_syscall_records_become_pieces() {
    let session = session();
    let a = task(7, 7);
    let record = |text: &[u8]| {
        let mut raw = vec![0; 8];
        raw.extend(257u64.to_le_bytes());
        [u64::from((-100i32) as u32), 0x7000, 0, 0].iter().for_each(|arg| raw.extend(arg.to_le_bytes()));
        raw.extend(((text.len() as u32) << 16 | 52).to_le_bytes());
        raw.extend(text);
        raw
    };
    let mut ring = Ring::new(&session, 0);
    for (i, text) in [&b"/etc/passwd\0"[..], b""].iter().enumerate() {
        let at = 100 * (i as u64 + 1);
        ring.writer.sample(ENTER_OPENAT, a, Time(at), &record(text));
        ring.writer.sample(EXIT_OPENAT, a, Time(at + 5), &exit_raw(257, -2));
    }
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    let calls = calls(&events);
    let piece = calls[0].piece(1).unwrap();
    assert_eq!((calls[0].bytes(piece), piece.state, piece.address), (&b"/etc/passwd"[..], PieceState::Altered { cut: false }, 0x7000));
    assert_eq!(calls[1].piece(1).unwrap().state, PieceState::Fault);
    assert_eq!(calls[1].args.unwrap()[..2], [0xffff_ff9c, 0x7000]);
}

#[test]
fn an_open_call_is_emitted_once_when_its_tid_is_reused() {
    let session = session();
    let (a, b) = (task(7, 7), task(9, 9));
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, READ, &[]).fork(200, a, b).exit(210, a, CLONE, 0).call(300, a, READ, &[], 1);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(call_lines(&events), ["7 0@100 Unseen", "7 0@300 = 1 (10)"]);
}
