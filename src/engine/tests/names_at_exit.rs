//! Path names that are read when calls return. They come through a tracefs instance, shortly before or after the exit.

use super::fixture::*;
use super::path_names::{A, B, NOTHING, names, one};
use crate::event::{Event, EventIndex, EventKind};
use crate::kernel::format::FieldPlace;
use crate::session::{EventSpec, Role, Session};
use crate::source::instance::page::tests::PageWriter;
use crate::source::{Chunk, Form};

const TYPE: u16 = 900;
const READLINK: u64 = 89;

/// A session in which names come only through an instance.
fn session_at_exit() -> Session {
    let mut session = session();
    session.events.events.truncate(usize::from(GETNAME.0));
    let format = format(10, &[("address", "u64", 8, 8, FieldPlace::Here), ("name", "__data_loc char[]", 16, 4, FieldPlace::DataLoc)], "");
    let (name, terms) = ("rtrace_1_2:path_name".to_owned(), Default::default());
    session.events.events.push(EventSpec { name, role: Role::PathName, sample_type: 0, format: Some(format), shown: false, terms });
    session.events.types.insert(TYPE, EventIndex(session.events.events.len() as u16 - 1));
    session
}

/// A record of a thread's path name at this address; without a text, it could not be read.
fn named(tid: i32, address: u64, text: Option<&[u8]>) -> Vec<u8> {
    let text = text.unwrap_or(b"(fault)");
    let place = ((text.len() as u32 + 1) << 16 | 20).to_le_bytes();
    [&TYPE.to_le_bytes()[..], &[0, 0], &tid.to_le_bytes(), &address.to_le_bytes(), &place, text, b"\0"].concat()
}

fn pages(page: &PageWriter) -> Chunk {
    Chunk { cpu: 0, form: Form::Pages, bytes: page.page(None) }
}

/// Runs a ring and an instance in one round, and returns the events.
fn run_pages(session: &Session, ring: &mut Ring, instance: &PageWriter) -> Vec<Event> {
    let mut run = Run::new(session);
    run.round(1, vec![ring.chunk(), pages(instance)], vec![], &mut NoProc);
    run.end().0
}

#[test]
fn a_name_before_or_after_the_exit_belongs_to_the_call() {
    let session = session_at_exit();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, OPENAT, &[0, A], 3).call(200, a, OPENAT, &[0, A], 3).call(300, a, RENAME, &[A, B], 0);
    let mut instance = PageWriter::new(0);
    instance.record(109, &named(7, A, Some(b"/before"))).record(211, &named(7, A, Some(b"/after")));
    instance.record(309, &named(7, A, Some(b"/old"))).record(311, &named(7, B, Some(b"/new")));
    let both = [Some("/old".to_owned()), Some("/new".to_owned())];
    assert_eq!(names(&run_pages(&session, &mut ring, &instance)), [one("/before"), one("/after"), both]);
}

#[test]
fn events_stay_in_order_while_a_call_waits_for_its_name() {
    let session = session_at_exit();
    let (a, b) = (task(7, 7), task(8, 8));
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, OPENAT, &[0, A], 3).call(111, b, READ, &[0], 1);
    let mut instance = PageWriter::new(0);
    instance.record(130, &named(7, A, Some(b"/after")));
    let events = run_pages(&session, &mut ring, &instance);
    assert_eq!(call_lines(&events), ["7 257@100 = 3 (10)", "8 0@111 = 1 (10)"]);
    assert_eq!(names(&events)[0], one("/after"));
}

#[test]
fn a_call_waits_for_its_name_until_the_next_call_or_a_timeout() {
    let session = session_at_exit();
    let (a, b) = (task(7, 7), task(8, 8));
    let mut ring = Ring::new(&session, 0);
    let mut run = Run::new(&session);
    ring.call(100, a, OPENAT, &[0, A], 3);
    run.round(50, vec![ring.chunk()], vec![], &mut NoProc).round(150, vec![], vec![], &mut NoProc).round(200, vec![], vec![], &mut NoProc);
    assert_eq!(run.events.len(), 0, "the name may still arrive");
    ring.enter(300, a, OPENAT, &[0, A]);
    run.round(400, vec![ring.chunk()], vec![], &mut NoProc).round(401, vec![], vec![], &mut NoProc).round(402, vec![], vec![], &mut NoProc);
    assert_eq!(run.events.len(), 1, "its task makes another call");
    ring.exit(500, a, OPENAT, 3).call(600, b, READ, &[0], 1);
    let late = 200_000_000;
    run.round(700, vec![ring.chunk()], vec![], &mut NoProc).round(late, vec![], vec![], &mut NoProc).round(
        late + 1,
        vec![],
        vec![],
        &mut NoProc,
    );
    assert_eq!(run.events.len(), 3, "the wait has timed out");
    let mut instance = PageWriter::new(late + 2);
    instance.record(late + 2, &named(7, A, Some(b"/too/late")));
    run.round(late + 3, vec![pages(&instance)], vec![], &mut NoProc);
    assert_eq!(names(&run.end().0), [NOTHING, NOTHING, NOTHING]);
}

#[test]
fn only_a_failed_execve_has_a_name_at_its_exit() {
    let session = session_at_exit();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, EXECVE, &[A], -2).call(200, a, EXECVE, &[A], 0).call(300, a, READ, &[0], 1);
    let mut instance = PageWriter::new(0);
    instance.record(112, &named(7, A, Some(b"/bin/none"))).record(212, &named(7, A, Some(b"overwritten")));
    assert_eq!(names(&run_pages(&session, &mut ring, &instance))[..2], [one("/bin/none"), NOTHING]);
}

#[test]
fn names_of_other_tasks_and_addresses_are_ignored() {
    let session = session_at_exit();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, OPENAT, &[0, A], 3).call(200, a, OPENAT, &[0, B], 3);
    let mut instance = PageWriter::new(0);
    instance.record(111, &named(8, A, Some(b"/of/another"))).record(211, &named(7, A, Some(b"/elsewhere")));
    assert_eq!(names(&run_pages(&session, &mut ring, &instance)), [NOTHING, NOTHING]);
}

#[test]
fn a_name_after_a_gap_is_not_used() {
    let session = session_at_exit();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, OPENAT, &[0, A], 3).lost(5_000, 2);
    let mut instance = PageWriter::new(0);
    instance.record(6_000, &named(7, A, Some(b"/of/a/later/call")));
    assert_eq!(names(&run_pages(&session, &mut ring, &instance)), [NOTHING]);
}

#[test]
fn a_call_does_not_wait_for_an_unreadable_name() {
    let session = session_at_exit();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, OPENAT, &[0, A], -14);
    let mut instance = PageWriter::new(0);
    instance.record(112, &named(7, A, None));
    let mut run = Run::new(&session);
    run.round(150, vec![ring.chunk(), pages(&instance)], vec![], &mut NoProc);
    run.round(160, vec![], vec![], &mut NoProc).round(170, vec![], vec![], &mut NoProc);
    assert!(matches!(run.events[..], [Event { kind: EventKind::Call(_), .. }]));
    assert_eq!(names(&run.end().0), [NOTHING]);
}

#[test]
fn a_name_that_the_call_may_have_overwritten_is_dropped() {
    let session = session_at_exit();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, READLINK, &[A, A, 64], 5).call(200, a, READLINK, &[A, A - 64, 64], 5).call(300, a, READLINK, &[A, A - 64, 65], 5);
    ring.call(400, a, READLINK, &[A, A + 6, 64], 5).call(500, a, READLINK, &[A, A + 5, 64], 5);
    let mut instance = PageWriter::new(0);
    (1..=5).for_each(|call| _ = instance.record(100 * call + 11, &named(7, A, Some(b"/path"))));
    assert_eq!(names(&run_pages(&session, &mut ring, &instance)), [NOTHING, one("/path"), NOTHING, one("/path"), NOTHING]);
}

#[test]
fn tasks_with_only_path_names_are_not_read() {
    let session = session_at_exit();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.call(100, a, OPENAT, &[0, A], 3);
    let mut instance = PageWriter::new(0);
    instance.record(90, &named(99, A, Some(b"/of/a/bystander"))).record(111, &named(7, A, Some(b"/own")));
    let mut run = Run::new(&session);
    run.round(1, vec![ring.chunk(), pages(&instance)], vec![], &mut OnlyThread7);
    let (events, engine) = run.end();
    assert_eq!(names(&events), [one("/own")]);
    assert!(engine.tasks().get(99).is_none());
}

/// Fails the test if another task than 7 is read.
struct OnlyThread7;

impl crate::task::ProcReader for OnlyThread7 {
    fn fd(&mut self, _: i32, _: i32) -> Option<(crate::event::Time, crate::event::Synthesized)> {
        None
    }

    fn task(&mut self, tid: i32) -> Option<(crate::event::Time, crate::event::Synthesized)> {
        assert_eq!(tid, 7, "no event of another task is shown");
        None
    }
}
