//! The fuzz targets, which call the code that parses untrusted bytes. For any input, a target must return, and use
//! little time and memory.
//!
//! The fuzzer (`fuzz/run`) includes this file, and so does `tests/fuzz_corpus.rs`, which runs the inputs of the corpus.

pub mod calls;
pub mod cfi;
pub mod image;
pub mod lines;
pub mod messages;
pub mod names;
pub mod probes;
pub mod recordings;
pub mod records;
mod render;
pub mod symbols;
pub mod traces;
mod walk;

use cap::Cap;
use std::alloc::System;

/// The maximum memory of a target in bytes: the limit of windows in `stack/symbols/compression.rs`, and some more.
const MEMORY_MAX: usize = 256 << 20;

/// Allocations beyond the limit fail, which ends the program.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MEMORY_MAX);

/// A function that is called with arbitrary bytes.
pub type Target = fn(&[u8]);

/// The targets and their names.
pub const TARGETS: [(&str, Target); 11] = [
    ("calls", calls::run),
    ("cfi", cfi::run),
    ("image", image::run),
    ("lines", lines::run),
    ("messages", messages::run),
    ("names", names::run),
    ("probes", probes::run),
    ("recordings", recordings::run),
    ("records", records::run),
    ("symbols", symbols::run),
    ("traces", traces::run),
];
