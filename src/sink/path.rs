//! Making the file that output goes to.
//!
//! rtrace often runs as root and writes into directories that others can write to, so no name is followed or trusted: what is there is looked at, moved aside or removed, and the new
//! file is made with O_EXCL. Only names under /dev and /proc may be links (/dev/stdout): nobody else can plant those.

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::process;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const WRITE: OFlags = OFlags::WRONLY.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Opens a file to write: a new one of mode 0600, the old one moved to FILE.old; or the device or pipe of that name.
///
/// # Errors
/// With a sentence that lacks only "cannot write to FILE": it is a link or a directory, or the system said no.
pub fn create(path: &Path) -> io::Result<File> {
    let of_system = path.starts_with("/dev") || path.starts_with("/proc");
    let found = if of_system { fs::stat(path) } else { fs::lstat(path) };
    let follow = if of_system { OFlags::empty() } else { OFlags::NOFOLLOW };
    let stat = match found {
        Ok(stat) => stat,
        Err(rustix::io::Errno::NOENT) => return make(path),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if of_system => open(path, WRITE | OFlags::APPEND),
        FileType::RegularFile if stat.st_size > 0 => {
            std::fs::rename(path, old_name(path))?;
            make(path)
        }
        FileType::RegularFile => {
            std::fs::remove_file(path)?;
            make(path)
        }
        FileType::Symlink => Err(refusal("it is a symbolic link; name the file itself")),
        FileType::Directory => Err(refusal("it is a directory")),
        _ => {
            let file = open(path, WRITE | follow)?;
            if FileType::from_raw_mode(fs::fstat(&file)?.st_mode) == FileType::RegularFile {
                return Err(refusal("it was replaced while it was opened"));
            }
            Ok(file)
        }
    }
}

/// Opens a file that [`create`] made, to write on.
///
/// # Errors
/// It is gone, or is a link now.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, WRITE | OFlags::APPEND | OFlags::NOFOLLOW)
}

fn make(path: &Path) -> io::Result<File> {
    let file = fs::open(path, WRITE | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR)?;
    if let Some((uid, gid)) = caller() {
        fs::fchown(&file, Some(uid), Some(gid))?;
    }
    Ok(File::from(file))
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    Ok(File::from(fs::open(path, flags, Mode::empty())?))
}

fn old_name(path: &Path) -> PathBuf {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    PathBuf::from(old)
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
