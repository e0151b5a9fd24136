//! From a target as typed to the tasks that are there.

use crate::kernel::elf::{self, Program};
use crate::kernel::{cgroups, containers, procfs};
use crate::request::{Target, Who};
use crate::session::Whom;
use crate::sys::users;
use anyhow::anyhow;
use std::path::{Path, PathBuf};

/// The tasks, and whether a 32-bit program is among them. `at_the_call`: whose a task is can be asked then.
///
/// # Errors
/// A process, thread, user, cgroup or container that is not there.
pub fn find(target: &Target, at_the_call: bool) -> anyhow::Result<(Whom, bool)> {
    let who = match target {
        Target::Command(_) => return Ok((Whom::Command, false)),
        Target::There { who, .. } => who,
    };
    Ok(match who {
        Who::All => (Whom::Everyone, any_compat(&procfs::processes())),
        Who::Cgroup(path) => (Whom::Cgroup(cgroup(path)?), any_compat(&procfs::processes())),
        Who::Container(name) => (Whom::Cgroup(containers::find(name, at_the_call)?), any_compat(&procfs::processes())),
        Who::Pids(pids) => {
            for &pid in pids {
                if procfs::threads(pid).is_empty() {
                    return Err(anyhow!("there is no process {pid}"));
                }
            }
            (processes(pids), any_compat(pids))
        }
        Who::Tids(tids) => {
            if let Some(tid) = tids.iter().find(|tid| !Path::new(&format!("/proc/{tid}")).exists()) {
                return Err(anyhow!("there is no thread {tid}"));
            }
            (Whom::Tasks { tids: tids.clone(), processes: Vec::new() }, any_compat(tids))
        }
        Who::User(name) => {
            let user = users::user(name)?;
            if at_the_call {
                return Ok((Whom::User(user.uid), any_compat(&procfs::processes())));
            }
            let pids = procfs::processes_of(user.uid);
            if pids.is_empty() {
                return Err(anyhow!("no process of {name} is running"));
            }
            (processes(&pids), any_compat(&pids))
        }
    })
}

fn processes(pids: &[i32]) -> Whom {
    Whom::Tasks { tids: pids.iter().flat_map(|&pid| procfs::threads(pid)).collect(), processes: pids.to_vec() }
}

fn any_compat(pids: &[i32]) -> bool {
    pids.iter().any(|&pid| elf::program_of(pid).is_ok_and(Program::is_compat))
}

/// A cgroup's directory: a path as it is, or one below a mount of the hierarchy that perf events follow.
fn cgroup(name: &str) -> anyhow::Result<PathBuf> {
    let below: Vec<PathBuf> = cgroups::roots()?.iter().map(|root| root.place.join(name.trim_start_matches('/'))).collect();
    let is_group = |path: &PathBuf| path.join("cgroup.procs").exists();
    std::iter::once(PathBuf::from(name)).chain(below.clone()).find(is_group).ok_or_else(|| {
        if below.is_empty() {
            return anyhow!("there is no cgroup {name}: neither the unified hierarchy (cgroup2) nor one with perf_event is mounted here");
        }
        let tried = below.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
        anyhow!("there is no cgroup {name} (looked at {tried})")
    })
}
