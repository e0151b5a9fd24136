//! Packs records of calls for files: a call of two arguments has some 25 bytes in place of 96, and each piece some 5 in
//! place of 24.
//!
//! A packed record begins with the CPU. A mask of 16 bits follows, one for each field that is not zero, and then the
//! values of these fields as numbers of variable length ([`super::varint`]). Time and task are not in it, because the
//! sample of the file has them. The pieces follow, each with a head of two bytes, the numbers that do not follow from
//! the head, and its bytes without padding.
//!
//! A file names the fields and the kinds of records in the order in which it numbers them ([`CallLayout`]), so that
//! another version of rtrace reads it, or says which of them it does not know.
//!
//! Unpacking gives the same bytes, apart from padding, which nothing reads and which becomes zero. Bytes that are not a
//! record as the programs write it are kept as they are.

use super::pieces::{ARG_RETURN, PIECE_BYTES};
use super::varint::{append_number, folded, number, unfolded};
use super::{CALL_BYTES, PAYLOAD, RECORD_KINDS};
use crate::event::{TaskId, Time};
use serde::{Deserialize, Serialize};

/// The name of this way to pack, which changes when mask, numbers or pieces look different.
const FORM: &str = "mask of 16 bits, prefixed numbers";

/// The fields of a packed record, by their bits in the mask. All are numbers as `struct call` has them, except for the
/// first, which is the time since `start`, and for the last, which is not a number: the pieces follow.
const FIELDS: [&str; 16] = [
    "time_since_start",
    "ret",
    "arg0",
    "arg1",
    "arg2",
    "arg3",
    "arg4",
    "arg5",
    "nr",
    "tid",
    "pid",
    "lost",
    "late",
    "how",
    "bits",
    "pieces",
];
const RET: usize = 1;
const ARGS: usize = 2;
const NR: usize = 8;
const TID: usize = 9;
const PID: usize = 10;
const LOST: usize = 11;
const LATE: usize = 12;
const HOW: usize = 13;
const BITS: usize = 14;
const PIECES: usize = 15;

/// In the number with which a record begins, beside the CPU: the bytes are not packed, and their number follows.
const IS_UNPACKED: u64 = 1;

/// The largest number of pieces that are packed one by one. In place of a number of pieces, [`AS_THEY_ARE`] says that
/// the bytes behind the record are not pieces.
const PIECES_MAX: u8 = 254;
const AS_THEY_ARE: u8 = 255;

/// Bits of the second byte of a piece's head. The lower bits are `when` (2) and `state` (2).
const CONTINUES: u8 = 1 << 4;
/// The address is the value of the argument, or of the return.
const AT_ARGUMENT: u8 = 1 << 5;
/// All bytes that the call names are there.
const IS_WHOLE: u8 = 1 << 6;

/// How a file numbers what packed records have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLayout {
    /// How numbers and pieces are packed.
    pub form: String,
    /// The fields, in the order of their bits in the mask.
    pub fields: Vec<String>,
    /// The kinds of records, in the order of their numbers.
    pub kinds: Vec<String>,
}

impl Default for CallLayout {
    /// Returns the layout that [`pack`] writes.
    fn default() -> CallLayout {
        CallLayout {
            form: FORM.to_owned(),
            fields: FIELDS.iter().map(|&name| name.to_owned()).collect(),
            kinds: RECORD_KINDS.iter().map(|kind| format!("{kind:?}")).collect(),
        }
    }
}

/// A reader of packed records.
#[derive(Clone, Debug)]
pub struct Unpacker {
    /// The field of each bit of the mask.
    fields: [u8; 16],
    /// The number of each kind of the file; `None` if this version does not know the kind.
    kinds: Vec<Option<u8>>,
}

impl Unpacker {
    /// Returns a reader of the records of a file with this layout.
    ///
    /// # Errors
    /// This version of rtrace does not know a part of the layout: a clause about it that follows the name of the file.
    pub fn new(layout: &CallLayout) -> Result<Unpacker, String> {
        if layout.form != FORM {
            return Err(format!("has records that are packed in a form that this version of rtrace does not know ({})", layout.form));
        }
        // Bits without a name are never set.
        let mut fields = [u8::MAX; 16];
        for (at, name) in layout.fields.iter().enumerate() {
            let known = FIELDS.iter().position(|field| field == name).filter(|_| at < 16);
            let Some(known) = known else {
                return Err(format!("has calls with a field `{name}`, which this version of rtrace does not know"));
            };
            fields[at] = known as u8;
        }
        let number = |name: &String| RECORD_KINDS.iter().position(|kind| format!("{kind:?}") == *name).map(|at| at as u8);
        Ok(Unpacker { fields, kinds: layout.kinds.iter().map(number).collect() })
    }

    /// Appends the raw bytes of the record that these bytes begin with to `out`. Returns `None` if they do not hold a
    /// record, or one of a kind that this version does not know; `out` may have a part of it then.
    pub fn unpack(&self, bytes: &[u8], time: Time, task: TaskId, out: &mut Vec<u8>) -> Option<()> {
        let mut rest = bytes;
        if number(&mut rest)? & IS_UNPACKED != 0 {
            let length = usize::try_from(number(&mut rest)?).ok()?;
            out.extend_from_slice(taken(&mut rest, length)?);
            return Some(());
        }
        let (mask, mut rest) = rest.split_first_chunk()?;
        let mut mask = u16::from_le_bytes(*mask);
        let mut values = [0u64; 16];
        while mask != 0 {
            let field = usize::from(self.fields[mask.trailing_zeros() as usize]);
            mask &= mask - 1;
            *values.get_mut(field)? = if field == PIECES { 1 } else { number(&mut rest)? };
        }
        let how = self.kinds.get(values[HOW] as usize).copied()??;
        let begin = out.len();
        let ret = unfolded(values[RET]);
        let mut head = [0; CALL_BYTES];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &time.0.to_le_bytes());
        put(8, &time.0.wrapping_sub(values[0]).to_le_bytes());
        put(16, &ret.to_le_bytes());
        (0..6).for_each(|at| put(24 + 8 * at, &values[ARGS + at].to_le_bytes()));
        put(72, &(values[NR] as u32).to_le_bytes());
        put(76, &(values[TID] as u32 ^ task.tid as u32).to_le_bytes());
        put(80, &(values[PID] as u32 ^ task.pid as u32).to_le_bytes());
        put(84, &(values[LOST] as u32).to_le_bytes());
        put(88, &(values[LATE] as u32).to_le_bytes());
        put(94, &[how, values[BITS] as u8]);
        out.extend_from_slice(&head);
        if values[PIECES] != 0 {
            unpack_pieces(&mut rest, &values, out)?;
            let payload = u16::try_from(out.len() - begin - CALL_BYTES).ok()?;
            out[begin + PAYLOAD..][..2].copy_from_slice(&payload.to_le_bytes());
        }
        // The kernel pads the raw bytes of a sample so that they end 4 bytes after a multiple of 8.
        out.resize(begin + raw_bytes(out.len() - begin), 0);
        Some(())
    }
}

/// Appends the raw bytes of a sample as a packed record, without its time and task, which are those of the sample.
/// `cpu` is that of the ring. Bytes that are not a record as the programs write it are appended as they are.
pub fn pack(raw: &[u8], cpu: u32, time: Time, task: TaskId, out: &mut Vec<u8>) {
    let begin = out.len();
    append_number(u64::from(cpu) << 1, out);
    if !pack_record(raw, time, task, out) {
        out.truncate(begin);
        append_number(u64::from(cpu) << 1 | IS_UNPACKED, out);
        append_number(raw.len() as u64, out);
        out.extend_from_slice(raw);
    }
}

/// Returns the CPU of a packed record; `None` if the bytes are not one.
pub fn cpu(mut bytes: &[u8]) -> Option<u32> {
    u32::try_from(number(&mut bytes)? >> 1).ok()
}

/// Appends a record. Returns `false` if the bytes are not a record as the programs write it.
fn pack_record(raw: &[u8], time: Time, task: TaskId, out: &mut Vec<u8>) -> bool {
    let Some((head, behind)) = raw.split_first_chunk::<CALL_BYTES>() else { return false };
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
    let payload = usize::from(u16::from_le_bytes([head[PAYLOAD], head[PAYLOAD + 1]]));
    let (ret, how) = (word(16), head[94]);
    if raw.len() != raw_bytes(CALL_BYTES + payload) || time.0 != word(0) || usize::from(how) >= RECORD_KINDS.len() {
        return false;
    }
    let values: [u64; 15] = [
        time.0.wrapping_sub(word(8)),
        folded(ret),
        word(24),
        word(32),
        word(40),
        word(48),
        word(56),
        word(64),
        half(72).into(),
        (half(76) ^ task.tid as u32).into(),
        (half(80) ^ task.pid as u32).into(),
        half(84).into(),
        half(88).into(),
        how.into(),
        head[95].into(),
    ];
    let at = out.len();
    out.extend_from_slice(&[0; 2]);
    let mut mask = 0u16;
    for (bit, value) in values.iter().enumerate() {
        if *value != 0 {
            mask |= 1 << bit;
            append_number(*value, out);
        }
    }
    if payload > 0 {
        mask |= 1 << PIECES;
        pack_payload(&behind[..payload], &values, out);
    }
    out[at..at + 2].copy_from_slice(&mask.to_le_bytes());
    true
}

/// Returns the size that the kernel gives to raw bytes of this size.
fn raw_bytes(bytes: usize) -> usize {
    (bytes + 4).next_multiple_of(8) - 4
}

/// Appends what follows a record: pieces, or bytes that are not.
fn pack_payload(payload: &[u8], values: &[u64], out: &mut Vec<u8>) {
    let at = out.len();
    out.push(0);
    match pack_pieces(payload, values, out) {
        Some(count) => out[at] = count,
        None => {
            out.truncate(at);
            out.push(AS_THEY_ARE);
            append_number(payload.len() as u64, out);
            out.extend_from_slice(payload);
        }
    }
}

/// Appends pieces, and returns their number; `None` if the bytes are not pieces as the programs write them.
fn pack_pieces(payload: &[u8], values: &[u64], out: &mut Vec<u8>) -> Option<u8> {
    let (mut rest, mut count) = (payload, 0u8);
    while !rest.is_empty() {
        let (head, behind) = rest.split_first_chunk::<PIECE_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let (address, wanted) = (word(0), word(8));
        let length = u32::from_le_bytes([head[16], head[17], head[18], head[19]]);
        let [.., arg, when, state, continues] = *head;
        let (bytes, _) = behind.split_at_checked(length as usize)?;
        rest = behind.get(bytes.len().next_multiple_of(8)..)?;
        if when > 3 || state > 3 || continues > 1 || count == PIECES_MAX {
            return None;
        }
        let (place, is_whole) = (address.wrapping_sub(argument(arg, values)), wanted == u64::from(length));
        let flags = (continues * CONTINUES) | (u8::from(place == 0) * AT_ARGUMENT) | (u8::from(is_whole) * IS_WHOLE);
        out.extend_from_slice(&[arg, when | state << 2 | flags]);
        if place != 0 {
            append_number(folded(place), out);
        }
        if !is_whole {
            append_number(wanted, out);
        }
        append_number(length.into(), out);
        out.extend_from_slice(bytes);
        count += 1;
    }
    Some(count)
}

/// Appends what [`pack_payload`] packed to `out`.
fn unpack_pieces(rest: &mut &[u8], values: &[u64], out: &mut Vec<u8>) -> Option<()> {
    let (count, behind) = rest.split_first()?;
    *rest = behind;
    if *count == AS_THEY_ARE {
        let length = usize::try_from(number(rest)?).ok()?;
        out.extend_from_slice(taken(rest, length)?);
        return Some(());
    }
    for _ in 0..*count {
        let [arg, bits] = *taken(rest, 2)? else { return None };
        let place = if bits & AT_ARGUMENT == 0 { unfolded(number(rest)?) } else { 0 };
        let wanted = if bits & IS_WHOLE == 0 { Some(number(rest)?) } else { None };
        let length = u32::try_from(number(rest)?).ok()?;
        let bytes = taken(rest, length as usize)?;
        let mut head = [0; PIECE_BYTES];
        head[..8].copy_from_slice(&argument(arg, values).wrapping_add(place).to_le_bytes());
        head[8..16].copy_from_slice(&wanted.unwrap_or(length.into()).to_le_bytes());
        head[16..20].copy_from_slice(&length.to_le_bytes());
        head[20..].copy_from_slice(&[arg, bits & 3, bits >> 2 & 3, u8::from(bits & CONTINUES != 0)]);
        out.extend_from_slice(&head);
        out.extend_from_slice(bytes);
        out.resize(out.len() + bytes.len().next_multiple_of(8) - bytes.len(), 0);
    }
    Some(())
}

/// Returns the value that the address of a piece mostly is: that of its argument, or of the return.
fn argument(arg: u8, values: &[u64]) -> u64 {
    match arg & 7 {
        ARG_RETURN => unfolded(values[RET]),
        arg => values.get(ARGS + usize::from(arg)).copied().unwrap_or(0),
    }
}

fn taken<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(bytes)?;
    *rest = behind;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{piece_bytes, returned, written};
    use super::super::{CallRecord, RecordKind};
    use super::*;
    use proptest::prelude::*;

    const TASK: TaskId = TaskId { pid: 7, tid: 7 };

    fn padded(mut raw: Vec<u8>) -> Vec<u8> {
        raw.resize(raw_bytes(raw.len()), 0);
        raw
    }

    /// Packs a record, checks that unpacking gives it again, and returns its packed size.
    fn size(raw: &[u8], task: TaskId) -> usize {
        let time = super::super::time(raw).unwrap();
        let (mut packed, mut again) = (Vec::new(), Vec::new());
        pack(raw, 3, time, task, &mut packed);
        assert_eq!(cpu(&packed), Some(3));
        Unpacker::new(&CallLayout::default()).unwrap().unpack(&packed, time, task, &mut again).unwrap();
        assert_eq!(again, raw);
        packed.len()
    }

    #[test]
    fn a_small_call_takes_a_fraction_of_its_record() {
        // read(0, "x", 1) = 1 of a file that was named before.
        let pieces = [piece_bytes(0x5566_7788_9900, 1, b"x", [1, 1, 0]), piece_bytes(0, 12, b"", [0x80, 0, 0])].concat();
        let read = CallRecord { ret: 1, args: [0, 0x5566_7788_9900, 1, 0, 0, 0], ..returned(7, 0, 1_000_000, 1_000_400) };
        let raw = padded(written(&read, &pieces));
        assert_eq!((raw.len(), size(&raw, TASK)), (156, 23));
        // What is not as usual costs more.
        let other = CallRecord { kind: RecordKind::Entry, lost: 3, late: 70_000, args: [u64::MAX; 6], ret: i64::MIN, ..read };
        assert_eq!(size(&padded(written(&other, &pieces)), TaskId { pid: 1, tid: 2 }), 92);
    }

    #[test]
    fn what_is_not_made_of_pieces_is_kept_as_it_is() {
        let end = CallRecord { kind: RecordKind::Aggregate, ..returned(7, 0, 5, 9) };
        assert_eq!(size(&padded(written(&end, b"not pieces at all, but numbers of calls")), TASK), 46);
        let as_it_is = |raw: &[u8], time: u64| {
            let (mut packed, mut again) = (Vec::new(), Vec::new());
            pack(raw, 300, Time(time), TASK, &mut packed);
            Unpacker::new(&CallLayout::default()).unwrap().unpack(&packed, Time(time), TASK, &mut again).unwrap();
            assert_eq!((&again[..], cpu(&packed)), (raw, Some(300)));
            packed.len() - raw.len()
        };
        assert_eq!(as_it_is(&[1; 95], 1), 3, "too short");
        let mut raw = padded(written(&end, b""));
        assert_eq!(as_it_is(&raw, 8), 3, "of another time");
        raw[94] = 99;
        assert_eq!(as_it_is(&raw, 9), 3, "of no kind");
    }

    #[test]
    fn layouts_of_other_versions_are_read_by_name_or_refused() {
        let read = CallRecord { ret: -2, args: [1, 2, 3, 4, 5, 6], ..returned(7, 59, 10, 30) };
        let raw = padded(written(&read, b""));
        let mut packed = Vec::new();
        pack(&raw, 0, Time(30), TASK, &mut packed);
        // The same fields in another order: each value is found by its name.
        let mut layout = CallLayout::default();
        layout.fields.swap(ARGS, ARGS + 5);
        let mut again = Vec::new();
        Unpacker::new(&layout).unwrap().unpack(&packed, Time(30), TASK, &mut again).unwrap();
        assert_eq!(CallRecord::parse(&again).unwrap().args, [6, 2, 3, 4, 5, 1]);
        layout.kinds[0] = "Dreamt".to_owned();
        assert_eq!(Unpacker::new(&layout).unwrap().unpack(&packed, Time(30), TASK, &mut again), None);
        layout.fields[3] = "mood".to_owned();
        assert_eq!(Unpacker::new(&layout).unwrap_err(), "has calls with a field `mood`, which this version of rtrace does not know");
        layout.form = "knots".to_owned();
        assert!(Unpacker::new(&layout).unwrap_err().ends_with("(knots)"));
    }

    proptest! {
        #[test]
        fn any_record_is_unpacked_as_it_was(words: [u64; 12], shifts: [u8; 12], pieces: Vec<(u64, u64, Vec<u8>, [u8; 3])>, pid: i32) {
            let mut raw: Vec<u8> = words.iter().zip(shifts).flat_map(|(word, shift)| (word >> (shift % 64)).to_le_bytes()).collect();
            let pieces: Vec<u8> =
                pieces.iter().flat_map(|(at, wanted, bytes, [arg, when, state])| piece_bytes(*at, *wanted, bytes, [*arg, when % 5, state % 5])).collect();
            raw[PAYLOAD..PAYLOAD + 2].copy_from_slice(&(pieces.len() as u16).to_le_bytes());
            raw[94] %= 13;
            raw.extend(pieces);
            size(&padded(raw), TaskId { pid, tid: 7 });
        }

        #[test]
        fn any_bytes_are_unpacked_without_panic(bytes: Vec<u8>) {
            let mut out = Vec::new();
            _ = Unpacker::new(&CallLayout::default()).unwrap().unpack(&bytes, Time(1), TASK, &mut out);
        }
    }
}
