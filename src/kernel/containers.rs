//! Containers. The kernel does not know them: they are the cgroups that container runtimes create, recognized by the
//! cgroups' names.
//!
//! rtrace asks no daemon. Names that are not part of a cgroup's path are read from the files in which runtimes record
//! them.

mod cgroup_name;
mod runtimes;

use super::cgroups::{self, Root};
use crate::sys::users;
use crate::text::near;
use anyhow::{anyhow, bail};
use cgroup_name::Identifier;
use runtimes::RecordedContainer;
use std::fs;
use std::path::{Path, PathBuf};

/// The greatest depth below the root at which containers are searched for. Users who may create cgroups can nest them
/// arbitrarily deep.
const DEPTH_MAX: usize = 32;
/// The greatest number of containers that a message lists.
const LISTED_MAX: usize = 8;
/// The number of digits of an ID that `docker ps` shows.
const SHORT: usize = 12;

/// A running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// 64 hexadecimal digits. Containers of systemd-nspawn and lxc have none.
    pub id: Option<String>,
    /// Its names, the shortest first.
    pub names: Vec<String>,
    /// The directory of its cgroup, the top one if it has several.
    pub cgroup: PathBuf,
    /// The index of its cgroup hierarchy, in the order in which the hierarchies are searched.
    root: usize,
}

/// Finds the cgroup of the container with a name or an ID, or of the only one whose ID begins with `wanted`. `by_bpf`:
/// whether BPF programs will trace it.
///
/// # Errors
/// Fails if no container matches, or several do.
pub fn find(wanted: &str, by_bpf: bool) -> anyhow::Result<PathBuf> {
    let shown = wanted.escape_debug();
    let mut recorded = runtimes::recorded();
    let mut running = running_in(&ordered(cgroups::roots()?, by_bpf));
    add_names(&mut running, &recorded);
    let mut found = matching(wanted, &running);
    if found.is_empty() {
        recorded.extend(add_names_by_users(&mut running));
        found = matching(wanted, &running);
    }
    match found[..] {
        [] => bail!("{}", not_found(wanted, &running, &recorded)),
        [only] => Ok(only.cgroup.clone()),
        [first, ..] if found.iter().all(|container| container.id == first.id) => {
            let cgroups = listed(found.iter().map(|container| container.cgroup.display().to_string()));
            bail!("container {shown} has several cgroups, choose one by -G: {cgroups}")
        }
        _ => {
            let digits = if wanted.len() < SHORT { SHORT } else { usize::MAX };
            let containers = listed(found.iter().map(|container| container.described(digits)));
            Err(anyhow!("{shown} matches {} containers, specify one by more digits of its ID: {containers}", found.len()))
        }
    }
}

/// Returns all running containers, with the names that root's runtimes have recorded. It serves the shells' completion.
pub fn running() -> Vec<Container> {
    let mut all = running_in(&ordered(cgroups::roots().unwrap_or_default(), true));
    add_names(&mut all, &runtimes::recorded());
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

    /// Returns the user whose own service manager created the container, by the cgroup's path.
    fn user(&self) -> Option<u32> {
        let parts = self.cgroup.iter().filter_map(|part| part.to_str()?.strip_prefix("user@")?.strip_suffix(".service"));
        parts.filter_map(|uid| uid.parse().ok()).next()
    }
}

fn shortened(id: &str, digits: usize) -> &str {
    id.get(..digits).unwrap_or(id)
}

/// Sorts the hierarchies by which the kernel can limit the trace to the front: version 1 for perf events, version 2 for
/// BPF programs, which do not support version 1.
fn ordered(mut roots: Vec<Root>, by_bpf: bool) -> Vec<Root> {
    roots.sort_by_key(|root| root.is_unified != by_bpf);
    roots
}

fn running_in(roots: &[Root]) -> Vec<Container> {
    let mut all = Vec::new();
    for (number, root) in roots.iter().enumerate() {
        walk(&root.mount_point, number, &mut Vec::new(), &mut all);
    }
    all
}

/// Adds the containers below a cgroup. `above` has the containers that the cgroup is in.
fn walk(dir: &Path, root: usize, above: &mut Vec<Option<Identifier>>, all: &mut Vec<Container>) {
    let inside = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let container = cgroup_name::container_of(&entry.file_name().to_string_lossy());
        if let Some(identifier) = container.clone().filter(|inner| !above.iter().flatten().any(|outer| outer == inner)) {
            let (id, names) = match identifier {
                Identifier::Id(id) => (Some(id), Vec::new()),
                Identifier::Name(name) => (None, vec![name]),
            };
            let is_same = |other: &Container| other.root < root && other.id == id && (id.is_some() || other.names == names);
            if !all.iter().any(is_same) {
                all.push(Container { id, names, cgroup: entry.path(), root });
            }
        }
        if above.len() < DEPTH_MAX {
            above.push(container);
            walk(&entry.path(), root, above, all);
            above.pop();
        }
    }
}

/// Adds the recorded names to running containers, by their IDs.
fn add_names(running: &mut [Container], recorded: &[RecordedContainer]) {
    for container in running {
        let own = recorded.iter().filter(|record| Some(&record.id) == container.id.as_ref());
        for name in own.flat_map(|record| &record.names) {
            if !container.names.contains(name) {
                container.names.push(name.clone());
            }
        }
    }
}

/// Adds the names that users' own runtimes have recorded. A user's records apply only to the containers in this user's
/// cgroups. Returns all these records.
fn add_names_by_users(running: &mut [Container]) -> Vec<RecordedContainer> {
    let mut users: Vec<u32> = running.iter().filter_map(Container::user).collect();
    users.sort_unstable();
    users.dedup();
    let mut all = Vec::new();
    for uid in users {
        let Ok(user) = users::user(&uid.to_string()) else { continue };
        let recorded = runtimes::recorded_by_user(uid, Path::new(&user.home));
        for container in running.iter_mut().filter(|container| container.user() == Some(uid)) {
            add_names(std::slice::from_mut(container), &recorded);
        }
        all.extend(recorded);
    }
    all
}

/// Returns the containers whose name or ID is `wanted`, or if there are none, those whose ID begins with it.
fn matching<'a>(wanted: &str, running: &'a [Container]) -> Vec<&'a Container> {
    let is_called = |container: &&Container| container.id.as_deref() == Some(wanted) || container.names.iter().any(|name| name == wanted);
    let called: Vec<&Container> = running.iter().filter(is_called).collect();
    if !called.is_empty() || wanted.is_empty() {
        return called;
    }
    running.iter().filter(|container| container.id.as_ref().is_some_and(|id| id.starts_with(wanted))).collect()
}

/// Returns the message for a container that was not found.
fn not_found(wanted: &str, running: &[Container], recorded: &[RecordedContainer]) -> String {
    let stopped = recorded.iter().find(|record| record.id == wanted || record.names.iter().any(|name| name == wanted));
    if let Some(stopped) = stopped {
        return format!("container {} ({}) is not running: it has no cgroup", wanted.escape_debug(), shortened(&stopped.id, SHORT));
    }
    let how = "docker ps --no-trunc, podman ps --no-trunc and crictl ps --no-trunc print IDs";
    if wanted.is_empty() {
        return format!("the name of the container is empty ({how})");
    }
    if running.is_empty() {
        let reason = "no cgroup has the name of a container of docker, podman, containerd, CRI-O, systemd-nspawn or lxc";
        return format!("no container {} is running here, and no other: {reason} ({how}; -G accepts any cgroup)", wanted.escape_debug());
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
    fn a_name_takes_precedence_over_the_beginning_of_an_id() {
        let all = [container(&"a1".repeat(32), &["web"], "/a"), container(&"a2".repeat(32), &["a1"], "/b"), container("", &["box"], "/c")];
        let found = |wanted: &str| matching(wanted, &all).iter().map(|one| one.cgroup.display().to_string()).collect::<Vec<_>>();
        assert_eq!((found("web"), found("a1"), found("a1a")), (vec!["/a".to_owned()], vec!["/b".to_owned()], vec!["/a".to_owned()]));
        assert_eq!((found("a").len(), found("box").len(), found("we").len(), found("").len()), (2, 1, 0, 0));
    }

    #[test]
    fn the_user_of_a_container_is_read_from_the_cgroups_path() {
        let cgroup = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-x.scope";
        assert_eq!(container("", &[], cgroup).user(), Some(1000));
        assert_eq!(container("", &[], "/sys/fs/cgroup/machine.slice/libpod-x.scope").user(), None);
    }
}
