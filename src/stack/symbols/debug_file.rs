//! The search for a file's debug file.

use super::elf::ElfFile;
use super::files::{Files, Origin, Want};
use super::separate::{DebugAltLink, DebugLink, path_by_build_id};
use std::path::{Path, PathBuf};

/// A debug file and its path.
pub struct DebugFile {
    /// The debug file, which belongs to the searched file by its build-id or checksum.
    pub file: ElfFile,
    /// The path at which it was found, from which the path of a file that dwz made is resolved.
    pub path: PathBuf,
    /// The process in whose mount namespace the path is; `None` for rtrace's own.
    seen_by: Option<i32>,
}

/// Searches for the debug file of `file`: first the one that debuginfod downloaded, then by build-id, then by
/// debuglink. Paths are tried in rtrace's mount namespace first, then in the process's.
pub fn find(files: &mut dyn Files, file: &ElfFile, origin: &Origin, downloaded: Option<&Path>) -> Option<DebugFile> {
    let views = [None, Some(origin.pid)];
    if let Some(id) = file.build_id() {
        let of_id = |debug: &ElfFile| debug.build_id() == Some(id);
        let installed = path_by_build_id(id);
        let places = downloaded.map(|path| (path, None)).into_iter().chain(views.map(|view| (installed.as_path(), view)));
        if let Some(found) = places.into_iter().find_map(|(path, view)| open(files, path, view).filter(|debug| of_id(&debug.file))) {
            return Some(found);
        }
    }
    let section = file.section(".gnu_debuglink").and_then(|section| file.bytes(section).ok())?;
    let link = DebugLink::parse(&section, file.byte_order())?;
    for path in link.paths(&origin.path) {
        for seen_by in views {
            if let Some(found) = open(files, &path, seen_by).filter(|found| belongs(file, &found.file, &link)) {
                return Some(found);
            }
        }
    }
    None
}

/// Searches for the file that dwz moved the common parts of several debug files to, if `debug` refers to one.
pub fn find_shared(files: &mut dyn Files, debug: &ElfFile, path: &Path, seen_by: Option<i32>) -> Option<ElfFile> {
    let section = debug.section(".gnu_debugaltlink").and_then(|section| debug.bytes(section).ok())?;
    let shared = DebugAltLink::parse(&section)?;
    let candidates = shared.paths(path);
    let found =
        candidates.iter().filter_map(|path| open(files, path, seen_by)).find(|found| found.file.build_id() == Some(shared.build_id));
    found.map(|found| found.file)
}

impl DebugFile {
    /// Searches for the file with the common parts, if this one refers to it.
    pub fn find_shared(&self, files: &mut dyn Files) -> Option<ElfFile> {
        find_shared(files, &self.file, &self.path, self.seen_by)
    }
}

/// Whether `debug` is the debug file of `file`. Build-ids are compared if both have one, because the checksum requires
/// reading all of the file.
fn belongs(file: &ElfFile, debug: &ElfFile, link: &DebugLink) -> bool {
    match (file.build_id(), debug.build_id()) {
        (Some(wanted), Some(found)) => wanted == found,
        _ => link.has_checksum_of(debug.source()).unwrap_or(false),
    }
}

fn open(files: &mut dyn Files, path: &Path, seen_by: Option<i32>) -> Option<DebugFile> {
    let file = ElfFile::read(files.find(Want::Path { path, seen_by })?).ok()?;
    Some(DebugFile { file, path: path.to_owned(), seen_by })
}
