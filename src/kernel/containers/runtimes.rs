//! The records that container runtimes keep of their containers on disk: the names for IDs, also of containers that do
//! not run.
//!
//! rtrace reads only files and asks no daemon. A file that cannot be read, or has unexpected contents, is ignored.

use super::cgroup_name::is_id;
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The greatest size of a file that is read. Real ones are much smaller.
const BYTES_MAX: u64 = 64 << 20;
/// The directory of containerd's bundles of running containers, with a directory for each of its namespaces (`k8s.io`,
/// `moby`).
const BUNDLES: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// A container that a runtime has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedContainer {
    /// The full ID: 64 hexadecimal digits.
    pub id: String,
    /// The names that users know the container by; those of kubernetes also with that of the pod (`POD/NAME`). It may
    /// be empty.
    pub names: Vec<String>,
}

/// Returns all containers that the runtimes of the system, which run as root, have recorded.
pub fn recorded() -> Vec<RecordedContainer> {
    let mut all = docker();
    for storage in ["/var/lib/containers/storage", "/run/containers/storage"] {
        all.extend(storage_of(Path::new(storage), 0));
    }
    let bundles =
        entries(Path::new(BUNDLES)).into_iter().flat_map(|namespace| entries(&namespace)).map(|bundle| bundle.join("config.json"));
    let stored = storages(Path::new("/run/containers/storage")).into_iter().flat_map(|kind| entries(&kind));
    all.extend(bundles.chain(stored.map(|container| container.join("userdata/config.json"))).filter_map(|path| bundle(&path)));
    all
}

/// Returns the containers that podman has recorded for a user.
pub fn recorded_by_user(uid: u32, home: &Path) -> Vec<RecordedContainer> {
    let places = [home.join(".local/share/containers/storage"), PathBuf::from(format!("/run/user/{uid}/containers"))];
    places.iter().flat_map(|storage| storage_of(storage, uid)).collect()
}

/// Reads docker's records: a directory for each container.
fn docker() -> Vec<RecordedContainer> {
    let configured =
        json(Path::new("/etc/docker/daemon.json"), 0).and_then(|config| Some(PathBuf::from(config.get("data-root")?.as_str()?)));
    let root = configured.unwrap_or_else(|| PathBuf::from("/var/lib/docker"));
    let read = |dir: PathBuf| {
        let config = json(&dir.join("config.v2.json"), 0)?;
        let name = config.get("Name")?.as_str()?;
        Some(RecordedContainer { id: id_of(&dir)?, names: vec![name.trim_start_matches('/').to_owned()] })
    };
    entries(&root.join("containers")).into_iter().filter_map(read).collect()
}

/// Reads the records of podman and CRI-O: for each kind of storage a list of containers, and a list of those that do
/// not survive a reboot.
fn storage_of(storage: &Path, owner: u32) -> Vec<RecordedContainer> {
    let lists = storages(storage).into_iter().flat_map(|kind| ["containers.json", "volatile-containers.json"].map(|list| kind.join(list)));
    let read = |entry: &Value| {
        let id = entry.get("id")?.as_str().filter(|id| is_id(id))?;
        let names = entry.get("names").and_then(Value::as_array).into_iter().flatten();
        Some(RecordedContainer { id: id.to_owned(), names: names.filter_map(Value::as_str).map(str::to_owned).collect() })
    };
    let all = lists.filter_map(|list| json(&list, owner));
    all.flat_map(|list| list.as_array().into_iter().flatten().filter_map(read).collect::<Vec<_>>()).collect()
}

/// Returns the directories of the kinds of storage: `overlay-containers`, `vfs-containers` and so on.
fn storages(storage: &Path) -> Vec<PathBuf> {
    entries(storage).into_iter().filter(|path| path.to_string_lossy().ends_with("-containers")).collect()
}

/// Reads the annotations of a container of kubernetes or nerdctl: its name, and its name behind that of its pod.
fn bundle(path: &Path) -> Option<RecordedContainer> {
    let config = json(path, 0)?;
    let annotations = config.get("annotations")?;
    let value = |keys: [&str; 2]| keys.into_iter().find_map(|key| annotations.get(key)?.as_str());
    let dir = path.ancestors().skip(1).find(|dir| !dir.ends_with("userdata"))?;
    let name =
        value(["io.kubernetes.cri.container-name", "io.kubernetes.container.name"]).or_else(|| annotations.get("nerdctl/name")?.as_str());
    let pod = value(["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"]);
    // The container that holds a pod's namespaces has no name that a user gave it.
    let name = name.filter(|name| *name != "POD")?;
    let with_pod = pod.map(|pod| format!("{pod}/{name}"));
    Some(RecordedContainer { id: id_of(dir)?, names: [name.to_owned()].into_iter().chain(with_pod).collect() })
}

fn id_of(dir: &Path) -> Option<String> {
    dir.file_name()?.to_str().filter(|name| is_id(name)).map(str::to_owned)
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Reads a regular file that belongs to root or `owner`. A user who may write to the directory could have replaced it
/// by a link or a FIFO.
fn json(path: &Path, owner: u32) -> Option<Value> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let facts = file.metadata().ok()?;
    if !facts.is_file() || ![0, owner].contains(&facts.uid()) || facts.len() > BYTES_MAX {
        return None;
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
