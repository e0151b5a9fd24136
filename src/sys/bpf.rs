//! bpf(2), for the one question that libbpf does not ask.

use libbpf_sys::{BPF_F_SLEEPABLE, BPF_PROG_TYPE_RAW_TRACEPOINT, bpf_insn, bpf_prog_load, bpf_prog_load_opts};
use std::os::fd::{FromRawFd, OwnedFd};

/// `BPF_ALU64 | BPF_MOV | BPF_K` and `BPF_JMP | BPF_EXIT`: return 0.
const PROGRAM: [u8; 2] = [0xb7, 0x95];

/// Whether programs on raw tracepoints of system calls may sleep (from Linux 7.2). On such a kernel those that do not sleep may lose the CPU, too; on older ones they cannot.
pub fn raw_tracepoints_may_sleep() -> bool {
    let instructions = PROGRAM.map(|code| bpf_insn { code, ..Default::default() });
    let mut opts = bpf_prog_load_opts { sz: size_of::<bpf_prog_load_opts>() as _, prog_flags: BPF_F_SLEEPABLE, ..Default::default() };
    // SAFETY: libbpf reads two strings with their NUL, as many instructions as it is told, and reads and writes `opts` up to the size in it; it keeps none of them.
    let fd = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_RAW_TRACEPOINT,
            c"may_sleep".as_ptr(),
            c"Dual BSD/GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as _,
            &raw mut opts,
        )
    };
    if fd < 0 {
        return false;
    }
    // SAFETY: it is a new descriptor, which nobody else has.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    true
}
