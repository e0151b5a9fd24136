//! The files in which the kernel provides its BTF and that of modules.

use crate::sys::mapped::SysfsMapping;
use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// The file with the BTF of the running kernel.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Returns the running kernel's BTF. Kernels from 6.16 on let it be mapped, which saves copying its megabytes.
///
/// # Errors
/// Fails if the kernel was built without BTF (CONFIG_DEBUG_INFO_BTF), or it cannot be read.
pub fn of_the_kernel() -> std::io::Result<Blob> {
    let file = File::open(VMLINUX)?;
    match SysfsMapping::whole(&file) {
        Ok(mapped) => Ok(Blob::Mapped(mapped)),
        Err(_) => Ok(Blob::Read(std::fs::read(VMLINUX)?)),
    }
}

const DIRECTORY: &str = "/sys/kernel/btf";

/// Returns a loaded module's BTF. Its type IDs and string offsets continue the kernel's.
///
/// # Errors
/// Fails if there is no such module, or it has no BTF (CONFIG_DEBUG_INFO_BTF_MODULES).
pub fn of_a_module(module: &str) -> std::io::Result<Blob> {
    std::fs::read(Path::new(DIRECTORY).join(module)).map(Blob::Read)
}

/// Returns the names of the loaded modules that have BTF, sorted.
pub fn modules() -> Vec<String> {
    let entries = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name != "vmlinux");
    names.sort_unstable();
    names
}

/// The bytes of the BTF of a kernel or module.
#[derive(Debug)]
pub enum Blob {
    Mapped(SysfsMapping),
    Read(Vec<u8>),
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Blob::Mapped(mapped) => mapped,
            Blob::Read(bytes) => bytes,
        }
    }
}
