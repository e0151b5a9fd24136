//! How a call ended, and how long it took.

use crate::event::{Call, ExitState, Time};
use crate::show::Outcomes;

/// Returns how a call ended. A call in flight has not returned.
pub fn outcome(call: &Call) -> Outcomes {
    match call.exit {
        ExitState::Returned { .. } if call.errno().is_some() => Outcomes::FAILED,
        ExitState::Returned { .. } => Outcomes::SUCCESSFUL,
        ExitState::Never | ExitState::Pending => Outcomes::UNFINISHED,
        ExitState::Unseen => Outcomes::UNAVAILABLE,
    }
}

/// Returns whether a call took at least `least` nanoseconds. A call in flight, and one that does not return, has lasted
/// until now.
pub fn took_at_least(call: &Call, least: u64, now: Time) -> bool {
    let took = match call.exit {
        ExitState::Pending | ExitState::Never => Some(now.since(call.id.start)),
        ExitState::Returned { .. } | ExitState::Unseen => call.duration(),
    };
    took.is_some_and(|took| took >= least)
}
