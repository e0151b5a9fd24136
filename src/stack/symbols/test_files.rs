//! ELF files for tests, which the tests create with the compiler and binutils.

use super::{ElfFile, ReadAt, SymbolTable};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary directory that is removed when it is dropped.
pub(super) struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Directory {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rtrace-symbols-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }

    /// Returns the path of a file in the directory, whether or not there is such a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Compiles a source. The extension of its name determines the language.
    pub fn compile(&self, source_name: &str, source: &str, arguments: &[&str]) -> PathBuf {
        self.try_compile(source_name, source, arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Compiles a source with options that not every compiler supports.
    pub fn try_compile(&self, source_name: &str, source: &str, arguments: &[&str]) -> Result<PathBuf, String> {
        let program = self.path(&format!("{source_name}.elf"));
        let source_path = self.path(source_name);
        std::fs::write(&source_path, source).unwrap();
        let output = Command::new("cc").args(arguments).arg("-o").args([&program, &source_path]).output().unwrap();
        if output.status.success() { Ok(program) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a command, which must succeed, and returns its output.
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn elf(path: &Path) -> ElfFile {
    ElfFile::read(bytes(path)).unwrap()
}

pub(super) fn bytes(path: &Path) -> Box<dyn ReadAt> {
    Box::new(std::fs::read(path).unwrap())
}

/// Returns `name+offset` of the symbol at an address.
pub(super) fn name_at(table: &SymbolTable, address: u64) -> Option<String> {
    table.at(address).map(|found| format!("{}+{:#x}", String::from_utf8_lossy(found.name), found.offset))
}
