//! Finds enums in those lines of a header that are not preprocessor directives.

use super::fault::is_name;
use super::header::{Body, Header};

/// The state of the search for enums, which may extend over several lines.
#[derive(Default)]
pub struct EnumReader {
    /// The unprocessed text of the enum that is open. It begins with `{` once the opening brace has been read.
    open: Option<String>,
    /// The last explicit value, and the distance of the next enumerator from it.
    base: Option<String>,
    offset: i64,
    /// An unexpanded macro precedes, so that the values of the next enumerators are unknown.
    broken: bool,
}

impl EnumReader {
    /// Reads a line of code and adds its enumerators to the header.
    pub fn push(&mut self, line: usize, mut text: &str, header: &mut Header) {
        loop {
            if self.open.is_none() {
                let Some(after) = after_enum(text) else { return };
                text = after;
                *self = EnumReader { open: Some(String::new()), ..EnumReader::default() };
            }
            let Some(open) = self.open.take() else { return };
            if !open.contains('{') {
                // Only a tag and attributes may come between `enum` and its brace; `enum x y;` has no brace.
                match text.find(['{', ';', ')', ',']) {
                    Some(at) if text[at..].starts_with('{') => {
                        self.open = Some("{".into());
                        text = &text[at + 1..];
                    }
                    Some(at) => text = &text[at..],
                    None => {
                        self.open = Some(String::new());
                        return;
                    }
                }
                continue;
            }
            match self.items(open, text, line, header) {
                Some(rest) => text = rest,
                None => return,
            }
        }
    }

    /// Reads enumerators. Returns the text after the closing brace, or `None` if the enum continues in the next line.
    fn items<'a>(&mut self, mut open: String, text: &'a str, line: usize, header: &mut Header) -> Option<&'a str> {
        let mut depth = open.matches('(').count() as i64 - open.matches(')').count() as i64;
        for (at, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    self.item(&open[1..], line, header);
                    open.truncate(1);
                    continue;
                }
                '}' if depth == 0 => {
                    self.item(&open[1..], line, header);
                    return Some(&text[at + 1..]);
                }
                _ => {}
            }
            open.push(c);
        }
        open.push(' ');
        self.open = Some(open);
        None
    }

    fn item(&mut self, text: &str, line: usize, header: &mut Header) {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        if name.is_empty() {
            return;
        }
        // A macro that expands to enumerators: the values after it are unknown until the next explicit value.
        if !is_name(name) {
            self.broken = true;
            return;
        }
        if let Some(value) = value {
            self.base = Some(value.to_string());
            self.offset = 0;
            self.broken = false;
        }
        if !self.broken {
            header.add(name, line, Body::Enumerator { base: self.base.clone(), offset: self.offset });
        }
        self.offset += 1;
    }
}

fn after_enum(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(at) = text[from..].find("enum") {
        let (before, after) = (&text[..from + at], &text[from + at + 4..]);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !before.ends_with(is_word) && !after.starts_with(is_word) {
            return Some(after);
        }
        from += at + 4;
    }
    None
}
