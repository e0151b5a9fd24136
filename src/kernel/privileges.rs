//! The privileges of this process: capabilities, the sysctls that relax the required ones, and limits.

use super::procfs;
use crate::sys::file_capabilities;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// The capabilities that tracing needs, with their bits (linux/capability.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    IpcLock = 14,
    SysAdmin = 21,
    PerfMon = 38,
    Bpf = 39,
}

impl Capability {
    /// Returns the name in the syntax of setcap(8).
    pub fn name(self) -> &'static str {
        match self {
            Capability::IpcLock => "cap_ipc_lock",
            Capability::SysAdmin => "cap_sys_admin",
            Capability::PerfMon => "cap_perfmon",
            Capability::Bpf => "cap_bpf",
        }
    }
}

/// The privileges of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// A bit for each effective capability, and for each capability of rtrace's file ([`file_capabilities`]).
    pub capabilities: u64,
    /// The effective user ID.
    pub uid: u32,
    /// kernel.perf_event_paranoid (-1..=4); `None` if the kernel was built without perf events.
    pub paranoid: Option<i32>,
    /// kernel.perf_event_mlock_kb: the ring buffer memory per CPU that needs no privilege, in KiB.
    pub mlock_kb: Option<u64>,
    /// RLIMIT_MEMLOCK in bytes; `None` means unlimited.
    pub memlock: Option<u64>,
    /// RLIMIT_NOFILE, soft and hard; `None` means unlimited.
    pub files: (Option<u64>, Option<u64>),
    /// Whether it is in a user namespace other than the initial one, where its capabilities do not suffice for tracing.
    pub is_in_user_namespace: bool,
    /// Whether it has a seccomp filter, which may refuse calls that the kernel would permit.
    pub is_filtered: bool,
}

/// The highest level of kernel.perf_event_paranoid in the mainline kernel (kernel/events/core.c).
pub const LEVEL_MAX: i32 = 2;

impl Privileges {
    /// Reads the present privileges. A file that cannot be read yields `None`, or no capabilities.
    pub fn read() -> Privileges {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let files = getrlimit(Resource::Nofile);
        Privileges {
            capabilities: effective_capabilities(&status).unwrap_or(0) | file_capabilities::granted(),
            uid: rustix::process::geteuid().as_raw(),
            paranoid: sysctl("perf_event_paranoid"),
            mlock_kb: sysctl("perf_event_mlock_kb"),
            memlock: getrlimit(Resource::Memlock).current,
            files: (files.current, files.maximum),
            is_in_user_namespace: !procfs::is_in_initial_user_namespace(),
            is_filtered: status.lines().any(|line| line.split_once(":\t") == Some(("Seccomp", "2"))),
        }
    }

    /// Whether the process has a capability in the initial user namespace. CAP_SYS_ADMIN includes CAP_PERFMON and
    /// CAP_BPF, which were split off from it.
    pub fn has(&self, capability: Capability) -> bool {
        if self.is_in_user_namespace {
            return false;
        }
        let bit = |capability: Capability| self.capabilities & (1 << capability as u32) != 0;
        bit(capability) || (matches!(capability, Capability::PerfMon | Capability::Bpf) && bit(Capability::SysAdmin))
    }

    /// Whether the process may trace its own user's tasks, with events in the kernel. Level 2 permits only events in
    /// user space, and `raw_syscalls:*` are not.
    pub fn may_trace_own(&self) -> bool {
        self.has(Capability::PerfMon) || self.paranoid.is_some_and(|level| level <= 1)
    }

    /// Whether kernel.perf_event_paranoid is above 2, a level that only kernels of Debian and Ubuntu have, and the
    /// process lacks CAP_SYS_ADMIN, which these require then.
    pub fn is_above_perfmon(&self) -> bool {
        self.paranoid.is_some_and(|level| level > LEVEL_MAX) && !self.has(Capability::SysAdmin)
    }

    /// Whether the process may read the records of all tracepoints, not only those of syscalls.
    pub fn may_read_tracepoints(&self) -> bool {
        self.has(Capability::PerfMon) || self.paranoid.is_some_and(|level| level <= -1)
    }

    /// Returns the limit in bytes of a CPU's ring buffer, which all programs of this user that use perf share. `None`
    /// means that there is no limit.
    pub fn ring_bytes_max(&self, cpus: usize) -> Option<u64> {
        if self.has(Capability::IpcLock) || self.paranoid.is_some_and(|level| level <= -1) {
            return None;
        }
        let locked = self.memlock?;
        Some(self.mlock_kb.unwrap_or(516).saturating_mul(1024).saturating_add(locked / cpus.max(1) as u64))
    }
}

/// Parses the line `CapEff:` of /proc/self/status.
fn effective_capabilities(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

fn sysctl<T: std::str::FromStr>(name: &str) -> Option<T> {
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privileges(capabilities: u64, paranoid: i32) -> Privileges {
        Privileges {
            capabilities,
            uid: 1000,
            paranoid: Some(paranoid),
            mlock_kb: Some(516),
            memlock: Some(8 << 20),
            files: (Some(1024), Some(4096)),
            ..Privileges::default()
        }
    }

    #[test]
    fn capabilities_are_read_from_a_status_file() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t000001fffeffffff\n"), Some(0x1ff_feff_ffff));
        assert_eq!(effective_capabilities("CapEff:\tzz\n"), None);
        assert_eq!(effective_capabilities(""), None);
    }

    #[test]
    fn capabilities_and_the_paranoid_level_permit_tracing() {
        let nobody = privileges(0, 1);
        assert!(nobody.may_trace_own() && !nobody.may_read_tracepoints());
        assert!(!privileges(0, 2).may_trace_own());
        assert!(privileges(0, -1).may_read_tracepoints());
        let admin = privileges(1 << 21, 4);
        assert!(!Privileges { is_in_user_namespace: true, ..admin }.has(Capability::PerfMon));
        assert!(admin.has(Capability::PerfMon) && admin.has(Capability::Bpf) && !admin.has(Capability::IpcLock));
    }

    #[test]
    fn ring_buffer_memory_is_limited_without_cap_ipc_lock() {
        assert_eq!(privileges(1 << 14, 2).ring_bytes_max(2), None);
        assert_eq!(privileges(0, 2).ring_bytes_max(2), Some(516 * 1024 + (4 << 20)));
    }

    #[test]
    fn privileges_of_this_process_are_read() {
        let own = Privileges::read();
        assert_eq!(own.uid, rustix::process::geteuid().as_raw());
        assert!(own.uid != 0 || own.capabilities != 0, "root without any capability");
        assert!(own.files.0.is_none_or(|files| files > 0));
    }
}
