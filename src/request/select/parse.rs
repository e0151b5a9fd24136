//! Parses the text of `-e` to items.

use super::groups::{GROUPS, group};
use crate::request::{Item, Selector};
use crate::session::{CallGraph, Terms};
use crate::text::caret::SyntaxError;
use crate::text::near;
use crate::text::quantity;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

type Parsed<T> = Result<T, SyntaxError>;

/// Parses the items of one `-e`. `list` is the index of the `-e` option, from 0.
///
/// # Errors
/// The text has a syntax error.
pub fn parse_list(text: &str, list: usize) -> Parsed<Vec<Item>> {
    let mut cursor = Cursor { text, at: text.strip_prefix("trace=").map_or(0, |rest| text.len() - rest.len()) };
    let mut items = Vec::new();
    loop {
        items.push(item(&mut cursor, list)?);
        if cursor.at == text.len() {
            return Ok(items);
        }
        if !cursor.take(',') {
            return Err(cursor.wrong_here("a comma is missing between two items"));
        }
    }
}

/// Parses the event of `--switch-on` or `--switch-off`: a single event or syscall, without groups, regexes and terms.
///
/// # Errors
/// The text has a syntax error.
pub fn parse_event(text: &str) -> Parsed<Selector> {
    let mut cursor = Cursor { text, at: 0 };
    let selector = selector(&mut cursor)?;
    if cursor.at < text.len() || !matches!(selector, Selector::Event { .. } | Selector::Syscall(_)) {
        return Err(SyntaxError::new(text, 0..text.len(), "expected one event, like `sched:sched_switch`, or one syscall"));
    }
    Ok(selector)
}

fn item(cursor: &mut Cursor, list: usize) -> Parsed<Item> {
    cursor.skip_blanks();
    let negated = cursor.take('!');
    let selector_at = cursor.at;
    let selector = match cursor.file() {
        Some(_) if negated => {
            return Err(cursor.wrong(selector_at..cursor.at, "! cannot exclude the programs of a file"));
        }
        Some(path) => Selector::Object(path.into()),
        None => selector(cursor)?,
    };
    let terms_at = cursor.at;
    let terms = if cursor.take('/') { terms(cursor)? } else { Terms::default() };
    if negated && terms != Terms::default() {
        return Err(cursor.wrong(terms_at..cursor.at, "an item with ! cannot have terms"));
    }
    cursor.skip_blanks();
    Ok(Item { negated, selector, terms, filter: None, list })
}

fn selector(cursor: &mut Cursor) -> Parsed<Selector> {
    if cursor.take('/') {
        return regex(cursor);
    }
    let start = cursor.at;
    let word = cursor.word();
    let at = start..cursor.at;
    if word.is_empty() {
        return Err(cursor.wrong_here("a name is missing: expected a syscall, a glob, %group, /regex/ or subsystem:event"));
    }
    if let Some(name) = word.strip_prefix('%') {
        return match group(name) {
            _ if name == REQUESTS => Ok(Selector::Request("*".to_owned())),
            Some(_) => Ok(Selector::Group(name.to_owned())),
            None => Err(cursor.wrong(at, unknown_group(name))),
        };
    }
    if let Some(bad) = word.char_indices().find(|(_, c)| !is_name_character(*c)) {
        let range = start + bad.0..start + bad.0 + bad.1.len_utf8();
        return Err(cursor.wrong(range, format!("`{}` is not allowed in a name", bad.1.escape_default())));
    }
    match word.split_once(':') {
        None => Ok(Selector::Syscall(word.to_owned())),
        Some((REQUESTS, name)) if is_request(name) => Ok(Selector::Request(name.to_owned())),
        Some((subsystem, name)) if !subsystem.is_empty() && !name.is_empty() && !name.contains(':') => {
            Ok(Selector::Event { subsystem: subsystem.to_owned(), name: name.to_owned() })
        }
        Some(_) => Err(cursor.wrong(at, "an event has the form subsystem:event")),
    }
}

/// The group of all requests of io_uring, and the trace system of the kernel's events of them.
pub const REQUESTS: &str = "io_uring";

/// Returns whether a name after `io_uring:` is that of a request. The kernel's events of this system begin with its
/// name, and a pattern that begins with a wildcard means these events.
fn is_request(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && !name.starts_with(REQUESTS) && !name.contains(':')
}

/// Parses a regex after its first slash. In the regex, `\/` is a slash; everything else is passed on unchanged.
fn regex(cursor: &mut Cursor) -> Parsed<Selector> {
    let start = cursor.at - 1;
    let mut pattern = String::new();
    loop {
        match cursor.next() {
            None => return Err(cursor.wrong(start..cursor.at, "this regex has no closing slash")),
            Some('/') => break,
            Some('\\') => match cursor.next() {
                Some('/') => pattern.push('/'),
                Some(escaped) => pattern.extend(['\\', escaped]),
                None => pattern.push('\\'),
            },
            Some(plain) => pattern.push(plain),
        }
    }
    if pattern.is_empty() {
        return Err(cursor.wrong(start..cursor.at, "this regex is empty"));
    }
    match super::resolve::regex(&pattern) {
        Ok(_) => Ok(Selector::Regex(pattern)),
        Err(why) => Err(cursor.wrong(start..cursor.at, why)),
    }
}

/// Parses terms after their first slash, up to and including the closing one.
fn terms(cursor: &mut Cursor) -> Parsed<Terms> {
    let open = cursor.at - 1;
    let mut terms = Terms::default();
    loop {
        let start = cursor.at;
        let term = cursor.until(&[',', '/']);
        term_into(&mut terms, term).map_err(|message| cursor.wrong(start..start + term.len(), message))?;
        match cursor.next() {
            Some('/') => return Ok(terms),
            Some(_) => {}
            None => return Err(cursor.wrong(open..cursor.at, "these terms have no closing slash")),
        }
    }
}

/// The extensions of files with BPF programs.
const FILE_ENDINGS: [&str; 2] = [".bpf.c", ".bpf.o"];

const TERMS: &str = "nr, max-stack, call-graph, kernel-stack, name or no-inherit";

fn term_into(terms: &mut Terms, term: &str) -> Result<(), String> {
    let (key, value) = term.split_once('=').map_or((term, None), |(key, value)| (key, Some(value)));
    let required = || value.filter(|v| !v.is_empty()).ok_or_else(|| format!("`{key}` needs a value: {key}=..."));
    match key {
        "nr" => terms.nr = Some(number(required()?, u64::MAX)?),
        "max-stack" => terms.max_stack = Some(number(required()?, u16::MAX)?),
        "call-graph" => terms.call_graph = Some(call_graph(required()?)?),
        "name" => terms.name = Some(required()?.to_owned()),
        "kernel-stack" | "no-inherit" if value.is_some() => return Err(format!("`{key}` takes no value")),
        "kernel-stack" => terms.kernel_stack = true,
        "no-inherit" => terms.no_inherit = true,
        "" => return Err(format!("a term is missing (use {TERMS})")),
        other => return Err(format!("`{other}` is not a term (use {TERMS})")),
    }
    Ok(())
}

/// Parses a number from 1 to `max`, which is the maximum of the type.
fn number<N: FromStr + PartialEq + Default + Display>(text: &str, max: N) -> Result<N, String> {
    match text.parse::<N>() {
        Ok(number) if number != N::default() => Ok(number),
        _ => Err(format!("`{text}` is not a number from 1 to {max}")),
    }
}

/// The maximum of `sample_stack_user` of perf_event_open(2), in bytes.
const STACK_BYTES_MAX: u32 = 65_528 - 8;

/// Parses a method of recording call graphs.
///
/// # Errors
/// The text is not a method; the error is a sentence with the reason.
pub fn call_graph(text: &str) -> Result<CallGraph, String> {
    match text.split_once(':').map_or((text, None), |(kind, size)| (kind, Some(size))) {
        ("fp", None) => Ok(CallGraph::FramePointer),
        ("dwarf", None) => Ok(CallGraph::Dwarf { size: None }),
        ("dwarf", Some(size)) => {
            let bytes = quantity::size(size)?.next_multiple_of(8);
            match u32::try_from(bytes) {
                Ok(bytes @ 1..=STACK_BYTES_MAX) => Ok(CallGraph::Dwarf { size: Some(bytes) }),
                _ => Err(format!("`{size}` is not a valid stack size (a record has room for 1 to {STACK_BYTES_MAX} bytes)")),
            }
        }
        _ => Err(format!("`{text}` is not a call graph method (use fp, dwarf or dwarf:SIZE)")),
    }
}

fn unknown_group(name: &str) -> String {
    let near = near::nearest(name, GROUPS.iter().map(|(known, _)| *known).chain([REQUESTS]), 3);
    if near.is_empty() {
        let all: Vec<String> = GROUPS.iter().map(|(known, _)| *known).chain([REQUESTS]).map(|known| format!("%{known}")).collect();
        return format!("there is no group %{name} (the groups are {})", all.join(" "));
    }
    let near: Vec<String> = near.iter().map(|known| format!("%{known}")).collect();
    format!("there is no group %{name}{}", near::hint(&near))
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_*?[]!-.:@".contains(c)
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn skip_blanks(&mut self) {
        while self.take(' ') {}
    }

    fn until(&mut self, ends: &[char]) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Consumes the name of a file with BPF programs, if there is one before the next comma: everything up to its
    /// extension, including slashes and blanks. Only terms or blanks may follow.
    fn file(&mut self) -> Option<&'a str> {
        let item = self.rest().split(',').next()?;
        let ends = FILE_ENDINGS.iter().flat_map(|ending| item.match_indices(ending).map(|(at, found)| at + found.len()));
        let end = ends.filter(|&end| end == item.len() || item[end..].starts_with(['/', ' '])).min()?;
        self.at += end;
        Some(&item[..end])
    }

    fn word(&mut self) -> &'a str {
        self.until(&[',', '/', ' '])
    }

    fn wrong(&self, at: Range<usize>, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.text, at, message)
    }

    fn wrong_here(&self, message: impl Into<String>) -> SyntaxError {
        self.wrong(self.at..self.at, message)
    }
}

#[cfg(test)]
mod tests;
