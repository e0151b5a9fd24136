//! The files and the kernel's symbols that the stacks of a recording need.
//!
//! A recording of rtrace has them. A recording of perf has only names and identities, so they are read on the machine
//! that shows it, if they are the same there.

use crate::kernel::objects;
use crate::kernel::remote_files::Guarded;
use crate::recording::{self, AnyReader, BuildIdBytes, JitFile, KernelSymbols, RecordedFiles, build_id, padded};
use crate::source::files::LiveMappings;
use crate::stack::library::{MappedFile, Open, Opened, Unopened};
use crate::stack::naming::Fetch;
use crate::stack::symbols::{ElfFile, Files, Origin, ReadAt, Want};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The most files that are remembered because they are not here.
const MISSING_MAX: usize = 10_000;

/// The files of a recording. Clones share what is known of them.
#[derive(Clone)]
pub(super) enum Programs {
    /// Those in the recording.
    Recorded(RecordedFiles),
    /// Those of this machine.
    Here(Here),
}

/// The files of this machine that a recording of perf names.
#[derive(Clone)]
pub(super) struct Here {
    recorded: recording::Programs,
    files: Guarded,
    /// The paths of files that are not here.
    missing: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Programs {
    /// Returns the files of a recording.
    pub fn of(reader: &AnyReader) -> Programs {
        match reader.programs() {
            Some(recorded) => Programs::Here(Here { recorded: recorded.clone(), files: Guarded::default(), missing: Arc::default() }),
            None => Programs::Recorded(reader.files()),
        }
    }

    /// Returns the names of what is in no file that a process mapped. `recorded` are the kernel's symbols in the
    /// recording.
    pub fn names(&self, recorded: KernelSymbols) -> Box<dyn Fetch> {
        match self {
            Programs::Recorded(files) => Box::new(RecordedNames { kernel: recorded, files: files.clone() }),
            Programs::Here(here) => Box::new(NamesHere { kernel: Arc::clone(&here.recorded.kernel) }),
        }
    }

    /// Returns the files that could not be read, because their file systems do not answer.
    pub fn unanswered(&self) -> Vec<Vec<u8>> {
        match self {
            Programs::Recorded(_) => Vec::new(),
            Programs::Here(here) => here.files.unanswered(),
        }
    }

    /// Returns the files that stacks needed and that are not on this machine as they were recorded.
    pub fn missing(&self) -> Vec<Vec<u8>> {
        match self {
            Programs::Recorded(_) => Vec::new(),
            Programs::Here(here) => here.missing.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Returns whether samples have registers or memory that cannot be unwound, because registers are missing.
    pub fn lacks_registers(&self) -> bool {
        matches!(self, Programs::Here(here) if here.recorded.lacks_registers)
    }
}

impl Open for Programs {
    fn open(&mut self, mapped: &MappedFile) -> Result<Opened, Unopened> {
        match self {
            Programs::Recorded(files) => files.open(mapped),
            Programs::Here(here) => here.open(mapped),
        }
    }
}

impl Files for Programs {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        match self {
            Programs::Recorded(files) => files.find(want),
            Programs::Here(here) => here.files.find(want),
        }
    }
}

impl Here {
    fn open(&mut self, mapped: &MappedFile) -> Result<Opened, Unopened> {
        // It is in no file. The process of that time is gone, and another one may have its number.
        if &*mapped.path == b"[vdso]" {
            return Err(Unopened::NotHere);
        }
        let opened = match build_id(mapped.file) {
            Some(expected) => self.by_build_id(mapped, &[expected]),
            None => self.by_inode(mapped),
        };
        match opened {
            Err(Unopened::Gone | Unopened::NotHere) => {
                let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
                if missing.len() < MISSING_MAX && !missing.iter().any(|path| **path == *mapped.path) {
                    missing.push(mapped.path.to_vec());
                }
                Err(Unopened::NotHere)
            }
            opened => opened,
        }
    }

    /// Opens a file with the device and inode of the mapping. perf may have written its build-id, and it must not have
    /// been modified since then.
    fn by_inode(&self, mapped: &MappedFile) -> Result<Opened, Unopened> {
        let opened = LiveMappings(self.files.clone()).open(mapped)?;
        let is_same = match (self.recorded.build_ids.get(&*mapped.path), &opened.file) {
            (Some(expected), _) => has_build_id(&opened, expected),
            (None, Some((identity, _))) => time(identity.modified).is_none_or(|modified| modified <= self.recorded.written),
            (None, None) => false,
        };
        if is_same { Ok(opened) } else { Err(Unopened::NotHere) }
    }

    /// Opens the file at the path of the mapping, as the process sees it if it still runs, or as rtrace does.
    fn by_build_id(&self, mapped: &MappedFile, expected: &[BuildIdBytes]) -> Result<Opened, Unopened> {
        let path = PathBuf::from(OsStr::from_bytes(&mapped.path));
        for view in [Some(mapped.pid), None] {
            if let Some((identity, bytes)) = self.files.at(&path, view) {
                let opened = Opened { file: Some((identity, Origin { pid: mapped.pid, path: path.clone() })), bytes };
                if has_build_id(&opened, expected) {
                    return Ok(opened);
                }
            }
        }
        Err(Unopened::NotHere)
    }
}

/// Returns whether a file has one of these build-ids.
fn has_build_id(opened: &Opened, expected: &[BuildIdBytes]) -> bool {
    let id = ElfFile::read(Box::new(opened.clone())).ok().and_then(|file| file.build_id());
    id.is_some_and(|id| expected.contains(&padded(&id)))
}

/// Returns a time of the clock on the wall from seconds since 1970 and nanoseconds; `None` for those before 1970, which
/// no recording is older than.
fn time((seconds, nanoseconds): (i64, u32)) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(u64::try_from(seconds).ok()?, nanoseconds))
}

/// The names of a recording that are in no file which a process mapped.
pub(super) struct RecordedNames {
    /// The kernel's symbols in the recording.
    pub kernel: KernelSymbols,
    /// The files in the recording, among them those of just-in-time compilers.
    pub files: RecordedFiles,
}

impl Fetch for RecordedNames {
    fn kernel(&mut self) -> io::Result<Vec<u8>> {
        let text = self.kernel.lock().unwrap_or_else(PoisonError::into_inner).clone();
        text.ok_or_else(|| io::Error::other("the recording does not have them"))
    }

    fn perf_map(&mut self, pid: i32) -> Option<Box<dyn ReadAt>> {
        self.files.jit(pid, JitFile::Map)
    }

    fn jitdump(&mut self, pid: i32, _: &[u8]) -> Option<Box<dyn ReadAt>> {
        self.files.jit(pid, JitFile::Dump)
    }

    fn pause(&self) -> Duration {
        Duration::ZERO
    }
}

/// The kernel's symbols of this machine. Files of just-in-time compilers are those of other processes by now.
struct NamesHere {
    kernel: recording::KernelPlace,
}

impl Fetch for NamesHere {
    fn kernel(&mut self) -> io::Result<Vec<u8>> {
        let place = self.kernel.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (symbol, address) = place.ok_or_else(|| io::Error::other("the recording does not say where the kernel was"))?;
        symbols_at(&objects::kallsyms()?, &symbol, address).map_err(io::Error::other)
    }

    fn perf_map(&mut self, _: i32) -> Option<Box<dyn ReadAt>> {
        None
    }

    fn jitdump(&mut self, _: i32, _: &[u8]) -> Option<Box<dyn ReadAt>> {
        None
    }
}

/// Returns the symbols of the kernel, without those of modules and BPF programs, which may have been loaded to other
/// addresses since the recording. `text` is that of /proc/kallsyms. The kernel chooses its own address each time it
/// boots, so this symbol must have this address.
fn symbols_at(text: &[u8], symbol: &[u8], address: u64) -> Result<Vec<u8>, &'static str> {
    let found = text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        let at = words.next().and_then(|word| u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok())?;
        (words.nth(1) == Some(symbol)).then_some(at)
    });
    match found {
        Some(0) if address != 0 => Err("this user may not see the addresses in /proc/kallsyms"),
        Some(at) if at == address => {
            Ok(text.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.contains(&b'[')).flatten().copied().collect())
        }
        _ => Err("the kernel of this machine is not the one that was recorded, or was booted again since then"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_recorded_one_if_a_symbol_has_the_recorded_address() {
        let text = b"ffffffff81000000 T _text\nffffffff81000040 t one\nffffffffc0000000 t two\t[ext4]\n";
        let own = text.split_inclusive(|byte| *byte == b'\n').take(2).flatten().copied().collect();
        assert_eq!(symbols_at(text, b"_text", 0xffff_ffff_8100_0000), Ok(own));
        assert!(symbols_at(text, b"_text", 0xffff_ffff_8200_0000).unwrap_err().contains("booted again"));
        assert!(symbols_at(text, b"_stext", 0xffff_ffff_8100_0000).unwrap_err().contains("booted again"));
        assert!(symbols_at(b"0000000000000000 T _text\n", b"_text", 0xffff_ffff_8100_0000).unwrap_err().contains("may not see"));
    }

    #[test]
    fn programs_that_are_not_the_recorded_ones_are_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let own = std::fs::read(&path).unwrap();
        let id = padded(&ElfFile::read(Box::new(own)).unwrap().build_id().unwrap());
        let (identity, _) = Guarded::default().at(&path, None).unwrap();
        let device = (rustix::fs::major(identity.device), rustix::fs::minor(identity.device));
        let file = crate::event::FileId { device, inode: identity.inode, generation: 0 };
        let name: Arc<[u8]> = path.as_os_str().as_bytes().into();
        let open = |ids: &[BuildIdBytes], written: SystemTime| {
            let mut recorded = recording::Programs::new(&[], written, false);
            if !ids.is_empty() {
                recorded.build_ids.insert(name[..].into(), ids.to_vec());
            }
            let mut programs = Programs::Here(Here { recorded, files: Guarded::default(), missing: Arc::default() });
            let mapped = MappedFile { pid: i32::MAX, addresses: (0x1000, 0x2000), file, path: Arc::clone(&name) };
            (programs.open(&mapped).is_ok(), programs.missing())
        };
        let (now, before) = (SystemTime::now() + Duration::from_secs(1), SystemTime::UNIX_EPOCH);
        assert_eq!(open(&[], now), (true, vec![]));
        assert_eq!(open(&[[7; 20], id], before), (true, vec![]));
        assert_eq!(open(&[], before), (false, vec![name.to_vec()]));
        assert_eq!(open(&[[7; 20]], now), (false, vec![name.to_vec()]));
    }
}
