//! One side band a CPU for everybody, in place of one a CPU and thread: for processes with many threads, and for those whose threads come and go faster than events are opened on them.
//!
//! Only where the BPF programs trace, as they know by themselves whose calls these are. It costs everybody else a record, some 0.3 us, where a task begins, executes or ends, so it is not for targets with few threads. The engine
//! drops what is of others (`engine/follow/ours.rs`). No descriptor tells that all targets are gone: their processes' do, and then the programs say whether something that these made still runs.

use super::{Armed, Arming};
use crate::session::Role;
use crate::sys::perf::On;
use anyhow::anyhow;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// Whom it is for.
#[derive(Debug)]
pub(super) struct Wide {
    processes: Vec<i32>,
    /// Of each process, as long as it is not known to be gone.
    pidfds: Vec<OwnedFd>,
}

impl Wide {
    fn are_gone(&self) -> bool {
        let mut polls: Vec<PollFd> = self.pidfds.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
        poll(&mut polls, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok() && polls.iter().all(|poll| !poll.revents().is_empty())
    }
}

impl Arming<'_> {
    /// Nothing is opened on a task but the side band, and the programs follow what the targets make.
    pub(super) fn may_be_wide(&self) -> bool {
        let follows = |role| !matches!(role, Role::BpfCall | Role::Output | Role::CgroupMove | Role::SignalGenerate);
        let mut on_tasks = self.plan.events.iter().filter(|planned| !planned.spec.is_by_instance() && follows(planned.spec.role));
        self.armed.programs.is_some() && on_tasks.all(|planned| planned.spec.role == Role::SideBand && planned.inherit)
    }

    /// Takes back what is open, and opens all for everybody.
    pub(super) fn widen(&mut self, pids: &[i32]) -> anyhow::Result<()> {
        self.armed.rings.clear();
        self.armed.events.clear();
        self.armed.table.ids.clear();
        let pidfd = |pid: &i32| pidfd_open(Pid::from_raw(*pid)?, PidfdFlags::empty()).ok();
        let pidfds: Vec<OwnedFd> = pids.iter().filter_map(pidfd).collect();
        if pidfds.is_empty() {
            return Err(anyhow!(
                "none of the processes {} is there any more",
                pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
            ));
        }
        self.armed.wide = Some(Wide { processes: pids.to_vec(), pidfds });
        Ok(self.target(On::Everyone)?)
    }
}

impl Armed {
    /// The processes whose side-band records are wanted, where everybody's come.
    pub fn processes(&self) -> Option<&[i32]> {
        self.wide.as_ref().map(|wide| wide.processes.as_slice())
    }

    /// Whether the targets and what they made are gone; `None` where the side bands tell that by their ends.
    pub fn targets_gone(&self) -> Option<bool> {
        let wide = self.wide.as_ref()?;
        Some(wide.are_gone() && self.programs.as_ref().is_none_or(|programs| !programs.follow_anyone()))
    }
}
