//! Rows of `.tbl` files, their locations, and the errors that the generator reports for them.

use std::fmt;
use std::rc::Rc;

/// A line of a file; lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub file: Rc<str>,
    pub line: usize,
}

impl Location {
    pub fn fault(&self, text: impl Into<String>) -> Fault {
        Fault { location: self.clone(), text: text.into() }
    }
}

/// An error in a line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    pub location: Location,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.location.file, self.location.line, self.text)
    }
}

/// A line that is neither blank nor a comment, split into its fields.
#[derive(Debug)]
pub struct Row<'a> {
    pub location: Location,
    pub fields: Vec<&'a str>,
}

/// Returns the rows of a file, without comments and blank lines.
pub fn rows<'a>(file: &str, text: &'a str) -> Vec<Row<'a>> {
    let file: Rc<str> = file.into();
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.split_once('#').map_or(line, |(content, _)| content);
        let fields: Vec<&str> = content.split_whitespace().collect();
        if !fields.is_empty() {
            rows.push(Row { location: Location { file: file.clone(), line: at + 1 }, fields });
        }
    }
    rows
}

/// Parses every row of a file. Faults are appended to `faults` and do not stop the parser, so that one build reports
/// all of them.
pub fn parse_rows<T>(file: &str, text: &str, parse: impl Fn(&Row) -> Result<T, Fault>, faults: &mut Vec<Fault>) -> Vec<T> {
    let mut parsed = Vec::new();
    for row in rows(file, text) {
        match parse(&row) {
            Ok(good) => parsed.push(good),
            Err(fault) => faults.push(fault),
        }
    }
    parsed
}

/// Returns whether a word can be an identifier in C and in Rust.
pub fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_skip_comments_and_count_lines() {
        let rows = rows("a.tbl", "# head\n\none two # three\n  four\n");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].location.line, &rows[0].fields[..]), (3, &["one", "two"][..]));
        assert_eq!(rows[1].location.fault("is wrong").to_string(), "a.tbl:4: is wrong");
    }

    #[test]
    fn a_fault_does_not_hide_later_faults_of_the_file() {
        let mut faults = Vec::new();
        let good = parse_rows(
            "a.tbl",
            "1\nx\n2\ny",
            |row| row.fields[0].parse::<u32>().map_err(|_| row.location.fault("not a number")),
            &mut faults,
        );
        assert_eq!(good, [1, 2]);
        assert_eq!(faults.iter().map(|f| f.location.line).collect::<Vec<_>>(), [2, 4]);
    }
}
