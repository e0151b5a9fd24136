//! Saves the state inherited from the caller before Rust's runtime starts.
//!
//! This is part of the program rtrace, not of the library: tests and fuzzers that link the library need no saved state,
//! and the system calls for it must not appear in traces of themselves.
#![allow(unsafe_code)]

use rtrace::program;

/// The C library calls each function in this section before `main` (generic ABI, "Initialization and Termination
/// Functions").
#[used]
// SAFETY: the section holds pointers to functions with the C calling convention, in which a function may ignore
// arguments.
#[unsafe(link_section = ".init_array")]
static SAVE_STATE: extern "C" fn() = save_state;

extern "C" fn save_state() {
    program::save_state();
}
