//! Test fixture: a session, rings to write records into, and the resulting events.

use crate::engine::Engine;
use crate::event::{Call, EntryState, Event, EventIndex, EventKind, ExitState, Synthesized, TaskId, Time};
use crate::kernel::format::{FieldPlace, Format, FormatField};
use crate::session::{EventSpec, Role, Scope, Session};
use crate::source::record_writer::RecordWriter;
use crate::source::record_writer::raw_record;
use crate::source::{Chunk, Input, Round};
use crate::sys::perf::{SAMPLE_BPF, SAMPLE_SIDE_BAND};
use crate::task::ProcReader;
use perf_event_open_sys::bindings as perf;

pub const ENTER: EventIndex = EventIndex(0);
pub const EXIT: EventIndex = EventIndex(1);
pub const EXEC: EventIndex = EventIndex(2);
pub const NEW_TASK: EventIndex = EventIndex(3);
pub const DELIVER: EventIndex = EventIndex(4);
/// `syscalls:sys_enter_openat` in the format of kernels from 6.19, and its exit.
pub const ENTER_OPENAT: EventIndex = EventIndex(6);
pub const EXIT_OPENAT: EventIndex = EventIndex(7);
pub const FAULT: EventIndex = EventIndex(8);
/// A return probe that reads path names, and perf's probe.
pub const GETNAME: EventIndex = EventIndex(9);
pub const VFS_GETNAME: EventIndex = EventIndex(10);

pub const READ: u64 = 0;
pub const CLOSE: u64 = 3;
pub const DUP2: u64 = 33;
pub const CLONE: u64 = 56;
pub const EXECVE: u64 = 59;
pub const EXIT_CALL: u64 = 60;
pub const EXIT_GROUP: u64 = 231;
pub const RENAME: u64 = 82;
pub const OPENAT: u64 = 257;

pub fn task(pid: i32, tid: i32) -> TaskId {
    TaskId { pid, tid }
}

pub fn format(id: u64, fields: &[(&str, &str, u32, u32, FieldPlace)], print: &str) -> Format {
    let common = [("common_type", "unsigned short", 0, 2, FieldPlace::Here), ("common_pid", "int", 4, 4, FieldPlace::Here)];
    let one = |&(name, type_name, offset, size, place): &(&str, &str, u32, u32, FieldPlace)| FormatField {
        name: name.into(),
        type_name: type_name.into(),
        offset,
        size,
        signed: true,
        array: None,
        place,
    };
    Format { name: "test".into(), id, fields: common.iter().chain(fields).map(one).collect(), print: print.into() }
}

/// The event of the calls of [`paired_session`].
pub const PAIRED: EventIndex = EventIndex(1);

/// A session of the BPF programs. Each event has the id 10 + index.
pub fn paired_session() -> Session {
    let mut session = Session { scope: Scope::Command, ..Session::default() };
    for (role, sample_type) in [(Role::SideBand, SAMPLE_SIDE_BAND), (Role::BpfCall, SAMPLE_BPF)] {
        let index = EventIndex(session.events.events.len() as u16);
        session.events.ids.insert(10 + u64::from(index.0), index);
        let shown = role == Role::BpfCall;
        session.events.events.push(EventSpec { name: "test".into(), role, sample_type, format: None, shown, terms: Default::default() });
    }
    session
}

/// A session with the events above. Each has the id 10 + index, and 50 + index for a second perf event.
pub fn session() -> Session {
    use FieldPlace::{DataLoc, Here};
    let args = ["dfd", "filename", "flags", "mode"];
    let mut openat = vec![("__syscall_nr", "int", 8, 4, Here)];
    openat.extend(args.iter().enumerate().map(|(i, name)| (*name, "long", 16 + 8 * i as u32, 8, Here)));
    openat.push(("__filename_val", "__data_loc char[]", 48, 4, DataLoc));
    let events = [
        ("raw_syscalls:sys_enter", Role::RawEnter, format(1, &[("id", "long", 8, 8, Here), ("args", "unsigned long", 16, 48, Here)], "")),
        ("raw_syscalls:sys_exit", Role::RawExit, format(2, &[("id", "long", 8, 8, Here), ("ret", "long", 16, 8, Here)], "")),
        (
            "sched:sched_process_exec",
            Role::ProcessExec,
            format(
                3,
                &[("filename", "__data_loc char[]", 8, 4, DataLoc), ("pid", "pid_t", 12, 4, Here), ("old_pid", "pid_t", 16, 4, Here)],
                "",
            ),
        ),
        (
            "task:task_newtask",
            Role::NewTask,
            format(4, &[("pid", "pid_t", 8, 4, Here), ("comm", "char", 12, 16, Here), ("clone_flags", "u64", 32, 8, Here)], ""),
        ),
        (
            "signal:signal_deliver",
            Role::SignalDeliver,
            format(
                5,
                &[
                    ("sig", "int", 8, 4, Here),
                    ("errno", "int", 12, 4, Here),
                    ("code", "int", 16, 4, Here),
                    ("sa_handler", "long", 24, 8, Here),
                ],
                "",
            ),
        ),
        ("dummy:HG", Role::SideBand, Format::default()),
        ("syscalls:sys_enter_openat", Role::Enter, format(6, &openat, "\"%s\", __get_str(__filename_val)")),
        ("syscalls:sys_exit_openat", Role::Exit, format(7, &[("__syscall_nr", "int", 8, 4, Here), ("ret", "long", 16, 8, Here)], "")),
        ("minor-faults", Role::FaultMinor, Format::default()),
        (
            "rtrace_1_2:getname",
            Role::PathName,
            format(
                8,
                &[("name", "__data_loc char[]", 24, 4, DataLoc), ("address", "u64", 28, 8, Here), ("result", "u64", 36, 8, Here)],
                "",
            ),
        ),
        ("probe:vfs_getname", Role::PathName, format(9, &[("pathname", "__data_loc char[]", 16, 4, DataLoc)], "")),
    ];
    let mut session =
        Session { release: "6.18".into(), scope: Scope::System, fds_complete: true, signals: true, copied_bytes: 63, ..Session::default() };
    for (i, (name, role, format)) in events.into_iter().enumerate() {
        let extra = if role == Role::FaultMinor { perf::PERF_SAMPLE_IP | perf::PERF_SAMPLE_ADDR } else { perf::PERF_SAMPLE_RAW };
        let every = perf::PERF_SAMPLE_IDENTIFIER | perf::PERF_SAMPLE_TID | perf::PERF_SAMPLE_TIME | perf::PERF_SAMPLE_CPU;
        session.events.events.push(EventSpec {
            name: name.into(),
            role,
            sample_type: u64::from(every | extra),
            format: Some(format),
            shown: role.records_calls(),
            terms: Default::default(),
        });
        session.events.ids.insert(10 + i as u64, EventIndex(i as u16));
        session.events.ids.insert(50 + i as u64, EventIndex(i as u16));
    }
    session
}

pub fn enter_raw(nr: u64, args: [u64; 6]) -> Vec<u8> {
    let mut raw = vec![0; 8];
    raw.extend(nr.to_le_bytes());
    raw.extend(args.iter().flat_map(|arg| arg.to_le_bytes()));
    raw
}

pub fn exit_raw(nr: u64, ret: i64) -> Vec<u8> {
    let mut raw = vec![0; 8];
    raw.extend(nr.to_le_bytes());
    raw.extend(ret.to_le_bytes());
    raw
}

fn data_loc(offset: u32, text: &[u8]) -> [u8; 4] {
    ((text.len() as u32 + 1) << 16 | offset).to_le_bytes()
}

pub fn exec_raw(pid: i32, old_pid: i32, path: &[u8]) -> Vec<u8> {
    let mut raw = vec![0; 8];
    raw.extend(((path.len() as u32 + 1) << 16 | 20).to_le_bytes());
    raw.extend(pid.to_le_bytes());
    raw.extend(old_pid.to_le_bytes());
    raw.extend(path);
    raw.push(0);
    raw
}

/// A ring, with a short method for each kind of record.
pub struct Ring<'a> {
    session: &'a Session,
    pub writer: RecordWriter<'a>,
}

impl<'a> Ring<'a> {
    pub fn new(session: &'a Session, cpu: u32) -> Ring<'a> {
        Ring { session, writer: RecordWriter::new(&session.events, cpu) }
    }

    pub fn enter(&mut self, time: u64, task: TaskId, nr: u64, args: &[u64]) -> &mut Self {
        let mut six = [0; 6];
        six[..args.len()].copy_from_slice(args);
        self.writer.sample(ENTER, task, Time(time), &enter_raw(nr, six));
        self
    }

    pub fn exit(&mut self, time: u64, task: TaskId, nr: u64, ret: i64) -> &mut Self {
        self.writer.sample(EXIT, task, Time(time), &exit_raw(nr, ret));
        self
    }

    /// Writes the entry and the exit of a call.
    pub fn call(&mut self, time: u64, task: TaskId, nr: u64, args: &[u64], ret: i64) -> &mut Self {
        self.enter(time, task, nr, args).exit(time + 10, task, nr, ret)
    }

    pub fn exec(&mut self, time: u64, task: TaskId, old_tid: i32, path: &[u8]) -> &mut Self {
        self.writer.sample(EXEC, task, Time(time), &exec_raw(task.pid, old_tid, path));
        self
    }

    pub fn new_task(&mut self, time: u64, parent: TaskId, tid: i32, flags: u64) -> &mut Self {
        let raw = raw_record(self.session.events.events[3].format.as_ref().unwrap(), &[("pid", tid as u64), ("clone_flags", flags)]);
        self.writer.sample(NEW_TASK, parent, Time(time), &raw);
        self
    }

    pub fn deliver(&mut self, time: u64, task: TaskId, signal: i32, handler: u64) -> &mut Self {
        let raw = raw_record(self.session.events.events[4].format.as_ref().unwrap(), &[("sig", signal as u64), ("sa_handler", handler)]);
        self.writer.sample(DELIVER, task, Time(time), &raw);
        self
    }

    /// Writes the return probe's record: a name, or an error.
    pub fn getname(&mut self, time: u64, task: TaskId, address: u64, name: Result<&[u8], i64>) -> &mut Self {
        let (text, result) = match name {
            Ok(name) => (name, 0xffff_8880_0000_0000),
            Err(errno) => (&b"(fault)"[..], errno as u64),
        };
        let head = [&[0; 24][..], &data_loc(44, text), &address.to_le_bytes(), &result.to_le_bytes()].concat();
        self.writer.sample(GETNAME, task, Time(time), &[&head, text, b"\0"].concat());
        self
    }

    /// Writes a record of perf's probe.
    pub fn vfs_getname(&mut self, time: u64, task: TaskId, name: &[u8]) -> &mut Self {
        self.writer.sample(VFS_GETNAME, task, Time(time), &[&[0; 16], &data_loc(20, name)[..], name, b"\0"].concat());
        self
    }

    pub fn fork(&mut self, time: u64, child: TaskId, parent: TaskId) -> &mut Self {
        self.writer.fork(child, parent, Time(time));
        self
    }

    pub fn end(&mut self, time: u64, task: TaskId) -> &mut Self {
        self.writer.exit(task, task, Time(time));
        self
    }

    pub fn comm(&mut self, time: u64, task: TaskId, comm: &[u8], exec: bool) -> &mut Self {
        self.writer.comm(task, Time(time), comm, exec);
        self
    }

    pub fn lost(&mut self, time: u64, records: u64) -> &mut Self {
        self.writer.lost(records, task(0, 0), Time(time));
        self
    }

    pub fn chunk(&mut self) -> Chunk {
        self.writer.chunk()
    }
}

/// A [`ProcReader`] that reads nothing.
pub struct NoProc;

impl ProcReader for NoProc {
    fn fd(&mut self, _: i32, _: i32) -> Option<(Time, Synthesized)> {
        None
    }

    fn task(&mut self, _: i32) -> Option<(Time, Synthesized)> {
        None
    }
}

/// An engine, its input, and all events that it has emitted.
pub struct Run<'a> {
    pub session: &'a Session,
    pub engine: Engine,
    pub events: Vec<Event>,
    pub inputs: Vec<Input>,
    pending_after: Option<u64>,
}

impl<'a> Run<'a> {
    pub fn new(session: &'a Session) -> Run<'a> {
        Run::with_pending(session, None)
    }

    /// As [`Run::new`], and calls that are in flight for longer than this are reported as pending.
    pub fn with_pending(session: &'a Session, pending_after: Option<u64>) -> Run<'a> {
        let engine = Engine::with_rows(session, pending_after, super::descriptors::ROWS);
        Run { session, engine, events: Vec::new(), inputs: Vec::new(), pending_after }
    }

    pub fn round(
        &mut self,
        started: u64,
        chunks: Vec<Chunk>,
        synthesized: Vec<(Time, Synthesized)>,
        proc: &mut dyn ProcReader,
    ) -> &mut Self {
        self.pass(Input::Round(Round { started: Time(started), chunks, synthesized }));
        let reads = self.engine.take_reads();
        self.pass(Input::Answers(proc.answer(&reads)));
        self
    }

    fn pass(&mut self, input: Input) {
        self.inputs.push(input.clone());
        self.engine.input(self.session, input, &mut self.events);
    }

    /// Ends the stream, and returns the events. Checks that another engine makes the same events of the same input,
    /// without reading /proc.
    pub fn end(mut self) -> (Vec<Event>, Engine) {
        self.engine.end(self.session, &mut self.events);
        assert!(self.events.is_sorted_by_key(|event| event.time), "events leave in order");
        let replayed = replay(self.session, self.pending_after, self.inputs);
        assert_eq!(debug_lines(&replayed), debug_lines(&self.events), "the input alone gives the same events");
        (self.events, self.engine)
    }
}

/// Returns the events that an engine makes of this input.
pub fn replay(session: &Session, pending_after: Option<u64>, inputs: Vec<Input>) -> Vec<Event> {
    let mut engine = Engine::with_rows(session, pending_after, super::descriptors::ROWS);
    let mut events = Vec::new();
    inputs.into_iter().for_each(|input| engine.input(session, input, &mut events));
    engine.end(session, &mut events);
    events
}

/// Returns everything that the events have, as one line per event.
pub fn debug_lines(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| format!("{event:?}")).collect()
}

/// Runs one round with these rings and synthesized records, and ends the stream.
pub fn run(session: &Session, rings: Vec<&mut Ring>, synthesized: Vec<(Time, Synthesized)>) -> (Vec<Event>, Engine) {
    let mut run = Run::new(session);
    run.round(1, rings.into_iter().map(Ring::chunk).collect(), synthesized, &mut NoProc);
    run.end()
}

pub fn calls(events: &[Event]) -> Vec<&Call> {
    events.iter().filter_map(|event| if let EventKind::Call(call) = &event.kind { Some(&**call) } else { None }).collect()
}

/// Returns one line per call: tid, number, start, entry and exit.
pub fn call_lines(events: &[Event]) -> Vec<String> {
    let one = |event: &Event| match &event.kind {
        EventKind::Call(call) | EventKind::Pending(call) => {
            let kind = if matches!(event.kind, EventKind::Call(_)) { "" } else { "pending: " };
            let entry = match call.entry {
                EntryState::Seen => "",
                EntryState::Unseen => " unseen",
                EntryState::Lost => " lost",
            };
            let exit = match call.exit {
                ExitState::Returned { ret, .. } => format!("= {ret} ({})", call.duration().map_or("?".into(), |d| d.to_string())),
                other => format!("{other:?}"),
            };
            Some(format!("{kind}{} {}@{}{entry} {exit}", event.task.tid, call.nr, call.id.start.0))
        }
        _ => None,
    };
    events.iter().filter_map(one).collect()
}
