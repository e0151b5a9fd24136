//! Planned events, one by one: what each kind of them needs.

use super::PlannedEvent;
use crate::beauty::lookup;
use crate::beauty::row::Syscall;
use crate::bpf::user::Output;
use crate::event::EventIndex;
use crate::kernel::format::Format;
use crate::kernel::machine::NATIVE_ABI;
use crate::kernel::tracefs::Tracefs;
use crate::probe::made::Made;
use crate::request::select::Selection;
use crate::request::{Faults, Graphs};
use crate::session::{EventSpec, Role, Terms};
use crate::sys::perf::{self, Counts, StackFields};
use std::sync::Arc;

use super::by_instance::ByInstance;
use super::graphs::{CallGraphs, Graph};
use super::mechanism::{all_but, raw_filter};

/// Adds events to a plan.
pub struct Adding<'a> {
    pub tracefs: &'a Tracefs,
    /// What perf gives nothing of.
    pub by_instance: &'a ByInstance,
    /// The events of probes.
    pub made: &'a Made,
    pub events: &'a mut Vec<PlannedEvent>,
    pub inherit: bool,
    pub graphs: &'a CallGraphs,
    /// What holds for events that are no syscalls.
    pub general: &'a Graphs,
}

/// How one tracepoint is added.
pub struct Tracepoint<'a> {
    pub subsystem: &'a str,
    pub name: &'a str,
    pub role: Role,
    pub shown: bool,
    pub terms: Terms,
    pub filter: Option<String>,
    pub graph: Graph,
    /// perf gives nothing of it, which is not known otherwise.
    pub by_instance: bool,
}

impl<'a> Tracepoint<'a> {
    /// One that rtrace needs to understand others.
    pub fn helper(subsystem: &'a str, name: &'a str, role: Role) -> Tracepoint<'a> {
        let (terms, graph) = (Terms::default(), Graph::default());
        Tracepoint { subsystem, name, role, shown: false, terms, filter: None, graph, by_instance: false }
    }
}

impl Adding<'_> {
    /// Adds a tracepoint. One that is there for the same purpose and lets everything through is not added again, because it would be counted twice; what rtrace needs for itself and
    /// what the user asked to see are different purposes, so that neither changes what the other gets.
    ///
    /// # Errors
    /// This kernel does not have it, or its format cannot be read.
    pub fn tracepoint(&mut self, point: Tracepoint) -> anyhow::Result<EventIndex> {
        let name = format!("{}:{}", point.subsystem, point.name);
        let serves = |event: &PlannedEvent| event.spec.name == name && event.spec.role == point.role && event.filter == point.filter;
        if let Some(at) = self.events.iter().position(serves) {
            let (index, known) = (EventIndex(at as u16), &mut self.events[at].spec);
            known.shown |= point.shown;
            if point.terms != Terms::default() {
                known.terms = point.terms;
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

    /// Where an event stands that the user asked to see.
    pub fn position(&self, subsystem: &str, name: &str) -> Option<EventIndex> {
        let name = format!("{subsystem}:{name}");
        let is_it = |event: &PlannedEvent| event.spec.name == name && event.spec.role == Role::Tracepoint;
        self.events.iter().position(is_it).map(|at| EventIndex(at as u16))
    }

    pub fn format(&self, index: EventIndex) -> Option<Format> {
        self.events.get(usize::from(index.0))?.spec.format.clone()
    }

    /// Lets the kernel hold back what does not fulfil this, in its filter language.
    pub fn filter(&mut self, index: EventIndex, text: String) {
        if let Some(event) = self.events.get_mut(usize::from(index.0)) {
            event.filter = Some(text);
        }
    }

    /// Adds one that older kernels may lack, if it is there.
    fn optional(&mut self, point: Tracepoint) {
        let _ = self.tracepoint(point);
    }

    fn push(&mut self, name: String, point: Tracepoint, format: Format) -> EventIndex {
        let device = self.made.device(point.subsystem, point.name);
        let inherit = self.inherit && !point.terms.no_inherit && device.is_none();
        let (counts, sample_type) = match (point.role, device) {
            _ if point.by_instance => (Counts::Tracepoint(format.id), 0),
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

    /// What a program of the user's own gives, from whatever task it runs in.
    pub fn output(&mut self, output: &Output, terms: &Terms) {
        let terms = Terms { no_inherit: terms.no_inherit || !self.inherit, ..terms.clone() };
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

    /// `raw_syscalls`, filtered by number unless all syscalls are wanted.
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
            // Without words, a filter would be of no calls: all are among the others.
            let groups = std::iter::once((rest, rest_filter)).filter(|(_, filter)| filter.as_ref().is_none_or(|text| !text.is_empty()));
            for (graph, filter) in groups.chain(of_others).collect::<Vec<_>>() {
                let point = Tracepoint { filter, shown: true, graph, ..Tracepoint::helper("raw_syscalls", name, role) };
                self.push(format!("raw_syscalls:{name}"), point, format.clone());
            }
        }
        Ok(())
    }

    /// How the stack is taken at this end of most calls, and the calls of which it is taken otherwise: events have one way each.
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

    /// The events by which the BPF programs' records come: without a stack, and with these kinds.
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

    /// The events of each syscall.
    ///
    /// # Errors
    /// A name, if none of the calls asked for has events here.
    pub fn own_events(&mut self, armed: &[&'static Syscall], selection: &Selection, notes: &mut Vec<String>) -> anyhow::Result<()> {
        let before = self.events.len();
        for &syscall in armed {
            let Some(row) = lookup::index_by_name(syscall.name) else { continue };
            let (enter, exit) = (format!("sys_enter_{}", syscall.event), format!("sys_exit_{}", syscall.event));
            let shown = selection.rows.get(usize::from(row)).copied().unwrap_or_default();
            let added = self
                .tracepoint(self.end_of(syscall, shown, Tracepoint::helper("syscalls", &enter, Role::Enter { syscall: row })))
                .and_then(|_| {
                    self.tracepoint(self.end_of(syscall, shown, Tracepoint::helper("syscalls", &exit, Role::Exit { syscall: row })))
                });
            if added.is_err() && shown {
                notes.push(format!("this kernel has no events for {}: it cannot be seen", syscall.name));
            }
        }
        if self.events.len() == before {
            let names: Vec<&str> = armed.iter().map(|s| s.name).collect();
            anyhow::bail!("this kernel has no events for {}", names.join(", "));
        }
        Ok(())
    }

    /// An event of one end of a syscall, with the stack if it is to be taken there.
    fn end_of<'a>(&self, syscall: &Syscall, shown: bool, point: Tracepoint<'a>) -> Tracepoint<'a> {
        let exit = matches!(point.role, Role::Exit { .. });
        Tracepoint { shown, graph: self.graphs.at(syscall, exit), ..point }
    }

    /// Leaves out what the kernel copied of strings into the entries of calls.
    pub fn without_copied_strings(&mut self) {
        let of_calls = self.events.iter_mut().filter(|event| matches!(event.spec.role, Role::Enter { .. }));
        for format in of_calls.filter_map(|event| event.spec.format.as_mut()) {
            let strings: Vec<String> = format.user_copies().into_iter().filter(|copy| copy.is_text).map(|copy| copy.field.name).collect();
            format.fields.retain(|field| !strings.contains(&field.name));
        }
    }

    /// What rtrace must know to understand the rest: how tasks end, what they execute, who shares descriptors.
    pub fn helpers(&mut self, needs: Needs) {
        if needs.ends && !needs.exits_seen {
            for name in ["exit", "exit_group"] {
                let Some(row) = lookup::index_by_name(name) else { continue };
                self.optional(Tracepoint::helper("syscalls", &format!("sys_enter_{name}"), Role::Enter { syscall: row }));
            }
        }
        if needs.ends || needs.signals {
            self.optional(Tracepoint::helper("signal", "signal_deliver", Role::SignalDeliver));
        }
        if needs.signals {
            // Who is sent a signal is decided here: whom a command will have made by then is not known now. What comes to nothing is of no interest (include/trace/events/signal.h).
            let filter = Some("result != 2 && result != 3".to_owned());
            let terms = Terms { no_inherit: !self.inherit, ..Terms::default() };
            self.optional(Tracepoint { filter, terms, ..Tracepoint::helper("signal", "signal_generate", Role::SignalGenerate) });
        }
        // From these it is known which task has which number, where it makes no call that is traced.
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

    /// Page faults, as the kernel's software events count them.
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

/// What must be known beside the calls themselves. Each tracepoint takes 36-70 ms to close at the end (in the background, but a trace that begins in that time waits), so none is armed without need.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// How tasks end.
    pub ends: bool,
    /// exit and exit_group are armed anyway.
    pub exits_seen: bool,
    /// Signals, and who sends them.
    pub signals: bool,
    /// Whom the numbers in the fields of events mean, since these are not rtrace's own.
    pub numbers: bool,
    /// What is executed, by name.
    pub exec: bool,
    /// Which tasks share a descriptor table.
    pub descriptors: bool,
    /// Who is in which cgroup.
    pub cgroups: bool,
}
