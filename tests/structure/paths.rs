//! Lists the Rust files below a folder, and finds the modules that their paths refer to.

use std::path::{Path, PathBuf};

/// Returns all `.rs` files below `root`, each with the path of its module. The path is empty for `main.rs`, `lib.rs`
/// and `mod.rs` in `root` itself.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let with_module = |path: PathBuf| {
        let module = module(path.strip_prefix(root).unwrap());
        (path, module)
    };
    crate::tree::files(root, &[".rs"]).into_iter().map(with_module).collect()
}

fn module(file: &Path) -> Vec<String> {
    let mut names: Vec<String> = file.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names.last().is_some_and(|last| last == "mod") || names.len() == 1 && matches!(names[0].as_str(), "main" | "lib") {
        names.pop();
    }
    names
}

/// A path in the source that begins at a topmost module.
#[derive(Debug)]
pub struct ModulePath {
    pub line: usize,
    /// The name of the topmost module.
    pub name: String,
}

/// Returns the paths of a file that refer to topmost modules: those from `crate` (and `prefix` below it), and those
/// from `super` that leave the file's own topmost module. `depth` is the length of the path of the file's module.
pub fn paths_to_modules(text: &str, depth: usize, prefix: &[&str]) -> Vec<ModulePath> {
    let tokens = tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.1);
    let is_path = |at: usize| word(at) == ":" && word(at + 1) == ":";
    let mut found = Vec::new();
    // One entry for each open brace: whether it is that of a module.
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

/// Adds the first names of the paths that begin with these tokens: that of a single path, or those of a list in braces.
fn names(tokens: &[(usize, &str)], found: &mut Vec<ModulePath>) {
    let mut add = |(line, name): (usize, &str)| found.push(ModulePath { line, name: name.to_owned() });
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

/// Returns names and punctuation with their line numbers, without comments, strings, characters and lifetimes.
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

/// Returns the length of a block comment. Block comments nest in Rust.
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

/// Returns the length of a string literal.
fn string(text: &str) -> usize {
    let mut escaped = true;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

/// Returns the length of a raw string from its hashes on, or `None` if the text is not one.
fn raw(text: &str) -> Option<usize> {
    let hashes = text.find(|c| c != '#')?;
    let inside = text[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    Some(hashes + 1 + inside.find(&closing)? + closing.len())
}

/// Returns the length of a character literal, or 1 for the apostrophe of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => text[at + c.len_utf8()..].find('\'').map_or(1, |end| at + c.len_utf8() + end + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}
