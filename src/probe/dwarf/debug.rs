//! The debug information of one file, its units parsed when they are wanted.

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
pub(super) type Entry = gimli::DebuggingInformationEntry<Reader>;
pub(super) type Value = gimli::AttributeValue<Reader>;

/// A file's debug information, with what dwz moved out of it.
pub struct Debug {
    pub(super) dwarf: Dwarf<Reader>,
    own: Part,
    shared: Part,
    pub(super) machine: Machine,
    pub(super) address_bytes: u8,
}

/// The units of one file.
#[derive(Default)]
struct Part {
    /// In the order of their offsets.
    headers: Vec<UnitHeader<Reader>>,
    /// Those that were wanted.
    units: RefCell<FxHashMap<usize, Rc<Unit>>>,
}

impl Debug {
    /// Reads all sections. `shared` is the file that dwz moved common parts to.
    ///
    /// # Errors
    /// A section cannot be read, or is damaged or too long.
    pub fn read(file: &ElfFile, shared: Option<&ElfFile>) -> anyhow::Result<Debug> {
        let mut dwarf = Dwarf::load(|id| section(file, id)).context("its debug information cannot be read")?;
        if let Some(shared) = shared {
            dwarf.load_sup(|id| section(shared, id)).context("the debug information that it shares cannot be read")?;
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

    /// How many units the file has of its own.
    pub(super) fn unit_count(&self) -> usize {
        self.own.headers.len()
    }

    /// A unit by its number; `None` if it is damaged.
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

    /// Goes through the file's own units until one is what was wanted. Only that one is kept: there may be thousands.
    pub(super) fn find_unit<T>(&self, mut look: impl FnMut(usize, &Unit) -> ControlFlow<T>) -> Option<T> {
        for number in 0..self.unit_count() {
            let known = self.own.units.borrow().get(&number).cloned();
            let Some(unit) = known.or_else(|| self.parse(number, false).map(Rc::new)) else { continue };
            if let ControlFlow::Break(found) = look(number, &unit) {
                self.own.units.borrow_mut().entry(number).or_insert(unit);
                return Some(found);
            }
        }
        None
    }

    /// The number of the unit whose header is at an offset.
    pub(super) fn unit_starting(&self, offset: usize) -> Option<usize> {
        self.own.headers.binary_search_by_key(&offset, start).ok()
    }

    /// An entry by its offset in the section.
    pub(super) fn die(&self, id: DieId) -> Option<Die<'_>> {
        let headers = &self.part(id.in_shared).headers;
        let number = headers.partition_point(|header| start(header) <= id.offset).checked_sub(1)?;
        let unit = self.unit(number, id.in_shared)?;
        let entry = unit.entry(UnitOffset(id.offset - start(&headers[number]))).ok()?;
        Some(Die { debug: self, in_shared: id.in_shared, unit, entry })
    }

    /// Whether an entry of one of the file's own units has this name itself.
    pub(super) fn is_named(&self, unit: &Unit, entry: &Entry, name: &str) -> bool {
        let own = || self.dwarf.attr_string(unit, entry.attr_value(dw::DW_AT_name)?).ok();
        own().is_some_and(|own| own.to_slice().is_ok_and(|own| *own == *name.as_bytes()))
    }

    /// The unit's own entry.
    pub(super) fn root(&self, number: usize) -> Option<Die<'_>> {
        let unit = self.unit(number, false)?;
        let mut cursor = unit.entries();
        let entry = cursor.next_dfs().ok()??.clone();
        Some(Die { debug: self, in_shared: false, unit, entry })
    }
}

/// The first entry of a unit that is what was wanted, at any depth.
pub(super) fn first(unit: &Unit, is_it: impl Fn(&Entry) -> bool) -> Option<Entry> {
    let mut cursor = unit.entries();
    while let Ok(Some(entry)) = cursor.next_dfs() {
        if is_it(entry) {
            return Some(entry.clone());
        }
    }
    None
}

/// The same among those that are in nothing but the unit.
pub(super) fn first_outermost(unit: &Unit, is_it: impl Fn(&Entry) -> bool) -> Option<Entry> {
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
