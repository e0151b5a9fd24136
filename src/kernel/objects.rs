//! Files that processes have mapped, opened as these processes see them: executables and libraries, their debug files, and what just-in-time compilers
//! write down. Only regular files are opened.
//!
//! Whoever is traced chooses his files' names and what they link to. So a path is followed within the process's root, and what is found there counts only
//! if it is the file that was mapped.

use super::{mounts, procfs};
use crate::stack::symbols::{Files, Identity, Origin, ReadAt, Want};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A mapping, as PERF_RECORD_MMAP2 or /proc/PID/maps tell of it.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'a> {
    pub pid: i32,
    /// First address, and the one behind the last.
    pub addresses: (u64, u64),
    /// As the process sees it; deleted files have ` (deleted)` behind it.
    pub path: &'a [u8],
    /// Major and minor number.
    pub device: (u32, u32),
    pub inode: u64,
}

/// Why a mapped file is not read.
#[derive(Debug, Error)]
pub enum ObjectError {
    #[error("it cannot be opened: {0}")]
    Unopened(#[from] io::Error),
    #[error("it was replaced by another file since it was mapped")]
    Replaced,
    #[error("it is no regular file")]
    NotRegular,
    #[error("the way to it may lead to a file system that asks somebody else")]
    Elsewhere,
}

/// How far files are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only on file systems that answer by themselves ([`mounts`]). What is not known to be there is [`ObjectError::Elsewhere`], and was not touched.
    Local,
    /// Everywhere: whoever asks may wait for as long as a file system likes.
    Everywhere,
}

/// An open regular file, of the size that it had when it was opened.
#[derive(Debug)]
pub struct ObjectFile {
    file: File,
    identity: Identity,
}

impl ObjectFile {
    /// One that was opened elsewhere, and was this file then.
    pub fn opened(file: File, identity: Identity) -> ObjectFile {
        ObjectFile { file, identity }
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// As it grows: its size is what it is now.
    pub fn growing(self) -> Box<dyn ReadAt> {
        Box::new(GrowingFile(self.file))
    }

    fn open(file: impl AsFd) -> Result<ObjectFile, ObjectError> {
        let (file, stat) = open_regular(file)?;
        Ok(ObjectFile { file, identity: identity(&stat) })
    }
}

impl AsFd for ObjectFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl ReadAt for ObjectFile {
    fn size(&self) -> u64 {
        self.identity.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

/// An open regular file that is written on: its size is what it is now.
struct GrowingFile(File);

impl ReadAt for GrowingFile {
    fn size(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }
}

/// Opens the file that is behind a mapping.
///
/// Through /proc/PID/map_files it is found even if it was deleted, replaced, or is seen by its process alone; that takes CAP_CHECKPOINT_RESTORE. Without,
/// or if the mapping is gone, its path is followed in the process's root, and in rtrace's own.
///
/// # Errors
/// There is no such file any more, it is another one now, or it may not be opened; it may be [`ObjectError::Elsewhere`].
pub fn open_mapped(mapped: &Mapped<'_>, reach: Reach) -> Result<ObjectFile, ObjectError> {
    if let Ok(file) = open_mapping(mapped, mapped.addresses, reach) {
        return Ok(file);
    }
    let path = Path::new(OsStr::from_bytes(mapped.path));
    let mut outcome = Err(ObjectError::Replaced);
    for view in [Some(mapped.pid), None] {
        match open_at(path, view, reach).and_then(|file| file.if_it_is(mapped)) {
            Ok(file) => return Ok(file),
            Err(ObjectError::Elsewhere) => outcome = Err(ObjectError::Elsewhere),
            Err(error) => outcome = if view.is_some() { Err(error) } else { outcome },
        }
    }
    // Part of the mapping may have been unmapped or protected differently since; then it goes by other addresses.
    let others = other_addresses(mapped).into_iter().find_map(|addresses| open_mapping(mapped, addresses, reach).ok());
    others.map_or(outcome, Ok)
}

/// Opens what has this path in a process's root, or in rtrace's own.
///
/// # Errors
/// There is no such file, it may not be opened, or is no regular file; it may be [`ObjectError::Elsewhere`].
pub fn open_at(path: &Path, seen_by: Option<i32>, reach: Reach) -> Result<ObjectFile, ObjectError> {
    ObjectFile::open(open_path(path, seen_by, reach)?)
}

/// Where a mapped file was met, for [`crate::stack::symbols::Resolver::object`].
pub fn origin(mapped: &Mapped<'_>) -> Origin {
    let path = mapped.path.strip_suffix(b" (deleted)").unwrap_or(mapped.path);
    Origin { pid: mapped.pid, path: PathBuf::from(OsStr::from_bytes(path)) }
}

/// What is in a process's memory between two addresses: the vdso's file.
///
/// # Errors
/// It is more than a MiB, or may not be read.
pub fn image(pid: i32, (start, end): (u64, u64)) -> io::Result<Vec<u8>> {
    const IMAGE_MAX: u64 = 1 << 20;
    let size = end.checked_sub(start).filter(|size| *size <= IMAGE_MAX).ok_or(io::ErrorKind::InvalidInput)?;
    let mut bytes = vec![0; size as usize];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// /proc/kallsyms, some five megabytes, for [`crate::stack::symbols::KernelNames`].
///
/// # Errors
/// It cannot be read.
pub fn kallsyms() -> io::Result<Vec<u8>> {
    fs::read("/proc/kallsyms")
}

/// Where a process's just-in-time compiler writes its names: `/tmp/perf-PID.map`, by the number that the process has for itself.
pub fn perf_map_path(pid: i32) -> Option<PathBuf> {
    Some(PathBuf::from(format!("/tmp/perf-{}.map", procfs::innermost_pid(pid)?)))
}

/// The same of what it has mapped: a path that ends with `/jit-PID.dump`.
pub fn jitdump_path(path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let number = path.file_name()?.as_bytes().strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
    number.iter().all(u8::is_ascii_digit).then(|| path.to_owned())
}

/// A file that a process wrote itself: it belongs to the process's user, and is no link.
///
/// # Errors
/// As [`open_at`]'s; or it is another user's.
pub fn open_own(pid: i32, path: &Path, reach: Reach) -> Result<ObjectFile, ObjectError> {
    let file = ObjectFile::open(open_in_root(path, pid, OFlags::NOFOLLOW, reach)?)?;
    let is_own = procfs::status(pid).is_some_and(|status| status.uids[..2].contains(&file.identity.owner));
    if is_own { Ok(file) } else { Err(ObjectError::Replaced) }
}

/// The files of the machine that rtrace runs on, wherever they are: for those that the user names.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveFiles;

impl Files for LiveFiles {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        match want {
            Want::Again { identity, origin } => {
                let files = [Some(origin.pid), None].into_iter().filter_map(|view| open_at(&origin.path, view, Reach::Everywhere).ok());
                files.into_iter().find(|file| file.identity == identity).map(boxed)
            }
            Want::Path { path, seen_by } => open_at(path, seen_by, Reach::Everywhere).ok().map(boxed),
        }
    }
}

fn boxed(file: ObjectFile) -> Box<dyn ReadAt> {
    Box::new(file)
}

impl ObjectFile {
    /// By inode and device. Some file systems (btrfs, overlayfs) have a device for stat(2) that is not the one that mappings show; its major number is 0.
    fn if_it_is(self, mapped: &Mapped<'_>) -> Result<ObjectFile, ObjectError> {
        let device = (rustix::fs::major(self.identity.device), rustix::fs::minor(self.identity.device));
        let is_it = self.identity.inode == mapped.inode && (device == mapped.device || device.0 == 0);
        if is_it { Ok(self) } else { Err(ObjectError::Replaced) }
    }
}

/// The file of a mapping with these addresses. Something else may be mapped there by now, so its inode or its path must be the right one.
fn open_mapping(mapped: &Mapped<'_>, (start, end): (u64, u64), reach: Reach) -> Result<ObjectFile, ObjectError> {
    let link = PathBuf::from(format!("/proc/{}/map_files/{start:x}-{end:x}", mapped.pid));
    let path = fs::read_link(&link)?;
    let place = rustix::fs::open(&link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from)?;
    if reach == Reach::Local && !mounts::is_local_place(&place, Some(mapped.pid)) {
        return Err(ObjectError::Elsewhere);
    }
    let file = ObjectFile::open(place)?;
    let bare = |path: &[u8]| path.strip_suffix(b" (deleted)").unwrap_or(path).to_vec();
    let is_it = file.identity.inode == mapped.inode || bare(path.as_os_str().as_bytes()) == bare(mapped.path);
    if is_it { Ok(file) } else { Err(ObjectError::Replaced) }
}

/// Of all that the process has of this file mapped now.
fn other_addresses(mapped: &Mapped<'_>) -> Vec<(u64, u64)> {
    let Ok(maps) = fs::read(format!("/proc/{}/maps", mapped.pid)) else { return Vec::new() };
    let lines = maps.split(|byte| *byte == b'\n').filter_map(procfs::parse_mapping);
    let same = lines.filter(|line| (line.device, line.inode) == (mapped.device, mapped.inode));
    same.map(|line| line.addresses).filter(|addresses| *addresses != mapped.addresses).collect()
}

/// The place that a path leads to, in a process's root or in rtrace's own. Nothing is opened yet, so it may be a device or a FIFO.
fn open_path(path: &Path, seen_by: Option<i32>, reach: Reach) -> Result<OwnedFd, ObjectError> {
    match (seen_by, reach) {
        (Some(pid), _) => open_in_root(path, pid, OFlags::empty(), reach),
        (None, _) if !path.is_absolute() => Err(io::Error::from(Errno::NOENT).into()),
        (None, Reach::Everywhere) => Ok(rustix::fs::openat(CWD, path, PLACE, Mode::empty()).map_err(io::Error::from)?),
        (None, Reach::Local) => open_in_root(path, std::process::id() as i32, OFlags::empty(), reach),
    }
}

/// What is opened is only a place.
const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The same in a process's root. A way that stays local leads over no mount, and begins on one that is.
fn open_in_root(path: &Path, pid: i32, flags: OFlags, reach: Reach) -> Result<OwnedFd, ObjectError> {
    let is_root = |mount: &mounts::Mount| mount.place == b"/";
    let mount = if reach == Reach::Local { mounts::find(&pid.to_string(), is_root)?.filter(mounts::Mount::is_local) } else { None };
    if reach == Reach::Local && mount.is_none() {
        return Err(ObjectError::Elsewhere);
    }
    let root = rustix::fs::open(format!("/proc/{pid}/root"), PLACE | OFlags::DIRECTORY, Mode::empty()).map_err(io::Error::from)?;
    let mut within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    if let Some(mount) = mount {
        if mounts::id_of(&root) != Some(mount.id) {
            return Err(ObjectError::Elsewhere);
        }
        within |= ResolveFlags::NO_XDEV;
    }
    match again_if_moved(|| rustix::fs::openat2(&root, path, PLACE | flags, Mode::empty(), within)) {
        Err(Errno::XDEV) => Err(ObjectError::Elsewhere),
        opened => Ok(opened.map_err(io::Error::from)?),
    }
}

/// openat2(2) gives EAGAIN if something was renamed meanwhile.
fn again_if_moved(open: impl Fn() -> rustix::io::Result<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    for _ in 0..3 {
        match open() {
            Err(Errno::AGAIN) => {}
            outcome => return outcome,
        }
    }
    open()
}

/// Opens for reading what `place` stands for, if it is a regular file.
fn open_regular(place: impl AsFd) -> Result<(File, Stat), ObjectError> {
    let stat = rustix::fs::statat(&place, "", AtFlags::EMPTY_PATH).map_err(io::Error::from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ObjectError::NotRegular);
    }
    let file = File::open(format!("/proc/self/fd/{}", place.as_fd().as_raw_fd()))?;
    Ok((file, stat))
}

fn identity(stat: &Stat) -> Identity {
    Identity {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
        owner: stat.st_uid,
    }
}

#[cfg(test)]
mod tests;
