//! Records of perf's ring buffers, of the BPF programs and of tracefs instances, and their merge.
//!
//! The first byte chooses the kind of input.

use rtrace::events::{Call, CallId, EventIndex, Time};
use rtrace::records::{self, Body, CallRecord, Chunk, Dump, EventSpec, EventTable, Form, Merge, Records, Role, Round, Terms, field};

pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 6 {
        0 => read(&table(), bytes),
        1 => call(bytes),
        2 => records::listed_calls(bytes).iter().for_each(|listed| call(listed.call)),
        3 => {
            let Some((bits, body)) = bytes.split_first_chunk() else { return };
            let _ = records::parse_aggregate(body, u64::from_le_bytes(*bits));
        }
        4 => merge(Form::Records, bytes),
        _ => merge(Form::Pages, bytes),
    }
}

/// Returns events with different layouts of records. Their IDs are 1, 2, ...
pub fn table() -> EventTable {
    let all =
        field::NEEDED | field::IP | field::ADDR | field::ID | field::STREAM_ID | field::CPU | field::PERIOD | field::STACK | field::RAW;
    let layouts = [
        (Role::Tracepoint, field::NEEDED | field::RAW),
        (Role::FaultMajor, all),
        (Role::SideBand, field::NEEDED | field::CPU),
        (Role::BpfCall, field::PROGRAM_OUTPUT),
    ];
    let spec =
        |(role, sample_type)| EventSpec { name: "a:b".into(), role, sample_type, format: None, shown: true, terms: Terms::default() };
    let ids = (0..layouts.len() as u16).map(|number| (u64::from(number) + 1, EventIndex(number)));
    EventTable { ids: ids.collect(), events: layouts.into_iter().map(spec).collect(), types: [(0, EventIndex(0))].into_iter().collect() }
}

fn read(table: &EventTable, bytes: &[u8]) {
    for record in Records::new(table, 0, bytes).flatten() {
        if let Body::Sample(sample) = record.body {
            call(sample.raw);
            let layout = table.get(sample.event).map_or(0, |event| event.sample_type);
            let _ = (Dump::parse(sample.dump, layout, 0xff_0fff), records::call_chain(sample.chain).count());
        }
    }
}

fn call(raw: &[u8]) {
    let _ = (records::call_time(raw), records::call_task(raw));
    let Some(seen) = CallRecord::parse(raw) else { return };
    let _ = seen.parts_before();
    let mut call = Call {
        args: Some(seen.args),
        shown_pending: seen.shown,
        ..Call::new(CallId { tid: seen.tid, start: seen.start }, seen.abi, seen.nr.into())
    };
    records::add_pieces(seen.pieces, &mut call, |_, _| {});
    for piece in &call.pieces {
        assert!(call.payload.get(piece.start as usize..(piece.start + piece.len) as usize).is_some(), "pieces are within the payload");
    }
}

/// Merges two rounds of two rings, each of which held these bytes.
fn merge(form: Form, bytes: &[u8]) {
    let table = table();
    let mut merge = Merge::new();
    for started in [Time(1 << 32), Time(1 << 33)] {
        let chunks = [0, 1].map(|cpu| Chunk { cpu, form, bytes: bytes.to_vec() });
        merge.add(&table, Round { started, chunks: chunks.into(), synthesized: Vec::new() });
        merge.release(&table, usize::MAX, |_| {});
    }
    merge.release_all(&table, usize::MAX, |_| {});
}
