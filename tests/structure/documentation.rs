//! Every item that other modules may use has documentation, although rustc asks for it only where other crates may.

use crate::tree::files;
use std::fs;

/// The words that begin an item, behind `pub`. A module has documentation at the beginning of its file.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "type", "union"];
/// Words that may precede them.
const QUALIFIERS: [&str; 3] = ["const", "unsafe", "async"];
/// Fields of clap's types, whose documentation would be that of the command line.
const OF_CLAP: &str = "src/cli/args.rs";

/// Returns whether a line begins an item or a field that others may use. `new` says nothing that its type does not.
fn is_item(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub ") else { return false };
    let mut words = rest.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_qualifier = QUALIFIERS.contains(&word) && words.peek().is_some_and(|next| *next == "fn" || QUALIFIERS.contains(next));
        if ITEMS.contains(&word) && !is_qualifier {
            return words.next().is_none_or(|name| !name.starts_with("new("));
        }
        if !is_qualifier {
            return word.ends_with(':');
        }
    }
    false
}

/// Returns the last line before the attributes at the end, which may have several lines each.
fn before_attributes<'a>(mut lines: &[&'a str]) -> &'a str {
    while let Some((last, before)) = lines.split_last() {
        let begins = |line: &&str| line.trim_start().starts_with("#[");
        let first = if begins(last) { Some(before.len()) } else { lines.iter().rposition(begins).filter(|_| last.ends_with(")]")) };
        let Some(first) = first else { return last };
        lines = &lines[..first];
    }
    ""
}

/// Returns the lines of items without documentation, from 1. The tests at the end of a file need none.
fn undocumented(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.windows(2).position(|two| two[0] == "#[cfg(test)]" && two[1].starts_with("mod tests")).unwrap_or(lines.len());
    let has_none = |at: &usize| is_item(lines[*at]) && !before_attributes(&lines[..*at]).trim_start().starts_with("///");
    (0..end).filter(has_none).map(|at| at + 1).collect()
}

#[test]
fn items_that_other_modules_use_have_documentation() {
    let mut faults = Vec::new();
    for path in files("src", &[".rs"]) {
        let name = path.display().to_string();
        if !name.contains("tests") && name != "src/beauty/samples.rs" && !name.starts_with(OF_CLAP) {
            let found = undocumented(&fs::read_to_string(&path).unwrap());
            faults.extend(found.into_iter().map(|line| format!("{name}:{line}")));
        }
    }
    assert!(faults.is_empty(), "these have no documentation:\n{}", faults.join("\n"));
}

#[test]
fn undocumented_items_are_found() {
    let text = "/// Known.\n#[error(\n    text\n)]\npub struct J;\n/// Known.\npub fn a() {}\npub const fn b() {}\n\n/// Known.\n#[derive(Debug)]\npub struct C {\n    pub d: u8,\n    e: u8,\n}\n\
                pub const F: u8 = 0;\npub mod g;\npub(crate) fn h() {}\npub fn new() {}\n#[cfg(test)]\nmod tests {\n    pub fn i() {}\n}\n";
    assert_eq!(undocumented(text), [8, 13, 16]);
}
