//! Resolves probes of the kernel by its debug information: lines, and variables at any address.

use super::image;
use crate::probe::grammar::{KernelPlace, Probe, ProbePoint, When};
use crate::probe::program::file::ProgramFile;
use crate::probe::program::place::ProbeAddress;
use crate::probe::program::variable::{Arguments, ImageKind};
use crate::probe::program::{line, symbol};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use anyhow::{Context, bail};

/// Resolves a probe with [`ProbePoint::Kernel`].
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, at: &KernelPlace, when: When, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let what = || format!("{} cannot be resolved", at.to_string().escape_debug());
    let mut file = image::open(surroundings).with_context(what)?;
    let mut notes = Vec::new();
    let addresses = match at {
        KernelPlace::Line(_) if when != When::Entry => bail!("a return probe is on a whole function, not on a line"),
        KernelPlace::Line(source) => line::addresses(&mut file, source, surroundings)?,
        KernelPlace::Symbol { module: None, symbol, offset } => {
            let function = symbol::find(&mut file, symbol, surroundings)?;
            notes.extend(function.note.clone());
            vec![ProbeAddress { svma: function.at(*offset, when)?, is_function: *offset == 0 }]
        }
        KernelPlace::Symbol { module: Some(module), .. } => {
            bail!(
                "variables inside a function of a module (here {}) cannot be looked up; its arguments can, at its entry (without an offset)",
                module.escape_debug()
            )
        }
        KernelPlace::Address(address) => bail!("variables cannot be looked up at an address ({address:#x}); name the function"),
    };
    let place = |svma: u64, file: &mut ProgramFile, surroundings: &mut dyn Surroundings| {
        Ok(ProbePoint::Kernel { at: named(file, svma, surroundings)?, when })
    };
    let resolved = Arguments::of(probe, ImageKind::Kernel).at_each(addresses, &mut file, surroundings, &place)?;
    notes.extend(resolved.notes);
    Ok(Resolved { notes, ..resolved })
}

/// Returns a place that is valid wherever the kernel is loaded: an offset from the function that contains the address,
/// or from the beginning of the kernel's code if several functions have that name.
fn named(file: &mut ProgramFile, svma: u64, surroundings: &mut dyn Surroundings) -> anyhow::Result<KernelPlace> {
    const FIRST: &str = "_text";
    let of = |symbol: String, start: u64| KernelPlace::Symbol { module: None, symbol, offset: svma.wrapping_sub(start).cast_signed() };
    match symbol::containing(file, svma, surroundings) {
        Some(found) if found.is_alone => Ok(of(found.name, found.svma)),
        _ => {
            let first = symbol::find(file, FIRST, surroundings)?;
            Ok(of(FIRST.to_owned(), first.svma))
        }
    }
}
