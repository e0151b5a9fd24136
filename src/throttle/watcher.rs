//! The process that watches the rings: it delays the command while one of them is nearly full, until rtrace closes the
//! socket or ends.

use super::group::{BRAKES, Group, Limit, REMOVAL_MAX};
use super::policy::{Level, State};
use super::process::NAME;
use super::protocol::{REQUEST_MAX, Report, Request, RingKind};
use crate::sys::brake::Brake;
use crate::sys::priority::RealtimePriority;
use crate::sys::ring_level::RingLevel;
use crate::sys::{helper, rights};
use anyhow::{Context, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long the brake is pulled when the limit is set: as long as it takes to use up the millisecond that the cgroup
/// has at that moment, on any number of CPUs.
const FIRST_PULL: Duration = Duration::from_millis(5);
/// The part of a ring that held tasks may fill within the time: by the calls in which they are, and in the milliseconds
/// for which the scheduler takes them before the brake now and then.
const HELD_PART_MAX: u64 = 8;
const HELD_TIME: Duration = Duration::from_secs(1);

/// Runs the process that watches the rings, if this process was started as such, and returns its exit code.
pub fn serve_if_started_as_watcher() -> Option<ExitCode> {
    helper::serve_if_started_as(NAME, |socket| serve(socket).is_some())
}

/// Serves until the socket is closed. Returns `None` if that was before the rings were watched.
fn serve(socket: BorrowedFd) -> Option<()> {
    let (rings, group, cpus, fill_rate) = requested(socket).map_err(|error| report(socket, &Report::Failed(format!("{error:#}")))).ok()?;
    match Watch::start(rings, &group, &cpus, fill_rate) {
        Ok(mut watch) => {
            let priority = RealtimePriority::acquire_above_lowest();
            rights::drop_after_arming(false);
            report(socket, &Report::Ready(priority.as_ref().err().map(ToString::to_string)));
            watch.until_closed(socket);
            // The limit is lifted before the brake ends, which needs CPU time to end.
            let _ = watch.limit.set(false);
        }
        Err(error) => report(socket, &Report::Failed(format!("{error:#}"))),
    }
    // If something is left, a later run removes it.
    group.remove(REMOVAL_MAX).ok()
}

/// Receives the rings, the cgroup, the CPUs, and the rate at which rings are filled.
fn requested(socket: BorrowedFd) -> anyhow::Result<(Vec<RingLevel>, Group, Vec<u32>, u64)> {
    let mut rings = Vec::new();
    loop {
        let (request, fds) = receive(socket)?.ok_or_else(|| anyhow!("rtrace has ended"))?;
        match request {
            Request::Rings(kinds) => {
                for (RingKind { is_map, bytes }, fd) in kinds.into_iter().zip(fds) {
                    let level = if is_map { RingLevel::of_map(fd.as_fd(), bytes) } else { RingLevel::of_event(fd.as_fd(), bytes) };
                    rings.push(level.context("cannot map a ring a second time")?);
                }
            }
            Request::Begin { group, cpus, fill_rate } => return Ok((rings, group, cpus, fill_rate)),
        }
    }
}

/// Receives a message with its descriptors; `None` if the socket was closed.
fn receive(socket: BorrowedFd) -> anyhow::Result<Option<(Request, Vec<OwnedFd>)>> {
    let mut message = vec![0; REQUEST_MAX];
    let (length, fds) = helper::receive(socket, &mut message)?;
    if length == 0 { Ok(None) } else { Ok(Some((serde_json::from_slice(&message[..length])?, fds))) }
}

/// Sends a report. If rtrace has ended, nobody needs it.
fn report(socket: BorrowedFd, report: &Report) {
    let message = serde_json::to_vec(report).unwrap_or_default();
    let _ = send(socket, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// The rings, and what delays the command.
struct Watch {
    rings: Vec<RingLevel>,
    levels: Vec<Level>,
    /// The fastest rate at which a ring is filled, in bytes per nanosecond.
    fill_rate: u64,
    limit: Limit,
    brake: Brake,
    state: State,
    /// When the state changed.
    since: Instant,
    /// The bytes that each ring had got at some moment while the tasks were held.
    held_at: Option<(Instant, Vec<u64>)>,
    /// Whether tasks that were not delayed were reported.
    is_reported: bool,
}

impl Watch {
    fn start(rings: Vec<RingLevel>, group: &Group, cpus: &[u32], fill_rate: u64) -> anyhow::Result<Watch> {
        let brake = Brake::start(BRAKES.len(), cpus).context("cannot start a process")?;
        brake.pids().iter().zip(BRAKES).try_for_each(|(pid, name)| group.place(name, *pid))?;
        let limit = group.limit()?;
        let (levels, state, since) = (Vec::with_capacity(rings.len()), State::Free, Instant::now());
        Ok(Watch { rings, levels, fill_rate, limit, brake, state, since, held_at: None, is_reported: false })
    }

    fn until_closed(&mut self, socket: BorrowedFd) {
        loop {
            self.levels.clear();
            self.levels.extend(self.rings.iter().map(|ring| Level { filled: ring.filled(), bytes: ring.bytes() }));
            let next = self.state.next(&self.levels);
            if next != self.state {
                self.enter(next);
            }
            self.settle(socket);
            let pause = Timespec { tv_sec: 0, tv_nsec: self.state.pause(&self.levels, self.fill_rate).as_nanos() as i64 };
            let mut polled = [PollFd::new(&socket, PollFlags::IN)];
            match poll(&mut polled, Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => {}
                // rtrace sends nothing more: the socket was closed.
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn enter(&mut self, next: State) {
        // A write fails only if the cgroup was removed by somebody else, which the verdict shows if it matters.
        match next {
            State::Free => {
                self.brake.release();
                let _ = self.limit.set(false);
            }
            State::Limited | State::Held => {
                if self.state == State::Free {
                    let _ = self.limit.set(true);
                }
                self.brake.pull();
            }
        }
        (self.state, self.since, self.held_at) = (next, Instant::now(), None);
    }

    /// Does what is due while a state lasts.
    fn settle(&mut self, socket: BorrowedFd) {
        match self.state {
            State::Limited if self.since.elapsed() >= FIRST_PULL => self.brake.release(),
            State::Free | State::Limited => {}
            State::Held => {
                if !self.is_reported && self.runs_on() {
                    self.is_reported = true;
                    report(socket, &Report::NotDelayed);
                }
            }
        }
    }

    /// Returns whether tasks have written much since they are held, or since a second.
    fn runs_on(&mut self) -> bool {
        let Watch { rings, held_at, .. } = self;
        let now = || rings.iter().map(RingLevel::written);
        let (at, before) = held_at.get_or_insert_with(|| (Instant::now(), now().collect()));
        let is_much = |((ring, before), now): ((&RingLevel, &u64), u64)| now.saturating_sub(*before) > ring.bytes() / HELD_PART_MAX;
        let runs_on = rings.iter().zip(before.iter()).zip(now()).any(is_much);
        if at.elapsed() > HELD_TIME {
            *held_at = None;
        }
        runs_on
    }
}
