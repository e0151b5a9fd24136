//! The delay of a command as rtrace sees it: the cgroup, and the process that watches the rings.

use super::group::{COMMAND, Group, REMOVAL_MAX};
use super::protocol::{REPORT_MAX, Report, Request, RingKind};
use crate::interrupt;
use crate::sys::helper::{self, DESCRIPTORS_MAX, Helper};
use crate::sys::priority;
use anyhow::{Context, anyhow};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// `argv[0]` of the process that watches the rings, by which the program recognizes that it is to be that process.
pub const NAME: &CStr = c"rtrace-throttle";

/// The greatest time for the start of the process.
const START_MAX: Duration = Duration::from_secs(10);
/// The greatest time for its end, in which it removes the cgroup.
const END_MAX: Duration = Duration::from_secs(4);

/// The advice for a request that the CPU controller cannot carry out.
const WITHOUT: &str = "--lossless delays the command by the CPU controller of a cgroup, which is not possible here";

/// The delay of a command. When it is dropped, the command is no longer delayed, and the cgroup is removed.
#[derive(Debug)]
pub struct Throttle {
    group: Group,
    watcher: Option<Watcher>,
}

#[derive(Debug)]
struct Watcher(Helper);

/// The process that watches the rings has ended.
struct Ended;

impl Throttle {
    /// Makes a cgroup for a command that was not started yet, and moves its process there.
    ///
    /// # Errors
    /// The command would have a real-time policy, or there is no CPU controller that this process can use.
    pub fn create(command: i32) -> anyhow::Result<Throttle> {
        if priority::is_realtime(0) {
            return Err(anyhow!(
                "--lossless: the command would inherit rtrace's real-time policy, and the CPU controller does not delay such tasks; start \
                 rtrace without it (chrt -o 0 rtrace ...)"
            ));
        }
        let throttle = Throttle { group: Group::create().context(WITHOUT)?, watcher: None };
        throttle.group.place(COMMAND, command).context(WITHOUT)?;
        Ok(throttle)
    }

    /// Starts the process that watches the rings, on all of these CPUs. Returns why it has no real-time priority, if it
    /// has none.
    ///
    /// # Errors
    /// The process cannot be started, or cannot map the rings.
    pub fn watch(&mut self, rings: &[(BorrowedFd, RingKind)], cpus: &[u32], fill_rate: u64) -> anyhow::Result<Option<String>> {
        let helper = Helper::start(NAME).context("cannot start the process that watches the rings")?;
        let watcher = self.watcher.insert(Watcher(helper));
        for some in rings.chunks(DESCRIPTORS_MAX) {
            let (fds, kinds): (Vec<BorrowedFd>, Vec<RingKind>) = some.iter().copied().unzip();
            watcher.send(&Request::Rings(kinds), &fds)?;
        }
        watcher.send(&Request::Begin { group: self.group.clone(), cpus: cpus.to_vec(), fill_rate }, &[])?;
        interrupt::is_ready(&watcher.0.socket, PollFlags::IN, START_MAX);
        match watcher.receive() {
            Ok(Some(Report::Ready(why))) => Ok(why),
            Ok(Some(Report::Failed(why))) => Err(anyhow!("{WITHOUT}: {why}")),
            _ => Err(anyhow!("{WITHOUT}: the process that watches the rings has ended")),
        }
    }

    /// Returns a sentence if calls may be lost, because the command is not delayed.
    pub fn problem(&mut self) -> Option<String> {
        match self.watcher.as_ref()?.receive() {
            Ok(Some(Report::NotDelayed)) => Some(match self.group.realtime_task() {
                Some(tid) => format!(
                    "task {tid} of the command has a real-time policy, so the CPU controller does not delay it: a ring may fill up, and \
                     calls be lost in spite of --lossless"
                ),
                None => "tasks of the command ran on although they were to wait: they have left its cgroup, or many have ended at once; a \
                         ring may fill up, and calls be lost in spite of --lossless"
                    .to_owned(),
            }),
            Ok(_) => None,
            Err(Ended) => {
                self.end();
                // A later run removes what cannot be removed now.
                let _ = self.group.remove(REMOVAL_MAX);
                Some("the process that delays the command has ended: from now on calls may be lost in spite of --lossless".to_owned())
            }
        }
    }

    /// Ends the delay and removes the cgroup.
    fn end(&mut self) {
        let Some(Watcher(Helper { mut process, socket })) = self.watcher.take() else { return };
        drop(socket);
        helper::await_end(&mut process, Instant::now() + END_MAX);
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        self.end();
        // The process has done so already, unless it was killed. What cannot be removed is removed by a later run.
        let _ = self.group.remove(REMOVAL_MAX);
    }
}

impl Watcher {
    fn send(&self, request: &Request, fds: &[BorrowedFd]) -> anyhow::Result<()> {
        let message = serde_json::to_vec(request)?;
        helper::send(&self.0.socket, &message, fds).context("the process that watches the rings has ended")
    }

    /// Returns the next report, if there is one.
    fn receive(&self) -> Result<Option<Report>, Ended> {
        let mut message = [0; REPORT_MAX];
        loop {
            match recv(&self.0.socket, &mut message[..], RecvFlags::DONTWAIT) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Ok((_, length)) if length > 0 => return serde_json::from_slice(&message[..length]).map(Some).map_err(|_| Ended),
                _ => return Err(Ended),
            }
        }
    }
}
