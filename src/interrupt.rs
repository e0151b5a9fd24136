//! Signals that request the end of rtrace, and the limits of waiting after them.
//!
//! A reader of rtrace's output may stop reading: a pager that waits for a key, a terminal on a slow line, a named pipe
//! that has no reader. That must not keep rtrace from ending. So rtrace never waits for another process indefinitely in
//! the kernel. It waits in short steps ([`patiently`]), and gives up as follows:
//!
//! * while rtrace starts: at the first signal;
//! * while it traces: in the main thread, which has to handle signals, one second after the first signal. The worker
//!   waits further, since the trace continues;
//! * when the trace is over: after one second of waiting after the first signal, and at once at the next signal.
//!
//! Signals belong to the process, so their state is global and not passed around as a value.

use crate::sys::signals::{ReceivedSignal, Signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long other processes may delay the end of rtrace once it is requested.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// The duration of one step of waiting, which is the longest time until a signal is noticed.
const STEP: Duration = Duration::from_millis(50);

static SIGNALS: OnceLock<Signals> = OnceLock::new();
static STATE: Mutex<State> = Mutex::new(State::new());

/// The thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// The thread that handles signals.
    Main,
    /// Any other thread, while the main thread continues.
    Worker,
}

/// The wait was given up because the end of rtrace was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the output has not been read any further, and rtrace was asked to end")]
pub struct GivenUp;

/// The phase of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Tracing,
    Over,
}

/// The signals received so far, and the waiting after them.
#[derive(Debug)]
struct State {
    phase: Phase,
    /// The signals that the main loop has not handled yet.
    unhandled: VecDeque<ReceivedSignal>,
    /// The first signal that requested the end.
    first: Option<i32>,
    /// The number of signals that requested the end.
    end_signals: u32,
    /// The number of these signals that arrived when the trace was over.
    end_signals_when_over: u32,
    /// The time spent waiting for other processes since the first of these signals.
    waited: Duration,
}

/// Blocks the signals from now on, in this thread and in those that it creates.
///
/// # Errors
/// The errors of signalfd(2).
pub fn block_signals() -> io::Result<()> {
    block_signals_and(&[])
}

/// Blocks the signals that request the end, and SIGUSR2, which asks for a snapshot.
///
/// # Errors
/// The errors of signalfd(2).
pub fn block_signals_and_usr2() -> io::Result<()> {
    block_signals_and(&[libc::SIGUSR2])
}

fn block_signals_and(more: &[i32]) -> io::Result<()> {
    if SIGNALS.get().is_none() {
        let signals = Signals::block(more)?;
        SIGNALS.get_or_init(|| signals);
    }
    Ok(())
}

/// Returns the descriptor that becomes readable when a signal arrives, once [`block_signals`] was called.
pub fn as_fd() -> Option<BorrowedFd<'static>> {
    SIGNALS.get().map(AsFd::as_fd)
}

/// Waits until an unhandled signal arrives, at most this long. A signal that another thread reads is available at the
/// end of that time.
pub fn wait(at_most: Duration) {
    match as_fd() {
        Some(signals) => _ = is_ready(signals, PollFlags::IN, at_most),
        None => std::thread::sleep(at_most),
    }
}

/// Waits until a descriptor has one of these events or an error, at most this long. This is one step of waiting.
pub fn is_ready(fd: impl AsFd, events: PollFlags, at_most: Duration) -> bool {
    let at_most = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
    !matches!(poll(&mut [PollFd::new(&fd, events)], Some(&at_most)), Ok(0) | Err(rustix::io::Errno::INTR))
}

/// Returns the next signal that the main loop has to handle.
pub fn next() -> Option<ReceivedSignal> {
    read_signals().unhandled.pop_front()
}

/// Returns the first signal that requested the end, if there was one.
pub fn first() -> Option<i32> {
    read_signals().first
}

/// Enters the phase of tracing.
pub fn tracing() {
    lock().phase = Phase::Tracing;
}

/// Enters the phase after the trace, in which the rest is printed.
pub fn over() {
    lock().phase = Phase::Over;
}

/// Calls `wait` repeatedly until it returns a value. `wait` waits at most for the given time.
///
/// # Errors
/// [`GivenUp`].
pub fn patiently<T>(waiter: Waiter, mut wait: impl FnMut(Duration) -> Option<T>) -> Result<T, GivenUp> {
    loop {
        let began = Instant::now();
        let done = wait(STEP);
        let mut state = read_signals();
        if state.counts_waiting(waiter) {
            state.waited += began.elapsed();
        }
        match done {
            Some(done) => return Ok(done),
            None if state.gives_up(waiter) => return Err(GivenUp),
            None => {}
        }
    }
}

/// Reads the pending signals and returns the state.
fn read_signals() -> MutexGuard<'static, State> {
    let mut state = lock();
    while let Some(signal) = SIGNALS.get().and_then(Signals::next) {
        state.record(signal);
    }
    state
}

/// Locks the state, also after a thread panicked while it held the lock: no operation leaves the state incomplete.
fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    const fn new() -> State {
        State {
            phase: Phase::Starting,
            unhandled: VecDeque::new(),
            first: None,
            end_signals: 0,
            end_signals_when_over: 0,
            waited: Duration::ZERO,
        }
    }

    fn record(&mut self, received: ReceivedSignal) {
        if received.asks_for_end() {
            self.first.get_or_insert(received.signal);
            self.end_signals += 1;
            self.end_signals_when_over += u32::from(self.phase == Phase::Over);
        }
        self.unhandled.push_back(received);
    }

    /// Returns whether the time of waiting is counted.
    fn counts_waiting(&self, waiter: Waiter) -> bool {
        self.end_signals > 0 && (self.phase != Phase::Tracing || waiter == Waiter::Main)
    }

    fn gives_up(&self, waiter: Waiter) -> bool {
        let again = self.end_signals_when_over > 0 && self.end_signals > 1;
        self.counts_waiting(waiter) && (self.phase == Phase::Starting || again || self.waited >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END_SIGNAL: ReceivedSignal = ReceivedSignal { signal: libc::SIGTERM, sent: true };

    fn state(phase: Phase, signals: &[Phase], waited: Duration) -> State {
        let mut state = State::new();
        for &at in signals {
            state.phase = at;
            state.record(END_SIGNAL);
        }
        State { phase, waited, ..state }
    }

    #[test]
    fn no_wait_is_given_up_before_a_signal() {
        for phase in [Phase::Starting, Phase::Tracing, Phase::Over] {
            let mut state = state(phase, &[], Duration::MAX);
            state.record(ReceivedSignal { signal: libc::SIGCHLD, sent: false });
            assert!(!state.gives_up(Waiter::Main) && !state.gives_up(Waiter::Worker), "{phase:?}");
        }
    }

    #[test]
    fn only_the_main_thread_gives_up_while_tracing() {
        let state = state(Phase::Tracing, &[Phase::Tracing], PATIENCE);
        assert!(state.gives_up(Waiter::Main) && !state.gives_up(Waiter::Worker));
    }

    #[test]
    fn the_first_signal_permits_a_second_and_the_next_nothing() {
        use Phase::{Over, Starting, Tracing};
        let over = |signals: &[Phase], waited| state(Over, signals, waited).gives_up(Waiter::Worker);
        for first in [Tracing, Over] {
            assert!(!over(&[first], PATIENCE / 2) && over(&[first], PATIENCE), "{first:?}");
            assert!(over(&[first, Over], Duration::ZERO), "{first:?}");
        }
        assert!(!over(&[Tracing, Tracing], Duration::ZERO), "the second signal ended the trace");
        assert!(state(Starting, &[Starting], Duration::ZERO).gives_up(Waiter::Worker));
    }
}
