//! Lookup in a table of constants: names by number, and numbers by name.
//!
//! Bits and values without a name are returned as numbers, so the parts of a flag word always add up to the word.

use super::row::{BitField, ConstantTable, TableConstant, TableKind};
use crate::event::Abi;
use crate::kernel::constant::Constant;

/// A part of a flag word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlagPart {
    /// A constant and its table: the table of the word, or that of a bit field.
    Constant { table: &'static ConstantTable, name: &'static str },
    /// The bits that have no name; 0 if the whole word is 0 and zero has no name.
    Rest(u64),
}

impl ConstantTable {
    /// Returns the version of this table for an ABI.
    pub fn in_abi(&'static self, abi: Abi) -> &'static ConstantTable {
        self.per_abi.iter().find(|(other, _)| *other == abi).map_or(self, |(_, twin)| twin)
    }

    /// Returns the parts of a flag word: first the bit fields, then the flags (composites before their parts), then the
    /// bits without a name.
    pub fn flags(&'static self, bits: u64) -> FlagParts {
        let zero = if bits == 0 { self.zero() } else { None };
        FlagParts { table: self, rest: bits, unnamed: 0, field: 0, entry: 0, zero, has_parts: false, is_done: false }
    }

    /// Returns the name of a value; if an enum has several entries for it, the first.
    pub fn name(&self, value: u64) -> Option<&'static str> {
        match self.kind {
            TableKind::Flags => self.entries.iter().find(|entry| entry.value == value).map(|entry| entry.name),
            TableKind::Enum => self
                .search(value)
                .or_else(|| if self.bits == 32 { self.search(value as i32 as i64 as u64) } else { None })
                .map(|entry| entry.name),
        }
    }

    /// Returns the value of a name, which may lack the table's prefix. Names of the bit fields are found as well; their
    /// constants have the mask of the field.
    pub fn constant(&self, name: &str) -> Option<Constant> {
        let own = self.entries.iter().find(|entry| entry.name == name || self.short(entry.name) == name);
        own.map(|entry| Constant::of_bits(entry.value)).or_else(|| {
            let of_field = |field: &BitField| Some(Constant { mask: field.mask, ..field.table.constant(name)? });
            self.fields.iter().find_map(of_field)
        })
    }

    /// Returns all names, each without and with the table's prefix, including those of the bit fields.
    pub fn all_names(&self) -> Vec<String> {
        let own = self.entries.iter().flat_map(|entry| {
            let short = self.short(entry.name);
            std::iter::once(short).chain((short != entry.name).then_some(entry.name)).map(str::to_owned)
        });
        own.chain(self.fields.iter().flat_map(|field| field.table.all_names())).collect()
    }

    /// Returns a name without the table's prefix, or the name itself if nothing would be left.
    pub fn short(&self, name: &'static str) -> &'static str {
        name.strip_prefix(self.prefix).filter(|rest| !rest.is_empty()).unwrap_or(name)
    }

    /// Returns whether this table or that of a bit field has a constant for zero.
    pub fn names_zero(&self) -> bool {
        self.zero().is_some() || self.fields.iter().any(|field| field.table.names_zero())
    }

    fn zero(&self) -> Option<&'static str> {
        self.name(0)
    }

    /// Searches the entries of an enum, which ascend. Many enums have no holes, so the entry that such an enum has at
    /// the distance of the value from the first one is tried first.
    fn search(&self, value: u64) -> Option<&'static TableConstant> {
        let entries: &'static [TableConstant] = self.entries;
        let place = usize::try_from(value.wrapping_sub(entries.first()?.value)).ok();
        if let Some((place, entry)) = place.and_then(|place| Some((place, entries.get(place)?))).filter(|(_, entry)| entry.value == value) {
            let is_first = place == 0 || entries[place - 1].value != value;
            if is_first {
                return Some(entry);
            }
        }
        let place = entries.partition_point(|entry| entry.value < value);
        entries.get(place).filter(|entry| entry.value == value)
    }
}

/// An iterator over the parts of a flag word.
#[derive(Clone, Debug)]
pub struct FlagParts {
    table: &'static ConstantTable,
    /// The bits that are in no part so far.
    rest: u64,
    /// The bits of fields whose value has no name.
    unnamed: u64,
    /// Index of the next bit field.
    field: usize,
    /// Index of the next constant.
    entry: usize,
    /// The name of zero, if the word is 0.
    zero: Option<&'static str>,
    /// A part was returned.
    has_parts: bool,
    /// All parts were returned.
    is_done: bool,
}

impl Iterator for FlagParts {
    type Item = FlagPart;

    fn next(&mut self) -> Option<FlagPart> {
        if self.is_done {
            return None;
        }
        if let Some(name) = self.zero {
            self.is_done = true;
            return Some(FlagPart::Constant { table: self.table, name });
        }
        let part = self.next_field().or_else(|| self.next_flag());
        self.has_parts |= part.is_some();
        part.or_else(|| {
            self.is_done = true;
            let rest = self.rest | self.unnamed;
            (rest != 0 || !self.has_parts).then_some(FlagPart::Rest(rest))
        })
    }
}

impl FlagParts {
    fn next_field(&mut self) -> Option<FlagPart> {
        while let Some(field) = self.table.fields.get(self.field) {
            self.field += 1;
            let value = self.rest & field.mask;
            self.rest &= !field.mask;
            match field.table.name(value) {
                Some(name) => return Some(FlagPart::Constant { table: field.table, name }),
                None => self.unnamed |= value,
            }
        }
        None
    }

    fn next_flag(&mut self) -> Option<FlagPart> {
        while self.rest != 0 {
            let entry = self.table.entries.get(self.entry)?;
            self.entry += 1;
            if entry.value != 0 && self.rest & entry.value == entry.value {
                self.rest &= !entry.value;
                return Some(FlagPart::Constant { table: self.table, name: entry.name });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn entry(value: u64, name: &'static str) -> TableConstant {
        TableConstant { value, name }
    }

    static ACCESS: ConstantTable = ConstantTable {
        name: "open_access",
        kind: TableKind::Enum,
        bits: 32,
        header: "asm-generic/fcntl.h",
        prefix: "O_",
        entries: &[entry(0, "O_RDONLY"), entry(1, "O_WRONLY"), entry(2, "O_RDWR")],
        fields: &[],
        per_abi: &[],
    };
    static OPEN_ARM: ConstantTable = ConstantTable { entries: &[entry(0o40000, "O_DIRECTORY")], per_abi: &[], ..OPEN_BARE };
    const OPEN_BARE: ConstantTable = ConstantTable {
        name: "open_flags",
        kind: TableKind::Flags,
        bits: 32,
        header: "asm-generic/fcntl.h",
        prefix: "O_",
        entries: &[
            entry(0o4010000, "O_SYNC"),
            entry(0o20200000, "O_TMPFILE"),
            entry(0o10000, "O_DSYNC"),
            entry(0o200000, "O_DIRECTORY"),
            entry(0o2000000, "O_CLOEXEC"),
        ],
        fields: &[BitField { mask: 3, table: &ACCESS }],
        per_abi: &[],
    };
    static OPEN: ConstantTable = ConstantTable { per_abi: &[(Abi::Aarch64, &OPEN_ARM)], ..OPEN_BARE };
    static PROT: ConstantTable =
        ConstantTable { name: "prot", prefix: "PROT_", entries: &[entry(0, "PROT_NONE"), entry(1, "PROT_READ")], fields: &[], ..OPEN_BARE };
    static CLOCK: ConstantTable = ConstantTable {
        name: "clock",
        prefix: "",
        entries: &[entry(0, "A"), entry(1, "B"), entry(1, "C"), entry(2, "D"), entry(u64::MAX, "LAST")],
        ..ACCESS
    };

    fn shown(table: &'static ConstantTable, bits: u64) -> String {
        let part = |part| match part {
            FlagPart::Constant { table, name } => table.short(name).to_string(),
            FlagPart::Rest(rest) => format!("{rest:#x}"),
        };
        table.flags(bits).map(part).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn composites_precede_their_parts_and_unnamed_bits_remain() {
        assert_eq!(shown(&OPEN, 0o2000000), "RDONLY|CLOEXEC");
        assert_eq!(shown(&OPEN, 0o4010001), "WRONLY|SYNC");
        assert_eq!(shown(&OPEN, 0o10002), "RDWR|DSYNC");
        assert_eq!(shown(&OPEN, 0o20200000), "RDONLY|TMPFILE");
        assert_eq!(shown(&OPEN, 0x4000_0003), "0x40000003");
        assert_eq!(shown(&OPEN, 0x4000_0001), "WRONLY|0x40000000");
    }

    #[test]
    fn zero_is_named_where_it_has_a_name() {
        assert_eq!(shown(&OPEN, 0), "RDONLY");
        assert_eq!(shown(&PROT, 0), "NONE");
        assert_eq!(shown(&PROT, 9), "READ|0x8");
        static NAMELESS: ConstantTable = ConstantTable { entries: &[], fields: &[], ..OPEN_BARE };
        assert_eq!(shown(&NAMELESS, 0), "0x0");
        assert!(OPEN.names_zero(), "the access mode names zero");
        assert!(!NAMELESS.names_zero() && PROT.names_zero() && ACCESS.names_zero());
    }

    #[test]
    fn each_abi_has_its_own_values() {
        assert_eq!(shown(OPEN.in_abi(Abi::Aarch64), 0o40000), "RDONLY|DIRECTORY");
        assert_eq!(shown(OPEN.in_abi(Abi::I386), 0o200000), "RDONLY|DIRECTORY");
    }

    #[test]
    fn names_are_found_by_value_and_values_by_name() {
        assert_eq!(CLOCK.name(1), Some("B"), "the first name of a value");
        assert_eq!(CLOCK.name(2), Some("D"));
        assert_eq!(CLOCK.name(u64::from(u32::MAX)), Some("LAST"), "a register holds only 32 bits of it");
        assert_eq!(CLOCK.name(3), None);
        let value = |name| OPEN.constant(name).map(|constant| constant.value);
        assert_eq!(value("CLOEXEC"), Some(0o2000000));
        assert_eq!(value("O_RDWR"), Some(2));
        assert_eq!(value("RDWR"), Some(2));
        assert_eq!(value("NOSUCH"), None);
    }
}
