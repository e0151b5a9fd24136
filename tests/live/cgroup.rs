//! Cgroups for tests.

use crate::machine::Machine;
use std::path::{Path, PathBuf};

/// A cgroup of the unified hierarchy that is taken away when its tasks are gone.
pub struct Cgroup {
    pub dir: PathBuf,
    /// As /proc/PID/cgroup has it.
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

    /// One inside it; those between are made, too, and go with it.
    pub fn below(&self, name: &str) -> Cgroup {
        let dir = self.dir.join(name);
        std::fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        Cgroup { dir, path: format!("{}/{name}", self.path) }
    }
}

/// Where the unified hierarchy is mounted.
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

/// With all that is below it.
fn remove(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)?.flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path())?;
    }
    std::fs::remove_dir(dir)
}
