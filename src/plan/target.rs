//! Finds the tasks of the target that the user named.

use crate::kernel::elf::{self, Program};
use crate::kernel::{cgroups, containers, machine, procfs};
use crate::request::{Target, TaskSelection};
use crate::session::Targets;
use crate::sys::users;
use anyhow::anyhow;
use std::path::{Path, PathBuf};

/// Returns the tasks and whether one of them executes a 32-bit program. `at_the_call` says that the BPF programs can
/// check the user of a task at each call.
///
/// # Errors
/// A process, thread, user, cgroup or container that does not exist.
pub fn find(target: &Target, at_the_call: bool) -> anyhow::Result<(Targets, bool)> {
    let who = match target {
        Target::Command(_) => return Ok((Targets::Command, false)),
        Target::Running { tasks, .. } => tasks,
    };
    Ok(match who {
        TaskSelection::All => (Targets::SystemWide, any_compat(&procfs::processes())),
        TaskSelection::Cgroup(path) => (Targets::Cgroup(cgroup(path)?), any_compat(&procfs::processes())),
        TaskSelection::Container(name) => (Targets::Cgroup(containers::find(name, at_the_call)?), any_compat(&procfs::processes())),
        TaskSelection::Pids(pids) => {
            for &pid in pids {
                if procfs::threads(pid).is_empty() {
                    return Err(anyhow!("there is no process {pid}"));
                }
            }
            (processes(pids), any_compat(pids))
        }
        TaskSelection::Tids(tids) => {
            if let Some(tid) = tids.iter().find(|tid| !Path::new(&format!("/proc/{tid}")).exists()) {
                return Err(anyhow!("there is no thread {tid}"));
            }
            (Targets::Tasks { tids: tids.clone(), processes: Vec::new() }, any_compat(tids))
        }
        TaskSelection::User(name) => {
            let user = users::user(name)?;
            if at_the_call {
                return Ok((Targets::User(user.uid), any_compat(&procfs::processes())));
            }
            let pids = procfs::processes_of(user.uid);
            if pids.is_empty() {
                return Err(anyhow!("no process of {name} is running"));
            }
            (processes(&pids), any_compat(&pids))
        }
    })
}

/// Returns the number of existing tasks that are to be traced.
pub fn tasks(targets: &Targets) -> usize {
    match targets {
        Targets::Command => 1,
        Targets::Tasks { tids, .. } => tids.len(),
        Targets::SystemWide | Targets::Cgroup(_) | Targets::User(_) => machine::tasks().unwrap_or_default(),
    }
}

fn processes(pids: &[i32]) -> Targets {
    Targets::Tasks { tids: pids.iter().flat_map(|&pid| procfs::threads(pid)).collect(), processes: pids.to_vec() }
}

fn any_compat(pids: &[i32]) -> bool {
    pids.iter().any(|&pid| elf::program_of(pid).is_ok_and(Program::is_compat))
}

/// Returns a cgroup's directory: the path itself, or the path below a mount of the hierarchy that perf events follow.
fn cgroup(name: &str) -> anyhow::Result<PathBuf> {
    let below: Vec<PathBuf> = cgroups::roots()?.iter().map(|root| root.mount_point.join(name.trim_start_matches('/'))).collect();
    let is_group = |path: &PathBuf| path.join("cgroup.procs").exists();
    std::iter::once(PathBuf::from(name)).chain(below.clone()).find(is_group).ok_or_else(|| {
        if below.is_empty() {
            return anyhow!("there is no cgroup {name}: neither the unified hierarchy (cgroup2) nor one with perf_event is mounted here");
        }
        let tried = below.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
        anyhow!("there is no cgroup {name} (tried {tried})")
    })
}
