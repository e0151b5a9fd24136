//! Reads of /proc that pure code requests, and that are answered by synthesized records.

use crate::event::{Synthesized, Time};

/// Reads /proc of the live machine. In a replay it returns nothing, because the stream has the records already.
pub trait ProcReader {
    /// Reads the current file of a descriptor: a [`Synthesized::Fd`] with the time after the read.
    fn fd(&mut self, pid: i32, fd: i32) -> Option<(Time, Synthesized)>;
    /// Reads the current properties of a task: a [`Synthesized::Task`] or [`Synthesized::NoTask`].
    fn task(&mut self, tid: i32) -> Option<(Time, Synthesized)>;
}

/// A [`ProcReader`] that reads nothing.
#[derive(Debug, Default)]
pub struct NoProc;

impl ProcReader for NoProc {
    fn fd(&mut self, _: i32, _: i32) -> Option<(Time, Synthesized)> {
        None
    }
    fn task(&mut self, _: i32) -> Option<(Time, Synthesized)> {
        None
    }
}
