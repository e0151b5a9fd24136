//! Creates output files safely.
//!
//! rtrace often runs as root and writes into directories that others can write to, so it neither follows nor trusts
//! names. It decides by the type and the owner of the directory entry and of the opened file:
//!
//! * a regular file is renamed or removed, and the new one is created with O_EXCL;
//! * a character device (a terminal, /dev/null) is opened as it is, since only root creates devices;
//! * a pipe is opened as it is if it belongs to the user;
//! * a link is followed only in /dev and /proc themselves (/dev/stdout), where other users cannot create one.
//!
//! In a directory that others can write to (/tmp, /dev/shm), files and pipes of other users are rejected.

use crate::interrupt::{self, Waiter};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::process;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

const WRITE: OFlags = OFlags::WRONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const FILE_OF_OTHERS: &str = "it is a file of another user, in a directory that others may write to";
const REPLACED: &str = "it was replaced while it was opened";
const PIPE_OF_OTHERS: &str = "it is a pipe of another user, in a directory that others may write to";

/// Opens an output file: a new file of mode 0600, with an old one renamed to FILE.old; or the device or pipe of that
/// name.
///
/// # Errors
/// The path is a link, a directory or another user's file, or a system call failed. The message continues "cannot write
/// to FILE: ".
pub fn create(path: &Path) -> io::Result<File> {
    let target = OutputPath::of(path)?;
    let Some(found) = target.stat(&target.name)? else { return target.create_new() };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink if target.links_are_trusted()? => open(path, WRITE | OFlags::APPEND),
        FileType::Symlink => Err(invalid("it is a symbolic link; give the path of the file itself")),
        FileType::Directory => Err(rustix::io::Errno::ISDIR.into()),
        FileType::BlockDevice => Err(invalid("it is a block device")),
        FileType::RegularFile => {
            target.reject_others(&found, FILE_OF_OTHERS)?;
            target.rename_or_remove(found.st_size > 0)?;
            target.create_new()
        }
        kind => {
            // The owner is checked before the open, too, since the open may wait for a reader.
            if kind == FileType::Fifo {
                target.reject_others(&found, PIPE_OF_OTHERS)?;
            }
            let file = File::from(target.open_existing(kind)?);
            let opened = fs::fstat(&file)?;
            match FileType::from_raw_mode(opened.st_mode) {
                FileType::CharacterDevice => Ok(file),
                FileType::Fifo => {
                    target.reject_others(&opened, PIPE_OF_OTHERS)?;
                    Ok(file)
                }
                _ => Err(invalid(REPLACED)),
            }
        }
    }
}

/// Opens an output file like [`create`], but a file of that name keeps its text, and is appended to.
///
/// # Errors
/// As of [`create`].
pub fn create_or_append(path: &Path) -> io::Result<File> {
    let target = OutputPath::of(path)?;
    let kind = target.stat(&target.name)?.map(|found| FileType::from_raw_mode(found.st_mode));
    if kind != Some(FileType::RegularFile) {
        return create(path);
    }
    let file = fs::openat(&target.dir, &target.name, WRITE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty())?;
    let opened = fs::fstat(&file)?;
    if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
        return Err(invalid(REPLACED));
    }
    target.reject_others(&opened, FILE_OF_OTHERS)?;
    Ok(File::from(file))
}

/// A file name in an open directory, which stays the same directory even if its path changes.
struct OutputPath {
    dir: OwnedFd,
    name: OsString,
}

impl OutputPath {
    fn of(path: &Path) -> io::Result<OutputPath> {
        let name = path.file_name().ok_or(rustix::io::Errno::ISDIR)?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(OutputPath { dir, name })
    }

    fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether only root and the user can create names in the directory.
    fn is_closed(&self) -> io::Result<bool> {
        let dir = fs::fstat(&self.dir)?;
        Ok(is_trusted(dir.st_uid) && !Mode::from_raw_mode(dir.st_mode).contains(Mode::WOTH))
    }

    /// Returns whether the links in the directory were created by the kernel or by root: those in /proc, and those in
    /// /dev itself (not in /dev/shm).
    fn links_are_trusted(&self) -> io::Result<bool> {
        if fs::fstatfs(&self.dir)?.f_type == fs::PROC_SUPER_MAGIC {
            return Ok(true);
        }
        let dev = fs::stat("/dev")?;
        let here = fs::fstat(&self.dir)?;
        Ok((here.st_dev, here.st_ino) == (dev.st_dev, dev.st_ino) && self.is_closed()?)
    }

    fn reject_others(&self, found: &Stat, reason: &'static str) -> io::Result<()> {
        if is_trusted(found.st_uid) || self.is_closed()? { Ok(()) } else { Err(invalid(reason)) }
    }

    /// Renames the file to FILE.old, or removes it if it is empty.
    fn rename_or_remove(&self, keep: bool) -> io::Result<()> {
        if !keep {
            return Ok(fs::unlinkat(&self.dir, &self.name, AtFlags::empty())?);
        }
        let mut old = self.name.clone();
        old.push(".old");
        if let Some(found) = self.stat(&old)? {
            self.reject_others(&found, "its .old file is another user's, in a directory that others may write to")?;
        }
        Ok(fs::renameat(&self.dir, &self.name, &self.dir, &old)?)
    }

    /// Opens a device or a pipe. The open of a pipe waits until it has a reader.
    fn open_existing(&self, kind: FileType) -> io::Result<OwnedFd> {
        let flags = WRITE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = interrupt::patiently(Waiter::Main, |step| match fs::openat(&self.dir, &self.name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NXIO) if kind == FileType::Fifo => {
                std::thread::sleep(step);
                None
            }
            opened => Some(opened),
        });
        Ok(opened.map_err(|_| invalid("it has no reader, and rtrace was asked to end"))??)
    }

    fn create_new(&self) -> io::Result<File> {
        let flags = WRITE | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = fs::openat(&self.dir, &self.name, flags, Mode::RUSR | Mode::WUSR)?;
        if let Some((uid, gid)) = caller() {
            fs::fchown(&file, Some(uid), Some(gid))?;
        }
        Ok(File::from(file))
    }
}

/// Returns whether this is root, the user of rtrace, or the user who called sudo.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == process::geteuid().as_raw() || caller().is_some_and(|(caller, _)| uid == caller.as_raw())
}

/// Opens a file that [`create`] created, to append to it.
///
/// # Errors
/// The file was removed, or replaced by a link.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, WRITE | OFlags::APPEND | OFlags::NOFOLLOW)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    Ok(File::from(fs::open(path, flags, Mode::empty())?))
}

/// Returns the user and group that called sudo if rtrace runs as root.
fn caller() -> Option<(process::Uid, process::Gid)> {
    let id = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != u32::MAX);
    if !process::geteuid().is_root() {
        return None;
    }
    Some((process::Uid::from_raw(id("SUDO_UID")?), process::Gid::from_raw(id("SUDO_GID")?)))
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}
