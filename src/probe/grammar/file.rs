//! Parses a file of dynamic events, one event per line as in tracefs.

use super::ast::Line;
use super::parse::parse;
use crate::text::caret::SyntaxError;
use std::fmt;

/// A syntax error in a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// What is wrong, and where in the line.
    pub error: SyntaxError,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.error)
    }
}

impl std::error::Error for LineError {}

/// Parses all lines and returns them with their numbers, counted from 1. A `#` outside of double quotes begins a
/// comment. Empty lines are counted but skipped.
///
/// # Errors
/// The first syntax error.
pub fn parse_file(text: &str) -> Result<Vec<(usize, Line)>, LineError> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, without_comment(line)));
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| parse(line).map(|parsed| (number, parsed)).map_err(|error| LineError { line: number, error })).collect()
}

fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            '#' if !quoted => return &line[..at],
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    line
}
