//! Containers, of which the kernel knows nothing: they are the cgroups that runtimes give them, found by what these are called.
//!
//! No daemon is asked. Names that are not part of a cgroup's path come from the files in which runtimes write them down.

mod called;
mod runtimes;

use super::cgroups::{self, Root};
use crate::sys::users;
use crate::text::near;
use anyhow::{anyhow, bail};
use called::Called;
use runtimes::Known;
use std::fs;
use std::path::{Path, PathBuf};

/// Cgroups so far below the root are no container's: whoever may make cgroups can nest them as he likes.
const DEPTH_MAX: usize = 32;
/// So many are named in a sentence.
const LISTED_MAX: usize = 8;
/// What `docker ps` shows of an ID.
const SHORT: usize = 12;

/// A container that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// 64 hexadecimal digits. systemd-nspawn's and lxc's have none.
    pub id: Option<String>,
    /// What it is called, the shortest name first.
    pub names: Vec<String>,
    /// The directory of its cgroup, the top one if it has several.
    pub cgroup: PathBuf,
    /// The hierarchy's, in the order in which these are looked at.
    root: usize,
}

/// The cgroup of the container that has this ID, is the only one whose ID begins so, or is called so. `by_bpf`: BPF programs are to trace it.
///
/// # Errors
/// There is none, or there are several.
pub fn find(wanted: &str, by_bpf: bool) -> anyhow::Result<PathBuf> {
    let shown = wanted.escape_debug();
    let mut known = runtimes::known();
    let mut running = running_in(&ordered(cgroups::roots()?, by_bpf));
    name(&mut running, &known);
    let mut found = matching(wanted, &running);
    if found.is_empty() {
        known.extend(name_by_users(&mut running));
        found = matching(wanted, &running);
    }
    match found[..] {
        [] => bail!("{}", none(wanted, &running, &known)),
        [only] => Ok(only.cgroup.clone()),
        [first, ..] if found.iter().all(|container| container.id == first.id) => {
            let cgroups = listed(found.iter().map(|container| container.cgroup.display().to_string()));
            bail!("container {shown} has several cgroups, choose one by -G: {cgroups}")
        }
        _ => {
            let digits = if wanted.len() < SHORT { SHORT } else { usize::MAX };
            let containers = listed(found.iter().map(|container| container.described(digits)));
            Err(anyhow!("there are {} containers that {shown} may mean, give more of an ID: {containers}", found.len()))
        }
    }
}

/// All that run, for who wants to choose: with the names that root's own runtimes know.
pub fn running() -> Vec<Container> {
    let mut all = running_in(&ordered(cgroups::roots().unwrap_or_default(), true));
    name(&mut all, &runtimes::known());
    all
}

impl Container {
    fn described(&self, digits: usize) -> String {
        match (self.names.last(), &self.id) {
            (Some(name), Some(id)) => format!("{name} ({})", shortened(id, digits)),
            (None, Some(id)) => shortened(id, digits).to_owned(),
            (name, None) => name.cloned().unwrap_or_default(),
        }
    }

    /// Part of its cgroup's path where a user's own service manager made it.
    fn user(&self) -> Option<u32> {
        let parts = self.cgroup.iter().filter_map(|part| part.to_str()?.strip_prefix("user@")?.strip_suffix(".service"));
        parts.filter_map(|uid| uid.parse().ok()).next()
    }
}

fn shortened(id: &str, digits: usize) -> &str {
    id.get(..digits).unwrap_or(id)
}

/// Those first in which the kernel can limit a trace: perf events follow version 1's where it is mounted, BPF programs only version 2's.
fn ordered(mut roots: Vec<Root>, by_bpf: bool) -> Vec<Root> {
    roots.sort_by_key(|root| root.is_unified != by_bpf);
    roots
}

fn running_in(roots: &[Root]) -> Vec<Container> {
    let mut all = Vec::new();
    for (number, root) in roots.iter().enumerate() {
        walk(&root.place, number, &mut Vec::new(), &mut all);
    }
    all
}

/// Adds the containers below this cgroup, which is inside those that are `above` it.
fn walk(dir: &Path, root: usize, above: &mut Vec<Option<Called>>, all: &mut Vec<Container>) {
    let inside = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let called = called::of_cgroup(&entry.file_name().to_string_lossy());
        if let Some(called) = called.clone().filter(|called| !above.iter().flatten().any(|other| other == called)) {
            let (id, names) = match called {
                Called::Id(id) => (Some(id), Vec::new()),
                Called::Name(name) => (None, vec![name]),
            };
            let is_known = |other: &Container| other.root < root && other.id == id && (id.is_some() || other.names == names);
            if !all.iter().any(is_known) {
                all.push(Container { id, names, cgroup: entry.path(), root });
            }
        }
        if above.len() < DEPTH_MAX {
            above.push(called);
            walk(&entry.path(), root, above, all);
            above.pop();
        }
    }
}

fn name(running: &mut [Container], known: &[Known]) {
    for container in running {
        let own = known.iter().filter(|known| Some(&known.id) == container.id.as_ref());
        for name in own.flat_map(|known| &known.names) {
            if !container.names.contains(name) {
                container.names.push(name.clone());
            }
        }
    }
}

/// What users' own runtimes know of the containers in these users' cgroups, and of no others.
fn name_by_users(running: &mut [Container]) -> Vec<Known> {
    let mut users: Vec<u32> = running.iter().filter_map(Container::user).collect();
    users.sort_unstable();
    users.dedup();
    let mut all = Vec::new();
    for uid in users {
        let Ok(user) = users::user(&uid.to_string()) else { continue };
        let known = runtimes::known_to(uid, Path::new(&user.home));
        for container in running.iter_mut().filter(|container| container.user() == Some(uid)) {
            name(std::slice::from_mut(container), &known);
        }
        all.extend(known);
    }
    all
}

/// Those that are called just so; if there are none, those whose ID begins so.
fn matching<'a>(wanted: &str, running: &'a [Container]) -> Vec<&'a Container> {
    let is_called = |container: &&Container| container.id.as_deref() == Some(wanted) || container.names.iter().any(|name| name == wanted);
    let called: Vec<&Container> = running.iter().filter(is_called).collect();
    if !called.is_empty() || wanted.is_empty() {
        return called;
    }
    running.iter().filter(|container| container.id.as_ref().is_some_and(|id| id.starts_with(wanted))).collect()
}

/// Why there is none.
fn none(wanted: &str, running: &[Container], known: &[Known]) -> String {
    let stopped = known.iter().find(|known| known.id == wanted || known.names.iter().any(|name| name == wanted));
    if let Some(known) = stopped {
        return format!("container {} ({}) is not running: it has no cgroup", wanted.escape_debug(), shortened(&known.id, SHORT));
    }
    let how = "docker ps --no-trunc, podman ps --no-trunc and crictl ps --no-trunc print IDs";
    if wanted.is_empty() {
        return format!("no container is meant by an empty name ({how})");
    }
    if running.is_empty() {
        let where_ = "no cgroup is called as docker, podman, containerd, CRI-O, systemd-nspawn or lxc call a container's";
        return format!("no container {} is running here, and no other: {where_} ({how}; -G takes any cgroup)", wanted.escape_debug());
    }
    let ids = running.iter().filter_map(|container| container.id.as_deref()).map(|id| shortened(id, SHORT));
    let names = running.iter().flat_map(|container| &container.names).map(String::as_str);
    let near: Vec<String> = near::nearest(wanted, names.chain(ids), 3).iter().map(|name| name.escape_debug().to_string()).collect();
    format!("no container {} is running here{} ({how})", wanted.escape_debug(), near::hint(&near))
}

fn listed(all: impl ExactSizeIterator<Item = String>) -> String {
    let count = all.len();
    let mut text: Vec<String> = all.take(LISTED_MAX).map(|one| one.escape_debug().to_string()).collect();
    text.sort_unstable();
    if count > LISTED_MAX {
        text.push(format!("and {} more", count - LISTED_MAX));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(id: &str, names: &[&str], cgroup: &str) -> Container {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Container { id: (!id.is_empty()).then(|| id.to_owned()), names, cgroup: cgroup.into(), root: 0 }
    }

    #[test]
    fn a_name_goes_before_the_beginning_of_an_id() {
        let all = [container(&"a1".repeat(32), &["web"], "/a"), container(&"a2".repeat(32), &["a1"], "/b"), container("", &["box"], "/c")];
        let found = |wanted: &str| matching(wanted, &all).iter().map(|one| one.cgroup.display().to_string()).collect::<Vec<_>>();
        assert_eq!((found("web"), found("a1"), found("a1a")), (vec!["/a".to_owned()], vec!["/b".to_owned()], vec!["/a".to_owned()]));
        assert_eq!((found("a").len(), found("box").len(), found("we").len(), found("").len()), (2, 1, 0, 0));
    }

    #[test]
    fn whose_service_manager() {
        let cgroup = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-x.scope";
        assert_eq!(container("", &[], cgroup).user(), Some(1000));
        assert_eq!(container("", &[], "/sys/fs/cgroup/machine.slice/libpod-x.scope").user(), None);
    }
}
