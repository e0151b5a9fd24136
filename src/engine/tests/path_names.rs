//! Path names from probes: each belongs to the right argument of the right call, or to none.

use super::fixture::*;
use crate::event::{Call, Event, PieceState};
use crate::session::Session;

pub const A: u64 = 0x5000;
pub const B: u64 = 0x6000;

/// Returns the known paths of each call.
pub fn names(events: &[Event]) -> Vec<[Option<String>; 2]> {
    let name = |call: &Call, arg: usize| {
        let piece = call.piece(arg).filter(|piece| piece.state != PieceState::Fault)?;
        let cut = if piece.state == PieceState::Cut { "..." } else { "" };
        Some(format!("{}{cut}", String::from_utf8_lossy(call.bytes(piece))))
    };
    let first = |call: &Call| if call.nr == OPENAT as i64 { 1 } else { 0 };
    calls(events).into_iter().map(|call| [name(call, first(call)), name(call, first(call) + 1)]).collect()
}

pub fn one(name: &str) -> [Option<String>; 2] {
    [Some(name.to_owned()), None]
}

pub const NOTHING: [Option<String>; 2] = [None, None];

/// Runs one ring, and returns the paths of its calls.
fn run_names(session: &Session, ring: &mut Ring) -> Vec<[Option<String>; 2]> {
    names(&run(session, vec![ring], vec![]).0)
}

#[test]
fn a_name_belongs_to_the_argument_with_its_address() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, OPENAT, &[0, A, 0]).getname(110, a, A, Ok(b"/etc/hosts")).exit(120, a, OPENAT, 3);
    ring.enter(200, a, OPENAT, &[0, A, 0]).getname(210, a, B, Ok(b"/other")).exit(220, a, OPENAT, 3);
    ring.enter(300, a, OPENAT, &[A, B, A]).getname(310, a, A, Ok(b"/no path stands there")).exit(320, a, OPENAT, 3);
    assert_eq!(run_names(&session, &mut ring), [one("/etc/hosts"), NOTHING, NOTHING]);
}

#[test]
fn two_paths_are_distinguished_in_either_order() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, RENAME, &[A, B]).getname(110, a, B, Ok(b"new")).getname(111, a, A, Ok(b"old")).exit(120, a, RENAME, 0);
    ring.enter(200, a, RENAME, &[A, B]).getname(210, a, A, Ok(b"old")).getname(211, a, B, Ok(b"new")).exit(220, a, RENAME, 0);
    let both = [Some("old".to_owned()), Some("new".to_owned())];
    assert_eq!(run_names(&session, &mut ring), [both.clone(), both]);
}

#[test]
fn two_paths_at_one_address_need_equal_names() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, RENAME, &[A, A]).getname(110, a, A, Ok(b"x")).getname(111, a, A, Ok(b"x")).exit(120, a, RENAME, 0);
    // The memory was changed between the two reads, so it is not known which name belongs to which path.
    ring.enter(200, a, RENAME, &[A, A]).getname(210, a, A, Ok(b"x")).getname(211, a, A, Ok(b"y")).exit(220, a, RENAME, 0);
    assert_eq!(run_names(&session, &mut ring), [[Some("x".to_owned()), Some("x".to_owned())], NOTHING]);
}

#[test]
fn a_second_read_by_the_kernel_replaces_the_first() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, OPENAT, &[0, A]).getname(110, a, A, Ok(b"stale")).getname(115, a, A, Ok(b"new")).exit(120, a, OPENAT, 3);
    assert_eq!(run_names(&session, &mut ring), [one("new")]);
}

#[test]
fn names_outside_of_the_task_s_path_calls_are_dropped() {
    let session = session();
    let (a, b) = (task(7, 7), task(8, 8));
    let mut ring = Ring::new(&session, 0);
    // The task's stat is not traced.
    ring.call(100, a, OPENAT, &[0, A], 3).getname(150, a, A, Ok(b"/of/stat"));
    ring.enter(200, a, OPENAT, &[0, A]).getname(205, b, A, Ok(b"/of/b")).exit(220, a, OPENAT, 3);
    ring.enter(300, a, READ, &[0, A]).getname(305, a, A, Ok(b"/of/io_uring")).exit(320, a, READ, 3);
    assert_eq!(run_names(&session, &mut ring), [NOTHING, NOTHING, NOTHING]);
}

#[test]
fn names_after_a_gap_are_not_added_to_older_calls() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    // The exit of openat was lost; the name belongs to a call that is not traced.
    ring.enter(100, a, OPENAT, &[0, A]).lost(5_000, 3).getname(5_010, a, A, Ok(b"/of/stat"));
    // Here the name was lost.
    ring.enter(6_000, a, OPENAT, &[0, A]).lost(7_000, 1).exit(7_010, a, OPENAT, 3);
    ring.enter(8_000, a, OPENAT, &[0, A]).getname(8_010, a, A, Ok(b"/again")).exit(8_020, a, OPENAT, 3);
    assert_eq!(run_names(&session, &mut ring), [NOTHING, NOTHING, one("/again")]);
}

#[test]
fn a_gap_on_another_cpu_makes_a_name_doubtful() {
    let session = session();
    let a = task(7, 7);
    let (mut ring, mut other) = (Ring::new(&session, 0), Ring::new(&session, 1));
    // The task may have run on the other CPU meanwhile, and migrated back.
    ring.enter(10_000, a, OPENAT, &[0, A]).getname(90_000, a, A, Ok(b"/of/stat"));
    other.call(5_000, task(8, 8), READ, &[0], 1).lost(50_000, 3);
    let (events, _) = run(&session, vec![&mut ring, &mut other], vec![]);
    assert_eq!(names(&events).last(), Some(&NOTHING));
}

#[test]
fn an_error_is_distinguished_from_a_file_named_fault() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, OPENAT, &[0, A]).getname(110, a, A, Err(-14)).exit(120, a, OPENAT, -14);
    ring.enter(200, a, OPENAT, &[0, A]).getname(210, a, A, Ok(b"(fault)")).exit(220, a, OPENAT, 3);
    ring.enter(300, a, OPENAT, &[0, A]).vfs_getname(310, a, b"(fault)").exit(320, a, OPENAT, 3);
    assert_eq!(run_names(&session, &mut ring), [NOTHING, one("(fault)"), NOTHING]);
}

#[test]
fn without_addresses_only_single_paths_get_names() {
    let session = session();
    let a = task(7, 7);
    let mut ring = Ring::new(&session, 0);
    ring.enter(100, a, OPENAT, &[0, A]).vfs_getname(110, a, b"/etc/hosts").vfs_getname(111, a, b"/more").exit(120, a, OPENAT, 3);
    ring.enter(200, a, RENAME, &[A, B]).vfs_getname(210, a, b"new").vfs_getname(211, a, b"old").exit(220, a, RENAME, 0);
    ring.enter(300, a, READ, &[0, A]).vfs_getname(310, a, b"/else").exit(320, a, READ, 0);
    assert_eq!(run_names(&session, &mut ring), [one("/etc/hosts"), NOTHING, NOTHING]);
}

#[test]
fn a_complete_name_replaces_an_altered_copy() {
    let session = session();
    let a = task(7, 7);
    let enter = |ring: &mut Ring, time: u64| {
        let mut raw = enter_raw(OPENAT, [0, A, 0, 0, 0, 0]);
        raw[48..52].copy_from_slice(&(6 << 16 | 64u32).to_le_bytes());
        raw.extend(b"caf..\0");
        ring.writer.sample(ENTER_OPENAT, a, crate::event::Time(time), &raw);
    };
    let mut ring = Ring::new(&session, 0);
    enter(&mut ring, 100);
    ring.writer.sample(EXIT_OPENAT, a, crate::event::Time(120), &exit_raw(OPENAT, 3));
    enter(&mut ring, 200);
    ring.getname(210, a, A, Ok("café".as_bytes()));
    ring.writer.sample(EXIT_OPENAT, a, crate::event::Time(220), &exit_raw(OPENAT, 3));
    let (events, _) = run(&session, vec![&mut ring], vec![]);
    assert_eq!(names(&events), [one("caf.."), one("café")]);
    assert_eq!(calls(&events)[0].piece(1).unwrap().state, PieceState::Altered { cut: false });
    assert_eq!(calls(&events)[1].pieces.len(), 1);
}
