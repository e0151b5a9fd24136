//! Calls whose memory is used again.

use crate::event::{Abi, Call, CallId, Entry, Event, Exit, Numbers, What};
use smallvec::SmallVec;

/// So many used calls are kept.
const USED_MAX: usize = 16_384;
/// And of each no more payload than this, bytes.
const PAYLOAD_KEPT: usize = 256;

/// Calls that nobody needs any more, as empty as new ones.
#[derive(Default)]
pub(super) struct Used {
    #[expect(clippy::vec_box, reason = "the boxes are what is used again")]
    calls: Vec<Box<Call>>,
}

impl Used {
    /// A call that begins, in a used one's memory if there is any.
    #[inline]
    pub fn call(&mut self, id: CallId, abi: Abi, nr: i64) -> Box<Call> {
        if let Some(mut call) = self.calls.pop() {
            (call.id, call.abi, call.nr) = (id, abi, nr);
            return call;
        }
        Box::new(Call {
            id,
            abi,
            nr,
            entry: Entry::Seen,
            exit: Exit::Pending,
            args: None,
            pieces: SmallVec::new(),
            payload: Vec::new(),
            files: SmallVec::new(),
            lost_before: 0,
            shown_pending: false,
            numbers: Numbers::default(),
            ids: Vec::new(),
            stack: None,
        })
    }

    /// Keeps the memory of the calls.
    pub fn recycle(&mut self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            if let What::Call(call) = event.what {
                self.keep(call);
            }
        }
    }

    #[inline]
    pub fn keep(&mut self, mut call: Box<Call>) {
        if self.calls.len() < USED_MAX {
            (call.entry, call.exit, call.args, call.shown_pending) = (Entry::Seen, Exit::Pending, None, false);
            call.numbers = Numbers::default();
            call.ids.clear();
            call.pieces.clear();
            call.payload.clear();
            call.payload.shrink_to(PAYLOAD_KEPT);
            call.files.clear();
            call.stack = None;
            self.calls.push(call);
        }
    }
}
