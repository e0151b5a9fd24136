//! Lists the files below a folder.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below a folder whose names end like this, sorted, without corpora of tests and build results.
pub fn files(root: impl AsRef<Path>, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.as_ref().to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend((!matches!(name.as_str(), "corpus" | "snapshots" | "target")).then_some(path));
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
