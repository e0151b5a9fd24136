//! What a call that returned did not write: memory that the kernel writes only in some cases holds what the program
//! had there before.

use super::row::Arg;
use crate::event::Call;

/// The kernel's codes for a call that a signal interrupted (include/linux/errno.h), and what becomes of them for the
/// program.
const INTERRUPTED: [i32; 5] = [libc::EINTR, 512, 513, 514, 516];

/// Whether the call wrote what this argument points to. The time that is left of a sleep (`rmtp`) is written where the
/// sleep was interrupted (`hrtimer_nanosleep_restart` in kernel/time/hrtimer.c).
pub fn is_written(arg: &Arg, call: &Call) -> bool {
    arg.name != "rmtp" || call.errno().is_some_and(|errno| INTERRUPTED.contains(&errno))
}

/// The member that the kernel writes and never reads, in a struct that has others that it reads.
pub fn written_member(of: &str) -> Option<&'static str> {
    (of == "pollfd").then_some("revents")
}
