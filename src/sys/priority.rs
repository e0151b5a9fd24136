//! The real-time priorities of the threads that drain and watch the rings.

use std::io;
use std::marker::PhantomData;

/// A guard that gives the calling thread a real-time priority (SCHED_FIFO) until it is dropped. The scheduler runs the
/// thread before all threads with fair scheduling. Processes and threads that it starts do not inherit the
/// priority.
#[derive(Debug)]
pub struct RealtimePriority {
    /// Makes the guard neither `Send` nor `Sync`, since it belongs to the calling thread.
    not_send: PhantomData<*const ()>,
}

impl RealtimePriority {
    /// Sets the lowest real-time priority for the calling thread.
    ///
    /// # Errors
    /// The errors of sched_setscheduler(2): EPERM if the user has no CAP_SYS_NICE and RLIMIT_RTPRIO is 0, or if the
    /// cgroup has no real-time budget. Also an error if the thread already has another policy, which then stays.
    pub fn acquire() -> io::Result<RealtimePriority> {
        // SAFETY: the call takes a number; 0 is the calling thread.
        match unsafe { libc::sched_getscheduler(0) } {
            libc::SCHED_OTHER => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => return Err(io::Error::other("the thread has another scheduling policy")),
        }
        set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)?;
        Ok(RealtimePriority { not_send: PhantomData })
    }

    /// Sets the priority that preempts the threads with the lowest one, whichever policy the calling thread has.
    ///
    /// # Errors
    /// The errors of sched_setscheduler(2), as above.
    pub fn acquire_above_lowest() -> io::Result<RealtimePriority> {
        set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 2)?;
        Ok(RealtimePriority { not_send: PhantomData })
    }
}

impl Drop for RealtimePriority {
    fn drop(&mut self) {
        // Without CAP_SYS_NICE, only the flag SCHED_RESET_ON_FORK cannot be cleared.
        let _ = set(libc::SCHED_OTHER, 0).or_else(|_| set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0));
    }
}

/// Returns whether a thread has a real-time policy that it passes on to the threads and processes that it starts; 0 is
/// the calling thread. The CPU controller of cgroups does not delay such threads.
pub fn is_realtime(tid: i32) -> bool {
    // SAFETY: the call takes a number. The policy of an inheriting thread has no further flags.
    matches!(unsafe { libc::sched_getscheduler(tid) }, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
}

fn set(policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the call reads the parameters, which live until it returns; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: as above.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn the_priority_lasts_until_the_drop_and_is_not_inherited() {
        let Ok(priority_guard) = RealtimePriority::acquire() else { return };
        assert_eq!(policy(), libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
        assert_eq!(std::thread::spawn(policy).join().unwrap(), libc::SCHED_OTHER);
        assert!(RealtimePriority::acquire().is_err(), "the thread already has the priority");
        assert!(!is_realtime(0), "what it starts is not");
        drop(priority_guard);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
