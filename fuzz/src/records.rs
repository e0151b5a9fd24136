//! Records of perf's ring buffers and of the BPF programs, and chunk files with them.
//!
//! The first byte chooses the kind of input.

use rtrace::events::{Call, CallId, EntryState, EventIndex, ExitState, PidTranslation};
use rtrace::records::{
    self, Body, CallRecord, Dump, EventSpec, EventTable, FileSource, Merge, Records, Role, Session, Source, Terms, Writer, field,
};

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
        4 => chunk_file(bytes),
        _ => chunk_file(&[session(), bytes.to_vec()].concat()),
    }
}

/// Returns events with different layouts of records. Their IDs are 1, 2, ...
fn table() -> EventTable {
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
        id: CallId { tid: seen.tid, start: seen.start },
        abi: seen.abi,
        nr: seen.nr.into(),
        entry: EntryState::Seen,
        exit: ExitState::Pending,
        args: Some(seen.args),
        pieces: Default::default(),
        payload: Vec::new(),
        files: Default::default(),
        lost_before: 0,
        shown_pending: seen.shown,
        pids: PidTranslation::Same,
        ids: Vec::new(),
        stack: None,
    };
    let _ = records::add_pieces(seen.pieces, &mut call);
    for piece in &call.pieces {
        assert!(call.payload.get(piece.start as usize..(piece.start + piece.len) as usize).is_some(), "pieces are within the payload");
    }
}

/// Returns the beginning of a chunk file, up to its first frame.
fn session() -> Vec<u8> {
    /// The kind, the length, and the number of rounds.
    const END_FRAME_BYTES: usize = 4 + 8 + 8;
    let session = Session { events: table(), ..Session::default() };
    let mut file = Writer::new(Vec::new(), &session).and_then(Writer::finish).expect("memory can be written");
    file.truncate(file.len() - END_FRAME_BYTES);
    file
}

fn chunk_file(bytes: &[u8]) {
    let Ok(mut source) = FileSource::new(bytes) else { return };
    let mut merge = Merge::new();
    while let Ok(Some(round)) = source.next_round() {
        let table = &source.session().events;
        round.chunks.iter().for_each(|chunk| read(table, &chunk.bytes));
        merge.add(table, round);
        merge.release(table, |_| {});
        source.recycle(merge.spent());
    }
    merge.release_all(&source.session().events, |_| {});
}
