//! Resolves source lines of a program.

use super::file::ProgramFile;
use super::place::ProbeAddress;
use super::symbol;
use crate::probe::grammar::SourceLine;
use crate::probe::surroundings::Surroundings;
use anyhow::{Context, bail};

/// Returns all addresses of a line. There are several if the line is in copies of an inlined function, or several times
/// in one function.
///
/// # Errors
/// There is no debug information, no such file or function, or the line has no code.
pub fn addresses(file: &mut ProgramFile, source: &SourceLine, surroundings: &mut dyn Surroundings) -> anyhow::Result<Vec<ProbeAddress>> {
    let asked = || format!("{}:{} cannot be resolved", source.of.escape_debug(), source.line);
    let debug = file.debug_info(surroundings).with_context(asked)?;
    let mut addresses = if source.of.contains(['.', '/']) {
        debug.addresses_of_line(&source.of, source.line)?
    } else {
        // A function without code of its own may still be inlined into others.
        let entry = symbol::find(file, &source.of, surroundings).ok().map(|function| function.svma);
        debug.addresses_in_function(&source.of, entry, source.line)?
    };
    // The linker removed code whose address is not in the file.
    addresses.retain(|svma| file.code_offset(*svma).is_ok());
    if addresses.is_empty() {
        bail!("{}: the linker removed its code", asked());
    }
    Ok(addresses.into_iter().map(|svma| ProbeAddress { svma, is_function: false }).collect())
}
