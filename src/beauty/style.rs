//! Output styles: a style formats events as text, from values that the decoders provide.

use super::json::Json;
use super::perf::Perf;
use super::strace::Strace;
use crate::event::{Comm, Event, Verdict};
use crate::session::Session;
use crate::show::{self, Show};
use crate::stack::name::Names;
use std::sync::Arc;

/// The data, besides an event, that a style may need to format it.
pub struct StyleContext<'a> {
    /// The session of the stream: its events with their formats, and the machine.
    pub session: &'a Session,
    /// Returns the comm of a task at the time of the event.
    pub comm: &'a dyn Fn(i32) -> Option<Comm>,
    /// Returns the cgroup of a task at the time of the event, if the trace follows cgroups.
    pub cgroup: &'a dyn Fn(i32) -> Option<Arc<[u8]>>,
    /// Names of stack frames and of the kernel's functions.
    pub names: &'a dyn Names,
}

impl StyleContext<'_> {
    /// Returns the function of the kernel at an address, and the distance of the address from its start in bytes.
    /// Returns `None` for an address of user space.
    pub fn kernel_function(&self, address: u64) -> Option<(Box<[u8]>, u64)> {
        let is_of_kernel = address >> 63 == 1;
        is_of_kernel.then(|| self.names.kernel(address)).flatten()
    }
}

/// A format for events.
pub trait Style: Send {
    /// Returns the text that each file of the output begins with.
    fn header(&self) -> &[u8] {
        &[]
    }

    /// Appends the text of an event, with its terminator. Appends nothing for an event that the style does not show.
    fn event(&mut self, out: &mut Vec<u8>, event: &Event, known: &StyleContext<'_>);

    /// Appends the beginning of a call in flight, whose line goes on when the call ends, or ends before the next line.
    /// Styles without such lines append a line of its own.
    fn open(&mut self, out: &mut Vec<u8>, event: &Event, known: &StyleContext<'_>) {
        self.event(out, event, known);
    }

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
        show::Style::Strace => Box::new(Strace::new(show, session)),
        show::Style::Json => Box::new(Json::new(show.string_limit, session)),
    }
}
