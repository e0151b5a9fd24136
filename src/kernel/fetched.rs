//! Fields that were read from memory when their record was made: what could not be read is known by its address.
//!
//! Before such a field X stand `__X_from`, the address, and `__X_got`, what the helper answered that read it: an errno below zero, or for text how many bytes it has with its NUL.

use super::format::{Format, FormatField};

/// Where a fetched field's address is, by name.
pub fn from_field(name: &str) -> String {
    format!("__{name}_from")
}

/// Where the answer to reading it is, by name.
pub fn got_field(name: &str) -> String {
    format!("__{name}_got")
}

/// The two fields that tell of another.
#[derive(Clone, Debug)]
pub struct Fetched {
    from: FormatField,
    got: FormatField,
}

/// How the reading of a field went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// All of it, or as much as there was room for.
    Whole,
    Cut,
    /// Nothing, from this address.
    Nothing(u64),
}

impl Format {
    /// What tells of the field in this place, if it was read from memory.
    pub fn fetched(&self, at: usize) -> Option<Fetched> {
        let name = &self.fields.get(at)?.name;
        let (from, got) = (self.fields.get(at.checked_sub(2)?)?, self.fields.get(at - 1)?);
        let is_of = |field: &FormatField, ending: &str| field.fetched_for(ending) == Some(name);
        (is_of(from, "_from") && is_of(got, "_got")).then(|| Fetched { from: from.clone(), got: got.clone() })
    }
}

impl Fetched {
    /// How it went in this record, for a field of so many bytes; `None` if the record is too short to tell.
    pub fn got(&self, raw: &[u8], bytes: u32) -> Option<Got> {
        Some(match self.got.number(raw)? {
            ..0 => Got::Nothing(self.from.unsigned(raw)?),
            // A text that fills its room may have been cut there.
            got if got == i64::from(bytes) => Got::Cut,
            _ => Got::Whole,
        })
    }
}

impl FormatField {
    /// It tells only of another field.
    pub fn is_of_fetched(&self) -> bool {
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
    fn what_was_not_read_is_an_address() {
        let text = "name: x\nID: 1\n\tfield:u64 __a_from;offset:0;size:8;signed:0;\n\tfield:s64 __a_got;offset:8;size:8;signed:1;\n\tfield:char a[8];offset:16;size:8;signed:0;\n";
        let format = Format::parse(text).unwrap();
        let record = |got: i64| [7u64.to_le_bytes(), got.to_le_bytes(), *b"etc\0\0\0\0\0"].concat();
        let fetched = format.fetched(2).unwrap();
        let got = |answer| fetched.got(&record(answer), 8);
        assert_eq!([got(4), got(8), got(-14)], [Some(Got::Whole), Some(Got::Cut), Some(Got::Nothing(7))]);
        assert_eq!(fetched.got(&[0; 12], 8), None);
        assert!(format.fetched(0).is_none() && format.fetched(1).is_none() && format.fetched(3).is_none());
        assert!(format.fields[0].is_of_fetched() && format.fields[1].is_of_fetched() && !format.fields[2].is_of_fetched());
    }
}
