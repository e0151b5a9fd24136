//! From what the user typed and what this kernel offers to what is armed, and how.
//!
//! The [`Plan`] is made once, before anything is opened; nobody below reads a flag again. `-v` prints it with its reasons.

mod buffers;
mod build;
mod by_device;
mod by_instance;
mod command;
mod doors;
mod events;
mod explain;
mod fds;
mod filters;
mod graphs;
mod hooks;
mod mechanism;
mod names_at_exit;
mod objects;
pub mod own_only;
mod path_names;
mod paths;
pub(crate) mod sums;
mod target;

pub use buffers::{Buffers, RingSize};
pub use build::build;
pub use by_device::probes;
pub use command::program;
pub use mechanism::{Mechanism, without};
pub use names_at_exit::{AtExit, Trigger};
pub use path_names::{PathNames, Way, has_vfs_getname};

use crate::gate;
use crate::kernel::carriers::Carrier;
use crate::session::{EventSpec, FramesMax, Role, Whom};
use crate::sys::perf::{Counts, StackFields};

/// What is armed, on whom, and what is shown of it.
#[derive(Debug)]
pub struct Plan {
    pub whom: Whom,
    /// The CPUs that have a ring.
    pub cpus: Vec<u32>,
    /// In the order of their indices; the first is the side band, whose ring all others of its CPU share.
    pub events: Vec<PlannedEvent>,
    pub mechanism: Mechanism,
    /// What the BPF programs are told, if they trace the calls.
    pub bpf: Option<crate::bpf::Settings>,
    pub buffers: Buffers,
    pub engine: crate::engine::Settings,
    pub gate: gate::Settings,
    /// Every call that may change a descriptor table is seen; otherwise why not.
    pub fds: Result<(), &'static str>,
    /// Every call that may choose another pid namespace for new tasks is seen.
    pub namespaces_complete: bool,
    /// How path names are known, where the BPF programs do not read them.
    pub path_names: Option<PathNames>,
    /// Page faults and stacks need to know which files processes have mapped.
    pub maps: bool,
    /// What the user calls syscalls (`name=`), by the place of their row.
    pub names: Vec<(u16, String)>,
    pub frames_max: FramesMax,
    /// Bytes of user memory at most that the kernel copies into records of `syscalls:` events.
    pub copied_bytes: u32,
    /// Nanoseconds from the start to the arming.
    pub delay: Option<u64>,
    /// Left out of a system-wide trace, beside rtrace itself: who, and why.
    pub excluded: Vec<Carrier>,
    /// What the user ought to know about how the request was understood: said unless `-q` is given.
    pub remarks: Vec<String>,
    /// The same for `-v` alone.
    pub notes: Vec<String>,
}

/// One event that is opened on every CPU and target.
#[derive(Clone, Debug)]
pub struct PlannedEvent {
    pub spec: EventSpec,
    pub counts: Counts,
    /// In the kernel's filter language.
    pub filter: Option<String>,
    pub inherit: bool,
    pub stack: StackFields,
}

impl Plan {
    /// Leaves those out of a system-wide trace who carry its output: it would show itself showing.
    pub fn leave_out(&mut self, carriers: impl IntoIterator<Item = Carrier>) {
        if self.whom.is_anyone() {
            self.excluded.extend(carriers);
        }
    }

    /// Decides whether a call that takes long is shown while it is in flight. Where it is not, nobody looks for such calls.
    pub fn show_pending(&mut self, shown: bool) {
        self.gate.pending = shown;
        self.engine.pending_after = self.engine.pending_after.filter(|_| shown);
    }

    /// Whether calls are shown while they are in flight.
    pub fn shows_pending(&self) -> bool {
        self.gate.pending
    }

    /// Whether what programs of the user's own give is wanted of the tasks, too, that the traced ones make.
    pub fn outputs_inherit(&self) -> bool {
        self.events.iter().any(|event| event.spec.role == Role::Output && !event.spec.terms.no_inherit)
    }

    /// Whether calls are among what is traced.
    pub fn traces_calls(&self) -> bool {
        self.mechanism != Mechanism::None
    }

    /// The processes that are left out: those, and rtrace itself.
    pub fn left_out(&self) -> Vec<i32> {
        let own = self.whom.is_anyone().then(|| std::process::id() as i32);
        self.excluded.iter().map(|carrier| carrier.pid).chain(own).collect()
    }
}
