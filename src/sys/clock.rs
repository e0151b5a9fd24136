//! The clock of all time stamps.

use crate::event::Time;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the present time of CLOCK_MONOTONIC.
pub fn now() -> Time {
    let t = clock_gettime(ClockId::Monotonic);
    Time(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Returns the CPU time that the calling thread has used (CLOCK_THREAD_CPUTIME_ID).
pub fn of_thread() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Returns the present difference CLOCK_REALTIME - CLOCK_MONOTONIC in nanoseconds.
pub fn realtime_offset() -> i64 {
    let wall = clock_gettime(ClockId::Realtime);
    (wall.tv_sec * 1_000_000_000 + wall.tv_nsec) - now().0 as i64
}
