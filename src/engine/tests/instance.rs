//! Records of a tracefs instance, which identify only the thread.

use super::fixture::*;
use crate::event::{EventIndex, EventKind, Synthesized, TaskId, Time};
use crate::session::{EventSpec, Role, Scope, Session};
use crate::source::instance::page::Missed;
use crate::source::instance::page::tests::PageWriter;
use crate::source::{Chunk, Form};
use crate::task::ProcReader;

const TYPE: u16 = 900;

/// A session with an additional event that comes through an instance.
fn session_with_instance() -> (Session, EventIndex) {
    let mut session = session();
    let event = EventIndex(session.events.events.len() as u16);
    let (name, terms) = ("eprobes:x".to_owned(), Default::default());
    session.events.events.push(EventSpec { name, role: Role::Tracepoint, sample_type: 0, format: None, shown: true, terms });
    session.events.types.insert(TYPE, event);
    (session, event)
}

fn raw(tid: i32) -> Vec<u8> {
    [&TYPE.to_le_bytes()[..], &[0, 0], &tid.to_le_bytes(), b"abcd"].concat()
}

fn pages(bytes: Vec<u8>) -> Chunk {
    Chunk { cpu: 0, form: Form::Pages, bytes }
}

#[test]
fn instance_records_get_process_and_comm_from_the_stream() {
    let (session, event) = session_with_instance();
    let (a, thread) = (task(7, 7), task(7, 8));
    let mut ring = Ring::new(&session, 0);
    ring.comm(10, a, b"sh", false).fork(20, thread, a).call(22, a, READ, &[], 0);
    let page = PageWriter::new(30).record(30, &raw(8)).record(31, &raw(7)).page(None);
    let mut run = Run::new(&session);
    run.round(1, vec![ring.chunk(), pages(page)], vec![(Time(50), Synthesized::InstanceCount { issued: 2, lost: 0 })], &mut NoProc);
    let (events, engine) = run.end();
    let seen: Vec<_> = events.iter().filter(|e| matches!(&e.kind, EventKind::Tracepoint { event: of, .. } if *of == event)).collect();
    assert_eq!(seen.iter().map(|e| e.task).collect::<Vec<_>>(), [thread, a]);
    assert!(seen.iter().all(|e| e.comm.as_deref() == Some(b"sh")));
    assert!(!engine.ledger().instance.disagrees() && engine.ledger().disagreements().count() == 0);
    assert_eq!(engine.ledger().instance.received, 2);
}

/// Answers reads of one thread.
struct OneThread(TaskId);

impl ProcReader for OneThread {
    fn fd(&mut self, _: i32, _: i32) -> Option<(Time, Synthesized)> {
        None
    }

    fn task(&mut self, tid: i32) -> Option<(Time, Synthesized)> {
        let found =
            Synthesized::Task { task: self.0, comm: b"found".to_vec(), ppid: 1, started: Time(0), cgroup: None, abi: None, nested: false };
        Some((Time(40), if tid == self.0.tid { found } else { Synthesized::NoTask { tid } }))
    }
}

#[test]
fn an_unknown_thread_is_read_once() {
    let (session, _) = session_with_instance();
    let mut run = Run::new(&session);
    let page = PageWriter::new(10).record(10, &raw(8)).record(11, &raw(8)).page(None);
    let mut proc = OneThread(task(5, 8));
    run.round(20, vec![pages(page)], vec![], &mut proc).round(30, vec![], vec![], &mut proc);
    run.round(50, vec![pages(PageWriter::new(60).record(60, &raw(8)).page(None))], vec![], &mut proc);
    let (events, _) = run.end();
    let tasks: Vec<_> = events.iter().map(|e| (e.task, e.comm.as_deref())).collect();
    assert_eq!(tasks, [(task(8, 8), None), (task(8, 8), None), (task(5, 8), Some(&b"found"[..]))]);
}

#[test]
fn untraced_threads_are_dropped_unless_a_fork_may_be_lost() {
    let (mut session, _) = session_with_instance();
    session.scope = Scope::Tasks;
    let page = |time| pages(PageWriter::new(time).record(time, &raw(0)).record(time + 1, &raw(7)).page(None));
    let mut ring = Ring::new(&session, 0);
    ring.comm(10, task(7, 7), b"sh", false);
    let mut run = Run::new(&session);
    run.round(30, vec![ring.chunk(), page(20)], vec![], &mut NoProc).round(40, vec![], vec![], &mut NoProc);
    assert_eq!(run.events.iter().map(|event| event.task.tid).collect::<Vec<_>>(), [7]);
    ring.lost(50, 1);
    run.round(60, vec![ring.chunk(), page(55)], vec![], &mut NoProc);
    let (events, engine) = run.end();
    assert_eq!(events.iter().filter(|e| matches!(e.kind, EventKind::Tracepoint { .. })).map(|e| e.task.tid).collect::<Vec<_>>(), [7, 0, 7]);
    assert_eq!((engine.ledger().instance.received, engine.ledger().excluded), (4, 1));
}

#[test]
fn instance_losses_have_a_place_and_make_no_call_doubtful() {
    let (session, _) = session_with_instance();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(10, a, READ, &[]).exit(90_000, a, READ, 0);
    let page = PageWriter::new(50_000).record(50_000, &raw(7)).page(Some(Missed(Some(3))));
    let mut run = Run::new(&session);
    run.round(1, vec![ring.chunk(), pages(page)], vec![(Time(99_000), Synthesized::InstanceCount { issued: 5, lost: 3 })], &mut NoProc);
    let (events, engine) = run.end();
    assert!(matches!(events[0].kind, EventKind::Lost(loss) if loss.records == Some(3)), "{events:?}");
    assert_eq!(call_lines(&events), ["7 0@10 = 0 (89990)"]);
    assert_eq!((engine.ledger().lost_records(), engine.ledger().lost_placed), (3, 3));
    assert!(engine.ledger().instance.disagrees(), "one of five is missing");
}
