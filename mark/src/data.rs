//! Where the kernel's file of user events is: tracefs may be mounted in the usual place, elsewhere, or not at all.

use crate::error::Error;
use crate::sys;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The file's name below the root of tracefs. Programs register and write user events with it.
const NAME: &str = "user_events_data";

/// Where tracefs is mounted as a rule.
const USUAL: &str = "/sys/kernel/tracing";

/// Where the kernel mounts tracefs for all to see when somebody looks, so it is asked last.
const BELOW_DEBUGFS: &str = "/sys/kernel/debug/tracing";

/// Opens the file for writing. Where tracefs is not mounted, it is opened through a mount that only this program has.
///
/// # Errors
/// The kernel has no user events, or this program may not write them.
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

/// The places at which /proc/self/mounts says that a tracefs is mounted.
fn mount_points(mounts: &[u8]) -> Vec<PathBuf> {
    let tracefs = |line: &[u8]| {
        let mut words = line.split(|byte| *byte == b' ');
        let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == b"tracefs").then(|| PathBuf::from(OsString::from_vec(unescaped(place))))
    };
    mounts.split(|byte| *byte == b'\n').filter_map(tracefs).collect()
}

/// The kernel writes blanks in paths as `\` and three octal digits (man 5 fstab).
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
    fn mount_points_are_those_of_tracefs() {
        let mounts = b"proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\nx /a\\040b\\134040\\9 tracefs rw 0 0\ntracefs\n";
        assert_eq!(mount_points(mounts), [PathBuf::from("/sys/kernel/tracing"), PathBuf::from("/a b\\040\\9")]);
        assert_eq!(mount_points(b""), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_file_that_is_not_there_means_that_there_are_no_user_events() {
        assert!(matches!(open_below(Path::new("/nonexistent")), Err(Error::NotBuilt)));
        // A file in place of the directory is neither absent nor forbidden.
        assert!(matches!(open_below(Path::new("/dev/null")), Err(Error::Open { .. })));
    }
}
