//! The Rust files below a folder, and the modules that their paths lead to.

use std::fs;
use std::path::{Path, PathBuf};

/// All files below `root` that are modules of it, with the names of their modules. `main.rs`, `lib.rs` and `mod.rs` of
/// `root`
/// itself have none.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let module = module(path.strip_prefix(root).unwrap());
                found.push((path, module));
            }
        }
    }
    found.sort();
    found
}

fn module(file: &Path) -> Vec<String> {
    let mut names: Vec<String> = file.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names.last().is_some_and(|last| last == "mod") || names.len() == 1 && matches!(names[0].as_str(), "main" | "lib") {
        names.pop();
    }
    names
}

/// A path to a module beside the file's own topmost one.
#[derive(Debug)]
pub struct Used {
    pub line: usize,
    /// The topmost module that it leads to.
    pub name: String,
}

/// The topmost modules that a file's paths lead to: those from `crate` (and `prefix` below it), and those from `super`
/// that
/// leave the topmost module. `depth`: how many modules the file's own is below the root, itself included.
pub fn used(text: &str, depth: usize, prefix: &[&str]) -> Vec<Used> {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.1);
    let is_path = |at: usize| word(at) == ":" && word(at + 1) == ":";
    let mut found = Vec::new();
    // The braces that are open, and whether a module begins with each.
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut next = at + 1;
        match word(at) {
            "{" => braces.push(at >= 2 && word(at - 2) == "mod"),
            "}" => drop(braces.pop()),
            "crate" if is_path(at + 1) => {
                next = at + 3;
                if prefix.iter().all(|name| (word(next) == *name && is_path(next + 1)).then(|| next += 3).is_some()) {
                    names(&tokens[next..], &mut found);
                }
            }
            "super" if is_path(at + 1) => {
                let mut left = depth + braces.iter().filter(|is_module| **is_module).count();
                while word(at) == "super" && is_path(at + 1) {
                    (left, at) = (left.saturating_sub(1), at + 3);
                }
                if left == 0 {
                    names(&tokens[at..], &mut found);
                }
                next = at;
            }
            _ => {}
        }
        at = next;
    }
    found
}

/// The first names of the paths that begin here: of one, or of each in braces.
fn names(tokens: &[(usize, &str)], found: &mut Vec<Used>) {
    let mut add = |(line, name): (usize, &str)| found.push(Used { line, name: name.to_owned() });
    if tokens.first().is_none_or(|token| token.1 != "{") {
        return tokens.first().copied().into_iter().for_each(add);
    }
    let mut open = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.1 {
            "{" => open += 1,
            "}" if open == 1 => return,
            "}" => open -= 1,
            "," => {}
            _ if open == 1 && matches!(tokens[at - 1].1, "{" | ",") => add(*token),
            _ => {}
        }
    }
}

/// Names and signs with their lines, without comments, strings, characters and lifetimes.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment(rest),
            '"' => string(rest),
            '\'' => character(rest),
            _ if is_of_name(first) => {
                let name = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
                match raw(&rest[name..]) {
                    Some(length) if matches!(&rest[..name], "r" | "br" | "cr") => name + length,
                    _ => {
                        tokens.push((line, &rest[..name]));
                        name
                    }
                }
            }
            _ => {
                if !first.is_whitespace() {
                    tokens.push((line, &rest[..first.len_utf8()]));
                }
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    tokens
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Comments nest.
fn comment(text: &str) -> usize {
    let (mut open, mut at) = (1, 2);
    while open > 0 && at < text.len() {
        let rest = &text.as_bytes()[at..];
        let step = if rest.starts_with(b"/*") || rest.starts_with(b"*/") { 2 } else { 1 };
        open = if rest.starts_with(b"/*") { open + 1 } else { open - usize::from(step == 2) };
        at += step;
    }
    at
}

fn string(text: &str) -> usize {
    let mut escaped = true;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

/// A raw string, from its hashes on.
fn raw(text: &str) -> Option<usize> {
    let hashes = text.find(|c| c != '#')?;
    let inside = text[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    Some(hashes + 1 + inside.find(&closing)? + closing.len())
}

/// A character, or the sign before a lifetime's name.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => text[at + c.len_utf8()..].find('\'').map_or(1, |end| at + c.len_utf8() + end + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}
