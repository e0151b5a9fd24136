//! The images of the files that processes have mapped. Each file is opened and read once, however many processes map
//! it.

use crate::event::FileId;
use crate::event::frame::ImageId;
use crate::stack::image::Image;
use crate::stack::registers::Architecture;
use crate::stack::space::AddressSpace;
use crate::stack::symbols::{Identity, Origin, ReadAt};
use crate::task::maps::{Area, Areas};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::Arc;

/// A file as one process has it mapped, with enough facts to find it even after it was renamed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// A process that has the file mapped.
    pub pid: i32,
    /// The mapping's first address, and its end (exclusive).
    pub addresses: (u64, u64),
    /// Device, inode and generation of the file; all zero for the vdso.
    pub file: FileId,
    /// The path in the process's mount namespace, or `[vdso]`.
    pub path: Arc<[u8]>,
}

/// An open file, or an ELF image in memory (the vdso).
#[derive(Clone)]
pub struct Opened {
    /// `None` for the vdso, which is not mapped from a file.
    pub file: Option<(Identity, Origin)>,
    /// The contents of the file, or the image of the vdso.
    pub bytes: Arc<dyn ReadAt + Sync>,
}

impl ReadAt for Opened {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.bytes.read_at(offset, into)
    }
}

/// Opens files as processes see them: on the live machine, or from a recording.
pub trait Open {
    /// Opens a mapped file.
    ///
    /// # Errors
    /// Fails if the file no longer exists, may not be read, or its file system does not answer.
    fn open(&mut self, mapped: &MappedFile) -> Result<Opened, Unopened>;
}

/// The reason why a mapped file cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// The process has ended and its path now names another file, or rtrace may not read the file.
    Gone,
    /// The file's file system does not answer. The device and inode of the file are known.
    Unanswered,
    /// The machine that shows a recording does not have the file that was mapped.
    NotHere,
}

/// An [`Open`] that refuses every file.
#[derive(Debug)]
pub struct Closed;

impl Open for Closed {
    fn open(&mut self, _: &MappedFile) -> Result<Opened, Unopened> {
        Err(Unopened::Gone)
    }
}

/// The images of all files that were mapped in this run.
pub struct Library {
    open: Box<dyn Open>,
    /// The machine's architecture.
    architecture: Architecture,
    /// `None` for a file that is not a usable ELF file.
    by_file: FxHashMap<FileKey, Option<Arc<Image>>>,
    by_id: FxHashMap<ImageId, (MappedFile, Option<Opened>)>,
    images: FxHashMap<ImageId, Arc<Image>>,
    /// By process: the path of the jit-PID.dump that a just-in-time compiler writes and has mapped.
    jitdumps: FxHashMap<i32, Arc<[u8]>>,
    /// Processes that ended or executed another program since the last [`Self::take_gone`].
    gone: Vec<i32>,
}

/// What identifies an image. The vdso is no file, and 32-bit programs have a vdso of their own, below 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FileKey {
    File(FileId),
    Vdso { high: bool },
}

impl Library {
    /// Creates the library of a machine with this architecture. `open` opens its files.
    pub fn new(open: Box<dyn Open>, architecture: Architecture) -> Library {
        Library {
            open,
            architecture,
            by_file: FxHashMap::default(),
            by_id: FxHashMap::default(),
            images: FxHashMap::default(),
            jitdumps: FxHashMap::default(),
            gone: Vec::new(),
        }
    }

    /// Returns the mapping by which an image was found, and the opened file if it could be opened.
    pub fn file(&self, id: ImageId) -> Option<&(MappedFile, Option<Opened>)> {
        self.by_id.get(&id)
    }

    /// Returns an image of this library.
    pub fn mapped_image(&self, id: ImageId) -> Option<&Image> {
        self.images.get(&id).map(|image| &**image)
    }

    /// Returns the path of the jit-PID.dump that a process has mapped.
    pub fn jitdump(&self, pid: i32) -> Option<&[u8]> {
        self.jitdumps.get(&pid).map(|path| &**path)
    }

    /// Records that a process ended or executed another program.
    pub fn end(&mut self, pid: i32) {
        self.jitdumps.remove(&pid);
        self.gone.push(pid);
    }

    /// Returns the processes that [`Self::end`] was called with since the previous call.
    pub fn take_gone(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.gone)
    }

    /// Builds the address space of a process from its mappings, and reads the files that no process had mapped before.
    pub fn space(&mut self, pid: i32, areas: &Areas) -> AddressSpace {
        let mut space = AddressSpace::default();
        for (start, area) in areas.iter().filter(|(_, area)| area.executable) {
            if area.path.ends_with(b".dump") && memchr::memmem::find(&area.path, b"/jit-").is_some() {
                self.jitdumps.insert(pid, Arc::clone(&area.path));
            }
            if &*area.path == b"[uprobes]" {
                space.map_probes(*start..area.end);
                continue;
            }
            match self.image(pid, *start, area) {
                Some(image) => space.map_image(*start..area.end, image, area.offset),
                None => space.map_code(*start..area.end),
            }
        }
        space
    }

    fn image(&mut self, pid: i32, start: u64, area: &Area) -> Option<Arc<Image>> {
        let key = match &*area.path {
            b"[vdso]" => FileKey::Vdso { high: start > u64::from(u32::MAX) },
            _ if area.file.inode != 0 => FileKey::File(area.file),
            _ => return None,
        };
        if let Some(image) = self.by_file.get(&key) {
            return image.clone();
        }
        let mapped = MappedFile { pid, addresses: (start, area.end), file: area.file, path: Arc::clone(&area.path) };
        let opened = match self.open.open(&mapped) {
            Ok(opened) => Some(opened),
            Err(Unopened::Gone) => return None,
            Err(Unopened::Unanswered | Unopened::NotHere) => None,
        };
        let unread = || Image::unread(self.architecture);
        let image = match &opened {
            Some(opened) => image_of(opened, unread),
            None => Some(unread()),
        };
        let image = image.map(Arc::new);
        if let Some(image) = &image {
            self.by_id.insert(image.id(), (mapped, opened));
            self.images.insert(image.id(), Arc::clone(image));
        }
        self.by_file.insert(key, image.clone());
        image
    }
}

/// Reads the image of a file. It is `None` if the file is not a usable ELF file, and `unread` if its file system
/// stopped answering.
fn image_of(opened: &Opened, unread: impl Fn() -> Image) -> Option<Image> {
    match Image::read(Box::new(opened.clone())) {
        Err(error) if error.is_unanswered() => Some(unread()),
        image => image.ok(),
    }
}
