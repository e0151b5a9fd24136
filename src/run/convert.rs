//! `rtrace convert`: writes the calls of a recording as pairs of records of `raw_syscalls:sys_enter` and `sys_exit`,
//! for tools that do not know the records of rtrace's BPF programs.
//!
//! A call is written when it ends, and its entry may then be far back in time. The file therefore has no marks of
//! rounds, and its reader sorts all records.

use super::record;
use crate::engine::Engine;
use crate::event::{Abi, Call, EntryState, Event, EventIndex, EventKind, ExitState, TaskId};
use crate::recording::{AnyReader, Damage, TracingData, Writer, about};
use crate::request::Conversion;
use crate::say;
use crate::session::{EventSpec, EventTable, Role, Terms};
use crate::source::frame::{Frame, kind};
use crate::source::record_writer::RecordWriter;
use crate::source::{Chunk, Form, Input};
use crate::stack::library::Closed;
use crate::sys::exit_code::ExitCode;
use crate::sys::perf::{Attr, Counts, Delivery, SAMPLE_SIDE_BAND, SAMPLE_TRACEPOINT, StackFields};
use anyhow::Context;
use std::sync::Arc;

const ENTER: EventIndex = EventIndex(0);
const EXIT: EventIndex = EventIndex(1);
const SIDE_BAND: EventIndex = EventIndex(2);

/// The numbers of the two tracepoints in the file. The kernel numbers its events from 1 on and reaches no such number.
const NUMBERS: [u16; 2] = [65_000, 65_001];

/// Bit 30 of a call's number: x32.
const X32_BIT: i64 = 0x4000_0000;

/// What was converted, and what was not.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Calls of which the file has records.
    calls: u64,
    /// Calls of 32-bit programs, whose numbers mean other calls in these records.
    of_other_abis: u64,
    /// Requests of io_uring, and calls of which the recording has only sums.
    without_records: u64,
}

/// Converts a recording as the request says, and returns the exit status.
///
/// # Errors
/// The recording cannot be read, or the output cannot be written.
pub fn convert(request: &Conversion) -> anyhow::Result<ExitCode> {
    let mut reader = AnyReader::open(&request.input)?;
    let name = request.output.display();
    let failed = || format!("cannot write {name}");
    let session = Arc::new(reader.begin().session.clone());
    let table = table(&session.events);
    let about = crate::recording::About { formats: formats(), ..about(&request.input, &session) };
    let attrs = [Counts::Tracepoint(NUMBERS[0].into()), Counts::Tracepoint(NUMBERS[1].into()), Counts::SideBand { maps: true }]
        .map(|counts| Attr { counts, inherit: true, watermark: 0, stack: StackFields::default(), delivery: Delivery::Kept }.numbers());
    let file = record::create(&request.output)?;
    let mut writer = Writer::without_facts(file, &table, session.started, &attrs, about).with_context(failed)?;
    let mut engine = Engine::new(&session, None, Box::new(Closed));
    let (mut events, mut count) = (Vec::new(), Count::default());
    while let Some(input) = reader.next_input() {
        if let Input::Round(round) = &input {
            round.synthesized.iter().for_each(|(time, fact)| writer.name_tasks(*time, fact));
            for chunk in round.chunks.iter().filter(|chunk| chunk.form == Form::Records) {
                writer.records(&side_band(chunk)).with_context(failed)?;
            }
        }
        engine.input(&session, input, &mut events);
        write_calls(&events, &table, &mut writer, &mut count).with_context(failed)?;
        engine.recycle(&mut events);
        reader.recycle(engine.spent());
    }
    engine.end(&session, &mut events);
    write_calls(&events, &table, &mut writer, &mut count).with_context(failed)?;
    let totals = writer.finish().with_context(failed)?;
    say!("rtrace: converted {} calls in {name} ({} bytes)", count.calls, totals.bytes);
    say_left_out(&reader, &count);
    Ok(if reader.damages().iter().any(Damage::is_failure) { ExitCode::Failed } else { ExitCode::Success })
}

/// Says what the file lacks.
fn say_left_out(reader: &AnyReader, count: &Count) {
    if count.of_other_abis > 0 {
        say!(
            "rtrace: {} calls of 32-bit programs were left out: records of raw_syscalls do not tell them from others",
            count.of_other_abis
        );
    }
    if count.without_records > 0 {
        say!(
            "rtrace: {} calls were left out, of which the recording has only sums, or which are requests of io_uring",
            count.without_records
        );
    }
    for damage in reader.damages() {
        say!("rtrace: the recording is incomplete: {damage}");
    }
}

/// Returns the events of the file. Records of tasks keep the identifiers that they have.
fn table(recorded: &EventTable) -> EventTable {
    let spec = |name: &str, role, sample_type| EventSpec {
        name: name.to_owned(),
        role,
        sample_type,
        format: None,
        shown: true,
        terms: Terms::default(),
    };
    let events = vec![
        spec("raw_syscalls:sys_enter", Role::RawEnter, SAMPLE_TRACEPOINT),
        spec("raw_syscalls:sys_exit", Role::RawExit, SAMPLE_TRACEPOINT),
        spec("dummy:HG", Role::SideBand, SAMPLE_SIDE_BAND | crate::source::frame::field::CPU),
    ];
    let first = recorded.ids.keys().max().copied().unwrap_or(0).saturating_add(1);
    let ids = recorded.ids.keys().map(|id| (*id, SIDE_BAND)).chain([(first, ENTER), (first.saturating_add(1), EXIT)]);
    EventTable { events, ids: ids.collect(), ..EventTable::default() }
}

/// Returns the records of a chunk that are about tasks.
fn side_band(chunk: &Chunk) -> Chunk {
    let (mut bytes, mut at) = (Vec::new(), 0);
    while let Ok(frame) = Frame::at(&chunk.bytes, at) {
        if frame.kind != kind::SAMPLE {
            bytes.extend(&chunk.bytes[at..at + frame.size()]);
        }
        at += frame.size();
    }
    Chunk { bytes, ..*chunk }
}

/// Writes the entry and the exit of each call among these events.
fn write_calls(events: &[Event], table: &EventTable, writer: &mut Writer, count: &mut Count) -> std::io::Result<()> {
    for event in events {
        match &event.kind {
            EventKind::Call(call) if call.request.is_some() => count.without_records += 1,
            EventKind::Call(call) if call.abi == Abi::I386 => count.of_other_abis += 1,
            EventKind::Call(call) => {
                count.calls += 1;
                writer.records(&records(call, event.task, event.cpu, table))?;
            }
            kind => count.without_records += if matches!(kind, EventKind::Aggregate(_)) { kind.calls() } else { 0 },
        }
    }
    Ok(())
}

/// Returns the records of a call.
fn records(call: &Call, task: TaskId, cpu: u32, table: &EventTable) -> Chunk {
    let nr = if call.abi == Abi::X32 { call.nr | X32_BIT } else { call.nr };
    let raw = |number: u16, words: &[u64]| {
        // Type, flags, count of preemptions, and the task.
        let head = [number.to_le_bytes(), [0, 0]].concat();
        [head, task.tid.to_le_bytes().to_vec(), words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat()
    };
    let mut ring = RecordWriter::new(table, cpu);
    if let (EntryState::Seen, Some(args)) = (call.entry, call.args) {
        ring.sample(ENTER, task, call.id.start, &raw(NUMBERS[0], &[&[nr as u64], &args[..]].concat()));
    }
    if let ExitState::Returned { at, ret } = call.exit {
        ring.sample(EXIT, task, at, &raw(NUMBERS[1], &[nr as u64, ret as u64]));
    }
    ring.chunk()
}

/// Returns the formats of the two tracepoints (include/trace/events/syscalls.h in the kernel).
fn formats() -> TracingData {
    let field = |declaration: &str, offset: u32, size: u32, signed: u32| {
        format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
    };
    let common = [
        field("unsigned short common_type", 0, 2, 0),
        field("unsigned char common_flags", 2, 1, 0),
        field("unsigned char common_preempt_count", 3, 1, 0),
        field("int common_pid", 4, 4, 1),
        "\n".to_owned(),
        field("long id", 8, 8, 1),
    ]
    .concat();
    let text = |name: &str, number: u16, own: String, print: &str| {
        format!("name: {name}\nID: {number}\nformat:\n{common}{own}\nprint fmt: {print}\n").into_bytes()
    };
    let arguments: Vec<String> = (0..6).map(|at| format!("REC->args[{at}]")).collect();
    let entered = format!("\"NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)\", REC->id, {}", arguments.join(", "));
    let formats = vec![
        text("sys_enter", NUMBERS[0], field("unsigned long args[6]", 16, 48, 0), &entered),
        text("sys_exit", NUMBERS[1], field("long ret", 16, 8, 1), "\"NR %ld = %ld\", REC->id, REC->ret"),
    ];
    TracingData {
        page_bytes: 4096,
        // How the pages of tracefs and the headers of their records look. Their readers want them, and use them for
        // records of tracefs alone.
        header_page: [field(" u64 timestamp", 0, 8, 0), field(" local_t commit", 8, 8, 1), field(" char data", 16, 4080, 0)]
            .concat()
            .into_bytes(),
        header_event: b"\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n".to_vec(),
        systems: vec![("raw_syscalls".to_owned(), formats)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;
    use crate::kernel::format::Format;
    use crate::source::record::{Body, Records};

    #[test]
    fn a_call_becomes_two_records_with_the_fields_that_the_formats_describe() {
        let recorded = EventTable { ids: [(7, EventIndex(4))].into_iter().collect(), ..EventTable::default() };
        let table = table(&recorded);
        let mut call = Call { nr: 3, args: Some([5, 6, 7, 8, 9, 10]), ..crate::beauty::samples::call([0; 6], 0) };
        (call.id.start, call.entry, call.exit) = (Time(100), EntryState::Seen, ExitState::Returned { at: Time(200), ret: -9 });
        let task = TaskId { pid: 70, tid: 71 };
        let chunk = records(&call, task, 1, &table);
        let formats: Vec<Format> =
            formats().systems[0].1.iter().map(|text| Format::parse(std::str::from_utf8(text).unwrap()).unwrap()).collect();
        let read: Vec<(u64, i64, i64)> = Records::new(&table, 1, &chunk.bytes)
            .map(|record| {
                let record = record.unwrap();
                let Body::Sample(sample) = record.body else { panic!("it is a sample") };
                let format = &formats[usize::from(sample.event.0)];
                assert_eq!((format.id as u16).to_le_bytes(), sample.raw[..2]);
                let number = |name: &str| format.field(name).and_then(|field| field.number(sample.raw)).unwrap_or_default();
                (record.time.0, number("id"), number("ret"))
            })
            .collect();
        assert_eq!(read, [(100, 3, 0), (200, 3, -9)]);
        call.exit = ExitState::Unseen;
        assert_eq!(Records::new(&table, 1, &records(&call, task, 1, &table).bytes).count(), 1);
    }
}
