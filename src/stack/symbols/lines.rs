//! Source lines and inlined functions, from a file's DWARF. Reading them takes much time and memory, so it is done on
//! request only.

use super::demangle::demangle;
use super::elf::ElfFile;
use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use std::io;
use std::sync::Arc;

/// A function at an address: the innermost inlined one, or one that it was inlined into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedFrame {
    /// The name, demangled but not escaped.
    pub function: Option<Box<str>>,
    /// The path that was passed to the compiler, with its directory; not escaped.
    pub file: Option<Box<str>>,
    /// The line from 1 on; `None` if the compiler recorded no line for the code.
    pub line: Option<u32>,
}

/// The DWARF of one file.
pub struct Lines {
    context: Context<Section>,
    footprint: usize,
}

type Section = EndianArcSlice<RunTimeEndian>;

/// The greatest number of functions at an address that are shown.
const DEPTH_MAX: usize = 256;

impl Lines {
    /// Reads the sections. Their contents are parsed at the lookups. `shared` is the file that dwz moved common parts
    /// to.
    ///
    /// # Errors
    /// Fails if a section cannot be read or decompressed, is too long, or is damaged.
    pub fn read(file: &ElfFile, shared: Option<&ElfFile>) -> io::Result<Lines> {
        let mut footprint = 0;
        let mut dwarf = Dwarf::load(|id| section(file, id, &mut footprint))?;
        if let Some(shared) = shared {
            dwarf.load_sup(|id| section(shared, id, &mut footprint))?;
        }
        let context = Context::from_dwarf(dwarf).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Lines { context, footprint })
    }

    /// Returns the memory in bytes, roughly: the parsed data take about as much as the sections.
    pub fn footprint(&self) -> usize {
        self.footprint.saturating_mul(2)
    }

    /// Returns the functions at an address, the innermost first. It is empty if the DWARF does not cover the address,
    /// or is damaged.
    ///
    /// For a return address, pass the address before it: that one is in the call instruction, and another line may
    /// begin behind the call.
    pub fn at(&self, svma: u64) -> Vec<InlinedFrame> {
        let mut found = Vec::new();
        // addr2line computes the end of the one-byte range at the address, which would overflow.
        if svma == u64::MAX {
            return found;
        }
        let Ok(mut frames) = self.context.find_frames(svma).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|name| name.raw_name().ok()).map(|name| match demangle(name.as_bytes()) {
                Some(demangled) => demangled.into(),
                None => Box::from(&*name),
            });
            let (file, line) = frame.location.map_or((None, None), |location| (location.file.map(Box::from), location.line));
            if function.is_some() || file.is_some() {
                found.push(InlinedFrame { function, file, line });
            }
            if found.len() == DEPTH_MAX {
                break;
            }
        }
        found
    }
}

/// Reads a section's bytes. Sections that line lookups do not use are left empty.
fn section(file: &ElfFile, id: SectionId, footprint: &mut usize) -> io::Result<Section> {
    use SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugNames};
    let contents = match id {
        DebugLoc | DebugLocLists | DebugMacinfo | DebugMacro | DebugNames => Vec::new(),
        id => file.contents(id.name())?,
    };
    *footprint += contents.len();
    Ok(EndianArcSlice::new(Arc::from(contents), file.byte_order().into()))
}

#[cfg(test)]
mod tests;
