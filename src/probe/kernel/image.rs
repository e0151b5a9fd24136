//! Finds the running kernel's `vmlinux` with debug information.

use crate::probe::program::file::{ProgramFile, shown};
use crate::probe::surroundings::Surroundings;
use crate::stack::symbols::separate::path_by_build_id;
use anyhow::bail;
use std::path::PathBuf;

/// Opens the `vmlinux` of the running kernel. It must have debug information and the kernel's build ID.
///
/// # Errors
/// No such file exists; the message lists the paths that were tried.
pub fn open(surroundings: &mut dyn Surroundings) -> anyhow::Result<ProgramFile> {
    let release = surroundings.release()?;
    let build = surroundings.kernel_build_id();
    let by_build = build.map(path_by_build_id);
    let paths: Vec<PathBuf> = places(&release).into_iter().chain(by_build).collect();
    let mut others = Vec::new();
    for path in &paths {
        let Ok(file) = ProgramFile::open(path.clone(), surroundings) else { continue };
        let is_this = build.is_none() || file.elf.build_id() == build;
        match (is_this, file.elf.has_bytes_of(".debug_info")) {
            (true, true) => return Ok(file),
            (true, false) => others.push(format!("{} has no debug information", shown(path))),
            (false, _) => others.push(format!("{} is of another build", shown(path))),
        }
    }
    let list: Vec<String> = paths.iter().map(|path| shown(path)).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    bail!(
        "lines and local variables of the kernel need its debug information, which is in none of {}{others}; in Debian it is in the package linux-image-{}-dbg",
        list.join(", "),
        release.escape_debug()
    )
}

/// Returns the paths at which distributions install it, and where a kernel built from source has it.
fn places(release: &str) -> Vec<PathBuf> {
    let patterns = [
        format!("/usr/lib/debug/boot/vmlinux-{release}"),
        format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
        format!("/lib/modules/{release}/build/vmlinux"),
        format!("/boot/vmlinux-{release}"),
    ];
    patterns.into_iter().map(PathBuf::from).collect()
}
