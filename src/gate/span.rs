//! The span of time of which events are shown (`--time FROM,TO`).

use crate::beauty::stamp::origin_of;
use crate::event::{Event, Time};
use crate::request::Bounds;
use crate::session::{Scope, Session};

/// A span, and the moment from which its relative bounds count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    bounds: Bounds,
    /// Unknown until the first line of a command's trace.
    origin: Option<Time>,
}

impl Span {
    /// Returns a span of a session.
    pub fn new(bounds: Bounds, session: &Session) -> Span {
        Span { bounds, origin: (session.scope != Scope::Command).then_some(session.started) }
    }

    /// Returns whether an event is in the span. The events are all that would be shown without it, in their order,
    /// because relative time stamps count from the first line.
    pub fn has(&mut self, event: &Event, session: &Session) -> bool {
        self.origin = self.origin.or_else(|| origin_of(event, session));
        let origin = self.origin.unwrap_or(session.started);
        let is_behind = self.bounds.from.is_none_or(|from| from.at(origin) <= event.time);
        is_behind && self.bounds.to.is_none_or(|to| event.time <= to.at(origin))
    }

    /// Returns whether no event can be in the span that is not older than `now`.
    pub fn is_over(&self, now: Time) -> bool {
        self.bounds.to.zip(self.origin).is_some_and(|(to, origin)| to.at(origin) < now)
    }

    /// Returns when the span begins, if it does not begin with the recording, and if no earlier line is needed to know
    /// what time stamps count from.
    pub fn begin(&self) -> Option<Time> {
        self.bounds.from.zip(self.origin).map(|(from, origin)| from.at(origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventKind, TaskEnd};
    use crate::request::Bound;

    #[test]
    fn both_ends_belong_to_the_span() {
        let session = Session { started: Time(1000), scope: Scope::System, ..Session::default() };
        let bounds = Bounds { from: Some(Bound::Since(20)), to: Some(Bound::At(Time(1050))) };
        let mut span = Span::new(bounds, &session);
        let mut has = |time: u64| {
            let kind = EventKind::Exit(TaskEnd::Unknown);
            span.has(&Event { time: Time(time), cpu: 0, task: Default::default(), comm: None, kind }, &session)
        };
        assert_eq!([1019, 1020, 1050, 1051].map(&mut has), [false, true, true, false]);
        assert_eq!((span.begin(), span.is_over(Time(1050)), span.is_over(Time(1051))), (Some(Time(1020)), false, true));
        // In the trace of a command, the first line decides.
        let session = Session { scope: Scope::Command, ..session };
        let span = Span::new(bounds, &session);
        assert_eq!((span.begin(), span.is_over(Time(5000))), (None, false));
    }
}
