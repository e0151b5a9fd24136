//! The constant inputs of the follower: which records the stream has.

use crate::event::{Abi, EventIndex, TaskId};
use crate::kernel::format::FormatField;
use crate::session::{EventSpec, InjectedCalls, Role, Scope, Session};
use crate::source::frame::field;

/// The properties of the session that the follower queries. They do not change.
pub(super) struct StreamProperties {
    /// Calls that are in flight for longer than this, in nanoseconds, are reported as pending.
    pub pending_after: Option<u64>,
    /// Signals are reported as events.
    pub signals: bool,
    /// The machine's native ABI. Programs of other ABIs may run on it.
    pub abi: Abi,
    /// The tasks of which the stream has records; tasks that inherit the events come in addition.
    pub scope: Scope,
    /// Descriptors are tracked.
    pub descriptors: bool,
    /// Mappings are tracked, for page faults, return addresses or call chains.
    pub follows_maps: bool,
    /// The event of the BPF engine's records, if it is used.
    pub bpf: Option<EventIndex>,
    /// `sched:sched_process_exec` is armed.
    pub execs: bool,
    /// `task:task_newtask` is armed, so that forks are reported with their flags.
    pub new_tasks: bool,
    /// The stream has all calls that place a task in another pid namespace than its parent's.
    pub namespaces_complete: bool,
    /// Path names come through a tracefs instance, and are read when calls return.
    pub names_at_exit: bool,
    /// The calls that are changed.
    pub injected: InjectedCalls,
    excluded: Vec<i32>,
    events: Vec<EventProperties>,
}

/// The properties of an event.
struct EventProperties {
    /// Its records come through a tracefs instance.
    by_instance: bool,
    /// The field with the return address of a probed function.
    returns: Option<FormatField>,
    /// Its records are emitted as tracepoint events.
    shown: bool,
    /// It is also traced in the descendants of its targets.
    inherits: bool,
    /// Its records are the output of the user's BPF program.
    is_output: bool,
}

impl StreamProperties {
    pub fn new(session: &Session, pending_after: Option<u64>) -> StreamProperties {
        let events = &session.events.events;
        let armed = |role| session.events.find(role).is_some();
        StreamProperties {
            pending_after,
            signals: session.signals,
            abi: session.abi,
            scope: session.scope,
            descriptors: session.fds_complete,
            follows_maps: armed(Role::FaultMajor)
                || armed(Role::FaultMinor)
                || events.iter().any(|event| returns(event).is_some() || event.sample_type & field::STACK != 0),
            bpf: session.events.find(Role::BpfCall),
            execs: armed(Role::ProcessExec),
            new_tasks: armed(Role::NewTask),
            namespaces_complete: armed(Role::NewTask) && session.namespaces_complete,
            names_at_exit: events.iter().any(|event| event.role == Role::PathName && event.is_by_instance()),
            injected: session.injected.clone(),
            excluded: session.excluded.clone(),
            events: events.iter().map(EventProperties::of).collect(),
        }
    }

    fn event(&self, event: EventIndex) -> Option<&EventProperties> {
        self.events.get(usize::from(event.0))
    }

    /// Returns whether the event's records come through a tracefs instance.
    #[inline]
    pub fn is_by_instance(&self, event: EventIndex) -> bool {
        self.event(event).is_some_and(|properties| properties.by_instance)
    }

    /// Returns whether the event's records are emitted as tracepoint events.
    #[inline]
    pub fn is_shown(&self, event: EventIndex) -> bool {
        self.event(event).is_some_and(|properties| properties.shown)
    }

    /// Returns whether the event's records are the output of the user's BPF program.
    #[inline]
    pub fn is_output(&self, event: EventIndex) -> bool {
        self.event(event).is_some_and(|properties| properties.is_output)
    }

    /// Returns whether the event is also traced in the descendants of its targets.
    pub fn inherits(&self, event: EventIndex) -> bool {
        self.event(event).is_none_or(|properties| properties.inherits)
    }

    /// Returns the event's field with the return address of a probed function.
    #[inline]
    pub fn returns(&self, event: EventIndex) -> Option<&FormatField> {
        self.event(event)?.returns.as_ref()
    }

    /// Returns whether the task is rtrace's own, or a process that reads its output.
    pub fn is_excluded(&self, task: TaskId) -> bool {
        self.excluded.contains(&task.tid) || self.excluded.contains(&task.pid)
    }
}

impl EventProperties {
    fn of(spec: &EventSpec) -> EventProperties {
        EventProperties {
            by_instance: spec.is_by_instance(),
            returns: returns(spec),
            shown: is_shown(spec),
            inherits: !spec.terms.no_inherit,
            is_output: spec.role == Role::Output,
        }
    }
}

/// Returns the field of a return probe with the function's return address.
pub(super) fn returns(spec: &EventSpec) -> Option<FormatField> {
    spec.format.as_ref()?.field("__probe_ret_ip").cloned()
}

/// Returns whether an event's records are emitted as tracepoint events. Records that rtrace needs itself are not: they
/// become calls, page faults and task state. If the user asks to see such an event, it is armed a second time.
fn is_shown(spec: &EventSpec) -> bool {
    match spec.role {
        Role::Tracepoint | Role::Output => spec.shown,
        Role::StatRuntime => true,
        _ => false,
    }
}
