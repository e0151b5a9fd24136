//! Finds the function that contains an address, with the blocks and inlined functions at that address.

use super::debug::{Debug, RawDie, Value, first};
use super::die::{self, Die};
use gimli::constants as dw;
use std::ops::ControlFlow;

/// A function that is not inlined, seen at one of its addresses.
#[derive(Clone)]
pub struct Function<'d> {
    /// The function first, followed by the nested blocks and inlined functions that contain the address.
    pub(super) chain: Vec<Die<'d>>,
    /// The number of the function's unit.
    pub(super) number: usize,
}

impl Debug {
    /// Returns the function that contains an address.
    pub fn function_at(&self, pc: u64) -> Option<Function<'_>> {
        let number = self.unit_at(pc)?;
        let root = self.root(number)?;
        let unit = root.unit.clone();
        let entry = first(&unit, |entry| {
            entry.tag() == dw::DW_TAG_subprogram
                && die::ranges(self, &unit, entry).iter().any(|range| (range.begin..range.end).contains(&pc))
        })?;
        let mut chain = vec![Die { entry, ..root }];
        while let Some(inner) = chain.last().and_then(|outer| outer.children().into_iter().find(|child| is_block(child) && child.holds(pc)))
        {
            chain.push(inner);
        }
        Some(Function { chain, number })
    }

    /// Returns the number of the unit that contains an address: by `.debug_aranges` if that covers it.
    fn unit_at(&self, pc: u64) -> Option<usize> {
        self.listed_unit_at(pc).or_else(|| {
            self.find_unit(|number, unit| {
                let mut cursor = unit.entries();
                let ranges = cursor.next_dfs().ok().flatten().map(|root| die::ranges(self, unit, root));
                let holds = ranges.unwrap_or_default().iter().any(|range| (range.begin..range.end).contains(&pc));
                if holds { ControlFlow::Break(number) } else { ControlFlow::Continue(()) }
            })
        })
    }

    fn listed_unit_at(&self, pc: u64) -> Option<usize> {
        let mut headers = self.dwarf.debug_aranges.headers();
        while let Ok(Some(header)) = headers.next() {
            let mut entries = header.entries();
            while let Ok(Some(entry)) = entries.next() {
                if pc.checked_sub(entry.address()).is_some_and(|into| into < entry.length()) {
                    return self.unit_starting(header.debug_info_offset().0);
                }
            }
        }
        None
    }

    /// Finds a function by its name, also one without code because it is always inlined.
    pub(super) fn function_named(&self, name: &str) -> Option<(usize, Die<'_>)> {
        let (number, entry) = self.find_unit(|number, unit| {
            let is_it = |entry: &RawDie| {
                entry.tag() == dw::DW_TAG_subprogram
                    && entry.attr_value(dw::DW_AT_decl_line).is_some()
                    && !matches!(entry.attr_value(dw::DW_AT_declaration), Some(Value::Flag(true)))
                    && self.is_named(unit, entry, name)
            };
            match first(unit, is_it) {
                Some(entry) => ControlFlow::Break((number, entry)),
                None => ControlFlow::Continue(()),
            }
        })?;
        let root = self.root(number)?;
        Some((number, Die { entry, ..root }))
    }
}

impl Function<'_> {
    /// Returns the function's name in its source.
    pub fn name(&self) -> Option<String> {
        self.chain.first()?.name()
    }

    /// Returns the address of the function's first instruction.
    pub fn entry_pc(&self) -> Option<u64> {
        let function = self.chain.first()?;
        let address = |at| function.debug.dwarf(false).attr_address(&function.unit, function.value(at)?).ok()?;
        // If the function's code has several ranges, the first one contains the entry.
        let first = || function.ranges().first().map(|range| range.begin);
        address(dw::DW_AT_entry_pc).or_else(first).or_else(|| address(dw::DW_AT_low_pc))
    }

    /// Returns the end of that range of the function's code that contains the address.
    pub fn end_of(&self, pc: u64) -> Option<u64> {
        self.chain.first()?.ranges().iter().find(|range| (range.begin..range.end).contains(&pc)).map(|range| range.end)
    }

    /// Returns whether this function, or one that is inlined into it at the address, has this name.
    pub fn is_or_has(&self, name: &str) -> bool {
        self.chain.iter().filter(|die| die.tag() != dw::DW_TAG_lexical_block).any(|die| die.name().as_deref() == Some(name))
    }
}

fn is_block(die: &Die<'_>) -> bool {
    matches!(die.tag(), dw::DW_TAG_lexical_block | dw::DW_TAG_inlined_subroutine | dw::DW_TAG_try_block | dw::DW_TAG_catch_block)
}
