//! A side band for all tasks, one event per CPU, in place of one per CPU and thread: for processes with many threads,
//! and for those whose threads are created and end faster than events are opened on them.
//!
//! It is used only with the BPF programs, which select the traced calls themselves. Each other task of the machine pays
//! for a record, some 0.3 us, when it begins, executes a program or ends, so it is not used for targets with few
//! threads. The engine drops the records of other tasks (`engine/follow/process_filter.rs`). No perf event reports that
//! all targets have ended: the pidfds of the processes do, and then the BPF programs report whether tasks that these
//! created still run.
//!
//! Where rtrace is lent its privileges, its caller must not get records of all tasks: only the ends of the targets are
//! found out in this way there.

use super::{Armed, Arming};
use crate::session::Role;
use crate::sys::file_capabilities;
use crate::sys::perf::On;
use anyhow::anyhow;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// The traced processes, whose ends no perf event reports.
#[derive(Debug)]
pub(super) struct WatchedProcesses {
    processes: Vec<i32>,
    /// The pidfds of the processes.
    pidfds: Vec<OwnedFd>,
}

impl WatchedProcesses {
    /// Opens the pidfds of these processes.
    ///
    /// # Errors
    /// All of them have ended.
    pub(super) fn of(pids: &[i32]) -> anyhow::Result<WatchedProcesses> {
        let pidfd = |pid: &i32| pidfd_open(Pid::from_raw(*pid)?, PidfdFlags::empty()).ok();
        let pidfds: Vec<OwnedFd> = pids.iter().filter_map(pidfd).collect();
        if pidfds.is_empty() {
            return Err(anyhow!(
                "all of the traced processes ({}) have ended",
                pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(WatchedProcesses { processes: pids.to_vec(), pidfds })
    }

    fn have_ended(&self) -> bool {
        let mut polls: Vec<PollFd> = self.pidfds.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
        poll(&mut polls, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok() && polls.iter().all(|poll| !poll.revents().is_empty())
    }
}

impl Arming<'_> {
    /// Returns whether the side band is the only event on tasks, and the programs follow the tasks that the targets
    /// create, and the caller may see the records of all tasks.
    pub(super) fn can_be_system_wide(&self) -> bool {
        let follows = |role| !matches!(role, Role::BpfCall | Role::Output | Role::CgroupMove | Role::SignalGenerate);
        let mut on_tasks = self.plan.events.iter().filter(|planned| !planned.spec.is_by_instance() && follows(planned.spec.role));
        !file_capabilities::are_present()
            && self.armed.programs.is_some()
            && on_tasks.all(|planned| planned.spec.role == Role::SideBand && planned.inherit)
    }

    /// Closes the open events, and opens all events for all tasks.
    pub(super) fn open_system_wide(&mut self, pids: &[i32]) -> anyhow::Result<()> {
        self.armed.rings.clear();
        self.armed.events.clear();
        self.armed.table.ids.clear();
        self.armed.watched = Some(WatchedProcesses::of(pids)?);
        Ok(self.target(On::Everyone)?)
    }
}

impl Armed {
    /// Returns the processes whose side-band records are used, if the records of all tasks arrive.
    pub fn processes(&self) -> Option<&[i32]> {
        self.watched.as_ref().map(|watched| watched.processes.as_slice())
    }

    /// Returns whether the targets and the tasks that they created have ended; `None` if the side bands report that by
    /// their ends.
    pub fn targets_gone(&self) -> Option<bool> {
        let watched = self.watched.as_ref()?;
        Some(watched.have_ended() && self.programs.as_ref().is_none_or(|programs| !programs.has_living_tasks()))
    }
}
