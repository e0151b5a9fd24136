//! Parses names of groups, events, arguments, fields and symbols, by the kernel's rules.

use super::super::limits::{ARG_NAME_BYTES_MAX, NAME_BYTES_MAX};
use super::super::piece::{Parsed, Piece};

/// Maximum length of a directory's name in tracefs (NAME_MAX in include/uapi/linux/limits.h).
const FILE_BYTES_MAX: usize = 255;

/// Fields that every probe event has (kernel/trace/trace_probe.c).
const RESERVED: [&str; 8] =
    ["common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid", "__probe_ip", "__probe_ret_ip", "__probe_func"];

/// The classes of events whose rules for names and types of fields differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EventClass {
    /// Probes and synthetic events.
    Kernel,
    /// User events, whose names have fewer restrictions.
    User,
}

/// Returns whether a text is an identifier of C, which the kernel requires of most names (is_good_name() in
/// kernel/trace/trace.h).
pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns whether a text can be a symbol of the kernel, including symbols that compilers create (`foo.isra.0`).
fn is_symbol(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.$@".contains(&b))
}

/// Parses `[GROUP/]EVENT` or `GROUP/`, in which a dot may replace the slash; `name` is `None` if there is no colon.
///
/// # Errors
/// A part is not a valid name.
pub fn group_and_event(name: Option<Piece>) -> Parsed<(Option<String>, Option<String>)> {
    let Some(name) = name else { return Ok((None, None)) };
    match name.split_once('/').or_else(|| name.split_once('.')) {
        None => Ok((None, Some(event(name, EventClass::Kernel)?))),
        Some((first, second)) if second.is_empty() => Ok((Some(group(first)?), None)),
        Some((first, second)) => Ok((Some(group(first)?), Some(event(second, EventClass::Kernel)?))),
    }
}

/// Parses the name of a group.
///
/// # Errors
/// It is not a valid name of a group.
pub fn group(name: Piece) -> Parsed<String> {
    let text = name.text();
    let good = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    checked(name, "a group", NAME_BYTES_MAX, good, "letters, digits, `_` and `-`")
}

/// Parses the name of an event.
///
/// # Errors
/// It is not a valid name of an event.
pub fn event(name: Piece, class: EventClass) -> Parsed<String> {
    let text = name.text();
    match class {
        EventClass::Kernel => checked(name, "an event", NAME_BYTES_MAX, is_identifier(text), LETTERS),
        EventClass::User => {
            let good = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
            checked(name, "an event", FILE_BYTES_MAX, good, "letters, digits, `_`, `-` and `.`")
        }
    }
}

/// Parses the name of an argument.
///
/// # Errors
/// It is not a valid name of an argument, or every event has a field of that name.
pub fn arg(name: Piece) -> Parsed<String> {
    if RESERVED.contains(&name.text()) {
        return Err(name.error(format!("`{}` is in every event already; choose another name", name.text())));
    }
    checked(name, "an argument", ARG_NAME_BYTES_MAX, is_identifier(name.text()), LETTERS)
}

/// Parses the name of a field.
///
/// # Errors
/// It is not a valid name of a field.
pub fn field(name: Piece) -> Parsed<String> {
    checked(name, "a field", FILE_BYTES_MAX, is_identifier(name.text()), LETTERS)
}

/// Parses a symbol of the kernel.
///
/// # Errors
/// It is not a valid symbol.
pub fn symbol(name: Piece) -> Parsed<String> {
    checked(name, "a symbol", usize::MAX, is_symbol(name.text()), "letters, digits and `_.$@`")
}

const LETTERS: &str = "letters, digits and `_`";

fn checked(name: Piece, what: &str, bytes_max: usize, good: bool, letters: &str) -> Parsed<String> {
    let text = name.text();
    if text.is_empty() {
        return Err(name.error(format!("the name of {what} is missing here")));
    }
    if text.len() > bytes_max {
        return Err(name.error(format!("the name of {what} has {bytes_max} characters at most")));
    }
    if !good {
        let what = format!("`{}` cannot be the name of {what}: use {letters}, and no digit first", text.escape_debug());
        return Err(name.error(what));
    }
    Ok(text.to_owned())
}
