//! Looks at the live machine, asked for by pure code and answered by notes.

use crate::event::{Note, Time};

/// Something that can look: /proc when live, nothing in a replay (its notes are in the stream already).
pub trait Look {
    /// What a descriptor is now: a [`Note::Fd`], stamped after the look.
    fn fd(&mut self, pid: i32, fd: i32) -> Option<(Time, Note)>;
    /// Who a task is now: a [`Note::Task`] or [`Note::NoTask`].
    fn task(&mut self, tid: i32) -> Option<(Time, Note)>;
}

/// Looks nowhere.
#[derive(Debug, Default)]
pub struct Blind;

impl Look for Blind {
    fn fd(&mut self, _: i32, _: i32) -> Option<(Time, Note)> {
        None
    }
    fn task(&mut self, _: i32) -> Option<(Time, Note)> {
        None
    }
}
