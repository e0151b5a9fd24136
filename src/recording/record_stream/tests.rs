use super::*;
use crate::recording::compression::Packer;
use std::io::Write;

/// Returns a record of this type.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let header = u64::from(kind) | ((body.len() + HEADER_BYTES) as u64) << 48;
    [&header.to_le_bytes(), body].concat()
}

/// Returns the kinds and bodies of the records in a file of these bytes, and what is wrong with it.
fn read(bytes: &[u8], data: Section) -> (Vec<(u32, Vec<u8>)>, Vec<String>) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut stream = RecordStream::new(Box::new(Regular { file, size: bytes.len() as u64 }), data);
    let mut records = Vec::new();
    while let Some(record) = stream.next_record() {
        records.push((record.frame.kind, record.frame.body.to_vec()));
    }
    (records, stream.damages().iter().map(ToString::to_string).collect())
}

fn whole(bytes: &[u8]) -> (Vec<(u32, Vec<u8>)>, Vec<String>) {
    read(bytes, Section { offset: 0, size: bytes.len() as u64 })
}

#[test]
fn records_inside_compressed_records_are_read_like_others() {
    let own: Vec<(u32, Vec<u8>)> = (0..2000u32).map(|n| (9, n.to_le_bytes().repeat(1 + n as usize % 40))).collect();
    let bytes: Vec<u8> = own.iter().flat_map(|(kind, body)| record(*kind, body)).collect();
    let packed = Packer::new(1).pack(&bytes, usize::MAX).unwrap();
    // A record may be cut at the end of a compressed one, and the compressed stream anywhere.
    let pieces = packed.chunks(packed.len() / 5);
    let old: Vec<u8> = pieces.clone().flat_map(|piece| record(kind::COMPRESSED, piece)).collect();
    assert_eq!(whole(&[record(3, b"12345678"), old, record(4, &[])].concat()), {
        let outside = [vec![(3, b"12345678".to_vec())], own.clone(), vec![(4, Vec::new())]].concat();
        (outside, Vec::new())
    });
    let padded = |piece: &[u8]| {
        let body = [&(piece.len() as u64).to_le_bytes(), piece].concat();
        let padding = body.len().next_multiple_of(8) - body.len();
        record(kind::COMPRESSED2, &[body, vec![0; padding]].concat())
    };
    let new: Vec<u8> = pieces.flat_map(padded).collect();
    assert_eq!(whole(&new), (own, Vec::new()));
}

#[test]
fn the_data_of_hardware_traces_is_skipped() {
    let trace = |size: u64| [record(kind::AUXTRACE, &size.to_le_bytes()), vec![0xff; size as usize]].concat();
    let bytes = [trace(100), record(3, b"a"), trace(3 << 20), record(4, b"b")].concat();
    assert_eq!(whole(&bytes), (vec![(3, b"a".to_vec()), (4, b"b".to_vec())], Vec::new()));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let bytes = [record(3, b"12345678"), vec![9, 0, 0, 0, 0, 0, 3, 0]].concat();
    let (records, damages) = whole(&bytes);
    assert_eq!((records.len(), damages), (1, vec!["the record at byte 16 has a size of 3 bytes, but only 8 are left".to_owned()]));
    let (_, damages) = read(&bytes, Section { offset: 0, size: 100 });
    assert_eq!(damages[0], "it ends at byte 24, 76 bytes before the end of its records");
    let (_, damages) = whole(&[record(3, b"1"), record(kind::COMPRESSED, b"not compressed")].concat());
    assert_eq!(damages, ["the compressed record at byte 9 cannot be decompressed: Unknown frame descriptor"]);
    let half = Packer::new(1).pack(&record(3, b"12345678")[..12], usize::MAX).unwrap();
    let (records, damages) = whole(&record(kind::COMPRESSED, &half));
    assert!(records.is_empty() && damages.len() == 1, "{damages:?}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>, kind in 60u32..90, offset in 0u64..20, size: u64) {
        read(&bytes, Section { offset, size });
        whole(&[record(kind, &bytes), bytes].concat());
    }
}
