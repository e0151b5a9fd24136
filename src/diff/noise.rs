//! What differs between two runs of the same program for no reason that a user looks for.

use crate::beauty::row::{Groups, Syscall};
use crate::beauty::special::Special;
use crate::event::{Call, File};

/// How the calls of one kind are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Which calls there are, and how they ended.
    pub calls: bool,
    /// How long they took.
    pub time: bool,
}

impl Compared {
    const NOTHING: Compared = Compared { calls: false, time: false };
    const TIME: Compared = Compared { calls: false, time: true };
    const CALLS: Compared = Compared { calls: true, time: false };
    const ALL: Compared = Compared { calls: true, time: true };
}

/// Calls by which threads and processes take turns, calls whose result tells nothing, and those that probes of others
/// place into a program.
const TURNS: [&str; 26] = [
    "futex",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "futex_requeue",
    "futex_time64",
    "get_robust_list",
    "getrandom",
    "getrusage",
    "membarrier",
    "restart_syscall",
    "rseq",
    "rt_sigpending",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "sched_getaffinity",
    "sched_yield",
    "set_robust_list",
    "sigreturn",
    "times",
    "uprobe",
    "uretprobe",
    "wait4",
    "waitid",
    "waitpid",
];

/// Calls that wait. How often they are repeated depends on who is faster, and how long they take does not.
const WAITS: [&str; 16] = [
    "poll",
    "ppoll",
    "ppoll_time64",
    "select",
    "_newselect",
    "pselect6",
    "pselect6_time64",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "nanosleep",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "io_getevents",
    "io_pgetevents",
    "pause",
];

/// Returns how a call is compared. `has_object` says whether it is about a file.
pub fn compared(row: Option<&Syscall>, call: &Call, has_object: bool) -> Compared {
    let Some(row) = row else { return Compared::CALLS };
    let is_memory = row.groups.contains(Groups::MEMORY) && !has_object && call.errno().is_none();
    match row.name {
        _ if row.does == Special::ExitGroup || row.name == "exit" => Compared::NOTHING,
        // Where memory lies, and hence how it is divided, depends on random addresses.
        _ if is_memory || row.groups.intersects(Groups::PURE | Groups::CLOCK) && !WAITS.contains(&row.name) => Compared::NOTHING,
        name if TURNS.contains(&name) => Compared::NOTHING,
        // Which of several threads begin depends on how much work there is for them.
        "prctl" if call.args.is_some_and(|args| names_something(args[0])) => Compared::NOTHING,
        name if WAITS.contains(&name) => Compared::TIME,
        // A parent waits in vfork(2) for its child.
        _ if row.groups.contains(Groups::PROCESS) => Compared::CALLS,
        _ => Compared::ALL,
    }
}

/// Returns whether a call only closes a descriptor, or hands it on. A shell does so with its standard streams.
pub fn is_about_descriptor(row: Option<&Syscall>) -> bool {
    let is_duplicate = |row: &Syscall| matches!(row.does, Special::Close | Special::Dup | Special::DupTo | Special::Fcntl);
    row.is_some_and(is_duplicate)
}

/// Returns whether a call on this file waits for a process that is mostly in the recording as well, whose own calls say
/// why it is slow.
pub fn waits_for_relatives(file: &File) -> bool {
    matches!(file, File::Pipe { .. })
}

/// Returns whether a file is on a disk, so that how long a call takes does not depend on whoever is at its other end.
pub fn is_on_disk(file: &File) -> bool {
    matches!(file, File::Path(path) if !path.starts_with(b"/dev/"))
}

/// Returns whether an operation of prctl(2) only gives a thread or memory a name.
fn names_something(operation: u64) -> bool {
    [libc::PR_SET_NAME, libc::PR_SET_VMA].iter().any(|other| operation == *other as u64)
}

/// Returns whether what is found at a path is different each time, because the kernel makes it up.
pub fn is_made_up(path: &[u8]) -> bool {
    [&b"/proc/"[..], b"/sys/", b"/dev/"].iter().any(|folder| path.starts_with(folder)) || path.contains(&b'*')
}

/// Returns whether an error only says that another process has ended meanwhile.
pub fn is_of_ended_process(path: &[u8], errno: i32) -> bool {
    path.starts_with(b"/proc/PID") && matches!(errno, libc::ENOENT | libc::ESRCH)
}

/// Returns whether this errno only says that the call is to be repeated, or is not finished.
pub fn is_passing(errno: i32) -> bool {
    matches!(errno, libc::EAGAIN | libc::EINTR | libc::EINPROGRESS | libc::EALREADY | 512..=516)
}
