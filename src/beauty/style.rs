//! How events look: a style turns each into text, and decodes nothing itself.

use super::json::Json;
use super::perf::Perf;
use crate::event::{Comm, Event};
use crate::session::Session;
use crate::show::{self, Show};
use crate::stack::name::Names;

/// What a style may ask beside an event.
pub struct Known<'a> {
    pub session: &'a Session,
    /// What a task was called at the time of the event.
    pub comm: &'a dyn Fn(i32) -> Option<Comm>,
    /// What frames of stacks are called.
    pub names: &'a dyn Names,
}

/// How the trace went, once it is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// `None` where no calls were traced, or the kernel did not say how many there were.
    pub calls: Option<CallsVerdict>,
    /// The events that were asked for beside calls, and what became of their records.
    pub events: Vec<EventVerdict>,
    /// Lost records of which no event tells where they are missing.
    pub unplaced: u64,
    /// There were events about losses that could not say how many records they are about.
    pub gaps_without_size: bool,
}

/// What became of the calls that were issued: shown, lost, held back and given up are all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsVerdict {
    pub issued: u64,
    pub shown: u64,
    pub lost: u64,
    /// Not shown because of a filter, a switch or a limit.
    pub held_back: u64,
    /// Not shown because the output could not be written.
    pub given_up: u64,
}

/// What became of an event's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventVerdict {
    pub name: String,
    pub issued: u64,
    pub received: u64,
    pub lost: u64,
}

/// A way to write events.
pub trait Style {
    /// Appends what an event is in this style, with what ends it. Nothing is appended for an event that has no place in the style.
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, known: &Known<'_>);

    /// Appends what comes behind the last event.
    fn end(&mut self, out: &mut Vec<u8>, verdict: &Verdict, session: &Session);

    /// Somebody reads it on a terminal from now on, whose lines are so wide; `None` if they may be of any width.
    fn on_terminal(&mut self, _width: Option<usize>) {}
}

/// The style that was asked for.
pub fn of(show: &Show, session: &Session, color: bool) -> Box<dyn Style> {
    match show.style {
        show::Style::Perf => Box::new(Perf::new(show, session, color)),
        show::Style::Json => Box::new(Json::new(show.string_limit)),
    }
}
