//! Finds enums in the lines of a header that are no directives.

use super::fault::is_name;
use super::header::{Body, Header};

/// What is no directive: looked through for enums.
#[derive(Default)]
pub struct Code {
    /// Text since `enum`, with the line where each piece of it began, until its closing brace.
    open: Option<String>,
    base: Option<String>,
    offset: i64,
    broken: bool,
}

impl Code {
    /// Takes a line of code; its constants go to the header.
    pub fn push(&mut self, line: usize, mut text: &str, header: &mut Header) {
        loop {
            if self.open.is_none() {
                let Some(after) = after_enum(text) else { return };
                text = after;
                *self = Code { open: Some(String::new()), ..Code::default() };
            }
            let Some(open) = self.open.take() else { return };
            if !open.contains('{') {
                // Between `enum` and its brace only a tag and attributes may stand; `enum x y;` has no brace.
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

    /// Takes the items in the text; what follows the closing brace, or nothing when the enum goes on.
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
        // A macro that makes items: what comes after it is not known until the next explicit value.
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
