//! Opens perf events on targets and CPUs, and maps the rings.

use super::system_wide::WatchedProcesses;
use super::{Armed, ArmedEvent, CpuRing, OverwritingCpuRing};
use crate::event::EventIndex;
use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::refused;
use crate::plan::{Plan, PlannedEvent, RingSize, own_only, without};
use crate::session::{Role, Targets};
use crate::sys::file_capabilities;
use crate::sys::perf::{Attr, Counts, Delivery, On, PerfEvent, StackFields};
use crate::sys::ring::{MapError, OverwritingRing, Ring};
use crate::text::os_error::without_error_numbers;
use anyhow::anyhow;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The smallest ring that rtrace chooses, in bytes.
const RING_MIN: u64 = 64 << 10;

/// If the threads that already run need more descriptors than this (one per thread and CPU), the side band is opened
/// for all tasks instead.
const DESCRIPTORS_MANY: usize = 256;

/// The state of [`super::arm`] while it opens events.
pub(super) struct Arming<'a> {
    pub(super) plan: &'a Plan,
    /// The threads whose records are excluded from a system-wide trace, such as rtrace's own.
    pub(super) left_out: Vec<i32>,
    pub(super) armed: Armed,
    pub(super) ring_bytes: u64,
}

/// The error of an event that could not be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("cannot open {what}: {} ({})", without_error_numbers(&.error.to_string()), advice(.error))]
    Open { what: String, error: io::Error },
    #[error(transparent)]
    Map(#[from] MapError),
    /// The caller, who is lent rtrace's privileges, may not trace the task. The text says why.
    #[error("{0}")]
    NotOwn(anyhow::Error),
}

impl Failure {
    /// Returns whether the task has ended.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Failure::Open { error, .. } if error.raw_os_error() == Some(libc::ESRCH))
    }

    /// Returns whether the caller may not trace the task.
    pub(super) fn is_not_own(&self) -> bool {
        matches!(self, Failure::NotOwn(_))
    }

    /// Returns the failure for an event that the kernel has refused to open.
    fn to_open(what: String, on: On, error: io::Error) -> Failure {
        let is_refused = matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM));
        match on {
            // Above this level, the kernel refuses everything.
            On::Task(tid) if is_refused && file_capabilities::are_present() && !Privileges::read().is_above_perfmon() => {
                Failure::NotOwn(own_only::not_own(tid))
            }
            _ => Failure::Open { what, error },
        }
    }
}

impl Arming<'_> {
    /// Opens the events on those of these threads that still exist.
    pub(super) fn threads(&mut self, tids: &[i32]) -> anyhow::Result<()> {
        for &tid in tids {
            match self.target(On::Task(tid)) {
                Err(failure) if failure.is_gone() => {}
                other => other?,
            }
        }
        self.require_targets(tids)
    }

    /// Opens the events on processes, which had this number of threads.
    pub(super) fn attach_to_processes(&mut self, threads: usize, pids: &[i32]) -> anyhow::Result<()> {
        let can_be_system_wide = self.can_be_system_wide();
        if can_be_system_wide && threads * self.plan.cpus.len() > DESCRIPTORS_MANY {
            return self.open_system_wide(pids);
        }
        let is_settled = self.processes(pids)?;
        if !is_settled && can_be_system_wide {
            return self.open_system_wide(pids);
        }
        if !is_settled && file_capabilities::are_present() {
            // The BPF programs trace all threads. Only the side band may lack some, and so may not report their end.
            self.armed.watched = Some(WatchedProcesses::of(pids)?);
            return self.require_targets(pids);
        }
        self.armed.may_lack_threads = !is_settled;
        self.require_targets(pids)
    }

    fn require_targets(&self, targets: &[i32]) -> anyhow::Result<()> {
        if self.armed.rings.is_empty() {
            return Err(anyhow!(
                "all of the traced tasks ({}) have ended",
                targets.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(())
    }

    /// Opens all events on all CPUs.
    pub(super) fn target(&mut self, on: On) -> Result<(), Failure> {
        self.target_by_role(on, |_| true)
    }

    /// Opens the events of these roles on all CPUs.
    pub(super) fn target_by_role(&mut self, on: On, roles: impl Fn(Role) -> bool) -> Result<(), Failure> {
        let is_opened = |planned: &PlannedEvent| !planned.spec.is_by_instance() && roles(planned.spec.role);
        for &cpu in &self.plan.cpus {
            for (i, planned) in self.plan.events.iter().enumerate().filter(|(_, planned)| is_opened(planned)) {
                self.open(EventIndex(i as u16), planned, on, cpu)?;
            }
            if roles(Role::Exit) {
                self.open_matches(on, cpu)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, index: EventIndex, planned: &PlannedEvent, on: On, cpu: u32) -> Result<(), Failure> {
        // The BPF programs select the traced tasks themselves, and only write to their event: one per CPU is enough.
        // Tasks may be moved between cgroups, and be sent signals, by any task.
        let is_for_all_tasks = matches!(planned.spec.role, Role::BpfCall | Role::Output | Role::CgroupMove | Role::SignalGenerate);
        if is_for_all_tasks && self.armed.events.iter().any(|e| e.index == index && e.cpu == cpu) {
            return Ok(());
        }
        let on = if is_for_all_tasks { On::Everyone } else { on };
        let watermark = (self.ring_bytes / 4).min(1 << 30) as u32;
        let delivery = self.plan.delivery(planned.spec.role);
        let attr = Attr { counts: planned.counts.clone(), inherit: planned.inherit, watermark, stack: planned.stack, delivery };
        let what = || format!("{} on CPU {cpu}", planned.spec.name);
        let failure = |error| Failure::Open { what: what(), error };
        let event = PerfEvent::open(&attr, on, cpu).map_err(|error| Failure::to_open(what(), on, error))?;
        let at = self.armed.events.len();
        if delivery == Delivery::Overwriting {
            self.write_to_overwriting(&event, cpu, at, &failure)?;
        }
        match self.armed.rings.iter_mut().find(|r| r.cpu == cpu) {
            _ if delivery == Delivery::Overwriting => {}
            Some(ring) => {
                if planned.spec.role == Role::SideBand {
                    ring.side_bands.push(at);
                }
                let owner = ring.owner;
                event.set_output(self.armed.events[owner].event.as_fd()).map_err(failure)?;
            }
            None => {
                let ring = self.map(event.as_fd())?;
                self.armed.rings.push(CpuRing { cpu, ring, owner: at, side_bands: vec![at], has_matches: false, early: Vec::new() });
            }
        }
        let is_tracepoint = matches!(planned.counts, Counts::Tracepoint(_) | Counts::Weighted(_) | Counts::Probe(_));
        if let Some(filter) = is_tracepoint.then(|| self.filter_of(planned)).flatten() {
            let text = CString::new(filter.as_str()).map_err(|e| failure(e.into()))?;
            event
                .set_filter(&text)
                .map_err(|error| Failure::Open { what: format!("the kernel's filter \"{filter}\" for {}", planned.spec.name), error })?;
        }
        self.armed.table.ids.insert(event.id(), index);
        let first = self.armed.table.find(planned.spec.role).unwrap_or(index);
        let written = match (planned.spec.role, &self.armed.programs) {
            (Role::BpfCall, Some(programs)) => programs.write_to(u32::from(index.0 - first.0), cpu, event.as_fd()),
            (Role::Output, _) => self.armed.objects.write_to(usize::from(index.0 - first.0), cpu, event.as_fd()),
            _ => Ok(()),
        };
        written.map_err(|error| failure(io::Error::other(error)))?;
        // The side band shows which further tasks to open events on.
        if planned.spec.role == Role::SideBand && matches!((on, &self.plan.targets), (On::Task(_), Targets::Tasks { .. })) {
            event.enable().map_err(failure)?;
        }
        self.armed.events.push(ArmedEvent { index, role: planned.spec.role, cpu, event });
        Ok(())
    }

    /// Directs an event to the ring of its CPU that the kernel overwrites. The first such event of a CPU maps the ring.
    fn write_to_overwriting(
        &mut self,
        event: &PerfEvent,
        cpu: u32,
        at: usize,
        failure: &dyn Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        if let Some(ring) = self.armed.overwriting.iter().find(|ring| ring.cpu == cpu) {
            let owner = &self.armed.events[ring.owner].event;
            return event.set_output(owner.as_fd()).map_err(failure);
        }
        let ring = self.map_overwriting(event.as_fd())?;
        self.armed.overwriting.push(OverwritingCpuRing { cpu, ring, owner: at });
        Ok(())
    }

    /// Opens the event that reports calls which ask for a snapshot, if there is one. Each record wakes rtrace.
    fn open_matches(&mut self, on: On, cpu: u32) -> Result<(), Failure> {
        let Some(planned) = self.plan.snapshots.as_ref().and_then(|snapshots| snapshots.matches.as_ref()) else { return Ok(()) };
        let is_of_programs = planned.format.is_none();
        let ring = self.armed.rings.iter().find(|ring| ring.cpu == cpu);
        // The BPF programs select the calls themselves: one event per CPU is enough.
        let Some(ring) = ring.filter(|ring| !is_of_programs || !ring.has_matches) else { return Ok(()) };
        let owner = self.armed.events[ring.owner].event.as_fd();
        let failure = |error| Failure::Open { what: format!("the event for --snapshot-on on CPU {cpu}"), error };
        let on = if is_of_programs { On::Everyone } else { on };
        let stack = StackFields::default();
        let attr = Attr { counts: planned.counts.clone(), inherit: planned.inherit, watermark: 1, stack, delivery: Delivery::Waking };
        let event = PerfEvent::open(&attr, on, cpu).map_err(failure)?;
        event.set_output(owner).map_err(failure)?;
        if let Some(filter) = without(planned.filter.clone(), &self.left_out) {
            let text = CString::new(filter.as_str()).map_err(|error| failure(error.into()))?;
            event
                .set_filter(&text)
                .map_err(|error| Failure::Open { what: format!("the kernel's filter \"{filter}\" for --snapshot-on"), error })?;
        }
        if let Some(programs) = self.armed.programs.as_ref().filter(|_| is_of_programs) {
            programs.write_matches_to(cpu, event.as_fd()).map_err(|error| failure(io::Error::other(error)))?;
        }
        self.armed.matches.push(event);
        self.armed.rings.iter_mut().filter(|ring| ring.cpu == cpu).for_each(|ring| ring.has_matches = true);
        Ok(())
    }

    /// Returns the kernel's filter of an event: it excludes rtrace's own threads, except for the signals that they
    /// send.
    fn filter_of(&self, planned: &PlannedEvent) -> Option<String> {
        let left_out: &[i32] = if planned.spec.role == Role::SignalGenerate { &[] } else { &self.left_out };
        without(planned.filter.clone(), left_out)
    }

    /// Maps a ring.
    fn map(&mut self, event: BorrowedFd) -> Result<Ring, MapError> {
        map_smaller(&mut self.ring_bytes, &self.plan.buffers.ring, |bytes| Ring::map(event, bytes))
    }

    /// Maps a ring that the kernel overwrites.
    fn map_overwriting(&mut self, event: BorrowedFd) -> Result<OverwritingRing, MapError> {
        let mut bytes = self.plan.buffers.ring.bytes();
        map_smaller(&mut bytes, &self.plan.buffers.ring, |bytes| OverwritingRing::map(event, bytes))
    }
}

/// Maps a ring. A size that rtrace chose itself is halved until it is within the limit of locked memory.
fn map_smaller<R>(bytes: &mut u64, size: &RingSize, map: impl Fn(usize) -> Result<R, MapError>) -> Result<R, MapError> {
    loop {
        match map(*bytes as usize) {
            Err(MapError::Locked(_)) if matches!(size, RingSize::Chosen(_)) && *bytes / 2 >= RING_MIN => *bytes /= 2,
            other => return other,
        }
    }
}

/// Returns advice for an error of perf_event_open(2).
fn advice(error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => return refused::advice("perf_event_open", &Privileges::read(), &[Capability::PerfMon]),
        Some(libc::EMFILE) => "tracing fewer syscalls, tasks or CPUs needs fewer descriptors",
        Some(libc::ENFILE) => "too many open files on this machine: raise fs.file-max",
        Some(libc::ENOMEM) => "the machine is short of memory: use a smaller -m",
        Some(libc::ENODEV) => "this CPU is offline",
        _ => "the kernel rejected it; -v shows the plan",
    };
    advice.to_owned()
}
