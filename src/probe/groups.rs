//! The groups in which tracefs has dynamic events for which nobody chose one.

use super::grammar::Place;

/// All synthetic events.
pub const SYNTHETIC: &str = "synthetic";
/// All user events, but those of [`USER_MULTI`].
pub const USER: &str = "user_events";
/// User events of which several may have one name and different fields (USER_EVENT_REG_MULTI_FORMAT).
pub const USER_MULTI: &str = "user_events_multi";

/// Whether programs write the events of this group.
pub fn is_of_user_events(group: &str) -> bool {
    [USER, USER_MULTI].contains(&group)
}

/// The group that the kernel gives a probe.
pub fn by_kind(place: &Place) -> &'static str {
    match place {
        Place::Kernel { .. } => "kprobes",
        Place::File { .. } | Place::Usdt { .. } => "uprobes",
        Place::Function { .. } => "fprobes",
        Place::Tracepoint { .. } => "tracepoints",
        Place::Event { .. } => "eprobes",
        Place::Synthetic { .. } => SYNTHETIC,
        Place::User { .. } => USER,
    }
}
