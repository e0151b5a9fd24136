//! The bytes of a user event's record, as its fields are put into it one after the other.
//!
//! ```text
//! index | fields in order, each of its own size | what texts and arrays of any length point to
//! ```

use crate::sys::user_events::INDEX_BYTES;
use smallvec::{SmallVec, smallvec};

/// Bytes of a record's fields at most: what perf's records have room for (PERF_MAX_TRACE_SIZE, include/linux/trace_events.h) without the kernel's part.
pub const FIELD_BYTES_MAX: usize = 8192 - HEADER_BYTES;

/// The kernel's part of a record, which stands before ours (struct trace_entry).
const HEADER_BYTES: usize = 8;

/// The length and place of what is elsewhere.
pub const WORD_BYTES: usize = 4;

/// A record that is being made.
#[derive(Debug)]
pub struct Record {
    bytes: SmallVec<[u8; 128]>,
    /// Where the next field begins.
    next: usize,
}

/// What a field's word counts the place of its bytes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedFrom {
    /// `__data_loc`
    Record,
    /// `__rel_loc`
    FieldsEnd,
}

/// More than a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {bytes} bytes is longer than the {FIELD_BYTES_MAX} that the kernel keeps")]
pub struct TooLong {
    pub bytes: usize,
}

impl Record {
    /// For fields of so many bytes together, without what lies elsewhere.
    pub fn of(field_bytes: usize) -> Record {
        Record { bytes: smallvec![0; INDEX_BYTES + field_bytes], next: INDEX_BYTES }
    }

    /// The next field; it ends where the fields end.
    pub fn put(&mut self, bytes: &[u8]) {
        for (place, byte) in self.bytes.iter_mut().skip(self.next).zip(bytes) {
            *place = *byte;
        }
        self.next += bytes.len();
    }

    /// The next field, whose bytes are behind all fields.
    pub fn put_elsewhere(&mut self, bytes: &[u8], from: CountedFrom) {
        let offset = match from {
            CountedFrom::Record => HEADER_BYTES + self.bytes.len() - INDEX_BYTES,
            CountedFrom::FieldsEnd => self.bytes.len().saturating_sub(self.next + WORD_BYTES),
        };
        self.put(&((bytes.len() as u32) << 16 | (offset as u32 & 0xffff)).to_ne_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// The same for text, which ends in a NUL.
    pub fn put_text(&mut self, text: &[u8], from: CountedFrom) {
        let mut bytes: SmallVec<[u8; 128]> = SmallVec::from_slice(text);
        bytes.push(0);
        self.put_elsewhere(&bytes, from);
    }

    /// The whole, with room for the index before it.
    ///
    /// # Errors
    /// It is too long: the kernel would lose it without a word.
    pub fn finish(&mut self) -> Result<&mut [u8], TooLong> {
        let bytes = self.bytes.len() - INDEX_BYTES;
        if bytes > FIELD_BYTES_MAX { Err(TooLong { bytes }) } else { Ok(&mut self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::format::Format;

    /// The fields as rtrace itself reads them out of a record, which begins with the kernel's part.
    fn read(record: &mut Record, declarations: &[&str]) -> Vec<Vec<u8>> {
        let bytes = record.finish().unwrap();
        let raw = [&[0; HEADER_BYTES], &bytes[INDEX_BYTES..]].concat();
        let fields: String = declarations.iter().map(|field| format!("\tfield:{field}\n")).collect();
        let format = Format::parse(&format!("name: x\nID: 1\n{fields}")).unwrap();
        format.fields.iter().map(|field| field.bytes(&raw).unwrap().to_vec()).collect()
    }

    #[test]
    fn what_is_put_is_read() {
        let mut record = Record::of(4 + 4 + 4 + 2);
        record.put(&7u32.to_ne_bytes());
        record.put_text(b"hello", CountedFrom::FieldsEnd);
        record.put_elsewhere(&[1, 2, 3], CountedFrom::Record);
        record.put(&9u16.to_ne_bytes());
        let fields = read(
            &mut record,
            &[
                "u32 a;offset:8;size:4;signed:0;",
                "__rel_loc char b[];offset:12;size:4;signed:1;",
                "__data_loc u8[] c;offset:16;size:4;signed:1;",
                "u16 d;offset:20;size:2;signed:0;",
            ],
        );
        assert_eq!(fields, [&[7, 0, 0, 0][..], b"hello\0", &[1, 2, 3], &[9, 0]]);
    }

    #[test]
    fn no_longer_than_the_kernel_keeps() {
        let put = |bytes: usize| {
            let mut record = Record::of(WORD_BYTES);
            record.put_elsewhere(&vec![b'x'; bytes], CountedFrom::FieldsEnd);
            record.finish().map(|bytes| bytes.len()).map_err(|error| error.bytes)
        };
        assert_eq!(put(FIELD_BYTES_MAX - WORD_BYTES), Ok(FIELD_BYTES_MAX + INDEX_BYTES));
        assert_eq!(put(FIELD_BYTES_MAX), Err(FIELD_BYTES_MAX + WORD_BYTES));
    }
}
