//! The groups (tracefs subsystems) that dynamic events have by default.

use super::grammar::ProbePoint;

/// The group of all synthetic events.
pub const SYNTHETIC: &str = "synthetic";
/// The group of all user events except those of [`USER_MULTI`].
pub const USER: &str = "user_events";
/// The group of user events of which several may have the same name and different fields (USER_EVENT_REG_MULTI_FORMAT).
pub const USER_MULTI: &str = "user_events_multi";

/// Returns whether this is a group of user events, which programs write.
pub fn is_of_user_events(group: &str) -> bool {
    [USER, USER_MULTI].contains(&group)
}

/// Returns the group that the kernel chooses for a probe.
pub fn by_kind(place: &ProbePoint) -> &'static str {
    match place {
        ProbePoint::Kernel { .. } => "kprobes",
        ProbePoint::File { .. } | ProbePoint::Usdt { .. } => "uprobes",
        ProbePoint::Function { .. } => "fprobes",
        ProbePoint::Tracepoint { .. } => "tracepoints",
        ProbePoint::Event { .. } => "eprobes",
        ProbePoint::Synthetic { .. } => SYNTHETIC,
        ProbePoint::User { .. } => USER,
    }
}
