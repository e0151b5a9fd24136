//! Which effect the next call of a thread has.

use crate::event::{Abi, Time};
use crate::request::inject::Effect;
use std::collections::HashMap;

/// Nanoseconds after a thread's call in which no other thread can have got its number: the kernel reuses a number only
/// after some 300 others (the least kernel.pid_max), and 5 ms are not enough to create so many threads.
const REUSE_MIN: u64 = 5_000_000;
/// The number of threads from which on those that have ended are forgotten.
const THREADS_MAX: usize = 4096;

/// The effects, and the calls that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rules {
    /// The effects.
    pub effects: Vec<Effect>,
    /// The calls: ABI, number, and the index of the effect. Each call is there once.
    pub calls: Vec<(Abi, u32, u16)>,
}

/// Counts the calls of each thread.
#[derive(Debug)]
pub struct Counter {
    effects: HashMap<(Abi, u32), Effect>,
    threads: HashMap<i32, Thread>,
    threads_max: usize,
}

/// The calls of a thread so far.
#[derive(Debug)]
struct Thread {
    /// When it started, in any unit. It distinguishes threads that had the same number one after the other.
    started: u64,
    /// The time of its latest call.
    latest: Time,
    calls: HashMap<(Abi, u32), u64>,
}

impl Counter {
    pub fn new(rules: &Rules) -> Counter {
        let of_call = |(abi, nr, at): &(Abi, u32, u16)| Some(((*abi, *nr), *rules.effects.get(usize::from(*at))?));
        Counter { effects: rules.calls.iter().filter_map(of_call).collect(), threads: HashMap::new(), threads_max: THREADS_MAX }
    }

    /// Returns the effect of the next call of a thread, which it makes now, if the call has one. `started` returns when
    /// a thread started, or `None` if it has ended.
    pub fn next(&mut self, tid: i32, of: (Abi, u32), now: Time, started: impl Fn(i32) -> Option<u64>) -> Option<Effect> {
        let effect = *self.effects.get(&of)?;
        if effect.when.is_always() {
            return Some(effect);
        }
        if self.threads.get(&tid).is_none_or(|thread| now.since(thread.latest) > REUSE_MIN) {
            let since = started(tid)?;
            if self.threads.get(&tid).is_none_or(|thread| thread.started != since) {
                self.begin(tid, Thread { started: since, latest: now, calls: HashMap::new() }, started);
            }
        }
        let thread = self.threads.get_mut(&tid)?;
        thread.latest = now;
        let number = thread.calls.entry(of).or_default();
        *number += 1;
        effect.when.applies(*number).then_some(effect)
    }

    /// Begins to count the calls of a thread.
    fn begin(&mut self, tid: i32, thread: Thread, started: impl Fn(i32) -> Option<u64>) {
        if self.threads.len() >= self.threads_max {
            self.threads.retain(|tid, thread| started(*tid) == Some(thread.started));
            self.threads_max = (self.threads.len() * 2).max(THREADS_MAX);
        }
        self.threads.insert(tid, thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::inject::When;

    #[test]
    fn calls_are_counted_for_each_thread_and_each_syscall() {
        let second = Effect { returns: Some(-1), when: When { first: 2, last: 2, step: 0 }, ..Effect::default() };
        let always = Effect { delay: Some(5), ..Effect::default() };
        let calls = vec![(Abi::X86_64, 1, 0), (Abi::X86_64, 2, 0), (Abi::I386, 1, 0), (Abi::X86_64, 3, 1)];
        let mut counter = Counter::new(&Rules { effects: vec![second, always], calls });
        let mut now = Time(0);
        let mut next = |tid, abi, nr, started| {
            now.0 += REUSE_MIN + 1;
            counter.next(tid, (abi, nr), now, |_| Some(started)).is_some()
        };
        let x86_64 = Abi::X86_64;
        assert!(!next(7, x86_64, 1, 0) && next(7, x86_64, 1, 0) && !next(7, x86_64, 1, 0), "the second call");
        assert!(!next(7, x86_64, 2, 0), "another syscall");
        assert!(!next(7, Abi::I386, 1, 0), "another ABI");
        assert!(!next(8, x86_64, 1, 0), "another thread");
        assert!(!next(7, x86_64, 2, 1), "a new thread with the number of one that has ended");
        assert!(next(7, x86_64, 2, 1));
        assert!(next(7, x86_64, 3, 1) && next(7, x86_64, 3, 1) && !next(7, x86_64, 4, 1));
    }

    #[test]
    fn threads_that_have_ended_are_forgotten() {
        let effect = Effect { when: When { first: 2, last: 2, step: 0 }, ..Effect::default() };
        let mut counter = Counter::new(&Rules { effects: vec![effect], calls: vec![(Abi::X86_64, 1, 0)] });
        for tid in 1..3 * THREADS_MAX as i32 {
            counter.next(tid, (Abi::X86_64, 1), Time(0), |other| (other == tid).then_some(0));
        }
        assert!(counter.threads.len() <= THREADS_MAX);
    }
}
