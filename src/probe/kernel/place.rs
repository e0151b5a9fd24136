//! Probes on the kernel by its debug information: lines, and variables anywhere.

use super::image;
use crate::probe::grammar::{KernelPlace, Place, Probe, When};
use crate::probe::program::file::ProgramFile;
use crate::probe::program::place::Spot;
use crate::probe::program::variable::{Arguments, Home};
use crate::probe::program::{line, symbol};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use anyhow::{Context, bail};

/// A probe with [`Place::Kernel`].
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, at: &KernelPlace, when: When, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let what = || format!("{} is not found", at.to_string().escape_debug());
    let mut file = image::open(surroundings).with_context(what)?;
    let mut notes = Vec::new();
    let spots = match at {
        KernelPlace::Line(_) if when != When::Entry => bail!("a return probe is on a whole function, not on a line"),
        KernelPlace::Line(source) => line::spots(&mut file, source, surroundings)?,
        KernelPlace::Symbol { module: None, symbol, offset } => {
            let function = symbol::find(&mut file, symbol, surroundings)?;
            notes.extend(function.note.clone());
            vec![Spot { svma: function.at(*offset, when)?, is_function: *offset == 0 }]
        }
        KernelPlace::Symbol { module: Some(module), .. } => {
            bail!(
                "inside a function of a module (here {}) variables are not looked up; at its beginning its arguments are",
                module.escape_debug()
            )
        }
        KernelPlace::Address(address) => bail!("at an address ({address:#x}) variables are not looked up; name the function"),
    };
    let place = |svma: u64, file: &mut ProgramFile, surroundings: &mut dyn Surroundings| {
        Ok(Place::Kernel { at: named(file, svma, surroundings)?, when })
    };
    let resolved = Arguments::of(probe, Home::Kernel).at_each(spots, &mut file, surroundings, &place)?;
    notes.extend(resolved.notes);
    Ok(Resolved { notes, ..resolved })
}

/// A place that holds wherever the kernel was loaded to: counted from its function, or from the beginning of all code if several have that name.
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
