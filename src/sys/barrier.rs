//! membarrier(2): waits until what the CPUs were doing is over.

/// `MEMBARRIER_CMD_GLOBAL` (include/uapi/linux/membarrier.h).
const GLOBAL: libc::c_int = 1;

/// Waits until every CPU has left the code of the kernel without preemption that it may have been in, such as the
/// writing of a record whose time was read before: the kernel waits for a grace period of RCU (membarrier_global in
/// kernel/sched/membarrier.c), some milliseconds. Returns false on kernels that do not offer it (`nohz_full`).
pub fn wait_for_all_cpus() -> bool {
    // SAFETY: the call takes numbers, and changes nothing.
    unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) == 0 }
}
