//! The function whose code is at an address, and the blocks and inlined functions within it.

use super::debug::{Debug, Entry, Value, first};
use super::die::{self, Die};
use gimli::constants as dw;
use std::ops::ControlFlow;

/// A function with code of its own, at one of its addresses.
#[derive(Clone)]
pub struct Function<'d> {
    /// The function first, then what is in it and holds the address.
    pub(super) chain: Vec<Die<'d>>,
    pub(super) number: usize,
}

impl Debug {
    /// The function that an address belongs to.
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

    /// The unit that an address belongs to: by the table of addresses where there is one.
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

    /// A function by its name, wherever it is: one that has no code of its own too, because it is inlined.
    pub(super) fn function_named(&self, name: &str) -> Option<(usize, Die<'_>)> {
        let (number, entry) = self.find_unit(|number, unit| {
            let is_it = |entry: &Entry| {
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
    /// As its source has it.
    pub fn name(&self) -> Option<String> {
        self.chain.first()?.name()
    }

    /// Its first instruction.
    pub fn entry_pc(&self) -> Option<u64> {
        let function = self.chain.first()?;
        let address = |at| function.debug.dwarf(false).attr_address(&function.unit, function.value(at)?).ok()?;
        // With several parts, the first one listed is where it is entered.
        let first = || function.ranges().first().map(|range| range.begin);
        address(dw::DW_AT_entry_pc).or_else(first).or_else(|| address(dw::DW_AT_low_pc))
    }

    /// Where the part of its code that holds this address ends.
    pub fn end_of(&self, pc: u64) -> Option<u64> {
        self.chain.first()?.ranges().iter().find(|range| (range.begin..range.end).contains(&pc)).map(|range| range.end)
    }

    /// This function, or one that is inlined into it at the address, has the name.
    pub fn is_or_has(&self, name: &str) -> bool {
        self.chain.iter().filter(|die| die.tag() != dw::DW_TAG_lexical_block).any(|die| die.name().as_deref() == Some(name))
    }
}

fn is_block(die: &Die<'_>) -> bool {
    matches!(die.tag(), dw::DW_TAG_lexical_block | dw::DW_TAG_inlined_subroutine | dw::DW_TAG_try_block | dw::DW_TAG_catch_block)
}
