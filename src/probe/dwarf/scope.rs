//! The variables in scope at an address.

use super::debug::{Debug, RawDie, Unit, Value, first_outermost};
use super::die::Die;
use super::frame::Frame;
use super::function::Function;
use super::location::Evaluator;
use super::shape::{self, TypeId};
use crate::probe::grammar::Fetch;
use crate::probe::value::{Member, Scope, Shape, Types, ValueLocation};
use crate::text::near;
use anyhow::{anyhow, bail};
use gimli::Operation;
use gimli::constants as dw;
use std::ops::ControlFlow;

/// An address in a function, with the variables in scope there.
pub struct AddressScope<'d> {
    /// The debug information of the file.
    pub debug: &'d Debug,
    /// The function, with the blocks and inlined functions that contain the address.
    pub function: Function<'d>,
    /// The address, as the file's headers and symbols state it.
    pub pc: u64,
    /// Whether the user named the function (and not a line or an offset): then only the function's own arguments and
    /// variables are in scope, not those of its blocks.
    pub is_function: bool,
    /// The CFA at `pc`; `None` if it is not known.
    pub frame: Option<Frame>,
    /// Returns the fetch argument that reads the file's static data at an address, for a probe at `pc`.
    pub data: Box<dyn Fn(u64) -> anyhow::Result<Fetch> + 'd>,
}

impl<'d> AddressScope<'d> {
    /// Returns the variables of this name, the innermost first.
    fn named(&self, name: &str) -> Vec<Die<'d>> {
        let scopes = if self.is_function { &self.function.chain[..1] } else { &self.function.chain[..] };
        let variables = scopes.iter().rev().flat_map(|scope| scope.children()).filter(is_variable);
        variables.filter(|die| die.name().as_deref() == Some(name)).collect()
    }

    /// Returns whether the prologue stores this variable in the function's frame, so that its location is not valid at
    /// the function's entry.
    pub fn is_stored_later(&self, name: &str) -> bool {
        self.named(name).first().is_some_and(|die| self.is_in_own_frame(die))
    }

    /// Returns whether the variable has a single location for the whole function, in the frame that the function sets
    /// up.
    fn is_in_own_frame(&self, die: &Die<'_>) -> bool {
        let first = |die: &Die<'_>, at| {
            let expression = die.value(at).and_then(|value: Value| value.exprloc_value())?;
            expression.operations(die.unit.encoding()).next().ok()?
        };
        match first(die, dw::DW_AT_location) {
            // The arguments above the return address were stored by the caller.
            Some(Operation::FrameOffset { offset: 0.. }) => {
                let base = self.function.chain.first().and_then(|function| first(function, dw::DW_AT_frame_base));
                !matches!(base, Some(Operation::CallFrameCFA))
            }
            Some(Operation::FrameOffset { .. } | Operation::RegisterOffset { .. }) => true,
            _ => false,
        }
    }

    /// Finds a global variable: first in the same unit, then among the external ones of all units.
    fn global(&self, name: &str) -> Option<Die<'d>> {
        let root = self.debug.root(self.function.number)?;
        let is_it = |unit: &Unit, entry: &RawDie| {
            let is_defined = entry.tag() == dw::DW_TAG_variable && entry.attr_value(dw::DW_AT_declaration).is_none();
            is_defined && self.debug.is_named(unit, entry, name)
        };
        if let Some(entry) = first_outermost(&root.unit, |entry| is_it(&root.unit, entry)) {
            return Some(Die { entry, ..root });
        }
        let (number, entry) = self.debug.find_unit(|number, unit| {
            let found = first_outermost(unit, |entry| is_it(unit, entry) && entry.attr_value(dw::DW_AT_external).is_some());
            found.map_or(ControlFlow::Continue(()), |entry| ControlFlow::Break((number, entry)))
        })?;
        Some(Die { entry, ..self.debug.root(number)? })
    }

    fn place(&self, die: &Die<'_>) -> Result<ValueLocation, String> {
        let evaluator = Evaluator {
            dwarf: self.debug.dwarf(die.in_shared),
            unit: &die.unit,
            machine: self.debug.machine,
            function: self.function.chain.first(),
            pc: self.pc,
            is_entry: self.function.entry_pc() == Some(self.pc),
            frame: self.frame.as_ref(),
            data: &self.data,
        };
        if let Some(value) = die.value(dw::DW_AT_const_value) {
            let number = value.sdata_value().or_else(|| value.udata_value().map(u64::cast_signed));
            return number.map(ValueLocation::Constant).ok_or_else(|| "it is a constant that is not a number".to_owned());
        }
        let Some(value) = die.value(dw::DW_AT_location) else { return Err("it was optimized out".to_owned()) };
        match evaluator.expression_at(value)? {
            Some(expression) => evaluator.place(expression),
            None => Err("it has no value at this address: it was optimized out, or is set later".to_owned()),
        }
    }

    /// Returns the error that there is no such variable, with similar names.
    fn unknown(&self, name: &str) -> anyhow::Error {
        let function = self.function.name().unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for scope in self.function.chain.iter().rev() {
            names.extend(scope.children().iter().filter(|die| is_variable(die)).filter_map(Die::name));
        }
        names.dedup();
        let near = near::nearest(name, names.iter().map(String::as_str), 3);
        let hint = match (near.is_empty(), names.is_empty()) {
            (false, _) => near::hint(&near),
            (true, true) => "; no variables are in scope at this address".to_owned(),
            (true, false) => format!("; its variables are {}", names.iter().take(12).cloned().collect::<Vec<_>>().join(", ")),
        };
        anyhow!("{} has no variable {}{}", function.escape_debug(), name.escape_debug(), hint.escape_debug())
    }
}

impl Types for AddressScope<'_> {
    type Id = TypeId;

    fn shape(&self, id: TypeId) -> Shape<TypeId> {
        shape::shape(self.debug, id)
    }

    fn members(&self, id: TypeId) -> Vec<Member<TypeId>> {
        shape::members(self.debug, id)
    }

    fn pointer_bytes(&self) -> u8 {
        self.debug.address_bytes
    }
}

impl Scope for AddressScope<'_> {
    fn variable(&self, name: &str) -> anyhow::Result<(ValueLocation, TypeId)> {
        let found = self.named(name);
        // If several variables have this name (in nested blocks), the innermost one with a valid location is taken.
        let mut problem = None;
        for die in &found {
            if self.is_function && die.tag() == dw::DW_TAG_variable && self.is_in_own_frame(die) {
                let function = self.function.name().unwrap_or_default();
                bail!(
                    "{0} is a local variable of {1}, which has no value at the function's entry; probe a line of the function, as in {1}:3",
                    name.escape_debug(),
                    function.escape_debug()
                );
            }
            match self.place(die) {
                Ok(place) => return Ok((place, TypeId::of(die))),
                Err(reason) => problem = problem.or(Some(reason)),
            }
        }
        if let Some(reason) = problem {
            bail!("{} cannot be fetched: {reason}", name.escape_debug());
        }
        let global = self.global(name).ok_or_else(|| self.unknown(name))?;
        let place = self.place(&global).map_err(|reason| anyhow!("{} cannot be fetched: {reason}", name.escape_debug()))?;
        Ok((place, TypeId::of(&global)))
    }

    fn arguments(&self) -> anyhow::Result<Vec<String>> {
        let parameters = self.function.chain.first().map(Die::children).unwrap_or_default();
        Ok(parameters.iter().filter(|die| die.tag() == dw::DW_TAG_formal_parameter).filter_map(Die::name).collect())
    }

    fn returned(&self) -> Option<TypeId> {
        self.function.chain.first().map(TypeId::of).filter(|of| !of.is_nothing())
    }

    fn data(&self, svma: u64) -> anyhow::Result<Fetch> {
        (self.data)(svma)
    }
}

fn is_variable(die: &Die<'_>) -> bool {
    matches!(die.tag(), dw::DW_TAG_formal_parameter | dw::DW_TAG_variable)
}
