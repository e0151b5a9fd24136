//! What names are looked up in: files, and what the kernel says of itself. All that [`super::resolve()`] reads comes from here.

use crate::kernel::btf::Blob;
use crate::kernel::objects::LiveFiles;
use crate::kernel::{btf, machine, objects};
use crate::stack::symbols::order::ByteOrder;
use crate::stack::symbols::{BuildId, Files, ReadAt, Want};
use std::io;
use std::path::{Path, PathBuf};

/// A machine, as far as names of probes go.
pub trait Surroundings {
    /// The file that a path leads to, from the root, without links.
    ///
    /// # Errors
    /// There is none.
    fn absolute(&mut self, path: &Path) -> io::Result<PathBuf>;

    /// Opens a regular file; `None` if there is none or it may not be read.
    fn open(&mut self, path: &Path) -> Option<Box<dyn ReadAt>>;

    /// `uname -r`.
    ///
    /// # Errors
    /// /proc is not mounted.
    fn release(&mut self) -> anyhow::Result<String>;

    /// What tells the running kernel's build from all others, if it says.
    fn kernel_build_id(&mut self) -> Option<BuildId>;

    /// The text of /proc/kallsyms.
    ///
    /// # Errors
    /// It cannot be read.
    fn kallsyms(&mut self) -> io::Result<Vec<u8>>;

    /// The kernel's type information, `None`, or a module's.
    ///
    /// # Errors
    /// The kernel was built without it, there is no such module, or it cannot be read.
    fn types(&mut self, module: Option<&str>) -> io::Result<Blob>;

    /// Modules that have type information of their own.
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

/// [`Surroundings`] as symbols and debug files are looked for: rtrace's own view is the only one.
pub struct AsFiles<'a>(pub &'a mut dyn Surroundings);

impl Files for AsFiles<'_> {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        match want {
            Want::Path { path, seen_by: None } => self.0.open(path),
            _ => None,
        }
    }
}
