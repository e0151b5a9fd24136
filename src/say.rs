//! Sentences on stderr for whoever started rtrace.

use crate::interrupt::Waiter;
use crate::stream::{Stream, is_given_up};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

/// Like `eprintln!`, but without a panic where nobody reads stderr any more (`rtrace … 2>&1 | head -n 1`): that is no reason to stop, and the command's exit status is still to come.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => { $crate::say::line(format_args!($($part)*)) };
}

/// Where sentences go.
enum Stderr {
    NotYetOpen,
    Open(Stream),
    /// Nobody takes them.
    Gone,
}

static STDERR: Mutex<Stderr> = Mutex::new(Stderr::NotYetOpen);

/// Writes a line at once, so that another process's does not come in between. Once stderr took nothing more and rtrace was asked to end, nothing is written.
pub fn line(text: fmt::Arguments) {
    let mut stderr = STDERR.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*stderr, Stderr::NotYetOpen) {
        *stderr = Stream::shared(io::stderr().as_fd(), Waiter::Main).map_or(Stderr::Gone, Stderr::Open);
    }
    if let Stderr::Open(stream) = &mut *stderr
        && let Err(unwritten) = stream.write_all(format!("{text}\n").as_bytes())
        && is_given_up(&unwritten.error)
    {
        *stderr = Stderr::Gone;
    }
}
