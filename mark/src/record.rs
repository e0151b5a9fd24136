//! The bytes of a user event's record, as its fields are put into it one after the other.
//!
//! ```text
//! index | fields in order, each of its own size | what texts and arrays of any length point to
//! ```
//! The index is the number by which the kernel knows the event; [`Registration::write`](crate::event::Registration::write)
//! puts it there.

use std::fmt;

/// The most bytes that a record's fields may have: what perf's records have room for (PERF_MAX_TRACE_SIZE in
/// include/linux/trace_events.h) without the kernel's part.
pub const FIELD_BYTES_MAX: usize = 8192 - HEADER_BYTES;

/// The bytes of the word that says the length and place of what is behind all fields.
pub const WORD_BYTES: usize = 4;

/// The bytes of the kernel's part of a record, which stands before ours (struct trace_entry).
const HEADER_BYTES: usize = 8;

/// The bytes of the number that the kernel wants before each record's fields.
const INDEX_BYTES: usize = size_of::<u32>();

/// Room for texts, so that putting short ones takes no other allocation.
const SPARE_BYTES: usize = 128;

/// A record that is being made.
#[derive(Debug)]
pub struct Record {
    bytes: Vec<u8>,
    /// Where the next field begins.
    next: usize,
    /// Where the fields end.
    fields_end: usize,
}

/// What a field's word counts the place of its bytes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedFrom {
    /// The record's beginning: `__data_loc`.
    Record,
    /// The end of the field's own word: `__rel_loc`.
    FieldEnd,
}

/// A record is longer than the kernel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The bytes of its fields and of what they point to.
    pub bytes: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a record of {} bytes is longer than the {FIELD_BYTES_MAX} that the kernel keeps", self.bytes)
    }
}

impl std::error::Error for TooLong {}

impl Record {
    /// An empty record for fields of so many bytes together. What texts and arrays point to is not among these.
    pub fn of(field_bytes: usize) -> Record {
        let fields_end = INDEX_BYTES + field_bytes;
        let mut bytes = Vec::with_capacity(fields_end + SPARE_BYTES);
        bytes.resize(fields_end, 0);
        Record { bytes, next: INDEX_BYTES, fields_end }
    }

    /// Puts the next field. What would be behind the end of the fields is left out.
    pub fn put(&mut self, bytes: &[u8]) {
        for (place, byte) in self.bytes[..self.fields_end].iter_mut().skip(self.next).zip(bytes) {
            *place = *byte;
        }
        self.next += bytes.len();
    }

    /// Puts the next field as a word that points to these bytes, which are behind all fields.
    pub fn put_elsewhere(&mut self, bytes: &[u8], from: CountedFrom) {
        self.put_word(bytes.len(), from);
        self.bytes.extend_from_slice(bytes);
    }

    /// Puts the next field as a word that points to this text, which a NUL ends.
    pub fn put_text(&mut self, text: &[u8], from: CountedFrom) {
        self.put_word(text.len() + 1, from);
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
    }

    fn put_word(&mut self, length: usize, from: CountedFrom) {
        let offset = match from {
            CountedFrom::Record => HEADER_BYTES + self.bytes.len() - INDEX_BYTES,
            CountedFrom::FieldEnd => self.bytes.len().saturating_sub(self.next + WORD_BYTES),
        };
        self.put(&((length as u32) << 16 | (offset as u32 & 0xffff)).to_ne_bytes());
    }

    /// The fields and what they point to.
    ///
    /// # Errors
    /// They are too long: the kernel would lose the record without a word.
    pub fn fields(&self) -> Result<&[u8], TooLong> {
        let fields = &self.bytes[INDEX_BYTES..];
        if fields.len() > FIELD_BYTES_MAX { Err(TooLong { bytes: fields.len() }) } else { Ok(fields) }
    }

    /// The whole record for the event of this number.
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
    fn words_point_to_what_is_behind_the_fields() {
        let mut record = Record::of(2 * WORD_BYTES + 1);
        record.put_text(b"hi", CountedFrom::FieldEnd);
        record.put_elsewhere(&[1, 2], CountedFrom::Record);
        record.put(&[7]);
        // The text is 5 bytes behind the end of its word, the array 8 + 9 + 3 bytes behind the record's beginning.
        let fields: Vec<u8> = [&0x0003_0005_u32.to_ne_bytes()[..], &0x0002_0014_u32.to_ne_bytes(), &[7], b"hi\0", &[1, 2]].concat();
        assert_eq!(record.fields().unwrap(), fields);
        let numbered = [&9_u32.to_ne_bytes()[..], &fields].concat();
        assert_eq!(record.numbered(9).unwrap(), numbered);
    }

    #[test]
    fn a_field_never_reaches_what_is_behind_the_fields() {
        let mut record = Record::of(WORD_BYTES + 1);
        record.put_text(b"x", CountedFrom::FieldEnd);
        record.put(&[1]);
        record.put(&[2, 3]);
        assert_eq!(record.fields().unwrap()[WORD_BYTES..], [1, b'x', 0]);
    }

    #[test]
    fn a_record_is_no_longer_than_the_kernel_keeps() {
        let put = |bytes: usize| {
            let mut record = Record::of(WORD_BYTES);
            record.put_elsewhere(&vec![b'x'; bytes], CountedFrom::FieldEnd);
            record.numbered(1).map(<[u8]>::len).map_err(|error| error.bytes)
        };
        assert_eq!(put(FIELD_BYTES_MAX - WORD_BYTES), Ok(INDEX_BYTES + FIELD_BYTES_MAX));
        assert_eq!(put(FIELD_BYTES_MAX), Err(FIELD_BYTES_MAX + WORD_BYTES));
    }
}
