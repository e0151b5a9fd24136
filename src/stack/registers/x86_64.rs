//! x86-64: DWARF numbers from the System V ABI (figure "DWARF Register Number Mapping"), perf's from
//! `arch/x86/include/uapi/asm/perf_regs.h`.

use super::{Layout, NONE};

/// The layout of 64-bit and x32 programs: call instructions push the return address, of 8 bytes in both.
pub const LAYOUT: Layout = Layout {
    word_bytes: 8,
    program_counter: 16,
    stack_pointer: 7,
    frame_pointer: 6,
    link_register: None,
    // rbx, rbp, rsp, r12 to r15.
    preserved: 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12,
    code_address_mask: u64::MAX,
    // The 16 general registers and the instruction pointer. Unwinding does not use flags and segments.
    sample_mask: 0x1ff | 0xff << 16,
    of_perf: &[
        // ax, bx, cx, dx, si, di, bp, sp, ip
        0, 3, 2, 1, 4, 5, 6, 7, 16, // flags, cs, ss, ds, es, fs, gs
        NONE, NONE, NONE, NONE, NONE, NONE, NONE, // r8 to r15
        8, 9, 10, 11, 12, 13, 14, 15,
    ],
};
