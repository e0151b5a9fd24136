//! The signals that ask rtrace to end, and how long it still waits for others then.
//!
//! Whoever reads what rtrace writes may stop reading: a pager that waits for a key, a terminal on a slow line, a named pipe that nobody opens. That must not keep rtrace from
//! ending. So nothing that may wait for another process waits in the kernel for as long as that likes: it waits in short steps, by [`patiently`], which gives up where the user wants it:
//!
//! * while rtrace starts, at the first signal;
//! * while it traces, the main thread, which has to answer signals, one second after the first; the worker waits on, since the trace goes on, too;
//! * when the trace is over, one second of waiting after the first signal, and at once at the next.
//!
//! Signals belong to the process, so what is known of them is the process's, too, and not a value that is handed around.

use crate::sys::signals::{Came, Signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long others may keep rtrace waiting once it is asked to end.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// One step of waiting: as long as it may take until a signal is noticed.
const STEP: Duration = Duration::from_millis(50);

static SIGNALS: OnceLock<Signals> = OnceLock::new();
static STATE: Mutex<State> = Mutex::new(State::new());

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// The thread that answers signals.
    Main,
    /// Any other, while the main thread goes on.
    Worker,
}

/// What waited was given up, because rtrace was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the output took nothing more, and rtrace was asked to end")]
pub struct GivenUp;

/// How far the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Tracing,
    Over,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// What the main loop has not answered yet.
    came: VecDeque<Came>,
    /// The first signal that asked rtrace to end.
    first: Option<i32>,
    /// How many did, and how many of them when the trace was over.
    asked: u32,
    asked_when_over: u32,
    /// How long was waited for others since then.
    waited: Duration,
}

/// Holds the signals back from now on, in this thread and in those that it makes.
///
/// # Errors
/// signalfd(2)'s.
pub fn take() -> io::Result<()> {
    if SIGNALS.get().is_none() {
        let signals = Signals::take()?;
        SIGNALS.get_or_init(|| signals);
    }
    Ok(())
}

/// What becomes readable when a signal comes, once [`take`] was called.
pub fn as_fd() -> Option<BorrowedFd<'static>> {
    SIGNALS.get().map(AsFd::as_fd)
}

/// Waits until a signal comes that was not answered yet, at most so long. One that another thread takes notice of is there at the end of that time.
pub fn wait(at_most: Duration) {
    match as_fd() {
        Some(signals) => _ = is_ready(signals, PollFlags::IN, at_most),
        None => std::thread::sleep(at_most),
    }
}

/// Waits until one of these events, or an error, is there at a descriptor, at most so long: one step of waiting patiently.
pub fn is_ready(fd: impl AsFd, events: PollFlags, at_most: Duration) -> bool {
    let at_most = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: i64::from(at_most.subsec_nanos()) };
    !matches!(poll(&mut [PollFd::new(&fd, events)], Some(&at_most)), Ok(0) | Err(rustix::io::Errno::INTR))
}

/// The next signal that the main loop has to answer.
pub fn next() -> Option<Came> {
    look().came.pop_front()
}

/// The first signal that asked rtrace to end, if one did.
pub fn first() -> Option<i32> {
    look().first
}

/// Tracing begins.
pub fn tracing() {
    lock().phase = Phase::Tracing;
}

/// The trace is over: what remains is to print the rest.
pub fn over() {
    lock().phase = Phase::Over;
}

/// Calls `wait` again and again, which waits at most as long as it is told, until it gives something.
///
/// # Errors
/// [`GivenUp`].
pub fn patiently<T>(waiter: Waiter, mut wait: impl FnMut(Duration) -> Option<T>) -> Result<T, GivenUp> {
    loop {
        let began = Instant::now();
        let done = wait(STEP);
        let mut state = look();
        if state.is_impatient(waiter) {
            state.waited += began.elapsed();
        }
        match done {
            Some(done) => return Ok(done),
            None if state.has_had_enough(waiter) => return Err(GivenUp),
            None => {}
        }
    }
}

/// The state after a look at the signals that came.
fn look() -> MutexGuard<'static, State> {
    let mut state = lock();
    while let Some(came) = SIGNALS.get().and_then(Signals::next) {
        state.take(came);
    }
    state
}

/// A thread that panicked while it held the lock left the state whole.
fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    const fn new() -> State {
        State { phase: Phase::Starting, came: VecDeque::new(), first: None, asked: 0, asked_when_over: 0, waited: Duration::ZERO }
    }

    fn take(&mut self, came: Came) {
        if came.signal != libc::SIGCHLD {
            self.first.get_or_insert(came.signal);
            self.asked += 1;
            self.asked_when_over += u32::from(self.phase == Phase::Over);
        }
        self.came.push_back(came);
    }

    /// Whether waiting is counted.
    fn is_impatient(&self, waiter: Waiter) -> bool {
        self.asked > 0 && (self.phase != Phase::Tracing || waiter == Waiter::Main)
    }

    fn has_had_enough(&self, waiter: Waiter) -> bool {
        let again = self.asked_when_over > 0 && self.asked > 1;
        self.is_impatient(waiter) && (self.phase == Phase::Starting || again || self.waited >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Came = Came { signal: libc::SIGTERM, sent: true };

    fn state(phase: Phase, signals: &[Phase], waited: Duration) -> State {
        let mut state = State::new();
        for &at in signals {
            state.phase = at;
            state.take(ASKED);
        }
        State { phase, waited, ..state }
    }

    #[test]
    fn nobody_is_given_up_before_a_signal_comes() {
        for phase in [Phase::Starting, Phase::Tracing, Phase::Over] {
            let mut state = state(phase, &[], Duration::MAX);
            state.take(Came { signal: libc::SIGCHLD, sent: false });
            assert!(!state.has_had_enough(Waiter::Main) && !state.has_had_enough(Waiter::Worker), "{phase:?}");
        }
    }

    #[test]
    fn while_it_traces_only_the_main_thread_may_not_wait() {
        let state = state(Phase::Tracing, &[Phase::Tracing], PATIENCE);
        assert!(state.has_had_enough(Waiter::Main) && !state.has_had_enough(Waiter::Worker));
    }

    #[test]
    fn the_first_signal_leaves_a_second_and_the_next_nothing() {
        use Phase::{Over, Starting, Tracing};
        let over = |signals: &[Phase], waited| state(Over, signals, waited).has_had_enough(Waiter::Worker);
        for first in [Tracing, Over] {
            assert!(!over(&[first], PATIENCE / 2) && over(&[first], PATIENCE), "{first:?}");
            assert!(over(&[first, Over], Duration::ZERO), "{first:?}");
        }
        assert!(!over(&[Tracing, Tracing], Duration::ZERO), "the second ended the trace");
        assert!(state(Starting, &[Starting], Duration::ZERO).has_had_enough(Waiter::Worker));
    }
}
