//! Drops the capabilities that the rest of the run does not need once all is armed, and denies system calls that rtrace
//! never makes.
//!
//! From then on rtrace reads data of others: records, memory, ELF files and their content. An attacker who exploits a
//! bug there must not get root's power over the kernel. Two things are not protected. Root's files stay writable, since
//! root needs no capability to write them. And the threads of this process share their memory: so there is one seccomp
//! filter for all of them, and a thread with fewer capabilities than another is no security boundary.

use super::file_capabilities;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// To find and read files that other processes have mapped, and to write outputs where the caller wants them.
const WORKER_CAPABILITIES: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::SYSLOG);
/// To forward signals to a command of another user, to list tasks by BPF programs, and to load the BPF programs for
/// 32-bit programs.
const MAIN_CAPABILITIES: CapabilitySet =
    WORKER_CAPABILITIES.union(CapabilitySet::KILL).union(CapabilitySet::PERFMON).union(CapabilitySet::BPF);
/// The highest possible capability number.
const CAPABILITIES_MAX: u32 = 63;

/// Drops the capabilities that the worker thread does not need. The worker calls this before it reads any record.
pub fn drop_in_worker() {
    keep(WORKER_CAPABILITIES);
}

/// Drops the capabilities that the main thread does not need, and sets the seccomp filter of all threads, when all is
/// armed. With `lists_programs`, the thread later lists the BPF programs of other tracers, which requires
/// CAP_SYS_ADMIN.
pub fn drop_after_arming(lists_programs: bool) {
    keep(if lists_programs { MAIN_CAPABILITIES.union(CapabilitySet::SYS_ADMIN) } else { MAIN_CAPABILITIES });
    deny_calls();
}

/// Drops all other capabilities of this thread. A program that it executes has no others either.
fn keep(wanted: CapabilitySet) {
    if file_capabilities::are_present() {
        return file_capabilities::drop_all();
    }
    let Ok(held) = thread::capabilities(None) else { return };
    if wanted.contains(held.permitted) {
        return;
    }
    // When root executes a program, it regains capabilities from the bounding set. A process that may not change that
    // set cannot regain them either.
    for number in 0..=CAPABILITIES_MAX {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if !wanted.contains(one) && thread::capability_is_in_bounding_set(one).is_ok_and(|has| has) {
            let _ = thread::remove_capability_from_bounding_set(one);
        }
    }
    let fewer = CapabilitySets {
        effective: held.effective.intersection(wanted),
        permitted: held.permitted.intersection(wanted),
        inheritable: held.inheritable.intersection(wanted),
    };
    // A thread may always drop capabilities. If this fails, the thread keeps its capabilities.
    let _ = thread::set_capabilities(None, fewer);
}

/// Denied system calls: they change the machine or other processes, or start something that neither rtrace nor a
/// program that it runs for debug files (`debuginfod-find`, `xz`) uses.
const DENIED_CALLS: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_personality,
    libc::SYS_vhangup,
    libc::SYS_syslog,
];

/// AUDIT_ARCH_AARCH64 or AUDIT_ARCH_X86_64 (include/uapi/linux/audit.h).
const ARCHITECTURE: u32 = if cfg!(target_arch = "aarch64") { 0xc000_00b7 } else { 0xc000_003e };
/// Numbers from here on belong to the x32 ABI (arch/x86/include/uapi/asm/unistd.h): other numbers for the same calls.
const X32: u32 = 0x4000_0000;
/// The offset of the call's number in struct seccomp_data.
const NUMBER_AT: u32 = 0;
/// The offset of the architecture in struct seccomp_data.
const ARCHITECTURE_AT: u32 = 4;

/// Returns the filter's instructions. It denies the calls of the list and all calls of another ABI, and allows all
/// others.
fn filter() -> Vec<libc::sock_filter> {
    let load = |at| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let answer = |what| instruction(libc::BPF_RET | libc::BPF_K, what, 0, 0);
    let count = DENIED_CALLS.len() as u8;
    let equals = |what, then, otherwise| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, what, then, otherwise);
    let is_x32 = instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, X32, count + 1, 0);
    let mut filter = vec![load(ARCHITECTURE_AT), equals(ARCHITECTURE, 0, count + 3), load(NUMBER_AT), is_x32];
    filter.extend(DENIED_CALLS.iter().zip(0u8..).map(|(number, at)| equals(*number as u32, count - at, 0)));
    filter.extend([answer(libc::SECCOMP_RET_ALLOW), answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32)]);
    filter
}

fn instruction(code: u32, k: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: then, jf: otherwise, k }
}

/// Sets the filter for all threads of this process and the processes that they start. The command and the process that
/// reads rtrace's output were started before. A kernel without seccomp has no filter.
fn deny_calls() {
    // Without no_new_privs, setting a filter requires CAP_SYS_ADMIN.
    if thread::set_no_new_privs(true).is_err() {
        return;
    }
    let mut filter = filter();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel reads and copies the program, whose length is that of the vector.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC, &raw const program) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter for a call as the kernel does, and returns its result.
    fn result_of(architecture: u32, number: u32) -> u32 {
        let filter = filter();
        let (mut at, mut word) = (0, 0);
        loop {
            let one = filter[at];
            at += 1;
            match u32::from(one.code) & 7 {
                libc::BPF_LD => word = if one.k == NUMBER_AT { number } else { architecture },
                libc::BPF_JMP if u32::from(one.code) & 0xf0 == libc::BPF_JGE => {
                    at += usize::from(if word >= one.k { one.jt } else { one.jf })
                }
                libc::BPF_JMP => at += usize::from(if word == one.k { one.jt } else { one.jf }),
                _ => return one.k,
            }
        }
    }

    #[test]
    fn only_calls_of_the_list_and_other_abis_are_denied() {
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        for number in DENIED_CALLS {
            assert_eq!(result_of(ARCHITECTURE, *number as u32), refused, "{number}");
            assert_eq!(result_of(ARCHITECTURE, *number as u32 | X32), refused, "{number} of x32");
        }
        for number in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_bpf, libc::SYS_renameat2, libc::SYS_clone3] {
            assert_eq!(result_of(ARCHITECTURE, number as u32), libc::SECCOMP_RET_ALLOW, "{number}");
            assert_eq!(result_of(0x4000_0003, number as u32), refused, "a 32-bit call, {number}");
        }
    }
}
