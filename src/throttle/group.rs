//! The cgroup of a command, by which its CPU time is limited.
//!
//! ```text
//! the cgroup of rtrace
//! └── rtrace_PID_START     limited: one millisecond of CPU time a second
//!     ├── command          the tasks of the command, with the least weight
//!     └── brake-0, ...     threads that take that millisecond, with the greatest weight
//! ```
//!
//! In version 2, a cgroup with processes cannot pass on controllers, unless it becomes the root of a threaded subtree.
//! The kernel allows that for the CPU controller while no other controller is passed on (Documentation/admin-guide/
//! cgroup-v2.rst, "Threads"). The cgroups are then threaded, which changes nothing for their tasks.

use super::controller::{self, Version};
use crate::probe::owner::Owner;
use crate::sys::priority;
use anyhow::{Context, anyhow};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The directory of the tasks of the command.
pub const COMMAND: &str = "command";
/// The directories of the processes of the brake.
pub const BRAKES: [&str; 3] = ["brake-0", "brake-1", "brake-2"];
/// The longest period and the least quota that the kernel accepts, in microseconds (max_cfs_quota_period and
/// min_cfs_quota_period in kernel/sched/core.c).
const PERIOD_US: u64 = 1_000_000;
const QUOTA_US: u64 = 1_000;
/// More CPU time than a machine has. The kernel patches its code when the last quota of the machine is removed, which
/// takes longer than the change to another quota.
const QUOTA_LARGE_US: u64 = 10_000_000_000;
/// How long the removal is tried while processes come and go.
pub const REMOVAL_MAX: Duration = Duration::from_secs(2);
const REMOVAL_PAUSE: Duration = Duration::from_millis(2);
/// The most tasks that are searched for one with a real-time policy.
const SEARCHED_MAX: usize = 10_000;

/// The cgroups of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    dir: PathBuf,
    version: Version,
    /// Whether the cgroups are threaded, so that their processes are listed by their threads.
    is_threaded: bool,
    /// Whether this run let the cgroup above pass on the CPU controller.
    is_enabler: bool,
}

impl Group {
    /// Creates the cgroups, without a limit.
    ///
    /// # Errors
    /// The machine has no CPU controller for this process, or the caller may not create cgroups.
    pub fn create() -> anyhow::Result<Group> {
        let owner = Owner::this().context("/proc is not mounted")?;
        let (above, version) = controller::own_cgroup()?;
        let _lock = Lock::of(&above);
        let mut group = Group { dir: above.join(owner.to_string()), version, is_threaded: false, is_enabler: false };
        let created = group.fill(&above);
        if created.is_err() {
            // What was created before the error is empty.
            group.remove_directories(&above);
        }
        created.map(|()| group)
    }

    fn fill(&mut self, above: &Path) -> anyhow::Result<()> {
        if self.version == Version::Two {
            self.is_enabler = pass_on_cpu(above)?;
        }
        self.make(None)?;
        if self.version == Version::Two {
            pass_on_cpu(&self.dir)?;
        }
        let (file, least, greatest) = match self.version {
            Version::One => ("cpu.shares", "2", "262144"),
            Version::Two => ("cpu.weight", "1", "10000"),
        };
        for name in all() {
            self.make(Some(name))?;
            write(&self.dir.join(name).join(file), if name == COMMAND { least } else { greatest })?;
        }
        if self.version == Version::One {
            write(&self.dir.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
        }
        Ok(())
    }

    /// Makes a directory. One below a cgroup that passes on controllers and has processes must be threaded.
    fn make(&mut self, name: Option<&str>) -> anyhow::Result<()> {
        let dir = name.map_or_else(|| self.dir.clone(), |name| self.dir.join(name));
        fs::create_dir(&dir).with_context(|| format!("cannot create the cgroup {}", dir.display()))?;
        let kind = dir.join("cgroup.type");
        if self.version == Version::Two && fs::read_to_string(&kind).is_ok_and(|kind| kind.trim() == "domain invalid") {
            write(&kind, "threaded")?;
            self.is_threaded = true;
        }
        Ok(())
    }

    /// Moves a process into one of the cgroups.
    ///
    /// # Errors
    /// The kernel does not move it.
    pub fn place(&self, name: &str, pid: i32) -> anyhow::Result<()> {
        write(&self.dir.join(name).join("cgroup.procs"), &pid.to_string())
    }

    /// Returns the file of the quota, and the text that stands for none.
    fn no_quota(&self) -> (&'static str, &'static str) {
        match self.version {
            Version::One => ("cpu.cfs_quota_us", "-1"),
            Version::Two => ("cpu.max", "max"),
        }
    }

    /// Opens the limit.
    ///
    /// # Errors
    /// The file cannot be opened or written.
    pub fn limit(&self) -> anyhow::Result<Limit> {
        let (file, none) = self.no_quota();
        let path = self.dir.join(file);
        let file = fs::OpenOptions::new().write(true).open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let quota = |quota: u64| match self.version {
            Version::One => quota.to_string(),
            Version::Two => format!("{quota} {PERIOD_US}"),
        };
        let mut limit = Limit { file, limited: quota(QUOTA_US), free: quota(QUOTA_LARGE_US) };
        if limit.set(false).is_err() {
            // In version 1, a quota must not exceed that of the cgroup above.
            limit.free = none.to_owned();
        }
        // The kernel accepts the quotas, or this says why not.
        let tried = limit.set(true).and_then(|()| limit.set(false));
        tried.with_context(|| format!("cannot write to {}", path.display()))?;
        Ok(limit)
    }

    /// Returns a task of the command that the CPU controller does not delay.
    pub fn realtime_task(&self) -> Option<i32> {
        let name = if self.version == Version::One { "tasks" } else { "cgroup.threads" };
        let tasks = numbers(&self.dir.join(COMMAND).join(name));
        tasks.into_iter().take(SEARCHED_MAX).find(|tid| priority::is_realtime(*tid))
    }

    /// Lifts the limit, moves the processes to the cgroup above, and removes the cgroups. Those that the command has
    /// made below its own stay, without a limit, while they have tasks. This is tried for a while.
    ///
    /// # Errors
    /// Something is left.
    pub fn remove(&self, at_most: Duration) -> io::Result<()> {
        let Some(above) = self.dir.parent() else { return Ok(()) };
        // The limit is set to none even if the large quota was refused. Nothing else can be done about an error.
        let (file, none) = self.no_quota();
        let _ = fs::write(self.dir.join(file), none);
        let listed = if self.is_threaded { "cgroup.threads" } else { "cgroup.procs" };
        let start = Instant::now();
        loop {
            for pid in all().flat_map(|name| numbers(&self.dir.join(name).join(listed))) {
                // It may have ended.
                let _ = fs::write(above.join("cgroup.procs"), pid.to_string());
            }
            let _lock = Lock::of(above);
            match self.remove_directories(above) {
                true => return Ok(()),
                false if start.elapsed() > at_most => return Err(io::ErrorKind::ResourceBusy.into()),
                false => thread::sleep(REMOVAL_PAUSE),
            }
        }
    }

    /// Removes the directories if they have no tasks. Returns whether they are gone.
    fn remove_directories(&self, above: &Path) -> bool {
        remove_empty(&self.dir);
        let is_gone = !self.dir.exists();
        let is_needed = || directories(above).iter().any(|name| Owner::parse(name).is_some());
        if is_gone && self.is_enabler && !is_needed() {
            // If it fails, another program has come to need it.
            let _ = fs::write(above.join("cgroup.subtree_control"), "-cpu");
        }
        is_gone
    }

    /// Returns the group of a run that has ended, by its directory.
    pub fn left_by_owner(dir: PathBuf, version: Version) -> Group {
        let kind = fs::read_to_string(dir.join("cgroup.type")).unwrap_or_default();
        Group { dir, version, is_threaded: kind.trim() == "threaded", is_enabler: false }
    }
}

/// Returns the names of the cgroups that have processes.
fn all() -> impl Iterator<Item = &'static str> {
    std::iter::once(COMMAND).chain(BRAKES)
}

/// The file of the limit.
#[derive(Debug)]
pub struct Limit {
    file: File,
    limited: String,
    free: String,
}

impl Limit {
    /// Sets or lifts the limit.
    ///
    /// # Errors
    /// The kernel refuses the change.
    pub fn set(&self, is_limited: bool) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let text = if is_limited { &self.limited } else { &self.free };
        self.file.write_all_at(text.as_bytes(), 0)
    }
}

/// The lock by which runs agree on whether the cgroup above them passes on the CPU controller.
struct Lock(#[expect(dead_code, reason = "the lock lasts until the file is closed")] Option<File>);

impl Lock {
    fn of(above: &Path) -> Lock {
        let file = File::open(above).ok().filter(|file| flock(file, FlockOperation::LockExclusive).is_ok());
        Lock(file)
    }
}

/// Lets a cgroup pass on the CPU controller. Returns whether it did not do so before.
fn pass_on_cpu(dir: &Path) -> anyhow::Result<bool> {
    let path = dir.join("cgroup.subtree_control");
    if controller::has_cpu(&fs::read_to_string(&path).unwrap_or_default()) {
        return Ok(false);
    }
    match fs::write(&path, "+cpu") {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(anyhow!(
            "the cgroup {} has processes as well as other cgroups below it, so the kernel does not let it limit one of them; start rtrace in a \
             cgroup of its own, for example: systemd-run --scope -p Delegate=cpu rtrace ...",
            dir.display()
        )),
        Err(error) => Err(error).with_context(|| format!("cannot write to {}", path.display())),
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write to {}", path.display()))
}

/// Removes a cgroup and those below it, as far as they have no tasks.
fn remove_empty(dir: &Path) {
    directories(dir).iter().for_each(|name| remove_empty(&dir.join(name)));
    // A cgroup with tasks stays.
    let _ = fs::remove_dir(dir);
}

/// Returns the names of the cgroups directly below one.
pub fn directories(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the numbers that a file has, one per line. Tasks of other pid namespaces have 0, and cannot be moved.
fn numbers(path: &Path) -> Vec<i32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|number| *number > 0).collect()
}
