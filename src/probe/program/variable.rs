//! Variables of programs as fetch arguments, by the programs' debug information.

use super::file::{ProgramFile, shown};
use super::place::Spot;
use super::symbol;
use crate::probe::dwarf::{Debug, Here};
use crate::probe::grammar::{Arg, Fetch, Place, Probe};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use crate::probe::value::{self, Need};
use anyhow::{Context, anyhow, bail};
use std::rc::Rc;

/// A probe whose arguments are looked up at each of its places.
pub struct Arguments<'a> {
    probe: &'a Probe,
    home: Home,
}

/// Whose data the data of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    Program,
    Kernel,
}

/// What the arguments are at one place.
struct Found {
    args: Vec<Arg>,
    /// The place, or one behind it where the variables are.
    svma: u64,
    note: Option<String>,
}

/// Says in the kernel's words where the code at an address of a file is.
pub type Placing<'a> = &'a dyn Fn(u64, &mut ProgramFile, &mut dyn Surroundings) -> anyhow::Result<Place>;

impl<'a> Arguments<'a> {
    pub fn of(probe: &'a Probe, home: Home) -> Arguments<'a> {
        Arguments { probe, home }
    }

    /// The probe at each of these spots, with its arguments as they are there.
    ///
    /// # Errors
    /// There is no debug information, no such variable, or its value is out of the kernel's reach.
    pub fn at_each(
        &self,
        spots: Vec<Spot>,
        file: &mut ProgramFile,
        surroundings: &mut dyn Surroundings,
        place: Placing,
    ) -> anyhow::Result<Resolved> {
        let mut resolved = Resolved { probes: Vec::with_capacity(spots.len()), notes: Vec::new() };
        for spot in spots {
            let found = self.at(spot, file, surroundings).with_context(|| format!("at {:#x} of {}", spot.svma, shown(&file.path)))?;
            resolved.notes.extend(found.note);
            let place = place(found.svma, file, surroundings)?;
            resolved.probes.push(Probe { place, args: found.args, ..self.probe.clone() });
        }
        Ok(resolved)
    }

    fn at(&self, spot: Spot, file: &mut ProgramFile, surroundings: &mut dyn Surroundings) -> anyhow::Result<Found> {
        let (args, is_return) = (&self.probe.args, self.probe.place.is_return());
        let unchanged = Found { args: args.clone(), svma: spot.svma, note: None };
        let names: Vec<&str> = args.iter().filter_map(|arg| value::name_in(&arg.value)).collect();
        let has_all = args.iter().any(|arg| arg.value == Fetch::Arguments);
        let of_return = value::needs_return_type(args);
        if names.is_empty() && !has_all && of_return == Need::None {
            return Ok(unchanged);
        }
        if is_return && (has_all || !names.is_empty()) {
            bail!("at a function's return there is $retval, but no variables any more; probe its entry for those");
        }
        let debug = match file.debug_info(surroundings) {
            Ok(debug) => debug,
            Err(_) if of_return == Need::Wish => return Ok(unchanged),
            Err(error) => return Err(error),
        };
        let Some(mut here) = here(&debug, spot, self.home, file, surroundings) else {
            return match of_return {
                Need::Wish => Ok(unchanged),
                _ => Err(anyhow!("{} has no debug information of the code there", shown(&file.path))),
            };
        };
        let mut note = None;
        let entry = here.function.entry_pc();
        if entry == Some(spot.svma) && !is_return && (has_all || names.iter().any(|name| here.is_stored_later(name))) {
            let moved = here.function.end_of(spot.svma).filter(|_| self.is_any_stored_later(&here, has_all));
            if let Some(svma) = moved.and_then(|end| debug.prologue_end(spot.svma, end)) {
                let function = here.function.name().unwrap_or_default();
                note = Some(format!(
                    "the probe is {} bytes behind the beginning of {}, where its arguments are in place",
                    svma - spot.svma,
                    function.escape_debug()
                ));
                let behind = Spot { svma, ..spot };
                here = self::here(&debug, behind, self.home, file, surroundings)
                    .ok_or_else(|| anyhow!("{} ends before it begins", function.escape_debug()))?;
            }
        }
        Ok(Found { args: value::resolve_all(args, &here)?, svma: here.pc, note })
    }

    /// One of what is wanted lies where the function's first instructions put it.
    fn is_any_stored_later(&self, here: &Here<'_>, has_all: bool) -> bool {
        let all = if has_all { value::Scope::arguments(here).unwrap_or_default() } else { Vec::new() };
        let named = self.probe.args.iter().filter_map(|arg| value::name_in(&arg.value));
        named.chain(all.iter().map(String::as_str)).any(|name| here.is_stored_later(name))
    }
}

/// The variables at a spot; `None` if no function that is described is there.
fn here<'d>(debug: &'d Rc<Debug>, spot: Spot, home: Home, file: &mut ProgramFile, surroundings: &mut dyn Surroundings) -> Option<Here<'d>> {
    let function = debug.function_at(spot.svma)?;
    let frame = file.frame(spot.svma, surroundings);
    let data: Box<dyn Fn(u64) -> anyhow::Result<Fetch>> = match home {
        Home::Program => {
            // `@+` counts from where the probe's own page is mapped, as if all of the file were mapped so.
            let bias = file.code_offset(spot.svma).ok()?.wrapping_sub(spot.svma);
            Box::new(move |svma| Ok(Fetch::AtFileOffset(svma.wrapping_add(bias))))
        }
        Home::Kernel => {
            let symbols = symbol::data(file, surroundings);
            Box::new(move |svma| kernel_data(&symbols, svma))
        }
    };
    Some(Here { debug, function, pc: spot.svma, is_function: spot.is_function, frame, data })
}

/// Data of the kernel is named by its symbol, wherever the kernel was loaded to.
fn kernel_data(symbols: &[(u64, String)], svma: u64) -> anyhow::Result<Fetch> {
    // What belongs to each CPU is at no address of its own: the kernel's file has it far below all others.
    const LOWEST: u64 = 1 << 63;
    let at = symbols.partition_point(|(start, _)| *start <= svma).checked_sub(1).filter(|_| svma >= LOWEST);
    let Some((start, symbol)) = at.map(|at| &symbols[at]) else { bail!("it is not data that all processors share") };
    Ok(Fetch::AtSymbol { symbol: symbol.clone(), offset: (svma - start).cast_signed() })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
