//! Makes the [`Plan`] of a request on the running kernel.

use super::by_instance::InstanceEvents;
use super::event_calls::CallsOfEvents;
use super::events::{EventAdder, Needs, Tracepoint};
use super::explain::without_end;
use super::graphs::{self, CallGraphs, Graph};
use super::mechanism::{self, Mechanism, MechanismInputs};
use super::names_at_exit::AtExit;
use super::{
    Buffers, Injector, PathNameSource, PathNames, Plan, PlannedEvent, SnapshotPlan, buffers, fds, filters, hooks, injections, items,
    objects, path_names, paths, requests, snapshots, sums, target,
};
use crate::beauty::row::Syscall;
use crate::beauty::special::Special;
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::bpf::user::Output;
use crate::bpf::{self, Hooks, OwnEvents, TaskScope};
use crate::gate::{self, TaskEvents};
use crate::kernel::output_readers::OutputReader;
use crate::kernel::tracefs::Tracefs;
use crate::kernel::{machine, procfs, syscall_event};
use crate::probe::run_events::{RunEvent, RunEvents};
use crate::request::select::{self, Selection};
use crate::request::{Engine, Graphs, Item, Target, TaskSelection, Trace};
use crate::session::{EventSpec, Role, Targets, Terms};
use crate::show::{Mode, Outcomes, Style, SummaryBy, SummaryObject};
use crate::sys::file_capabilities;
use crate::sys::perf::{self, Counts, StackFields};
use anyhow::anyhow;

/// The most processes that a system-wide trace leaves out by itself: rtrace and the readers of its output, a chain of
/// processes up to the terminal, which is never long.
const CARRIERS_MAX: usize = 256;
/// Nanoseconds after which a call in flight is shown as pending, so that no call stays invisible for longer.
pub const PENDING_AFTER: u64 = 100_000_000;

/// Returns whether signals are asked for, and lines show all of their members. The tracepoints of signals do not have
/// them.
fn shows_whole_signals(request: &Trace) -> bool {
    (request.show.style == Style::Strace || request.what.signals == Some(true)) && request.show.mode != Mode::Summary
}

/// Returns whether calls or requests are traced, shown or not.
fn has_calls(selection: &Selection, of_events: &CallsOfEvents, requests: &bpf::Requests) -> bool {
    !selection.is_empty() || of_events.is_any() || !requests.opcodes.is_empty()
}

/// Returns what is traced, and whether 32-bit calls are to be expected: of a 32-bit program that is there already, or
/// because the request distinguishes them.
fn targets(request: &Trace, by_bpf: bool) -> anyhow::Result<(Targets, bool)> {
    let (targets, has_compat) = target::find(&request.target, by_bpf)?;
    Ok((targets, has_compat || request.show.strace.calls.is_some()))
}

/// Builds the plan for this engine. If neither syscalls nor whole signals are asked for, the plan does not depend on
/// the engine. `made` are the events that were created for probes, and `outputs` are the events of the user's BPF
/// programs.
///
/// # Errors
/// A name means nothing on this machine, or a target does not exist.
pub fn build(request: &Trace, tracefs: &Tracefs, made: &RunEvents, outputs: &[Output], engine: Engine) -> anyhow::Result<Plan> {
    check_proc()?;
    let what = &request.what;
    let selection = select::resolve(&what.items, what.syscalls, SYSCALLS, OTHER_NAMES).map_err(|e| anyhow!(e))?;
    let injections = injections::resolve(request, &selection)?;
    let of_events = if engine == Engine::Bpf { CallsOfEvents::new(request, &selection) } else { CallsOfEvents::default() };
    let requests = requests::by_bpf(&selection, request.show.mode, tracefs);
    let by_bpf = engine == Engine::Bpf && (has_calls(&selection, &of_events, &requests) || shows_whole_signals(request));
    let (targets, compat) = targets(request, by_bpf)?;
    let injector = Injector::choose(&injections.rules, request, &targets, by_bpf)?;
    let inherit = !what.no_inherit && !matches!(request.target, Target::Running { tasks: TaskSelection::Tids(_), .. });
    let mut notes: Vec<String> = made.notes.iter().cloned().chain(of_this_namespace(&targets)).collect();
    let shown_signals = gate::signals(request, &selection, targets.scope());
    let graphs = CallGraphs::new(&selection, &what.items, &request.graphs, shown_signals != TaskEvents::None);
    let maps = what.faults.is_some() || graphs::any(request) || made.events().iter().any(RunEvent::returns_in_a_program);
    let mut events = vec![side_band(maps, inherit)];
    let mut shown: Vec<&'static Syscall> = SYSCALLS.iter().zip(&selection.rows).filter(|(_, on)| **on).map(|(s, _)| s).collect();
    let object = request.show.summary_object.as_ref();
    objects::check(object, &shown, selection.unknown)?;
    let fd_paths = what.fd_paths || object.is_some_and(SummaryObject::requires_descriptors);
    of_events.add_to(&mut shown);
    let armed = armed_syscalls(&selection, shown.clone(), (fd_paths || !request.show.paths.is_empty()) && !by_bpf);
    let cpus = cpus(what.cpus.as_deref())?;
    let facts = MechanismInputs { own_events: own_events(request, tracefs), compat, kernel_frames: !by_bpf && graphs.has_kernel_frames() };
    let mechanism = mechanism::choose(&armed, selection.unknown || of_events.calls.recorded.nameless, facts);
    let decided =
        PlanInputs { request, selection: &selection, of_events: &of_events, targets: &targets, graphs: &graphs, inherit, shown_signals };
    let own_events = matches!(mechanism, Mechanism::OwnEvents { .. });
    let path_names = if by_bpf { None } else { decided.path_names(&shown, own_events, tracefs)? };
    let (hooks, mechanism) = hooks_of((by_bpf && own_events).then(|| hooks::own(&armed, &selection, tracefs)), &cpus, mechanism);
    let buffers = decided.buffers(cpus.len(), by_bpf);
    let bpf = if by_bpf { Some(decided.bpf(hooks, (shown, requests), &buffers, &mut notes)?) } else { None };
    notes.extend(if by_bpf { decided.why_no_sums() } else { None });
    let by_instance = decided.by_instance(tracefs);
    let mut add =
        EventAdder { tracefs, made, by_instance: &by_instance, events: &mut events, inherit, graphs: &graphs, general: &request.graphs };
    match &mechanism {
        _ if by_bpf => add.bpf(&bpf.iter().flat_map(|bpf| bpf.stacks.kinds.clone()).collect::<Vec<_>>()),
        Mechanism::None => {}
        Mechanism::OwnEvents { .. } => add.own_events(&armed, &selection, &mut notes)?,
        Mechanism::Raw { .. } => add.raw(&armed, selection.unknown, compat)?,
    }
    let is_armed = |effect: Special| selection.unknown || armed.iter().any(|row| row.does == effect);
    let fds = decided.fds(&armed, by_bpf);
    let cgroups = matches!(request.show.mode, Mode::Summary | Mode::Both) && request.show.summary_by == SummaryBy::Cgroup;
    add.helpers(decided.needs(&is_armed, by_bpf, fds.is_ok(), cgroups));
    decided.add_shown(&mut add, outputs)?;
    decided.bind(&mut events)?;
    let on = snapshots::Inputs { events: &events, tracefs, ring: buffers.ring.bytes(), by_bpf, inherit, compat };
    notes.extend(without_stacks(&events, &request.graphs));
    Ok(Plan {
        remarks: decided.remarks(injections.remarks, &buffers),
        buffers,
        targets,
        cpus,
        copied_bytes: copied_bytes(&events)?,
        snapshots: SnapshotPlan::new(request, &selection, on)?,
        events,
        mechanism,
        bpf: bpf.map(|bpf| injector.in_programs(bpf, &injections.rules)),
        pending_after: Some(PENDING_AFTER),
        signals: shown_signals != TaskEvents::None,
        cgroups,
        // Sharing of pid namespaces is derived from the same calls as sharing of descriptors.
        namespaces_complete: fds.is_ok() && is_armed(Special::Unshare) && is_armed(Special::Setns),
        fds,
        path_names,
        maps,
        paths: paths::named(&request.show.paths),
        frames_max: graphs::frames_max(&selection, &what.items, &request.graphs),
        names: names(&selection, &what.items),
        delay: what.delay,
        excluded: excluded(request),
        injections: injections.rules,
        injector,
        event_calls: of_events.calls,
        notes,
        selection,
    })
}

/// Checks that /proc shows the pid namespace that rtrace is in.
///
/// # Errors
/// /proc is mounted for another pid namespace, whose numbers would be those of other tasks.
fn check_proc() -> anyhow::Result<()> {
    if procfs::is_of_another_namespace() {
        return Err(anyhow!(
            "/proc shows the tasks of another pid namespace than rtrace's, so numbers and names would be those of other tasks: \
             mount one of this namespace (mount -t proc proc /proc, or unshare --mount-proc)"
        ));
    }
    Ok(())
}

/// Returns the remark for a trace that cannot show all tasks of the machine, because they have no pid in this
/// namespace.
fn of_this_namespace(targets: &Targets) -> Option<String> {
    let is_narrow = targets.is_open_ended() && !procfs::is_in_initial_pid_namespace();
    is_narrow.then(|| "plan: only tasks of this pid namespace and of those below it are traced: other tasks have no pid here".to_owned())
}

/// Chooses how the BPF programs are attached: to the given `syscalls:` events, if they were searched and found, or to
/// the tracepoints of all calls.
fn hooks_of(own: Option<Result<Vec<OwnEvents>, &'static str>>, cpus: &[u32], mechanism: Mechanism) -> (Hooks, Mechanism) {
    match own {
        None => (Hooks::All, mechanism),
        Some(Ok(events)) => (Hooks::Own { events, cpu: cpus.first().copied().unwrap_or_default() }, mechanism),
        Some(Err(why)) => (Hooks::All, Mechanism::Raw { why: why.to_owned() }),
    }
}

/// Returns remarks on events whose stacks were requested but cannot be recorded.
fn without_stacks(events: &[PlannedEvent], general: &Graphs) -> impl Iterator<Item = String> {
    let without = events.iter().filter(|event| event.spec.is_by_instance() && !Graph::of_event(&event.spec.terms, general).is_none());
    without.map(|event| format!("plan: no stacks of {}: a tracefs instance does not record user stacks", event.spec.name))
}

/// The decisions from which the rest of the plan follows.
struct PlanInputs<'a> {
    request: &'a Trace,
    selection: &'a Selection,
    of_events: &'a CallsOfEvents,
    targets: &'a Targets,
    graphs: &'a CallGraphs,
    inherit: bool,
    shown_signals: TaskEvents,
}

fn follows_tasks(targets: &Targets) -> bool {
    matches!(targets, Targets::Command | Targets::Tasks { .. })
}

impl PlanInputs<'_> {
    fn remarks(&self, of_injections: Vec<String>, buffers: &Buffers) -> Vec<String> {
        let others = buffers.remark(self.request).into_iter().chain(without_end(self.request));
        self.selection.notices.iter().cloned().chain(of_injections).chain(others).collect()
    }

    fn follows_tasks(&self) -> bool {
        follows_tasks(self.targets)
    }

    /// Whether events switch the output on or off. Such a call must be seen even if it is not shown itself.
    fn is_switched(&self) -> bool {
        self.request.what.switch_on.is_some() || self.request.what.switch_off.is_some()
    }

    /// Returns the events that perf does not deliver, if the request names any event.
    fn by_instance(&self, tracefs: &Tracefs) -> InstanceEvents {
        let names_events = self.is_switched() || self.request.what.items.iter().any(|item| !item.selector.selects_syscalls());
        if names_events { InstanceEvents::find(tracefs) } else { InstanceEvents::default() }
    }

    /// Chooses how path names are read without BPF; `None` where no calls are traced. `own_events` says that the
    /// `syscalls:` events are used.
    fn path_names(&self, shown: &[&'static Syscall], own_events: bool, tracefs: &Tracefs) -> anyhow::Result<Option<PathNames>> {
        let Trace { what, show, run, .. } = self.request;
        if self.selection.is_empty() {
            return Ok(None);
        }
        let mut facts = path_names::PathNameInputs::find(tracefs, shown, self.selection.unknown, own_events);
        // A summary shows no paths. A filter may need them; which fields it names is not known at this point.
        let shows = matches!(show.mode, Mode::Lines | Mode::Both) || show.summary_object.is_some() || !show.paths.is_empty();
        facts.wanted &= shows || what.filter.is_some() || what.items.iter().any(|item| item.filter.is_some());
        let only = match self.targets {
            Targets::Tasks { tids, processes } if !self.inherit && processes.is_empty() => Some(tids.as_slice()),
            _ => None,
        };
        let at_exit = || PathNameSource::AtExit(AtExit::new(shown, only));
        path_names::choose(run.strings_by, facts, || path_names::getname(tracefs), at_exit).map(Some)
    }

    fn buffers(&self, cpus: usize, by_bpf: bool) -> Buffers {
        let facts = buffers::BufferInputs {
            cpus,
            tasks: target::tasks(self.targets),
            memory: machine::memory_bytes().unwrap_or_default(),
            stacks: graphs::any(self.request),
            by_bpf,
            sums: by_bpf && sums::why_records(self.request).is_none(),
            data: self.request.show.string_limit,
        };
        Buffers::choose(self.request, facts)
    }

    /// Returns the remark on a summary that the BPF programs could aggregate if the request did not need single calls.
    fn why_no_sums(&self) -> Option<String> {
        let why = sums::why_records(self.request).filter(|_| self.request.show.mode == Mode::Summary)?;
        Some(format!("plan: the summary is made from a record of each call, not aggregated in the kernel, because {why}"))
    }

    /// Returns which further facts must be traced to interpret the calls.
    fn needs(&self, is_armed: &dyn Fn(Special) -> bool, by_bpf: bool, descriptors: bool, cgroups: bool) -> Needs {
        Needs {
            ends: self.follows_tasks() && !by_bpf,
            exits_seen: is_armed(Special::Exit) && is_armed(Special::ExitGroup),
            signals: self.shown_signals != TaskEvents::None && !by_bpf,
            numbers: !procfs::is_in_initial_pid_namespace(),
            exec: !by_bpf && (is_armed(Special::Execve) || is_armed(Special::Execveat)),
            descriptors,
            cgroups,
        }
    }

    /// Adds the events that are shown in addition to calls.
    fn add_shown(&self, add: &mut EventAdder, outputs: &[Output]) -> anyhow::Result<()> {
        let what = &self.request.what;
        items::tracepoints(add, &what.items)?;
        items::switch(add, what.switch_on.as_ref())?;
        items::switch(add, what.switch_off.as_ref())?;
        if let Some(faults) = what.faults {
            add.faults(faults);
        }
        if what.sched {
            add.tracepoint(Tracepoint::helper("sched", "sched_stat_runtime", Role::StatRuntime))?;
        }
        items::outputs(add, &what.items, outputs);
        if self.selection.has_requests() {
            requests::add(add)?;
        }
        Ok(())
    }

    /// Binds the selection and the filters of the request to the planned events. This reports mistakes in filters, and
    /// lets the kernel evaluate the filters that it can. The gate's settings are bound again when the events are open
    /// ([`Plan::bind`]).
    fn bind(&self, events: &mut [PlannedEvent]) -> anyhow::Result<()> {
        let specs = events.iter().map(|event| &event.spec).collect();
        let stream =
            gate::Stream { events: specs, scope: self.targets.scope(), abi: machine::NATIVE_ABI, paths: &[], filtered: Vec::new() };
        let shown = gate::bind(self.request, self.selection, &stream)?;
        items::filter_in_kernel(events, &shown.events, &self.request.what.items);
        Ok(())
    }

    /// Returns `Ok` if every call that may change a descriptor table is traced, otherwise the reason why not.
    fn fds(&self, armed: &[&'static Syscall], traces_by_bpf: bool) -> Result<(), &'static str> {
        match fds::unseen(self.targets, self.request.what.cpus.is_some(), self.inherit) {
            _ if traces_by_bpf => Err("the BPF programs read them at each call"),
            None if fds::are_armed(armed, self.selection.unknown) => Ok(()),
            None => Err("--fd-paths traces the calls that are needed for it"),
            Some(why) => Err(why),
        }
    }

    /// Returns the settings of the BPF programs for tracing these calls, and for these requests.
    fn bpf(
        &self,
        hooks: Hooks,
        (calls, requests): (Vec<&'static Syscall>, bpf::Requests),
        buffers: &Buffers,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<bpf::Settings> {
        let (what, show) = (&self.request.what, &self.request.show);
        // Events need calls that are not shown themselves.
        // What the kernel sees of an answered call lacks its start and its arguments' memory.
        let in_kernel = !self.is_switched() && !self.of_events.is_any() && what.injections.is_empty();
        let stacks = self.graphs.of_bpf();
        if stacks.is_over() {
            return Err(anyhow!(
                "the items of -e ask for more kinds of stacks than the BPF programs can distinguish: use fewer, or --engine tracepoint"
            ));
        }
        let sums = sums::why_records(self.request).is_none();
        Ok(bpf::Settings {
            epoch_bytes: snapshots::epoch_bytes(self.request, buffers.ring.bytes(), &stacks.kinds),
            conditions: snapshots::conditions(self.request, self.selection)?,
            scope: scope(self.targets),
            hooks,
            seeds_max: seeds_max(self.request, self.targets),
            attaches: matches!(self.targets, Targets::Tasks { processes, .. } if !processes.is_empty()),
            inherit: self.inherit,
            // A summary does not show the ends of tasks.
            ends: self.follows_tasks() && !sums,
            signals: self.shown_signals != TaskEvents::None,
            own_only: file_capabilities::caller(),
            pending_after: PENDING_AFTER as u32,
            calls,
            others: self.selection.others.iter().chain(&self.of_events.calls.recorded.others).copied().collect(),
            unknown: self.selection.unknown || self.of_events.calls.recorded.nameless,
            entries: self.of_events.entries.clone(),
            effects: None,
            answered: false,
            sends_signals: false,
            requests,
            string_limit: show.string_limit,
            full: show.full || show.style == Style::Json,
            struct_limit: show.struct_limit,
            directories: show.style == Style::Strace && !show.strace.files.is_empty(),
            sums,
            ended_tasks_bytes: buffers.ended_tasks.unwrap_or_default(),
            stacks,
            failures: show.outcomes == Outcomes::FAILED && in_kernel,
            min_duration: show.duration.filter(|_| in_kernel),
            filters: if in_kernel {
                filters::of_rows(self.selection, &what.items, what.filter.as_ref(), !show.paths.is_empty(), notes)
            } else {
                Vec::new()
            },
        })
    }
}

/// Returns the maximum number of bytes of user memory that the kernel copies into one record of these events.
fn copied_bytes(events: &[PlannedEvent]) -> anyhow::Result<u32> {
    let copies = events.iter().filter_map(|event| event.spec.format.as_ref()).any(|format| !format.user_copies().is_empty());
    Ok(if copies { syscall_event::copy_limit(&machine::release()?) } else { syscall_event::COPY_LIMIT_DEFAULT })
}

/// Returns the names that the user gave to syscalls, by the name of their row. The first item with a name that selects
/// the syscall counts.
fn names(selection: &Selection, items: &[Item]) -> Vec<(String, String)> {
    let name = |selected_by: &[u16]| selected_by.iter().find_map(|at| items.get(usize::from(*at))?.terms.name.clone());
    SYSCALLS.iter().zip(&selection.items).filter_map(|(row, by)| Some((row.name.to_owned(), name(by)?))).collect()
}

/// Checks that calls may be traced by their own events: this kernel has them, and no recording for perf is asked for.
fn own_events(request: &Trace, tracefs: &Tracefs) -> Result<(), &'static str> {
    match &request.recording {
        Some(recording) if recording.for_perf => Err("perf trace shows the calls of these events only (--for-perf)"),
        _ => mechanism::own_events(tracefs),
    }
}

/// Returns how many tasks and processes may be written to the map `seeds` of the BPF programs.
fn seeds_max(request: &Trace, targets: &Targets) -> u32 {
    let count = match targets {
        Targets::Command => 1,
        Targets::Tasks { tids, .. } => tids.len(),
        Targets::SystemWide | Targets::Cgroup(_) | Targets::User(_) => request.what.without_pids.len() + CARRIERS_MAX,
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn scope(targets: &Targets) -> TaskScope {
    match targets {
        Targets::Command | Targets::Tasks { .. } => TaskScope::Tasks,
        Targets::SystemWide => TaskScope::Everyone,
        Targets::Cgroup(path) => TaskScope::Cgroup(path.clone()),
        Targets::User(uid) => TaskScope::User(*uid),
    }
}

/// Returns the traced syscalls: the shown ones, and with `fd_paths` all that may change a descriptor table.
fn armed_syscalls(selection: &Selection, shown: Vec<&'static Syscall>, fd_paths: bool) -> Vec<&'static Syscall> {
    let mut armed = shown;
    if fd_paths && !selection.unknown && !armed.is_empty() {
        let more: Vec<&'static Syscall> = fds::changers().filter(|s| !armed.iter().any(|a| a.name == s.name)).collect();
        armed.extend(more);
    }
    armed
}

fn side_band(maps: bool, inherit: bool) -> PlannedEvent {
    let spec = EventSpec {
        name: "side band".to_owned(),
        role: Role::SideBand,
        sample_type: perf::SAMPLE_SIDE_BAND,
        format: None,
        shown: false,
        terms: Terms { no_inherit: !inherit, ..Terms::default() },
    };
    PlannedEvent { spec, counts: Counts::SideBand { maps }, filter: None, inherit, stack: StackFields::default() }
}

/// Returns the CPUs that get a ring: the requested ones, or all that are online.
fn cpus(asked: Option<&[u32]>) -> anyhow::Result<Vec<u32>> {
    let online = machine::online_cpus()?;
    let Some(asked) = asked else { return Ok(online) };
    if let Some(cpu) = asked.iter().find(|cpu| !online.contains(cpu)) {
        let list = online.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        return Err(anyhow!("CPU {cpu} is not online (online CPUs: {list})"));
    }
    Ok(asked.to_vec())
}

/// Returns the processes that the user excludes (`--filter-pids`).
fn excluded(request: &Trace) -> Vec<OutputReader> {
    request
        .what
        .without_pids
        .iter()
        .map(|&pid| OutputReader { pid, comm: procfs::comm(pid).unwrap_or_default(), reason: "--filter-pids" })
        .collect()
}
