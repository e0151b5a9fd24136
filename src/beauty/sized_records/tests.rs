use super::*;
use crate::event::PieceState;
use proptest::prelude::*;

/// A header whose length does not include the header, as that of connector messages.
static DATA_LENGTH: RecordHeader = RecordHeader { counts_header: false, ..template() };
static HEADERS: [&RecordHeader; 7] = [&NETLINK_MESSAGE, &ATTRIBUTE, &NEXT_HOP, &CONTROL_MESSAGE, &DIRENT64, &DIRENT, &DATA_LENGTH];
const ABIS: [Abi; 4] = [Abi::X86_64, Abi::I386, Abi::X32, Abi::Aarch64];

const fn template() -> RecordHeader {
    RecordHeader { of: &structs::NLATTR, length: "nla_len", counts_header: true, alignment: Alignment::Bytes(4), has_limit: false }
}

/// The address of the memory. 0 would mean that the memory was put together from parts and has none.
const BASE: u64 = 0x1000;

fn memory(bytes: &[u8], wanted: u64) -> Memory<'_> {
    Memory { bytes, address: BASE, wanted, state: PieceState::Ok, count: None }
}

/// Returns a record with so many bytes of data and its padding. All its bytes but those of the length are 0xff.
fn record(header: &RecordHeader, abi: Abi, data: usize) -> Vec<u8> {
    let length = header.bytes(abi) + data;
    let mut bytes = vec![0xff; length];
    write_length(header, abi, &mut bytes, if header.counts_header { length } else { data } as u64);
    bytes.resize(length.next_multiple_of(header.records(memory(&[], 0), abi).alignment), 0xff);
    bytes
}

fn write_length(header: &RecordHeader, abi: Abi, record: &mut [u8], length: u64) {
    let (at, bytes) = header.place_of_length(abi);
    record[at..at + bytes].copy_from_slice(&length.to_le_bytes()[..bytes]);
}

/// Returns offsets and lengths of the records, and the number of bytes after them that are none; `None` if there may be
/// more records.
fn walked(header: &RecordHeader, abi: Abi, of: Memory<'_>) -> (Vec<(usize, usize)>, Option<usize>) {
    let mut records = header.records(of, abi);
    let found = records.by_ref().map(|record| ((record.address - BASE) as usize, record.wanted as usize)).collect();
    let rest = match records.rest() {
        Rest::Nothing => Some(0),
        Rest::Bytes(rest) => Some(rest.bytes.len()),
        Rest::More => None,
    };
    (found, rest)
}

fn all() -> impl Iterator<Item = (&'static RecordHeader, Abi)> {
    HEADERS.into_iter().flat_map(|header| ABIS.map(|abi| (header, abi)))
}

#[test]
fn the_row_of_every_header_has_its_length() {
    for (header, abi) in all() {
        let (at, bytes) = header.place_of_length(abi);
        assert!(matches!(bytes, 2 | 4 | 8) && at + bytes <= header.bytes(abi), "{} in {abi:?}: {at}, {bytes}", header.of.name);
    }
}

#[test]
fn memory_of_every_length_has_the_records_that_end_in_it() {
    for (header, abi) in all() {
        let (first, second) = (record(header, abi, 3), record(header, abi, 6));
        let bytes = [&first[..], &second].concat();
        let places = [(0, header.bytes(abi) + 3), (first.len(), header.bytes(abi) + 6)];
        for length in 0..=bytes.len() {
            let count = places.iter().filter(|(at, record)| at + record <= length).count();
            let end = [0, first.len(), bytes.len()][count];
            let expected = (places[..count].to_vec(), Some(length.saturating_sub(end)));
            let found = walked(header, abi, memory(&bytes[..length], length as u64));
            assert_eq!(found, expected, "{} bytes of {} in {abi:?}", length, header.of.name);
        }
    }
}

#[test]
fn memory_that_was_copied_to_any_length_has_the_records_whose_length_was_copied() {
    for (header, abi) in all() {
        let (first, second) = (record(header, abi, 3), record(header, abi, 6));
        let bytes = [&first[..], &second].concat();
        let places = [(0, header.bytes(abi) + 3), (first.len(), header.bytes(abi) + 6)];
        let (at, size) = header.place_of_length(abi);
        for length in 0..=bytes.len() {
            let count = places.iter().filter(|(begin, _)| begin + at + size <= length).count();
            let expected = (places[..count].to_vec(), (count == 2).then_some(0));
            let found = walked(header, abi, memory(&bytes[..length], bytes.len() as u64));
            assert_eq!(found, expected, "{} bytes of {} in {abi:?}", length, header.of.name);
        }
    }
}

#[test]
fn a_length_that_no_record_has_ends_the_walk() {
    for (header, abi) in all() {
        let least = if header.counts_header { header.bytes(abi) as u64 } else { 0 };
        let whole = [record(header, abi, 0), record(header, abi, 2)].concat();
        let left = (whole.len() - header.bytes(abi)) as u64;
        for length in [least.wrapping_sub(1), least + left - header.bytes(abi) as u64 + 1, u64::MAX] {
            let mut bytes = whole.clone();
            let second = header.bytes(abi);
            write_length(header, abi, &mut bytes[second..], length);
            let found = walked(header, abi, memory(&bytes, bytes.len() as u64));
            assert_eq!(found, (vec![(0, second)], Some(bytes.len() - second)), "{length} in {} in {abi:?}", header.of.name);
        }
    }
}

#[test]
fn the_largest_length_ends_the_walk() {
    let mut bytes = record(&CONTROL_MESSAGE, Abi::X86_64, 0);
    write_length(&CONTROL_MESSAGE, Abi::X86_64, &mut bytes, u64::MAX);
    assert_eq!(walked(&CONTROL_MESSAGE, Abi::X86_64, memory(&bytes, u64::MAX)), (vec![(0, usize::MAX)], Some(0)));
}

proptest! {
    /// Whatever the bytes are, records are one after the other in the memory.
    #[test]
    fn records_do_not_overlap(of in 0usize..7, abi in 0usize..4, mut bytes in proptest::collection::vec(0u8..24, 0..200), more in 0u64..32) {
        let (header, abi) = (HEADERS[of], ABIS[abi]);
        // Most lengths of several bytes are then possible.
        for at in (1..bytes.len()).step_by(2) {
            bytes[at] = 0;
        }
        let wanted = bytes.len() as u64 + more;
        let (found, rest) = walked(header, abi, memory(&bytes, wanted));
        for pair in found.windows(2) {
            prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0);
        }
        let end = found.last().map_or(0, |(at, length)| at + length);
        prop_assert!(end as u64 <= wanted && found.iter().all(|(_, length)| *length >= header.bytes(abi)));
        prop_assert!(rest.is_none_or(|rest| end + rest <= bytes.len().max(end)), "{found:?} {rest:?}");
    }
}
