//! Tracepoints at the entry and exit of calls that the user asked for as events.

use super::fixture::{NoProc, OPENAT, Run, enter_raw, exit_raw, format, task};
use crate::bpf::record::tests::{piece_bytes, returned, written};
use crate::bpf::record::{CallRecord, RecordKind};
use crate::engine::Engine;
use crate::event::{Abi, Event, EventIndex, EventKind, Synthesized, TaskId, Time};
use crate::kernel::format::FieldPlace::Here;
use crate::session::{CallSet, EventCalls, EventSpec, Role, Scope, Session};
use crate::source::record_writer::RecordWriter;
use crate::sys::perf;
use crate::syscall::ledger::CallsAccount;

const CALLS: EventIndex = EventIndex(1);
const ENTERED: EventIndex = EventIndex(2);
const EXITED: EventIndex = EventIndex(3);
const NAME: u64 = 0x5000;

/// A session of the BPF programs with both events of all calls. `calls` are shown themselves.
fn session(calls: bool) -> Session {
    let mut session = Session { scope: Scope::System, ..Session::default() };
    let entry = format(1, &[("id", "long", 8, 8, Here), ("args", "unsigned long", 16, 48, Here)], "");
    let exit = format(2, &[("id", "long", 8, 8, Here), ("ret", "long", 16, 8, Here)], "");
    let events = [
        ("side band", Role::SideBand, perf::SAMPLE_SIDE_BAND, None),
        ("BPF calls", Role::BpfCall, perf::SAMPLE_BPF, None),
        ("raw_syscalls:sys_enter", Role::Tracepoint, perf::SAMPLE_TRACEPOINT, Some(entry)),
        ("raw_syscalls:sys_exit", Role::Tracepoint, perf::SAMPLE_TRACEPOINT, Some(exit)),
    ];
    for (name, role, sample_type, format) in events {
        let index = EventIndex(session.events.events.len() as u16);
        session.events.ids.insert(10 + u64::from(index.0), index);
        let shown = role != Role::SideBand;
        session.events.events.push(EventSpec { name: name.into(), role, sample_type, format, shown, terms: Default::default() });
    }
    let names = crate::beauty::tables::SYSCALLS.iter().map(|row| row.name.to_owned()).collect();
    let all = CallSet { names, others: Vec::new(), nameless: true };
    session.event_calls = EventCalls { shown: if calls { all.clone() } else { CallSet::default() }, recorded: all };
    session
}

/// What happens in the kernel, at a time.
#[derive(Clone, Copy)]
enum Step {
    /// The record of the tracepoint at the entry.
    Enter(u64),
    /// The record of the BPF programs at the entry. `read`: they could read the name.
    Entry { at: u64, read: bool },
    /// The record of the tracepoint at the exit.
    Exit(u64),
    /// The record of the BPF programs at the exit.
    Call { entered: u64, at: u64 },
    /// Records were lost.
    Lost(u64),
}

/// Returns the events of openat calls of one thread.
fn run(session: &Session, steps: &[Step]) -> (Vec<Event>, Engine) {
    let of = task(7, 7);
    let mut ring = RecordWriter::new(&session.events, 0);
    steps.iter().for_each(|step| write(&mut ring, of, *step));
    let issued = steps.iter().filter(|step| matches!(step, Step::Call { .. })).count() as u64;
    let mut run = Run::new(session);
    let counted = (Time(10_000), Synthesized::Count { event: CALLS, issued, lost: 0, from_afar: 0 });
    run.round(1, vec![ring.chunk()], vec![counted], &mut NoProc);
    run.end()
}

fn write(ring: &mut RecordWriter, of: TaskId, step: Step) {
    const FD: i64 = 3;
    let args = [0xffff_ff9c, NAME, 0, 0, 0, 0];
    let call = |kind, entered, at| CallRecord { kind, args, ret: FD, abi: Abi::X86_64, ..returned(7, OPENAT as i32, entered, at) };
    let name = |when| piece_bytes(NAME, 0, b"/etc", [1, when, 0]);
    match step {
        Step::Enter(at) => _ = ring.sample(ENTERED, of, Time(at), &enter_raw(OPENAT, args)),
        Step::Entry { at, read } => {
            let entry = CallRecord { ret: i64::from(!read), ..call(RecordKind::Entry, at, at) };
            _ = ring.sample(CALLS, of, Time(at), &written(&entry, if read { name(0) } else { Vec::new() }.as_slice()));
        }
        Step::Exit(at) => _ = ring.sample(EXITED, of, Time(at), &exit_raw(OPENAT, FD)),
        Step::Call { entered, at } => {
            _ = ring.sample(CALLS, of, Time(at), &written(&call(RecordKind::Returned, entered, at), &name(2)));
        }
        Step::Lost(at) => _ = ring.lost(1, task(0, 0), Time(at)),
    }
}

/// Returns a line for each event: its time, what it is, and whether the name of the file is known.
fn lines(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| match &event.kind {
        EventKind::Tracepoint { event: index, call, .. } => {
            let end = if *index == ENTERED { "enter" } else { "exit" };
            let name = call.as_ref().and_then(|call| call.piece(1).map(|piece| String::from_utf8_lossy(call.bytes(piece)).into_owned()));
            Some(format!("{end} {}", name.unwrap_or_else(|| "?".to_owned())))
        }
        EventKind::Call(_) => Some("call".to_owned()),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

#[test]
fn an_event_has_the_memory_of_its_call_whichever_record_is_first() {
    let session = session(false);
    for steps in [
        [Step::Enter(10), Step::Entry { at: 11, read: true }, Step::Exit(20), Step::Call { entered: 11, at: 21 }],
        [Step::Entry { at: 10, read: true }, Step::Enter(11), Step::Call { entered: 10, at: 20 }, Step::Exit(21)],
    ] {
        let (events, engine) = run(&session, &steps);
        assert_eq!(lines(&events), ["enter /etc", "exit /etc"]);
        assert_eq!(engine.ledger().calls_account(), Some(CallsAccount::default()), "the call itself was not asked for");
        assert_eq!(engine.ledger().disagreements().count(), 0);
    }
}

#[test]
fn a_call_that_is_shown_itself_completes_events_and_has_its_line() {
    let session = session(true);
    let steps = [Step::Enter(10), Step::Entry { at: 11, read: true }, Step::Call { entered: 11, at: 20 }, Step::Exit(21)];
    let (events, engine) = run(&session, &steps);
    assert_eq!(lines(&events), ["enter /etc", "call", "exit /etc"]);
    assert_eq!(engine.ledger().calls_account(), Some(CallsAccount { issued: 1, printed: 1, lost: 0 }));
}

/// The memory was not present at the entry, and the programs read it when the call returned.
#[test]
fn an_entry_whose_memory_could_not_be_read_waits_for_the_return() {
    let session = session(false);
    let entry = [Step::Enter(10), Step::Entry { at: 11, read: false }];
    let (events, _) = run(&session, &[&entry[..], &[Step::Call { entered: 11, at: 20 }, Step::Exit(21)]].concat());
    assert_eq!(lines(&events), ["enter /etc", "exit /etc"]);
    let (events, _) = run(&session, &entry);
    assert_eq!(lines(&events), ["enter ?"], "the call did not return");
}

#[test]
fn an_event_does_not_get_the_memory_of_another_call() {
    let session = session(false);
    let one = [Step::Entry { at: 10, read: true }, Step::Enter(11), Step::Call { entered: 10, at: 20 }, Step::Exit(21)];
    let lost_records = [Step::Lost(25), Step::Enter(30), Step::Exit(40), Step::Enter(50), Step::Entry { at: 51, read: true }];
    let (events, _) = run(&session, &[&one[..], &lost_records].concat());
    assert_eq!(lines(&events), ["enter /etc", "exit /etc", "enter ?", "exit ?", "enter /etc"]);
    // The record of the first entry was lost, and the gap shows it only afterwards.
    let (events, _) = run(&session, &[Step::Enter(10), Step::Lost(15), Step::Entry { at: 30, read: true }, Step::Enter(31)]);
    assert_eq!(lines(&events), ["enter ?", "enter /etc"]);
}
