//! What container runtimes write down of their containers: names for IDs, also of those that do not run.
//!
//! Only what can be read without asking a daemon. What cannot be read, or is something else than expected, is as if it were not there.

use super::called::is_id;
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// No such file is nearly as long.
const BYTES_MAX: u64 = 64 << 20;
/// Where containerd keeps the bundles of what runs, a directory for each of its namespaces (`k8s.io`, `moby`).
const BUNDLES: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// A container that somebody has written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub id: String,
    pub names: Vec<String>,
}

/// All that the machine's own runtimes have written down.
pub fn known() -> Vec<Known> {
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

/// What podman has written down for this user.
pub fn known_to(uid: u32, home: &Path) -> Vec<Known> {
    let places = [home.join(".local/share/containers/storage"), PathBuf::from(format!("/run/user/{uid}/containers"))];
    places.iter().flat_map(|storage| storage_of(storage, uid)).collect()
}

/// docker: a directory for each container.
fn docker() -> Vec<Known> {
    let elsewhere =
        json(Path::new("/etc/docker/daemon.json"), 0).and_then(|config| Some(PathBuf::from(config.get("data-root")?.as_str()?)));
    let root = elsewhere.unwrap_or_else(|| PathBuf::from("/var/lib/docker"));
    let read = |dir: PathBuf| {
        let config = json(&dir.join("config.v2.json"), 0)?;
        let name = config.get("Name")?.as_str()?;
        Some(Known { id: id_of(&dir)?, names: vec![name.trim_start_matches('/').to_owned()] })
    };
    entries(&root.join("containers")).into_iter().filter_map(read).collect()
}

/// podman and CRI-O: a list for each kind of storage, and one of those containers that do not survive the machine's next start.
fn storage_of(storage: &Path, owner: u32) -> Vec<Known> {
    let lists = storages(storage).into_iter().flat_map(|kind| ["containers.json", "volatile-containers.json"].map(|list| kind.join(list)));
    let read = |entry: &Value| {
        let id = entry.get("id")?.as_str().filter(|id| is_id(id))?;
        let names = entry.get("names").and_then(Value::as_array).into_iter().flatten();
        Some(Known { id: id.to_owned(), names: names.filter_map(Value::as_str).map(str::to_owned).collect() })
    };
    let all = lists.filter_map(|list| json(&list, owner));
    all.flat_map(|list| list.as_array().into_iter().flatten().filter_map(read).collect::<Vec<_>>()).collect()
}

/// `overlay-containers`, `vfs-containers` and their like.
fn storages(storage: &Path) -> Vec<PathBuf> {
    entries(storage).into_iter().filter(|path| path.to_string_lossy().ends_with("-containers")).collect()
}

/// The annotations of a container that was made for kubernetes or by nerdctl: its name, and with its pod's before it.
fn bundle(path: &Path) -> Option<Known> {
    let config = json(path, 0)?;
    let annotations = config.get("annotations")?;
    let value = |keys: [&str; 2]| keys.into_iter().find_map(|key| annotations.get(key)?.as_str());
    let dir = path.ancestors().skip(1).find(|dir| !dir.ends_with("userdata"))?;
    let name =
        value(["io.kubernetes.cri.container-name", "io.kubernetes.container.name"]).or_else(|| annotations.get("nerdctl/name")?.as_str());
    let pod = value(["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"]);
    // What holds a pod's namespaces is no container that somebody gave a name.
    let name = name.filter(|name| *name != "POD")?;
    let with_pod = pod.map(|pod| format!("{pod}/{name}"));
    Some(Known { id: id_of(dir)?, names: [name.to_owned()].into_iter().chain(with_pod).collect() })
}

fn id_of(dir: &Path) -> Option<String> {
    dir.file_name()?.to_str().filter(|name| is_id(name)).map(str::to_owned)
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A file of root's or `owner`'s. Whoever may write there could have put a link or a FIFO in its place.
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
