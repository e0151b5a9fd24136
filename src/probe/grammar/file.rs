//! A file of lines, as tracefs takes and shows them.

use super::ast::Line;
use super::parse::parse;
use crate::text::caret::Misplaced;
use std::fmt;

/// A mistake in a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFile {
    /// From 1.
    pub line: usize,
    pub mistake: Misplaced,
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.mistake)
    }
}

impl std::error::Error for InFile {}

/// All lines with their numbers from 1. From `#` on, unless it is in double quotes, a line is a comment; empty lines count but say nothing.
///
/// # Errors
/// The first mistake.
pub fn parse_file(text: &str) -> Result<Vec<(usize, Line)>, InFile> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, without_comment(line)));
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| parse(line).map(|said| (number, said)).map_err(|mistake| InFile { line: number, mistake })).collect()
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
