//! A mistake in something the user typed, shown under the place.

use std::fmt;
use std::ops::Range;

/// What is wrong and where. Displayed as three lines: the sentence, the text, and a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// The whole text as it was typed.
    pub text: String,
    /// The bytes of it that are wrong; empty where something is missing.
    pub at: Range<usize>,
    /// One sentence, lowercase, without a full stop.
    pub what: String,
}

impl Misplaced {
    pub fn new(text: &str, at: Range<usize>, what: impl Into<String>) -> Misplaced {
        Misplaced { text: text.to_owned(), at, what: what.into() }
    }
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = floor(&self.text, self.at.start);
        let end = floor(&self.text, self.at.end).max(start);
        let before = self.text[..start].chars().count();
        let tail = self.text[start..end].chars().count().saturating_sub(1);
        let (text, before) = window(&self.text, before);
        let tail = tail.min(text.chars().count().saturating_sub(before + 1));
        write!(f, "{}\n    {text}\n    {:before$}^{}", self.what, "", "~".repeat(tail))
    }
}

/// Wider texts would wrap, and the caret would stand under nothing.
const COLUMNS_MAX: usize = 90;
const GAP: &str = "...";

/// The part of a text around a column, and where that column is in it.
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

impl std::error::Error for Misplaced {}

/// The nearest character boundary at or before a byte position.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place() {
        let wrong = Misplaced::new("openat/nrr=2/", 7..10, "`nrr` is no term");
        assert_eq!(wrong.to_string(), "`nrr` is no term\n    openat/nrr=2/\n           ^~~");
    }

    #[test]
    fn where_something_is_missing_one_caret_is_enough() {
        let wrong = Misplaced::new("fd ==", 5..5, "a value is missing");
        assert_eq!(wrong.to_string(), "a value is missing\n    fd ==\n         ^");
    }

    #[test]
    fn columns_are_characters_and_control_characters_are_not_printed() {
        let wrong = Misplaced::new("é\x1b[2J=", 6..7, "oops");
        assert_eq!(wrong.to_string(), "oops\n    é\u{fffd}[2J=\n         ^");
        assert_eq!(Misplaced::new("é", 1..9, "oops").to_string(), "oops\n    é\n    ^");
    }
    #[test]
    fn of_a_long_text_the_part_around_the_place_is_shown() {
        let list: Vec<String> = (0..100).map(|n| format!("call{n:02}")).collect();
        let text = list.join(",");
        let at = text.find("call50").unwrap();
        let shown = Misplaced::new(&text, at..at + 6, "oops").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].find("call50"), lines[2].find("^~~~~~"));
        assert!(lines[1].starts_with("    ...") && lines[1].ends_with("...") && lines[1].len() <= 100);
        let shown = Misplaced::new(&text, text.len()..text.len(), "oops").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].len(), lines[2].find('^').unwrap());
        assert!(lines[1].ends_with("call99"));
    }
}
