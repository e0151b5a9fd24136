//! A pool of calls whose memory is reused.

use crate::event::{Abi, Call, CallId, EntryState, Event, EventKind, ExitState, Injected, PidTranslation, Tally};

/// The maximum number of calls in the pool.
const POOL_MAX: usize = 16_384;
/// The maximum number of tallies in the pool.
const TALLIES_MAX: usize = 256;
/// The maximum payload capacity that a pooled call keeps, in bytes.
const PAYLOAD_KEPT: usize = 256;

/// Emitted calls and tallies, reset to the state of new ones.
#[derive(Default)]
pub(super) struct CallPool {
    #[expect(clippy::vec_box, reason = "the boxes themselves are reused")]
    calls: Vec<Box<Call>>,
    #[expect(clippy::vec_box, reason = "the boxes themselves are reused")]
    tallies: Vec<Box<Tally>>,
}

impl CallPool {
    /// Returns a new call, in the memory of a pooled one if there is any.
    #[inline]
    pub fn take(&mut self, id: CallId, abi: Abi, nr: i64) -> Box<Call> {
        if let Some(mut call) = self.calls.pop() {
            (call.id, call.abi, call.nr) = (id, abi, nr);
            return call;
        }
        Box::new(Call::new(id, abi, nr))
    }

    /// Returns the calls among these events to the pool.
    pub fn recycle(&mut self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            match event.kind {
                EventKind::Call(call) => self.put_back(call),
                EventKind::Tally(mut tally) if self.tallies.len() < TALLIES_MAX => {
                    tally.tasks.clear();
                    tally.calls.clear();
                    self.tallies.push(tally);
                }
                _ => {}
            }
        }
    }

    /// Returns an empty tally.
    pub fn take_tally(&mut self) -> Box<Tally> {
        self.tallies.pop().unwrap_or_default()
    }

    /// Puts a call into the pool and resets it. If the pool is full, the call is dropped.
    #[inline]
    pub fn put_back(&mut self, mut call: Box<Call>) {
        if self.calls.len() < POOL_MAX {
            (call.entry, call.exit, call.args, call.shown_pending) = (EntryState::Seen, ExitState::Pending, None, false);
            (call.pids, call.lost_before, call.killed) = (PidTranslation::default(), 0, false);
            call.request = None;
            call.ids.clear();
            call.pieces.clear();
            call.payload.clear();
            call.payload.shrink_to(PAYLOAD_KEPT);
            call.files.clear();
            (call.stack, call.injected, call.detached) = (None, Injected::default(), false);
            self.calls.push(call);
        }
    }
}
