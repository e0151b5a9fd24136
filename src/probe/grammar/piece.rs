//! A piece of a line that knows its position in the line, so that a syntax error in it can be marked.

use crate::text::caret::SyntaxError;

pub(super) type Parsed<T> = Result<T, SyntaxError>;

/// Bytes `start..end` of a line. Both are on character boundaries.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    line: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Piece<'a> {
    pub fn new(line: &'a str) -> Piece<'a> {
        Piece { line, start: 0, end: line.len() }
    }

    /// Returns the text of the piece.
    pub fn text(self) -> &'a str {
        &self.line[self.start..self.end]
    }

    /// Returns whether the piece has no characters. It still has a position in the line.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns the bytes `from..to` of this piece.
    fn part(self, from: usize, to: usize) -> Piece<'a> {
        Piece { line: self.line, start: self.start + from, end: self.start + to }
    }

    /// Splits the piece into the first `at` bytes and the rest.
    pub fn split_at(self, at: usize) -> (Piece<'a>, Piece<'a>) {
        (self.part(0, at), self.part(at, self.end - self.start))
    }

    /// Splits the piece at the first such character, which belongs to neither part; `None` if the piece has none.
    pub fn split_once(self, between: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self.text().find(between)?;
        Some((self.split_at(at).0, self.split_at(at + between.len_utf8()).1))
    }

    /// Splits the piece at the last such character, which belongs to neither part; `None` if the piece has none.
    pub fn rsplit_once(self, between: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self.text().rfind(between)?;
        Some((self.split_at(at).0, self.split_at(at + between.len_utf8()).1))
    }

    /// Returns the rest behind the prefix; `None` if the piece does not begin with it.
    pub fn strip_prefix(self, prefix: &str) -> Option<Piece<'a>> {
        self.text().starts_with(prefix).then(|| self.split_at(prefix.len()).1)
    }

    /// Returns the part before the suffix; `None` if the piece does not end with it.
    pub fn strip_suffix(self, suffix: &str) -> Option<Piece<'a>> {
        self.text().ends_with(suffix).then(|| self.split_at(self.text().len() - suffix.len()).0)
    }

    /// Splits the piece before the first character that is not `wanted`.
    pub fn split_while(self, wanted: impl Fn(char) -> bool) -> (Piece<'a>, Piece<'a>) {
        self.split_at(self.text().find(|c| !wanted(c)).unwrap_or(self.text().len()))
    }

    /// Returns the piece without the blanks at its beginning and end.
    pub fn trim(self) -> Piece<'a> {
        let text = self.text();
        let from = text.len() - text.trim_start_matches(is_blank).len();
        self.part(from, from.max(text.trim_end_matches(is_blank).len()))
    }

    /// Removes the next word, which ends at a blank, and returns it. Blanks within double quotes belong to the word.
    ///
    /// # Errors
    /// A quote is not closed.
    pub fn next_word(&mut self) -> Parsed<Option<Piece<'a>>> {
        let rest = self.trim();
        if rest.is_empty() {
            *self = rest;
            return Ok(None);
        }
        let mut at = 0;
        loop {
            let behind = rest.split_at(at).1;
            match behind.text().find(|c| is_blank(c) || c == '"') {
                None => at = rest.text().len(),
                Some(found) if behind.text()[found..].starts_with('"') => {
                    at += found + behind.split_at(found).1.quoted_bytes()?;
                    continue;
                }
                Some(found) => at += found,
            }
            let (word, behind) = rest.split_at(at);
            *self = behind;
            return Ok(Some(word));
        }
    }

    /// Returns the length of the quoted text at the beginning of this piece, including the quotes.
    fn quoted_bytes(self) -> Parsed<usize> {
        let mut escaped = false;
        for (at, c) in self.text().char_indices().skip(1) {
            match c {
                '"' if !escaped => return Ok(at + 1),
                '\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
        Err(self.error("this quote is not closed"))
    }

    /// Parses the quoted text at the beginning of this piece. Returns its bytes and the rest of the piece, or `None` if
    /// the piece does not begin with a quote.
    ///
    /// # Errors
    /// The quote is not closed, or a backslash is followed by anything else than `"`, `\` or `xNN`.
    pub fn quoted(self) -> Parsed<Option<(Vec<u8>, Piece<'a>)>> {
        if !self.text().starts_with('"') {
            return Ok(None);
        }
        let (quoted, behind) = self.split_at(self.quoted_bytes()?);
        let mut rest = quoted.part(1, quoted.text().len() - 1);
        let mut bytes = Vec::new();
        while let Some((plain, escape)) = rest.split_once('\\') {
            bytes.extend_from_slice(plain.text().as_bytes());
            let hex =
                escape.text().strip_prefix('x').and_then(|text| text.get(..2)).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
            let (byte, length) = match (escape.text().as_bytes().first(), hex.map(|hex| u8::from_str_radix(hex, 16))) {
                (Some(byte @ (b'"' | b'\\')), _) => (*byte, 1),
                (_, Some(Ok(byte))) => (byte, 3),
                _ => {
                    return Err(escape
                        .part(0, 0)
                        .error("in quotes, a backslash must be followed by `\"`, `\\`, or `x` and two hexadecimal digits"));
                }
            };
            bytes.push(byte);
            rest = escape.split_at(length).1;
        }
        bytes.extend_from_slice(rest.text().as_bytes());
        Ok(Some((bytes, behind)))
    }

    /// Returns a syntax error that marks this piece.
    pub fn error(self, what: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.line, self.start..self.end, what)
    }

    /// Returns a syntax error behind this piece, for something that is missing.
    pub fn error_behind(self, what: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.line, self.end..self.end, what)
    }
}

/// Returns whether the kernel splits words at this character.
pub(super) fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// Quotes a text so that [`Piece::quoted`] parses it.
pub(super) fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                _ if c.is_ascii_control() => text.push_str(&hex(c as u8)),
                _ => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| hex(*byte)));
    }
    text.push('"');
    text
}

fn hex(byte: u8) -> String {
    format!("\\x{byte:02x}")
}
