//! When a call uses an argument: what rows say behind `?`.
//!
//! An argument that the kernel does not look at holds whatever the register held, and is not shown, nor is its memory
//! copied.

/// When a call uses an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// The kernel ignores it (`pid` of ptrace with PTRACE_TRACEME).
    Never,
    /// One of these tests holds.
    If {
        /// As the row says it.
        text: &'static str,
        any: &'static [Test],
    },
}

/// A test of some bits of another argument's register. What is an `int` for the kernel is compared as one: only the
/// lower half of the register counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// The register, from 0.
    pub arg: u8,
    /// The bits that are looked at.
    pub mask: u32,
    pub how: How,
}

/// What the bits must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Not all 0.
    SomeBit,
    /// All 0.
    NoBit,
    /// One of these values.
    OneOf(&'static [u32]),
    /// None of these values.
    NoneOf(&'static [u32]),
}

impl Condition {
    /// Whether a call with these registers uses the argument.
    #[inline]
    pub fn holds(&self, registers: &[u64; 6]) -> bool {
        match self {
            Condition::Always => true,
            Condition::Never => false,
            Condition::If { any, .. } => any.iter().any(|test| test.holds(registers)),
        }
    }
}

impl Test {
    fn holds(&self, registers: &[u64; 6]) -> bool {
        let bits = registers.get(usize::from(self.arg)).map_or(0, |register| *register as u32 & self.mask);
        match self.how {
            How::SomeBit => bits != 0,
            How::NoBit => bits == 0,
            How::OneOf(values) => values.contains(&bits),
            How::NoneOf(values) => !values.contains(&bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lookup;
    use super::super::tables::SYSCALLS;

    /// Which arguments a call uses, by name, with some registers set; the upper halves of all others hold something.
    fn used_with<const N: usize>(name: &str, set: [(usize, u64); N]) -> Vec<&'static str> {
        let row = &SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())];
        let mut registers = [0xdead_beef_0000_0000; 6];
        set.into_iter().for_each(|(at, value)| registers[at] = value);
        let signature = row.signature_of(&registers);
        let used = (0..signature.args.len()).filter(|at| signature.uses(*at, &registers));
        used.map(|at| signature.args[at].name).collect()
    }

    fn used(name: &str, at: usize, value: u64) -> Vec<&'static str> {
        used_with(name, [(at, value)])
    }

    fn uses(name: &str, at: usize, value: u64, arg: &str) -> bool {
        used(name, at, value).contains(&arg)
    }

    #[test]
    fn a_mode_counts_where_a_file_may_be_made() {
        assert!(uses("open", 1, libc::O_CREAT as u64, "mode"));
        assert!(uses("openat", 2, libc::O_TMPFILE as u64 | libc::O_RDWR as u64, "mode"));
        assert!(!uses("openat", 2, libc::O_DIRECTORY as u64 | libc::O_CLOEXEC as u64, "mode"));
        assert!(!uses("open", 2, libc::O_CREAT as u64, "mode"), "that is another argument");
        assert!(!uses("open", 1, (libc::O_CREAT as u64) << 32, "mode"), "the flags are an int");
        assert_eq!(used("mq_open", 1, libc::O_CREAT as u64), ["u_name", "oflag", "mode", "u_attr"]);
        assert_eq!(used("mq_open", 1, libc::O_TMPFILE as u64), ["u_name", "oflag"], "there are no unnamed queues");
    }

    #[test]
    fn a_device_number_counts_for_devices() {
        assert!(uses("mknod", 1, u64::from(libc::S_IFCHR) | 0o600, "dev"));
        assert!(uses("mknodat", 2, u64::from(libc::S_IFBLK), "dev"));
        assert!(!uses("mknod", 1, u64::from(libc::S_IFIFO) | 0o644, "dev"));
        assert!(!uses("mknodat", 2, u64::from(libc::S_IFSOCK), "dev"));
    }

    #[test]
    fn memory_calls_use_what_their_flags_name() {
        assert_eq!(used("mmap", 3, libc::MAP_PRIVATE as u64).len(), 6);
        assert_eq!(used("mmap", 3, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64).len(), 4);
        assert!(uses("mremap", 3, (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64, "new_addr"));
        assert!(uses("mremap", 3, (libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP) as u64, "new_addr"));
        assert!(!uses("mremap", 3, libc::MREMAP_MAYMOVE as u64, "new_addr"));
    }

    #[test]
    fn clone_uses_what_its_flags_name() {
        let more = |flags: i32| used("clone", 0, u64::from(flags as u32))[2..].to_vec();
        assert_eq!(more(libc::CLONE_PARENT_SETTID), ["parent_tidptr"]);
        assert_eq!(more(libc::CLONE_PIDFD), ["parent_tidptr"]);
        assert_eq!(more(libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD), ["child_tidptr"]);
        assert_eq!(more(libc::CLONE_CHILD_SETTID), ["child_tidptr"]);
        assert_eq!(more(libc::CLONE_SETTLS), ["tls"]);
        assert_eq!(more(libc::SIGCHLD), [""; 0]);
    }

    #[test]
    fn futex_uses_what_its_operation_takes() {
        let more = |op: i32| used("futex", 1, op as u64)[2..].to_vec();
        assert_eq!(more(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG), ["val", "utime"]);
        assert_eq!(more(libc::FUTEX_WAKE), ["val"]);
        assert_eq!(more(libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME), ["val", "utime", "val3"]);
        assert_eq!(more(libc::FUTEX_WAIT_REQUEUE_PI), ["val", "utime", "uaddr2"]);
        assert_eq!(more(libc::FUTEX_LOCK_PI), ["utime"]);
        assert_eq!(more(libc::FUTEX_UNLOCK_PI), [""; 0]);
        assert_eq!(more(libc::FUTEX_UNLOCK_PI | 512), ["uaddr2"], "FUTEX_ROBUST_UNLOCK clears the word there");
    }

    #[test]
    fn what_the_kernel_does_not_look_at_is_not_used() {
        assert!(uses("epoll_ctl", 1, 0x2_0000_0000 | libc::EPOLL_CTL_ADD as u64, "event"), "the operation is an int");
        assert!(!uses("epoll_ctl", 1, libc::EPOLL_CTL_DEL as u64, "event"));
        assert!(uses("clock_nanosleep", 1, 0, "rmtp") && !uses("clock_nanosleep", 1, libc::TIMER_ABSTIME as u64, "rmtp"));
        assert!(uses("getgroups", 0, 64, "grouplist") && !uses("getgroups", 0, 0, "grouplist"));
        assert!(uses("kcmp", 2, 0, "idx2") && uses("kcmp", 2, 7, "idx2") && !uses("kcmp", 2, 1, "idx1"));
        let ambient = |arg2: i32| used_with("prctl", [(0, libc::PR_CAP_AMBIENT as u64), (1, arg2 as u64)]).len();
        assert_eq!([libc::PR_CAP_AMBIENT_RAISE, libc::PR_CAP_AMBIENT_CLEAR_ALL].map(ambient), [3, 2]);
        assert_eq!([0, 1].map(|flags| used_with("membarrier", [(0, 1 << 8), (1, flags)]).len()), [2, 3]);
        assert!(uses("reboot", 2, libc::LINUX_REBOOT_CMD_RESTART2 as u32 as u64, "arg"));
        assert!(!uses("reboot", 2, libc::LINUX_REBOOT_CMD_RESTART as u32 as u64, "arg"));
        assert!(!uses("ptrace", 0, 0, "pid"), "PTRACE_TRACEME is about the caller");
    }
}
