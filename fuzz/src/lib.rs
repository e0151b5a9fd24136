//! What is fuzzed: code that reads foreign bytes. Each target takes any bytes and comes back, in little time and memory.
//!
//! The fuzzer (`fuzz/run`) and `tests/fuzz_corpus.rs`, which repeats what it found worth keeping, include this file.

pub mod cfi;
pub mod image;
pub mod lines;
pub mod names;
pub mod probes;
pub mod records;
pub mod symbols;
mod walk;

use cap::Cap;
use std::alloc::System;

/// No target's input may make it ask for more memory than this: it is the bound of `stack/symbols/packed.rs`'s windows and some more.
const MEMORY_MAX: usize = 256 << 20;

/// Beyond the bound there is no memory, which ends the program.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MEMORY_MAX);

/// What is called with any bytes.
pub type Target = fn(&[u8]);

/// By their names.
pub const TARGETS: [(&str, Target); 7] = [
    ("cfi", cfi::run),
    ("image", image::run),
    ("lines", lines::run),
    ("names", names::run),
    ("probes", probes::run),
    ("records", records::run),
    ("symbols", symbols::run),
];
