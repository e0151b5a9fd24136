//! What has to be done before `main`, and before Rust's runtime begins.
//!
//! It is part of the program rtrace, not of the library: tests and fuzzers that link that are not to have their world
//! written down, and do not show it in traces of themselves.
#![allow(unsafe_code)]

use rtrace::sys::caller;

/// The C library calls each function in that section before `main`. (generic ABI, "Initialization and Termination Functions")
#[used]
// SAFETY: the section holds pointers to functions that are called with the C calling convention; arguments that they do not take are ignored by it.
#[unsafe(link_section = ".init_array")]
static WRITE_DOWN: extern "C" fn() = write_down;

extern "C" fn write_down() {
    caller::write_down();
}
