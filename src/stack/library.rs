//! The files that processes have mapped: each is opened and read once, whoever maps it.

use crate::event::FileId;
use crate::event::frame::ImageId;
use crate::stack::image::Image;
use crate::stack::space::AddressSpace;
use crate::stack::symbols::{Identity, Origin, ReadAt};
use crate::task::maps::{Area, Areas};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::Arc;

/// A file as one process has it mapped: enough to find it again, though it was renamed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    pub pid: i32,
    /// The mapping's first address, and the first behind it.
    pub addresses: (u64, u64),
    pub file: FileId,
    /// As the process knows it; `[vdso]`.
    pub path: Arc<[u8]>,
}

/// An open file, or what is in memory in the place of one.
#[derive(Clone)]
pub struct Opened {
    /// `None` for what is no file (the vdso).
    pub file: Option<(Identity, Origin)>,
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

/// Who opens files as processes see them: the live machine, or what a recording kept.
pub trait Open {
    /// # Errors
    /// Why it cannot be had.
    fn open(&mut self, mapped: &MappedFile) -> Result<Opened, Unopened>;
}

/// Why a file cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// The process is gone, and what has its path now is another file; or it may not be read.
    Gone,
    /// Its file system does not answer. That it is a file, and which, is known.
    Unanswered,
}

/// Opens nothing.
#[derive(Debug)]
pub struct Closed;

impl Open for Closed {
    fn open(&mut self, _: &MappedFile) -> Result<Opened, Unopened> {
        Err(Unopened::Gone)
    }
}

/// All images.
pub struct Library {
    open: Box<dyn Open>,
    /// `None` for what is no image.
    by_file: FxHashMap<FileKey, Option<Arc<Image>>>,
    by_id: FxHashMap<ImageId, (MappedFile, Option<Opened>)>,
    /// What just-in-time compilers write and have mapped, by process.
    jitdumps: FxHashMap<i32, Arc<[u8]>>,
    /// Processes whose memory is gone, to be told.
    gone: Vec<i32>,
}

/// The vdso is of no file, and 32-bit programs have another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FileKey {
    File(FileId),
    Vdso { high: bool },
}

impl Library {
    pub fn new(open: Box<dyn Open>) -> Library {
        Library { open, by_file: FxHashMap::default(), by_id: FxHashMap::default(), jitdumps: FxHashMap::default(), gone: Vec::new() }
    }

    /// Where an image was mapped when it was read, and what it was read from, if it could be read.
    pub fn file(&self, id: ImageId) -> Option<&(MappedFile, Option<Opened>)> {
        self.by_id.get(&id)
    }

    /// The file jit-PID.dump that a process has mapped: its path.
    pub fn jitdump(&self, pid: i32) -> Option<&[u8]> {
        self.jitdumps.get(&pid).map(|path| &**path)
    }

    /// The memory of a process is gone: it ended, or executed another program.
    pub fn end(&mut self, pid: i32) {
        self.jitdumps.remove(&pid);
        self.gone.push(pid);
    }

    /// Those of which that was said since it was asked last.
    pub fn take_gone(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.gone)
    }

    /// A process's code.
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
            Err(Unopened::Unanswered) => None,
        };
        let image = opened.as_ref().map_or_else(|| Some(Image::unread()), image_of).map(Arc::new);
        if let Some(image) = &image {
            self.by_id.insert(image.id(), (mapped, opened));
        }
        self.by_file.insert(key, image.clone());
        image
    }
}

/// `None` for what is no image. What does not answer any more is one of which nothing was read.
fn image_of(opened: &Opened) -> Option<Image> {
    match Image::read(Box::new(opened.clone())) {
        Err(error) if error.is_unanswered() => Some(Image::unread()),
        image => image.ok(),
    }
}
