//! Reading a table of constants: from numbers to names and back.
//!
//! Nothing is lost on the way: bits without a name stay as a number, and so does a value without one.

use super::row::{Entry, Field, Table, TableKind};
use crate::event::Abi;
use crate::kernel::constant::Constant;

/// One part of a flag word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// A constant, and the table it stands in (a field's differs from the word's).
    Constant { table: &'static Table, name: &'static str },
    /// Bits that have no name; 0 when the whole word is 0 and zero has no name.
    Rest(u64),
}

impl Table {
    /// The table that holds in this ABI: a twin, or itself.
    pub fn in_abi(&'static self, abi: Abi) -> &'static Table {
        self.per_abi.iter().find(|(other, _)| *other == abi).map_or(self, |(_, twin)| twin)
    }

    /// The parts of a flag word: fields first, then flags (composites before what they are made of), then what has no name.
    pub fn flags(&'static self, bits: u64) -> Parts {
        let zero = if bits == 0 { self.zero() } else { None };
        Parts { table: self, rest: bits, unnamed: 0, field: 0, entry: 0, zero, given: false, over: false }
    }

    /// The name of a value; in an enum the first that was given to it.
    pub fn name(&self, value: u64) -> Option<&'static str> {
        match self.kind {
            TableKind::Flags => self.entries.iter().find(|entry| entry.value == value).map(|entry| entry.name),
            TableKind::Enum => self
                .search(value)
                .or_else(|| if self.bits == 32 { self.search(value as i32 as i64 as u64) } else { None })
                .map(|entry| entry.name),
        }
    }

    /// What a name stands for, which may lack the table's prefix; names of fields count, and speak of the field's bits.
    pub fn constant(&self, name: &str) -> Option<Constant> {
        let own = self.entries.iter().find(|entry| entry.name == name || self.short(entry.name) == name);
        own.map(|entry| Constant::of_bits(entry.value)).or_else(|| {
            let of_field = |field: &Field| Some(Constant { mask: field.mask, ..field.table.constant(name)? });
            self.fields.iter().find_map(of_field)
        })
    }

    /// All names, each without the table's prefix and with it; those of fields too.
    pub fn all_names(&self) -> Vec<String> {
        let own = self.entries.iter().flat_map(|entry| {
            let short = self.short(entry.name);
            std::iter::once(short).chain((short != entry.name).then_some(entry.name)).map(str::to_owned)
        });
        own.chain(self.fields.iter().flat_map(|field| field.table.all_names())).collect()
    }

    /// A name without the table's prefix, if that leaves anything.
    pub fn short(&self, name: &'static str) -> &'static str {
        name.strip_prefix(self.prefix).filter(|rest| !rest.is_empty()).unwrap_or(name)
    }

    /// Whether zero is a constant of its own here or in a field, not merely the absence of others.
    pub fn names_zero(&self) -> bool {
        self.zero().is_some() || self.fields.iter().any(|field| field.table.names_zero())
    }

    fn zero(&self) -> Option<&'static str> {
        self.name(0)
    }

    /// In an enum, whose entries ascend; many begin at 0 without a hole, and then the place is the value.
    fn search(&self, value: u64) -> Option<&'static Entry> {
        let entries: &'static [Entry] = self.entries;
        if let Some(entry) = usize::try_from(value).ok().and_then(|place| entries.get(place)).filter(|entry| entry.value == value) {
            let first = value == 0 || entries[value as usize - 1].value != value;
            if first {
                return Some(entry);
            }
        }
        let place = entries.partition_point(|entry| entry.value < value);
        entries.get(place).filter(|entry| entry.value == value)
    }
}

/// Iterator over the parts of a flag word.
#[derive(Clone, Debug)]
pub struct Parts {
    table: &'static Table,
    /// Bits that are still to be told.
    rest: u64,
    /// Bits of fields whose value has no name.
    unnamed: u64,
    field: usize,
    entry: usize,
    zero: Option<&'static str>,
    given: bool,
    over: bool,
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        if self.over {
            return None;
        }
        if let Some(name) = self.zero {
            self.over = true;
            return Some(Part::Constant { table: self.table, name });
        }
        let part = self.next_field().or_else(|| self.next_flag());
        self.given |= part.is_some();
        part.or_else(|| {
            self.over = true;
            let rest = self.rest | self.unnamed;
            (rest != 0 || !self.given).then_some(Part::Rest(rest))
        })
    }
}

impl Parts {
    fn next_field(&mut self) -> Option<Part> {
        while let Some(field) = self.table.fields.get(self.field) {
            self.field += 1;
            let value = self.rest & field.mask;
            self.rest &= !field.mask;
            match field.table.name(value) {
                Some(name) => return Some(Part::Constant { table: field.table, name }),
                None => self.unnamed |= value,
            }
        }
        None
    }

    fn next_flag(&mut self) -> Option<Part> {
        while self.rest != 0 {
            let entry = self.table.entries.get(self.entry)?;
            self.entry += 1;
            if entry.value != 0 && self.rest & entry.value == entry.value {
                self.rest &= !entry.value;
                return Some(Part::Constant { table: self.table, name: entry.name });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn entry(value: u64, name: &'static str) -> Entry {
        Entry { value, name }
    }

    static ACCESS: Table = Table {
        name: "open_access",
        kind: TableKind::Enum,
        bits: 32,
        header: "asm-generic/fcntl.h",
        prefix: "O_",
        entries: &[entry(0, "O_RDONLY"), entry(1, "O_WRONLY"), entry(2, "O_RDWR")],
        fields: &[],
        per_abi: &[],
    };
    static OPEN_ARM: Table = Table { entries: &[entry(0o40000, "O_DIRECTORY")], per_abi: &[], ..OPEN_BARE };
    const OPEN_BARE: Table = Table {
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
        fields: &[Field { mask: 3, table: &ACCESS }],
        per_abi: &[],
    };
    static OPEN: Table = Table { per_abi: &[(Abi::Aarch64, &OPEN_ARM)], ..OPEN_BARE };
    static PROT: Table =
        Table { name: "prot", prefix: "PROT_", entries: &[entry(0, "PROT_NONE"), entry(1, "PROT_READ")], fields: &[], ..OPEN_BARE };
    static CLOCK: Table = Table {
        name: "clock",
        prefix: "",
        entries: &[entry(0, "A"), entry(1, "B"), entry(1, "C"), entry(2, "D"), entry(u64::MAX, "LAST")],
        ..ACCESS
    };

    fn shown(table: &'static Table, bits: u64) -> String {
        let part = |part| match part {
            Part::Constant { table, name } => table.short(name).to_string(),
            Part::Rest(rest) => format!("{rest:#x}"),
        };
        table.flags(bits).map(part).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn composites_come_before_their_parts_and_the_rest_stays() {
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
        static NAMELESS: Table = Table { entries: &[], fields: &[], ..OPEN_BARE };
        assert_eq!(shown(&NAMELESS, 0), "0x0");
        assert!(OPEN.names_zero(), "its access mode does");
        assert!(!NAMELESS.names_zero() && PROT.names_zero() && ACCESS.names_zero());
    }

    #[test]
    fn each_abi_has_its_own_values() {
        assert_eq!(shown(OPEN.in_abi(Abi::Aarch64), 0o40000), "RDONLY|DIRECTORY");
        assert_eq!(shown(OPEN.in_abi(Abi::I386), 0o200000), "RDONLY|DIRECTORY");
    }

    #[test]
    fn names_and_values_go_both_ways() {
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
