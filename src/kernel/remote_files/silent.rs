//! The file systems that did not answer. The reader does not access them again.

use super::protocol::FileRef;
use crate::kernel::mounts;
use std::cell::RefCell;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The number of silent file systems after which no further requests are sent: each of them costs the time of waiting
/// for the response.
const SILENT_MAX: usize = 4;

/// The file systems that did not answer.
#[derive(Debug, Default)]
pub struct SilentFileSystems {
    known: Vec<SilentFileSystem>,
}

/// A file system that did not answer.
#[derive(Debug, PartialEq, Eq)]
enum SilentFileSystem {
    /// A file system with its device's numbers.
    Device((u32, u32)),
    /// The files below a directory, in a mount namespace (the text of the link /proc/PID/ns/mnt).
    Below { namespace: PathBuf, directory: PathBuf },
}

impl SilentFileSystems {
    /// Adds the file system of a file.
    pub fn add(&mut self, file: &FileRef) {
        let silent = match file {
            FileRef::Mapped { device, .. } => Some(SilentFileSystem::Device(*device)),
            FileRef::Path { .. } | FileRef::Own { .. } => {
                namespace(file).map(|namespace| SilentFileSystem::Below { namespace, directory: mount_above(file) })
            }
        };
        self.known.extend(silent);
    }

    /// Whether a file is on a file system that did not answer, or too many did not.
    pub fn contains(&self, file: &FileRef) -> bool {
        self.known.len() >= SILENT_MAX
            || self.known.iter().any(|silent| match (silent, file) {
                (SilentFileSystem::Device(silent), FileRef::Mapped { device, .. }) => silent == device,
                (SilentFileSystem::Below { namespace: of, directory }, FileRef::Path { .. } | FileRef::Own { .. }) => {
                    file.path().starts_with(directory) && namespace(file).as_ref() == Some(of)
                }
                _ => false,
            })
    }
}

fn namespace(file: &FileRef) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{}/ns/mnt", process(file))).ok()
}

fn process(file: &FileRef) -> String {
    file.seen_by().map_or_else(|| "self".to_owned(), |pid| pid.to_string())
}

/// Returns the mount point of the deepest remote mount above a path, which is the path's mount if no symbolic link
/// leads to another one. If there is none, returns the path's directory.
fn mount_above(file: &FileRef) -> PathBuf {
    let path = file.path();
    let deepest = RefCell::new(path.parent().unwrap_or(path).to_owned());
    let found = RefCell::new(0);
    // The closure returns false, so that all mounts are visited.
    let _ = mounts::find(&process(file), |mount| {
        let mount_point = PathBuf::from(std::ffi::OsStr::from_bytes(&mount.mount_point));
        if !mount.is_local() && path.starts_with(&mount_point) && mount.mount_point.len() > *found.borrow() {
            found.replace(mount.mount_point.len());
            deepest.replace(mount_point);
        }
        false
    });
    deepest.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str, seen_by: Option<i32>) -> FileRef {
        FileRef::Path { path: path.into(), seen_by }
    }

    fn mapped(device: (u32, u32)) -> FileRef {
        FileRef::Mapped { pid: 1, addresses: (0, 1), path: b"/x".to_vec(), device, inode: 1 }
    }

    #[test]
    fn silent_file_systems_are_recognized_by_device_or_directory() {
        let mut silent = SilentFileSystems::default();
        assert!(!silent.contains(&mapped((0, 7))));
        silent.add(&mapped((0, 7)));
        assert!(silent.contains(&mapped((0, 7))) && !silent.contains(&mapped((0, 8))));
        let own = std::process::id() as i32;
        assert!(!silent.contains(&path("/far/away/one", None)));
        silent.add(&path("/far/away/one", None));
        for seen_by in [None, Some(own)] {
            assert!(silent.contains(&path("/far/away/two", seen_by)) && !silent.contains(&path("/far/one", seen_by)));
        }
    }

    #[test]
    fn after_four_silent_file_systems_all_are_considered_silent() {
        let mut silent = SilentFileSystems::default();
        for minor in 0..SILENT_MAX as u32 {
            assert!(!silent.contains(&mapped((1, 1))));
            silent.add(&mapped((0, minor)));
        }
        assert!(silent.contains(&mapped((1, 1))) && silent.contains(&path("/x", None)));
    }
}
