//! The search for a file's debug file.

use super::elf::ElfFile;
use super::files::{Files, Origin, Want};
use super::separate::{Link, Shared, path_by_build_id};
use std::path::{Path, PathBuf};

/// A debug file, and where it was.
pub struct DebugFile {
    pub file: ElfFile,
    pub path: PathBuf,
    seen_by: Option<i32>,
}

/// Looks for the debug file of `file`: what debuginfod fetched, by build-id, by debuglink. rtrace's own files first, then the process's.
pub fn find(files: &mut dyn Files, file: &ElfFile, origin: &Origin, fetched: Option<&Path>) -> Option<DebugFile> {
    let views = [None, Some(origin.pid)];
    if let Some(id) = file.build_id() {
        let of_id = |debug: &ElfFile| debug.build_id() == Some(id);
        let kept = path_by_build_id(id);
        let places = fetched.map(|path| (path, None)).into_iter().chain(views.map(|view| (kept.as_path(), view)));
        if let Some(found) = places.into_iter().find_map(|(path, view)| open(files, path, view).filter(|debug| of_id(&debug.file))) {
            return Some(found);
        }
    }
    let section = file.section(".gnu_debuglink").and_then(|section| file.bytes(section).ok())?;
    let link = Link::parse(&section, file.byte_order())?;
    for path in link.paths(&origin.path) {
        for seen_by in views {
            if let Some(found) = open(files, &path, seen_by).filter(|found| belongs(file, &found.file, &link)) {
                return Some(found);
            }
        }
    }
    None
}

/// The file with the parts that several debug files share, where `debug` says that there is one.
pub fn find_shared(files: &mut dyn Files, debug: &ElfFile, path: &Path, seen_by: Option<i32>) -> Option<ElfFile> {
    let section = debug.section(".gnu_debugaltlink").and_then(|section| debug.bytes(section).ok())?;
    let shared = Shared::parse(&section)?;
    let candidates = shared.paths(path);
    let found =
        candidates.iter().filter_map(|path| open(files, path, seen_by)).find(|found| found.file.build_id() == Some(shared.build_id));
    found.map(|found| found.file)
}

impl DebugFile {
    pub fn find_shared(&self, files: &mut dyn Files) -> Option<ElfFile> {
        find_shared(files, &self.file, &self.path, self.seen_by)
    }
}

/// By build-ids where both have one: the checksum takes reading all of it.
fn belongs(file: &ElfFile, debug: &ElfFile, link: &Link) -> bool {
    match (file.build_id(), debug.build_id()) {
        (Some(wanted), Some(found)) => wanted == found,
        _ => link.is_of(debug.source()).unwrap_or(false),
    }
}

fn open(files: &mut dyn Files, path: &Path, seen_by: Option<i32>) -> Option<DebugFile> {
    let file = ElfFile::read(files.find(Want::Path { path, seen_by })?).ok()?;
    Some(DebugFile { file, path: path.to_owned(), seen_by })
}
