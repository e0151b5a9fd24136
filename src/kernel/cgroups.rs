//! The mounts of the cgroup hierarchies by which a trace can be limited, and the paths of cgroups in a cgroup
//! namespace.

use anyhow::Context;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The greatest number of cgroups that [`by_number`] returns.
const CGROUPS_MAX: usize = 16_384;
/// The greatest length of the path of a cgroup whose children [`by_number`] visits.
const PATH_MAX: usize = 4_096;

/// A mount of a cgroup hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The directory of the hierarchy's root as /proc/mounts has it, without decoding its escapes (`\040`).
    pub mount_point: PathBuf,
    /// Whether it is version 2, which BPF programs check; otherwise it is version 1 with the controller `perf_event`.
    pub is_unified: bool,
}

/// Returns the mounts of the unified hierarchy and of the one of the controller `perf_event`, in the order of
/// /proc/mounts.
///
/// # Errors
/// Fails if /proc/mounts cannot be read.
pub fn roots() -> anyhow::Result<Vec<Root>> {
    let mounts = fs::read_to_string("/proc/mounts").context("cannot read /proc/mounts")?;
    Ok(mounts.lines().filter_map(root).collect())
}

fn root(line: &str) -> Option<Root> {
    let mut words = line.split(' ').skip(1);
    let (mount_point, kind, options) = (words.next()?, words.next()?, words.next()?);
    let is_unified = kind == "cgroup2";
    let is_of_perf = kind == "cgroup" && options.split(',').any(|option| option == "perf_event");
    (is_unified || is_of_perf).then(|| Root { mount_point: PathBuf::from(mount_point), is_unified })
}

/// Returns the visible cgroups of the unified hierarchy: their IDs, and the paths that /proc shows for them in this
/// cgroup namespace. It is empty if these paths cannot be determined.
pub fn by_number() -> Vec<(u64, Vec<u8>)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some((above, mount_point)) = mounts.lines().find_map(unified_mount) else { return Vec::new() };
    let mut all = Vec::new();
    walk(&mount_point, Vec::new(), &mut all);
    let paths: Vec<&[u8]> = all.iter().map(|(_, path)| path.as_slice()).collect();
    let shown: Option<Vec<Vec<u8>>> = if above.split('/').any(|part| part == "..") {
        // The mount shows cgroups outside of this namespace, too.
        namespace_root(&mount_point, &above, &paths).map(|root| paths.iter().map(|path| relative(root, path)).collect())
    } else {
        Some(paths.iter().map(|path| relative(b"", &[above.trim_end_matches('/').as_bytes(), path].concat())).collect())
    };
    all.iter().map(|(number, _)| *number).zip(shown.unwrap_or_default()).collect()
}

/// Returns the path of a cgroup relative to the root of a cgroup namespace, as /proc/PID/cgroup shows it
/// (cgroup_namespaces(7)).
pub fn relative(root: &[u8], path: &[u8]) -> Vec<u8> {
    let parts = |path| <[u8]>::split(path, |byte| *byte == b'/').filter(|part| !part.is_empty());
    let common = parts(root).zip(parts(path)).take_while(|(one, other)| one == other).count();
    let up = parts(root).skip(common).map(|_| &b".."[..]);
    let shown = up.chain(parts(path).skip(common)).flat_map(|part| [b"/", part].concat()).collect::<Vec<u8>>();
    if shown.is_empty() { b"/".to_vec() } else { shown }
}

/// Parses a line of mountinfo: returns the path of the mount's root in this namespace, and the mount point.
fn unified_mount(line: &str) -> Option<(String, PathBuf)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut words = mount.split(' ').skip(3);
    let (above, mount_point) = (words.next()?, words.next()?);
    kind.starts_with("cgroup2 ").then(|| (above.to_owned(), PathBuf::from(mount_point)))
}

/// Collects the IDs and paths of a cgroup and of those below it. The ID of a cgroup is the inode of its directory.
fn walk(dir: &Path, path: Vec<u8>, all: &mut Vec<(u64, Vec<u8>)>) {
    let Ok(facts) = fs::metadata(dir) else { return };
    all.push((facts.ino(), path.clone()));
    let inside = fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for entry in inside {
        if all.len() >= CGROUPS_MAX || path.len() > PATH_MAX {
            return;
        }
        walk(&entry.path(), [&path, &b"/"[..], entry.file_name().as_bytes()].concat(), all);
    }
}

/// Returns the path of the namespace's root below the mount. It is found by this process's own cgroup, whose path below
/// the mount and path in /proc both are known.
fn namespace_root<'p>(mount_point: &Path, above: &str, paths: &[&'p [u8]]) -> Option<&'p [u8]> {
    let own = || fs::read_to_string("/proc/self/cgroup").ok()?.lines().find_map(|line| Some(line.strip_prefix("0::")?.to_owned()));
    let before = own()?;
    let me = std::process::id().to_string();
    let is_in = |path: &&&[u8]| {
        let dir = mount_point.join(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path)));
        fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|pids| pids.lines().any(|pid| pid == me))
    };
    let found = paths.iter().find(is_in)?;
    let root = found.strip_suffix(before.trim_end_matches('/').as_bytes())?;
    let depth = root.iter().filter(|byte| **byte == b'/').count();
    // The result counts only if nobody has moved the process meanwhile.
    (own().as_deref() == Some(&before) && depth == above.matches("..").count()).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_recognized() {
        let unified = root("cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0");
        assert_eq!(unified, Some(Root { mount_point: "/sys/fs/cgroup/unified".into(), is_unified: true }));
        let perf = root("cgroup /sys/fs/cgroup/perf_event cgroup rw,cpu,perf_event 0 0");
        assert_eq!(perf, Some(Root { mount_point: "/sys/fs/cgroup/perf_event".into(), is_unified: false }));
        assert_eq!(root("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0"), None);
        assert_eq!(root("cgroup2"), None);
    }

    #[test]
    fn paths_are_relative_to_the_root_of_the_namespace() {
        let of = |path: &[u8]| String::from_utf8(relative(b"/a/b", path)).unwrap();
        assert_eq!(
            [of(b"/a/b"), of(b"/a/b/c/d"), of(b"/a"), of(b"/a/x"), of(b"/"), of(b"/a/bc")],
            ["/", "/c/d", "/..", "/../x", "/../..", "/../bc"]
        );
        assert_eq!((relative(b"", b"/a"), relative(b"", b"")), (b"/a".to_vec(), b"/".to_vec()));
    }

    #[test]
    fn the_unified_mount_is_read_from_mountinfo() {
        let line = "41 31 0:38 /.. /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(unified_mount(line), Some(("/..".to_owned(), "/sys/fs/cgroup/unified".into())));
        assert_eq!(unified_mount("41 31 0:38 / /proc rw - proc proc rw"), None);
    }
}
