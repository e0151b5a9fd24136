//! Cgroups that tests create.

use crate::machine::Machine;
use std::path::{Path, PathBuf};

/// A cgroup of the unified hierarchy, which is removed after its tasks have ended.
pub struct Cgroup {
    pub dir: PathBuf,
    /// The path as /proc/PID/cgroup shows it.
    pub path: String,
}

impl Cgroup {
    pub fn new(machine: &Machine, name: &str) -> Cgroup {
        let own = machine.dir().file_name().expect("it has a name").to_string_lossy().into_owned();
        let path = format!("/{own}-{name}");
        let dir = unified().join(&path[1..]);
        std::fs::create_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        Cgroup { dir, path }
    }

    /// Creates a cgroup inside this one, with its parents; all of them are removed together.
    pub fn below(&self, name: &str) -> Cgroup {
        let dir = self.dir.join(name);
        std::fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        Cgroup { dir, path: format!("{}/{name}", self.path) }
    }
}

/// Returns the mount point of the unified hierarchy.
pub fn unified() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("there is /proc");
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    });
    mount.expect("a cgroup2 is mounted")
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let wait = || std::thread::sleep(std::time::Duration::from_millis(20));
        (0..100).find(|_| remove(&self.dir).inspect_err(|_| wait()).is_ok());
    }
}

/// Removes a cgroup with everything below it.
fn remove(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)?.flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path())?;
    }
    std::fs::remove_dir(dir)
}
