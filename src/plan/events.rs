//! Adds events to a plan, with the attributes that each kind of event needs.

use super::PlannedEvent;
use crate::beauty::lookup;
use crate::beauty::row::Syscall;
use crate::beauty::special::Special;
use crate::beauty::tables::SYSCALLS;
use crate::bpf::user::Output;
use crate::event::EventIndex;
use crate::kernel::format::Format;
use crate::kernel::machine::NATIVE_ABI;
use crate::kernel::tracefs::Tracefs;
use crate::probe::run_events::RunEvents;
use crate::request::select::Selection;
use crate::request::{Faults, Graphs};
use crate::session::{EventSpec, Role, Terms};
use crate::sys::perf::{self, Counts, StackFields};
use std::sync::Arc;

use super::by_instance::InstanceEvents;
use super::graphs::{CallGraphs, Graph};
use super::mechanism::{all_but, raw_filter};

/// Adds events to a plan.
pub struct EventAdder<'a> {
    /// The tracefs that has the formats of the tracepoints.
    pub tracefs: &'a Tracefs,
    /// The events that perf never writes records of.
    pub by_instance: &'a InstanceEvents,
    /// The events that rtrace created for probes.
    pub made: &'a RunEvents,
    /// The events of the plan. New ones are appended, so that the indices of the others do not change.
    pub events: &'a mut Vec<PlannedEvent>,
    /// Whether events are also opened on the tasks that the targets create, unless an item says `no-inherit`.
    pub inherit: bool,
    /// The stacks that are recorded with each call.
    pub graphs: &'a CallGraphs,
    /// The stack options for events other than syscalls.
    pub general: &'a Graphs,
}

/// A tracepoint that is to be added.
pub struct Tracepoint<'a> {
    /// The directory below `events` in tracefs; in the event's name, it stands before the colon.
    pub subsystem: &'a str,
    /// The name in the subsystem, which stands behind the colon.
    pub name: &'a str,
    /// What the records mean to the engine.
    pub role: Role,
    /// Whether the user asked to see the event. Otherwise rtrace needs its records to interpret others.
    pub shown: bool,
    /// The terms of the item that selected the event; the defaults if no item did.
    pub terms: Terms,
    /// The filter, in the kernel's filter language (Documentation/trace/events.rst); `None` if every hit is recorded.
    pub filter: Option<String>,
    /// The stacks that are recorded with each hit.
    pub graph: Graph,
}

impl<'a> Tracepoint<'a> {
    /// Returns a tracepoint that rtrace needs to interpret other events.
    pub fn helper(subsystem: &'a str, name: &'a str, role: Role) -> Tracepoint<'a> {
        let (terms, graph) = (Terms::default(), Graph::default());
        Tracepoint { subsystem, name, role, shown: false, terms, filter: None, graph }
    }
}

impl EventAdder<'_> {
    /// Adds a tracepoint. A tracepoint that was added before with the same role and filter is not added again, because
    /// its records would be counted twice. rtrace's own tracepoints and those that the user asked for have different
    /// roles, so that neither changes the other's records.
    ///
    /// # Errors
    /// This kernel does not have the tracepoint, or its format cannot be read.
    pub fn tracepoint(&mut self, point: Tracepoint) -> anyhow::Result<EventIndex> {
        let name = format!("{}:{}", point.subsystem, point.name);
        let serves = |event: &PlannedEvent| event.spec.name == name && event.spec.role == point.role && event.filter == point.filter;
        if let Some(at) = self.events.iter().position(serves) {
            let (index, known) = (EventIndex(at as u16), &mut self.events[at].spec);
            known.shown |= point.shown;
            if point.terms != Terms::default() {
                let created_for = point.terms.created_for.or(known.terms.created_for);
                known.terms = Terms { created_for, ..point.terms };
            }
            if !point.graph.is_none() {
                self.take_stack(index, point.graph.fields());
            }
            return Ok(index);
        }
        let format = match self.made.device(point.subsystem, point.name) {
            Some(device) => device.format.clone(),
            None => self.tracefs.format(point.subsystem, point.name)?,
        };
        Ok(self.push(name, point, format))
    }

    /// Adds a tracepoint if the kernel has it; older kernels may not.
    fn optional(&mut self, point: Tracepoint) {
        let _ = self.tracepoint(point);
    }

    fn push(&mut self, name: String, point: Tracepoint, format: Format) -> EventIndex {
        let device = self.made.device(point.subsystem, point.name);
        let inherit = self.inherit && !point.terms.no_inherit && device.is_none();
        let (counts, sample_type) = match (point.role, device) {
            (Role::Tracepoint, Some(device)) => (Counts::Probe(Arc::clone(&device.probe)), perf::SAMPLE_TRACEPOINT),
            (Role::Tracepoint, None) if self.by_instance.has(point.subsystem, point.name) => (Counts::Tracepoint(format.id), 0),
            (Role::Tracepoint | Role::StatRuntime, _) => (Counts::Weighted(format.id), perf::SAMPLE_WEIGHTED),
            _ => (Counts::Tracepoint(format.id), perf::SAMPLE_TRACEPOINT),
        };
        let spec = EventSpec { name, role: point.role, sample_type, format: Some(format), shown: point.shown, terms: point.terms };
        self.add(PlannedEvent { spec, counts, filter: point.filter, inherit, stack: StackFields::default() }, point.graph.fields())
    }

    fn add(&mut self, event: PlannedEvent, stack: StackFields) -> EventIndex {
        self.events.push(event);
        let index = EventIndex((self.events.len() - 1) as u16);
        self.take_stack(index, stack);
        index
    }

    /// Adds an event of one of the user's BPF programs, which may run in any task.
    pub fn output(&mut self, output: &Output, terms: &Terms) {
        let terms = Terms { no_inherit: terms.no_inherit || !self.inherit, created_for: Some(output.item), ..terms.clone() };
        let graph = Graph::of_output(&terms, self.general);
        let spec = EventSpec {
            name: output.name.clone(),
            role: Role::Output,
            sample_type: perf::SAMPLE_TRACEPOINT,
            format: Some(output.format.clone()),
            shown: true,
            terms,
        };
        let event = PlannedEvent { spec, counts: Counts::UserOutput, filter: None, inherit: false, stack: StackFields::default() };
        self.add(event, graph.fields());
    }

    fn take_stack(&mut self, index: EventIndex, fields: StackFields) {
        if let Some(event) = self.events.get_mut(usize::from(index.0)).filter(|event| !event.spec.is_by_instance()) {
            event.stack = fields;
            event.spec.sample_type |= fields.sample_type();
        }
    }

    /// Adds the `raw_syscalls` tracepoints, filtered by number unless all syscalls are traced.
    pub fn raw(&mut self, armed: &[&'static Syscall], everything: bool, compat: bool) -> anyhow::Result<()> {
        for (name, role, exit) in [("sys_enter", Role::RawEnter, false), ("sys_exit", Role::RawExit, true)] {
            let format = self.tracefs.format("raw_syscalls", name)?;
            let (rest, others) = self.by_graph(armed, everything, exit);
            let special: Vec<&'static Syscall> = others.iter().flat_map(|(_, calls)| calls.iter().copied()).collect();
            let rest_filter = match everything {
                true => (!special.is_empty()).then(|| all_but(&special, NATIVE_ABI, compat, exit)),
                false => {
                    let rest: Vec<&'static Syscall> =
                        armed.iter().filter(|call| !special.iter().any(|other| other.name == call.name)).copied().collect();
                    Some(raw_filter(&rest, NATIVE_ABI, compat, exit))
                }
            };
            let of_others = others.iter().map(|(graph, calls)| (*graph, Some(raw_filter(calls, NATIVE_ABI, compat, exit))));
            // An empty filter text means that no calls are left: all of them are in the other groups.
            let groups = std::iter::once((rest, rest_filter)).filter(|(_, filter)| filter.as_ref().is_none_or(|text| !text.is_empty()));
            for (graph, filter) in groups.chain(of_others).collect::<Vec<_>>() {
                let point = Tracepoint { filter, shown: true, graph, ..Tracepoint::helper("raw_syscalls", name, role) };
                self.push(format!("raw_syscalls:{name}"), point, format.clone());
            }
        }
        Ok(())
    }

    /// Returns how stacks are recorded at the entry or exit of most calls, and the groups of calls with other stacks.
    /// An event records stacks in one way only.
    fn by_graph(&self, armed: &[&'static Syscall], everything: bool, exit: bool) -> (Graph, Vec<(Graph, Vec<&'static Syscall>)>) {
        let rest = if exit && everything { self.graphs.nameless } else { Graph::default() };
        let mut others: Vec<(Graph, Vec<&'static Syscall>)> = Vec::new();
        for &call in armed {
            let graph = self.graphs.at(call, exit);
            if graph == rest {
                continue;
            }
            match others.iter_mut().find(|(known, _)| *known == graph) {
                Some((_, calls)) => calls.push(call),
                None => others.push((graph, vec![call])),
            }
        }
        (rest, others)
    }

    /// Adds the events to which the BPF programs write their records: one without stacks, and one for each of these
    /// kinds.
    pub fn bpf(&mut self, kinds: &[StackFields]) {
        for &stack in [StackFields::default()].iter().chain(kinds) {
            let spec = EventSpec {
                name: "BPF calls".to_owned(),
                role: Role::BpfCall,
                sample_type: perf::SAMPLE_BPF,
                format: None,
                shown: true,
                terms: Terms::default(),
            };
            let event = PlannedEvent { spec, counts: Counts::BpfOutput, filter: None, inherit: false, stack: StackFields::default() };
            self.add(event, stack);
        }
    }

    /// Adds the `syscalls:` events of each syscall.
    ///
    /// # Errors
    /// None of the requested calls has events in this kernel; the error names them.
    pub fn own_events(&mut self, armed: &[&'static Syscall], selection: &Selection, notes: &mut Vec<String>) -> anyhow::Result<()> {
        let before = self.events.len();
        for &syscall in armed {
            let Some(row) = lookup::index_by_name(syscall.name) else { continue };
            let (enter, exit) = (format!("sys_enter_{}", syscall.event), format!("sys_exit_{}", syscall.event));
            let shown = selection.rows.get(usize::from(row)).copied().unwrap_or_default();
            let added = self
                .tracepoint(self.end_of(syscall, shown, Tracepoint::helper("syscalls", &enter, Role::Enter)))
                .and_then(|_| self.tracepoint(self.end_of(syscall, shown, Tracepoint::helper("syscalls", &exit, Role::Exit))));
            if added.is_err() && shown {
                notes.push(format!("this kernel has no events for {}: it cannot be traced", syscall.name));
            }
        }
        if self.events.len() == before {
            let names: Vec<&str> = armed.iter().map(|s| s.name).collect();
            anyhow::bail!("this kernel has no events for {}", names.join(", "));
        }
        Ok(())
    }

    /// Completes the event of a syscall's entry or exit: whether it is shown, and whether it records stacks.
    fn end_of<'a>(&self, syscall: &Syscall, shown: bool, point: Tracepoint<'a>) -> Tracepoint<'a> {
        let exit = point.role == Role::Exit;
        Tracepoint { shown, graph: self.graphs.at(syscall, exit), ..point }
    }

    /// Adds the tracepoints that rtrace needs to interpret the others: how tasks end, what they execute, who shares
    /// descriptors.
    pub fn helpers(&mut self, needs: Needs) {
        if needs.ends && !needs.exits_seen {
            for row in SYSCALLS.iter().filter(|row| matches!(row.does, Special::Exit | Special::ExitGroup)) {
                self.optional(Tracepoint::helper("syscalls", &format!("sys_enter_{}", row.name), Role::Enter));
            }
        }
        if needs.ends || needs.signals {
            let graph = self.graphs.signals;
            self.optional(Tracepoint { graph, ..Tracepoint::helper("signal", "signal_deliver", Role::SignalDeliver) });
        }
        if needs.signals {
            // Records of all receivers are read and selected in user space, because the tasks that a command will have
            // created by then are not known now. The filter drops signals that have no effect
            // (include/trace/events/signal.h).
            let filter = Some("result != 2 && result != 3".to_owned());
            let terms = Terms { no_inherit: !self.inherit, ..Terms::default() };
            self.optional(Tracepoint { filter, terms, ..Tracepoint::helper("signal", "signal_generate", Role::SignalGenerate) });
        }
        // These tracepoints show which pid a task has that makes no traced call.
        let numbers = needs.signals && needs.numbers;
        if needs.exec || numbers {
            self.optional(Tracepoint::helper("sched", "sched_process_exec", Role::ProcessExec));
        }
        if needs.cgroups {
            self.optional(Tracepoint::helper("cgroup", "cgroup_attach_task", Role::CgroupMove));
        }
        if needs.descriptors || needs.cgroups || numbers {
            self.optional(Tracepoint::helper("task", "task_newtask", Role::NewTask));
        }
    }

    /// Adds the kernel's software events for page faults.
    pub fn faults(&mut self, faults: Faults) {
        let kinds = [("major-faults", Role::FaultMajor, Counts::FaultsMajor), ("minor-faults", Role::FaultMinor, Counts::FaultsMinor)];
        for (name, role, counts) in kinds {
            let wanted = match faults {
                Faults::All => true,
                Faults::Major => role == Role::FaultMajor,
                Faults::Minor => role == Role::FaultMinor,
            };
            if wanted {
                let spec = EventSpec {
                    name: name.to_owned(),
                    role,
                    sample_type: perf::SAMPLE_FAULT,
                    format: None,
                    shown: true,
                    terms: Terms::default(),
                };
                let stack = Graph::of_event(&spec.terms, self.general).fields();
                self.add(PlannedEvent { spec, counts, filter: None, inherit: self.inherit, stack: StackFields::default() }, stack);
            }
        }
    }
}

/// The facts that must be traced in addition to the calls. None is traced without need, because closing a tracepoint
/// takes 36 to 70 ms at the end (in the background, but a trace that begins in that time waits).
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// How tasks end.
    pub ends: bool,
    /// Whether exit and exit_group are traced anyway.
    pub exits_seen: bool,
    /// Signals and their senders.
    pub signals: bool,
    /// Whether pids in the fields of events must be translated, because they belong to another pid namespace than
    /// rtrace's.
    pub numbers: bool,
    /// The names of executed programs.
    pub exec: bool,
    /// Which tasks share a descriptor table.
    pub descriptors: bool,
    /// Which task is in which cgroup.
    pub cgroups: bool,
}
