//! What this process may do: capabilities, the sysctls that widen them, and limits.

use super::procfs;
use crate::sys::lent;
use rustix::process::{Resource, getrlimit};
use std::fs;

/// The capabilities that matter to a tracer, with their bit (linux/capability.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    IpcLock = 14,
    SysPtrace = 19,
    SysAdmin = 21,
    SysResource = 24,
    PerfMon = 38,
    Bpf = 39,
}

impl Capability {
    /// The name as setcap(8) takes it.
    pub fn name(self) -> &'static str {
        match self {
            Capability::IpcLock => "cap_ipc_lock",
            Capability::SysPtrace => "cap_sys_ptrace",
            Capability::SysAdmin => "cap_sys_admin",
            Capability::SysResource => "cap_sys_resource",
            Capability::PerfMon => "cap_perfmon",
            Capability::Bpf => "cap_bpf",
        }
    }
}

/// What this process may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// The effective capabilities, and those that rtrace is lent ([`lent`]), bit by bit.
    pub capabilities: u64,
    /// The effective user.
    pub uid: u32,
    /// kernel.perf_event_paranoid (-1..=4); `None` where perf events are not built in.
    pub paranoid: Option<i32>,
    /// kernel.perf_event_mlock_kb: ring memory per CPU that needs no privilege, KiB.
    pub mlock_kb: Option<u64>,
    /// RLIMIT_MEMLOCK, bytes; `None` is unlimited.
    pub memlock: Option<u64>,
    /// RLIMIT_NOFILE, soft and hard; `None` is unlimited.
    pub files: (Option<u64>, Option<u64>),
    /// Its capabilities hold in another user namespace than the first, and nothing that they are asked for here.
    pub is_in_user_namespace: bool,
    /// A seccomp filter may refuse calls that the kernel would not.
    pub is_filtered: bool,
}

/// The highest level of kernel.perf_event_paranoid that the kernel itself knows (kernel/events/core.c).
pub const LEVEL_MAX: i32 = 2;

impl Privileges {
    /// What holds now. Files that cannot be read leave `None`, or no capabilities.
    pub fn read() -> Privileges {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let files = getrlimit(Resource::Nofile);
        Privileges {
            capabilities: effective_capabilities(&status).unwrap_or(0) | lent::capabilities(),
            uid: rustix::process::geteuid().as_raw(),
            paranoid: sysctl("perf_event_paranoid"),
            mlock_kb: sysctl("perf_event_mlock_kb"),
            memlock: getrlimit(Resource::Memlock).current,
            files: (files.current, files.maximum),
            is_in_user_namespace: !procfs::is_in_first_user_namespace(),
            is_filtered: status.lines().any(|line| line.split_once(":\t") == Some(("Seccomp", "2"))),
        }
    }

    /// Whether it has the capability where the kernel asks for it, or CAP_SYS_ADMIN, which stood for CAP_PERFMON and CAP_BPF before these were split off.
    pub fn has(&self, capability: Capability) -> bool {
        if self.is_in_user_namespace {
            return false;
        }
        let bit = |capability: Capability| self.capabilities & (1 << capability as u32) != 0;
        bit(capability) || (matches!(capability, Capability::PerfMon | Capability::Bpf) && bit(Capability::SysAdmin))
    }

    /// May trace own tasks, kernel included: at level 2 only events that happen in user space are left, which `raw_syscalls:*` are not.
    pub fn may_trace_own(&self) -> bool {
        self.has(Capability::PerfMon) || self.paranoid.is_some_and(|level| level <= 1)
    }

    /// kernel.perf_event_paranoid has a level that only kernels of Debian and Ubuntu know, at which these ask for CAP_SYS_ADMIN.
    pub fn is_above_perfmon(&self) -> bool {
        self.paranoid.is_some_and(|level| level > LEVEL_MAX) && !self.has(Capability::SysAdmin)
    }

    /// May trace whole CPUs.
    pub fn may_trace_cpus(&self) -> bool {
        self.has(Capability::PerfMon) || self.paranoid.is_some_and(|level| level <= 0)
    }

    /// May read the records of any tracepoint, not only of syscalls.
    pub fn may_read_tracepoints(&self) -> bool {
        self.has(Capability::PerfMon) || self.paranoid.is_some_and(|level| level <= -1)
    }

    /// Ring memory in bytes that one CPU's ring may take, all users of perf of this user together; `None` is no limit.
    pub fn ring_bytes_max(&self, cpus: usize) -> Option<u64> {
        if self.has(Capability::IpcLock) || self.paranoid.is_some_and(|level| level <= -1) {
            return None;
        }
        let locked = self.memlock?;
        Some(self.mlock_kb.unwrap_or(516).saturating_mul(1024).saturating_add(locked / cpus.max(1) as u64))
    }
}

/// The CapEff line of /proc/self/status.
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
    fn capabilities_of_a_status_file() {
        assert_eq!(effective_capabilities("Name:\tx\nCapEff:\t000001fffeffffff\n"), Some(0x1ff_feff_ffff));
        assert_eq!(effective_capabilities("CapEff:\tzz\n"), None);
        assert_eq!(effective_capabilities(""), None);
    }

    #[test]
    fn who_may_do_what() {
        let nobody = privileges(0, 1);
        assert!(nobody.may_trace_own() && !nobody.may_trace_cpus() && !nobody.may_read_tracepoints());
        assert!(!privileges(0, 2).may_trace_own());
        assert!(privileges(0, 0).may_trace_cpus() && privileges(0, -1).may_read_tracepoints());
        let admin = privileges(1 << 21, 4);
        assert!(!Privileges { is_in_user_namespace: true, ..admin }.has(Capability::PerfMon));
        assert!(admin.has(Capability::PerfMon) && admin.has(Capability::Bpf) && !admin.has(Capability::IpcLock) && admin.may_trace_cpus());
    }

    #[test]
    fn ring_memory() {
        assert_eq!(privileges(1 << 14, 2).ring_bytes_max(2), None);
        assert_eq!(privileges(0, 2).ring_bytes_max(2), Some(516 * 1024 + (4 << 20)));
    }

    #[test]
    fn this_process() {
        let here = Privileges::read();
        assert_eq!(here.uid, rustix::process::geteuid().as_raw());
        assert!(here.uid != 0 || here.capabilities != 0, "root without any capability");
        assert!(here.files.0.is_none_or(|files| files > 0));
    }
}
