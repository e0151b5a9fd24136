//! Tests that JSON objects have every fact that the lines of perf style show: `tests/json/perf_lines.py`, which knows
//! only the schema, writes the same lines from the objects of many calls and events.
//!
//! There are calls of all rows in all ABIs. Their registers and memory come from a fixed pseudo-random sequence.

use super::Json;
use crate::beauty::perf::Perf;
use crate::beauty::samples;
use crate::beauty::style::{Style, StyleContext};
use crate::beauty::tables::SYSCALLS;
use crate::event::frame::Frame;
use crate::event::{
    Abi, Call, Caller, Comm, EntryState, Event, EventIndex, EventKind, ExitState, Fault, Loss, MapRef, Stack, TaskEnd, TaskId, Time,
    Verdict,
};
use crate::kernel::format::Format;
use crate::session::{EventSpec, EventTable, Role, Scope, Session, Terms};
use crate::show::Show;
use crate::stack::name::{NamedFrame, Names};
use crate::stack::symbols::BuildId;
use corpus::{HOSTILE, Random, call, calls_of, event, signal, stack};
use std::fs;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::sync::Arc;

mod corpus;
#[path = "../../../tests/live/schema.rs"]
mod schema;

const SCHEMA: &str = include_str!("../../../schema/rtrace-1.json");

/// Names for frames and addresses that depend on nothing but the address.
struct AnyNames;

impl Names for AnyNames {
    fn frames(&self, _: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame)) {
        for (at, frame) in stack.frames.iter().enumerate() {
            let (bits, text) = (frame.avma as usize, HOSTILE[frame.avma as usize % HOSTILE.len()]);
            each(NamedFrame {
                function: (bits & 1 == 0).then_some(text),
                file: (bits & 2 == 0).then_some(&b"/usr/lib/libc.so\n.6"[..]),
                address: frame.svma,
                memory_address: frame.avma,
                build_id: if bits & 16 == 0 { BuildId::new(&[0xab, 0x01]) } else { None },
                file_offset: (bits & 2 == 0).then_some(frame.svma),
                function_offset: (bits & 1 == 0).then_some(frame.avma >> 8),
                is_inlined: bits & 8 == 0,
                line: (bits & 4 == 0).then_some((text, 7)),
                kernel: at < stack.kernel,
            });
        }
    }

    fn function(&self, _: i32, frame: &Frame) -> Option<(Box<[u8]>, u64)> {
        self.kernel(frame.avma)
    }

    fn kernel(&self, address: u64) -> Option<(Box<[u8]>, u64)> {
        (address & 1 == 0).then(|| (HOSTILE[address as usize % HOSTILE.len()].into(), address & 0x1e))
    }
}

/// Events, and the facts that a style needs to show them.
struct Stream {
    session: Session,
    events: Vec<Event>,
    verdict: Verdict,
}

impl Stream {
    fn new(scope: Scope, events: Vec<Event>) -> Stream {
        let session = Session { scope, started: Time(700_000_000), realtime_offset: 1_763_694_000_000_000_000, ..Session::default() };
        Stream { session, events, verdict: Verdict::default() }
    }

    /// Compares the lines of perf style with those that the script writes from the objects. The objects match the
    /// schema.
    fn compare(&self) {
        let Stream { session, events, verdict } = self;
        let schema = schema::Schema::new(SCHEMA);
        let comm = |tid: i32| (7..16).contains(&tid).then(|| Comm::from(HOSTILE[tid as usize - 7]));
        let context = StyleContext { session, comm: &comm, cgroup: &comm, names: &AnyNames };
        let (mut perf, mut json) = (Perf::new(&Show { full: true, ..samples::show() }, session, false), Json::new(32, session));
        let (mut lines, mut objects) = (Vec::new(), json.header().to_vec());
        // The positions at which the lines and the object of each event begin.
        let mut places = Vec::new();
        for event in events {
            places.push((lines.len(), objects.len()));
            perf.event(&mut lines, event, &context);
            json.event(&mut objects, event, &context);
        }
        places.push((lines.len(), objects.len()));
        perf.end(&mut lines, verdict, session);
        json.end(&mut objects, verdict, session);
        for (at, object) in objects.split(|byte| *byte == b'\n').enumerate().filter(|(_, object)| !object.is_empty()) {
            let object: serde_json::Value =
                serde_json::from_slice(object).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(object)));
            // Checking all calls would take long.
            if at % 10 == 0 || events.len() < 2000 {
                schema.check(&object).unwrap_or_else(|why| panic!("{why}\n{object}"));
            }
        }
        let Some(written) = lines_of(&objects) else { return };
        let same = lines.iter().zip(&written).take_while(|(a, b)| a == b).count();
        if same < lines.len().max(written.len()) {
            let at = places.iter().rposition(|(line, _)| *line <= same).unwrap_or_default();
            let (line, object) = places[at];
            let text = |bytes: &[u8], from: usize| {
                String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).split_inclusive('\n').take(2).collect::<String>()
            };
            panic!("line {at}:\n{}of the object:\n{}{}", text(&lines, line), text(&written, line), text(&objects, object));
        }
    }
}

/// Returns the lines that the script writes from objects; `None` without Python.
fn lines_of(objects: &[u8]) -> Option<Vec<u8>> {
    let root = env!("CARGO_MANIFEST_DIR");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("objects");
    fs::write(&file, objects).unwrap();
    let words = [format!("{root}/tests/json/perf_lines.py"), format!("{root}/schema/rtrace-1.json")];
    let output = Command::new("python3").args(words).stdin(fs::File::open(&file).unwrap()).stderr(Stdio::piped()).output();
    match output {
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("RTRACE_REQUIRE_LIVE").is_none() => {
            eprintln!("unsupported here: the round trip from JSON to lines: python3 is not installed");
            None
        }
        Err(error) => panic!("python3 is needed: {error}"),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(output.stdout)
        }
    }
}

#[test]
fn lines_of_every_syscall_can_be_written_from_objects() {
    for abi in Abi::ALL {
        let random = &mut Random(0x9e37_79b9_7f4a_7c15 + abi as u64);
        let mut events = Vec::new();
        for row in SYSCALLS {
            row.numbers[abi as usize].into_iter().for_each(|number| calls_of(random, row, abi, number, &mut events));
        }
        for nr in [9999, -1, 1000] {
            let registers = std::array::from_fn(|_| random.word());
            let call = call(random, events.len(), (abi, nr), registers);
            events.push(event(random, nr.unsigned_abs() as usize, EventKind::Call(Box::new(call))));
        }
        let mut stream = Stream::new(Scope::Tasks, events);
        let names = [("read", "mine\n\u{202e}"), ("openat", "\"")];
        stream.session.names = names.map(|(row, name)| (row.to_owned(), name.to_owned())).into_iter().collect();
        stream.compare();
    }
}

/// The first line of a command's trace decides which time the stamps count from.
#[test]
fn stamps_of_a_command_can_be_written_from_objects() {
    let random = &mut Random(5);
    let executed = Call {
        nr: 59,
        exit: ExitState::Returned { at: Time(1_000_019_000), ret: 0 },
        ..samples::call([0x1000, 0x2000, 0x3000, 0, 0, 0], 0)
    };
    let unseen = Call { entry: EntryState::Unseen, args: None, ..executed.clone() };
    let other = Call { nr: 39, ..executed.clone() };
    for first in [executed, unseen, other] {
        for scope in [Scope::Command, Scope::Tasks, Scope::System] {
            let exit = EventKind::Exit(TaskEnd::Exited(0));
            let events = [EventKind::Call(Box::new(first.clone())), exit.clone(), exit].into_iter().enumerate();
            let mut stream = Stream::new(scope, events.map(|(at, kind)| event(random, at, kind)).collect());
            stream.compare();
            stream.events.rotate_left(1);
            (stream.verdict.unplaced, stream.verdict.gaps_without_size) = (1, scope == Scope::Tasks);
            stream.compare();
        }
    }
    let nothing = Verdict { unplaced: 1 << 60, ..Verdict::default() };
    Stream { verdict: nothing, ..Stream::new(Scope::Command, Vec::new()) }.compare();
}

#[test]
fn lines_of_other_events_can_be_written_from_objects() {
    let random = &mut Random(11);
    let mut kinds = vec![
        EventKind::Exit(TaskEnd::Unknown),
        EventKind::Exit(TaskEnd::NotTraced),
        EventKind::Exit(TaskEnd::Exited(255)),
        EventKind::Fork { child: TaskId::default(), flags: None },
        EventKind::Exec { path: b"/bin/x"[..].into(), old_tid: 3 },
    ];
    for core_dumped in [None, Some(false), Some(true)] {
        kinds.extend([0, 9, 11, 34, 77].map(|signal| EventKind::Exit(TaskEnd::Killed { signal, core_dumped })));
    }
    for records in [None, Some(0), Some(1), Some(12), Some(1 << 60)] {
        kinds.extend([None, Some(Time(3)), Some(Time(900_000_000))].map(|after| EventKind::Lost(Loss { records, after })));
    }
    for _ in 0..100 {
        let place = |random: &mut Random| {
            let (path, offset, executable) = (random.name(), random.word(), random.is(50));
            random.some(MapRef { path, offset, executable })
        };
        let (ip_at, address_at, traced) = (place(random), place(random), stack(random));
        let (major, ip, address) = (random.is(50), random.word(), random.next());
        kinds.push(EventKind::Fault(Box::new(Fault { major, ip, address, ip_at, address_at, stack: random.some(traced) })));
    }
    for number in 0..70 {
        for code in [-60, -9, -1, 0, 1, 2, 3, 6, 77, 0x80] {
            kinds.push(EventKind::Signal(Box::new(signal(random, number, code))));
        }
    }
    let events = kinds.into_iter().enumerate().map(|(at, kind)| event(random, at, kind)).collect();
    Stream::new(Scope::System, events).compare();
}

/// The format of an event with every kind of field that events other than syscalls have.
const FIELDS: &str = "name: fields\nID: 9\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:char text[8];\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:dev_t dev;\toffset:20;\tsize:4;\tsigned:0;\n\
    \tfield:u8 ip4[4];\toffset:24;\tsize:4;\tsigned:0;\n\
    \tfield:u8 mac[6];\toffset:28;\tsize:6;\tsigned:0;\n\
    \tfield:umode_t mode;\toffset:34;\tsize:2;\tsigned:0;\n\
    \tfield:void * at;\toffset:40;\tsize:8;\tsigned:0;\n\
    \tfield:u8 uuid[16];\toffset:48;\tsize:16;\tsigned:0;\n\
    \tfield:u8 ip6[16];\toffset:48;\tsize:16;\tsigned:0;\n\
    \tfield:u8 peer[28];\toffset:48;\tsize:28;\tsigned:0;\n\
    \tfield:u32 mask;\toffset:64;\tsize:4;\tsigned:0;\n\
    \tfield:int sig;\toffset:68;\tsize:4;\tsigned:1;\n\
    \tfield:u32 flags;\toffset:72;\tsize:4;\tsigned:0;\n\
    \tfield:u32 kind;\toffset:76;\tsize:4;\tsigned:0;\n\
    \tfield:u8 many[100];\toffset:8;\tsize:100;\tsigned:0;\n\
    \tfield:unsigned long list[4];\toffset:48;\tsize:32;\tsigned:0;\n\
    \tfield:unsigned long ip;\toffset:80;\tsize:8;\tsigned:0;\n\
    \tfield:s64 wide;\toffset:88;\tsize:8;\tsigned:1;\n\n\
    print fmt: \"%pI4 %pM %pU %pI6 %pISpc %x %s %s%s %pS\", REC->ip4, REC->mac, REC->uuid, REC->ip6, REC->peer, REC->mask, \
    __print_flags(REC->flags, \", \", { 1, \"A<B\" }, { 2, \"TWO\" }, { 12, \"TWELVE\" }), \
    __print_symbolic(REC->kind & 0xff, { 0, \"ZERO\" }, { 10, \"TEN\" }), REC->kind & 0x100 ? \"+\" : \"\", (void *)REC->ip\n";

/// The format of a return probe, with fields of every type that a probe fetches.
const PROBE: &str = "name: handle\nID: 2326\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:unsigned long __probe_func;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned long __probe_ret_ip;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc char[] s;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:s32 n;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:u64 a;\toffset:32;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc char[][2] sa;\toffset:40;\tsize:8;\tsigned:1;\n\
    \tfield:u8 c;\toffset:48;\tsize:1;\tsigned:0;\n\
    \tfield:u32 x[];\toffset:52;\tsize:8;\tsigned:0;\n\
    \tfield:u64 at;\toffset:60;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"(%lx <- %lx) s=\\\"%s\\\" n=%d a=0x%Lx sa={\\\"%s\\\",\\\"%s\\\"} c='%c' x={0x%x,0x%x} at=%pS\", REC->__probe_func, \
    REC->__probe_ret_ip, __get_str(s), REC->n, REC->a, __get_str(sa[0]), __get_str(sa[1]), REC->c, REC->x[0], REC->x[1], (void *)REC->at\n";

#[test]
fn lines_of_tracepoints_and_probes_can_be_written_from_objects() {
    let spec = |format: Option<&str>, terms: Terms| EventSpec {
        name: "group:name\n".into(),
        role: Role::Tracepoint,
        sample_type: 0,
        format: format.map(|format| Format::parse(format).unwrap()),
        shown: true,
        terms,
    };
    let called = Terms { name: Some("mine\u{202e}".into()), function: Some("openat\n".into()), ..Terms::default() };
    let specs: Vec<EventSpec> = [
        FIELDS,
        PROBE,
        include_str!("../../kernel/fixtures/sched_switch.format"),
        include_str!("../../kernel/fixtures/kmalloc.format"),
        include_str!("../../kernel/fixtures/sys_enter.format"),
        include_str!("../../kernel/fixtures/sys_enter_openat.format"),
        include_str!("../../kernel/fixtures/sys_exit_openat.format"),
        include_str!("../../kernel/fixtures/sched_process_exec.format"),
        include_str!("../../kernel/fixtures/signal_generate.format"),
    ]
    .into_iter()
    .flat_map(|format| [spec(Some(format), Terms::default()), spec(Some(format), called.clone())])
    .chain([spec(None, Terms::default()), EventSpec { shown: false, ..spec(Some(FIELDS), Terms::default()) }])
    .collect();
    let random = &mut Random(17);
    let mut events = Vec::new();
    for index in 0..specs.len() * 40 {
        let mut raw = random.bytes();
        (0..16).for_each(|_| raw.extend(random.word().to_le_bytes()));
        raw.truncate(random.one(&[raw.len(), raw.len(), 20]));
        // The field has the offset of its string (`__data_loc`).
        if raw.len() > 120 {
            raw[24..28].copy_from_slice(&random.one(&[104u32 | 6 << 16, 104, 0]).to_le_bytes());
            raw[104..110].copy_from_slice(b"a\xff\n\"b\0");
        }
        let (nr, registers) = (random.one(&[0, 1, 3, 72, 257, 257, 9999]), std::array::from_fn(|_| random.word()));
        let called = call(random, index, (Abi::X86_64, nr), registers);
        let avma = random.next();
        let frame = Frame { avma, svma: avma, image: None, is_after: true };
        let place = MapRef { path: random.name(), offset: random.word(), executable: true };
        let (stack, caller) = (stack(random), Caller { place, frame });
        let kind = EventKind::Tracepoint {
            event: EventIndex((index % specs.len()) as u16),
            raw: raw.into(),
            stack: random.some(stack),
            caller: random.some(Box::new(caller)),
            call: random.some(Arc::new(called)),
        };
        events.push(event(random, index, kind));
    }
    let mut stream = Stream::new(Scope::System, events);
    stream.session.events = EventTable { events: specs, ..EventTable::default() };
    stream.session.copied_bytes = 8;
    stream.compare();
}

/// The script reads the texts of errors from the schema.
#[test]
fn the_schema_has_every_error() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let listed = schema["$defs"]["error"]["oneOf"].as_array().unwrap();
    let known: Vec<_> =
        (0..4096).filter_map(|number| Some((number, crate::beauty::errno::name(number)?, crate::beauty::errno::text(number)?))).collect();
    let expected: Vec<_> =
        known.iter().map(|(number, name, text)| serde_json::json!({ "const": number, "title": name, "description": text })).collect();
    assert_eq!(*listed, expected);
}

/// A reader does not know which of the prefixes in a value belongs to which name.
#[test]
fn a_name_begins_with_no_prefix_of_another_table_of_its_value() {
    for table in crate::beauty::tables::TABLES {
        let parts: Vec<_> = std::iter::once(*table).chain(table.fields.iter().map(|field| field.table)).collect();
        for (of, constant) in parts.iter().flat_map(|of| of.entries.iter().map(move |constant| (of, constant))) {
            let others = parts.iter().map(|other| other.prefix).filter(|prefix| !prefix.is_empty() && *prefix != of.prefix);
            let taken: Vec<&str> = others.filter(|prefix| constant.name.starts_with(prefix)).collect();
            assert!(taken.is_empty(), "{}: {} begins with {taken:?}", table.name, constant.name);
        }
    }
}
