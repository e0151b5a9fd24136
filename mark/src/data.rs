//! Finds and opens `user_events_data`. tracefs may be mounted at the usual mount point, at another one, or not at all.

use crate::error::Error;
use crate::sys;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The name of the file below the root of tracefs. Programs register and write user events with it.
const NAME: &str = "user_events_data";

/// The usual mount point of tracefs.
const USUAL: &str = "/sys/kernel/tracing";

/// The automount point of tracefs in debugfs. Access mounts tracefs visibly for all processes, so this one is tried
/// last.
const BELOW_DEBUGFS: &str = "/sys/kernel/debug/tracing";

/// Opens the file for writing. If tracefs is not mounted, the file is opened through a detached mount, which other
/// processes do not see.
///
/// # Errors
/// The kernel has no user events, or this program has no permission to write them.
pub fn open() -> Result<File, Error> {
    let mounts = mount_points(&fs::read("/proc/self/mounts").unwrap_or_default());
    let mut denied = None;
    for root in [PathBuf::from(USUAL)].iter().chain(&mounts) {
        match open_below(root) {
            Ok(data) => return Ok(data),
            Err(Error::NotBuilt) => {}
            Err(error) => denied = denied.or(Some(error)),
        }
    }
    match denied {
        Some(denied) => Err(denied),
        None if !mounts.is_empty() => Err(Error::NotBuilt),
        None => without_mount(),
    }
}

fn open_below(root: &Path) -> Result<File, Error> {
    let path = root.join(NAME);
    File::options().write(true).open(&path).map_err(|error| refused(path, error))
}

fn without_mount() -> Result<File, Error> {
    match sys::detached_tracefs() {
        Ok(root) => sys::open_for_writing(&root, NAME).map_err(|error| refused(Path::new("tracefs").join(NAME), error)),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Err(Error::NotBuilt),
        Err(error) => match open_below(Path::new(BELOW_DEBUGFS)) {
            Err(_) => Err(Error::NotMounted { error }),
            opened => opened,
        },
    }
}

fn refused(path: PathBuf, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotBuilt,
        io::ErrorKind::PermissionDenied => Error::NoPermission { path },
        _ => Error::Open { path, error },
    }
}

/// Returns the mount points of tracefs in the text of /proc/self/mounts.
fn mount_points(mounts: &[u8]) -> Vec<PathBuf> {
    let tracefs = |line: &[u8]| {
        let mut words = line.split(|byte| *byte == b' ');
        let (_, mount_point, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == b"tracefs").then(|| PathBuf::from(OsString::from_vec(unescaped(mount_point))))
    };
    mounts.split(|byte| *byte == b'\n').filter_map(tracefs).collect()
}

/// Decodes the escapes in paths: the kernel writes blanks as `\` and three octal digits (man 5 fstab).
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = |digits: &[u8]| {
            let number = digits.iter().try_fold(0u32, |sum, digit| char::from(*digit).to_digit(8).map(|digit| sum * 8 + digit))?;
            u8::try_from(number).ok()
        };
        match behind.get(..3).filter(|_| first == b'\\').and_then(octal) {
            Some(byte) => (bytes.push(byte), rest = &behind[3..]),
            None => (bytes.push(first), rest = behind),
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mount_points_of_tracefs_are_returned() {
        let mounts = b"proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\nx /a\\040b\\134040\\9 tracefs rw 0 0\ntracefs\n";
        assert_eq!(mount_points(mounts), [PathBuf::from("/sys/kernel/tracing"), PathBuf::from("/a b\\040\\9")]);
        assert_eq!(mount_points(b""), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_missing_file_means_that_the_kernel_has_no_user_events() {
        assert!(matches!(open_below(Path::new("/nonexistent")), Err(Error::NotBuilt)));
        // A file instead of a directory: the error is neither ENOENT nor EACCES.
        assert!(matches!(open_below(Path::new("/dev/null")), Err(Error::Open { .. })));
    }
}
