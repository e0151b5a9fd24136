//! Arming: opens every planned event on every CPU and target, with one ring buffer per CPU.

mod attach;
mod by_instance;
mod choose;
mod counts;
pub(crate) mod fallback;
pub mod live;
mod open;
mod path_names;
pub mod stale;
mod switch;
mod system_wide;
mod too_old;
mod visit;

pub use choose::{choose, try_bpf};
pub use fallback::is_no_permission;

use crate::bpf::in_flight::InFlight;
use crate::bpf::user::Objects;
use crate::bpf::{Mode, Programs, Seed};
use crate::event::{EventIndex, Notice, Synthesized, Time};
use crate::kernel::procfs;
use crate::plan::Plan;
use crate::session::{EventSpec, EventTable, Role, Targets};
use crate::source::instance::Instance;
use crate::sys::perf::{On, PerfEvent};
use crate::sys::ring::{OverwritingRing, Ring};
use crate::throttle::RingKind;
use anyhow::Context;
use open::Arming;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use system_wide::WatchedProcesses;

/// The open events, rings and programs.
#[derive(Debug)]
pub struct Armed {
    /// The open events, each on one CPU and one target.
    pub events: Vec<ArmedEvent>,
    /// The ring buffers, one for each CPU.
    pub rings: Vec<CpuRing>,
    /// The rings that the kernel overwrites, one for each CPU, if snapshots are taken.
    pub overwriting: Vec<OverwritingCpuRing>,
    /// The events that report calls which ask for a snapshot. They write to the rings that are not overwritten.
    pub matches: Vec<PerfEvent>,
    /// The plan's event for each identifier in the records.
    pub table: EventTable,
    /// The maximum size of a record's stack dump in bytes.
    pub stack_bytes: usize,
    /// The tracefs instance that records the events that perf does not deliver.
    instance: Option<Instance>,
    /// The BPF programs, if the BPF engine traces the calls.
    programs: Option<Programs>,
    /// The tasks with which the BPF programs begin.
    seeds: Vec<(Seed, Mode)>,
    /// The user's own BPF programs.
    objects: Objects,
    /// Set if the side band is opened for all tasks or may lack some threads, so that its end does not report the end
    /// of the targets.
    watched: Option<WatchedProcesses>,
    /// Whether threads may be missing because they were created and ended faster than events were opened on them.
    may_lack_threads: bool,
    /// The number of events of each kind that were disabled from another CPU than their own.
    disabled_remotely: HashMap<EventIndex, u64>,
    /// The notices that were printed while the events were opened, with their times.
    notices: Vec<(Time, Notice)>,
}

/// An open event.
#[derive(Debug)]
pub struct ArmedEvent {
    /// The index of the event in the plan and in the session's table.
    pub index: EventIndex,
    /// What the records mean to the engine.
    pub role: Role,
    /// The CPU whose ring the records are written to.
    pub cpu: u32,
    /// The descriptor of the event.
    pub event: PerfEvent,
}

/// The ring buffer of a CPU.
#[derive(Debug)]
pub struct CpuRing {
    /// The CPU that writes to the ring.
    pub cpu: u32,
    /// The mapped ring buffer.
    pub ring: Ring,
    /// The index in `events` of the event that the ring belongs to. It reports by POLLHUP that its tasks have ended.
    pub owner: usize,
    /// The indices of the side-band events of all targets on this CPU.
    pub side_bands: Vec<usize>,
    /// An event that reports calls which ask for a snapshot writes to the ring.
    pub has_matches: bool,
    /// The bytes that were read from the ring while events were opened.
    pub early: Vec<u8>,
}

/// The ring of a CPU that the kernel overwrites.
#[derive(Debug)]
pub struct OverwritingCpuRing {
    /// The CPU that writes to the ring.
    pub cpu: u32,
    /// The mapped ring.
    pub ring: OverwritingRing,
    /// The index in `events` of the event that the ring belongs to.
    pub owner: usize,
}

/// Opens all events, disabled. All threads of rtrace must exist already.
///
/// # Errors
/// A single sentence that names the missing privilege, the limit that was hit, or the task that has ended.
pub fn arm(plan: &Plan, child: Option<i32>, programs: Option<Programs>, objects: Objects) -> anyhow::Result<Armed> {
    let left_out = if plan.targets.is_open_ended() { plan.left_out() } else { Vec::new() };
    let seeds = seeds(&plan.targets, child, &left_out);
    let left_out = left_out.into_iter().flat_map(procfs::threads).collect();
    let mut arming = Arming {
        plan,
        left_out,
        armed: Armed {
            events: Vec::new(),
            rings: Vec::new(),
            overwriting: Vec::new(),
            matches: Vec::new(),
            table: EventTable::default(),
            stack_bytes: plan.events.iter().map(|event| event.stack.bytes as usize).max().unwrap_or(0),
            instance: None,
            programs,
            seeds,
            objects,
            watched: None,
            may_lack_threads: false,
            disabled_remotely: HashMap::new(),
            notices: Vec::new(),
        },
        ring_bytes: plan.snapshots.as_ref().map_or(plan.buffers.ring.bytes(), |snapshots| snapshots.side_band_ring),
    };
    arming.armed.table.events = plan.events.iter().map(|e| e.spec.clone()).collect();
    match &plan.targets {
        Targets::Command => arming.target(On::Command(child.context("there is no command to trace")?))?,
        Targets::SystemWide | Targets::User(_) => arming.target(On::Everyone)?,
        Targets::Cgroup(path) => {
            let dir = std::fs::File::open(path).with_context(|| format!("cannot open the cgroup {}", path.display()))?;
            arming.target(On::Cgroup(dir.as_fd()))?;
        }
        Targets::Tasks { tids, processes } if processes.is_empty() => arming.threads(tids)?,
        Targets::Tasks { tids, processes } => arming.attach_to_processes(tids.len(), processes)?,
    }
    if plan.events.iter().any(|event| event.spec.is_by_instance()) {
        arming.open_instance(child)?;
    }
    Ok(arming.armed)
}

/// Returns the state of the running tasks for the BPF programs: traced or excluded.
fn seeds(targets: &Targets, child: Option<i32>, left_out: &[i32]) -> Vec<(Seed, Mode)> {
    match targets {
        Targets::Command => child.map(|pid| (Seed::Task(pid), Mode::SetUp)).into_iter().collect(),
        Targets::Tasks { tids, processes } if processes.is_empty() => tids.iter().map(|&tid| (Seed::Task(tid), Mode::Traced)).collect(),
        Targets::Tasks { processes, .. } => processes.iter().map(|&pid| (Seed::Process(pid), Mode::Traced)).collect(),
        Targets::SystemWide | Targets::Cgroup(_) | Targets::User(_) => {
            left_out.iter().map(|&pid| (Seed::Process(pid), Mode::Excluded)).collect()
        }
    }
}

impl Armed {
    /// Starts to trace 32-bit calls once a program that makes them has started.
    pub fn trace_32_bit_calls(&mut self) -> anyhow::Result<()> {
        self.programs.as_mut().map_or(Ok(()), Programs::trace_32_bit_calls)
    }

    /// Unmaps the rings and closes these events, which takes the kernel tens of milliseconds each. All records were
    /// read before.
    pub fn close(&mut self, which: impl Fn(&EventSpec) -> bool) {
        self.rings.clear();
        self.overwriting.clear();
        let Armed { events, table, .. } = self;
        events.retain(|event| !table.get(event.index).is_some_and(&which));
    }

    /// Returns the descriptors that take the kernel long to close.
    pub fn slow_to_close(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let of_programs = self.programs.iter().flat_map(Programs::slow_to_close);
        self.events
            .iter()
            .map(|e| e.event.as_fd())
            .chain(self.matches.iter().map(AsFd::as_fd))
            .chain(of_programs)
            .chain(self.objects.slow_to_close())
    }

    /// Returns the calls that have been in flight for long, each once, if only the BPF programs know them.
    pub fn pending(&self) -> anyhow::Result<InFlight> {
        self.programs.as_ref().map_or(Ok(InFlight::default()), Programs::pending)
    }

    /// Returns the aggregates of tasks that ended before this moment, as synthesized records.
    pub fn ended_task_aggregates(&self, until: Time) -> impl Iterator<Item = (Time, Synthesized)> {
        self.programs.iter().flat_map(move |programs| programs.ended_task_aggregates(until))
    }

    /// Returns the descriptor that becomes readable when there are many such aggregates.
    pub fn aggregates_fd(&self) -> Option<BorrowedFd<'_>> {
        self.programs.as_ref()?.aggregates_fd()
    }

    /// Returns the rings whose overflow loses calls: the event of each, or the BPF ring buffer for the aggregates of
    /// ended tasks, which has this many bytes.
    pub fn rings_of_calls(&self, ended_tasks: Option<u32>) -> Vec<(BorrowedFd<'_>, RingKind)> {
        let of_cpu = |ring: &CpuRing| RingKind { is_map: false, bytes: ring.ring.bytes() };
        let of_cpus = self.rings.iter().map(|ring| (self.events[ring.owner].event.as_fd(), of_cpu(ring)));
        let aggregates = self.aggregates_fd().zip(ended_tasks).map(|(fd, bytes)| (fd, RingKind { is_map: true, bytes: bytes as usize }));
        of_cpus.chain(aggregates).collect()
    }

    /// Returns the tracefs instance, if it records any events.
    pub fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    /// Removes the instance, of which nothing more is read.
    ///
    /// # Errors
    /// The instance could not be removed. The message has the reason.
    pub fn remove_instance(&mut self) -> anyhow::Result<()> {
        self.instance.take().map_or(Ok(()), |mut instance| instance.remove())
    }
}
