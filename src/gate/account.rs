//! The counts of the events that the gate shows and withholds.

/// Counts of shown and withheld events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The number of requested events, which `--max-events` limits.
    pub shown: u64,
    /// The number of calls among them.
    pub calls_shown: u64,
    /// The number of received calls that were not shown.
    pub calls_held_back: u64,
    /// Of these, the calls whose filter could not be decided, because a value that it compares is not known.
    pub undecided: u64,
    /// Calls that were selected and not shown, by reason.
    pub withheld: WithheldCalls,
    /// The number of shown signals, which are not counted in `shown`.
    pub signals_shown: u64,
}

/// The number of selected calls that were not shown, by the option that withheld them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithheldCalls {
    /// Calls before `--switch-on` or after `--switch-off`.
    pub switch: u64,
    /// Calls that ended otherwise than requested (`--failure`).
    pub failure: u64,
    /// Calls whose stack has too few frames (`--min-stack`).
    pub stack: u64,
    /// Calls that refer to none of the paths (`--path`) or descriptors.
    pub path: u64,
    /// Calls that took less time, or whose duration is not known (`--duration`).
    pub duration: u64,
    /// Calls that ended outside the span (`--time`).
    pub time: u64,
    /// Calls that no filter lets through (`--filter`), or that exceed `nr=` of all items that selected them.
    pub filter: u64,
}
