//! Traces from a pid namespace other than the initial one: records have rtrace's pids of the tasks that wrote them, but
//! fields of tracepoints have the kernel's pids.

use super::fixture::*;
use crate::event::{Disposition, Event, EventIndex, EventKind, TaskEnd, TaskId, Time};
use crate::kernel::format::FieldPlace::Here;
use crate::session::{EventSpec, Role, Session};
use crate::source::record_writer::raw_record;
use libc::{SIGINT, SIGKILL, SIGTERM};

const GENERATE: EventIndex = EventIndex(11);

const PARENT: TaskId = TaskId { pid: 7, tid: 7 };
const CHILD: TaskId = TaskId { pid: 8, tid: 8 };
/// The child's pid in the kernel.
const KERNEL_PID: i32 = 1008;

fn session_inside() -> Session {
    let mut session = session();
    session.fields_have_other_numbers = true;
    let fields = ["sig", "errno", "code", "pid", "group", "result"];
    let fields: Vec<_> = fields.iter().enumerate().map(|(i, name)| (*name, "int", 8 + 4 * i as u32, 4, Here)).collect();
    let like = session.events.events[usize::from(DELIVER.0)].clone();
    let name = "signal:signal_generate".to_owned();
    session.events.events.push(EventSpec { name, role: Role::SignalGenerate, format: Some(format(11, &fields, "")), ..like });
    session.events.ids.insert(10 + u64::from(GENERATE.0), GENERATE);
    session
}

/// The parent sends a signal to the task with this pid in the kernel.
fn send(ring: &mut Ring, session: &Session, time: u64, kernel_pid: i32, signal: i32) {
    let format = session.events.events[usize::from(GENERATE.0)].format.as_ref().unwrap();
    let raw = raw_record(format, &[("sig", signal as u64), ("pid", kernel_pid as u64), ("group", 1)]);
    ring.writer.sample(GENERATE, PARENT, Time(time), &raw);
}

fn signals(events: &[Event]) -> Vec<(i32, i32, Disposition)> {
    let one = |event: &Event| match &event.kind {
        EventKind::Signal(signal) => Some((event.task.tid, signal.number, signal.disposition)),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

fn end_of_child(events: &[Event]) -> Option<TaskEnd> {
    events.iter().find_map(|event| if let EventKind::Exit(end) = event.kind { (event.task == CHILD).then_some(end) } else { None })
}

#[test]
fn a_signal_goes_to_the_task_with_the_kernel_s_pid() {
    let session = session_inside();
    let mut ring = Ring::new(&session, 0);
    ring.fork(110, CHILD, PARENT).new_task(111, PARENT, KERNEL_PID, 0);
    send(&mut ring, &session, 120, KERNEL_PID, SIGTERM);
    // In the kernel, 8 is the pid of another task.
    send(&mut ring, &session, 130, CHILD.tid, SIGINT);
    ring.deliver(140, CHILD, SIGKILL, 0).end(150, CHILD);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(signals(&events), [(8, SIGTERM, Disposition::Kills)]);
    assert_eq!(end_of_child(&events), Some(TaskEnd::Killed { signal: SIGTERM, core_dumped: None }));
    let forks: Vec<_> = events.iter().filter_map(|e| if let EventKind::Fork { child, .. } = e.kind { Some(child) } else { None }).collect();
    assert_eq!(forks, [CHILD], "the kernel's pid adds no task");
}

#[test]
fn the_first_record_of_a_task_has_its_kernel_pid() {
    let session = session_inside();
    let mut ring = Ring::new(&session, 0);
    let mut raw = enter_raw(READ, [0; 6]);
    raw[4..8].copy_from_slice(&KERNEL_PID.to_ne_bytes());
    send(&mut ring, &session, 90, KERNEL_PID, SIGINT);
    ring.writer.sample(ENTER, CHILD, Time(100), &raw);
    send(&mut ring, &session, 120, KERNEL_PID, SIGTERM);
    ring.deliver(140, CHILD, SIGKILL, 0).end(150, CHILD);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(signals(&events), [(8, SIGTERM, Disposition::Kills)]);
}

/// The first record of a task that slept since before the trace is the delivery of its fatal signal.
#[test]
fn a_signal_is_kept_until_its_receiver_is_known() {
    for made in [None, Some(80), Some(110)] {
        let session = session_inside();
        let mut ring = Ring::new(&session, 0);
        if made == Some(80) {
            ring.fork(80, CHILD, PARENT).lost(85, 3);
        }
        send(&mut ring, &session, 90, 1009, SIGINT);
        send(&mut ring, &session, 91, KERNEL_PID, SIGTERM);
        if made == Some(110) {
            // The signal was for the previous task with this pid.
            ring.fork(110, CHILD, PARENT);
        }
        let format = session.events.events[usize::from(DELIVER.0)].format.as_ref().unwrap();
        let raw = raw_record(format, &[("common_pid", KERNEL_PID as u64), ("sig", SIGKILL as u64)]);
        ring.writer.sample(DELIVER, CHILD, Time(140), &raw);
        ring.end(150, CHILD);
        let (events, _) = run(&session, vec![&mut ring], vec![]);
        let expected = if made == Some(110) { vec![] } else { vec![(8, SIGTERM, Disposition::Kills)] };
        assert_eq!(signals(&events), expected, "{made:?}");
    }
}

#[test]
fn pids_are_forgotten_after_a_gap_and_after_a_task_end() {
    for has_gap in [true, false] {
        let session = session_inside();
        let mut ring = Ring::new(&session, 0);
        ring.fork(110, CHILD, PARENT).new_task(111, PARENT, KERNEL_PID, 0);
        if has_gap {
            ring.lost(115, 3);
        } else {
            ring.end(115, CHILD).fork(116, CHILD, PARENT);
        }
        send(&mut ring, &session, 120, KERNEL_PID, SIGTERM);
        ring.deliver(140, CHILD, SIGKILL, 0);
        let (events, _) = run(&session, vec![&mut ring], vec![]);
        assert_eq!(signals(&events), [], "gap: {has_gap}");
    }
}

#[test]
fn a_task_with_a_lost_fork_is_not_taken_for_its_sibling() {
    let session = session_inside();
    let mut ring = Ring::new(&session, 0);
    ring.fork(110, CHILD, PARENT).new_task(111, PARENT, KERNEL_PID, 0).new_task(120, PARENT, 1009, 0);
    send(&mut ring, &session, 130, 1009, SIGINT);
    send(&mut ring, &session, 131, KERNEL_PID, SIGTERM);
    ring.deliver(140, CHILD, SIGKILL, 0);
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(signals(&events), [(8, SIGTERM, Disposition::Kills)]);
    assert_eq!(events.iter().filter(|e| matches!(e.kind, EventKind::Fork { .. })).count(), 1);
}
