//! Source lines and inlined functions, from a file's DWARF. Costly in time and memory, so on request only.

use super::demangle::demangle;
use super::elf::ElfFile;
use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use std::io;
use std::sync::Arc;

/// One function at an address: the one whose code it is, or one that it was inlined into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedFrame {
    /// Demangled; not escaped.
    pub function: Option<Box<str>>,
    /// As the compiler was told, with its directory; not escaped.
    pub file: Option<Box<str>>,
    /// From 1; `None` where the compiler says that there is none.
    pub line: Option<u32>,
}

/// The DWARF of one file.
pub struct Lines {
    context: Context<Section>,
    footprint: usize,
}

type Section = EndianArcSlice<RunTimeEndian>;

/// More functions inlined into one another than this are not shown.
const DEPTH_MAX: usize = 256;

impl Lines {
    /// Reads the sections; what is in them is looked at when it is wanted. `shared` is the file that dwz moved common parts to.
    ///
    /// # Errors
    /// A section cannot be read or unpacked, is too long, or damaged.
    pub fn read(file: &ElfFile, shared: Option<&ElfFile>) -> io::Result<Lines> {
        let mut footprint = 0;
        let mut dwarf = Dwarf::load(|id| section(file, id, &mut footprint))?;
        if let Some(shared) = shared {
            dwarf.load_sup(|id| section(shared, id, &mut footprint))?;
        }
        let context = Context::from_dwarf(dwarf).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Lines { context, footprint })
    }

    /// Memory in bytes, roughly: what is read from the sections takes about as much as they do.
    pub fn footprint(&self) -> usize {
        self.footprint.saturating_mul(2)
    }

    /// The functions at an address, the innermost first; none if nothing is said of it, or the data is damaged.
    ///
    /// For a return address, give the address before: the call is there, and behind it another line may begin.
    pub fn at(&self, svma: u64) -> Vec<InlinedFrame> {
        let mut found = Vec::new();
        // addr2line looks for what ends behind the address.
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

/// One section's bytes; none of those that say nothing of lines.
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
