//! The state that sinks and the gate can query for an event.

use crate::event::Time;
use crate::session::Session;
use crate::stack::name::Names;
use crate::task::Tasks;

/// The state at the time of an event.
pub struct View<'a> {
    /// The session of the stream: its events with their formats, and the machine.
    pub session: &'a Session,
    /// The tasks as the stream describes them up to the event: comms, processes, cgroups.
    pub tasks: &'a Tasks,
    /// The stream's time at this round: no later event is older.
    pub now: Time,
    /// The symbol names of frames.
    pub names: &'a dyn Names,
}
