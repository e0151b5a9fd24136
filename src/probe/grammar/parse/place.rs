//! Parses the place of a probe.

use super::super::ast::{FilePlace, KernelPlace, ProbePoint, SourceLine, When};
use super::super::piece::{Parsed, Piece, is_blank};
use super::names;
use super::number::{index, number, signed};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Returns the syntax of a place, for the message that it is missing.
pub fn wanted(kind: &str) -> &'static str {
    match kind {
        "f" => "FUNCTION or FUNCTION%return",
        "t" => "the name of a tracepoint",
        "e" => "SUBSYSTEM.EVENT",
        "usdt" => "PATH:PROVIDER:NAME",
        _ => "SYMBOL[+OFFSET], MODULE:SYMBOL, ADDRESS, FUNCTION:LINE, or PATH:OFFSET, PATH:SYMBOL, PATH:FILE:LINE",
    }
}

/// Parses the second word of a probe with arguments.
///
/// # Errors
/// It is not a place for this kind of probe.
pub fn place(kind: &str, word: Piece) -> Parsed<ProbePoint> {
    match kind {
        "f" => function(word),
        "t" => tracepoint(word),
        "e" => event(word),
        "usdt" => usdt(word),
        _ if has_slash(word.text()) || word.text().starts_with('"') => file(word, kind == "r"),
        _ => kernel(word, kind == "r"),
    }
}

/// Removes the suffix `%return`, and returns whether it was present.
fn without_return(word: Piece) -> Parsed<(Piece, bool)> {
    match word.split_once('%') {
        None => Ok((word, false)),
        Some((place, suffix)) if suffix.text() == "return" => Ok((place, true)),
        Some((place, _)) => Err(word.split_at(place.text().len()).1.error("only %return may follow a place; separate arguments by blanks")),
    }
}

fn when(returns: bool) -> When {
    if returns { When::Return { maxactive: None } } else { When::Entry }
}

fn function(word: Piece) -> Parsed<ProbePoint> {
    let (name, returns) = without_return(word)?;
    if name.is_empty() || name.text().contains(['"', '/']) {
        return Err(name.error("a function's name is expected here: FUNCTION or FUNCTION%return"));
    }
    if name.text().contains('+') {
        return Err(name.error("f probes a function's entry or return; for an offset use p"));
    }
    Ok(ProbePoint::Function { name: name.text().to_owned(), when: when(returns) })
}

fn tracepoint(word: Piece) -> Parsed<ProbePoint> {
    let (name, returns) = without_return(word)?;
    if returns {
        return Err(word.split_at(name.text().len()).1.error("a tracepoint has no return"));
    }
    if name.is_empty() || !name.text().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(name.error("a tracepoint's name is expected here, without its subsystem: sched_switch"));
    }
    Ok(ProbePoint::Tracepoint { name: name.text().to_owned() })
}

fn event(word: Piece) -> Parsed<ProbePoint> {
    let (name, returns) = without_return(word)?;
    if returns {
        return Err(word.split_at(name.text().len()).1.error("an event has no return"));
    }
    let Some((subsystem, event)) = name.split_once('/').or_else(|| name.split_once('.')) else {
        return Err(name.error("an event is written SUBSYSTEM.EVENT here: sched.sched_switch"));
    };
    Ok(ProbePoint::Event { subsystem: names::group(subsystem)?, event: names::event(event, names::EventClass::Kernel)?, filter: None })
}

fn usdt(word: Piece) -> Parsed<ProbePoint> {
    let wrong = || word.error("a USDT tracepoint is written PATH:PROVIDER:NAME");
    let (path, behind) = match word.quoted()? {
        Some((path, behind)) => (path, behind.strip_prefix(":").ok_or_else(wrong)?),
        None => {
            let (before, _) = word.rsplit_once(':').ok_or_else(wrong)?;
            let (path, _) = before.rsplit_once(':').ok_or_else(wrong)?;
            (path.text().as_bytes().to_vec(), word.split_at(path.text().len() + 1).1)
        }
    };
    let (provider, name) = behind.split_once(':').ok_or_else(wrong)?;
    for part in [provider, name] {
        if part.is_empty() || part.text().contains([':', '"', '/']) {
            return Err(part.error("a name without colons, quotes and slashes is expected here: PATH:PROVIDER:NAME"));
        }
    }
    let path = self::path(path).ok_or_else(wrong)?;
    Ok(ProbePoint::Usdt { path, provider: provider.text().to_owned(), name: name.text().to_owned() })
}

fn kernel(word: Piece, returns: bool) -> Parsed<ProbePoint> {
    let (place, suffix) = without_return(word)?;
    let when = when(returns || suffix);
    let at =
        if place.text().starts_with(|c: char| c.is_ascii_digit()) { KernelPlace::Address(number(place)?) } else { kernel_place(place)? };
    match &at {
        KernelPlace::Symbol { offset, .. } if *offset != 0 && when != When::Entry => Err(place.error(RETURN_WITH_OFFSET)),
        KernelPlace::Line(_) if when != When::Entry => Err(place.error("a line has no return; name the function alone")),
        _ => Ok(ProbePoint::Kernel { at, when }),
    }
}

const RETURN_WITH_OFFSET: &str = "a return probe is on a whole function, so it has no offset";

fn kernel_place(place: Piece) -> Parsed<KernelPlace> {
    let (module, symbol) = match place.rsplit_once(':') {
        Some((of, line)) if line.text().starts_with(|c: char| c.is_ascii_digit()) => return source_line(of, line).map(KernelPlace::Line),
        Some((module, symbol)) => (
            Some(names::symbol(module).or_else(|wrong| if is_module(module.text()) { Ok(module.text().to_owned()) } else { Err(wrong) })?),
            symbol,
        ),
        None => (None, place),
    };
    let (symbol, offset) = symbol.split_while(|c| c != '+' && c != '-');
    let offset = if offset.is_empty() { 0 } else { signed(offset)? };
    Ok(KernelPlace::Symbol { module, symbol: names::symbol(symbol)?, offset })
}

/// Returns whether a text can be the name of a module. Unlike symbols, modules are files, so their names may have
/// hyphens and a digit first.
fn is_module(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

fn source_line(of: Piece, line: Piece) -> Parsed<SourceLine> {
    if of.is_empty() || of.text().contains([':', '"']) {
        return Err(of.error("a line is written FUNCTION:LINE or FILE:LINE"));
    }
    Ok(SourceLine { of: of.text().to_owned(), line: index(line)? })
}

fn file(word: Piece, returns: bool) -> Parsed<ProbePoint> {
    let (path, place) = split_path(word)?;
    let (place, reference_counter) = split_reference_counter(place)?;
    let (at, suffix, end) = file_place(place)?;
    let when = when(returns || suffix);
    match &at {
        FilePlace::Symbol { offset, .. } if *offset != 0 && when != When::Entry => Err(end.error(RETURN_WITH_OFFSET)),
        FilePlace::Line(_) if when != When::Entry => Err(end.error("a line has no return; name the function alone")),
        _ => Ok(ProbePoint::File { path, at, when, reference_counter }),
    }
}

/// Splits off the path. It is in quotes, or ends at the first colon; before `:0x` it ends at the last colon, as in the
/// kernel.
fn split_path(word: Piece) -> Parsed<(PathBuf, Piece)> {
    let missing = || word.error_behind("the place in the file is missing: PATH:OFFSET, PATH:SYMBOL, PATH:FUNCTION:LINE or PATH:FILE:LINE");
    if let Some((bytes, behind)) = word.quoted()? {
        let place = behind.strip_prefix(":").ok_or_else(missing)?;
        return Ok((path(bytes).ok_or_else(|| word.error("the path in these quotes is empty"))?, place));
    }
    let last = word.rsplit_once(':').filter(|(_, place)| place.text().starts_with("0x") && !word.text().contains('"'));
    let (before, place) = last.or_else(|| word.split_once(':')).ok_or_else(missing)?;
    match path(before.text().as_bytes().to_vec()) {
        _ if before.text().contains('"') => Err(before.error("quotes must enclose the whole path")),
        None => Err(before.error("the path is missing before the colon")),
        Some(path) => Ok((path, place)),
    }
}

fn path(bytes: Vec<u8>) -> Option<PathBuf> {
    (!bytes.is_empty() && !bytes.contains(&0)).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

/// Splits off `(NUMBER)` at the end, the address of the reference counter. Parentheses around anything else belong to a
/// function's name.
fn split_reference_counter(place: Piece) -> Parsed<(Piece, Option<u64>)> {
    let Some((before, inside)) = place.rsplit_once('(') else { return Ok((place, None)) };
    if !inside.text().starts_with(|c: char| c.is_ascii_digit()) || inside.text().contains('"') {
        return Ok((place, None));
    }
    let digits = match inside.split_once(')') {
        Some((digits, behind)) if behind.is_empty() => digits,
        Some((_, behind)) => return Err(behind.error("nothing may follow the reference counter; write %return before it")),
        None => return Err(place.error_behind("the parenthesis of the reference counter is not closed")),
    };
    Ok((before, Some(number(digits)?)))
}

/// Parses a place in a file. Returns the place, whether `%return` follows it, and the text of the place without that.
fn file_place(place: Piece) -> Parsed<(FilePlace, bool, Piece)> {
    if let Some((bytes, behind)) = place.quoted()? {
        let (behind, suffix) = without_return(behind)?;
        let name = String::from_utf8(bytes).ok().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| place.error("the name of a function or a file is expected in these quotes"))?;
        let at = if let Some(line) = behind.strip_prefix(":") {
            FilePlace::Line(SourceLine { of: name, line: index(line)? })
        } else {
            FilePlace::Symbol { symbol: name, offset: if behind.is_empty() { 0 } else { signed(behind)? } }
        };
        return Ok((at, suffix, place));
    }
    let (place, suffix) = without_return(place)?;
    if place.is_empty() || place.text().contains('"') {
        return Err(place.error("the place in the file is expected here: an offset, a symbol, FUNCTION:LINE or FILE:LINE"));
    }
    if place.text().starts_with(|c: char| c.is_ascii_digit()) {
        return Ok((FilePlace::Offset(number(place)?), suffix, place));
    }
    let line =
        place.rsplit_once(':').filter(|(of, line)| line.text().starts_with(|c: char| c.is_ascii_digit()) && !of.text().ends_with(':'));
    if let Some((of, line)) = line.filter(|(of, _)| !of.is_empty()) {
        return Ok((FilePlace::Line(SourceLine { of: of.text().to_owned(), line: index(line)? }), suffix, place));
    }
    let (symbol, offset) = split_offset(place)?;
    Ok((FilePlace::Symbol { symbol: symbol.text().to_owned(), offset }, suffix, place))
}

/// Splits off the offset: a sign and a number at the end. Other signs belong to the name (`operator+`).
fn split_offset(place: Piece) -> Parsed<(Piece, i64)> {
    let sign = place.text().rfind(['+', '-']).filter(|at| *at > 0);
    let parts = sign.map(|at| place.split_at(at)).filter(|(_, offset)| offset.text()[1..].starts_with(|c: char| c.is_ascii_digit()));
    match parts {
        Some((symbol, offset)) => Ok((symbol, signed(offset)?)),
        None => Ok((place, 0)),
    }
}

/// Returns whether a line of tracefs is a probe in a file, and not in the kernel.
pub fn is_on_file(line: &str) -> bool {
    line.split_whitespace().nth(1).is_some_and(has_slash)
}

/// Returns whether a place is in a file. By the kernel's rule, it is if it has a slash.
fn has_slash(place: &str) -> bool {
    place.contains('/')
}

/// Returns whether a path can be printed before a colon without quotes.
pub fn is_plain_path(text: &str) -> bool {
    text.contains('/') && !text.contains(['"', '#']) && !text.chars().any(|c| is_blank(c) || c.is_control())
}

/// Returns whether the name of a program's function or source file can be printed without quotes.
pub fn is_plain_name(text: &str, extra: &[u8]) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.$@:".contains(&b) || extra.contains(&b);
    let ends = text.starts_with(|c: char| c.is_ascii_digit()) || text.ends_with(':') || text.contains(":0x");
    !text.is_empty() && !ends && text.bytes().all(plain) && !text.replace("::", "").contains(':')
}
