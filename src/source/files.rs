//! Access to the live machine's files for unwinding and symbolization: mapped files, the kernel's symbols, and the perf
//! maps and jitdump files of just-in-time compilers.

use crate::kernel::objects::{self, Mapped};
use crate::kernel::remote_files::Guarded;
use crate::stack::library::{MappedFile, Open, Opened, Unopened};
use crate::stack::naming::Fetch;
use crate::stack::symbols::ReadAt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Symbols that are not in a mapped file: those of the kernel and of just-in-time compilers.
#[derive(Debug, Default)]
pub struct LiveNames {
    /// The thread that reads /proc/kallsyms while events are armed, which takes some 60 ms.
    ahead: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// The kernel's symbols that were read for a recording.
    recorded: Option<Vec<u8>>,
    files: Guarded,
}

impl LiveNames {
    /// Starts to read the kernel's symbols at once, for traces that will need them.
    pub fn read_ahead(files: Guarded) -> LiveNames {
        let thread = std::thread::Builder::new().name("rtrace-kallsyms".to_owned()).spawn(objects::kallsyms);
        // Without a thread, they are read at the first use.
        LiveNames { ahead: thread.ok(), recorded: None, files }
    }

    /// Reads the kernel's symbols only at the first use.
    pub fn new(files: Guarded) -> LiveNames {
        LiveNames { ahead: None, recorded: None, files }
    }

    /// Returns the kernel's symbols for a recording. They are kept for the names of a trace that is shown as well.
    ///
    /// # Errors
    /// /proc/kallsyms cannot be read.
    pub fn kernel_for_recording(&mut self) -> io::Result<Vec<u8>> {
        let text = self.kernel()?;
        self.recorded = Some(text.clone());
        Ok(text)
    }
}

impl Fetch for LiveNames {
    fn kernel(&mut self) -> io::Result<Vec<u8>> {
        if let Some(text) = self.recorded.take() {
            return Ok(text);
        }
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

/// The files that processes of the live machine have mapped.
#[derive(Debug)]
pub struct LiveMappings(pub Guarded);

impl Open for LiveMappings {
    fn open(&mut self, mapped: &MappedFile) -> Result<Opened, Unopened> {
        if &*mapped.path == b"[vdso]" {
            // The vDSO is in no file: it is read from the process's memory, which fails once the process has exited.
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
