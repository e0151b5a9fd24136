//! Planned events, one by one: what each kind of them needs.

use super::PlannedEvent;
use crate::beauty::lookup;
use crate::beauty::row::Syscall;
use crate::cli::request::Faults;
use crate::cli::select::Selection;
use crate::event::EventIndex;
use crate::kernel::format::Format;
use crate::kernel::machine;
use crate::kernel::tracefs::Tracefs;
use crate::source::session::{EventSpec, Role, Terms};
use crate::sys::perf::{self, Counts};

use super::mechanism::raw_filter;

/// Adds events to a plan.
pub struct Adding<'a> {
    pub tracefs: &'a Tracefs,
    pub events: &'a mut Vec<PlannedEvent>,
    pub inherit: bool,
}

/// How one tracepoint is added.
pub struct Tracepoint<'a> {
    pub subsystem: &'a str,
    pub name: &'a str,
    pub role: Role,
    pub shown: bool,
    pub terms: Terms,
    pub filter: Option<String>,
}

impl<'a> Tracepoint<'a> {
    /// One that rtrace needs to understand others.
    pub fn helper(subsystem: &'a str, name: &'a str, role: Role) -> Tracepoint<'a> {
        Tracepoint { subsystem, name, role, shown: false, terms: Terms::default(), filter: None }
    }
}

impl Adding<'_> {
    /// Adds a tracepoint; the same one twice would be counted twice, so the second time it only becomes shown.
    ///
    /// # Errors
    /// This kernel does not have it, or its format cannot be read.
    pub fn tracepoint(&mut self, point: Tracepoint) -> anyhow::Result<EventIndex> {
        let name = format!("{}:{}", point.subsystem, point.name);
        if let Some(index) = self.position(point.subsystem, point.name) {
            let known = &mut self.events[usize::from(index.0)].spec;
            known.shown |= point.shown;
            if known.role == Role::Tracepoint {
                known.role = point.role;
            }
            if point.terms != Terms::default() {
                known.terms = point.terms;
            }
            return Ok(index);
        }
        let format = self.tracefs.format(point.subsystem, point.name)?;
        Ok(self.push(name, point, format))
    }

    /// Where an event stands, if it was added.
    pub fn position(&self, subsystem: &str, name: &str) -> Option<EventIndex> {
        let name = format!("{subsystem}:{name}");
        self.events.iter().position(|e| e.spec.name == name).map(|at| EventIndex(at as u16))
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
        let inherit = self.inherit && !point.terms.no_inherit;
        let (counts, sample_type) = match point.role {
            Role::Tracepoint | Role::StatRuntime => (Counts::Weighted(format.id), perf::SAMPLE_WEIGHTED),
            _ => (Counts::Tracepoint(format.id), perf::SAMPLE_TRACEPOINT),
        };
        let spec = EventSpec { name, role: point.role, sample_type, format: Some(format), shown: point.shown, terms: point.terms };
        self.events.push(PlannedEvent { spec, counts, filter: point.filter, inherit });
        EventIndex((self.events.len() - 1) as u16)
    }

    /// `raw_syscalls`, filtered by number unless all syscalls are wanted.
    pub fn raw(&mut self, armed: &[&'static Syscall], everything: bool, compat: bool) -> anyhow::Result<()> {
        let native = machine::NATIVE_ABI;
        for (name, role, exit) in [("sys_enter", Role::RawEnter, false), ("sys_exit", Role::RawExit, true)] {
            let filter = (!everything).then(|| raw_filter(armed, native, compat, exit));
            self.tracepoint(Tracepoint { filter, shown: true, ..Tracepoint::helper("raw_syscalls", name, role) })?;
        }
        Ok(())
    }

    /// The event by which the BPF programs' records come.
    pub fn bpf(&mut self) {
        let spec = EventSpec {
            name: "BPF calls".to_owned(),
            role: Role::BpfCall,
            sample_type: perf::SAMPLE_BPF,
            format: None,
            shown: true,
            terms: Terms::default(),
        };
        self.events.push(PlannedEvent { spec, counts: Counts::BpfOutput, filter: None, inherit: false });
    }

    /// The events of each syscall.
    ///
    /// # Errors
    /// A name, if none of the calls asked for has events here.
    pub fn own_events(&mut self, armed: &[&'static Syscall], selection: &Selection, notes: &mut Vec<String>) -> anyhow::Result<()> {
        let before = self.events.len();
        for syscall in armed {
            let Some(row) = lookup::index_by_name(syscall.name) else { continue };
            let (enter, exit) = (format!("sys_enter_{}", syscall.event), format!("sys_exit_{}", syscall.event));
            let shown = selection.rows.get(usize::from(row)).copied().unwrap_or_default();
            let added = self
                .tracepoint(Tracepoint { shown, ..Tracepoint::helper("syscalls", &enter, Role::Enter { syscall: row }) })
                .and_then(|_| self.tracepoint(Tracepoint { shown, ..Tracepoint::helper("syscalls", &exit, Role::Exit { syscall: row }) }));
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

    /// What rtrace must know to understand the rest: how tasks end, what they execute, who shares descriptors.
    pub fn helpers(&mut self, needs: Needs) {
        if needs.ends {
            if !needs.exits_seen {
                for name in ["exit", "exit_group"] {
                    let Some(row) = lookup::index_by_name(name) else { continue };
                    self.optional(Tracepoint::helper("syscalls", &format!("sys_enter_{name}"), Role::Enter { syscall: row }));
                }
            }
            self.optional(Tracepoint::helper("signal", "signal_deliver", Role::SignalDeliver));
        } else if needs.signals {
            self.optional(Tracepoint::helper("signal", "signal_deliver", Role::SignalDeliver));
        }
        if needs.exec {
            self.optional(Tracepoint::helper("sched", "sched_process_exec", Role::ProcessExec));
        }
        if needs.descriptors {
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
                self.events.push(PlannedEvent { spec, counts, filter: None, inherit: self.inherit });
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
    pub signals: bool,
    /// What is executed, by name.
    pub exec: bool,
    /// Which tasks share a descriptor table.
    pub descriptors: bool,
}
