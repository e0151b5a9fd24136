//! The CPU controller of cgroups, and the cgroup of this process in its hierarchy.

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// The version of a cgroup hierarchy, which decides the names of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// A hierarchy of the CPU controller (cgroups(7), version 1).
    One,
    /// The unified hierarchy.
    Two,
}

/// Returns the directory of this process's cgroup in the hierarchy that has the CPU controller.
///
/// # Errors
/// No mounted hierarchy has the controller, or the cgroup is not visible below the mount.
pub fn own_cgroup() -> anyhow::Result<(PathBuf, Version)> {
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    let (mounts, cgroups) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
    let (dir, version) = find(&mounts, &cgroups).ok_or_else(|| {
        anyhow!("no hierarchy of cgroups with the CPU controller is mounted, or rtrace's own cgroup is not below the mount")
    })?;
    if version == Version::Two && !has_cpu(&fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default()) {
        return Err(anyhow!(
            "the cgroup {} has no CPU controller; start rtrace in one that has it, for example: systemd-run --scope -p Delegate=cpu rtrace ...",
            dir.display()
        ));
    }
    Ok((dir, version))
}

/// Returns whether the CPU controller is in a list of controllers, as cgroup.controllers has it.
pub fn has_cpu(controllers: &str) -> bool {
    controllers.split_whitespace().any(|name| name == "cpu")
}

/// Finds the cgroup by the texts of /proc/self/mountinfo and /proc/self/cgroup. The controller belongs to one hierarchy
/// only: to the unified one if no other has it.
fn find(mounts: &str, cgroups: &str) -> Option<(PathBuf, Version)> {
    let lines = || cgroups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let (path, version) = match lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "cpu")) {
        Some((_, path)) => (path, Version::One),
        None => (lines().find(|(controllers, _)| controllers.is_empty())?.1, Version::Two),
    };
    mounts.lines().find_map(|line| below(line, path, version)).map(|dir| (dir, version))
}

/// Returns the directory of a cgroup if this line of mountinfo is a mount of its hierarchy that shows it.
fn below(line: &str, path: &str, version: Version) -> Option<PathBuf> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1)?);
    let is_it = match version {
        Version::One => name == "cgroup" && options.split(',').any(|option| option == "cpu"),
        Version::Two => name == "cgroup2",
    };
    let mut words = mount.split(' ').skip(3);
    let (root, mount_point) = (words.next()?, words.next()?);
    let rest = path.strip_prefix(root.trim_end_matches('/')).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    (is_it && !path.split('/').any(|part| part == "..")).then(|| PathBuf::from(mount_point).join(rest.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "32 31 0:29 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";

    fn found(mounts: &str, cgroups: &str) -> Option<(String, Version)> {
        find(mounts, cgroups).map(|(dir, version)| (dir.display().to_string(), version))
    }

    #[test]
    fn the_hierarchy_with_the_controller_is_found() {
        let one = |path: &str| Some((path.to_owned(), Version::One));
        assert_eq!(found(MOUNTS, "2:cpuacct:/x\n1:cpu:/a/b\n0::/c\n"), one("/sys/fs/cgroup/cpu/a/b"));
        assert_eq!(found(MOUNTS, "1:cpu:/\n"), one("/sys/fs/cgroup/cpu/"));
        assert_eq!(found(MOUNTS, "2:cpuacct:/x\n0::/c\n"), Some(("/sys/fs/cgroup/unified/c".to_owned(), Version::Two)));
        assert_eq!(found("", "0::/c\n"), None);
    }

    #[test]
    fn a_mount_shows_the_cgroups_below_its_root() {
        let mounts = "33 31 0:30 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(found(mounts, "0::/docker/1/x"), Some(("/sys/fs/cgroup/x".to_owned(), Version::Two)));
        for other in ["0::/docker", "0::/docker/12", "0::/../x"] {
            assert_eq!(found(mounts, other), None, "{other}");
        }
    }
}
