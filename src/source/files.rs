//! What names and unwinding need of the live machine: files that processes have mapped, the kernel's names, what just-in-time compilers write.

use crate::kernel::objects::{self, Mapped};
use crate::stack::library::{MappedFile, Open, Opened};
use crate::stack::naming::Fetch;
use crate::stack::symbols::ReadAt;
use std::io;
use std::sync::Arc;

impl Fetch for LiveMappings {
    fn kernel(&mut self) -> io::Result<Vec<u8>> {
        objects::kallsyms()
    }

    fn perf_map(&mut self, pid: i32) -> Option<Box<dyn ReadAt>> {
        objects::perf_map(pid)
    }

    fn jitdump(&mut self, pid: i32, path: &[u8]) -> Option<Box<dyn ReadAt>> {
        objects::jitdump(pid, path)
    }
}

/// The live machine.
#[derive(Debug)]
pub struct LiveMappings;

impl Open for LiveMappings {
    fn open(&mut self, mapped: &MappedFile) -> Option<Opened> {
        if &*mapped.path == b"[vdso]" {
            // It is the same for all programs; that of this process is there for certain, that of one that ended is not.
            let bytes = objects::image(mapped.pid, mapped.addresses).ok()?;
            return Some(Opened { file: None, bytes: Arc::new(bytes) });
        }
        let as_seen = Mapped {
            pid: mapped.pid,
            addresses: mapped.addresses,
            path: &mapped.path,
            device: mapped.file.device,
            inode: mapped.file.inode,
        };
        let file = objects::open_mapped(&as_seen).ok()?;
        Some(Opened { file: Some((file.identity(), objects::origin(&as_seen))), bytes: Arc::new(file) })
    }
}
