//! Syntax errors in text that the user typed, shown with a caret under the error.

use std::fmt;
use std::ops::Range;

/// A syntax error. It is displayed as three lines: the message, the text, and a caret under the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The complete text as the user typed it.
    pub text: String,
    /// The range of bytes with the error. It is empty if something is missing there.
    pub at: Range<usize>,
    /// One sentence in lower case, without a full stop.
    pub message: String,
}

impl SyntaxError {
    /// Returns the error for this range of a text.
    pub fn new(text: &str, at: Range<usize>, message: impl Into<String>) -> SyntaxError {
        SyntaxError { text: text.to_owned(), at, message: message.into() }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = floor(&self.text, self.at.start);
        let end = floor(&self.text, self.at.end).max(start);
        let before = self.text[..start].chars().count();
        let tail = self.text[start..end].chars().count().saturating_sub(1);
        let (text, before) = window(&self.text, before);
        let tail = tail.min(text.chars().count().saturating_sub(before + 1));
        write!(f, "{}\n    {text}\n    {:before$}^{}", self.message, "", "~".repeat(tail))
    }
}

/// The number of shown characters. A terminal would wrap wider texts, and the caret would be in the wrong column.
const COLUMNS_MAX: usize = 90;
const GAP: &str = "...";

/// Returns the part of a text around a column, and the column's position in that part.
fn window(text: &str, column: usize) -> (String, usize) {
    // A control character would move the caret, or the terminal.
    let chars: Vec<char> = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if chars.len() <= COLUMNS_MAX {
        return (chars.into_iter().collect(), column);
    }
    let first = column.saturating_sub(COLUMNS_MAX / 2).min(chars.len() - COLUMNS_MAX);
    let part = chars[first..first + COLUMNS_MAX].iter().collect::<String>();
    let left = if first > 0 { GAP } else { "" };
    let right = if first + COLUMNS_MAX < chars.len() { GAP } else { "" };
    (format!("{left}{part}{right}"), column - first + left.len())
}

impl std::error::Error for SyntaxError {}

/// Returns the nearest character boundary at or before a byte position.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_under_the_error() {
        let wrong = SyntaxError::new("openat/nrr=2/", 7..10, "`nrr` is not a term");
        assert_eq!(wrong.to_string(), "`nrr` is not a term\n    openat/nrr=2/\n           ^~~");
    }

    #[test]
    fn an_empty_range_has_a_single_caret() {
        let wrong = SyntaxError::new("fd ==", 5..5, "a value is missing");
        assert_eq!(wrong.to_string(), "a value is missing\n    fd ==\n         ^");
    }

    #[test]
    fn columns_are_characters_and_control_characters_are_replaced() {
        let wrong = SyntaxError::new("é\x1b[2J=", 6..7, "oops");
        assert_eq!(wrong.to_string(), "oops\n    é\u{fffd}[2J=\n         ^");
        assert_eq!(SyntaxError::new("é", 1..9, "oops").to_string(), "oops\n    é\n    ^");
    }

    #[test]
    fn a_long_text_is_shortened_to_the_part_around_the_error() {
        let list: Vec<String> = (0..100).map(|n| format!("call{n:02}")).collect();
        let text = list.join(",");
        let at = text.find("call50").unwrap();
        let shown = SyntaxError::new(&text, at..at + 6, "oops").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].find("call50"), lines[2].find("^~~~~~"));
        assert!(lines[1].starts_with("    ...") && lines[1].ends_with("...") && lines[1].len() <= 100);
        let shown = SyntaxError::new(&text, text.len()..text.len(), "oops").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].len(), lines[2].find('^').unwrap());
        assert!(lines[1].ends_with("call99"));
    }
}
