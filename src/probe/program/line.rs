//! Probes on source lines of a program.

use super::file::ProgramFile;
use super::place::Spot;
use super::symbol;
use crate::probe::grammar::SourceLine;
use crate::probe::surroundings::Surroundings;
use anyhow::{Context, bail};

/// All places of a line: it may be in several copies of an inlined function, and several times in one function.
///
/// # Errors
/// There is no debug information, no such file or function, or the line has no code.
pub fn spots(file: &mut ProgramFile, source: &SourceLine, surroundings: &mut dyn Surroundings) -> anyhow::Result<Vec<Spot>> {
    let asked = || format!("{}:{} is not found", source.of.escape_debug(), source.line);
    let debug = file.debug_info(surroundings).with_context(asked)?;
    let mut addresses = if source.of.contains(['.', '/']) {
        debug.addresses_of_line(&source.of, source.line)?
    } else {
        // A function without code of its own is still one that others have in them.
        let entry = symbol::find(file, &source.of, surroundings).ok().map(|function| function.svma);
        debug.addresses_in_function(&source.of, entry, source.line)?
    };
    // What the linker left out is at no address of the file.
    addresses.retain(|svma| file.code_offset(*svma).is_ok());
    if addresses.is_empty() {
        bail!("{}: no code is left of it", asked());
    }
    Ok(addresses.into_iter().map(|svma| Spot { svma, is_function: false }).collect())
}
