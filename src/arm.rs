//! Arming: every planned event opened on every CPU and target, one ring a CPU.

mod choose;
pub(crate) mod fallback;
pub mod left;
pub mod live;
mod there;
mod too_old;
mod visit;
mod wide;

pub use choose::{choose, try_bpf};
pub use fallback::is_no_permission;

use crate::bpf::in_flight::InFlight;
use crate::bpf::user::Objects;
use crate::bpf::{Mode, Programs, Seed};
use crate::event::{EventIndex, Note, Time};
use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::kernel::{procfs, refused};
use crate::plan::{PathNames, Plan, PlannedEvent, RingSize, Trigger, without};
use crate::say;
use crate::session::{EventSpec, EventTable, Role, Whom};
use crate::source::instance::{Instance, Size, Whose};
use crate::sys::perf::{Attr, Count, Counts, On, PerfEvent};
use crate::sys::ring::{MapError, Ring};
use crate::text::plain::without_numbers;
use anyhow::{Context, anyhow};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use wide::Wide;

/// The least ring that is worth having, bytes.
const RING_MIN: u64 = 64 << 10;

/// With more descriptors for threads that are there already than this, one a thread and CPU, the side band is better everybody's.
const DESCRIPTORS_MANY: usize = 256;

/// What is open.
#[derive(Debug)]
pub struct Armed {
    pub events: Vec<ArmedEvent>,
    pub rings: Vec<CpuRing>,
    /// How the records' identifiers map to the plan's events.
    pub table: EventTable,
    /// The most that a record may have of the stack.
    pub stack_bytes: usize,
    /// Where the events come by that perf gives nothing of.
    instance: Option<Instance>,
    /// The BPF programs, if they trace the calls.
    programs: Option<Programs>,
    /// Whom BPF programs begin with.
    seeds: Vec<(Seed, Mode)>,
    /// The user's own programs.
    objects: Objects,
    /// The side band is everybody's, and so tells not when the targets are gone.
    wide: Option<Wide>,
    /// Threads came and went faster than events were opened on them.
    is_unsettled: bool,
    /// How many events of each kind were switched off from another CPU than theirs.
    switched_off_from_afar: HashMap<EventIndex, u64>,
}

/// One open event.
#[derive(Debug)]
pub struct ArmedEvent {
    pub index: EventIndex,
    pub role: Role,
    pub cpu: u32,
    pub event: PerfEvent,
}

/// The ring of a CPU.
#[derive(Debug)]
pub struct CpuRing {
    pub cpu: u32,
    pub ring: Ring,
    /// Where in `events` the event stands whose ring it is: it tells by POLLHUP that its tasks are gone.
    pub owner: usize,
    /// The side-band events of all targets on this CPU.
    pub side_bands: Vec<usize>,
    /// What was read of the ring already, to know whom else to arm.
    pub early: Vec<u8>,
}

/// Opens everything, disabled. All threads of rtrace exist by then.
///
/// # Errors
/// One sentence that names the missing privilege, the limit that was hit, or the task that is not there.
pub fn arm(plan: &Plan, child: Option<i32>, programs: Option<Programs>, objects: Objects) -> anyhow::Result<Armed> {
    let left_out = if plan.whom.is_anyone() { plan.left_out() } else { Vec::new() };
    let seeds = seeds(&plan.whom, child, &left_out);
    let left_out = left_out.into_iter().flat_map(procfs::threads).collect();
    let mut arming = Arming {
        plan,
        left_out,
        armed: Armed {
            events: Vec::new(),
            rings: Vec::new(),
            table: EventTable::default(),
            stack_bytes: plan.events.iter().map(|event| event.stack.bytes as usize).max().unwrap_or(0),
            instance: None,
            programs,
            seeds,
            objects,
            wide: None,
            is_unsettled: false,
            switched_off_from_afar: HashMap::new(),
        },
        ring_bytes: plan.buffers.ring.bytes(),
    };
    arming.armed.table.events = plan.events.iter().map(|e| e.spec.clone()).collect();
    match &plan.whom {
        Whom::Command => arming.target(On::Task(child.context("there is no command to trace")?))?,
        Whom::Everyone | Whom::User(_) => arming.target(On::Everyone)?,
        Whom::Cgroup(path) => {
            let dir = std::fs::File::open(path).with_context(|| format!("cannot open the cgroup {}", path.display()))?;
            arming.target(On::Cgroup(dir.as_fd()))?;
        }
        Whom::Tasks { tids, processes } if processes.is_empty() => arming.threads(tids)?,
        Whom::Tasks { tids, processes } => arming.attach(tids.len(), processes)?,
    }
    if plan.events.iter().any(|event| event.spec.is_by_instance()) {
        arming.instance(child)?;
    }
    Ok(arming.armed)
}

/// What the tasks that are there are to the BPF programs.
fn seeds(whom: &Whom, child: Option<i32>, left_out: &[i32]) -> Vec<(Seed, Mode)> {
    match whom {
        Whom::Command => child.map(|pid| (Seed::Task(pid), Mode::SetUp)).into_iter().collect(),
        Whom::Tasks { tids, processes } if processes.is_empty() => tids.iter().map(|&tid| (Seed::Task(tid), Mode::Traced)).collect(),
        Whom::Tasks { processes, .. } => processes.iter().map(|&pid| (Seed::Process(pid), Mode::Traced)).collect(),
        Whom::Everyone | Whom::Cgroup(_) | Whom::User(_) => left_out.iter().map(|&pid| (Seed::Process(pid), Mode::Excluded)).collect(),
    }
}

struct Arming<'a> {
    plan: &'a Plan,
    /// Threads whose records are not wanted in a system-wide trace: our own, first of all.
    left_out: Vec<i32>,
    armed: Armed,
    ring_bytes: u64,
}

/// What could not be had.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot open {what}: {} ({})", without_numbers(&.error.to_string()), advice(.error))]
    Open { what: String, error: io::Error },
    #[error(transparent)]
    Map(#[from] MapError),
}

impl Failure {
    /// The task is gone.
    fn is_gone(&self) -> bool {
        matches!(self, Failure::Open { error, .. } if error.raw_os_error() == Some(libc::ESRCH))
    }
}

impl Arming<'_> {
    /// Arms these threads, as far as they are there.
    fn threads(&mut self, tids: &[i32]) -> anyhow::Result<()> {
        for &tid in tids {
            match self.target(On::Task(tid)) {
                Err(failure) if failure.is_gone() => {}
                other => other?,
            }
        }
        self.someone_is_there(tids)
    }

    /// Arms processes, which had so many threads.
    fn attach(&mut self, threads: usize, pids: &[i32]) -> anyhow::Result<()> {
        if self.may_be_wide() && threads * self.plan.cpus.len() > DESCRIPTORS_MANY {
            return self.widen(pids);
        }
        let is_settled = self.processes(pids)?;
        if !is_settled && self.may_be_wide() {
            return self.widen(pids);
        }
        self.armed.is_unsettled = !is_settled;
        self.someone_is_there(pids)
    }

    fn someone_is_there(&self, asked: &[i32]) -> anyhow::Result<()> {
        if self.armed.rings.is_empty() {
            return Err(anyhow!("none of the tasks {} is there any more", asked.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")));
        }
        Ok(())
    }

    fn target(&mut self, on: On) -> Result<(), Failure> {
        for &cpu in &self.plan.cpus {
            for (i, planned) in self.plan.events.iter().enumerate().filter(|(_, planned)| !planned.spec.is_by_instance()) {
                self.open(EventIndex(i as u16), planned, on, cpu)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, index: EventIndex, planned: &PlannedEvent, on: On, cpu: u32) -> Result<(), Failure> {
        // The programs know whom they trace: their event is a way out, one a CPU. And tasks are moved by whoever may, and sent signals by anybody.
        let is_of_all = matches!(planned.spec.role, Role::BpfCall | Role::Output | Role::CgroupMove | Role::SignalGenerate);
        if is_of_all && self.armed.events.iter().any(|e| e.index == index && e.cpu == cpu) {
            return Ok(());
        }
        let on = if is_of_all { On::Everyone } else { on };
        let watermark = (self.ring_bytes / 4).min(1 << 30) as u32;
        let attr = Attr { counts: planned.counts.clone(), inherit: planned.inherit, watermark, stack: planned.stack };
        let failure = |error| Failure::Open { what: format!("{} on CPU {cpu}", planned.spec.name), error };
        let event = PerfEvent::open(&attr, on, cpu).map_err(failure)?;
        let at = self.armed.events.len();
        match self.armed.rings.iter_mut().find(|r| r.cpu == cpu) {
            Some(ring) => {
                if planned.spec.role == Role::SideBand {
                    ring.side_bands.push(at);
                }
                let owner = ring.owner;
                event.set_output(self.armed.events[owner].event.as_fd()).map_err(failure)?;
            }
            None => {
                let ring = self.map(event.as_fd())?;
                self.armed.rings.push(CpuRing { cpu, ring, owner: at, side_bands: vec![at], early: Vec::new() });
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
        // It tells whom else there is to arm.
        if planned.spec.role == Role::SideBand && matches!((on, &self.plan.whom), (On::Task(_), Whom::Tasks { .. })) {
            event.enable().map_err(failure)?;
        }
        self.armed.events.push(ArmedEvent { index, role: planned.spec.role, cpu, event });
        Ok(())
    }

    /// What the kernel lets through: nothing of rtrace's own, but for the signals that it sends.
    fn filter_of(&self, planned: &PlannedEvent) -> Option<String> {
        let left_out: &[i32] = if planned.spec.role == Role::SignalGenerate { &[] } else { &self.left_out };
        without(planned.filter.clone(), left_out)
    }

    /// Switches those events on that come by an instance of tracefs.
    fn instance(&mut self, child: Option<i32>) -> anyhow::Result<()> {
        let Plan { whom, cpus, events, .. } = self.plan;
        let by_instance = || events.iter().filter(|event| event.spec.is_by_instance());
        let inherit = by_instance().any(|event| event.inherit);
        let own = child.as_slice();
        let whose = match whom {
            Whom::Command => Whose::Tasks { tids: own, processes: &[], inherit },
            Whom::Tasks { tids, processes } => Whose::Tasks { tids, processes, inherit },
            Whom::Everyone | Whom::User(_) => Whose::Everyone,
            // What belongs to others' calls finds no call here.
            Whom::Cgroup(_) if by_instance().all(|event| !event.spec.shown) => Whose::Everyone,
            Whom::Cgroup(_) => {
                return Err(anyhow!(
                    "{} cannot be limited to a cgroup: perf gives nothing of it, and tracefs knows no cgroups",
                    of_instance(events)
                ));
            }
        };
        let mut instance = Instance::make(&Tracefs::find()?, Size { cpus, bytes: self.ring_bytes }, whose)?;
        for (at, planned) in events.iter().enumerate().filter(|(_, planned)| planned.spec.is_by_instance()) {
            let (Some((subsystem, name)), Some(format)) = (planned.spec.name.split_once(':'), &planned.spec.format) else { continue };
            let name = EventName::new(subsystem, name);
            instance.enable(&name, without(planned.filter.clone(), &self.left_out).as_deref())?;
            self.armed.table.types.insert(format.id as u16, EventIndex(at as u16));
        }
        self.plan.path_names.as_ref().map_or(Ok(()), |path_names| set_triggers(&mut instance, path_names))?;
        self.armed.instance = Some(instance);
        Ok(())
    }

    /// Maps a ring; a size that rtrace chose itself shrinks until the limit of locked memory lets it in.
    fn map(&mut self, event: BorrowedFd) -> Result<Ring, MapError> {
        loop {
            match Ring::map(event, self.ring_bytes as usize) {
                Err(MapError::Locked(_)) if matches!(self.plan.buffers.ring, RingSize::Chosen(_)) && self.ring_bytes / 2 >= RING_MIN => {
                    self.ring_bytes /= 2
                }
                other => return other,
            }
        }
    }
}

/// Sets up what path names come by. What nobody asked for is no reason not to trace.
fn set_triggers(instance: &mut Instance, path_names: &PathNames) -> anyhow::Result<()> {
    let refused = path_names.triggers().iter().find_map(|Trigger { event, line }| instance.trigger(event, line).err());
    match refused {
        Some(error) if path_names.asked => Err(error.context("path names cannot be read when calls return")),
        Some(error) => {
            say!("rtrace: path names are not known: {error:#}");
            Ok(())
        }
        None => Ok(()),
    }
}

/// The names of the events that come by an instance.
fn of_instance(events: &[PlannedEvent]) -> String {
    let names = events.iter().filter(|event| event.spec.is_by_instance()).map(|event| event.spec.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// What to do about it.
fn advice(error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => return refused::advice("perf_event_open", &Privileges::read(), &[Capability::PerfMon]),
        Some(libc::EMFILE) => "naming fewer syscalls, tasks or CPUs takes fewer",
        Some(libc::ENFILE) => "too many open files on this machine: raise fs.file-max",
        Some(libc::ENOMEM) => "the machine is short of memory: ask for less with -m",
        Some(libc::ENODEV) => "this CPU is offline",
        _ => "the kernel refused it; -v shows the plan",
    };
    advice.to_owned()
}

impl Armed {
    /// Switches on what tells how tasks are moved, before anybody looks where they are.
    pub fn enable_moves(&self) -> anyhow::Result<()> {
        Ok(self.each(|e| e.role == Role::CgroupMove, PerfEvent::enable)?)
    }

    /// Switches on what is needed from the very start: the records about tasks.
    pub fn enable_side_band(&mut self) -> anyhow::Result<()> {
        self.each(|e| matches!(e.role, Role::SideBand | Role::BpfCall | Role::NewTask), PerfEvent::enable)?;
        self.objects.follow(&self.seeds)?;
        self.programs.as_mut().map_or(Ok(()), |programs| programs.follow(self.seeds.iter().copied()))
    }

    /// Switches the rest on: exits before entries, so that no call that began under trace lacks its end. Returns the list of calls that are in flight by then, where the BPF
    /// programs know of them.
    pub fn enable(&mut self) -> anyhow::Result<InFlight> {
        self.instance.as_ref().map_or(Ok(()), |instance| instance.record(true))?;
        self.each(|e| e.role != Role::SideBand && !begins_calls(e.role), PerfEvent::enable)?;
        self.each(|e| begins_calls(e.role), PerfEvent::enable)?;
        self.objects.attach(self.rings.first().map_or(0, |ring| ring.cpu))?;
        self.programs.as_mut().map_or(Ok(InFlight::default()), Programs::trace)
    }

    /// Switches everything off: entries first. Returns the list of calls in flight, where only the BPF programs know of them.
    pub fn disable(&mut self) -> anyhow::Result<InFlight> {
        let in_flight = self.programs.as_mut().map_or(Ok(InFlight::default()), Programs::stop);
        self.objects.detach();
        self.disable_where_they_are(|e| begins_calls(e.role))?;
        self.disable_where_they_are(|e| !begins_calls(e.role))?;
        self.instance.as_ref().map_or(Ok(()), |instance| instance.record(false))?;
        in_flight
    }

    /// Switches events off from the CPU that each is of. The kernel counts a hit before it writes the record, and writes none where somebody on another CPU
    /// switches the event off between the two (Linux 6.18: `perf_swevent_event`); it tells that by nothing.
    fn disable_where_they_are(&mut self, which: impl Fn(&ArmedEvent) -> bool) -> io::Result<()> {
        let mut of_cpus: BTreeMap<u32, Vec<&ArmedEvent>> = BTreeMap::new();
        self.events.iter().filter(|e| which(e)).for_each(|e| of_cpus.entry(e.cpu).or_default().push(e));
        // What is written by programs, or tells of tasks, is not counted by the kernel.
        let is_counted = |e: &&ArmedEvent| !matches!(e.role, Role::BpfCall | Role::Output | Role::SideBand);
        if !of_cpus.values().flatten().any(is_counted) {
            return of_cpus.values().flatten().try_for_each(|e| e.event.disable());
        }
        let cpus: Vec<u32> = of_cpus.keys().copied().collect();
        let missed = visit::on_each(&cpus, |cpu| of_cpus[&cpu].iter().try_for_each(|e| e.event.disable()))?;
        for event in missed.iter().flat_map(|cpu| &of_cpus[cpu]) {
            *self.switched_off_from_afar.entry(event.index).or_default() += 1;
        }
        Ok(())
    }

    /// What the BPF programs could not do, a sentence each.
    pub fn shortages(&self) -> Vec<String> {
        let skipped = self.objects.skipped();
        let of_objects = (skipped > 0).then(|| {
            format!("{skipped} times the kernel passed over a program of -e: it interrupted another, and on a tracepoint so many records may be missing, for every tracer there")
        });
        let unfollowed = self.objects.tasks_lost();
        let of_tasks = (unfollowed > 0)
            .then(|| format!("programs of -e did not run in {unfollowed} tasks: the kernel was short of memory to follow them"));
        let of_start = self.is_unsettled.then(|| {
            "threads that were there already may be missing: they came and went faster than rtrace could open events on them (the BPF engine needs none)"
                .to_owned()
        });
        self.shortages_of_calls().into_iter().chain(of_objects).chain(of_tasks).chain(of_start).collect()
    }

    fn shortages_of_calls(&self) -> Vec<String> {
        let Some(programs) = &self.programs else { return Vec::new() };
        let account = programs.account();
        let memory = "the kernel was short of memory at that moment";
        let all = [
            (account.tasks_lost, "tasks were not followed", memory),
            (account.scratch_lost, "calls are shown without the memory that they name", memory),
            (account.parts_lost, "times data of calls is cut", "it is more than one record holds, and a further record found no room"),
            (account.ends_lost, "signals and ends of tasks are not known", "their records found no room"),
            (
                programs.unseen(),
                "32-bit programs were begun whose first calls are missing",
                "rtrace looked for such calls only from then on",
            ),
            (programs.skipped(), "times the kernel skipped a program", "so many calls at most lack their entry or return, or are missing"),
            (
                programs.skipped_tasks(),
                "times the kernel skipped a program that follows tasks",
                "so many tasks at most are missing, or their ends",
            ),
        ];
        all.iter().filter(|(count, ..)| *count > 0).map(|(count, what, why)| format!("{count} {what}: {why}")).collect()
    }

    /// Calls that the BPF programs left out as asked.
    pub fn left_out(&self) -> u64 {
        self.programs.as_ref().map_or(0, |programs| programs.account().left_out)
    }

    /// Calls that were not shown because they are not the caller's alone.
    pub fn withheld(&self) -> u64 {
        self.programs.as_ref().map_or(0, |programs| programs.account().withheld)
    }

    /// Looks at 32-bit calls too, as soon as there is a program that makes them.
    pub fn look_beside(&mut self) -> anyhow::Result<()> {
        self.programs.as_mut().map_or(Ok(()), Programs::look_beside)
    }

    /// Closes these events for good, which takes the kernel tens of milliseconds for each, and unmaps the rings: all was read.
    pub fn close(&mut self, which: impl Fn(&EventSpec) -> bool) {
        self.rings.clear();
        let Armed { events, table, .. } = self;
        events.retain(|event| !table.get(event.index).is_some_and(&which));
    }

    /// What takes the kernel long to close.
    pub fn slow_to_close(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let of_programs = self.programs.iter().flat_map(Programs::slow_to_close);
        self.events.iter().map(|e| e.event.as_fd()).chain(of_programs).chain(self.objects.slow_to_close())
    }

    /// The list of calls that have been in flight for long, each once, where only the BPF programs know of them.
    pub fn pending(&self) -> anyhow::Result<InFlight> {
        self.programs.as_ref().map_or(Ok(InFlight::default()), Programs::pending)
    }

    /// The sums of tasks that ended before this moment, as facts for the stream.
    pub fn kept(&self, until: Time) -> impl Iterator<Item = (Time, Note)> {
        self.programs.iter().flat_map(move |programs| programs.kept(until))
    }

    /// What is readable when there are many of these.
    pub fn kept_fd(&self) -> Option<BorrowedFd<'_>> {
        self.programs.as_ref()?.kept_fd()
    }

    fn each(&self, which: impl Fn(&ArmedEvent) -> bool, act: impl Fn(&PerfEvent) -> io::Result<()>) -> io::Result<()> {
        self.events.iter().filter(|e| which(e)).try_for_each(|e| act(&e.event))
    }

    /// How many events of this kind were switched off from another CPU than theirs: of each, the kernel may have counted one hit that it did not write.
    pub fn switched_off_from_afar(&self, event: EventIndex) -> u64 {
        self.switched_off_from_afar.get(&event).copied().unwrap_or_default()
    }

    /// The counts of each planned event, over all CPUs, targets and what inherited from them.
    pub fn counts(&self) -> Vec<(EventIndex, Count)> {
        let mut counts = vec![Count { issued: 0, lost: Some(0) }; self.table.events.len()];
        for armed in &self.events {
            if let (Ok(count), Some(sum)) = (armed.event.count(), counts.get_mut(usize::from(armed.index.0))) {
                sum.issued += count.issued;
                sum.lost = sum.lost.zip(count.lost).map(|(a, b)| a + b);
            }
        }
        if let Some(programs) = &self.programs {
            // The events themselves count no calls, and do not know which of their records were lost. The first one stands for all.
            let of_bpf = self.table.events.iter().zip(&mut counts).filter(|(spec, _)| spec.role == Role::BpfCall);
            let account = programs.account();
            let sum = Count { issued: account.calls - account.left_out.min(account.calls), lost: Some(account.calls_lost) };
            of_bpf.enumerate().for_each(|(kind, (_, count))| *count = if kind == 0 { sum } else { Count { issued: 0, lost: Some(0) } });
        }
        let counts = counts.into_iter().zip(&self.table.events).enumerate().filter(|(_, (_, spec))| !spec.is_by_instance());
        counts.map(|(i, (count, _))| (EventIndex(i as u16), count)).collect()
    }

    /// The tracefs instance, if some events come by one.
    pub fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    /// Takes the instance away: nothing more is read of it.
    ///
    /// # Errors
    /// It is still there, and why.
    pub fn remove_instance(&mut self) -> anyhow::Result<()> {
        self.instance.take().map_or(Ok(()), |mut instance| instance.remove())
    }

    /// BPF programs beside us on our tracepoints, by event: asked of one descriptor each, because the kernel keeps them per tracepoint.
    pub fn programs(&self) -> Vec<(EventIndex, Vec<u32>)> {
        let mut asked = BTreeSet::new();
        let tracepoints =
            self.events.iter().filter(|e| self.table.get(e.index).is_some_and(|spec| spec.format.is_some() && spec.role != Role::Output));
        tracepoints.filter(|e| asked.insert(e.index)).map(|e| (e.index, e.event.programs())).filter(|(_, ids)| !ids.is_empty()).collect()
    }
}

fn begins_calls(role: Role) -> bool {
    matches!(role, Role::RawEnter | Role::Enter { .. })
}
