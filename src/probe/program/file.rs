//! A program's file, opened to look names up in.

use crate::probe::dwarf::{Debug, Frame, Frames};
use crate::probe::surroundings::{AsFiles, Surroundings};
use crate::stack::symbols::debug_file::{self, DebugFile};
use crate::stack::symbols::object::minidebug;
use crate::stack::symbols::{ElfFile, Origin};
use anyhow::{Context, anyhow, bail};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// An ELF file, and those that its symbols and debug information were moved to.
pub struct ProgramFile {
    /// From the root, without links.
    pub path: PathBuf,
    pub elf: ElfFile,
    /// Looked for when it is wanted.
    debug: Option<Option<DebugFile>>,
    /// Read when it is wanted.
    debug_info: Option<Rc<Debug>>,
    /// What unwind tables the file and its debug file have.
    tables: Option<Vec<Frames>>,
}

impl ProgramFile {
    /// # Errors
    /// There is no such file, it may not be read, or it is no ELF file.
    pub fn open(path: PathBuf, surroundings: &mut dyn Surroundings) -> anyhow::Result<ProgramFile> {
        let Some(source) = surroundings.open(&path) else { bail!("{} is no regular file that can be read", shown(&path)) };
        let elf = ElfFile::read(source).with_context(|| format!("{} has no names to look up", shown(&path)))?;
        Ok(ProgramFile { path, elf, debug: None, debug_info: None, tables: None })
    }

    /// The file's debug file, if it has one here.
    pub fn debug(&mut self, surroundings: &mut dyn Surroundings) -> Option<&DebugFile> {
        // There is no process whose view of the file system would count.
        let origin = || Origin { pid: 0, path: self.path.clone() };
        self.debug.get_or_insert_with(|| debug_file::find(&mut AsFiles(surroundings), &self.elf, &origin(), None)).as_ref()
    }

    /// The files that have this one's symbols: itself, its debug file, and what is packed in it.
    pub fn symbol_files(&mut self, surroundings: &mut dyn Surroundings) -> Vec<&ElfFile> {
        self.debug(surroundings);
        let debug = self.debug.iter().flatten().map(|debug| &debug.file);
        std::iter::once(&self.elf).chain(debug).collect()
    }

    /// The symbols that a stripped file has with it, packed.
    pub fn packed_symbols(&self) -> Option<ElfFile> {
        minidebug(&self.elf)
    }

    /// What the compiler wrote of variables, types and lines.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
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
            Debug::read(file, shared.as_ref()).with_context(|| format!("the names in {path} are not known"))
        };
        if self.elf.has_bytes_of(".debug_info") {
            let shared = debug_file::find_shared(&mut AsFiles(surroundings), &self.elf, &self.path, None);
            return of(&self.elf, shared);
        }
        self.debug(surroundings);
        match self.debug.iter().flatten().find(|debug| debug.file.has_bytes_of(".debug_info")) {
            Some(debug) => of(&debug.file, debug.find_shared(&mut AsFiles(surroundings))),
            None => bail!(
                "{path} has no debug information, which has the names of variables and lines: build it with -g, or install its debug symbols (in Debian a package \
                 ending in -dbgsym or -dbg)"
            ),
        }
    }

    /// Where a function's frame is, by the unwind tables.
    pub fn frame(&mut self, svma: u64, surroundings: &mut dyn Surroundings) -> Option<Frame> {
        if self.tables.is_none() {
            self.tables = Some(self.symbol_files(surroundings).into_iter().map(Frames::read).collect());
        }
        self.tables.iter().flatten().find_map(|table| table.at(svma))
    }

    /// Where in the file the code of an address is.
    ///
    /// # Errors
    /// Nothing is loaded there, or nothing that is executed.
    pub fn code_offset(&self, svma: u64) -> anyhow::Result<u64> {
        match self.elf.offset_of_svma(svma) {
            Some((offset, true)) => Ok(offset),
            Some((_, false)) => bail!("address {svma:#x} of {} is not in its code", shown(&self.path)),
            None => bail!("{} has nothing at address {svma:#x}", shown(&self.path)),
        }
    }

    /// The address of what is at an offset of the file, if it is code.
    ///
    /// # Errors
    /// It is not: a probe there would never be hit.
    pub fn code_svma(&self, offset: u64) -> anyhow::Result<u64> {
        let svma = self.elf.svma_of_offset(offset).filter(|svma| self.code_offset(*svma).is_ok_and(|code| code == offset));
        svma.ok_or_else(|| anyhow!("offset {offset:#x} of {} is not in its code, so a probe there would never be hit", shown(&self.path)))
    }
}

/// A path in a sentence.
pub fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}
