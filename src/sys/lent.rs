//! Capabilities that rtrace's file has and whoever started rtrace has not (file capabilities, capabilities(7)): they
//! are lent to him, for what rtrace does with them and nothing else.
//!
//! They are out of effect from the first moment on, so that whatever rtrace opens, writes and executes is opened,
//! written and executed with the caller's own rights. Only the calls that need them ([`with`]) have them in effect, for
//! so long, in one thread: perf_event_open(2) and bpf(2). When all is armed, they are given up for good ([`give_up`]).
//!
//! Capabilities are a thread's own, and the C library does nothing about that: a new thread has those of the one that
//! made it, so each thread gives up its own.

use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::sync::atomic::{AtomicU64, Ordering};

/// What is used of lent capabilities, if there is more. Locked memory (CAP_IPC_LOCK) is for larger rings.
const USED: CapabilitySet = CapabilitySet::PERFMON.union(CapabilitySet::BPF).union(CapabilitySet::IPC_LOCK);

/// Those that are lent, a bit each; 0: what this process may do, its caller may do.
static LENT: AtomicU64 = AtomicU64::new(0);

/// This process has another user or group in effect than its caller's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process has the user and group {effective} in effect and was started by {real}: rtrace is not made to be set-user-ID or set-group-ID, \
     as the command would get those rights; `./install --group NAME` installs it with just the capabilities that tracing takes"
)]
pub struct SetId {
    real: String,
    effective: String,
}

/// Puts lent capabilities out of effect, and gives up those that rtrace has no use for. To be called before there are
/// threads.
///
/// # Errors
/// The file is set-user-ID or set-group-ID to somebody else.
///
/// # Panics
/// The kernel does not let this thread have fewer capabilities, which it always does.
pub fn put_aside() -> Result<(), SetId> {
    if !is_privileged_program() {
        return Ok(());
    }
    let real = (getuid().as_raw(), getgid().as_raw());
    let effective = (geteuid().as_raw(), getegid().as_raw());
    if real != effective {
        let text = |(uid, gid)| format!("{uid}:{gid}");
        return Err(SetId { real: text(real), effective: text(effective) });
    }
    let held = thread::capabilities(None).expect("a thread may ask for its own capabilities");
    let lent = held.permitted.intersection(USED);
    // Root's are his own, whatever a security module says of the transition.
    if real.0 != 0 && !held.permitted.is_empty() {
        set(CapabilitySets { effective: CapabilitySet::empty(), permitted: lent, ..held });
        LENT.store(lent.bits(), Ordering::Relaxed);
    }
    Ok(())
}

/// Those that are lent, a bit each.
pub fn capabilities() -> u64 {
    LENT.load(Ordering::Relaxed)
}

/// Whether the kernel gave this process more rights when it executed the program than its caller has: the program is
/// set-user-ID, set-group-ID or has file capabilities (AT_SECURE in getauxval(3)).
pub fn is_privileged_program() -> bool {
    // SAFETY: it only reads what the kernel told this process when it was executed.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether rtrace may do more than its caller.
pub fn is_lent() -> bool {
    capabilities() != 0
}

/// The user and the group to whom they are lent.
pub fn to_whom() -> Option<(u32, u32)> {
    is_lent().then(|| (getuid().as_raw(), getgid().as_raw()))
}

/// Makes a call with what is lent in effect.
pub fn with<T>(call: impl FnOnce() -> T) -> T {
    let before = is_lent().then(raise);
    let answer = call();
    if let Some(before) = before {
        set(before);
    }
    answer
}

/// Gives what was before. A thread that gave them up has none to raise.
fn raise() -> CapabilitySets {
    let before = thread::capabilities(None).expect("a thread may ask for its own capabilities");
    set(CapabilitySets { effective: before.permitted, ..before });
    before
}

/// Gives up what is lent, for good, in this thread.
pub fn give_up() {
    if is_lent() {
        let held = thread::capabilities(None).expect("a thread may ask for its own capabilities");
        set(CapabilitySets { effective: CapabilitySet::empty(), permitted: CapabilitySet::empty(), ..held });
    }
}

/// A thread may always have fewer of its capabilities, or more in effect of those that it is permitted. One that could
/// not must not go on.
fn set(capabilities: CapabilitySets) {
    thread::set_capabilities(None, capabilities).expect("a thread may choose among its own capabilities");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_lent_nothing() {
        assert_eq!(put_aside(), Ok(()));
        assert!(!is_lent());
        let before = thread::capabilities(None).unwrap();
        assert_eq!(with(|| thread::capabilities(None).unwrap()), before);
        give_up();
        assert_eq!(thread::capabilities(None).unwrap(), before, "root's are his own");
    }
}
