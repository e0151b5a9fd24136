//! What rtrace gives up once all is armed: capabilities that the rest of the run has no use for, and system calls that
//! it never makes.
//!
//! From then on rtrace reads what others wrote: records, memory, ELF files and what is in them. Whoever found a mistake
//! there is not to get root's power over the kernel by it. What root's files are worth stays within reach (his
//! capabilities are not what lets him write them), and so does the rest of this process: threads share their memory, so
//! there is one filter for all of them, and a thread with fewer capabilities than another one is a matter of order, no
//! wall.

use super::lent;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// To find files that others have mapped, and read them; to write outputs where the caller wants them.
const OF_WORKER: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::SYSLOG);
/// To pass signals on to a command of another user, to list tasks by BPF programs, and to load those for 32-bit
/// programs.
const OF_MAIN: CapabilitySet = OF_WORKER.union(CapabilitySet::KILL).union(CapabilitySet::PERFMON).union(CapabilitySet::BPF);
/// The highest number that there may be.
const CAPABILITIES_MAX: u32 = 63;

/// For the thread that makes events of records and prints them: called by it, before it reads anything.
pub fn of_worker() {
    keep(OF_WORKER);
}

/// For the main thread, when all is armed; the filter is for all threads. `asks_for_programs`: it looks for other
/// tracers' BPF programs, whose list takes CAP_SYS_ADMIN.
pub fn when_armed(asks_for_programs: bool) {
    keep(if asks_for_programs { OF_MAIN.union(CapabilitySet::SYS_ADMIN) } else { OF_MAIN });
    refuse_calls();
}

/// Keeps no others of the capabilities that this thread has. What it executes has no others either.
fn keep(wanted: CapabilitySet) {
    if lent::is_lent() {
        return lent::give_up();
    }
    let Ok(held) = thread::capabilities(None) else { return };
    if wanted.contains(held.permitted) {
        return;
    }
    // Root gets them back from this set where he executes a program. Whoever may not change it has no use for it.
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
    // A thread may always have fewer; if not, it is what it was.
    let _ = thread::set_capabilities(None, fewer);
}

/// Calls that change the machine or other processes, or begin something that no part of rtrace, nor a program that it
/// runs for debug files (`debuginfod-find`, `xz`), does.
const NEVER_MADE: &[libc::c_long] = &[
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

/// include/uapi/linux/audit.h
const ARCHITECTURE: u32 = if cfg!(target_arch = "aarch64") { 0xc000_00b7 } else { 0xc000_003e };
/// Numbers from here on are of the x32 ABI (arch/x86/include/uapi/asm/unistd.h): other numbers for the same calls.
const X32: u32 = 0x4000_0000;
/// Where struct seccomp_data has the call's number, and its architecture.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// The filter's instructions: another ABI's calls and those of the list are refused, all others made.
fn filter() -> Vec<libc::sock_filter> {
    let load = |at| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let answer = |what| instruction(libc::BPF_RET | libc::BPF_K, what, 0, 0);
    let count = NEVER_MADE.len() as u8;
    let equals = |what, then, otherwise| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, what, then, otherwise);
    let is_x32 = instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, X32, count + 1, 0);
    let mut filter = vec![load(ARCHITECTURE_AT), equals(ARCHITECTURE, 0, count + 3), load(NUMBER_AT), is_x32];
    filter.extend(NEVER_MADE.iter().zip(0u8..).map(|(number, at)| equals(*number as u32, count - at, 0)));
    filter.extend([answer(libc::SECCOMP_RET_ALLOW), answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32)]);
    filter
}

fn instruction(code: u32, k: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: then, jf: otherwise, k }
}

/// For all threads of this process and what they start. The command and the output's reader were started before. A
/// kernel without seccomp has no filter.
fn refuse_calls() {
    // Without this, only who has CAP_SYS_ADMIN may filter.
    if thread::set_no_new_privs(true).is_err() {
        return;
    }
    let mut filter = filter();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel reads the program, whose instructions are as many as it says, and copies it.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC, &raw const program) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter says of a call, as the kernel would run it.
    fn asked(architecture: u32, number: u32) -> u32 {
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
    fn only_calls_of_the_list_are_refused() {
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        for number in NEVER_MADE {
            assert_eq!(asked(ARCHITECTURE, *number as u32), refused, "{number}");
            assert_eq!(asked(ARCHITECTURE, *number as u32 | X32), refused, "{number} of x32");
        }
        for number in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_bpf, libc::SYS_renameat2, libc::SYS_clone3] {
            assert_eq!(asked(ARCHITECTURE, number as u32), libc::SECCOMP_RET_ALLOW, "{number}");
            assert_eq!(asked(0x4000_0003, number as u32), refused, "a 32-bit call, {number}");
        }
    }
}
