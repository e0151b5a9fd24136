//! Which file systems did not answer: they are not asked again.

use super::ask::Ask;
use crate::kernel::mounts;
use std::cell::RefCell;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Each costs the time that is waited for an answer, so after as many nobody is asked any more.
const SILENT_MAX: usize = 4;

/// Those of which that is known.
#[derive(Debug, Default)]
pub struct Silent {
    places: Vec<Place>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A file system, by its device's numbers.
    Device((u32, u32)),
    /// What is below a directory, in a mount namespace as /proc/PID/ns/mnt shows it.
    Below { namespace: PathBuf, directory: PathBuf },
}

impl Silent {
    /// What this leads to did not answer.
    pub fn add(&mut self, ask: &Ask) {
        let place = match ask {
            Ask::Mapped { device, .. } => Some(Place::Device(*device)),
            Ask::Path { .. } | Ask::Own { .. } => namespace(ask).map(|namespace| Place::Below { namespace, directory: mount_above(ask) }),
        };
        self.places.extend(place);
    }

    /// Whether that would not answer, for all that is known.
    pub fn has(&self, ask: &Ask) -> bool {
        self.places.len() >= SILENT_MAX
            || self.places.iter().any(|place| match (place, ask) {
                (Place::Device(silent), Ask::Mapped { device, .. }) => silent == device,
                (Place::Below { namespace: of, directory }, Ask::Path { .. } | Ask::Own { .. }) => {
                    ask.path().starts_with(directory) && namespace(ask).as_ref() == Some(of)
                }
                _ => false,
            })
    }
}

fn namespace(ask: &Ask) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{}/ns/mnt", process(ask))).ok()
}

fn process(ask: &Ask) -> String {
    ask.seen_by().map_or_else(|| "self".to_owned(), |pid| pid.to_string())
}

/// Where the mount begins that this path leads to, if no link leads to another: the deepest one above it that asks somebody else. Otherwise the path's own directory.
fn mount_above(ask: &Ask) -> PathBuf {
    let path = ask.path();
    let deepest = RefCell::new(path.parent().unwrap_or(path).to_owned());
    let found = RefCell::new(0);
    // It looks at all, since none is what it looks for.
    let _ = mounts::find(&process(ask), |mount| {
        let place = PathBuf::from(std::ffi::OsStr::from_bytes(&mount.place));
        if !mount.is_local() && path.starts_with(&place) && mount.place.len() > *found.borrow() {
            found.replace(mount.place.len());
            deepest.replace(place);
        }
        false
    });
    deepest.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str, seen_by: Option<i32>) -> Ask {
        Ask::Path { path: path.into(), seen_by }
    }

    fn mapped(device: (u32, u32)) -> Ask {
        Ask::Mapped { pid: 1, addresses: (0, 1), path: b"/x".to_vec(), device, inode: 1 }
    }

    #[test]
    fn what_did_not_answer_is_known_by_device_or_by_directory() {
        let mut silent = Silent::default();
        assert!(!silent.has(&mapped((0, 7))));
        silent.add(&mapped((0, 7)));
        assert!(silent.has(&mapped((0, 7))) && !silent.has(&mapped((0, 8))));
        let own = std::process::id() as i32;
        assert!(!silent.has(&path("/far/away/one", None)));
        silent.add(&path("/far/away/one", None));
        for seen_by in [None, Some(own)] {
            assert!(silent.has(&path("/far/away/two", seen_by)) && !silent.has(&path("/far/one", seen_by)));
        }
    }

    #[test]
    fn after_some_nobody_is_asked() {
        let mut silent = Silent::default();
        for minor in 0..SILENT_MAX as u32 {
            assert!(!silent.has(&mapped((1, 1))));
            silent.add(&mapped((0, minor)));
        }
        assert!(silent.has(&mapped((1, 1))) && silent.has(&path("/x", None)));
    }
}
