//! Names of groups, events, arguments, fields and symbols: what the kernel lets pass as such.

use super::super::limits::{ARG_NAME_BYTES_MAX, NAME_BYTES_MAX};
use super::super::piece::{Parsed, Piece};

/// The name of a directory in tracefs (NAME_MAX in include/uapi/linux/limits.h).
const FILE_BYTES_MAX: usize = 255;

/// Fields that a probe event has anyway (kernel/trace/trace_probe.c).
const RESERVED: [&str; 8] =
    ["common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid", "__probe_ip", "__probe_ret_ip", "__probe_func"];

/// Whose event: programs may call theirs what the kernel would not call its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Kernel,
    User,
}

pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// What symbols of the kernel consist of, those of compilers among them (`foo.isra.0`).
fn is_symbol(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.$@".contains(&b))
}

/// `[GROUP/]EVENT` or `GROUP/`, with a dot for the slash if need be; `None` where there is no colon.
///
/// # Errors
/// What is no name.
pub fn group_and_event(name: Option<Piece>) -> Parsed<(Option<String>, Option<String>)> {
    let Some(name) = name else { return Ok((None, None)) };
    match name.split_once('/').or_else(|| name.split_once('.')) {
        None => Ok((None, Some(event(name, Whose::Kernel)?))),
        Some((first, second)) if second.is_empty() => Ok((Some(group(first)?), None)),
        Some((first, second)) => Ok((Some(group(first)?), Some(event(second, Whose::Kernel)?))),
    }
}

/// # Errors
/// What is no group's name.
pub fn group(name: Piece) -> Parsed<String> {
    let text = name.text();
    let good = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    checked(name, "a group", NAME_BYTES_MAX, good, "letters, digits, `_` and `-`")
}

/// # Errors
/// What is no event's name.
pub fn event(name: Piece, whose: Whose) -> Parsed<String> {
    let text = name.text();
    match whose {
        Whose::Kernel => checked(name, "an event", NAME_BYTES_MAX, is_identifier(text), LETTERS),
        Whose::User => {
            let good = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
            checked(name, "an event", FILE_BYTES_MAX, good, "letters, digits, `_`, `-` and `.`")
        }
    }
}

/// # Errors
/// What is no argument's name, or one that each event has already.
pub fn arg(name: Piece) -> Parsed<String> {
    if RESERVED.contains(&name.text()) {
        return Err(name.wrong(format!("`{}` is in every event already; take another name", name.text())));
    }
    checked(name, "an argument", ARG_NAME_BYTES_MAX, is_identifier(name.text()), LETTERS)
}

/// # Errors
/// What is no field's name.
pub fn field(name: Piece) -> Parsed<String> {
    checked(name, "a field", FILE_BYTES_MAX, is_identifier(name.text()), LETTERS)
}

/// # Errors
/// What is no symbol of the kernel.
pub fn symbol(name: Piece) -> Parsed<String> {
    checked(name, "a symbol", usize::MAX, is_symbol(name.text()), "letters, digits and `_.$@`")
}

const LETTERS: &str = "letters, digits and `_`";

fn checked(name: Piece, what: &str, bytes_max: usize, good: bool, letters: &str) -> Parsed<String> {
    let text = name.text();
    if text.is_empty() {
        return Err(name.wrong(format!("the name of {what} is missing here")));
    }
    if text.len() > bytes_max {
        return Err(name.wrong(format!("the name of {what} has {bytes_max} characters at most")));
    }
    if !good {
        let what = format!("`{}` cannot be the name of {what}: {letters}, and no digit first", text.escape_debug());
        return Err(name.wrong(what));
    }
    Ok(text.to_owned())
}
