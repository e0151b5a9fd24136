//! Which arguments a call uses at all: the predicates that rows name after `?`.
//!
//! An argument that the kernel does not look at holds whatever the register held, and is not shown. Each predicate sees the argument
//! registers as they are; what is an int for the kernel is compared as one. Sources are the calls' definitions in the kernel.

/// A value that is `int` or `unsigned int` for the kernel: the register's lower half.
fn low(args: &[u64; 6], index: usize) -> u32 {
    args[index] as u32
}

fn any_bit(args: &[u64; 6], index: usize, bits: u32) -> bool {
    low(args, index) & bits != 0
}

/// Never: the kernel ignores the argument (`pid` of ptrace with PTRACE_TRACEME).
pub fn never(_: &[u64; 6]) -> bool {
    false
}

/// O_CREAT, or the bit of O_TMPFILE that no other flag has (asm-generic/fcntl.h, the same in every ABI here).
const CREATES: u32 = 0o100 | 0o20_000_000;

/// `mode` of open.
pub fn creates_open(args: &[u64; 6]) -> bool {
    any_bit(args, 1, CREATES)
}

/// `mode` of openat.
pub fn creates_openat(args: &[u64; 6]) -> bool {
    any_bit(args, 2, CREATES)
}

/// `mode` and `u_attr` of mq_open, which knows no O_TMPFILE.
pub fn creates_mq(args: &[u64; 6]) -> bool {
    any_bit(args, 1, 0o100)
}

/// The type in a mode is S_IFCHR or S_IFBLK.
fn is_device(mode: u32) -> bool {
    matches!(mode & 0o170_000, 0o020_000 | 0o060_000)
}

/// `dev` of mknod.
pub fn makes_device_mknod(args: &[u64; 6]) -> bool {
    is_device(low(args, 1))
}

/// `dev` of mknodat.
pub fn makes_device_mknodat(args: &[u64; 6]) -> bool {
    is_device(low(args, 2))
}

/// `fd` and `off` of mmap: without MAP_ANONYMOUS.
pub fn maps_file(args: &[u64; 6]) -> bool {
    !any_bit(args, 3, 0x20)
}

/// `new_addr` of mremap: MREMAP_FIXED or MREMAP_DONTUNMAP (mm/mremap.c).
pub fn remaps_to(args: &[u64; 6]) -> bool {
    any_bit(args, 3, 2 | 4)
}

/// `event` of epoll_ctl: not with EPOLL_CTL_DEL.
pub fn epoll_ctl_has_event(args: &[u64; 6]) -> bool {
    low(args, 1) != 2
}

/// `rmtp` of clock_nanosleep: not with TIMER_ABSTIME.
pub fn sleeps_relative(args: &[u64; 6]) -> bool {
    !any_bit(args, 1, 1)
}

/// `grouplist` of getgroups: a size of 0 only asks how many there are.
pub fn gets_groups(args: &[u64; 6]) -> bool {
    low(args, 0) != 0
}

/// `parent_tidptr` of clone: CLONE_PARENT_SETTID, or CLONE_PIDFD, which stores there too.
pub fn clone_parent_tid(args: &[u64; 6]) -> bool {
    any_bit(args, 0, 0x0010_0000 | 0x1000)
}

/// `child_tidptr` of clone: CLONE_CHILD_SETTID or CLONE_CHILD_CLEARTID.
pub fn clone_child_tid(args: &[u64; 6]) -> bool {
    any_bit(args, 0, 0x0100_0000 | 0x0020_0000)
}

/// `tls` of clone: CLONE_SETTLS.
pub fn clone_tls(args: &[u64; 6]) -> bool {
    any_bit(args, 0, 0x0008_0000)
}

/// `idx1` and `idx2` of kcmp: KCMP_FILE and KCMP_EPOLL_TFD.
pub fn kcmp_has_indexes(args: &[u64; 6]) -> bool {
    matches!(low(args, 2), 0 | 7)
}

/// The capability of prctl(PR_CAP_AMBIENT): not with PR_CAP_AMBIENT_CLEAR_ALL.
pub fn ambient_names_capability(args: &[u64; 6]) -> bool {
    low(args, 1) != 4
}

/// `cpu_id` of membarrier: with MEMBARRIER_CMD_FLAG_CPU.
pub fn membarrier_names_cpu(args: &[u64; 6]) -> bool {
    any_bit(args, 1, 1)
}

/// `arg` of reboot: LINUX_REBOOT_CMD_RESTART2.
pub fn restarts_with_command(args: &[u64; 6]) -> bool {
    low(args, 2) == 0xa1b2_c3d4
}

/// futex's operations that predicates tell apart (linux/futex.h), without the flags of `op`.
mod futex {
    pub const WAIT: u32 = 0;
    pub const REQUEUE: u32 = 3;
    pub const CMP_REQUEUE: u32 = 4;
    pub const WAKE_OP: u32 = 5;
    pub const LOCK_PI: u32 = 6;
    pub const UNLOCK_PI: u32 = 7;
    pub const TRYLOCK_PI: u32 = 8;
    pub const WAIT_BITSET: u32 = 9;
    pub const WAKE_BITSET: u32 = 10;
    pub const WAIT_REQUEUE_PI: u32 = 11;
    pub const CMP_REQUEUE_PI: u32 = 12;
    pub const LOCK_PI2: u32 = 13;
    /// FUTEX_ROBUST_UNLOCK: the word at `uaddr2` is cleared with the unlock.
    pub const ROBUST_UNLOCK: u32 = 512;

    pub fn command(args: &[u64; 6]) -> u32 {
        args[1] as u32 & 0x7f
    }
}

/// `val` of futex: the locks take none.
pub fn futex_val(args: &[u64; 6]) -> bool {
    !matches!(futex::command(args), futex::LOCK_PI | futex::LOCK_PI2 | futex::UNLOCK_PI | futex::TRYLOCK_PI)
}

/// `utime` of futex as a timeout.
pub fn futex_timeout(args: &[u64; 6]) -> bool {
    matches!(futex::command(args), futex::WAIT | futex::WAIT_BITSET | futex::LOCK_PI | futex::LOCK_PI2 | futex::WAIT_REQUEUE_PI)
}

/// `uaddr2` of futex.
pub fn futex_second(args: &[u64; 6]) -> bool {
    let moves = matches!(
        futex::command(args),
        futex::REQUEUE | futex::CMP_REQUEUE | futex::CMP_REQUEUE_PI | futex::WAIT_REQUEUE_PI | futex::WAKE_OP
    );
    moves || any_bit(args, 1, futex::ROBUST_UNLOCK)
}

/// `val3` of futex as a bit set.
pub fn futex_bitset(args: &[u64; 6]) -> bool {
    matches!(futex::command(args), futex::WAIT_BITSET | futex::WAKE_BITSET)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Argument registers of which one or two matter.
    fn args(set: &[(usize, u64)]) -> [u64; 6] {
        let mut args = [0xdead_beef_0000_0000; 6];
        for &(index, value) in set {
            args[index] = value;
        }
        args
    }

    #[test]
    fn a_mode_counts_where_a_file_may_be_made() {
        assert!(creates_open(&args(&[(1, libc::O_CREAT as u64)])));
        assert!(creates_openat(&args(&[(2, libc::O_TMPFILE as u64 | libc::O_RDWR as u64)])));
        assert!(!creates_openat(&args(&[(2, libc::O_DIRECTORY as u64 | libc::O_CLOEXEC as u64)])));
        assert!(!creates_open(&args(&[(1, 0), (2, libc::O_CREAT as u64)])));
        assert!(creates_mq(&args(&[(1, libc::O_CREAT as u64 | libc::O_RDWR as u64)])));
        assert!(!creates_mq(&args(&[(1, libc::O_TMPFILE as u64)])));
    }

    #[test]
    fn a_device_number_counts_for_devices() {
        assert!(makes_device_mknod(&args(&[(1, u64::from(libc::S_IFCHR) | 0o600)])));
        assert!(makes_device_mknodat(&args(&[(2, u64::from(libc::S_IFBLK))])));
        assert!(!makes_device_mknod(&args(&[(1, u64::from(libc::S_IFIFO) | 0o644)])));
        assert!(!makes_device_mknodat(&args(&[(2, u64::from(libc::S_IFSOCK))])));
    }

    #[test]
    fn memory_calls() {
        assert!(maps_file(&args(&[(3, libc::MAP_PRIVATE as u64)])));
        assert!(!maps_file(&args(&[(3, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64)])));
        assert!(remaps_to(&args(&[(3, (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64)])));
        assert!(remaps_to(&args(&[(3, (libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP) as u64)])));
        assert!(!remaps_to(&args(&[(3, libc::MREMAP_MAYMOVE as u64)])));
    }

    #[test]
    fn clone_uses_what_its_flags_name() {
        let flags = |bits: i32| args(&[(0, bits as u32 as u64)]);
        assert!(clone_parent_tid(&flags(libc::CLONE_PARENT_SETTID)));
        assert!(clone_parent_tid(&flags(libc::CLONE_PIDFD)));
        assert!(clone_child_tid(&flags(libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD)));
        assert!(clone_child_tid(&flags(libc::CLONE_CHILD_SETTID)));
        assert!(clone_tls(&flags(libc::CLONE_SETTLS)));
        let plain = flags(libc::SIGCHLD);
        assert!(!clone_parent_tid(&plain) && !clone_child_tid(&plain) && !clone_tls(&plain));
    }

    #[test]
    fn futex_uses_what_its_operation_takes() {
        let op = |op: i32| args(&[(1, op as u64)]);
        let used = |op: &[u64; 6]| [futex_val(op), futex_timeout(op), futex_second(op), futex_bitset(op)];
        assert_eq!(used(&op(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG)), [true, true, false, false]);
        assert_eq!(used(&op(libc::FUTEX_WAKE)), [true, false, false, false]);
        assert_eq!(used(&op(libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME)), [true, true, false, true]);
        assert_eq!(used(&op(libc::FUTEX_CMP_REQUEUE)), [true, false, true, false]);
        assert_eq!(used(&op(libc::FUTEX_LOCK_PI)), [false, true, false, false]);
        assert_eq!(used(&op(libc::FUTEX_UNLOCK_PI)), [false; 4]);
        assert_eq!(used(&op(libc::FUTEX_UNLOCK_PI | 512)), [false, false, true, false]);
    }

    #[test]
    fn single_cases() {
        assert!(!never(&[1; 6]));
        assert!(epoll_ctl_has_event(&args(&[(1, libc::EPOLL_CTL_ADD as u64)])));
        assert!(!epoll_ctl_has_event(&args(&[(1, libc::EPOLL_CTL_DEL as u64)])));
        assert!(sleeps_relative(&args(&[(1, 0)])));
        assert!(!sleeps_relative(&args(&[(1, libc::TIMER_ABSTIME as u64)])));
        assert!(gets_groups(&args(&[(0, 64)])));
        assert!(!gets_groups(&args(&[(0, 0)])));
        assert!(kcmp_has_indexes(&args(&[(2, 0)])) && kcmp_has_indexes(&args(&[(2, 7)])));
        assert!(!kcmp_has_indexes(&args(&[(2, 1)])));
        assert!(ambient_names_capability(&args(&[(1, libc::PR_CAP_AMBIENT_RAISE as u64)])));
        assert!(!ambient_names_capability(&args(&[(1, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64)])));
        assert!(membarrier_names_cpu(&args(&[(1, 1)])));
        assert!(!membarrier_names_cpu(&args(&[(1, 0)])));
        assert!(restarts_with_command(&args(&[(2, libc::LINUX_REBOOT_CMD_RESTART2 as u32 as u64)])));
        assert!(!restarts_with_command(&args(&[(2, libc::LINUX_REBOOT_CMD_RESTART as u32 as u64)])));
    }

    #[test]
    fn only_the_lower_half_of_an_int_counts() {
        assert!(!creates_open(&args(&[(1, 0x40_0000_0000)])));
        assert!(epoll_ctl_has_event(&args(&[(1, 0x2_0000_0001)])));
    }
}
