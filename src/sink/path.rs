//! Making the file that output goes to.
//!
//! rtrace often runs as root and writes into directories that others can write to, so no name is followed or trusted. What
//! counts is what stands in the directory and what was opened, and whose that is:
//!
//! * a regular file is moved aside or removed, and the new one is made with O_EXCL;
//! * a character device (a terminal, /dev/null) is written as it is, since only root makes devices;
//! * a pipe is, if it is the user's own;
//! * a link is followed only in /dev and /proc themselves (/dev/stdout), where nobody else can plant one.
//!
//! Where others may put names into the directory (/tmp, /dev/shm), what is theirs is refused.

use crate::interrupt::{self, Waiter};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::process;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

const WRITE: OFlags = OFlags::WRONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const PIPE_OF_OTHERS: &str = "it is a pipe of another user, in a directory that others may write to";

/// Opens a file to write: a new one of mode 0600, the old one moved to FILE.old; or the device or pipe of that name.
///
/// # Errors
/// With a sentence that lacks only "cannot write to FILE": it is a link, a directory or somebody else's, or the system said no.
pub fn create(path: &Path) -> io::Result<File> {
    let place = Place::of(path)?;
    let Some(found) = place.stat(&place.name)? else { return place.make() };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink if place.links_are_the_systems()? => open(path, WRITE | OFlags::APPEND),
        FileType::Symlink => Err(refusal("it is a symbolic link; name the file itself")),
        FileType::Directory => Err(refusal("it is a directory")),
        FileType::BlockDevice => Err(refusal("it is a block device")),
        FileType::RegularFile => {
            place.refuse_others(&found, "it is a file of another user, in a directory that others may write to")?;
            place.put_aside(found.st_size > 0)?;
            place.make()
        }
        kind => {
            // Before it is opened, too, since that may wait for a reader.
            if kind == FileType::Fifo {
                place.refuse_others(&found, PIPE_OF_OTHERS)?;
            }
            let file = File::from(place.open_existing(kind)?);
            let opened = fs::fstat(&file)?;
            match FileType::from_raw_mode(opened.st_mode) {
                FileType::CharacterDevice => Ok(file),
                FileType::Fifo => {
                    place.refuse_others(&opened, PIPE_OF_OTHERS)?;
                    Ok(file)
                }
                _ => Err(refusal("it was replaced while it was opened")),
            }
        }
    }
}

/// A name in a directory that is held open, so that it stays the same directory.
struct Place {
    dir: OwnedFd,
    name: OsString,
}

impl Place {
    fn of(path: &Path) -> io::Result<Place> {
        let name = path.file_name().ok_or_else(|| refusal("it is a directory"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Place { dir, name })
    }

    fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether only root and the user can put names into the directory.
    fn is_closed(&self) -> io::Result<bool> {
        let dir = fs::fstat(&self.dir)?;
        Ok(is_trusted(dir.st_uid) && !Mode::from_raw_mode(dir.st_mode).contains(Mode::WOTH))
    }

    /// Whether the kernel or root made the links here: in /proc they are the kernel's, in /dev itself (and not in /dev/shm) root's.
    fn links_are_the_systems(&self) -> io::Result<bool> {
        if fs::fstatfs(&self.dir)?.f_type == fs::PROC_SUPER_MAGIC {
            return Ok(true);
        }
        let dev = fs::stat("/dev")?;
        let here = fs::fstat(&self.dir)?;
        Ok((here.st_dev, here.st_ino) == (dev.st_dev, dev.st_ino) && self.is_closed()?)
    }

    fn refuse_others(&self, found: &Stat, reason: &'static str) -> io::Result<()> {
        if is_trusted(found.st_uid) || self.is_closed()? { Ok(()) } else { Err(refusal(reason)) }
    }

    /// Moves the file to FILE.old, or removes it where nothing is in it.
    fn put_aside(&self, keep: bool) -> io::Result<()> {
        if !keep {
            return Ok(fs::unlinkat(&self.dir, &self.name, AtFlags::empty())?);
        }
        let mut old = self.name.clone();
        old.push(".old");
        if let Some(found) = self.stat(&old)? {
            self.refuse_others(&found, "its .old file is another user's, in a directory that others may write to")?;
        }
        Ok(fs::renameat(&self.dir, &self.name, &self.dir, &old)?)
    }

    /// Opens what is not a regular file; a pipe as soon as somebody reads from it.
    fn open_existing(&self, kind: FileType) -> io::Result<OwnedFd> {
        let flags = WRITE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = interrupt::patiently(Waiter::Main, |step| match fs::openat(&self.dir, &self.name, flags, Mode::empty()) {
            Err(rustix::io::Errno::NXIO) if kind == FileType::Fifo => {
                std::thread::sleep(step);
                None
            }
            opened => Some(opened),
        });
        Ok(opened.map_err(|_| refusal("nobody reads from it, and rtrace was asked to end"))??)
    }

    fn make(&self) -> io::Result<File> {
        let flags = WRITE | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = fs::openat(&self.dir, &self.name, flags, Mode::RUSR | Mode::WUSR)?;
        if let Some((uid, gid)) = caller() {
            fs::fchown(&file, Some(uid), Some(gid))?;
        }
        Ok(File::from(file))
    }
}

/// root, whoever runs rtrace, and whoever called sudo.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == process::geteuid().as_raw() || caller().is_some_and(|(caller, _)| uid == caller.as_raw())
}

/// Opens a file that [`create`] made, to write on.
///
/// # Errors
/// It is gone, or is a link now.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, WRITE | OFlags::APPEND | OFlags::NOFOLLOW)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    Ok(File::from(fs::open(path, flags, Mode::empty())?))
}

/// Who called sudo, when root works for somebody else.
fn caller() -> Option<(process::Uid, process::Gid)> {
    let id = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != u32::MAX);
    if !process::geteuid().is_root() {
        return None;
    }
    Some((process::Uid::from_raw(id("SUDO_UID")?), process::Gid::from_raw(id("SUDO_GID")?)))
}

fn refusal(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}
