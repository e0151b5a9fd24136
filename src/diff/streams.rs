//! The standard streams: which of them lead where the caller of the command let them lead.
//!
//! A program that reads from its standard input reads another file in each run, if the caller says so. What the program
//! itself puts in place of a stream (`2>/dev/null` in a script, `if=` of dd) is a file like any other.

use crate::event::{Call, File};

/// What the standard streams are called, by their descriptors.
pub const STREAMS: [&[u8]; 3] = [b"standard input", b"standard output", STANDARD_ERROR];

/// What the descriptor 2 is called.
pub const STANDARD_ERROR: &[u8] = b"standard error";

/// The most files that are remembered.
const FILES_MAX: usize = 64;

/// The files that processes had as standard streams before they opened others. Shells keep these files in descriptors
/// above 10 while a command has another one, and put them back.
#[derive(Debug, Default)]
pub struct Streams {
    callers: Vec<File>,
}

impl Streams {
    /// Takes the file behind a standard stream that the process did not open.
    pub fn add(&mut self, file: File) {
        if self.callers.len() < FILES_MAX && !self.is_callers(&file) {
            self.callers.push(file);
        }
    }

    /// Returns whether the caller let a standard stream lead to this file.
    pub fn is_callers(&self, file: &File) -> bool {
        self.callers.contains(file)
    }
}

/// Returns the standard stream that a call opened, as the bit 1 << N for the descriptor N; 0 if it opened none.
pub fn opened(name: &str, call: &Call) -> u8 {
    let arguments = call.args.unwrap_or_default();
    let is_opening = match name {
        "dup" | "dup2" | "dup3" | "open" | "openat" | "openat2" | "creat" => true,
        "fcntl" | "fcntl64" => [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].iter().any(|command| arguments[1] == *command as u64),
        _ => false,
    };
    match call.ret() {
        Some(fd @ 0..=2) if is_opening => 1 << fd,
        _ => 0,
    }
}
