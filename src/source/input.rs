//! The input of the engine.

use super::chunk::Round;
use crate::event::{Synthesized, Time};

/// One piece of the engine's input. All events follow from the session and from the pieces in their order, so a
/// recording of both gives the same events again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// One complete pass over all rings.
    Round(Round),
    /// Records that were synthesized since the last round: the answers to the reads of /proc that the engine asked for
    /// after that round. They are not older than the round.
    Answers(Vec<(Time, Synthesized)>),
}
