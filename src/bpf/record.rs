//! A call's record as the BPF programs write it: the mirror of `record.h`.
//!
//! It only reads bytes, so it is there in every build: a recording may come from a machine with other means. Whatever the bytes are, it gives a call or nothing.

use crate::event::note::StackMemory;
use crate::event::{Abi, Call, FdPlace, Piece, PieceState, TaskId, Time, When};
use smallvec::SmallVec;

/// `sizeof(struct call)`, `sizeof(struct piece)`, `sizeof(struct listed)`.
pub const CALL_BYTES: usize = 96;
pub const PIECE_BYTES: usize = 24;
pub const LISTED_BYTES: usize = 16;

/// `sizeof(struct listed_stack)`, how many registers it has room for, and where they stand.
pub const LISTED_STACK_BYTES: usize = 296;
const LISTED_REGISTERS_MAX: usize = 33;
const LISTED_REGISTERS: usize = 24;

/// `sizeof(struct file_note)`, `sizeof(struct socket_note)` and that of a protocol's name behind it.
pub const FILE_NOTE_BYTES: usize = 24;
pub const SOCKET_NOTE_BYTES: usize = 56;
const PROTOCOL_BYTES: usize = 32;
/// `ARG_FILE`, `ARG_INSIDE` and `ARG_RETURN`.
const ARG_FILE: u8 = 0x80;
const ARG_INSIDE: u8 = 0x40;
pub(super) const ARG_RETURN: u8 = 6;
/// `ARG_NUMBER`
const ARG_NUMBER: u8 = 0x20;
/// `ARG_USER`
const ARG_USER: u8 = 0x10;

/// `ARG_PARTS`
const ARG_PARTS: u8 = 0x40;

/// `CALL_NO_ENTRY`, `CALL_SHOWN`, `CALL_LEADS` and `CALL_NESTED`.
const NO_ENTRY: u8 = 1;
const SHOWN: u8 = 2;
const LEADS: u8 = 4;
const NESTED: u8 = 8;

/// Where in a record `pid`, `payload` and `bits` are.
const PID: usize = 80;
const PAYLOAD: usize = 92;
const BITS: usize = 95;

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Returned,
    Never,
    Unseen,
    Pending,
    /// No call: the task ends, with [`Seen::ret`] as its exit code (wait(2)'s status word).
    TaskEnd,
    /// Pieces of a call whose own record comes later.
    Part,
    /// No call: sums of as many as [`Seen::ret`] says, which stand in place of pieces ([`super::tally`]).
    Tally,
    /// The stack of a call whose own record comes later, in the same sample.
    Stack,
    /// No call: [`super::signals`] reads what was sent to a task, or what it is given.
    SignalSent,
    Signal,
}

/// In the order of `enum how`.
const HOWS: [How; 10] =
    [How::Returned, How::Never, How::Unseen, How::Pending, How::TaskEnd, How::Part, How::Tally, How::Stack, How::SignalSent, How::Signal];

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    pub start: Time,
    /// When the call ended.
    pub end: Time,
    pub ret: i64,
    pub args: [u64; 6],
    /// x32's without its bit.
    pub nr: i32,
    pub abi: Abi,
    /// Who entered.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Records of this task that were lost since the one before.
    pub lost: u32,
    pub how: How,
    pub no_entry: bool,
    /// It was listed as pending before.
    pub shown: bool,
    /// Whoever it is of is in a pid namespace below the first one, and the numbers of tasks in the call are of that.
    pub nested: bool,
    /// As they are in the record.
    pub pieces: &'a [u8],
}

impl<'a> Seen<'a> {
    /// Reads a record; `None` if it is none.
    pub fn parse(raw: &'a [u8]) -> Option<Seen<'a>> {
        let (head, rest) = raw.split_first_chunk::<CALL_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        let payload = usize::from(u16::from_le_bytes([head[PAYLOAD], head[PAYLOAD + 1]]));
        let bits = head[BITS];
        Some(Seen {
            start: Time(word(8)),
            end: Time(word(0).saturating_sub(half(88).into())),
            ret: word(16) as i64,
            args: std::array::from_fn(|i| word(24 + 8 * i)),
            nr: half(72) as i32,
            abi: Abi::ALL.get(usize::from(bits & 0xf)).copied()?,
            tid: half(76) as i32,
            pid: half(PID) as i32,
            lost: half(84),
            how: HOWS.get(usize::from(head[94])).copied()?,
            no_entry: bits >> 4 & NO_ENTRY != 0,
            shown: bits >> 4 & SHOWN != 0,
            nested: bits >> 4 & NESTED != 0,
            pieces: rest.get(..payload)?,
        })
    }

    /// How many records with parts of this call were written before this one.
    pub fn parts_before(&self) -> u32 {
        // It stands before all other pieces.
        let first = self.pieces.first_chunk::<PIECE_BYTES>().and_then(|head| piece(head, 0));
        first.filter(|piece| piece.arg == ARG_PARTS).map_or(0, |piece| piece.wanted as u32)
    }
}

/// When a record was written; `None` if it is none.
#[inline]
pub fn time(raw: &[u8]) -> Option<Time> {
    raw.first_chunk().copied().map(u64::from_le_bytes).map(Time)
}

/// Who wrote a record; `None` if it is none.
#[inline]
pub fn task(raw: &[u8]) -> Option<TaskId> {
    let head = raw.first_chunk::<CALL_BYTES>()?;
    let half = |at: usize| i32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
    let pid = half(PID);
    Some(TaskId { pid, tid: if head[BITS] >> 4 & LEADS == 0 { half(76) } else { pid } })
}

/// Gives a call what was copied of its caller's memory, and returns what its descriptors were.
pub fn add_pieces<'a>(pieces: &'a [u8], call: &mut Call) -> SmallVec<[SeenFile<'a>; 2]> {
    let mut files = SmallVec::new();
    let mut rest = pieces;
    while let Some((head, behind)) = rest.split_first_chunk::<PIECE_BYTES>() {
        let Some(piece) = piece(head, call.payload.len()) else { break };
        let length = piece.len as usize;
        let Some(bytes) = behind.get(..length) else { break };
        if piece.arg & ARG_FILE != 0 {
            files.extend(SeenFile::new(&piece, bytes));
        } else if head[23] != 0 {
            go_on(call, &piece, bytes);
        } else if piece.arg & !7 == ARG_NUMBER {
            call.numbers.add(piece.address as i32, piece.wanted as i32);
        } else if piece.arg & !7 == ARG_USER {
            call.ids.push((piece.arg & 7, piece.wanted as u32));
        } else if piece.arg != ARG_PARTS {
            call.payload.extend_from_slice(bytes);
            call.pieces.push(piece);
        }
        rest = behind.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    files
}

/// More of an earlier piece. Where that is not there, because a record was lost, the bytes have no place.
fn go_on(call: &mut Call, more: &Piece, bytes: &[u8]) {
    let ends_there = |piece: &Piece| {
        let is_same = piece.arg == more.arg && (piece.when == When::Exit) == (more.when == When::Exit);
        is_same && piece.address.wrapping_add(piece.len.into()) == more.address
    };
    let Some(at) = call.pieces.iter().rposition(ends_there) else { return };
    let mut piece = call.pieces[at];
    if (piece.start + piece.len) as usize != call.payload.len() {
        // Others came between.
        let (start, range) = (call.payload.len() as u32, piece.start as usize..(piece.start + piece.len) as usize);
        call.payload.extend_from_within(range);
        piece.start = start;
    }
    call.payload.extend_from_slice(bytes);
    piece.wanted = u64::from(piece.len).saturating_add(more.wanted);
    piece.len += more.len;
    piece.state = more.state;
    call.pieces[at] = piece;
}

/// What a descriptor was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenFile<'a> {
    pub place: FdPlace,
    /// The same file, under the same name, has the same identifier in all records of a task.
    pub id: u64,
    /// Its name, the first time.
    pub note: Option<FileNote<'a>>,
}

/// `struct file_note`, and what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileNote<'a> {
    pub inode: u64,
    /// Of its file system (include/uapi/linux/magic.h).
    pub magic: u32,
    pub unlinked: bool,
    pub is: FileIs<'a>,
}

/// What kind of name a file has. Names are given from the file up, each with a NUL behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIs<'a> {
    /// A path from the task's root.
    Rooted(&'a [u8]),
    /// The end of a path whose beginning found no room.
    Cut(&'a [u8]),
    /// In no directory, under one name; a pidfd is one of this process.
    Apart(&'a [u8], i32),
    Socket(SocketNote<'a>),
}

/// `struct socket_note` and `struct socket_names`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketNote<'a> {
    /// `AF_*`
    pub family: u16,
    pub protocol: u32,
    /// Where IPv4 has one word, and IPv6 four, in the order of the network; others have a number.
    pub local: [u32; 4],
    pub remote: [u32; 4],
    pub local_port: u32,
    pub remote_port: u32,
    /// The inode of a UNIX socket's peer.
    pub peer: u64,
    /// As the kernel calls it: `TCPv6`.
    pub protocol_name: &'a [u8],
    /// Of a UNIX socket, what is behind the family of its `struct sockaddr_un`.
    pub address: &'a [u8],
}

impl<'a> FileNote<'a> {
    fn parse(raw: &'a [u8]) -> Option<FileNote<'a>> {
        let (head, rest) = raw.split_first_chunk::<FILE_NOTE_BYTES>()?;
        let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        let is = match head[16] {
            0 => FileIs::Rooted(rest),
            1 => FileIs::Cut(rest),
            2 => FileIs::Apart(rest, half(12) as i32),
            3 => FileIs::Socket(SocketNote::parse(rest)?),
            _ => return None,
        };
        let inode = u64::from_le_bytes(head[..8].try_into().unwrap_or_default());
        Some(FileNote { inode, magic: half(8), unlinked: head[17] != 0, is })
    }
}

impl<'a> SocketNote<'a> {
    fn parse(raw: &'a [u8]) -> Option<SocketNote<'a>> {
        let (head, rest) = raw.split_first_chunk::<SOCKET_NOTE_BYTES>()?;
        let (protocol_name, address) = rest.split_first_chunk::<PROTOCOL_BYTES>()?;
        let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        Some(SocketNote {
            family: u16::from_le_bytes([head[0], head[1]]),
            protocol: half(4),
            local: std::array::from_fn(|i| half(8 + 4 * i)),
            remote: std::array::from_fn(|i| half(24 + 4 * i)),
            local_port: half(40),
            remote_port: half(44),
            peer: u64::from_le_bytes(head[48..56].try_into().unwrap_or_default()),
            protocol_name: protocol_name.split(|&byte| byte == 0).next().unwrap_or_default(),
            address,
        })
    }
}

impl<'a> SeenFile<'a> {
    fn new(piece: &Piece, bytes: &'a [u8]) -> Option<SeenFile<'a>> {
        let place = match piece.arg & !ARG_FILE {
            ARG_RETURN => FdPlace::Return,
            arg @ ..ARG_RETURN => FdPlace::Arg(arg),
            inside if inside & !ARG_INSIDE < ARG_RETURN => FdPlace::Inside { arg: inside & !ARG_INSIDE, fd: piece.address as i32 },
            _ => return None,
        };
        let note = if bytes.is_empty() { None } else { Some(FileNote::parse(bytes)?) };
        Some(SeenFile { place, id: piece.wanted, note })
    }
}

fn piece(head: &[u8; PIECE_BYTES], start: usize) -> Option<Piece> {
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    Some(Piece {
        arg: head[20],
        when: [When::Entry, When::Exit, When::Retry].get(usize::from(head[21])).copied()?,
        address: word(0),
        wanted: word(8),
        start: u32::try_from(start).ok()?,
        len: u32::from_le_bytes([head[16], head[17], head[18], head[19]]),
        state: [PieceState::Ok, PieceState::Cut, PieceState::Fault].get(usize::from(head[22])).copied()?,
    })
}

/// One entry of a list of calls in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// When it was looked at.
    pub time: Time,
    pub task: TaskId,
    /// The record, for [`Seen::parse`].
    pub call: &'a [u8],
}

/// The calls of a list that stood still while they were copied.
pub fn listed(mut list: &[u8]) -> Vec<Listed<'_>> {
    let mut found = Vec::new();
    while let Some((one, stood_still, rest)) = next_listed(list) {
        found.extend(stood_still.then_some(one));
        list = rest;
    }
    found
}

/// The registers and stack of a call in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedStack {
    /// When the call was entered.
    pub start: Time,
    pub tid: i32,
    pub memory: StackMemory,
}

/// The stacks of a list, as far as it makes sense.
pub fn listed_stacks(mut list: &[u8]) -> Vec<ListedStack> {
    let mut found = Vec::new();
    while let Some((one, rest)) = next_stack(list) {
        found.push(one);
        list = rest;
    }
    found
}

fn next_stack(list: &[u8]) -> Option<(ListedStack, &[u8])> {
    let (head, rest) = list.split_first_chunk::<LISTED_STACK_BYTES>()?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    let (start, ids, mask) = (word(0), word(8), word(16));
    let (stack, rest) = rest.split_at_checked(usize::try_from(word(LISTED_STACK_BYTES - 8)).ok()?)?;
    let registers = (mask.count_ones() as usize).min(LISTED_REGISTERS_MAX);
    let memory = StackMemory {
        is_wide: ids >> 32 == 2,
        mask,
        registers: head[LISTED_REGISTERS..LISTED_REGISTERS + 8 * registers].to_vec(),
        stack: stack.to_vec(),
    };
    Some((ListedStack { start: Time(start), tid: ids as i32, memory }, rest))
}

fn next_listed(list: &[u8]) -> Option<(Listed<'_>, bool, &[u8])> {
    let (head, rest) = list.split_first_chunk::<LISTED_BYTES>()?;
    let payload = usize::from(u16::from_le_bytes([*rest.get(PAYLOAD)?, *rest.get(PAYLOAD + 1)?]));
    let (call, rest) = rest.split_at_checked(CALL_BYTES + payload)?;
    let (stood_still, rest) = rest.split_first_chunk::<8>()?;
    let [time, ids] = [0, 8].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default()));
    let task = TaskId { pid: ids as i32, tid: (ids >> 32) as i32 };
    Some((Listed { time: Time(time), task, call }, u64::from_le_bytes(*stood_still) == 1, rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::event::{CallId, Entry, Exit};
    use proptest::prelude::*;

    fn call() -> Call {
        Call {
            id: CallId { tid: 0, start: Time(0) },
            abi: Abi::X86_64,
            nr: 0,
            entry: Entry::Seen,
            exit: Exit::Pending,
            args: None,
            pieces: Default::default(),
            payload: Vec::new(),
            files: Default::default(),
            lost_before: 0,
            shown_pending: false,
            numbers: crate::event::Numbers::Same,
            ids: Vec::new(),
            stack: None,
        }
    }

    /// As the programs write it.
    pub(crate) fn written(seen: &Seen, pieces: &[u8]) -> Vec<u8> {
        let words = [seen.end.0, seen.start.0, seen.ret as u64].into_iter().chain(seen.args);
        let mut raw: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        raw.extend([seen.nr as u32, seen.tid as u32, seen.pid as u32, seen.lost, 0].iter().flat_map(|half| half.to_le_bytes()));
        raw.extend((pieces.len() as u16).to_le_bytes());
        let bits = (u8::from(seen.no_entry) * NO_ENTRY) | (u8::from(seen.shown) * SHOWN);
        raw.extend([seen.how as u8, bits << 4 | seen.abi as u8]);
        raw.extend(pieces);
        raw
    }

    /// A call of this thread that returned 0.
    pub(crate) fn returned(tid: i32, nr: i32, start: u64, end: u64) -> Seen<'static> {
        Seen {
            start: Time(start),
            end: Time(end),
            ret: 0,
            args: [0; 6],
            nr,
            abi: Abi::X86_64,
            tid,
            pid: tid,
            lost: 0,
            how: How::Returned,
            no_entry: false,
            shown: false,
            nested: false,
            pieces: &[],
        }
    }

    fn record(pieces: &[u8]) -> Vec<u8> {
        let seen = Seen { ret: -2, args: [1, 2, 3, 4, 5, 6], abi: Abi::I386, lost: 2, shown: true, ..returned(7, 59, 10, 30) };
        written(&seen, pieces)
    }

    fn piece_bytes(address: u64, wanted: u64, bytes: &[u8], [arg, when, state]: [u8; 3]) -> Vec<u8> {
        let mut raw = [address.to_le_bytes(), wanted.to_le_bytes()].concat();
        raw.extend((bytes.len() as u32).to_le_bytes());
        raw.extend([arg, when, state, 0]);
        raw.extend(bytes);
        raw.resize(raw.len().next_multiple_of(8), 0);
        raw
    }

    #[test]
    fn a_record_and_its_pieces() {
        let pieces =
            [piece_bytes(0x1000, 5, b"/etc", [0, 0, 0]), piece_bytes(0x2000, 9, b"ab", [1, 2, 1]), piece_bytes(0x3000, 0, b"", [2, 1, 2])];
        let raw = [record(&pieces.concat()), vec![0; 4]].concat();
        let seen = Seen::parse(&raw).unwrap();
        assert_eq!((seen.start, seen.end, seen.ret, seen.args), (Time(10), Time(30), -2, [1, 2, 3, 4, 5, 6]));
        assert_eq!((seen.nr, seen.abi, seen.tid, seen.lost, seen.how), (59, Abi::I386, 7, 2, How::Returned));
        assert_eq!((seen.no_entry, seen.shown), (false, true));
        let mut call = call();
        assert!(add_pieces(seen.pieces, &mut call).is_empty());
        let of = |at: usize| (call.pieces[at], call.bytes(&call.pieces[at]));
        let first = Piece { arg: 0, when: When::Entry, address: 0x1000, wanted: 5, start: 0, len: 4, state: PieceState::Ok };
        assert_eq!(of(0), (first, &b"/etc"[..]));
        assert_eq!((of(1).0.when, of(1).0.state, of(1).1), (When::Retry, PieceState::Cut, &b"ab"[..]));
        assert_eq!((of(2).0.when, of(2).0.state, of(2).1), (When::Exit, PieceState::Fault, &b""[..]));
    }

    #[test]
    fn files_are_told_once_and_named_after_that() {
        let note = [&42u64.to_le_bytes()[..], &0xef53u32.to_le_bytes(), &[0; 12], b"a\0tmp\0"].concat();
        let raw = record(
            &[
                piece_bytes(3, 77, &note, [0x80, 0, 0]),
                piece_bytes(4, 78, b"", [0x86, 1, 0]),
                piece_bytes(5, 79, b"", [0x87, 1, 0]),
                piece_bytes(9, 80, b"", [0xc2, 0, 0]),
            ]
            .concat(),
        );
        let mut call = call();
        let files = add_pieces(Seen::parse(&raw).unwrap().pieces, &mut call);
        let told = FileNote { inode: 42, magic: 0xef53, unlinked: false, is: FileIs::Rooted(b"a\0tmp\0") };
        let known = |place, id| SeenFile { place, id, note: None };
        let inside = known(FdPlace::Inside { arg: 2, fd: 9 }, 80);
        let all = [SeenFile { place: FdPlace::Arg(0), id: 77, note: Some(told) }, known(FdPlace::Return, 78), inside];
        assert_eq!(files[..], all, "there is no place 7");
        assert!(call.pieces.is_empty() && call.payload.is_empty());
    }

    /// A piece that goes on.
    fn more(address: u64, wanted: u64, bytes: &[u8], kind: [u8; 3]) -> Vec<u8> {
        let mut raw = piece_bytes(address, wanted, bytes, kind);
        raw[23] = 1;
        raw
    }

    #[test]
    fn pieces_go_on_where_others_end() {
        let pieces = [
            piece_bytes(0x1000, 9, b"abc", [1, 0, 1]),
            piece_bytes(0x2000, 2, b"xy", [1, 0, 0]),
            more(0x1003, 6, b"def", [1, 0, 1]),
            more(0x1006, 3, b"ghi", [1, 2, 0]),
            more(0x1009, 3, b"not", [2, 0, 0]),
            more(0x2003, 3, b"not", [1, 0, 0]),
        ];
        let mut call = call();
        add_pieces(&pieces.concat(), &mut call);
        assert_eq!(call.pieces.iter().map(|piece| call.bytes(piece)).collect::<Vec<_>>(), [&b"abcdefghi"[..], b"xy"]);
        assert_eq!((call.pieces[0].wanted, call.pieces[0].state), (9, PieceState::Ok));
        let mut cut = self::call();
        add_pieces(&[&pieces[0][..], &pieces[3]].concat(), &mut cut);
        assert_eq!((cut.bytes(&cut.pieces[0]), cut.pieces[0].state), (&b"abc"[..], PieceState::Cut), "what was between is lost");
    }

    #[test]
    fn a_record_says_how_many_parts_came_before() {
        let pieces = [piece_bytes(0, 3, b"", [ARG_PARTS, 0, 0]), piece_bytes(0x1000, 1, b"a", [0, 0, 0])].concat();
        let raw = record(&pieces);
        let seen = Seen::parse(&raw).unwrap();
        let mut call = call();
        add_pieces(seen.pieces, &mut call);
        assert_eq!((seen.parts_before(), call.pieces.len()), (3, 1));
        assert_eq!(Seen::parse(&record(&pieces[PIECE_BYTES..])).unwrap().parts_before(), 0);
    }

    #[test]
    fn a_socket_has_addresses_and_names() {
        let mut note = [&42u64.to_le_bytes()[..], &0x534f_434bu32.to_le_bytes(), &[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]].concat();
        note.extend([2, 0, 1, 0].into_iter().chain(6u32.to_le_bytes()));
        note.extend([7u32, 0, 0, 0, 8, 0, 0, 0, 80, 81].iter().flat_map(|half| half.to_le_bytes()));
        note.extend(9u64.to_le_bytes());
        note.extend(b"TCP");
        note.resize(FILE_NOTE_BYTES + SOCKET_NOTE_BYTES + PROTOCOL_BYTES, 0);
        let is = |note: &[u8]| match FileNote::parse(note).map(|note| note.is) {
            Some(FileIs::Socket(socket)) => {
                let ends = ([socket.local[0], socket.local_port], [socket.remote[0], socket.remote_port]);
                Some((socket.family, socket.protocol, ends, socket.peer, socket.protocol_name.to_vec(), socket.address.to_vec()))
            }
            _ => None,
        };
        assert_eq!(is(&note), Some((2, 6, ([7, 80], [8, 81]), 9, b"TCP".to_vec(), Vec::new())));
        assert_eq!(is(&note[..note.len() - 1]), None);
        note.extend(b"/x");
        assert_eq!(is(&note).map(|is| is.5), Some(b"/x".to_vec()));
    }

    #[test]
    fn a_list_gives_what_stood_still() {
        let one = |tid: i32, stood_still: u64| {
            let head = [100u64.to_le_bytes(), (7 | (tid as u64) << 32).to_le_bytes()].concat();
            [head, record(&piece_bytes(1, 1, b"x", [0, 0, 0])), stood_still.to_le_bytes().to_vec()].concat()
        };
        let list = [one(8, 1), one(9, 0), one(10, 1)].concat();
        let found = listed(&list);
        assert_eq!(found.iter().map(|one| one.task.tid).collect::<Vec<_>>(), [8, 10]);
        assert_eq!((found[0].time, found[0].task.pid, Seen::parse(found[0].call).unwrap().nr), (Time(100), 7, 59));
        assert_eq!(listed(&list[..list.len() - 1]).len(), 1, "a cut list has no last call");
    }

    #[test]
    fn stacks_of_calls_in_flight() {
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
        fn any_list_of_stacks_is_read(list in proptest::collection::vec(any::<u8>(), 0..1_000)) {
            prop_assert!(listed_stacks(&list).iter().all(|stack| stack.memory.stack.len() <= list.len()));
        }

        #[test]
        fn any_bytes_are_read(raw in proptest::collection::vec(any::<u8>(), 0..400), fits in any::<bool>()) {
            let mut raw = raw;
            if fits && raw.len() >= CALL_BYTES {
                (raw[BITS - 1], raw[BITS]) = (raw[BITS - 1] % 6, raw[BITS] % 4);
                let payload = (raw.len() - CALL_BYTES) as u16;
                raw[PAYLOAD..PAYLOAD + 2].copy_from_slice(&payload.to_le_bytes());
            }
            let mut call = call();
            if let Some(seen) = Seen::parse(&raw) {
                add_pieces(seen.pieces, &mut call);
            }
            prop_assert!(call.payload.len() <= raw.len() * raw.len());
            prop_assert!(call.pieces.iter().all(|piece| call.bytes(piece).len() == piece.len as usize));
            listed(&raw);
        }
    }
}
