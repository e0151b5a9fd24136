//! Where the hierarchies of cgroups are mounted that traces can be limited by.

use anyhow::Context;
use std::path::PathBuf;

/// A mount of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    pub place: PathBuf,
    /// Version 2, which BPF programs ask for; otherwise version 1's of the controller `perf_event`.
    pub is_unified: bool,
}

/// The mounts of the unified hierarchy and of the one that perf events follow, in the order of /proc/mounts.
///
/// # Errors
/// /proc/mounts cannot be read.
pub fn roots() -> anyhow::Result<Vec<Root>> {
    let mounts = std::fs::read_to_string("/proc/mounts").context("cannot read /proc/mounts")?;
    Ok(mounts.lines().filter_map(root).collect())
}

fn root(line: &str) -> Option<Root> {
    let mut words = line.split(' ').skip(1);
    let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
    let is_unified = kind == "cgroup2";
    let is_of_perf = kind == "cgroup" && options.split(',').any(|option| option == "perf_event");
    (is_unified || is_of_perf).then(|| Root { place: PathBuf::from(place), is_unified })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions() {
        let unified = root("cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0");
        assert_eq!(unified, Some(Root { place: "/sys/fs/cgroup/unified".into(), is_unified: true }));
        let perf = root("cgroup /sys/fs/cgroup/perf_event cgroup rw,cpu,perf_event 0 0");
        assert_eq!(perf, Some(Root { place: "/sys/fs/cgroup/perf_event".into(), is_unified: false }));
        assert_eq!(root("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0"), None);
        assert_eq!(root("cgroup2"), None);
    }
}
