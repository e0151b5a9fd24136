//! The conditions under which a call uses an argument, which rows write after `?`.
//!
//! If the kernel ignores an argument, its register holds an arbitrary value. Such an argument is not shown, and its
//! memory is not copied.

/// The condition under which a call uses an argument, or a member of a struct is valid or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// The kernel ignores the argument (`pid` of ptrace with PTRACE_TRACEME).
    Never,
    /// The argument is used if one of these tests holds.
    If {
        /// The condition as the row writes it.
        text: &'static str,
        any: &'static [BitTest],
    },
}

/// A test of some bits in the register of another argument, or in another member. Only the lower 32 bits are compared,
/// since the kernel reads these arguments as an `int`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitTest {
    /// Index of the register, or of the member, from 0.
    pub arg: u8,
    /// The bits that are compared.
    pub mask: u32,
    /// The requirement on these bits, which are not shifted.
    pub comparison: Comparison,
}

/// The requirement on the masked bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// At least one bit is set.
    SomeBit,
    /// No bit is set.
    NoBit,
    /// The bits have one of these values.
    OneOf(&'static [u32]),
    /// The bits have none of these values.
    NoneOf(&'static [u32]),
}

impl Condition {
    /// Returns whether a call with these registers uses the argument.
    #[inline]
    pub fn holds(&self, registers: &[u64; 6]) -> bool {
        self.holds_for(|arg| registers.get(usize::from(arg)).copied())
    }

    /// Returns whether the condition holds for these values of arguments, or of the members of a struct, by their
    /// indices. A test of an unknown value does not hold.
    #[inline]
    pub fn holds_for(&self, value: impl Fn(u8) -> Option<u64>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Never => false,
            Condition::If { any, .. } => any.iter().any(|test| value(test.arg).is_some_and(|value| test.holds(value))),
        }
    }
}

impl BitTest {
    fn holds(&self, value: u64) -> bool {
        let bits = value as u32 & self.mask;
        match self.comparison {
            Comparison::SomeBit => bits != 0,
            Comparison::NoBit => bits == 0,
            Comparison::OneOf(values) => values.contains(&bits),
            Comparison::NoneOf(values) => !values.contains(&bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lookup;
    use super::super::tables::SYSCALLS;

    /// Returns the names of the arguments that a call uses. `set` has the indices and values of registers; all other
    /// registers have bits set in their upper halves only.
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
    fn open_calls_use_the_mode_if_they_may_create_a_file() {
        assert!(uses("open", 1, libc::O_CREAT as u64, "mode"));
        assert!(uses("openat", 2, libc::O_TMPFILE as u64 | libc::O_RDWR as u64, "mode"));
        assert!(!uses("openat", 2, libc::O_DIRECTORY as u64 | libc::O_CLOEXEC as u64, "mode"));
        assert!(!uses("open", 2, libc::O_CREAT as u64, "mode"), "that is another argument");
        assert!(!uses("open", 1, (libc::O_CREAT as u64) << 32, "mode"), "the flags are an int");
        assert_eq!(used("mq_open", 1, libc::O_CREAT as u64), ["u_name", "oflag", "mode", "u_attr"]);
        assert_eq!(used("mq_open", 1, libc::O_TMPFILE as u64), ["u_name", "oflag"], "there are no unnamed queues");
    }

    #[test]
    fn mknod_uses_the_device_number_for_devices() {
        assert!(uses("mknod", 1, u64::from(libc::S_IFCHR) | 0o600, "dev"));
        assert!(uses("mknodat", 2, u64::from(libc::S_IFBLK), "dev"));
        assert!(!uses("mknod", 1, u64::from(libc::S_IFIFO) | 0o644, "dev"));
        assert!(!uses("mknodat", 2, u64::from(libc::S_IFSOCK), "dev"));
    }

    #[test]
    fn memory_calls_use_the_arguments_that_their_flags_require() {
        assert_eq!(used("mmap", 3, libc::MAP_PRIVATE as u64).len(), 6);
        assert_eq!(used("mmap", 3, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64).len(), 4);
        assert!(uses("mremap", 3, (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64, "new_addr"));
        assert!(uses("mremap", 3, (libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP) as u64, "new_addr"));
        assert!(!uses("mremap", 3, libc::MREMAP_MAYMOVE as u64, "new_addr"));
    }

    #[test]
    fn clone_uses_the_arguments_that_its_flags_require() {
        let more = |flags: i32| used("clone", 0, u64::from(flags as u32))[2..].to_vec();
        assert_eq!(more(libc::CLONE_PARENT_SETTID), ["parent_tidptr"]);
        assert_eq!(more(libc::CLONE_PIDFD), ["parent_tidptr"]);
        assert_eq!(more(libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD), ["child_tidptr"]);
        assert_eq!(more(libc::CLONE_CHILD_SETTID), ["child_tidptr"]);
        assert_eq!(more(libc::CLONE_SETTLS), ["tls"]);
        assert_eq!(more(libc::SIGCHLD), [""; 0]);
    }

    #[test]
    fn futex_uses_the_arguments_of_its_operation() {
        let more = |op: i32| used("futex", 1, op as u64)[2..].to_vec();
        assert_eq!(more(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG), ["val", "utime"]);
        assert_eq!(more(libc::FUTEX_WAKE), ["val"]);
        assert_eq!(more(libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME), ["val", "utime", "val3"]);
        assert_eq!(more(libc::FUTEX_WAIT_REQUEUE_PI), ["val", "utime", "uaddr2"]);
        assert_eq!(more(libc::FUTEX_LOCK_PI), ["utime"]);
        assert_eq!(more(libc::FUTEX_UNLOCK_PI), [""; 0]);
        assert_eq!(more(0x7e), ["val", "utime", "uaddr2", "val3"], "the kernel may know more operations");
        assert_eq!(more(libc::FUTEX_UNLOCK_PI | 512), ["uaddr2"], "FUTEX_ROBUST_UNLOCK clears the word there");
    }

    #[test]
    fn arguments_that_the_kernel_ignores_are_unused() {
        assert!(uses("epoll_ctl", 1, 0x2_0000_0000 | libc::EPOLL_CTL_ADD as u64, "event"), "the operation is an int");
        assert!(!uses("epoll_ctl", 1, libc::EPOLL_CTL_DEL as u64, "event"));
        assert!(uses("clock_nanosleep", 1, 0, "rmtp") && !uses("clock_nanosleep", 1, libc::TIMER_ABSTIME as u64, "rmtp"));
        assert!(uses("getgroups", 0, 64, "grouplist") && !uses("getgroups", 0, 0, "grouplist"));
        assert!(uses("kcmp", 2, 0, "idx2") && uses("kcmp", 2, 7, "idx2") && !uses("kcmp", 2, 1, "idx1"));
        assert!(uses("kcmp", 2, 99, "idx1") && uses("kcmp", 2, 99, "idx2"), "the kernel may know more types");
        assert_eq!([0, 1].map(|flags| used_with("membarrier", [(0, 1 << 8), (1, flags)]).len()), [2, 3]);
        assert!(uses("reboot", 2, libc::LINUX_REBOOT_CMD_RESTART2 as u32 as u64, "arg"));
        assert!(!uses("reboot", 2, libc::LINUX_REBOOT_CMD_RESTART as u32 as u64, "arg"));
        assert!(!uses("ptrace", 0, 0, "pid"), "PTRACE_TRACEME is about the caller");
    }
}
