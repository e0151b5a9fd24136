//! Sentences on stderr for whoever started rtrace.

use std::fmt;
use std::io::{self, Write};

/// Like `eprintln!`, but without a panic where nobody reads stderr any more (`rtrace … 2>&1 | head -n 1`): that is no reason to stop, and the command's exit status is still to come.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => { $crate::say::line(format_args!($($part)*)) };
}

/// Writes a line at once, so that another process's does not come in between.
pub fn line(text: fmt::Arguments) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
