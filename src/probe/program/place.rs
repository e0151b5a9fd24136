//! Probes on files: places by name become offsets, variables where they are.

use super::file::{ProgramFile, shown};
use super::variable::{Arguments, Home};
use super::{line, symbol};
use crate::probe::grammar::{FilePlace, Place, Probe, When};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// An address that a probe is to be at.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub svma: u64,
    /// It is the beginning of a function that was named, and not a line or an offset.
    pub is_function: bool,
}

/// A probe with [`Place::File`].
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let Place::File { path, at, when, reference_counter } = &probe.place else { return Ok(Resolved::unchanged(probe)) };
    let mut file = ProgramFile::open(absolute(path, surroundings)?, surroundings)?;
    let mut notes = Vec::new();
    let spots = match at {
        FilePlace::Offset(offset) => vec![Spot { svma: file.code_svma(*offset)?, is_function: false }],
        FilePlace::Symbol { symbol, offset } => {
            let found = symbol::find(&mut file, symbol, surroundings)?;
            notes.extend(found.note.clone());
            vec![Spot { svma: found.at(*offset, *when)?, is_function: *offset == 0 }]
        }
        FilePlace::Line(_) if *when != When::Entry => bail!("a return probe is on a whole function, not on a line"),
        FilePlace::Line(source) => line::spots(&mut file, source, surroundings)?,
    };
    let place = |svma: u64, file: &mut ProgramFile, _: &mut dyn Surroundings| {
        let at = FilePlace::Offset(file.code_offset(svma)?);
        Ok(Place::File { path: file.path.clone(), at, when: *when, reference_counter: *reference_counter })
    };
    let resolved = Arguments::of(probe, Home::Program).at_each(spots, &mut file, surroundings, &place)?;
    notes.extend(resolved.notes);
    Ok(Resolved { notes, ..resolved })
}

/// From the root and without links: the kernel looks from there, and writes an event's path as it was given.
pub fn absolute(path: &Path, surroundings: &mut dyn Surroundings) -> anyhow::Result<PathBuf> {
    surroundings.absolute(path).with_context(|| format!("there is no file {}", shown(path)))
}
