//! aarch64: DWARF numbers from "DWARF for the Arm 64-bit Architecture", perf's from
//! `arch/arm64/include/uapi/asm/perf_regs.h`. The numbers are the same; only the program counter's names differ.

use super::Layout;

/// The layout of 64-bit programs: call instructions put the return address into x30.
pub const LAYOUT: Layout = Layout {
    word_bytes: 8,
    program_counter: 32,
    stack_pointer: 31,
    frame_pointer: 29,
    link_register: Some(30),
    // x19 to x29, sp.
    preserved: 0x7ff << 19 | 1 << 31,
    // The bits above may be a pointer authentication code. A program gets addresses of more than 48 bits only if it
    // requests them from mmap(2).
    code_address_mask: (1 << 48) - 1,
    sample_mask: 0x1_ffff_ffff,
    of_perf: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32],
};
