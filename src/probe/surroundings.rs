//! Where names are looked up: files, /proc and /sys. [`super::resolve()`] reads nothing but through [`Surroundings`].

use crate::kernel::btf::Blob;
use crate::kernel::objects::LiveFiles;
use crate::kernel::{btf, machine, objects};
use crate::stack::symbols::order::ByteOrder;
use crate::stack::symbols::{BuildId, Files, ReadAt, Want};
use std::io;
use std::path::{Path, PathBuf};

/// The files and kernel interfaces of a machine that are needed to look up the names in probes.
pub trait Surroundings {
    /// Returns the absolute path of a file, with all symbolic links resolved.
    ///
    /// # Errors
    /// The file does not exist.
    fn absolute(&mut self, path: &Path) -> io::Result<PathBuf>;

    /// Opens a regular file; returns `None` if it does not exist or may not be read.
    fn open(&mut self, path: &Path) -> Option<Box<dyn ReadAt>>;

    /// Returns the release of the running kernel (`uname -r`).
    ///
    /// # Errors
    /// /proc is not mounted.
    fn release(&mut self) -> anyhow::Result<String>;

    /// Returns the build ID of the running kernel, if it has one.
    fn kernel_build_id(&mut self) -> Option<BuildId>;

    /// Returns the text of /proc/kallsyms.
    ///
    /// # Errors
    /// It cannot be read.
    fn kallsyms(&mut self) -> io::Result<Vec<u8>>;

    /// Returns the BTF of the kernel (`None`) or of a module.
    ///
    /// # Errors
    /// The kernel was built without BTF, there is no such module, or the BTF cannot be read.
    fn types(&mut self, module: Option<&str>) -> io::Result<Blob>;

    /// Returns the names of the modules that have BTF.
    fn modules(&mut self) -> Vec<String>;
}

/// The machine that rtrace runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl Surroundings for Live {
    fn absolute(&mut self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn open(&mut self, path: &Path) -> Option<Box<dyn ReadAt>> {
        LiveFiles.find(Want::Path { path, seen_by: None })
    }

    fn release(&mut self) -> anyhow::Result<String> {
        machine::release()
    }

    fn kernel_build_id(&mut self) -> Option<BuildId> {
        BuildId::in_notes(&std::fs::read("/sys/kernel/notes").ok()?, ByteOrder::NATIVE)
    }

    fn kallsyms(&mut self) -> io::Result<Vec<u8>> {
        objects::kallsyms()
    }

    fn types(&mut self, module: Option<&str>) -> io::Result<Blob> {
        match module {
            None => btf::of_the_kernel(),
            Some(module) => btf::of_a_module(module),
        }
    }

    fn modules(&mut self) -> Vec<String> {
        btf::modules()
    }
}

/// Adapts [`Surroundings`] to [`Files`] for the search for symbols and debug files. Paths are looked up in rtrace's own
/// mount namespace only.
pub struct AsFiles<'a>(pub &'a mut dyn Surroundings);

impl Files for AsFiles<'_> {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        match want {
            Want::Path { path, seen_by: None } => self.0.open(path),
            _ => None,
        }
    }
}
