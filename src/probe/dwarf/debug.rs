//! The debug information of one file. Its units are parsed on demand.

use super::die::{Die, DieId};
use crate::stack::symbols::ElfFile;
use crate::stack::symbols::elf::Machine;
use anyhow::Context;
use gimli::constants as dw;
use gimli::{Dwarf, EndianArcSlice, Reader as _, RunTimeEndian, SectionId, UnitHeader, UnitOffset};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

pub(super) type Reader = EndianArcSlice<RunTimeEndian>;
pub(super) type Unit = gimli::Unit<Reader>;
/// A debugging information entry (DIE) without its unit.
pub(super) type RawDie = gimli::DebuggingInformationEntry<Reader>;
pub(super) type Value = gimli::AttributeValue<Reader>;

/// The debug information of a file, including the supplementary file to which dwz moved common parts.
pub struct Debug {
    pub(super) dwarf: Dwarf<Reader>,
    own: Part,
    shared: Part,
    pub(super) machine: Machine,
    pub(super) address_bytes: u8,
}

/// The units of one file: of the file itself or of its supplementary file.
#[derive(Default)]
struct Part {
    /// The headers of all units, in the order of their offsets.
    headers: Vec<UnitHeader<Reader>>,
    /// The units that have been parsed.
    units: RefCell<FxHashMap<usize, Rc<Unit>>>,
}

impl Debug {
    /// Reads all sections. `shared` is the supplementary file to which dwz moved common parts.
    ///
    /// # Errors
    /// A section cannot be read, or is damaged or too long.
    pub fn read(file: &ElfFile, shared: Option<&ElfFile>) -> anyhow::Result<Debug> {
        let mut dwarf = Dwarf::load(|id| section(file, id)).context("its debug information cannot be read")?;
        if let Some(shared) = shared {
            dwarf.load_sup(|id| section(shared, id)).context("its supplementary debug information (dwz) cannot be read")?;
        }
        let shared = dwarf.sup().map_or_else(Part::default, Part::of);
        let own = Part::of(&dwarf);
        Ok(Debug { own, shared, dwarf, machine: file.machine(), address_bytes: file.address_bytes() })
    }

    pub(super) fn dwarf(&self, in_shared: bool) -> &Dwarf<Reader> {
        self.dwarf.sup().filter(|_| in_shared).unwrap_or(&self.dwarf)
    }

    fn part(&self, in_shared: bool) -> &Part {
        if in_shared { &self.shared } else { &self.own }
    }

    /// Returns the number of units in the file itself.
    pub(super) fn unit_count(&self) -> usize {
        self.own.headers.len()
    }

    /// Returns a unit by its number; `None` if it is damaged.
    pub(super) fn unit(&self, number: usize, in_shared: bool) -> Option<Rc<Unit>> {
        let part = self.part(in_shared);
        if let Some(unit) = part.units.borrow().get(&number) {
            return Some(unit.clone());
        }
        let unit = Rc::new(self.parse(number, in_shared)?);
        part.units.borrow_mut().insert(number, unit.clone());
        Some(unit)
    }

    fn parse(&self, number: usize, in_shared: bool) -> Option<Unit> {
        self.dwarf(in_shared).unit(self.part(in_shared).headers.get(number)?.clone()).ok()
    }

    /// Calls `visit` with each unit of the file itself until it breaks, and returns its result. Only that unit is
    /// cached, because a file may have thousands.
    pub(super) fn find_unit<T>(&self, mut visit: impl FnMut(usize, &Unit) -> ControlFlow<T>) -> Option<T> {
        for number in 0..self.unit_count() {
            let known = self.own.units.borrow().get(&number).cloned();
            let Some(unit) = known.or_else(|| self.parse(number, false).map(Rc::new)) else { continue };
            if let ControlFlow::Break(found) = visit(number, &unit) {
                self.own.units.borrow_mut().entry(number).or_insert(unit);
                return Some(found);
            }
        }
        None
    }

    /// Returns the number of the unit whose header is at an offset.
    pub(super) fn unit_starting(&self, offset: usize) -> Option<usize> {
        self.own.headers.binary_search_by_key(&offset, start).ok()
    }

    /// Returns the entry at an offset in the section.
    pub(super) fn die(&self, id: DieId) -> Option<Die<'_>> {
        let headers = &self.part(id.in_shared).headers;
        let number = headers.partition_point(|header| start(header) <= id.offset).checked_sub(1)?;
        let unit = self.unit(number, id.in_shared)?;
        let entry = unit.entry(UnitOffset(id.offset - start(&headers[number]))).ok()?;
        Some(Die { debug: self, in_shared: id.in_shared, unit, entry })
    }

    /// Returns whether an entry of the file itself has this name in its own attributes.
    pub(super) fn is_named(&self, unit: &Unit, entry: &RawDie, name: &str) -> bool {
        let own = || self.dwarf.attr_string(unit, entry.attr_value(dw::DW_AT_name)?).ok();
        own().is_some_and(|own| own.to_slice().is_ok_and(|own| *own == *name.as_bytes()))
    }

    /// Returns the root entry of a unit.
    pub(super) fn root(&self, number: usize) -> Option<Die<'_>> {
        let unit = self.unit(number, false)?;
        let mut cursor = unit.entries();
        let entry = cursor.next_dfs().ok()??.clone();
        Some(Die { debug: self, in_shared: false, unit, entry })
    }
}

/// Finds the first matching entry of a unit, at any depth.
pub(super) fn first(unit: &Unit, is_it: impl Fn(&RawDie) -> bool) -> Option<RawDie> {
    let mut cursor = unit.entries();
    while let Ok(Some(entry)) = cursor.next_dfs() {
        if is_it(entry) {
            return Some(entry.clone());
        }
    }
    None
}

/// Finds the first matching entry among the direct children of a unit's root entry.
pub(super) fn first_outermost(unit: &Unit, is_it: impl Fn(&RawDie) -> bool) -> Option<RawDie> {
    let mut tree = unit.entries_tree(None).ok()?;
    let mut children = tree.root().ok()?.children();
    while let Ok(Some(child)) = children.next() {
        if is_it(child.entry()) {
            return Some(child.entry().clone());
        }
    }
    None
}

impl Part {
    fn of(dwarf: &Dwarf<Reader>) -> Part {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        Part { headers, units: RefCell::default() }
    }
}

fn start(header: &UnitHeader<Reader>) -> usize {
    header.debug_info_offset().map_or(0, |offset| offset.0)
}

fn section(file: &ElfFile, id: SectionId) -> io::Result<Reader> {
    let contents = match id {
        SectionId::DebugMacinfo | SectionId::DebugMacro | SectionId::DebugNames => Vec::new(),
        id => file.contents(id.name())?,
    };
    Ok(Reader::new(Arc::from(contents), file.byte_order().into()))
}
