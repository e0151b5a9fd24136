//! What names and unwinding need of the live machine: files that processes have mapped, the kernel's names, what just-in-time compilers write.

use crate::kernel::elsewhere::Guarded;
use crate::kernel::objects::{self, Mapped};
use crate::stack::library::{MappedFile, Open, Opened, Unopened};
use crate::stack::naming::Fetch;
use crate::stack::symbols::ReadAt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Names that are in no file of a mapping.
#[derive(Debug, Default)]
pub struct LiveNames {
    /// The kernel's, read while events are armed: it takes some 60 ms.
    ahead: Option<JoinHandle<io::Result<Vec<u8>>>>,
    files: Guarded,
}

impl LiveNames {
    /// Those of the kernel will be asked for.
    pub fn read_ahead(files: Guarded) -> LiveNames {
        let thread = std::thread::Builder::new().name("rtrace-kallsyms".to_owned()).spawn(objects::kallsyms);
        // Without a thread they are read when they are asked for.
        LiveNames { ahead: thread.ok(), files }
    }

    /// Those of the kernel are read if they are asked for.
    pub fn new(files: Guarded) -> LiveNames {
        LiveNames { ahead: None, files }
    }
}

impl Fetch for LiveNames {
    fn kernel(&mut self) -> io::Result<Vec<u8>> {
        match self.ahead.take().map(JoinHandle::join) {
            Some(Ok(text)) => text,
            None | Some(Err(_)) => objects::kallsyms(),
        }
    }

    fn perf_map(&mut self, pid: i32) -> Option<Box<dyn ReadAt>> {
        self.files.perf_map(pid)
    }

    fn jitdump(&mut self, pid: i32, path: &[u8]) -> Option<Box<dyn ReadAt>> {
        self.files.jitdump(pid, path)
    }
}

/// The live machine.
#[derive(Debug)]
pub struct LiveMappings(pub Guarded);

impl Open for LiveMappings {
    fn open(&mut self, mapped: &MappedFile) -> Result<Opened, Unopened> {
        if &*mapped.path == b"[vdso]" {
            // It is the same for all programs; that of this process is there for certain, that of one that ended is not.
            let bytes = objects::image(mapped.pid, mapped.addresses).map_err(|_| Unopened::Gone)?;
            return Ok(Opened { file: None, bytes: Arc::new(bytes) });
        }
        let as_seen = Mapped {
            pid: mapped.pid,
            addresses: mapped.addresses,
            path: &mapped.path,
            device: mapped.file.device,
            inode: mapped.file.inode,
        };
        let (identity, bytes) = self.0.mapped(&as_seen)?;
        Ok(Opened { file: Some((identity, objects::origin(&as_seen))), bytes })
    }
}
