//! The queue between the thread that drains the rings and the worker thread. Its size is bounded in bytes.
//!
//! A full queue stops the draining. The kernel then drops the records that its rings cannot hold, and counts them. This
//! is the only place where records are lost. With `--lossless`, the command waits before that, and the little that it
//! still writes goes to a reserve.
//!
//! Emptied buffers return through the queue in the opposite direction. Dropping one end closes the queue, so the other
//! end does not wait for it. A waiting thread sleeps.

use super::chunk::Round;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Returns the two ends of a queue that accepts rounds while it holds less than about `bytes_max` bytes. It holds at
/// most that and one round.
pub fn queue(bytes_max: usize) -> (Sender, Receiver) {
    let shared = Arc::new(Queue { bytes_max, state: Mutex::default(), changed: Condvar::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// The end of the thread that drains the rings.
#[derive(Debug)]
pub struct Sender(Arc<Queue>);

/// The end of the worker thread.
#[derive(Debug)]
pub struct Receiver(Arc<Queue>);

/// What a receiver finds in the queue.
#[derive(Debug, PartialEq)]
pub enum Popped {
    /// The next round.
    Round(Round),
    /// There was no round until the moment.
    Nothing,
    /// The sender was dropped, and the queue is empty.
    End,
}

/// The receiver was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread that processes the records has ended")]
pub struct Closed;

impl Sender {
    /// Waits until the queue has room, and appends the round.
    ///
    /// # Errors
    /// The receiver was dropped.
    pub fn push(&self, round: Round) -> Result<(), Closed> {
        self.append(round, self.0.bytes_max)
    }

    /// Appends the round to a queue that may be full, if its reserve is not used up.
    ///
    /// # Errors
    /// The receiver was dropped.
    pub fn push_to_reserve(&self, round: Round) -> Result<(), Closed> {
        self.append(round, self.0.bytes_with_reserve())
    }

    fn append(&self, round: Round, bytes_max: usize) -> Result<(), Closed> {
        let weight = round.weight();
        let mut state = self.0.wait_while(|state| !state.has_room(bytes_max));
        if state.closed {
            return Err(Closed);
        }
        state.bytes += weight;
        state.rounds.push_back(round);
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Returns whether a push would succeed without waiting, for a sender that can do other work meanwhile.
    pub fn has_room(&self) -> bool {
        self.0.lock().has_room(self.0.bytes_max)
    }

    /// Returns whether a push to the reserve would succeed without waiting. The reserve is half as large as the bound,
    /// and in addition to it.
    pub fn has_reserve(&self) -> bool {
        self.0.lock().has_room(self.0.bytes_with_reserve())
    }

    /// Returns a round whose buffers may be reused.
    pub fn spare(&self) -> Option<Round> {
        self.0.lock().spare.pop()
    }
}

impl Receiver {
    /// Waits for the next round until a moment, or without an end.
    pub fn pop_until(&self, moment: Option<Instant>) -> Popped {
        let waits = |state: &mut State| !state.closed && state.rounds.is_empty();
        let state = match moment.map(|moment| moment.saturating_duration_since(Instant::now())) {
            None => self.0.wait_while(waits),
            Some(time) => self.0.changed.wait_timeout_while(self.0.lock(), time, waits).unwrap_or_else(PoisonError::into_inner).0,
        };
        if !state.closed && state.rounds.is_empty() {
            return Popped::Nothing;
        }
        self.take(state).map_or(Popped::End, Popped::Round)
    }

    /// Takes the first round.
    fn take(&self, mut state: MutexGuard<'_, State>) -> Option<Round> {
        let round = state.rounds.pop_front()?;
        state.bytes -= round.weight();
        drop(state);
        self.0.changed.notify_all();
        Some(round)
    }

    /// Returns a round's buffers to the sender. The queue keeps as many as the sender may soon need, and frees the
    /// rest.
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

/// The most spare rounds that are kept. The sender takes them before each round of its own, so more than a few
/// accumulate only while it does not run.
const SPARE_ROUNDS_MAX: usize = 4;

/// The state that both ends share.
#[derive(Debug)]
struct Queue {
    bytes_max: usize,
    state: Mutex<State>,
    /// Signalled when the queue is filled, emptied or closed. One condition variable suffices, since the two ends never
    /// wait at the same time.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rounds: VecDeque<Round>,
    /// The sum of the rounds' weights.
    bytes: usize,
    spare: Vec<Round>,
    closed: bool,
}

impl State {
    /// A closed queue has room, so that no sender waits for it. Rounds that are pushed to it are dropped.
    fn has_room(&self, bytes_max: usize) -> bool {
        self.closed || self.bytes < bytes_max
    }
}

impl Queue {
    /// Locks the state, also after a thread panicked while it held the lock: no operation leaves the state incomplete.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.lock(), condition).unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes_with_reserve(&self) -> usize {
        self.bytes_max.saturating_add(self.bytes_max / 2)
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
        Round {
            started: Time(started),
            chunks: vec![Chunk { cpu: 0, form: Form::Records, bytes: vec![0; bytes] }],
            synthesized: Vec::new(),
        }
    }

    /// Waits for the next round.
    fn pop(receiver: &Receiver) -> Option<Round> {
        match receiver.pop_until(None) {
            Popped::Round(round) => Some(round),
            Popped::Nothing => panic!("it waits without an end"),
            Popped::End => None,
        }
    }

    #[test]
    fn a_receiver_waits_until_a_moment_or_a_round() {
        let (sender, receiver) = queue(1 << 20);
        assert_eq!(receiver.pop_until(Some(Instant::now())), Popped::Nothing);
        sender.push(round(1, 10)).unwrap();
        assert_eq!(receiver.pop_until(Some(Instant::now())), Popped::Round(round(1, 10)));
        std::thread::scope(|scope| {
            scope.spawn(|| sender.push(round(2, 10)).unwrap());
            assert_eq!(pop(&receiver), Some(round(2, 10)));
        });
        drop(sender);
        assert_eq!(receiver.pop_until(Some(Instant::now())), Popped::End);
    }

    #[test]
    fn rounds_are_received_in_order_until_the_end() {
        let (sender, receiver) = queue(1 << 20);
        for started in 0..3 {
            sender.push(round(started, 10)).unwrap();
        }
        drop(sender);
        assert_eq!(std::iter::from_fn(|| pop(&receiver)).map(|round| round.started.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(pop(&receiver), None);
    }

    #[test]
    fn the_queue_holds_at_most_its_bound_and_loses_no_round() {
        let weight = round(0, 1000).weight();
        let (sender, receiver) = queue(3 * weight);
        std::thread::scope(|scope| {
            scope.spawn(move || (0..500).for_each(|started| sender.push(round(started, 1000)).unwrap()));
            let mut count = 0;
            while let Some(round) = pop(&receiver) {
                assert_eq!(round.started.0, count);
                assert!(receiver.0.lock().bytes <= 3 * weight, "the third round was pushed while there was room, the fourth waits");
                count += 1;
            }
            assert_eq!(count, 500);
        });
        assert_eq!(receiver.0.lock().bytes, 0);
    }

    #[test]
    fn an_empty_queue_accepts_a_round_larger_than_the_bound() {
        let (sender, receiver) = queue(10);
        assert!(sender.has_room());
        sender.push(round(1, 1000)).unwrap();
        assert!(!sender.has_room());
        assert_eq!(pop(&receiver).unwrap().started, Time(1));
    }

    #[test]
    fn a_full_queue_has_a_reserve() {
        let weight = round(0, 1000).weight();
        let (sender, receiver) = queue(2 * weight);
        (0..2).for_each(|started| sender.push(round(started, 1000)).unwrap());
        assert!(!sender.has_room() && sender.has_reserve());
        sender.push_to_reserve(round(2, 1000)).unwrap();
        assert!(!sender.has_reserve());
        assert_eq!((0..3).map(|_| pop(&receiver).unwrap().started.0).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn empty_rounds_count_towards_the_bound() {
        let (sender, receiver) = queue(10 * Round::default().weight());
        std::thread::scope(|scope| {
            scope.spawn(move || (0..1000).for_each(|_| sender.push(Round::default()).unwrap()));
            while pop(&receiver).is_some() {
                assert!(receiver.0.lock().rounds.len() <= 10);
            }
        });
    }

    #[test]
    fn a_waiting_push_fails_when_the_receiver_is_dropped() {
        let (sender, receiver) = queue(10);
        sender.push(round(1, 100)).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| sender.push(round(2, 100)));
            drop(receiver);
            assert_eq!(waiting.join().unwrap(), Err(Closed));
        });
    }

    #[test]
    fn recycled_buffers_return_to_the_sender() {
        let (sender, receiver) = queue(1 << 20);
        assert_eq!(sender.spare(), None);
        receiver.recycle(Round::default());
        assert_eq!(sender.spare(), None, "a round without buffers is not kept");
        receiver.recycle(round(1, 100));
        assert!(sender.spare().unwrap().chunks[0].bytes.capacity() >= 100);
        (0..100).for_each(|_| receiver.recycle(round(1, 1)));
        assert_eq!(std::iter::from_fn(|| sender.spare()).count(), SPARE_ROUNDS_MAX);
    }
}
