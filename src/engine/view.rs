//! What may be asked beside an event.

use crate::event::Time;
use crate::session::Session;
use crate::stack::name::Names;
use crate::task::Tasks;

/// What is known at the time of an event.
pub struct View<'a> {
    pub session: &'a Session,
    pub tasks: &'a Tasks,
    /// The stream's time at this round: no later event is older.
    pub now: Time,
    /// What frames are called.
    pub names: &'a dyn Names,
}
