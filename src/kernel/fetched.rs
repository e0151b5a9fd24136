//! Fields whose value a BPF program read from memory when it wrote the record. If the memory could not be read, the
//! address is shown.
//!
//! Two fields precede such a field X: `__X_from` is the address, and `__X_got` is the result of the BPF helper that
//! read it: a negative errno, or for text the number of bytes with its NUL.

use super::format::{Format, FormatField};

/// Returns the name of the field with a fetched field's address.
#[cfg(feature = "bpf")]
pub fn from_field(name: &str) -> String {
    format!("__{name}_from")
}

/// Returns the name of the field with the result of reading a fetched field.
#[cfg(feature = "bpf")]
pub fn got_field(name: &str) -> String {
    format!("__{name}_got")
}

/// The two fields that describe how another one was read.
#[derive(Clone, Debug)]
pub struct Fetched {
    from: FormatField,
    got: FormatField,
}

/// The result of reading a field from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchResult {
    /// The field was read.
    Complete,
    /// The field is full, so its text may be truncated.
    Truncated,
    /// Nothing could be read at this address.
    Failed(u64),
}

impl Format {
    /// Returns the fields that describe how the field with this index was read, if it was read from memory.
    pub fn fetched(&self, at: usize) -> Option<Fetched> {
        let name = &self.fields.get(at)?.name;
        let (from, got) = (self.fields.get(at.checked_sub(2)?)?, self.fields.get(at - 1)?);
        let is_of = |field: &FormatField, ending: &str| field.fetched_for(ending) == Some(name);
        (is_of(from, "_from") && is_of(got, "_got")).then(|| Fetched { from: from.clone(), got: got.clone() })
    }
}

impl Fetched {
    /// Returns the result for a record, for a field whose size is `bytes`. It is `None` if the record is too short.
    pub fn result(&self, raw: &[u8], bytes: u32) -> Option<FetchResult> {
        Some(match self.got.number(raw)? {
            ..0 => FetchResult::Failed(self.from.unsigned(raw)?),
            got if got == i64::from(bytes) => FetchResult::Truncated,
            _ => FetchResult::Complete,
        })
    }
}

impl FormatField {
    /// Whether the field only describes how another one was read.
    pub fn describes_fetch(&self) -> bool {
        self.fetched_for("_from").or_else(|| self.fetched_for("_got")).is_some()
    }

    fn fetched_for(&self, ending: &str) -> Option<&str> {
        self.name.strip_prefix("__")?.strip_suffix(ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_reading_is_in_the_two_fields_before() {
        let text = "name: x\nID: 1\n\tfield:u64 __a_from;offset:0;size:8;signed:0;\n\tfield:s64 __a_got;offset:8;size:8;signed:1;\n\tfield:char a[8];offset:16;size:8;signed:0;\n";
        let format = Format::parse(text).unwrap();
        let record = |got: i64| [7u64.to_le_bytes(), got.to_le_bytes(), *b"etc\0\0\0\0\0"].concat();
        let fetched = format.fetched(2).unwrap();
        let result = |got| fetched.result(&record(got), 8);
        let expected = [Some(FetchResult::Complete), Some(FetchResult::Truncated), Some(FetchResult::Failed(7))];
        assert_eq!([result(4), result(8), result(-14)], expected);
        assert_eq!(fetched.result(&[0; 12], 8), None);
        assert!(format.fetched(0).is_none() && format.fetched(1).is_none() && format.fetched(3).is_none());
        assert!(format.fields[0].describes_fetch() && format.fields[1].describes_fetch() && !format.fields[2].describes_fetch());
    }
}
