//! The queue between the thread that drains the rings and the one that works on the records, bounded in bytes.
//!
//! A full queue stops the draining; then the kernel drops what its rings cannot hold and counts it. That is the only place where records may be lost, and
//! it is an honest one. Emptied buffers go back the other way. Dropping an end closes the queue: nobody waits for one who is gone. Waiting is
//! sleeping.

use super::chunk::Round;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A queue that takes rounds as long as it holds less than about `bytes_max` bytes: at most that and one round.
pub fn queue(bytes_max: usize) -> (Sender, Receiver) {
    let shared = Arc::new(Shared { bytes_max, state: Mutex::default(), changed: Condvar::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// The drain thread's end.
#[derive(Debug)]
pub struct Sender(Arc<Shared>);

/// The worker's end.
#[derive(Debug)]
pub struct Receiver(Arc<Shared>);

/// The receiver is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody takes the records any more")]
pub struct Closed;

impl Sender {
    /// Waits until there is room, and puts the round at the end.
    ///
    /// # Errors
    /// The receiver is gone.
    pub fn push(&self, round: Round) -> Result<(), Closed> {
        let weight = round.weight();
        let mut state = self.0.wait_while(|state| !state.has_room(self.0.bytes_max));
        if state.closed {
            return Err(Closed);
        }
        state.bytes += weight;
        state.rounds.push_back(round);
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Whether a push would not wait: for a sender that has other things to do meanwhile.
    pub fn has_room(&self) -> bool {
        self.0.lock().has_room(self.0.bytes_max)
    }

    /// A round whose buffers may be used again.
    pub fn spare(&self) -> Option<Round> {
        self.0.lock().spare.pop()
    }
}

impl Receiver {
    /// Waits for the next round; `None` when there will be none.
    pub fn pop(&self) -> Option<Round> {
        let mut state = self.0.wait_while(|state| !state.closed && state.rounds.is_empty());
        let round = state.rounds.pop_front()?;
        state.bytes -= round.weight();
        drop(state);
        self.0.changed.notify_all();
        Some(round)
    }

    /// Gives buffers back to the sender. As many are kept as the sender may soon need; the rest is freed.
    pub fn recycle(&self, round: Round) {
        if round.chunks.is_empty() {
            return;
        }
        let mut state = self.0.lock();
        if state.spare.len() < SPARE_ROUNDS_MAX {
            state.spare.push(round);
        }
    }
}

/// The sender takes spare rounds before each of its own: more than a few wait only when it stands still.
const SPARE_ROUNDS_MAX: usize = 4;

#[derive(Debug)]
struct Shared {
    bytes_max: usize,
    state: Mutex<State>,
    /// Filled, emptied or closed: the ends do not wait at the same time, so one condition does for both.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rounds: VecDeque<Round>,
    /// The sum of their weights.
    bytes: usize,
    spare: Vec<Round>,
    closed: bool,
}

impl State {
    /// A closed queue has room, in which rounds vanish: nobody waits for it.
    fn has_room(&self, bytes_max: usize) -> bool {
        self.closed || self.bytes < bytes_max
    }
}

impl Shared {
    /// A thread that panicked while it held the lock left the state whole: nothing in here stops halfway.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.lock(), condition).unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;
    use crate::source::{Chunk, Form};

    fn round(started: u64, bytes: usize) -> Round {
        Round { started: Time(started), chunks: vec![Chunk { cpu: 0, form: Form::Records, bytes: vec![0; bytes] }], notes: Vec::new() }
    }

    #[test]
    fn rounds_come_out_in_order_and_then_the_end() {
        let (sender, receiver) = queue(1 << 20);
        for started in 0..3 {
            sender.push(round(started, 10)).unwrap();
        }
        drop(sender);
        assert_eq!(std::iter::from_fn(|| receiver.pop()).map(|round| round.started.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn never_holds_more_than_its_bound_and_loses_nothing() {
        let weight = round(0, 1000).weight();
        let (sender, receiver) = queue(3 * weight);
        std::thread::scope(|scope| {
            scope.spawn(move || (0..500).for_each(|started| sender.push(round(started, 1000)).unwrap()));
            let mut count = 0;
            while let Some(round) = receiver.pop() {
                assert_eq!(round.started.0, count);
                assert!(receiver.0.lock().bytes <= 3 * weight, "the third came when there was room, the fourth waits");
                count += 1;
            }
            assert_eq!(count, 500);
        });
        assert_eq!(receiver.0.lock().bytes, 0);
    }

    #[test]
    fn a_round_larger_than_the_bound_passes_when_the_queue_is_empty() {
        let (sender, receiver) = queue(10);
        assert!(sender.has_room());
        sender.push(round(1, 1000)).unwrap();
        assert!(!sender.has_room());
        assert_eq!(receiver.pop().unwrap().started, Time(1));
    }

    #[test]
    fn empty_rounds_are_bounded_too() {
        let (sender, receiver) = queue(10 * Round::default().weight());
        std::thread::scope(|scope| {
            scope.spawn(move || (0..1000).for_each(|_| sender.push(Round::default()).unwrap()));
            while receiver.pop().is_some() {
                assert!(receiver.0.lock().rounds.len() <= 10);
            }
        });
    }

    #[test]
    fn a_sender_that_waits_learns_that_the_receiver_is_gone() {
        let (sender, receiver) = queue(10);
        sender.push(round(1, 100)).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| sender.push(round(2, 100)));
            drop(receiver);
            assert_eq!(waiting.join().unwrap(), Err(Closed));
        });
    }

    #[test]
    fn buffers_go_back_to_the_sender() {
        let (sender, receiver) = queue(1 << 20);
        assert_eq!(sender.spare(), None);
        receiver.recycle(Round::default());
        assert_eq!(sender.spare(), None, "a round without buffers is of no use");
        receiver.recycle(round(1, 100));
        assert!(sender.spare().unwrap().chunks[0].bytes.capacity() >= 100);
        (0..100).for_each(|_| receiver.recycle(round(1, 1)));
        assert_eq!(std::iter::from_fn(|| sender.spare()).count(), SPARE_ROUNDS_MAX);
    }
}
