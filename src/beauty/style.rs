//! Output styles: a style formats events as text, from values that the decoders provide.

use super::json::Json;
use super::perf::Perf;
use crate::event::{Comm, Event};
use crate::session::Session;
use crate::show::{self, Show};
use crate::stack::name::Names;

/// The data, besides an event, that a style may need to format it.
pub struct StyleContext<'a> {
    pub session: &'a Session,
    /// Returns the comm of a task at the time of the event.
    pub comm: &'a dyn Fn(i32) -> Option<Comm>,
    /// Names of stack frames and of the kernel's functions.
    pub names: &'a dyn Names,
}

/// The account of a finished trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// `None` if no calls were traced, or the kernel did not report their number.
    pub calls: Option<CallsVerdict>,
    /// The requested events other than calls, and the account of their records.
    pub events: Vec<EventVerdict>,
    /// Number of lost records that no lost event accounts for, so that the time of the loss is unknown.
    pub unplaced: u64,
    /// There were lost events without a number of records.
    pub gaps_without_size: bool,
}

/// The account of the issued calls. `shown`, `lost`, `held_back` and `given_up` add up to `issued`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsVerdict {
    pub issued: u64,
    pub shown: u64,
    pub lost: u64,
    /// Calls that a filter, a switch or a limit excluded from the output.
    pub held_back: u64,
    /// Calls that are missing in the output because it could not be written.
    pub given_up: u64,
}

/// The account of an event's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventVerdict {
    pub name: String,
    pub issued: u64,
    pub received: u64,
    pub lost: u64,
}

/// A format for events.
pub trait Style {
    /// Appends the text of an event, with its terminator. Appends nothing for an event that the style does not show.
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, known: &StyleContext<'_>);

    /// Appends the text that follows the last event.
    fn end(&mut self, out: &mut Vec<u8>, verdict: &Verdict, session: &Session);

    /// Formats the following events for a terminal. `width` is the maximum width of a line in columns; `None` means no
    /// limit.
    fn on_terminal(&mut self, _width: Option<usize>) {}
}

/// Creates the requested style.
pub fn create(show: &Show, session: &Session, color: bool) -> Box<dyn Style> {
    match show.style {
        show::Style::Perf => Box::new(Perf::new(show, session, color)),
        show::Style::Json => Box::new(Json::new(show.string_limit)),
    }
}
