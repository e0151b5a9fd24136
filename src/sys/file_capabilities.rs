//! Handles file capabilities (capabilities(7)): capabilities that rtrace's executable file has and its caller does not
//! have. They are lent to the caller for rtrace's own work and for nothing else.
//!
//! At start-up they are removed from the effective set, so rtrace opens, writes and executes files with the caller's
//! own permissions. Only the calls that need them ([`with_raised`]) make them effective, for the duration of the call
//! and in one thread: perf_event_open(2) and bpf(2). When all is armed, they are dropped for good ([`drop_all`]).
//!
//! Capabilities belong to a thread, and the C library does not synchronize them between threads. A new thread has those
//! of the thread that created it, so each thread drops its own.

use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::sync::atomic::{AtomicU64, Ordering};

/// The file capabilities that rtrace uses, if the file has more. CAP_IPC_LOCK (locked memory) is for larger rings.
const USED: CapabilitySet = CapabilitySet::PERFMON.union(CapabilitySet::BPF).union(CapabilitySet::IPC_LOCK);

/// The file capabilities as a bit mask. 0: the process has no more capabilities than its caller.
static GRANTED: AtomicU64 = AtomicU64::new(0);

/// The process has another effective user or group than its caller.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process has the effective user and group {effective}, but was started by {real}: rtrace must not be set-user-ID or set-group-ID, \
     because the command would inherit them; `./install --group NAME` installs it with only the capabilities that tracing needs"
)]
pub struct SetId {
    real: String,
    effective: String,
}

/// Removes the file capabilities from the effective set, and drops those that rtrace does not use. It must be called
/// before any thread is created.
///
/// # Errors
/// The file is set-user-ID or set-group-ID of another user or group than the caller's.
///
/// # Panics
/// This thread cannot drop capabilities, which the kernel always permits.
pub fn clear_effective() -> Result<(), SetId> {
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
    let granted = held.permitted.intersection(USED);
    // Root's capabilities are its own, even if a security module marked the exec as privileged.
    if real.0 != 0 && !held.permitted.is_empty() {
        set(CapabilitySets { effective: CapabilitySet::empty(), permitted: granted, ..held });
        GRANTED.store(granted.bits(), Ordering::Relaxed);
    }
    Ok(())
}

/// Returns the file capabilities as a bit mask.
pub fn granted() -> u64 {
    GRANTED.load(Ordering::Relaxed)
}

/// Returns whether the exec gave this process more privileges than its caller has: the program is set-user-ID or
/// set-group-ID, or has file capabilities (AT_SECURE in getauxval(3)).
pub fn is_privileged_program() -> bool {
    // SAFETY: the call only reads the auxiliary vector of this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns whether rtrace has capabilities that its caller lacks.
pub fn are_present() -> bool {
    granted() != 0
}

/// Returns the caller's user and group if rtrace uses file capabilities.
pub fn caller() -> Option<(u32, u32)> {
    are_present().then(|| (getuid().as_raw(), getgid().as_raw()))
}

/// Runs a call with the file capabilities in the effective set.
pub fn with_raised<T>(call: impl FnOnce() -> T) -> T {
    let before = are_present().then(raise);
    let answer = call();
    if let Some(before) = before {
        set(before);
    }
    answer
}

/// Makes all permitted capabilities effective, and returns the previous sets. A thread that dropped them has none to
/// raise.
fn raise() -> CapabilitySets {
    let before = thread::capabilities(None).expect("a thread may ask for its own capabilities");
    set(CapabilitySets { effective: before.permitted, ..before });
    before
}

/// Drops the file capabilities of this thread for good.
pub fn drop_all() {
    if are_present() {
        let held = thread::capabilities(None).expect("a thread may ask for its own capabilities");
        set(CapabilitySets { effective: CapabilitySet::empty(), permitted: CapabilitySet::empty(), ..held });
    }
}

/// Sets the capabilities of this thread. A thread may always drop capabilities, and raise those that it is permitted.
/// If that fails, it must not continue.
fn set(capabilities: CapabilitySets) {
    thread::set_capabilities(None, capabilities).expect("a thread may choose among its own capabilities");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_file_capabilities_keeps_its_own() {
        assert_eq!(clear_effective(), Ok(()));
        assert!(!are_present());
        let before = thread::capabilities(None).unwrap();
        assert_eq!(with_raised(|| thread::capabilities(None).unwrap()), before);
        drop_all();
        assert_eq!(thread::capabilities(None).unwrap(), before, "root's capabilities are its own");
    }
}
