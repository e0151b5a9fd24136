//! Resolves variables of programs into fetch arguments, by the programs' debug information.

use super::file::{ProgramFile, shown};
use super::place::ProbeAddress;
use super::symbol;
use crate::probe::dwarf::{AddressScope, Debug};
use crate::probe::grammar::{Arg, Fetch, Probe, ProbePoint};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use crate::probe::value::{self, TypeNeed};
use anyhow::{Context, anyhow, bail};
use std::rc::Rc;

/// A probe whose arguments are resolved at each of its addresses.
pub struct Arguments<'a> {
    probe: &'a Probe,
    image: ImageKind,
}

/// Whether a file is a program or the kernel, which decides how static data is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    Program,
    Kernel,
}

/// The arguments of a probe, resolved at one address.
struct ResolvedArguments {
    args: Vec<Arg>,
    /// The probed address, which may be behind the prologue, where the variables have their locations.
    svma: u64,
    note: Option<String>,
}

/// Converts an address of a file into a place in the kernel's own grammar.
pub type Placing<'a> = &'a dyn Fn(u64, &mut ProgramFile, &mut dyn Surroundings) -> anyhow::Result<ProbePoint>;

impl<'a> Arguments<'a> {
    /// Returns the arguments of a probe, which [`Arguments::at_each`] resolves. `image` is what the probed file is.
    pub fn of(probe: &'a Probe, image: ImageKind) -> Arguments<'a> {
        Arguments { probe, image }
    }

    /// Returns the probe at each of these addresses, with its arguments resolved there.
    ///
    /// # Errors
    /// There is no debug information, no such variable, or the kernel cannot fetch its value.
    pub fn at_each(
        &self,
        addresses: Vec<ProbeAddress>,
        file: &mut ProgramFile,
        surroundings: &mut dyn Surroundings,
        place: Placing,
    ) -> anyhow::Result<Resolved> {
        let mut resolved = Resolved { probes: Vec::with_capacity(addresses.len()), notes: Vec::new() };
        for address in addresses {
            let found = self.at(address, file, surroundings).with_context(|| format!("at {:#x} of {}", address.svma, shown(&file.path)))?;
            resolved.notes.extend(found.note);
            let place = place(found.svma, file, surroundings)?;
            resolved.probes.push(Probe { place, args: found.args, ..self.probe.clone() });
        }
        Ok(resolved)
    }

    fn at(&self, address: ProbeAddress, file: &mut ProgramFile, surroundings: &mut dyn Surroundings) -> anyhow::Result<ResolvedArguments> {
        let (args, is_return) = (&self.probe.args, self.probe.place.is_return());
        let unchanged = ResolvedArguments { args: args.clone(), svma: address.svma, note: None };
        let names: Vec<&str> = args.iter().filter_map(|arg| value::name_in(&arg.value)).collect();
        let has_all = args.iter().any(|arg| arg.value == Fetch::Arguments);
        let of_return = value::needs_return_type(args);
        if names.is_empty() && !has_all && of_return == TypeNeed::None {
            return Ok(unchanged);
        }
        if is_return && (has_all || !names.is_empty()) {
            bail!("variables cannot be fetched at a function's return, only $retval; probe the function's entry for its variables");
        }
        let debug = match file.debug_info(surroundings) {
            Ok(debug) => debug,
            Err(_) if of_return == TypeNeed::Useful => return Ok(unchanged),
            Err(error) => return Err(error),
        };
        let Some(mut scope) = scope(&debug, address, self.image, file, surroundings) else {
            return match of_return {
                TypeNeed::Useful => Ok(unchanged),
                _ => Err(anyhow!("{} has no debug information for the code at this address", shown(&file.path))),
            };
        };
        let mut note = None;
        let entry = scope.function.entry_pc();
        if entry == Some(address.svma) && !is_return && (has_all || names.iter().any(|name| scope.is_stored_later(name))) {
            let moved = scope.function.end_of(address.svma).filter(|_| self.is_any_stored_later(&scope, has_all));
            if let Some(svma) = moved.and_then(|end| debug.prologue_end(address.svma, end)) {
                let function = scope.function.name().unwrap_or_default();
                note = Some(format!(
                    "the probe is {} bytes behind the entry of {}, where its arguments are stored",
                    svma - address.svma,
                    function.escape_debug()
                ));
                let behind = ProbeAddress { svma, ..address };
                scope = self::scope(&debug, behind, self.image, file, surroundings).ok_or_else(|| {
                    anyhow!("the debug information of {} is damaged: its prologue ends outside of it", function.escape_debug())
                })?;
            }
        }
        Ok(ResolvedArguments { args: value::resolve_all(args, &scope)?, svma: scope.pc, note })
    }

    /// Returns whether the prologue stores one of the fetched variables, so that it has no value at the entry.
    fn is_any_stored_later(&self, scope: &AddressScope<'_>, has_all: bool) -> bool {
        let all = if has_all { value::Scope::arguments(scope).unwrap_or_default() } else { Vec::new() };
        let named = self.probe.args.iter().filter_map(|arg| value::name_in(&arg.value));
        named.chain(all.iter().map(String::as_str)).any(|name| scope.is_stored_later(name))
    }
}

/// Returns the variables in scope at an address; `None` if no described function contains the address.
fn scope<'d>(
    debug: &'d Rc<Debug>,
    address: ProbeAddress,
    image: ImageKind,
    file: &mut ProgramFile,
    surroundings: &mut dyn Surroundings,
) -> Option<AddressScope<'d>> {
    let function = debug.function_at(address.svma)?;
    let frame = file.frame(address.svma, surroundings);
    let data: Box<dyn Fn(u64) -> anyhow::Result<Fetch>> = match image {
        ImageKind::Program => {
            // The kernel counts `@+` as if the whole file were mapped in the same way as the probed page.
            let bias = file.code_offset(address.svma).ok()?.wrapping_sub(address.svma);
            Box::new(move |svma| Ok(Fetch::AtFileOffset(svma.wrapping_add(bias))))
        }
        ImageKind::Kernel => {
            let symbols = symbol::data(file, surroundings);
            Box::new(move |svma| kernel_data(&symbols, svma))
        }
    };
    Some(AddressScope { debug, function, pc: address.svma, is_function: address.is_function, frame, data })
}

/// Returns the fetch argument for static data of the kernel: a symbol plus an offset, which is valid wherever the
/// kernel is loaded.
fn kernel_data(symbols: &[(u64, String)], svma: u64) -> anyhow::Result<Fetch> {
    // Per-CPU variables have no single address: in the kernel's file, their addresses are far below all others.
    const LOWEST: u64 = 1 << 63;
    let at = symbols.partition_point(|(start, _)| *start <= svma).checked_sub(1).filter(|_| svma >= LOWEST);
    let Some((start, symbol)) = at.map(|at| &symbols[at]) else {
        bail!("it is not a global variable of the kernel (a per-CPU variable cannot be fetched)")
    };
    Ok(Fetch::AtSymbol { symbol: symbol.clone(), offset: (svma - start).cast_signed() })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
