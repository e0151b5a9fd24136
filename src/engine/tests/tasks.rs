//! Comms, task ends, signals and page faults.

use super::fixture::*;
use crate::event::{Disposition, Event, EventKind, ExitState, Synthesized, TaskEnd, Time};
use crate::session::Scope;

fn ends(events: &[Event]) -> Vec<(i32, TaskEnd)> {
    events.iter().filter_map(|e| if let EventKind::Exit(end) = e.kind { Some((e.task.tid, end)) } else { None }).collect()
}

#[test]
fn every_event_has_the_comm_of_its_time() {
    let session = session();
    let (parent, child) = (task(7, 7), task(8, 8));
    let mut ring = Ring::new(&session, 0);
    ring.comm(10, parent, b"sh", false).fork(20, child, parent).call(30, child, READ, &[], 0).comm(50, child, b"cat", true).call(
        60,
        child,
        READ,
        &[],
        0,
    );
    let (events, engine) = run(&session, vec![&mut ring], vec![]);
    let names: Vec<_> =
        events.iter().filter(|e| matches!(e.kind, EventKind::Call(_))).map(|e| e.comm.as_deref().unwrap().to_vec()).collect();
    assert_eq!(names, [b"sh".to_vec(), b"cat".to_vec()]);
    assert_eq!(engine.tasks().comm_at(8, Time(49)).as_deref(), Some(&b"sh"[..]));
    assert_eq!(engine.tasks().pid(8), Some(8));
}

#[test]
fn task_ends_have_a_status_or_signal() {
    let session = session();
    let mut ring = Ring::new(&session, 0);
    ring.enter(10, task(7, 8), EXIT_CALL, &[0x105]).end(11, task(7, 8));
    ring.enter(20, task(7, 7), EXIT_GROUP, &[9]).deliver(21, task(7, 9), 9, 0).end(22, task(7, 9)).end(23, task(7, 7));
    ring.deliver(30, task(4, 4), 11, 0).end(31, task(4, 4));
    ring.deliver(40, task(5, 5), 9, 0).end(41, task(5, 5));
    ring.deliver(50, task(6, 6), 11, 0x4000).enter(51, task(6, 6), EXIT_GROUP, &[0]).end(52, task(6, 6));
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    let expected = [
        (8, TaskEnd::Exited(5)),
        (9, TaskEnd::Exited(9)),
        (7, TaskEnd::Exited(9)),
        (4, TaskEnd::Killed { signal: 11, core_dumped: None }),
        (5, TaskEnd::Unknown),
        (6, TaskEnd::Exited(0)),
    ];
    assert_eq!(ends(&events), expected);
    let handled: Vec<_> = events
        .iter()
        .filter_map(|e| if let EventKind::Signal(signal) = &e.kind { Some((signal.number, signal.disposition)) } else { None })
        .collect();
    assert_eq!(handled, [(11, Disposition::Kills), (11, Disposition::Handled)], "a SIGKILL in place of an unknown signal is not emitted");
}

#[test]
fn a_set_user_id_execve_is_not_a_task_end() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(10, a, EXECVE, &[]).comm(11, a, b"su", true).end(12, a);
    ring.enter(20, task(8, 8), EXECVE, &[]).comm(21, task(8, 8), b"x", true).exec(22, task(8, 8), 8, b"/x").end(23, task(8, 8));
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(ends(&events), [(7, TaskEnd::NotTraced), (8, TaskEnd::Unknown)]);
    let exits: Vec<_> = events.iter().filter_map(|e| if let EventKind::Call(call) = &e.kind { Some(call.exit) } else { None }).collect();
    assert_eq!(exits, [ExitState::Unseen, ExitState::Never]);
}

#[test]
fn the_command_s_end_waits_for_its_wait_status() {
    let mut session = session();
    session.scope = Scope::Command;
    let a = task(7, 7);
    let spawned = Synthesized::Spawned { task: a, path: b"/bin/x".to_vec(), argv: vec![], fds: vec![], cgroup: None, nested: false };
    let reaped = Synthesized::Reaped { pid: 7, status: 15 };
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, EXECVE, &[], 0).deliver(200, a, 9, 0).end(210, a).call(220, task(8, 8), READ, &[], 0);
    let (events, _) = run(&session, vec![&mut ring], vec![(Time(50), spawned), (Time(300), reaped)]);
    assert_eq!(ends(&events), [(7, TaskEnd::Killed { signal: 15, core_dumped: Some(false) })]);
    assert_eq!(call_lines(&events).len(), 2);
}

#[test]
fn faults_name_the_mapped_file() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.writer.map(a, Time(10), (0x1000, 0x2000, 0x8000), true, b"/bin/x").fault(FAULT, a, Time(20), 0x1010, 0x9999);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    let EventKind::Fault(fault) = &events[0].kind else { panic!("{events:?}") };
    let at = fault.ip_at.as_ref().unwrap();
    assert_eq!((&*at.path, at.offset, at.executable, fault.major), (&b"/bin/x"[..], 0x8010, true, false));
    assert_eq!(fault.address_at, None);
}
