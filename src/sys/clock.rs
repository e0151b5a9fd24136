//! The clock that every event is stamped with.

use crate::event::Time;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CLOCK_MONOTONIC now.
pub fn now() -> Time {
    let t = clock_gettime(ClockId::Monotonic);
    Time(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// CPU time that the calling thread has used (CLOCK_THREAD_CPUTIME_ID).
pub fn of_thread() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC now, nanoseconds.
pub fn realtime_offset() -> i64 {
    let wall = clock_gettime(ClockId::Realtime);
    (wall.tv_sec * 1_000_000_000 + wall.tv_nsec) - now().0 as i64
}
