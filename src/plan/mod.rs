//! Turns the user's request and the facilities of the running kernel into a [`Plan`]: which events are opened, for
//! which tasks, with which filters and buffers.
//!
//! The [`Plan`] is built once, before anything is opened, and building it creates nothing. It only describes the events
//! that the kernel may reject, such as probes for path names; [`crate::arm`] creates them. No code below this folder
//! reads a command-line option. `-v` prints the plan with its reasons.

mod buffers;
mod build;
mod by_device;
mod by_instance;
mod command;
mod event_calls;
mod events;
mod explain;
mod fds;
mod filters;
mod graphs;
mod hooks;
mod injections;
mod injector;
mod items;
mod mechanism;
mod names_at_exit;
mod objects;
pub mod own_only;
mod path_name_events;
mod path_names;
mod paths;
mod requests;
mod snapshots;
pub(crate) mod sums;
mod target;

pub use buffers::{Buffers, RingSize};
pub use build::{PENDING_AFTER, build};
pub use by_device::probes;
pub use command::program;
pub use graphs::any as has_stacks;
pub use injector::Injector;
pub use mechanism::{Mechanism, without};
pub use names_at_exit::AtExit;
pub use path_name_events::PathNameEvents;
pub use path_names::{PathNameSource, PathNames, has_vfs_getname};
pub use paths::unknown_paths;
pub use snapshots::{MatchEvent, SnapshotPlan};

use crate::beauty::lookup;
use crate::event::{Abi, EventIndex};
use crate::gate;
use crate::inject::Rules;
use crate::kernel::output_readers::OutputReader;
use crate::request::Trace;
use crate::request::select::Selection;
use crate::session::{self, EventCalls, EventSpec, FramesMax, Role, Session, Targets};
use crate::sys::perf::{Counts, Delivery, StackFields};

/// The plan of a trace: which events are armed, for which tasks.
#[derive(Debug)]
pub struct Plan {
    /// The tasks that are traced.
    pub targets: Targets,
    /// The CPUs that have a ring.
    pub cpus: Vec<u32>,
    /// The events in the order of their indices. The first is the side band; all other events of a CPU write to its
    /// ring.
    pub events: Vec<PlannedEvent>,
    /// By which events or programs the calls are traced.
    pub mechanism: Mechanism,
    /// The settings of the BPF programs, if these trace the calls.
    pub bpf: Option<crate::bpf::Settings>,
    /// The sizes of the rings and of the queue to the worker, in bytes.
    pub buffers: Buffers,
    /// How snapshots are taken, if the rings are overwritten (`record --snapshot`).
    pub snapshots: Option<SnapshotPlan>,
    /// Calls that are in flight for longer than this, in nanoseconds, are shown as pending. `None` if none is shown.
    pub pending_after: Option<u64>,
    /// Whether signals are reported as events.
    pub signals: bool,
    /// Whether the cgroup of each task is followed.
    pub cgroups: bool,
    /// The syscalls that the request selects.
    pub selection: Selection,
    /// The calls that are recorded to complete tracepoints at their entry and exit.
    pub event_calls: EventCalls,
    /// `Ok` if every call that may change a descriptor table is traced, otherwise the reason why not.
    pub fds: Result<(), &'static str>,
    /// Whether every call that may select another pid namespace for new tasks is traced.
    pub namespaces_complete: bool,
    /// How path names are read, where the BPF programs do not read them.
    pub path_names: Option<PathNames>,
    /// Whether the mappings of processes are followed; page faults and stacks need them.
    pub maps: bool,
    /// The names that the user gave to syscalls (`name=`), by the name of their row.
    pub names: Vec<(String, String)>,
    /// The paths of `--path`, as this machine names them.
    pub paths: Vec<session::PathNames>,
    /// The maximum number of frames of a stack, in general and for single syscalls.
    pub frames_max: FramesMax,
    /// The maximum number of bytes of user memory that the kernel copies into one record of a `syscalls:` event.
    pub copied_bytes: u32,
    /// The calls that are changed (`--inject`).
    pub injections: Rules,
    /// Who changes them.
    pub injector: Injector,
    /// Nanoseconds from rtrace's start until the events are armed (`--delay`).
    pub delay: Option<u64>,
    /// The processes that a system-wide trace leaves out in addition to rtrace itself, with the reason for each.
    pub excluded: Vec<OutputReader>,
    /// Remarks on how the request was understood, printed unless `-q` is given.
    pub remarks: Vec<String>,
    /// Further remarks, printed with `-v` only.
    pub notes: Vec<String>,
}

/// One event that is opened on every CPU and target.
#[derive(Clone, Debug)]
pub struct PlannedEvent {
    /// What the session says of the event.
    pub spec: EventSpec,
    /// What the event counts.
    pub counts: Counts,
    /// The filter, in the kernel's filter language (Documentation/trace/events.rst).
    pub filter: Option<String>,
    /// Whether the event is also opened on the tasks that the targets create.
    pub inherit: bool,
    /// The stack data that each sample has.
    pub stack: StackFields,
}

impl Plan {
    /// Leaves the processes that read or show rtrace's output out of a system-wide trace, which would otherwise show
    /// how its own output is printed.
    pub fn leave_out(&mut self, readers: impl IntoIterator<Item = OutputReader>) {
        if self.targets.is_open_ended() {
            self.excluded.extend(readers);
        }
    }

    /// Returns what becomes of the records of an event of this role. If snapshots are taken, they are overwritten,
    /// except those about tasks, which say what the others mean.
    pub fn delivery(&self, role: Role) -> Delivery {
        match self.snapshots.is_some() && role != Role::SideBand {
            true => Delivery::Overwriting,
            false => Delivery::Kept,
        }
    }

    /// Sets whether a call that takes long is shown while it is in flight. If not, the tasks are not searched for such
    /// calls.
    pub fn show_pending(&mut self, shown: bool) {
        self.pending_after = self.pending_after.filter(|_| shown);
    }

    /// Whether calls are shown while they are in flight.
    pub fn shows_pending(&self) -> bool {
        self.pending_after.is_some()
    }

    /// Binds the selection and the filters of the request to the events of the session.
    ///
    /// # Errors
    /// A part of a filter applies to no event. Building the plan has already checked this for the planned events.
    pub fn bind(&self, request: &Trace, session: &Session) -> anyhow::Result<gate::Settings> {
        let by_kernel = |event: &PlannedEvent| event.spec.role == Role::Tracepoint && event.filter.is_some();
        let filtered = (0..).map(EventIndex).zip(&self.events).filter(|(_, event)| by_kernel(event)).map(|(index, _)| index);
        let stream = gate::Stream {
            events: session.events.events.iter().collect(),
            scope: session.scope,
            abi: session.abi,
            paths: &session.paths,
            filtered: filtered.collect(),
        };
        Ok(gate::Settings { pending: self.shows_pending(), ..gate::bind(request, &self.selection, &stream)? })
    }

    /// Returns whether the request selects calls of this number.
    pub fn selects(&self, abi: Abi, nr: i64) -> bool {
        match lookup::index(abi, nr) {
            Some(row) => self.selection.rows.get(usize::from(row)).copied().unwrap_or_default(),
            None => self.selection.unknown || self.selection.others.iter().any(|(of, number)| *of == abi && i64::from(*number) == nr),
        }
    }

    /// The names of the requests of io_uring that the events have and the request does not select.
    pub fn other_requests(&self) -> Vec<String> {
        requests::others(&self.selection)
    }

    /// Whether the output of the user's BPF programs is also wanted from the tasks that the traced tasks create.
    pub fn outputs_inherit(&self) -> bool {
        self.events.iter().any(|event| event.spec.role == Role::Output && !event.spec.terms.no_inherit)
    }

    /// Whether syscalls are traced.
    pub fn traces_calls(&self) -> bool {
        self.mechanism != Mechanism::None
    }

    /// The pids of all processes that are left out: the excluded processes and rtrace itself.
    pub fn left_out(&self) -> Vec<i32> {
        let own = self.targets.is_open_ended().then(|| std::process::id() as i32);
        self.excluded.iter().map(|reader| reader.pid).chain(own).collect()
    }
}
