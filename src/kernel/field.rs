//! Reads the values of fields out of a record's raw bytes. Every read is checked against the record's end: a field
//! beyond it is `None`.
//!
//! Numbers are little-endian, as on all machines whose records rtrace reads.

use super::format::{FieldPlace, FormatField};

impl FormatField {
    /// Returns the number without its sign; `None` for sizes other than 1, 2, 4, 8, and beyond the record's end.
    #[inline]
    pub fn unsigned(&self, raw: &[u8]) -> Option<u64> {
        unsigned(self.slice(raw)?)
    }

    /// Returns the number, with its sign if the field is signed. Values of unsigned fields above `i64::MAX` wrap.
    #[inline]
    pub fn number(&self, raw: &[u8]) -> Option<i64> {
        let value = self.unsigned(raw)?;
        Some(if self.signed { sign_extend(value, self.size.min(8) as u8) } else { value as i64 })
    }

    /// Returns the field's bytes, at the field's offset or at the place that it refers to. A `__data_loc` of length
    /// zero is the empty slice.
    #[inline]
    pub fn bytes<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        let base = match self.place {
            FieldPlace::Here if self.array == Some(0) => return raw.get(self.offset as usize..),
            FieldPlace::Here => return self.slice(raw),
            FieldPlace::DataLoc => 0,
            FieldPlace::RelLoc => (self.offset as usize).checked_add(self.size as usize)?,
        };
        let location = u32::try_from(self.unsigned(raw)?).ok()?;
        let (length, start) = ((location >> 16) as usize, base.checked_add((location & 0xffff) as usize)?);
        raw.get(start..start.checked_add(length)?)
    }

    /// Returns the field's bytes up to the first NUL, for text.
    #[inline]
    pub fn text<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        self.bytes(raw).map(until_nul)
    }

    /// Splits a field that refers to several places of the record into one field for each. Probes have such fields for
    /// arrays of texts.
    pub fn places(&self) -> impl Iterator<Item = FormatField> {
        (0..self.size / 4).map(|nth| FormatField { offset: self.offset.saturating_add(4 * nth), size: 4, ..self.clone() })
    }

    /// Returns the size in bytes of an array's elements, or of a field that is no array.
    pub fn element_bytes(&self) -> u8 {
        let bytes = match (self.array, self.place) {
            (Some(count @ 1..), _) => self.size / count,
            (None, FieldPlace::Here) => self.size,
            _ => u32::from(self.ctype().bytes().unwrap_or(1)),
        };
        u8::try_from(bytes).unwrap_or(1).max(1)
    }

    /// Returns the elements of an array, without their sign. An incomplete last element is left out.
    pub fn elements<'a>(&self, raw: &'a [u8]) -> Option<impl Iterator<Item = u64> + 'a> {
        let bytes = self.bytes(raw)?;
        Some(bytes.chunks_exact(usize::from(self.element_bytes())).map_while(unsigned))
    }

    fn slice<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        let start = self.offset as usize;
        raw.get(start..start.checked_add(self.size as usize)?)
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

/// Extends the sign of a number whose size is `bytes` (1..=8).
#[inline]
pub fn sign_extend(value: u64, bytes: u8) -> i64 {
    let unused = 64 - 8 * u32::from(bytes.clamp(1, 8));
    ((value << unused) as i64) >> unused
}

#[inline]
fn unsigned(bytes: &[u8]) -> Option<u64> {
    Some(match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::format::Format;

    fn field(text: &str) -> FormatField {
        Format::parse(&format!("name: x\nID: 1\n\tfield:{text}\n")).unwrap().fields.remove(0)
    }

    #[test]
    fn numbers_of_all_widths_and_signs_are_read() {
        let raw = [0, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(field("s8 a;offset:1;size:1;signed:1;").number(&raw), Some(-1));
        assert_eq!(field("u8 a;offset:1;size:1;signed:0;").number(&raw), Some(255));
        assert_eq!(field("s16 a;offset:1;size:2;signed:1;").number(&raw), Some(-257));
        assert_eq!(field("u32 a;offset:1;size:4;signed:0;").number(&raw), Some(0xffff_feff));
        assert_eq!(field("u64 a;offset:1;size:8;signed:0;").unsigned(&raw), Some(0xffff_ffff_ffff_feff));
    }

    #[test]
    fn fields_beyond_the_records_end_are_none() {
        let raw = [0u8; 8];
        assert_eq!(field("int a;offset:5;size:4;signed:1;").number(&raw), None);
        assert_eq!(field("int a;offset:4294967295;size:4294967295;signed:1;").number(&raw), None);
        assert_eq!(field("char a[4294967295];offset:4294967295;size:4294967295;signed:1;").bytes(&raw), None);
        // Length 9 at offset 4.
        let raw = [4, 0, 9, 0, b'a', b'b', 0, 0];
        assert_eq!(field("__data_loc char[] a;offset:0;size:4;signed:0;").bytes(&raw), None);
    }

    #[test]
    fn dynamic_fields_are_read_at_the_place_they_refer_to() {
        let raw = [4, 0, 3, 0, b'a', b'b', 0, 7];
        let data = field("__data_loc char[] a;offset:0;size:4;signed:0;");
        assert_eq!(data.bytes(&raw), Some(&b"ab\0"[..]));
        assert_eq!(data.text(&raw), Some(&b"ab"[..]));
        let raw = [0, 0, 3, 0, b'a', b'b', 0, 7];
        assert_eq!(field("__rel_loc char[] a;offset:0;size:4;signed:0;").text(&raw), Some(&b"ab"[..]));
        let raw = [8, 0, 5, 0, 0, 0, 0, 0, 1, 0, 2, 0, 9];
        let words: Vec<u64> = field("__data_loc u16[] a;offset:0;size:4;signed:0;").elements(&raw).unwrap().collect();
        assert_eq!(words, [1, 2]);
    }

    #[test]
    fn arrays_are_read_with_and_without_a_length() {
        let mut raw = [0u8; 64];
        raw[16] = 1;
        raw[56] = 6;
        let args: Vec<u64> = field("unsigned long args[6];offset:16;size:48;signed:0;").elements(&raw).unwrap().collect();
        assert_eq!(args, [1, 0, 0, 0, 0, 6]);
        assert_eq!(field("char buf[];offset:60;size:0;signed:0;").bytes(&raw), Some(&[0u8; 4][..]));
    }

    proptest::proptest! {
        #[test]
        fn random_records_cause_no_panic(raw: Vec<u8>, offset: u32, size: u32, count in 0u32..9, kind in 0..4) {
            let text = match kind {
                0 => format!("int a;offset:{offset};size:{size};signed:1;"),
                1 => format!("__data_loc char[] a;offset:{};size:4;signed:1;", offset % 16),
                2 => format!("__rel_loc u64[] a;offset:{};size:4;signed:1;", offset % 16),
                _ => format!("u32 a[{count}];offset:{};size:{size};signed:1;", offset % 16),
            };
            let field = field(&text);
            let _ = (field.number(&raw), field.text(&raw), field.elements(&raw).map(Iterator::count));
        }
    }
}
