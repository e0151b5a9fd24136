//! A debugging information entry (DIE).

use super::debug::{Debug, RawDie, Reader, Unit, Value};
use gimli::constants as dw;
use gimli::{DwAt, DwTag, Range, Reader as _};
use std::rc::Rc;

/// The position of an entry: its offset in `.debug_info` of the file or of the supplementary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieId {
    /// Whether the entry is in the supplementary file, to which dwz moved common parts.
    pub in_shared: bool,
    /// The offset from the beginning of the section, in bytes.
    pub offset: usize,
}

/// An entry and its unit.
#[derive(Clone)]
pub struct Die<'d> {
    /// The debug information that contains the entry.
    pub debug: &'d Debug,
    /// Whether the entry is in the supplementary file, to which dwz moved common parts.
    pub in_shared: bool,
    /// The unit that contains the entry.
    pub unit: Rc<Unit>,
    /// The entry's own tag and attributes.
    pub entry: RawDie,
}

/// Maximum length of a chain of `DW_AT_abstract_origin` and `DW_AT_specification`; only damaged files have longer ones.
const REFERENCES_MAX: usize = 8;

impl<'d> Die<'d> {
    /// Returns the kind of the entry (`DW_TAG_*`).
    pub fn tag(&self) -> DwTag {
        self.entry.tag()
    }

    /// Returns the position of the entry, which identifies it in its debug information.
    pub fn id(&self) -> DieId {
        let start = self.unit.debug_info_offset().map_or(0, |offset| offset.0);
        DieId { in_shared: self.in_shared, offset: start + self.entry.offset().0 }
    }

    /// Returns the value of an attribute; `None` if the entry itself does not have it.
    pub fn value(&self, at: DwAt) -> Option<Value> {
        self.entry.attr_value(at)
    }

    /// Returns the value of an attribute that is an unsigned number or the index of a file; `None` if the entry itself
    /// has no such value.
    pub fn number(&self, at: DwAt) -> Option<u64> {
        match self.value(at)? {
            Value::FileIndex(number) => Some(number),
            value => value.udata_value(),
        }
    }

    /// Returns whether the entry itself has this flag, set to true.
    pub fn flag(&self, at: DwAt) -> bool {
        matches!(self.value(at), Some(Value::Flag(true)))
    }

    /// Returns the name in the entry's own attributes.
    pub fn own_name(&self) -> Option<String> {
        let text = self.debug.dwarf(self.in_shared).attr_string(&self.unit, self.value(dw::DW_AT_name)?).ok()?;
        Some(text.to_string_lossy().ok()?.into_owned())
    }

    /// Returns the name of the entry, or of its abstract origin or declaration.
    pub fn name(&self) -> Option<String> {
        self.with_origins().into_iter().find_map(|die| die.own_name())
    }

    /// Returns the entry that an attribute refers to.
    pub fn refers(&self, at: DwAt) -> Option<Die<'d>> {
        self.debug.die(self.reference(at)?)
    }

    /// Returns the position of the entry that an attribute refers to; `None` if the entry itself does not have the
    /// attribute, or if the reference is not an offset.
    pub fn reference(&self, at: DwAt) -> Option<DieId> {
        let start = self.unit.debug_info_offset().map_or(0, |offset| offset.0);
        Some(match self.value(at)? {
            Value::UnitRef(offset) => DieId { in_shared: self.in_shared, offset: start.checked_add(offset.0)? },
            Value::DebugInfoRef(offset) => DieId { in_shared: self.in_shared, offset: offset.0 },
            Value::DebugInfoRefSup(offset) => DieId { in_shared: true, offset: offset.0 },
            _ => return None,
        })
    }

    /// Returns the abstract origin of an instance, or the declaration of a definition.
    pub fn origin(&self) -> Option<Die<'d>> {
        self.refers(dw::DW_AT_abstract_origin).or_else(|| self.refers(dw::DW_AT_specification))
    }

    /// Returns the entry itself, its origin, the origin of that, and so on.
    pub fn with_origins(&self) -> Vec<Die<'d>> {
        let mut all = vec![self.clone()];
        while let Some(origin) = all.last().and_then(Die::origin).filter(|_| all.len() < REFERENCES_MAX) {
            all.push(origin);
        }
        all
    }

    /// Returns the entries directly below this one. If the unit is damaged, the list ends there.
    pub fn children(&self) -> Vec<Die<'d>> {
        let mut found = Vec::new();
        let Ok(mut tree) = self.unit.entries_tree(Some(self.entry.offset())) else { return found };
        let Ok(root) = tree.root() else { return found };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            found.push(Die { debug: self.debug, in_shared: self.in_shared, unit: self.unit.clone(), entry: child.entry().clone() });
        }
        found
    }

    /// Returns the address ranges of the entry's code; none if it has no code.
    pub fn ranges(&self) -> Vec<Range> {
        ranges(self.debug, &self.unit, &self.entry)
    }

    /// Returns whether the entry's code contains an address.
    pub fn holds(&self, pc: u64) -> bool {
        self.ranges().iter().any(|range| (range.begin..range.end).contains(&pc))
    }
}

/// Returns the address ranges of an entry in a unit of the file itself.
pub fn ranges(debug: &Debug, unit: &Unit, entry: &RawDie) -> Vec<Range> {
    let dwarf = debug.dwarf(false);
    let list = entry.attr_value(dw::DW_AT_ranges).and_then(|value| dwarf.attr_ranges(unit, value).ok()?);
    if let Some(mut list) = list {
        let mut ranges = Vec::new();
        while let Ok(Some(range)) = list.next() {
            ranges.push(range);
        }
        return ranges;
    }
    let address = |value: gimli::AttributeValue<Reader>| dwarf.attr_address(unit, value).ok().flatten();
    let Some(begin) = entry.attr_value(dw::DW_AT_low_pc).and_then(address) else { return Vec::new() };
    let end = match entry.attr_value(dw::DW_AT_high_pc) {
        Some(Value::Udata(size)) => begin.checked_add(size),
        Some(value) => address(value),
        None => None,
    };
    end.map(|end| Range { begin, end }).into_iter().collect()
}
