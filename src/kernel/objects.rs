//! Opens the files that processes have mapped, in the mount namespaces of these processes: executables and libraries,
//! their debug files, and the files of just-in-time compilers. Only regular files are opened.
//!
//! The owner of a traced process controls the names of its files and the targets of links. So a path is resolved within
//! the process's root, and the file is accepted only if it is the one that was mapped.

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

/// A mapping of a file, from a PERF_RECORD_MMAP2 or /proc/PID/maps.
#[derive(Clone, Copy, Debug)]
pub struct Mapped<'a> {
    /// The process that has the file mapped.
    pub pid: i32,
    /// The first address, and the end (exclusive).
    pub addresses: (u64, u64),
    /// The path in the process's mount namespace, followed by ` (deleted)` for a deleted file.
    pub path: &'a [u8],
    /// The major and minor number.
    pub device: (u32, u32),
    /// The inode number, as the kernel's mappings have it.
    pub inode: u64,
}

/// The reason why a mapped file is not read.
#[derive(Debug, Error)]
pub enum ObjectError {
    #[error("it cannot be opened: {0}")]
    Unopened(#[from] io::Error),
    #[error("it was replaced by another file since it was mapped")]
    Replaced,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it may be on a file system whose server does not answer (FUSE, NFS)")]
    MaybeRemote,
}

/// The file systems on which files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only local file systems ([`mounts`]). A file that may be on another one is not accessed, and the error is
    /// [`ObjectError::MaybeRemote`].
    Local,
    /// All file systems. The caller may be blocked until the file system's server answers.
    Everywhere,
}

/// An open regular file. Its size is that at the time of opening.
#[derive(Debug)]
pub struct ObjectFile {
    file: File,
    identity: Identity,
}

impl ObjectFile {
    /// Creates it from a file that another process opened, with the identity at that time.
    pub fn opened(file: File, identity: Identity) -> ObjectFile {
        ObjectFile { file, identity }
    }

    /// Returns the identity that the file had when it was opened.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the file as one that grows: its size is the present one.
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

/// An open regular file to which a process appends. Its size is the present one.
struct GrowingFile(File);

impl ReadAt for GrowingFile {
    fn size(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }
}

/// Opens the file of a mapping.
///
/// Through /proc/PID/map_files, a file is found even if it was deleted, replaced, or is visible only to its process;
/// that needs CAP_CHECKPOINT_RESTORE. Without the capability, or if the mapping no longer exists, its path is resolved
/// in the process's root, and then in rtrace's own.
///
/// # Errors
/// Fails if the file no longer exists, was replaced, or may not be opened, and with [`ObjectError::MaybeRemote`].
pub fn open_mapped(mapped: &Mapped<'_>, reach: Reach) -> Result<ObjectFile, ObjectError> {
    if let Ok(file) = open_mapping(mapped, mapped.addresses, reach) {
        return Ok(file);
    }
    let path = Path::new(OsStr::from_bytes(mapped.path));
    let mut outcome = Err(ObjectError::Replaced);
    for view in [Some(mapped.pid), None] {
        match open_at(path, view, reach).and_then(|file| file.if_mapped_as(mapped)) {
            Ok(file) => return Ok(file),
            Err(ObjectError::MaybeRemote) => outcome = Err(ObjectError::MaybeRemote),
            Err(error) => outcome = if view.is_some() { Err(error) } else { outcome },
        }
    }
    // A part of the mapping may have been unmapped or got another protection since, which changes the addresses in
    // map_files.
    let others = other_addresses(mapped).into_iter().find_map(|addresses| open_mapping(mapped, addresses, reach).ok());
    others.map_or(outcome, Ok)
}

/// Opens the file at a path in a process's root, or in rtrace's own.
///
/// # Errors
/// Fails if the file does not exist, may not be opened, or is not a regular file, and with
/// [`ObjectError::MaybeRemote`].
pub fn open_at(path: &Path, seen_by: Option<i32>, reach: Reach) -> Result<ObjectFile, ObjectError> {
    ObjectFile::open(open_path(path, seen_by, reach)?)
}

/// Returns the origin of a mapped file, for [`crate::stack::symbols::Resolver::object`].
pub fn origin(mapped: &Mapped<'_>) -> Origin {
    let path = mapped.path.strip_suffix(b" (deleted)").unwrap_or(mapped.path);
    Origin { pid: mapped.pid, path: PathBuf::from(OsStr::from_bytes(path)) }
}

/// Reads a process's memory between two addresses: the ELF image of the vdso.
///
/// # Errors
/// Fails if it is more than 1 MiB, or may not be read.
pub fn image(pid: i32, (start, end): (u64, u64)) -> io::Result<Vec<u8>> {
    const IMAGE_MAX: u64 = 1 << 20;
    let size = end.checked_sub(start).filter(|size| *size <= IMAGE_MAX).ok_or(io::ErrorKind::InvalidInput)?;
    let mut bytes = vec![0; size as usize];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// Reads /proc/kallsyms, some five megabytes, for [`crate::stack::symbols::KernelNames`].
///
/// # Errors
/// Fails if it cannot be read.
pub fn kallsyms() -> io::Result<Vec<u8>> {
    fs::read("/proc/kallsyms").map_err(|error| io::Error::new(error.kind(), format!("/proc/kallsyms: {error}")))
}

/// Returns the path to which a process's just-in-time compiler writes the names of its functions: `/tmp/perf-PID.map`,
/// by the pid in the process's own pid namespace.
pub fn perf_map_path(pid: i32) -> Option<PathBuf> {
    Some(PathBuf::from(format!("/tmp/perf-{}.map", procfs::innermost_pid(pid)?)))
}

/// Returns the path of a mapped file if it is a just-in-time compiler's dump, whose name is `jit-PID.dump`.
pub fn jitdump_path(path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let number = path.file_name()?.as_bytes().strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
    number.iter().all(u8::is_ascii_digit).then(|| path.to_owned())
}

/// Opens a file that a process wrote itself. It must belong to the process's user, and not be a symbolic link.
///
/// # Errors
/// Fails as [`open_at`], and if the file belongs to another user.
pub fn open_own(pid: i32, path: &Path, reach: Reach) -> Result<ObjectFile, ObjectError> {
    let file = ObjectFile::open(open_in_root(path, pid, OFlags::NOFOLLOW, reach)?)?;
    let is_own = procfs::status(pid).is_some_and(|status| status.uids[..2].contains(&file.identity.owner));
    if is_own { Ok(file) } else { Err(ObjectError::Replaced) }
}

/// Opens the files of the live machine on all file systems. It is used for files that the user names.
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
    /// Accepts the file if it is the mapped one, by inode and device. In some file systems (btrfs, overlayfs), stat(2)
    /// shows another device than mappings do; its major number is 0.
    fn if_mapped_as(self, mapped: &Mapped<'_>) -> Result<ObjectFile, ObjectError> {
        let device = (rustix::fs::major(self.identity.device), rustix::fs::minor(self.identity.device));
        let is_it = self.identity.inode == mapped.inode && (device == mapped.device || device.0 == 0);
        if is_it { Ok(self) } else { Err(ObjectError::Replaced) }
    }
}

/// Opens the file of the mapping with these addresses. Another file may be mapped there meanwhile, so its inode or its
/// path must match.
fn open_mapping(mapped: &Mapped<'_>, (start, end): (u64, u64), reach: Reach) -> Result<ObjectFile, ObjectError> {
    let link = PathBuf::from(format!("/proc/{}/map_files/{start:x}-{end:x}", mapped.pid));
    let path = fs::read_link(&link)?;
    let path_fd = rustix::fs::open(&link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from)?;
    if reach == Reach::Local && !mounts::is_local_file(&path_fd, Some(mapped.pid)) {
        return Err(ObjectError::MaybeRemote);
    }
    let file = ObjectFile::open(path_fd)?;
    let bare = |path: &[u8]| path.strip_suffix(b" (deleted)").unwrap_or(path).to_vec();
    let is_it = file.identity.inode == mapped.inode || bare(path.as_os_str().as_bytes()) == bare(mapped.path);
    if is_it { Ok(file) } else { Err(ObjectError::Replaced) }
}

/// Returns the addresses of the process's present mappings of this file, without the known ones.
fn other_addresses(mapped: &Mapped<'_>) -> Vec<(u64, u64)> {
    let Ok(maps) = fs::read(format!("/proc/{}/maps", mapped.pid)) else { return Vec::new() };
    let lines = maps.split(|byte| *byte == b'\n').filter_map(procfs::parse_mapping);
    let same = lines.filter(|line| (line.device, line.inode) == (mapped.device, mapped.inode));
    same.map(|line| line.addresses).filter(|addresses| *addresses != mapped.addresses).collect()
}

/// Opens a path with O_PATH, in a process's root or in rtrace's own. That does not open the file itself, so it may be a
/// device or a FIFO.
fn open_path(path: &Path, seen_by: Option<i32>, reach: Reach) -> Result<OwnedFd, ObjectError> {
    match (seen_by, reach) {
        (Some(pid), _) => open_in_root(path, pid, OFlags::empty(), reach),
        (None, _) if !path.is_absolute() => Err(io::Error::from(Errno::NOENT).into()),
        (None, Reach::Everywhere) => Ok(rustix::fs::openat(CWD, path, PATH_ONLY, Mode::empty()).map_err(io::Error::from)?),
        (None, Reach::Local) => open_in_root(path, std::process::id() as i32, OFlags::empty(), reach),
    }
}

/// The flags that open a path without opening the file.
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Opens a path with O_PATH in a process's root. With [`Reach::Local`], the root must be on a local mount, and the path
/// must not cross a mount point.
fn open_in_root(path: &Path, pid: i32, flags: OFlags, reach: Reach) -> Result<OwnedFd, ObjectError> {
    let is_root = |mount: &mounts::Mount| mount.mount_point == b"/";
    let mount = if reach == Reach::Local { mounts::find(&pid.to_string(), is_root)?.filter(mounts::Mount::is_local) } else { None };
    if reach == Reach::Local && mount.is_none() {
        return Err(ObjectError::MaybeRemote);
    }
    let root = rustix::fs::open(format!("/proc/{pid}/root"), PATH_ONLY | OFlags::DIRECTORY, Mode::empty()).map_err(io::Error::from)?;
    let mut within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    if let Some(mount) = mount {
        if mounts::id_of(&root) != Some(mount.id) {
            return Err(ObjectError::MaybeRemote);
        }
        within |= ResolveFlags::NO_XDEV;
    }
    match retry_if_renamed(|| rustix::fs::openat2(&root, path, PATH_ONLY | flags, Mode::empty(), within)) {
        Err(Errno::XDEV) => Err(ObjectError::MaybeRemote),
        opened => Ok(opened.map_err(io::Error::from)?),
    }
}

/// Repeats openat2(2), which fails with EAGAIN if a directory was renamed meanwhile.
fn retry_if_renamed(open: impl Fn() -> rustix::io::Result<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    for _ in 0..3 {
        match open() {
            Err(Errno::AGAIN) => {}
            outcome => return outcome,
        }
    }
    open()
}

/// Opens the file of an O_PATH descriptor for reading, if it is a regular file.
fn open_regular(path_fd: impl AsFd) -> Result<(File, Stat), ObjectError> {
    let stat = rustix::fs::statat(&path_fd, "", AtFlags::EMPTY_PATH).map_err(io::Error::from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ObjectError::NotRegular);
    }
    let file = File::open(format!("/proc/self/fd/{}", path_fd.as_fd().as_raw_fd()))?;
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
