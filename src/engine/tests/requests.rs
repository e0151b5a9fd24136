//! Requests of io_uring: pairing of submissions with completions.

use super::fixture::*;
use crate::beauty::lookup::requests;
use crate::bpf::record::tests::{piece_bytes, returned, written};
use crate::bpf::record::{CallRecord, RecordKind};
use crate::event::{Event, EventIndex, EventKind, ExitState, TaskId, Time};
use crate::kernel::format::FieldPlace::Here;
use crate::session::{EventSpec, Role, Session};
use crate::source::record_writer::raw_record;
use crate::sys::perf;

const SILENT: u64 = 1 << 6;
const MORE: u64 = 1 << 1;
const RING: u64 = 0xffff_8880_0000_1000;

/// The events, behind those of [`session`].
struct Armed {
    session: Session,
    submitted: EventIndex,
    completed: EventIndex,
    overflow: EventIndex,
    canceled: EventIndex,
    bpf: EventIndex,
}

fn armed() -> Armed {
    let mut session = session();
    let id = [("ctx", "void *", 8, 8, Here), ("req", "void *", 16, 8, Here), ("user_data", "u64", 24, 8, Here)];
    let result = [("res", "int", 32, 4, Here), ("cflags", "unsigned", 36, 4, Here)];
    let submitted = [&id[..], &[("opcode", "u8", 32, 1, Here), ("flags", "u64", 40, 8, Here)]].concat();
    let completed = [&id[..], &result].concat();
    let overflow = [&[("ctx", "void *", 8, 8, Here), ("user_data", "u64", 16, 8, Here)][..], &result].concat();
    let canceled = [&id[..], &[("link", "void *", 40, 8, Here)]].concat();
    let mut add = |role: Role, fields: &[_]| {
        let index = session.events.events.len() as u16;
        let sample_type = session.events.events[0].sample_type;
        let shown = role == Role::RequestSubmitted;
        let format = Some(format(100 + u64::from(index), fields, ""));
        session.events.events.push(EventSpec {
            name: "io_uring:event".into(),
            role,
            sample_type,
            format,
            shown,
            terms: Default::default(),
        });
        session.events.ids.insert(10 + u64::from(index), EventIndex(index));
        EventIndex(index)
    };
    let submitted = add(Role::RequestSubmitted, &submitted);
    let completed = add(Role::RequestCompleted, &completed);
    let overflow = add(Role::RequestCompleted, &overflow);
    let canceled = add(Role::RequestCanceled, &canceled);
    let bpf = EventIndex(session.events.events.len() as u16);
    session.events.ids.insert(10 + u64::from(bpf.0), bpf);
    let (role, sample_type) = (Role::BpfCall, perf::SAMPLE_BPF);
    session.events.events.push(EventSpec {
        name: "BPF calls".into(),
        role,
        sample_type,
        format: None,
        shown: true,
        terms: Default::default(),
    });
    Armed { session, submitted, completed, overflow, canceled, bpf }
}

/// A request: its address, its number of the program's, its opcode and its flags.
type Submitted = (u64, u64, u64, u64);

impl Armed {
    fn write(&self, ring: &mut Ring, event: EventIndex, (time, task): (u64, TaskId), values: &[(&str, u64)]) {
        let format = self.session.events.events[usize::from(event.0)].format.as_ref().unwrap();
        let values = [&[("ctx", RING)][..], values].concat();
        ring.writer.sample(event, task, Time(time), &raw_record(format, &values));
    }

    fn submit(&self, ring: &mut Ring, at: (u64, TaskId), (request, user_data, opcode, flags): Submitted) {
        let values = [("req", request), ("user_data", user_data), ("opcode", opcode), ("flags", flags | 1 << 40)];
        self.write(ring, self.submitted, at, &values);
    }

    fn complete(&self, ring: &mut Ring, at: (u64, TaskId), request: u64, user_data: u64, (result, flags): (i32, u64)) {
        let values = [("req", request), ("user_data", user_data), ("res", result as u32 as u64), ("cflags", flags)];
        self.write(ring, self.completed, at, &values);
    }
}

/// A record of the BPF programs about the request at 0x10.
fn reported(kind: RecordKind, (tid, nr): (i32, i32), at: u64) -> CallRecord<'static> {
    let (lost, late) = (RING as u32, (RING >> 32) as u32);
    CallRecord { kind, ret: 0x10, args: [0x1000, 0x2000, 3, 0, 0, 0], lost, late, ..returned(tid, nr, at, at) }
}

/// `REQUEST_HAS_END` in the number of such a record.
const HAS_END: i32 = 1 << 12;

impl Armed {
    fn report(&self, ring: &mut Ring, of: &CallRecord, pieces: &[u8]) {
        ring.writer.sample(self.bpf, task(of.pid, of.tid), of.end, &written(of, pieces));
    }
}

/// Returns the arguments of the requests, and the bytes of their memory.
fn arguments(events: &[Event]) -> Vec<(Option<u64>, Vec<&[u8]>)> {
    calls(events)
        .into_iter()
        .map(|call| (call.args.map(|args| args[0]), call.pieces.iter().map(|piece| call.bytes(piece)).collect()))
        .collect()
}

#[test]
fn a_request_has_the_arguments_that_the_programs_have_read() {
    let armed = armed();
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    let path = piece_bytes(0x2000, 5, b"/etc", [1, 0, 0]);
    armed.submit(&mut ring, (100, a), (0x10, 5, 18, 1 << 4));
    // The flags are those of the program, without the kernel's own.
    armed.report(&mut ring, &reported(RecordKind::Request, (7, 18 | 1 << 10), 101), &path);
    armed.complete(&mut ring, (110, a), 0x10, 5, (4, 0));
    // A record of another opcode is that of a request whose event was lost.
    armed.submit(&mut ring, (120, a), (0x10, 6, 0, 0));
    armed.report(&mut ring, &reported(RecordKind::Request, (7, 18), 121), &path);
    armed.complete(&mut ring, (130, a), 0x10, 6, (0, 0));
    let (events, _) = run(&armed.session, vec![&mut ring], vec![]);
    assert_eq!(lines(&events), ["7 18@100 5/0x0/0x0 = 4", "7 0@120 6/0x0/0x0 = 0"]);
    assert_eq!(arguments(&events), [(Some(0x1000), vec![&b"/etc"[..]]), (None, vec![])]);
    assert_eq!(calls(&events)[0].nr, requests::number_with(18, requests::Files::REGISTERED));
}

#[test]
fn a_request_waits_for_what_the_kernel_has_written() {
    let armed = armed();
    let (a, worker) = (task(7, 7), task(7, 9));
    let mut ring = Ring::new(&armed.session, 0);
    let [first, second] = [b"one", b"two"].map(|bytes| piece_bytes(0x1000, 3, bytes, [0, 1, 0]));
    for (start, at, end) in [(101, 110, first), (201, 210, second)] {
        armed.submit(&mut ring, (start - 1, a), (0x10, start, 22, 0));
        armed.report(&mut ring, &reported(RecordKind::Request, (7, 22 | HAS_END), start), &[]);
        armed.complete(&mut ring, (at, worker), 0x10, start, (3, 0));
        let written = CallRecord { start: Time(101), ..reported(RecordKind::RequestEnd, (9, 22), at + 1) };
        armed.report(&mut ring, &CallRecord { pid: 7, lost: 0, late: 0, ..written }, &end);
    }
    // Without such a record, the line is complete when the next event of the CPU comes.
    armed.submit(&mut ring, (300, a), (0x10, 3, 22, 0));
    armed.report(&mut ring, &reported(RecordKind::Request, (7, 22 | HAS_END), 301), &[]);
    armed.complete(&mut ring, (310, a), 0x10, 3, (3, 0));
    armed.submit(&mut ring, (320, a), (0x10, 4, 0, 0));
    armed.complete(&mut ring, (330, a), 0x10, 4, (0, 0));
    let (events, _) = run(&armed.session, vec![&mut ring], vec![]);
    assert_eq!(lines(&events).len(), 4);
    // What belongs to an earlier request is not shown.
    let expected = [(Some(0x1000), vec![&b"one"[..]]), (Some(0x1000), vec![]), (Some(0x1000), vec![]), (None, vec![])];
    assert_eq!(arguments(&events), expected);
}

/// Returns one line per request: tid, opcode, start, `user_data` and result.
fn lines(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| {
        let EventKind::Call(call) = &event.kind else { return None };
        let args = call.request.as_ref().unwrap();
        let exit = match call.exit {
            ExitState::Returned { ret, .. } => format!("= {ret}"),
            other => format!("{other:?}"),
        };
        let opcode = requests::opcode(call.nr).unwrap();
        Some(format!("{} {opcode}@{} {}/{:#x}/{:#x} {exit}", event.task.tid, call.id.start.0, args[0], args[1], args[2]))
    };
    events.iter().filter_map(one).collect()
}

#[test]
fn a_completion_belongs_to_the_task_that_submitted_the_request() {
    let armed = armed();
    let (a, worker) = (task(7, 7), task(7, 9));
    let mut ring = Ring::new(&armed.session, 0);
    armed.submit(&mut ring, (100, a), (0x10, 5, 18, 0));
    armed.submit(&mut ring, (110, a), (0x20, 6, 22, 1 << 4));
    armed.complete(&mut ring, (150, worker), 0x20, 6, (11, 0));
    armed.complete(&mut ring, (160, a), 0x10, 5, (-2, 0));
    let (events, engine) = run(&armed.session, vec![&mut ring], vec![]);
    assert_eq!(lines(&events), ["7 22@110 6/0x10/0x0 = 11", "7 18@100 5/0x0/0x0 = -2"]);
    assert_eq!((engine.ledger().calls, engine.ledger().without_entry), (2, 0));
}

#[test]
fn a_request_that_asked_for_no_completion_ends_when_its_address_is_used_again() {
    let armed = armed();
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    armed.submit(&mut ring, (100, a), (0x10, 1, 0, SILENT));
    armed.submit(&mut ring, (110, a), (0x10, 2, 0, SILENT));
    armed.complete(&mut ring, (120, a), 0x10, 2, (-9, 0));
    armed.submit(&mut ring, (130, a), (0x10, 3, 0, SILENT));
    armed.submit(&mut ring, (140, a), (0x20, 4, 0, 0));
    let (events, _) = run(&armed.session, vec![&mut ring], vec![]);
    let expected = ["7 0@100 1/0x40/0x0 Never", "7 0@110 2/0x40/0x0 = -9", "7 0@130 3/0x40/0x0 Never", "7 0@140 4/0x0/0x0 Pending"];
    assert_eq!(lines(&events), expected);
}

#[test]
fn the_chain_behind_a_failed_silent_request_has_no_completions() {
    let armed = armed();
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    for (head, flags) in [(0x10, SILENT), (0x30, 0)] {
        armed.submit(&mut ring, (100 + head, a), (head, head, 22, flags));
        armed.submit(&mut ring, (101 + head, a), (head + 1, head + 1, 0, 0));
        armed.complete(&mut ring, (102 + head, a), head, head, (-9, 0));
        armed.write(&mut ring, armed.canceled, (103 + head, a), &[("req", head), ("link", head + 1)]);
    }
    armed.complete(&mut ring, (300, a), 0x31, 0x31, (-125, 0));
    let (events, _) = run(&armed.session, vec![&mut ring], vec![]);
    let expected = ["7 22@116 16/0x40/0x0 = -9", "7 22@148 48/0x0/0x0 = -9", "7 0@149 49/0x0/0x0 = -125", "7 0@117 17/0x0/0x0 Never"];
    assert_eq!(lines(&events), expected);
}

#[test]
fn completions_without_a_request_are_assigned_only_if_one_request_has_their_number() {
    let armed = armed();
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    armed.submit(&mut ring, (100, a), (0x10, 5, 6, 0));
    armed.complete(&mut ring, (110, a), 0, 5, (1, MORE));
    armed.complete(&mut ring, (120, a), 0, 5, (1, 0));
    armed.submit(&mut ring, (130, a), (0x20, 5, 6, 0));
    armed.complete(&mut ring, (140, a), 0, 5, (1, MORE));
    armed.complete(&mut ring, (150, a), 0x10, 5, (-125, 0));
    armed.write(&mut ring, armed.overflow, (160, a), &[("user_data", 5), ("res", 7)]);
    let (events, engine) = run(&armed.session, vec![&mut ring], vec![]);
    let expected = [
        "7 6@100 5/0x0/0x2 = 1",
        "7 256@120 5/0x0/0x0 = 1",
        "7 256@140 5/0x0/0x2 = 1",
        "7 6@100 5/0x0/0x0 = -125",
        "7 6@130 5/0x0/0x0 = 7",
    ];
    assert_eq!(lines(&events), expected);
    let ledger = engine.ledger();
    assert_eq!((ledger.calls, ledger.without_entry), (5, 3), "two were submitted");
}

#[test]
fn a_request_of_a_task_that_has_ended_is_not_in_flight() {
    let armed = armed();
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    armed.submit(&mut ring, (100, a), (0x10, 1, 6, 0));
    armed.submit(&mut ring, (110, task(8, 8)), (0x20, 2, 6, 0));
    ring.end(200, a);
    let (events, _) = run(&armed.session, vec![&mut ring], vec![]);
    assert_eq!(lines(&events), ["7 6@100 1/0x0/0x0 Unseen", "8 6@110 2/0x0/0x0 Pending"]);
}

#[test]
fn a_request_that_takes_long_is_shown_in_flight_and_then_completed() {
    let armed = armed();
    let a = task(7, 7);
    let mut run = Run::with_pending(&armed.session, Some(100));
    let mut ring = Ring::new(&armed.session, 0);
    armed.submit(&mut ring, (60, a), (0x10, 1, 6, 0));
    armed.submit(&mut ring, (61, a), (0x20, 2, 0, SILENT));
    armed.submit(&mut ring, (62, a), (0x30, 3, 0, 0));
    armed.complete(&mut ring, (63, a), 0x30, 3, (0, 0));
    run.round(100, vec![ring.chunk()], vec![], &mut NoProc);
    run.round(150, vec![], vec![], &mut NoProc).round(200, vec![], vec![], &mut NoProc).round(300, vec![], vec![], &mut NoProc);
    let mut ring = Ring::new(&armed.session, 0);
    armed.complete(&mut ring, (450, a), 0x10, 1, (1, 0));
    run.round(500, vec![ring.chunk()], vec![], &mut NoProc);
    let (events, _) = run.end();
    let pending: Vec<_> = events.iter().filter(|event| matches!(event.kind, EventKind::Pending(_))).map(|event| event.time).collect();
    assert_eq!(pending, [Time(200)]);
    assert_eq!(lines(&events), ["7 0@62 3/0x0/0x0 = 0", "7 6@60 1/0x0/0x0 = 1", "7 0@61 2/0x40/0x0 Never"]);
    assert_eq!(calls(&events).iter().map(|call| call.shown_pending).collect::<Vec<_>>(), [false, true, false]);
}

/// The kernel's events are of all requests.
#[test]
fn requests_that_were_not_asked_for_are_no_calls() {
    let mut armed = armed();
    armed.session.other_requests = vec![requests::name(6), requests::name(requests::COMPLETION)];
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    armed.submit(&mut ring, (100, a), (0x10, 1, 6, 0));
    armed.complete(&mut ring, (110, a), 0, 1, (1, MORE));
    armed.submit(&mut ring, (120, a), (0x20, 2, 0, 0));
    armed.complete(&mut ring, (130, a), 0x10, 1, (-125, 0));
    armed.complete(&mut ring, (140, a), 0x20, 2, (0, 0));
    armed.complete(&mut ring, (150, a), 0x30, 3, (0, 0));
    armed.submit(&mut ring, (160, a), (0x10, 4, 6, 0));
    let (events, engine) = run(&armed.session, vec![&mut ring], vec![]);
    assert_eq!(lines(&events), ["7 0@120 2/0x0/0x0 = 0"]);
    let ledger = engine.ledger();
    assert_eq!((ledger.calls, ledger.without_entry, ledger.not_asked), (1, 0, 2));
}

/// Older kernels do not tell the address of the request that is submitted, and of the one that completes.
#[test]
fn requests_without_addresses_are_told_apart_by_the_programs_numbers() {
    let armed = armed();
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    for (at, user_data) in [(100, 5), (110, 6), (120, 7), (130, 7)] {
        armed.submit(&mut ring, (at, a), (0, user_data, 0, 0));
    }
    for (at, user_data) in [(140, 6), (150, 7), (160, 5)] {
        armed.write(&mut ring, armed.overflow, (at, a), &[("user_data", user_data), ("res", at)]);
    }
    let (events, _) = run(&armed.session, vec![&mut ring], vec![]);
    let expected = [
        "7 0@110 6/0x0/0x0 = 140",
        "7 256@150 7/0x0/0x0 = 150",
        "7 0@100 5/0x0/0x0 = 160",
        "7 0@120 7/0x0/0x0 Unseen",
        "7 0@130 7/0x0/0x0 Unseen",
    ];
    assert_eq!(lines(&events), expected);
}

#[test]
fn nothing_is_paired_over_a_gap() {
    let armed = armed();
    let a = task(7, 7);
    let mut ring = Ring::new(&armed.session, 0);
    armed.submit(&mut ring, (100, a), (0x10, 1, 0, 0));
    armed.submit(&mut ring, (101, a), (0x20, 2, 0, SILENT));
    armed.submit(&mut ring, (102, a), (0x30, 3, 6, 0));
    ring.writer.lost(4, a, Time(200));
    armed.complete(&mut ring, (210, a), 0x10, 1, (0, 0));
    armed.complete(&mut ring, (220, a), 0x40, 4, (0, 0));
    armed.complete(&mut ring, (230, a), 0, 3, (1, MORE));
    let (events, engine) = run(&armed.session, vec![&mut ring], vec![]);
    let expected = [
        "7 0@100 1/0x0/0x0 Unseen",
        "7 256@220 4/0x0/0x0 = 0",
        "7 256@230 3/0x0/0x2 = 1",
        "7 0@101 2/0x40/0x0 Unseen",
        "7 6@102 3/0x0/0x0 Unseen",
    ];
    assert_eq!(lines(&events), expected);
    let ledger = engine.ledger();
    assert_eq!((ledger.untrusted_exits, ledger.lost_entries, ledger.without_exit), (1, 2, 3));
}
