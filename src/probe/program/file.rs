//! A program's file, opened to look up names.

use crate::probe::dwarf::{Debug, Frame, Frames};
use crate::probe::surroundings::{AsFiles, Surroundings};
use crate::stack::symbols::debug_file::{self, DebugFile};
use crate::stack::symbols::object::minidebug;
use crate::stack::symbols::{ElfFile, Origin};
use anyhow::{Context, anyhow, bail};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// An ELF file, with the files to which its symbols and debug information were moved.
pub struct ProgramFile {
    /// The absolute path, with symbolic links resolved.
    pub path: PathBuf,
    /// The file at the path, which may have been stripped of its symbols.
    pub elf: ElfFile,
    /// The debug file, searched on demand.
    debug: Option<Option<DebugFile>>,
    /// The debug information, read on demand.
    debug_info: Option<Rc<Debug>>,
    /// The unwind tables of the file and its debug file, read on demand.
    tables: Option<Vec<Frames>>,
}

impl ProgramFile {
    /// Opens a file.
    ///
    /// # Errors
    /// The file does not exist, may not be read, or is not an ELF file.
    pub fn open(path: PathBuf, surroundings: &mut dyn Surroundings) -> anyhow::Result<ProgramFile> {
        let Some(source) = surroundings.open(&path) else { bail!("{} is not a readable regular file", shown(&path)) };
        let elf = ElfFile::read(source).with_context(|| format!("symbols of {} cannot be looked up", shown(&path)))?;
        Ok(ProgramFile { path, elf, debug: None, debug_info: None, tables: None })
    }

    /// Returns the file's separate debug file, if one is installed.
    pub fn debug(&mut self, surroundings: &mut dyn Surroundings) -> Option<&DebugFile> {
        // Paths are looked up in rtrace's own mount namespace: there is no process whose namespace would be relevant.
        let origin = || Origin { pid: 0, path: self.path.clone() };
        self.debug.get_or_insert_with(|| debug_file::find(&mut AsFiles(surroundings), &self.elf, &origin(), None)).as_ref()
    }

    /// Returns the files that have symbols of this one: the file itself and its debug file.
    pub fn symbol_files(&mut self, surroundings: &mut dyn Surroundings) -> Vec<&ElfFile> {
        self.debug(surroundings);
        let debug = self.debug.iter().flatten().map(|debug| &debug.file);
        std::iter::once(&self.elf).chain(debug).collect()
    }

    /// Returns the compressed symbols that a stripped file contains (`.gnu_debugdata`).
    pub fn packed_symbols(&self) -> Option<ElfFile> {
        minidebug(&self.elf)
    }

    /// Returns the DWARF debug information: variables, types and lines.
    ///
    /// # Errors
    /// There is no debug information, or it cannot be read.
    pub fn debug_info(&mut self, surroundings: &mut dyn Surroundings) -> anyhow::Result<Rc<Debug>> {
        if let Some(known) = &self.debug_info {
            return Ok(known.clone());
        }
        let read = Rc::new(self.read_debug_info(surroundings)?);
        self.debug_info = Some(read.clone());
        Ok(read)
    }

    fn read_debug_info(&mut self, surroundings: &mut dyn Surroundings) -> anyhow::Result<Debug> {
        let path = shown(&self.path);
        let of = |file: &ElfFile, shared: Option<ElfFile>| {
            Debug::read(file, shared.as_ref()).with_context(|| format!("names in {path} cannot be looked up"))
        };
        if self.elf.has_bytes_of(".debug_info") {
            let shared = debug_file::find_shared(&mut AsFiles(surroundings), &self.elf, &self.path, None);
            return of(&self.elf, shared);
        }
        self.debug(surroundings);
        match self.debug.iter().flatten().find(|debug| debug.file.has_bytes_of(".debug_info")) {
            Some(debug) => of(&debug.file, debug.find_shared(&mut AsFiles(surroundings))),
            None => bail!(
                "{path} has no debug information, which is needed for variables and lines: build it with -g, or install its debug symbols (in Debian a package \
                ending in -dbgsym or -dbg)"
            ),
        }
    }

    /// Returns the CFA at an address, by the unwind tables.
    pub fn frame(&mut self, svma: u64, surroundings: &mut dyn Surroundings) -> Option<Frame> {
        if self.tables.is_none() {
            self.tables = Some(self.symbol_files(surroundings).into_iter().map(Frames::read).collect());
        }
        self.tables.iter().flatten().find_map(|table| table.at(svma))
    }

    /// Returns the offset in the file of the code at an address.
    ///
    /// # Errors
    /// No segment is loaded at the address, or the segment is not executable.
    pub fn code_offset(&self, svma: u64) -> anyhow::Result<u64> {
        match self.elf.offset_of_svma(svma) {
            Some((offset, true)) => Ok(offset),
            Some((_, false)) => bail!("address {svma:#x} of {} is not in its code", shown(&self.path)),
            None => bail!("{} has nothing at address {svma:#x}", shown(&self.path)),
        }
    }

    /// Returns the address of the code at an offset of the file.
    ///
    /// # Errors
    /// There is no code at this offset, so a probe there would never be hit.
    pub fn code_svma(&self, offset: u64) -> anyhow::Result<u64> {
        let svma = self.elf.svma_of_offset(offset).filter(|svma| self.code_offset(*svma).is_ok_and(|code| code == offset));
        svma.ok_or_else(|| anyhow!("offset {offset:#x} of {} is not in its code, so a probe there would never be hit", shown(&self.path)))
    }
}

/// Formats a path for a message.
pub fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}
