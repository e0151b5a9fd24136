//! The record of a user event, to which the fields are added in order.
//!
//! ```text
//! index | fields in order, each with its own size | contents of texts and dynamic arrays
//! ```
//! The index is the kernel's number of the event, which [`Registration::write`](crate::event::Registration::write)
//! fills in.

use std::fmt;

/// The maximum number of bytes of a record's fields and their contents: the maximum of perf's records
/// (PERF_MAX_TRACE_SIZE in include/linux/trace_events.h) without the kernel's header.
pub const FIELD_BYTES_MAX: usize = 8192 - HEADER_BYTES;

/// The size of a field with the length and the offset of contents that follow all fields.
pub const WORD_BYTES: usize = 4;

/// The size of the kernel's header of a record, which precedes the fields (struct trace_entry).
const HEADER_BYTES: usize = 8;

/// The size of the event's number, which precedes the fields when they are written to the kernel.
const INDEX_BYTES: usize = size_of::<u32>();

/// Spare capacity for texts, so that short ones do not require another allocation.
const SPARE_BYTES: usize = 128;

/// A record to which fields are added.
#[derive(Debug)]
pub struct Record {
    bytes: Vec<u8>,
    /// The offset of the next field.
    next: usize,
    /// The offset of the end of the fields.
    fields_end: usize,
}

/// The position from which the offset of a field's contents is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetBase {
    /// The beginning of the record: `__data_loc`.
    Record,
    /// The end of the field itself: `__rel_loc`.
    FieldEnd,
}

/// The error that a record is longer than the kernel allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The bytes of its fields and of their contents.
    pub bytes: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record has {} bytes, but the kernel keeps at most {FIELD_BYTES_MAX}", self.bytes)
    }
}

impl std::error::Error for TooLong {}

impl Record {
    /// Creates an empty record. `field_bytes` is the total size of the fields, without the contents of texts and
    /// dynamic arrays.
    pub fn of(field_bytes: usize) -> Record {
        let fields_end = INDEX_BYTES + field_bytes;
        let mut bytes = Vec::with_capacity(fields_end + SPARE_BYTES);
        bytes.resize(fields_end, 0);
        Record { bytes, next: INDEX_BYTES, fields_end }
    }

    /// Adds the next field. Bytes beyond the end of the fields are ignored.
    pub fn put(&mut self, bytes: &[u8]) {
        for (to, byte) in self.bytes[..self.fields_end].iter_mut().skip(self.next).zip(bytes) {
            *to = *byte;
        }
        self.next += bytes.len();
    }

    /// Adds a dynamic array as the next field. Its contents follow all fields.
    pub fn put_dynamic(&mut self, bytes: &[u8], from: OffsetBase) {
        self.put_word(bytes.len(), from);
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a text as the next field. Its contents follow all fields and end with a NUL.
    pub fn put_text(&mut self, text: &[u8], from: OffsetBase) {
        self.put_word(text.len() + 1, from);
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
    }

    fn put_word(&mut self, length: usize, from: OffsetBase) {
        let offset = match from {
            OffsetBase::Record => HEADER_BYTES + self.bytes.len() - INDEX_BYTES,
            OffsetBase::FieldEnd => self.bytes.len().saturating_sub(self.next + WORD_BYTES),
        };
        self.put(&((length as u32) << 16 | (offset as u32 & 0xffff)).to_ne_bytes());
    }

    /// Returns the fields and their contents.
    ///
    /// # Errors
    /// They are too long. The kernel would drop the record without an error.
    pub fn fields(&self) -> Result<&[u8], TooLong> {
        let fields = &self.bytes[INDEX_BYTES..];
        if fields.len() > FIELD_BYTES_MAX { Err(TooLong { bytes: fields.len() }) } else { Ok(fields) }
    }

    /// Returns the complete record of the event with this number.
    ///
    /// # Errors
    /// As [`Record::fields`].
    pub(crate) fn numbered(&mut self, index: u32) -> Result<&[u8], TooLong> {
        self.fields()?;
        self.bytes[..INDEX_BYTES].copy_from_slice(&index.to_ne_bytes());
        Ok(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_texts_and_arrays_follow_the_fields() {
        let mut record = Record::of(2 * WORD_BYTES + 1);
        record.put_text(b"hi", OffsetBase::FieldEnd);
        record.put_dynamic(&[1, 2], OffsetBase::Record);
        record.put(&[7]);
        // The text begins 5 bytes after the end of its field, the array 8 + 9 + 3 bytes after the beginning of the
        // record.
        let fields: Vec<u8> = [&0x0003_0005_u32.to_ne_bytes()[..], &0x0002_0014_u32.to_ne_bytes(), &[7], b"hi\0", &[1, 2]].concat();
        assert_eq!(record.fields().unwrap(), fields);
        let numbered = [&9_u32.to_ne_bytes()[..], &fields].concat();
        assert_eq!(record.numbered(9).unwrap(), numbered);
    }

    #[test]
    fn fields_never_overwrite_the_contents_behind_them() {
        let mut record = Record::of(WORD_BYTES + 1);
        record.put_text(b"x", OffsetBase::FieldEnd);
        record.put(&[1]);
        record.put(&[2, 3]);
        assert_eq!(record.fields().unwrap()[WORD_BYTES..], [1, b'x', 0]);
    }

    #[test]
    fn records_longer_than_the_kernel_allows_are_errors() {
        let put = |bytes: usize| {
            let mut record = Record::of(WORD_BYTES);
            record.put_dynamic(&vec![b'x'; bytes], OffsetBase::FieldEnd);
            record.numbered(1).map(<[u8]>::len).map_err(|error| error.bytes)
        };
        assert_eq!(put(FIELD_BYTES_MAX - WORD_BYTES), Ok(INDEX_BYTES + FIELD_BYTES_MAX));
        assert_eq!(put(FIELD_BYTES_MAX), Err(FIELD_BYTES_MAX + WORD_BYTES));
    }
}
