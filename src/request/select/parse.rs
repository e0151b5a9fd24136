//! From the text of `-e` to items.

use super::groups::{GROUPS, group};
use crate::request::{Item, Selector};
use crate::session::{CallGraph, Terms};
use crate::text::caret::Misplaced;
use crate::text::near;
use crate::text::units;
use std::ops::Range;

type Parsed<T> = Result<T, Misplaced>;

/// The items of one `-e`; `list` counts the `-e` options from 0.
///
/// # Errors
/// A mistake in the text, with its place.
pub fn parse_list(text: &str, list: usize) -> Parsed<Vec<Item>> {
    let mut cursor = Cursor { text, at: text.strip_prefix("trace=").map_or(0, |rest| text.len() - rest.len()) };
    let mut items = Vec::new();
    loop {
        items.push(item(&mut cursor, list)?);
        if cursor.at == text.len() {
            return Ok(items);
        }
        if !cursor.take(',') {
            return Err(cursor.wrong_here("here a comma should separate two items"));
        }
    }
}

/// The event of `--switch-on` and `--switch-off`: one name, no pattern of groups.
///
/// # Errors
/// A mistake in the text, with its place.
pub fn parse_event(text: &str) -> Parsed<Selector> {
    let mut cursor = Cursor { text, at: 0 };
    let selector = selector(&mut cursor)?;
    if cursor.at < text.len() || !matches!(selector, Selector::Event { .. } | Selector::Syscall(_)) {
        return Err(Misplaced::new(text, 0..text.len(), "one event is wanted here, as `sched:sched_switch`, or one syscall"));
    }
    Ok(selector)
}

fn item(cursor: &mut Cursor, list: usize) -> Parsed<Item> {
    cursor.skip_blanks();
    let negated = cursor.take('!');
    let selector_at = cursor.at;
    let selector = match cursor.file() {
        Some(_) if negated => {
            return Err(cursor.wrong(selector_at..cursor.at, "programs of a file can only be added, not taken away with !"));
        }
        Some(path) => Selector::Object(path.into()),
        None => selector(cursor)?,
    };
    let terms_at = cursor.at;
    let terms = if cursor.take('/') { terms(cursor)? } else { Terms::default() };
    if negated && terms != Terms::default() {
        return Err(cursor.wrong(terms_at..cursor.at, "what is taken away with ! can have no terms"));
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
        return Err(cursor.wrong_here("a name is missing: a syscall, a glob, %group, /regex/ or subsystem:event"));
    }
    if let Some(name) = word.strip_prefix('%') {
        return match group(name) {
            Some(_) => Ok(Selector::Group(name.to_owned())),
            None => Err(cursor.wrong(at, unknown_group(name))),
        };
    }
    if let Some(bad) = word.char_indices().find(|(_, c)| !may_stand_in_a_name(*c)) {
        let place = start + bad.0..start + bad.0 + bad.1.len_utf8();
        return Err(cursor.wrong(place, format!("`{}` cannot stand in a name", bad.1.escape_default())));
    }
    match word.split_once(':') {
        None => Ok(Selector::Syscall(word.to_owned())),
        Some((subsystem, name)) if !subsystem.is_empty() && !name.is_empty() && !name.contains(':') => {
            Ok(Selector::Event { subsystem: subsystem.to_owned(), name: name.to_owned() })
        }
        Some(_) => Err(cursor.wrong(at, "an event is written subsystem:event")),
    }
}

/// The regex behind its first slash. A slash inside is written `\/`; everything else belongs to the regex as it is.
fn regex(cursor: &mut Cursor) -> Parsed<Selector> {
    let start = cursor.at - 1;
    let mut pattern = String::new();
    loop {
        match cursor.next() {
            None => return Err(cursor.wrong(start..cursor.at, "this regex is not closed by a slash")),
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

/// Terms behind their first slash, up to and with the closing one.
fn terms(cursor: &mut Cursor) -> Parsed<Terms> {
    let open = cursor.at - 1;
    let mut terms = Terms::default();
    loop {
        let start = cursor.at;
        let term = cursor.until(&[',', '/']);
        term_into(&mut terms, term).map_err(|what| cursor.wrong(start..start + term.len(), what))?;
        match cursor.next() {
            Some('/') => return Ok(terms),
            Some(_) => {}
            None => return Err(cursor.wrong(open..cursor.at, "these terms are not closed by a slash")),
        }
    }
}

/// What files of BPF programs end in.
const FILE_ENDINGS: [&str; 2] = [".bpf.c", ".bpf.o"];

const TERMS: [&str; 6] = ["nr", "max-stack", "call-graph", "kernel-stack", "name", "no-inherit"];

fn term_into(terms: &mut Terms, term: &str) -> Result<(), String> {
    let (key, value) = term.split_once('=').map_or((term, None), |(key, value)| (key, Some(value)));
    let wanted = || value.filter(|v| !v.is_empty()).ok_or_else(|| format!("`{key}` wants a value: {key}=..."));
    match key {
        "nr" => terms.nr = Some(number(wanted()?)?),
        "max-stack" => terms.max_stack = Some(number(wanted()?)?),
        "call-graph" => terms.call_graph = Some(call_graph(wanted()?)?),
        "name" => terms.name = Some(wanted()?.to_owned()),
        "kernel-stack" | "no-inherit" if value.is_some() => return Err(format!("`{key}` takes no value")),
        "kernel-stack" => terms.kernel_stack = true,
        "no-inherit" => terms.no_inherit = true,
        "" => return Err(format!("a term is missing ({})", TERMS.join(", "))),
        other => return Err(format!("`{other}` is no term ({})", TERMS.join(", "))),
    }
    Ok(())
}

fn number<N: std::str::FromStr + PartialEq + Default>(text: &str) -> Result<N, String> {
    match text.parse::<N>() {
        Ok(number) if number != N::default() => Ok(number),
        _ => Err(format!("`{text}` is no count from 1 up to what fits")),
    }
}

/// The most bytes of stack that perf_event_open(2) takes for sample_stack_user.
const STACK_BYTES_MAX: u32 = 65_528 - 8;

/// A way to take stacks.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn call_graph(text: &str) -> Result<CallGraph, String> {
    match text.split_once(':').map_or((text, None), |(kind, size)| (kind, Some(size))) {
        ("fp", None) => Ok(CallGraph::FramePointer),
        ("dwarf", None) => Ok(CallGraph::Dwarf { size: None }),
        ("dwarf", Some(size)) => {
            let bytes = units::size(size)?.next_multiple_of(8);
            match u32::try_from(bytes) {
                Ok(bytes @ 1..=STACK_BYTES_MAX) => Ok(CallGraph::Dwarf { size: Some(bytes) }),
                _ => Err(format!("`{size}` of stack do not fit into a record (1 to {STACK_BYTES_MAX} bytes)")),
            }
        }
        _ => Err(format!("`{text}` is no way to take stacks (fp, dwarf, dwarf:SIZE)")),
    }
}

fn unknown_group(name: &str) -> String {
    let near = near::nearest(name, GROUPS.iter().map(|(known, _)| *known), 3);
    if near.is_empty() {
        let all: Vec<String> = GROUPS.iter().map(|(known, _)| format!("%{known}")).collect();
        return format!("there is no group %{name} ({})", all.join(" "));
    }
    let near: Vec<String> = near.iter().map(|known| format!("%{known}")).collect();
    format!("there is no group %{name}{}", near::hint(&near))
}

fn may_stand_in_a_name(c: char) -> bool {
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

    /// The name of a file of BPF programs, if one stands here before the next comma: all up to its ending, slashes and blanks too. The ending ends the item, or terms follow.
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

    fn wrong(&self, at: Range<usize>, what: impl Into<String>) -> Misplaced {
        Misplaced::new(self.text, at, what)
    }

    fn wrong_here(&self, what: impl Into<String>) -> Misplaced {
        self.wrong(self.at..self.at, what)
    }
}

#[cfg(test)]
mod tests;
