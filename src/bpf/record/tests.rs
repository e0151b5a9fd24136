use super::files::PROTOCOL_BYTES;
use super::*;
use crate::event::{Call, CallId, FdPlace, Piece, PieceState, PieceTime};
use proptest::prelude::*;

fn call() -> Call {
    Call::new(CallId { tid: 0, start: Time(0) }, Abi::X86_64, 0)
}

/// Encodes a record as the programs do.
pub(crate) fn written(seen: &CallRecord, pieces: &[u8]) -> Vec<u8> {
    let words = [seen.end.0, seen.start.0, seen.ret as u64].into_iter().chain(seen.args);
    let mut raw: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    raw.extend([seen.nr as u32, seen.tid as u32, seen.pid as u32, seen.lost, seen.late].iter().flat_map(|half| half.to_le_bytes()));
    raw.extend((pieces.len() as u16).to_le_bytes());
    let bits = (u8::from(seen.injected) * INJECTED) | (u8::from(seen.no_entry) * NO_ENTRY) | (u8::from(seen.shown) * SHOWN);
    raw.extend([seen.kind as u8, bits | (u8::from(seen.killed) * KILLED) | seen.abi as u8]);
    raw.extend(pieces);
    raw
}

/// Returns a call of this thread that returned 0.
pub(crate) fn returned(tid: i32, nr: i32, start: u64, end: u64) -> CallRecord<'static> {
    CallRecord {
        start: Time(start),
        end: Time(end),
        ret: 0,
        args: [0; 6],
        nr,
        abi: Abi::X86_64,
        tid,
        pid: tid,
        lost: 0,
        late: 0,
        kind: RecordKind::Returned,
        injected: false,
        no_entry: false,
        shown: false,
        killed: false,
        nested: false,
        pieces: &[],
    }
}

fn record(pieces: &[u8]) -> Vec<u8> {
    let seen = CallRecord { ret: -2, args: [1, 2, 3, 4, 5, 6], abi: Abi::I386, lost: 2, shown: true, ..returned(7, 59, 10, 30) };
    written(&seen, pieces)
}

/// Encodes a piece.
pub(crate) fn piece_bytes(address: u64, wanted: u64, bytes: &[u8], [arg, when, state]: [u8; 3]) -> Vec<u8> {
    let mut raw = [address.to_le_bytes(), wanted.to_le_bytes()].concat();
    raw.extend((bytes.len() as u32).to_le_bytes());
    raw.extend([arg, when, state, 0]);
    raw.extend(bytes);
    raw.resize(raw.len().next_multiple_of(8), 0);
    raw
}

/// Adds pieces to a call, and returns its files.
fn add<'a>(pieces: &'a [u8], call: &mut Call) -> Vec<RecordedFile<'a>> {
    let mut files = Vec::new();
    add_pieces(pieces, call, |_, file| files.push(file));
    files
}

#[test]
fn records_are_decoded_with_their_pieces() {
    let pieces =
        [piece_bytes(0x1000, 5, b"/etc", [0, 0, 0]), piece_bytes(0x2000, 9, b"ab", [1, 2, 1]), piece_bytes(0x3000, 0, b"", [2, 1, 2])];
    let raw = [record(&pieces.concat()), vec![0; 4]].concat();
    let seen = CallRecord::parse(&raw).unwrap();
    assert_eq!((seen.start, seen.end, seen.ret, seen.args), (Time(10), Time(30), -2, [1, 2, 3, 4, 5, 6]));
    assert_eq!((seen.nr, seen.abi, seen.tid, seen.lost, seen.kind), (59, Abi::I386, 7, 2, RecordKind::Returned));
    assert_eq!((seen.no_entry, seen.shown), (false, true));
    let mut call = call();
    assert!(add(seen.pieces, &mut call).is_empty());
    let of = |at: usize| (call.pieces[at], call.bytes(&call.pieces[at]));
    let first = Piece { arg: 0, when: PieceTime::Entry, address: 0x1000, wanted: 5, start: 0, len: 4, state: PieceState::Ok };
    assert_eq!(of(0), (first, &b"/etc"[..]));
    assert_eq!((of(1).0.when, of(1).0.state, of(1).1), (PieceTime::Retry, PieceState::Cut, &b"ab"[..]));
    assert_eq!((of(2).0.when, of(2).0.state, of(2).1), (PieceTime::Exit, PieceState::Fault, &b""[..]));
}

#[test]
fn only_the_first_record_of_a_file_has_its_name() {
    let info = [&42u64.to_le_bytes()[..], &0xef53u32.to_le_bytes(), &[0; 12], b"a\0tmp\0"].concat();
    let raw = record(
        &[
            piece_bytes(3, 77, &info, [0x80, 0, 0]),
            piece_bytes(4, 78, b"", [0x86, 1, 0]),
            piece_bytes(5, 79, b"", [0x87, 1, 0]),
            piece_bytes(9, 80, b"", [0xc2, 0, 0]),
        ]
        .concat(),
    );
    let mut call = call();
    let record = CallRecord::parse(&raw).unwrap();
    let files = add(record.pieces, &mut call);
    let named = FileInfo { inode: 42, magic: 0xef53, unlinked: false, file_type: 0, device: 0, is: FileName::Rooted(b"a\0tmp\0") };
    let unnamed = |place, id| RecordedFile { place, id, info: None };
    let inside = unnamed(FdPlace::Inside { arg: 2, fd: 9 }, 80);
    let all = [RecordedFile { place: FdPlace::Arg(0), id: 77, info: Some(named) }, unnamed(FdPlace::Return, 78), inside];
    assert_eq!(files[..], all, "there is no argument 7");
    assert!(call.pieces.is_empty() && call.payload.is_empty());
}

/// Encodes a piece that continues an earlier one.
fn more(address: u64, wanted: u64, bytes: &[u8], kind: [u8; 3]) -> Vec<u8> {
    let mut raw = piece_bytes(address, wanted, bytes, kind);
    raw[23] = 1;
    raw
}

#[test]
fn pieces_continue_where_earlier_ones_end() {
    let pieces = [
        piece_bytes(0x1000, 9, b"abc", [1, 0, 1]),
        piece_bytes(0x2000, 2, b"xy", [1, 0, 0]),
        more(0x1003, 6, b"def", [1, 0, 1]),
        more(0x1006, 3, b"ghi", [1, 2, 0]),
        more(0x1009, 3, b"not", [2, 0, 0]),
        more(0x2003, 3, b"not", [1, 0, 0]),
    ];
    let mut call = call();
    add(&pieces.concat(), &mut call);
    assert_eq!(call.pieces.iter().map(|piece| call.bytes(piece)).collect::<Vec<_>>(), [&b"abcdefghi"[..], b"xy"]);
    assert_eq!((call.pieces[0].wanted, call.pieces[0].state), (9, PieceState::Ok));
    let mut cut = self::call();
    add(&[&pieces[0][..], &pieces[3]].concat(), &mut cut);
    assert_eq!((cut.bytes(&cut.pieces[0]), cut.pieces[0].state), (&b"abc"[..], PieceState::Cut), "the bytes in between are lost");
}

#[test]
fn a_record_counts_its_earlier_partial_records() {
    let pieces = [piece_bytes(0, 3, b"", [ARG_PARTS, 0, 0]), piece_bytes(0x1000, 1, b"a", [0, 0, 0])].concat();
    let raw = record(&pieces);
    let seen = CallRecord::parse(&raw).unwrap();
    let mut call = call();
    add(seen.pieces, &mut call);
    assert_eq!((seen.parts_before(), call.pieces.len()), (3, 1));
    assert_eq!(CallRecord::parse(&record(&pieces[PIECE_BYTES..])).unwrap().parts_before(), 0);
}

#[test]
fn a_socket_has_addresses_and_names() {
    let mut info = [&42u64.to_le_bytes()[..], &0x534f_434bu32.to_le_bytes(), &[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]].concat();
    info.extend([2, 0, 1, 0].into_iter().chain(6u32.to_le_bytes()));
    info.extend([7u32, 0, 0, 0, 8, 0, 0, 0, 80, 81].iter().flat_map(|half| half.to_le_bytes()));
    info.extend(9u64.to_le_bytes());
    info.extend(b"TCP");
    info.resize(FILE_INFO_BYTES + SOCKET_INFO_BYTES + PROTOCOL_BYTES, 0);
    let is = |info: &[u8]| match FileInfo::parse(info).map(|info| info.is) {
        Some(FileName::Socket(socket)) => {
            let ends = ([socket.local[0], socket.local_port], [socket.remote[0], socket.remote_port]);
            Some((socket.family, socket.protocol, ends, socket.peer, socket.protocol_name.to_vec(), socket.address.to_vec()))
        }
        _ => None,
    };
    assert_eq!(is(&info), Some((2, 6, ([7, 80], [8, 81]), 9, b"TCP".to_vec(), Vec::new())));
    assert_eq!(is(&info[..info.len() - 1]), None);
    info.extend(b"/x");
    assert_eq!(is(&info).map(|is| is.5), Some(b"/x".to_vec()));
}

#[test]
fn calls_that_end_while_they_are_copied_are_not_listed() {
    let one = |tid: i32, unchanged: u64| {
        let head = [100u64.to_le_bytes(), (7 | (tid as u64) << 32).to_le_bytes()].concat();
        [head, record(&piece_bytes(1, 1, b"x", [0, 0, 0])), unchanged.to_le_bytes().to_vec()].concat()
    };
    let list = [one(8, 1), one(9, 0), one(10, 1)].concat();
    let found = listed(&list);
    assert_eq!(found.iter().map(|one| one.task.tid).collect::<Vec<_>>(), [8, 10]);
    assert_eq!((found[0].time, found[0].task.pid, CallRecord::parse(found[0].call).unwrap().nr), (Time(100), 7, 59));
    assert_eq!(listed(&list[..list.len() - 1]).len(), 1, "a cut list has no last call");
}

#[test]
fn stacks_of_calls_in_flight_are_decoded() {
    let head = |start: u64, tid: u32, bytes: u64| {
        let mut head = [start.to_le_bytes(), (u64::from(tid) | 2 << 32).to_le_bytes(), 0x180u64.to_le_bytes()].concat();
        head.extend([7u64, 8].iter().flat_map(|value| value.to_le_bytes()));
        head.resize(LISTED_STACK_BYTES - 8, 0);
        head.extend(bytes.to_le_bytes());
        head
    };
    let list = [head(5, 42, 3), b"abc".to_vec(), head(6, 43, 0), head(7, 44, 100)].concat();
    let found = listed_stacks(&list);
    assert_eq!(found.iter().map(|stack| (stack.start.0, stack.tid)).collect::<Vec<_>>(), [(5, 42), (6, 43)], "the last is cut");
    assert_eq!((found[0].memory.mask, found[0].memory.registers.len(), found[0].memory.stack.as_slice()), (0x180, 16, &b"abc"[..]));
    assert!(found[0].memory.is_wide);
}

proptest! {
    #[test]
    fn any_list_of_stacks_can_be_decoded(list in proptest::collection::vec(any::<u8>(), 0..1_000)) {
        prop_assert!(listed_stacks(&list).iter().all(|stack| stack.memory.stack.len() <= list.len()));
    }

    #[test]
    fn any_bytes_can_be_decoded(raw in proptest::collection::vec(any::<u8>(), 0..400), fits in any::<bool>()) {
        let mut raw = raw;
        if fits && raw.len() >= CALL_BYTES {
            (raw[BITS - 1], raw[BITS]) = (raw[BITS - 1] % 6, raw[BITS] % 4);
            let payload = (raw.len() - CALL_BYTES) as u16;
            raw[PAYLOAD..PAYLOAD + 2].copy_from_slice(&payload.to_le_bytes());
        }
        let mut call = call();
        if let Some(seen) = CallRecord::parse(&raw) {
            add(seen.pieces, &mut call);
        }
        prop_assert!(call.payload.len() <= raw.len() * raw.len());
        prop_assert!(call.pieces.iter().all(|piece| call.bytes(piece).len() == piece.len as usize));
        listed(&raw);
    }
}
