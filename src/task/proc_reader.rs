//! Reads of /proc that the engine asks for. Their answers are synthesized records.

use crate::event::{Synthesized, Time};

/// A read of /proc that the engine asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcRead {
    /// The current file of a process's descriptor.
    Fd { pid: i32, fd: i32 },
    /// The current properties of a task.
    Task { tid: i32 },
}

/// Performs reads of /proc. A replay performs none, because the recorded input has the answers.
pub trait ProcReader {
    /// Reads the current file of a descriptor: a [`Synthesized::Fd`] with the time after the read.
    fn fd(&mut self, pid: i32, fd: i32) -> Option<(Time, Synthesized)>;

    /// Reads the current properties of a task: a [`Synthesized::Task`] or [`Synthesized::NoTask`].
    fn task(&mut self, tid: i32) -> Option<(Time, Synthesized)>;

    /// Performs the reads one after the other, and returns their answers.
    fn answer(&mut self, reads: &[ProcRead]) -> Vec<(Time, Synthesized)> {
        let answers = reads.iter().filter_map(|read| match *read {
            ProcRead::Fd { pid, fd } => self.fd(pid, fd),
            ProcRead::Task { tid } => self.task(tid),
        });
        answers.collect()
    }
}
