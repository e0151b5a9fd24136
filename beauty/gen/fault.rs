//! Where a row stands and what is wrong with it.

use std::fmt;
use std::rc::Rc;

/// A line of a file, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: Rc<str>,
    pub line: usize,
}

impl Place {
    pub fn fault(&self, text: impl Into<String>) -> Fault {
        Fault { place: self.clone(), text: text.into() }
    }
}

/// A sentence about a line, for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    pub place: Place,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place.file, self.place.line, self.text)
    }
}

/// A line that says something, cut into its fields.
#[derive(Debug)]
pub struct Row<'a> {
    pub place: Place,
    pub fields: Vec<&'a str>,
}

/// The rows of a file: comments and blank lines are left out.
pub fn rows<'a>(file: &str, text: &'a str) -> Vec<Row<'a>> {
    let file: Rc<str> = file.into();
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let said = line.split_once('#').map_or(line, |(said, _)| said);
        let fields: Vec<&str> = said.split_whitespace().collect();
        if !fields.is_empty() {
            rows.push(Row { place: Place { file: file.clone(), line: at + 1 }, fields });
        }
    }
    rows
}

/// Parses every row of a file, keeping what is wrong apart, so that one run names all mistakes.
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

/// Whether a word can be a name in C and in Rust.
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
        assert_eq!((rows[0].place.line, &rows[0].fields[..]), (3, &["one", "two"][..]));
        assert_eq!(rows[1].place.fault("is wrong").to_string(), "a.tbl:4: is wrong");
    }

    #[test]
    fn all_faults_of_a_file_are_kept() {
        let mut faults = Vec::new();
        let good =
            parse_rows("a.tbl", "1\nx\n2\ny", |row| row.fields[0].parse::<u32>().map_err(|_| row.place.fault("is no number")), &mut faults);
        assert_eq!(good, [1, 2]);
        assert_eq!(faults.iter().map(|f| f.place.line).collect::<Vec<_>>(), [2, 4]);
    }
}
