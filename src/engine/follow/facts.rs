//! What is known before the first record: what the stream has, and what is wanted of it.

use crate::engine::Settings;
use crate::event::{Abi, EventIndex, TaskId};
use crate::kernel::format::FormatField;
use crate::session::{EventSpec, Role, Scope, Session};
use crate::source::frame::field;

/// The session and the settings, as the follower asks for them. Nothing of it changes.
pub(super) struct Facts {
    pub settings: Settings,
    pub abi: Abi,
    pub scope: Scope,
    /// Descriptors are followed.
    pub descriptors: bool,
    /// Page faults are reported, or stacks are taken.
    pub follows_maps: bool,
    /// The event of the BPF programs' records, if they trace.
    pub bpf: Option<EventIndex>,
    /// `sched:sched_process_exec` is armed.
    pub execs: bool,
    /// `task:task_newtask` is armed: forks are told with their flags.
    pub new_tasks: bool,
    /// Whatever puts a task into another pid namespace than its maker's is in the stream.
    pub namespaces_complete: bool,
    /// Path names come by a tracefs instance: they are read when calls return.
    pub names_at_exit: bool,
    excluded: Vec<i32>,
    events: Vec<Fact>,
}

/// What is known of an event.
struct Fact {
    /// Its records come by a tracefs instance.
    by_instance: bool,
    /// The field that says where a probed function returned to.
    returns: Option<FormatField>,
    /// It is to be given as it is, too.
    shown: bool,
    /// Whether what tasks make is of interest, too.
    inherits: bool,
    /// It is what a program of the user's gives.
    is_output: bool,
}

impl Facts {
    pub fn new(session: &Session, settings: Settings) -> Facts {
        let events = &session.events.events;
        let armed = |role| session.events.find(role).is_some();
        Facts {
            settings,
            abi: session.abi,
            scope: session.scope,
            descriptors: settings.fd_paths && session.fds_complete,
            follows_maps: armed(Role::FaultMajor)
                || armed(Role::FaultMinor)
                || events.iter().any(|event| returns(event).is_some() || event.sample_type & field::STACK != 0),
            bpf: session.events.find(Role::BpfCall),
            execs: armed(Role::ProcessExec),
            new_tasks: armed(Role::NewTask),
            namespaces_complete: armed(Role::NewTask) && session.namespaces_complete,
            names_at_exit: events.iter().any(|event| event.role == Role::PathName && event.is_by_instance()),
            excluded: session.excluded.clone(),
            events: events.iter().map(Fact::of).collect(),
        }
    }

    fn event(&self, event: EventIndex) -> Option<&Fact> {
        self.events.get(usize::from(event.0))
    }

    /// The event's records come by a tracefs instance.
    #[inline]
    pub fn is_by_instance(&self, event: EventIndex) -> bool {
        self.event(event).is_some_and(|fact| fact.by_instance)
    }

    /// The event is to be given as it is, too.
    #[inline]
    pub fn is_shown(&self, event: EventIndex) -> bool {
        self.event(event).is_some_and(|fact| fact.shown)
    }

    /// The event is what a program of the user's gives.
    #[inline]
    pub fn is_output(&self, event: EventIndex) -> bool {
        self.event(event).is_some_and(|fact| fact.is_output)
    }

    /// The event is of interest in what traced tasks make, too.
    pub fn inherits(&self, event: EventIndex) -> bool {
        self.event(event).is_none_or(|fact| fact.inherits)
    }

    /// The field of the event that says where a probed function returned to.
    #[inline]
    pub fn returns(&self, event: EventIndex) -> Option<&FormatField> {
        self.event(event)?.returns.as_ref()
    }

    /// The task is rtrace's own, or its output's reader.
    pub fn is_excluded(&self, task: TaskId) -> bool {
        self.excluded.contains(&task.tid) || self.excluded.contains(&task.pid)
    }
}

impl Fact {
    fn of(spec: &EventSpec) -> Fact {
        Fact {
            by_instance: spec.is_by_instance(),
            returns: returns(spec),
            shown: is_shown(spec),
            inherits: !spec.terms.no_inherit,
            is_output: spec.role == Role::Output,
        }
    }
}

/// The field of a return probe that says where the function returned to.
pub(super) fn returns(spec: &EventSpec) -> Option<FormatField> {
    spec.format.as_ref()?.field("__probe_ret_ip").cloned()
}

/// Whether an event's records are given as they are. Those that rtrace needs for itself are not: they become calls,
/// page
/// faults and what is known of tasks. What the user asks to see has an event of its own beside them.
fn is_shown(spec: &EventSpec) -> bool {
    match spec.role {
        Role::Tracepoint | Role::Output => spec.shown,
        Role::StatRuntime => true,
        _ => false,
    }
}
