//! Resolves probes of programs and libraries: named places become offsets, and variables become their locations.

use super::file::{ProgramFile, shown};
use super::variable::{Arguments, ImageKind};
use super::{line, symbol};
use crate::probe::grammar::{FilePlace, Probe, ProbePoint, When};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// An address to probe.
#[derive(Clone, Copy, Debug)]
pub struct ProbeAddress {
    /// The address, as the file's headers and symbols state it.
    pub svma: u64,
    /// Whether it is the entry of a function that the user named, and not a line or an offset.
    pub is_function: bool,
}

/// Resolves a probe with [`ProbePoint::File`].
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let ProbePoint::File { path, at, when, reference_counter } = &probe.place else { return Ok(Resolved::unchanged(probe)) };
    let mut file = ProgramFile::open(absolute(path, surroundings)?, surroundings)?;
    let mut notes = Vec::new();
    let addresses = match at {
        FilePlace::Offset(offset) => vec![ProbeAddress { svma: file.code_svma(*offset)?, is_function: false }],
        FilePlace::Symbol { symbol, offset } => {
            let found = symbol::find(&mut file, symbol, surroundings)?;
            notes.extend(found.note.clone());
            vec![ProbeAddress { svma: found.at(*offset, *when)?, is_function: *offset == 0 }]
        }
        FilePlace::Line(_) if *when != When::Entry => bail!("a return probe is on a whole function, not on a line"),
        FilePlace::Line(source) => line::addresses(&mut file, source, surroundings)?,
    };
    let place = |svma: u64, file: &mut ProgramFile, _: &mut dyn Surroundings| {
        let at = FilePlace::Offset(file.code_offset(svma)?);
        Ok(ProbePoint::File { path: file.path.clone(), at, when: *when, reference_counter: *reference_counter })
    };
    let resolved = Arguments::of(probe, ImageKind::Program).at_each(addresses, &mut file, surroundings, &place)?;
    notes.extend(resolved.notes);
    Ok(Resolved { notes, ..resolved })
}

/// Returns the absolute path, with symbolic links resolved: the kernel looks the path up from the root, and shows it in
/// events as it was written.
pub fn absolute(path: &Path, surroundings: &mut dyn Surroundings) -> anyhow::Result<PathBuf> {
    surroundings.absolute(path).with_context(|| format!("there is no file {}", shown(path)))
}
