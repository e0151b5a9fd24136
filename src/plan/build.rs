//! Request + kernel facts → Plan.

use super::by_instance::ByInstance;
use super::events::{Adding, Needs, Tracepoint};
use super::graphs::{self, CallGraphs, Graph};
use super::mechanism::{self, Facts, Mechanism};
use super::{Buffers, PathNames, Plan, PlannedEvent, buffers, doors, fds, filters, hooks, objects, path_names, paths, sums, target};
use crate::beauty::row::Syscall;
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::bpf::user::Output;
use crate::bpf::{self, Hooks, OwnEvents, Whose};
use crate::gate::{self, Door, OfTasks, Switch};
use crate::kernel::carriers::Carrier;
use crate::kernel::tracefs::Tracefs;
use crate::kernel::{machine, procfs, syscall_event};
use crate::probe::made::{Made, MadeEvent};
use crate::request::select::{self, Selection};
use crate::request::{Engine, Graphs, Item, Target, Trace, Who};
use crate::session::{EventSpec, Role, Terms, Whom};
use crate::show::{Mode, SummaryBy, SummaryObject};
use crate::sys::lent;
use crate::sys::perf::{self, Counts, StackFields};
use anyhow::anyhow;

/// rtrace itself and those who carry its output: a chain from the terminal up, never long.
const CARRIERS_MAX: usize = 256;
/// Calls in flight for longer are shown as pending: the latency bound, nanoseconds.
const PENDING_AFTER: u64 = 100_000_000;

/// Makes the plan for this engine; where no syscalls are selected, they are the same. `outputs`: what programs of the user's own give.
///
/// # Errors
/// A sentence for every name that means nothing on this machine, every target that is not there.
pub fn build(request: &Trace, tracefs: &Tracefs, made: &mut Made, outputs: &[Output], engine: Engine) -> anyhow::Result<Plan> {
    check_proc()?;
    let what = &request.what;
    let selection = select::resolve(&what.items, what.syscalls, SYSCALLS, OTHER_NAMES).map_err(|e| anyhow!(e))?;
    let mut notes = made.notes.clone();
    let (whom, compat) = target::find(&request.target, engine == Engine::Bpf && !selection.is_empty())?;
    let inherit = !what.no_inherit && !matches!(request.target, Target::There { who: Who::Tids(_), .. });
    notes.extend(of_this_namespace(&whom));
    let shown_signals = shown_signals(request, &whom, !selection.is_empty());
    let signals = shown_signals != OfTasks::None;
    let graphs = CallGraphs::new(&selection, &what.items, &request.graphs);
    let maps = what.faults.is_some() || graphs::any(request) || made.events().iter().any(MadeEvent::returns_in_a_program);
    let mut events = vec![side_band(maps, inherit)];
    let shown: Vec<&'static Syscall> = SYSCALLS.iter().zip(&selection.rows).filter(|(_, on)| **on).map(|(s, _)| s).collect();
    let object = request.show.summary_object.as_ref();
    objects::check(object, &shown, selection.unknown)?;
    let fd_paths = what.fd_paths || object.is_some_and(SummaryObject::is_of_descriptors);
    let by_bpf = engine == Engine::Bpf && !selection.is_empty();
    let armed = armed_syscalls(&selection, shown.clone(), (fd_paths || !request.show.paths.is_empty()) && !by_bpf);
    let cpus = cpus(what.cpus.as_deref())?;
    let kernel_frames = !by_bpf && graphs.has_kernel_frames();
    let facts = Facts { own_events: mechanism::own_events(tracefs), compat, kernel_frames };
    let mut mechanism = mechanism::choose(&armed, selection.unknown, facts);
    let decided = Decided { request, selection: &selection, whom: &whom, graphs: &graphs, inherit, shown_signals };
    let own_events = matches!(mechanism, Mechanism::OwnEvents { .. });
    let path_names = if by_bpf { None } else { decided.path_names(&shown, own_events, tracefs, made)? };
    let mut hooks = Hooks::All;
    if by_bpf && own_events {
        (hooks, mechanism) = hooks_of(hooks::own(&armed, &selection, tracefs), &cpus, mechanism);
    }
    let buffers = decided.buffers(cpus.len(), by_bpf);
    let bpf = if by_bpf { Some(decided.bpf(hooks, shown, &buffers, &mut notes)?) } else { None };
    notes.extend(if by_bpf { decided.why_no_sums() } else { None });
    let names_events = decided.is_switched() || what.items.iter().any(|item| !item.selector.is_of_syscalls());
    let by_instance = if names_events { ByInstance::find(tracefs) } else { ByInstance::default() };
    let mut add =
        Adding { tracefs, made, by_instance: &by_instance, events: &mut events, inherit, graphs: &graphs, general: &request.graphs };
    match &mechanism {
        Mechanism::None => {}
        _ if by_bpf => add.bpf(&bpf.iter().flat_map(|bpf| bpf.stacks.kinds.clone()).collect::<Vec<_>>()),
        Mechanism::OwnEvents { .. } => add.own_events(&armed, &selection, &mut notes)?,
        Mechanism::Raw { .. } => add.raw(&armed, selection.unknown, compat)?,
    }
    let is_armed = |name: &str| selection.unknown || armed.iter().any(|s| s.name == name);
    let fds = decided.fds(&armed, by_bpf);
    let cgroups = matches!(request.show.mode, Mode::Summary | Mode::Both) && request.show.summary_by == SummaryBy::Cgroup;
    add.helpers(decided.needs(&is_armed, by_bpf, fds.is_ok(), cgroups));
    if let Some(path_names) = &path_names {
        path_names.add_events(&mut add)?;
    }
    let gate = decided.add_shown(&mut add, outputs)?;
    notes.extend(without_stacks(&events, &request.graphs));
    let mut remarks = selection.notes.clone();
    remarks.extend(paths::remark(request, path_names.as_ref()));
    let copies = events.iter().filter_map(|event| event.spec.format.as_ref()).any(|format| !format.user_copies().is_empty());
    Ok(Plan {
        buffers,
        whom,
        cpus,
        events,
        mechanism,
        bpf,
        engine: crate::engine::Settings { pending_after: Some(PENDING_AFTER), fd_paths: fds.is_ok(), signals, cgroups },
        gate,
        // Those that share descriptors are known by the same means.
        namespaces_complete: fds.is_ok() && is_armed("unshare") && is_armed("setns"),
        fds,
        path_names,
        maps,
        copied_bytes: if copies { syscall_event::copy_limit(&machine::release()?) } else { syscall_event::COPY_LIMIT_DEFAULT },
        frames_max: graphs::frames_max(&selection, &what.items, &request.graphs),
        names: names(&selection, &what.items),
        delay: what.delay,
        excluded: excluded(request),
        remarks,
        notes,
    })
}

/// # Errors
/// Numbers and names in /proc are of no use.
fn check_proc() -> anyhow::Result<()> {
    if procfs::is_of_another_namespace() {
        return Err(anyhow!(
            "/proc shows the tasks of another pid namespace than rtrace's, so numbers and names would be those of other tasks: \
             mount one of this namespace (mount -t proc proc /proc, or unshare --mount-proc)"
        ));
    }
    Ok(())
}

/// What is said where not all tasks of the machine have numbers.
fn of_this_namespace(whom: &Whom) -> Option<String> {
    let is_narrow = whom.is_anyone() && !procfs::is_in_first_pid_namespace();
    is_narrow.then(|| "plan: only tasks of this pid namespace are traced, and those below it: others have no number here".to_owned())
}

/// How the BPF programs are attached, by what was found for events of the calls' own.
fn hooks_of(own: Result<Vec<OwnEvents>, &'static str>, cpus: &[u32], mechanism: Mechanism) -> (Hooks, Mechanism) {
    match own {
        Ok(events) => (Hooks::Own { events, cpu: cpus.first().copied().unwrap_or_default() }, mechanism),
        Err(why) => (Hooks::All, Mechanism::Raw { why: why.to_owned() }),
    }
}

/// What is said of events whose stacks are asked for and cannot be had.
fn without_stacks(events: &[PlannedEvent], general: &Graphs) -> impl Iterator<Item = String> {
    let without = events.iter().filter(|event| event.spec.is_by_instance() && !Graph::of_event(&event.spec.terms, general).is_none());
    without.map(|event| format!("plan: no stacks of {}: a tracefs instance has none of programs", event.spec.name))
}

/// What the settings follow from.
struct Decided<'a> {
    request: &'a Trace,
    selection: &'a Selection,
    whom: &'a Whom,
    graphs: &'a CallGraphs,
    inherit: bool,
    shown_signals: OfTasks,
}

fn follows_tasks(whom: &Whom) -> bool {
    matches!(whom, Whom::Command | Whom::Tasks { .. })
}

/// They go with the lines of calls. Where calls are chosen by what they are about, signals to a process that made none of
/// these would be about nothing that was asked for; on a whole machine they come all the time.
fn shown_signals(request: &Trace, whom: &Whom, beside_calls: bool) -> OfTasks {
    let Trace { what, show, .. } = request;
    let filters = what.filter.is_some() || what.items.iter().any(|item| item.filter.is_some());
    let is_narrowed = filters || !show.paths.is_empty() || show.failure || show.duration.is_some();
    match what.signals {
        _ if show.mode == Mode::Summary => OfTasks::None,
        Some(true) => OfTasks::All,
        None if beside_calls && !is_narrowed => OfTasks::All,
        None if beside_calls && follows_tasks(whom) => OfTasks::OfShown,
        _ => OfTasks::None,
    }
}

impl Decided<'_> {
    fn follows_tasks(&self) -> bool {
        follows_tasks(self.whom)
    }

    /// Where only some calls are asked for, a process that made none of them has no line at all.
    fn exits(&self) -> OfTasks {
        let Trace { what, show, run, .. } = self.request;
        let asked = SYSCALLS.iter().zip(&self.selection.rows).any(|(row, on)| *on && row.name == "exit_group");
        let is_limited = !what.items.is_empty() || what.filter.is_some() || !show.paths.is_empty();
        match self.follows_tasks() && !run.quiet {
            false => OfTasks::None,
            true if is_limited && !(asked && what.filter.is_none() && show.paths.is_empty()) => OfTasks::OfShown,
            true => OfTasks::All,
        }
    }

    /// A call that switches the output does so whatever becomes of it.
    fn is_switched(&self) -> bool {
        self.request.what.switch_on.is_some() || self.request.what.switch_off.is_some()
    }

    /// How path names are known without BPF; `None` where no calls are traced. `own_events`: by events of their own.
    fn path_names(
        &self,
        shown: &[&'static Syscall],
        own_events: bool,
        tracefs: &Tracefs,
        made: &mut Made,
    ) -> anyhow::Result<Option<PathNames>> {
        let Trace { what, show, run, .. } = self.request;
        if self.selection.is_empty() {
            return Ok(None);
        }
        let mut facts = path_names::Facts::find(tracefs, shown, self.selection.unknown, own_events);
        // A summary has none of them, and of what a filter asks is not known here.
        let shows = matches!(show.mode, Mode::Lines | Mode::Both) || show.summary_object.is_some() || !show.paths.is_empty();
        facts.wanted &= shows || what.filter.is_some() || what.items.iter().any(|item| item.filter.is_some());
        let only = match self.whom {
            Whom::Tasks { tids, processes } if !self.inherit && processes.is_empty() => Some(tids.as_slice()),
            _ => None,
        };
        let wanted = path_names::Wanted { shown, only };
        path_names::choose(run.strings_by, facts, |own| path_names::make(own, tracefs, made, wanted)).map(Some)
    }

    fn buffers(&self, cpus: usize, by_bpf: bool) -> Buffers {
        let facts = buffers::Facts {
            cpus,
            tasks: tasks(self.whom),
            memory: machine::memory_bytes().unwrap_or_default(),
            stacks: graphs::any(self.request),
            by_bpf,
            sums: by_bpf && sums::hindrance(self.request).is_none(),
            data: self.request.show.string_limit,
        };
        Buffers::choose(self.request, facts)
    }

    /// What is said of a summary that the BPF programs could make, were it not for something that is asked for.
    fn why_no_sums(&self) -> Option<String> {
        let why = sums::hindrance(self.request).filter(|_| self.request.show.mode == Mode::Summary)?;
        Some(format!("plan: the summary is made of records here, not in the kernel, because {why}"))
    }

    /// What must be armed to understand calls.
    fn needs(&self, is_armed: &dyn Fn(&str) -> bool, by_bpf: bool, descriptors: bool, cgroups: bool) -> Needs {
        Needs {
            ends: self.follows_tasks() && !by_bpf,
            exits_seen: is_armed("exit") && is_armed("exit_group"),
            signals: self.shown_signals != OfTasks::None && !by_bpf,
            numbers: !procfs::is_in_first_pid_namespace(),
            exec: !by_bpf && (is_armed("execve") || is_armed("execveat")),
            descriptors,
            cgroups,
        }
    }

    /// Adds the events that are to be shown beside calls; gives what is shown of all.
    fn add_shown(&self, add: &mut Adding, outputs: &[Output]) -> anyhow::Result<gate::Settings> {
        let what = &self.request.what;
        let mut filters = doors::Filters::new(&what.items, what.filter.as_ref());
        let mut event_doors = doors::of_tracepoints(add, &mut filters)?;
        let switch_on = doors::switch(add, what.switch_on.as_ref(), self.selection)?;
        let switch_off = doors::switch(add, what.switch_off.as_ref(), self.selection)?;
        if let Some(faults) = what.faults {
            add.faults(faults);
        }
        if what.sched {
            add.tracepoint(Tracepoint::helper("sched", "sched_stat_runtime", Role::StatRuntime))?;
        }
        doors::of_outputs(add, &mut event_doors, outputs, &mut filters);
        // The summary's, whatever is shown.
        let for_summary = add.events.iter().zip(&mut event_doors).filter(|(event, _)| event.spec.role == Role::StatRuntime);
        for_summary.for_each(|(_, door)| _ = door.get_or_insert_default());
        let gate = self.gate(event_doors, switch_on, switch_off, &mut filters);
        filters.check()?;
        Ok(gate)
    }

    /// Whether every call that may change a descriptor table is seen; otherwise why not.
    fn fds(&self, armed: &[&'static Syscall], traces_by_bpf: bool) -> Result<(), &'static str> {
        match fds::unseen(self.whom, self.request.what.cpus.is_some(), self.inherit) {
            _ if traces_by_bpf => Err("the BPF programs read them at the call"),
            None if fds::are_armed(armed, self.selection.unknown) => Ok(()),
            None => Err("--fd-paths arms what is needed"),
            Some(why) => Err(why),
        }
    }

    /// What the BPF programs are told: to trace these calls.
    fn bpf(&self, hooks: Hooks, calls: Vec<&'static Syscall>, buffers: &Buffers, notes: &mut Vec<String>) -> anyhow::Result<bpf::Settings> {
        let (what, show, in_kernel) = (&self.request.what, &self.request.show, !self.is_switched());
        let stacks = self.graphs.of_bpf();
        if stacks.is_over() {
            return Err(anyhow!(
                "the items of -e take stacks in more ways than the BPF programs can tell apart: use fewer, or --engine tracepoint"
            ));
        }
        let sums = sums::hindrance(self.request).is_none();
        Ok(bpf::Settings {
            whose: whose(self.whom),
            hooks,
            seeds_max: seeds_max(self.request, self.whom),
            attaches: matches!(self.whom, Whom::Tasks { processes, .. } if !processes.is_empty()),
            inherit: self.inherit,
            // A summary says nothing of them.
            ends: self.follows_tasks() && !sums,
            signals: self.shown_signals != OfTasks::None,
            own_only: lent::to_whom(),
            pending_after: PENDING_AFTER as u32,
            calls,
            others: self.selection.others.clone(),
            unknown: self.selection.unknown,
            string_limit: show.string_limit,
            sums,
            kept_bytes: buffers.kept.unwrap_or_default(),
            stacks,
            failures: show.failure && in_kernel,
            least: show.duration.filter(|_| in_kernel),
            filters: if in_kernel {
                filters::of_rows(self.selection, &what.items, what.filter.as_ref(), !show.paths.is_empty(), notes)
            } else {
                Vec::new()
            },
        })
    }

    /// What is shown: of events by these doors, from and until these.
    fn gate(
        &self,
        events: Vec<Option<Door>>,
        switch_on: Option<Switch>,
        switch_off: Option<Switch>,
        filters: &mut doors::Filters,
    ) -> gate::Settings {
        let Trace { what, show, graphs, .. } = self.request;
        let (rows, nameless) = doors::of_syscalls(self.selection, filters);
        gate::Settings {
            rows,
            nameless,
            others: self.selection.others.clone(),
            events,
            amounts: what.items.iter().map(|item| item.terms.nr).collect(),
            paths: paths::find(&show.paths),
            duration: show.duration,
            failure: show.failure,
            max: show.max_events,
            switch_on,
            switch_off,
            show_switches: what.show_on_off_events,
            // Where lines go decides it, once that is open.
            pending: true,
            exits: self.exits(),
            signals: self.shown_signals,
            frames_min: graphs.min.map_or(0, usize::from),
        }
    }
}

/// What the user calls syscalls, by the place of their row: the first item with a name that selects one.
fn names(selection: &Selection, items: &[Item]) -> Vec<(u16, String)> {
    let name = |selected_by: &[u16]| selected_by.iter().find_map(|at| items.get(usize::from(*at))?.terms.name.clone());
    selection.items.iter().enumerate().filter_map(|(row, by)| Some((row as u16, name(by)?))).collect()
}

/// How many tasks and processes the BPF programs may be told of.
fn seeds_max(request: &Trace, whom: &Whom) -> u32 {
    let count = match whom {
        Whom::Command => 1,
        Whom::Tasks { tids, .. } => tids.len(),
        Whom::Everyone | Whom::Cgroup(_) | Whom::User(_) => request.what.without_pids.len() + CARRIERS_MAX,
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// How many tasks there are to be traced.
fn tasks(whom: &Whom) -> usize {
    match whom {
        Whom::Command => 1,
        Whom::Tasks { tids, .. } => tids.len(),
        Whom::Everyone | Whom::Cgroup(_) | Whom::User(_) => machine::tasks().unwrap_or_default(),
    }
}

fn whose(whom: &Whom) -> Whose {
    match whom {
        Whom::Command | Whom::Tasks { .. } => Whose::Tasks,
        Whom::Everyone => Whose::Everyone,
        Whom::Cgroup(path) => Whose::Cgroup(path.clone()),
        Whom::User(uid) => Whose::User(*uid),
    }
}

/// What is armed beyond what is shown.
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

/// The CPUs that get a ring: those asked for, or all that are online.
fn cpus(asked: Option<&[u32]>) -> anyhow::Result<Vec<u32>> {
    let online = machine::online_cpus()?;
    let Some(asked) = asked else { return Ok(online) };
    if let Some(cpu) = asked.iter().find(|cpu| !online.contains(cpu)) {
        let list = online.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        return Err(anyhow!("CPU {cpu} is not online (these are: {list})"));
    }
    Ok(asked.to_vec())
}

/// Who the user wants left out.
fn excluded(request: &Trace) -> Vec<Carrier> {
    request
        .what
        .without_pids
        .iter()
        .map(|&pid| Carrier { pid, comm: procfs::comm(pid).unwrap_or_default(), reason: "--filter-pids" })
        .collect()
}
