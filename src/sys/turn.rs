//! Which thread gets a CPU first.

use std::io;
use std::marker::PhantomData;

/// While this is there, the thread that made it gets a CPU as soon as it wants one, before all threads that share them
/// fairly: it has the lowest of the real-time priorities. What it starts does not inherit that.
#[derive(Debug)]
pub struct First {
    /// It is about the thread that made it, and stays there.
    of_this_thread: PhantomData<*const ()>,
}

impl First {
    /// # Errors
    /// sched_setscheduler(2)'s: EPERM where the user has no CAP_SYS_NICE and RLIMIT_RTPRIO is 0, or the cgroup has no real-time budget; or somebody chose another policy for this thread, which then stays.
    pub fn take() -> io::Result<First> {
        // SAFETY: it takes a number; 0 is the calling thread.
        match unsafe { libc::sched_getscheduler(0) } {
            libc::SCHED_OTHER => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => return Err(io::Error::other("it was given another scheduling policy")),
        }
        set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)?;
        Ok(First { of_this_thread: PhantomData })
    }
}

impl Drop for First {
    fn drop(&mut self) {
        // Without CAP_SYS_NICE, only the flag may not be taken back.
        let _ = set(libc::SCHED_OTHER, 0).or_else(|_| set(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0));
    }
}

fn set(policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: it reads the parameters, which live until it returns; 0 is the calling thread.
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
    fn a_thread_is_first_for_a_time_and_starts_none_that_are() {
        let Ok(first) = First::take() else { return };
        assert_eq!(policy(), libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
        assert_eq!(std::thread::spawn(policy).join().unwrap(), libc::SCHED_OTHER);
        assert!(First::take().is_err(), "it is first already");
        drop(first);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
