//! Sentences on stderr for whoever started rtrace.
//!
//! Names, patterns, paths and values that others chose come into most of them, by way of many errors. So what is not to reach a terminal is taken out here, where all of them pass,
//! and not where each is made: control characters and their like are escaped, and only the first line can begin as rtrace's lines do.

use crate::interrupt::Waiter;
use crate::stream::{Stream, is_given_up};
use crate::text::escape;
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

/// Writes a line at once, so that another process's does not come in between. Further lines of the text are indented, if they are not.
pub fn line(text: fmt::Arguments) {
    write(&message(&text.to_string(), ""));
}

/// The same for a list, whose every entry begins with this label.
pub fn list(label: &str, text: &str) {
    write(&message(text.trim_end(), label));
}

/// Once stderr took nothing more and rtrace was asked to end, nothing is written.
fn write(message: &[u8]) {
    let mut stderr = STDERR.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*stderr, Stderr::NotYetOpen) {
        *stderr = Stream::shared(io::stderr().as_fd(), Waiter::Main).map_or(Stderr::Gone, Stderr::Open);
    }
    if let Stderr::Open(stream) = &mut *stderr
        && let Err(unwritten) = stream.write_all(message)
        && is_given_up(&unwritten.error)
    {
        *stderr = Stderr::Gone;
    }
}

/// The text as it is written. Lines behind the first that begin neither with a blank nor with the label are part of the one before: somebody else's text has a newline in it.
fn message(text: &str, label: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 1);
    for (number, line) in text.split('\n').enumerate() {
        let is_own = line.is_empty() || line.starts_with(' ') || !label.is_empty() && line.starts_with(label);
        if number > 0 && !is_own {
            out.extend_from_slice(b"    ");
        }
        escape::controls(&mut out, line.as_bytes());
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, label: &str) -> String {
        String::from_utf8(message(text, label)).unwrap()
    }

    #[test]
    fn what_others_wrote_is_seen_and_does_nothing() {
        assert_eq!(
            said("rtrace: a\x1b[31m\u{9b}\u{202e}\r: command not found", ""),
            "rtrace: a\\x1b[31m\\u{9b}\\u{202e}\\r: command not found\n"
        );
        assert_eq!(said("rtrace: a\nrtrace: 7 calls issued", ""), "rtrace: a\n    rtrace: 7 calls issued\n");
        assert_eq!(said("plan: a\nplan: b\nc\n", "plan: "), "plan: a\nplan: b\n    c\n\n");
    }

    #[test]
    fn what_is_ours_stays() {
        let own = "rtrace: -e: `x` is no term (grün, \\d)\n    opennat/x\n            ^\n\n  also";
        assert_eq!(said(own, ""), format!("{own}\n"));
    }
}
