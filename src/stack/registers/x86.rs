//! 32-bit x86 programs, also on a 64-bit kernel: DWARF numbers from the i386 psABI, perf's from
//! `arch/x86/include/uapi/asm/perf_regs.h`.

use super::{Layout, NONE};

/// The layout of 32-bit programs: call instructions push the return address, of 4 bytes.
pub const LAYOUT: Layout = Layout {
    word_bytes: 4,
    program_counter: 8,
    stack_pointer: 4,
    frame_pointer: 5,
    link_register: None,
    // ebx, esp, ebp, esi, edi.
    preserved: 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7,
    code_address_mask: 0xffff_ffff,
    sample_mask: 0x1ff,
    of_perf: &[
        // ax, bx, cx, dx, si, di, bp, sp, ip
        0, 3, 1, 2, 6, 7, 5, 4, 8, // flags, cs, ss, ds, es, fs, gs, and r8 to r15, which samples of 64-bit tasks have
        NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    ],
};
