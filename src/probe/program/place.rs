//! Probes on files: places by name become offsets.

use super::file::{ProgramFile, shown};
use super::symbol;
use crate::probe::grammar::{FilePlace, Place, Probe, When};
use crate::probe::naming;
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// A probe with [`Place::File`].
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let Place::File { path, at, when, reference_counter } = &probe.place else { return Ok(Resolved::unchanged(probe)) };
    let mut file = ProgramFile::open(absolute(path, surroundings)?, surroundings)?;
    let mut notes = Vec::new();
    let (offset, name) = match at {
        FilePlace::Offset(offset) => {
            file.code_svma(*offset)?;
            (*offset, None)
        }
        FilePlace::Symbol { symbol, offset } => {
            let found = symbol::find(&mut file, symbol, surroundings)?;
            notes.extend(found.note.clone());
            let svma = found.at(*offset, *when)?;
            (file.code_offset(svma)?, Some(event_name(symbol, *when)))
        }
        FilePlace::Line(_) => bail!("{}: lines are not looked up", shown(&file.path)),
    };
    let place = Place::File { path: file.path, at: FilePlace::Offset(offset), when: *when, reference_counter: *reference_counter };
    let event = probe.event.clone().or(name);
    Ok(Resolved { probes: vec![Probe { place, event, ..probe.clone() }], notes })
}

/// From the root and without links: the kernel looks from there, and writes an event's path as it was given.
pub fn absolute(path: &Path, surroundings: &mut dyn Surroundings) -> anyhow::Result<PathBuf> {
    let absolute = surroundings.absolute(path).with_context(|| format!("there is no file {}", shown(path)))?;
    match absolute.to_str() {
        Some(text) if !text.contains(|c: char| c.is_whitespace() || c.is_control()) => Ok(absolute),
        _ => bail!("the kernel takes no probes on files with blanks or odd characters in their paths: {}", shown(&absolute)),
    }
}

/// As perf calls them: `handle`, `handle__return`.
fn event_name(symbol: &str, when: When) -> String {
    match when {
        When::Entry => naming::event(symbol),
        When::Return { .. } => naming::event(&format!("{}__return", naming::event(symbol))),
    }
}
