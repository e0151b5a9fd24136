//! Messages on stderr.
//!
//! Most messages contain names, patterns, paths and values that others chose. So control characters and the like are
//! escaped here, where all messages pass, and not where each message is created. Only the first line of a message can
//! begin as rtrace's lines do.
//!
//! A message that is printed while a trace runs is a notice ([`notice`]). The caller adds it to the stream, so that all
//! sinks get it.

use crate::event::{Notice, NoticeCode};
use crate::interrupt::Waiter;
use crate::stream::{Stream, is_given_up};
use crate::text::escape;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Prints a message like `eprintln!`, but without a panic if stderr has no reader (`rtrace … 2>&1 | head -n 1`): rtrace
/// must continue, since it still has to return the command's exit status.
macro_rules! say {
    ($($part:tt)*) => { $crate::say::line(format_args!($($part)*)) };
}
pub(crate) use say;

/// The state of stderr.
enum Stderr {
    NotYetOpen,
    Open(Stream),
    /// Messages are discarded.
    Gone,
}

static STDERR: Mutex<Stderr> = Mutex::new(Stderr::NotYetOpen);

/// The last line on stderr is one that the next message replaces.
static IS_TRANSIENT: AtomicBool = AtomicBool::new(false);
/// Carriage return, and ECMA-48's EL: erase the line from the cursor on.
const ERASE: &[u8] = b"\r\x1b[K";

/// Writes a message with a single write, so that no other process's line comes in between. Its further lines are
/// indented.
pub fn line(text: fmt::Arguments) {
    write(&message(&text.to_string(), ""));
}

/// Prints a notice like [`say!`], and returns it for the stream.
#[must_use = "a message that is no event of the stream is printed with say!"]
pub fn notice(code: NoticeCode, text: String) -> Notice {
    line(format_args!("rtrace: {text}"));
    Notice { code, text }
}

/// Writes a list whose entries all begin with `label`.
pub fn list(label: &str, text: &str) {
    write(&message(text.trim_end(), label));
}

/// Shows a line until the next message, or until [`end_transient`]. stderr is a terminal.
pub fn transient(text: &str) {
    let mut line = Vec::new();
    escape::controls(&mut line, text.as_bytes());
    write(&line);
    IS_TRANSIENT.store(true, Ordering::Relaxed);
}

/// Erases the line that [`transient`] has shown.
pub fn end_transient() {
    write(&[]);
}

/// Writes a message. After a write was given up because rtrace was asked to end, messages are discarded.
fn write(message: &[u8]) {
    let mut stderr = STDERR.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*stderr, Stderr::NotYetOpen) {
        *stderr = Stream::shared(io::stderr().as_fd(), Waiter::Main).map_or(Stderr::Gone, Stderr::Open);
    }
    let message = if IS_TRANSIENT.swap(false, Ordering::Relaxed) { &[ERASE, message].concat() } else { message };
    if let Stderr::Open(stream) = &mut *stderr
        && let Err(unwritten) = stream.write_all(message)
        && is_given_up(&unwritten.error)
    {
        *stderr = Stderr::Gone;
    }
}

/// Formats a message. A further line that begins neither with a blank nor with the label belongs to the line before: it
/// comes from a newline in foreign text.
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

    fn formatted(text: &str, label: &str) -> String {
        String::from_utf8(message(text, label)).unwrap()
    }

    #[test]
    fn control_characters_and_newlines_of_others_are_escaped() {
        assert_eq!(
            formatted("rtrace: a\x1b[31m\u{9b}\u{202e}\r: command not found", ""),
            "rtrace: a\\x1b[31m\\u{9b}\\u{202e}\\r: command not found\n"
        );
        assert_eq!(formatted("rtrace: a\nrtrace: 7 calls issued", ""), "rtrace: a\n    rtrace: 7 calls issued\n");
        assert_eq!(formatted("plan: a\nplan: b\nc\n", "plan: "), "plan: a\nplan: b\n    c\n\n");
    }

    #[test]
    fn rtrace_s_own_formatting_is_kept() {
        let own = "rtrace: -e: `x` is no term (grün, \\d)\n    opennat/x\n            ^\n\n  also";
        assert_eq!(formatted(own, ""), format!("{own}\n"));
    }
}
