//! The account: what was issued, what came, what was lost, per event and per CPU.
//!
//! `issued` and `lost` come from the kernel's own counts (read(2) with PERF_FORMAT_LOST, in [`crate::source::Note::Count`]); `received` is counted in the stream. That
//! the three agree is checked, not assumed.

use crate::event::EventIndex;

/// The account of one run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By event index.
    pub events: Vec<EventAccount>,
    /// Calls that were given to the sinks, each once (a pending call counts when it completes or at the end).
    pub calls: u64,
    /// Of these, calls whose entry was not seen.
    pub without_entry: u64,
    /// Of these, calls whose exit was not seen.
    pub without_exit: u64,
    /// Records of LOST records so far, placed in the stream.
    pub lost_placed: u64,
    /// Records before the command's execve: rtrace's own set-up.
    pub set_up: u64,
    /// Records dropped here because two origins reported the same task.
    pub twice: u64,
    /// Records of tasks that are left out.
    pub excluded: u64,
    /// Records that came after the stream had passed their time.
    pub late: u64,
}

/// The account of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventAccount {
    pub received: u64,
    /// As read(2) gave it, once it was asked.
    pub issued: Option<u64>,
    pub lost: Option<u64>,
}

impl Ledger {
    pub fn account(&mut self, event: EventIndex) -> &mut EventAccount {
        let i = usize::from(event.0);
        if self.events.len() <= i {
            self.events.resize(i + 1, EventAccount::default());
        }
        &mut self.events[i]
    }

    /// Records that the kernel dropped, over all events.
    pub fn lost_records(&self) -> u64 {
        self.events.iter().filter_map(|e| e.lost).sum()
    }
}
