//! Limits that keep files readable: the length of lines of prose, functions and files, and the existence of the files
//! that ARCHITECTURE.md names.

use crate::tree::files;
use std::fs;
use std::path::{Path, PathBuf};

/// The widest line of a comment or of Markdown text, in characters.
const COLUMNS_MAX: usize = 120;
/// The longest function, in lines.
const FUNCTION_LINES_MAX: usize = 80;
/// The longest file, in lines.
const FILE_LINES_MAX: usize = 450;
/// Longer files, each of which is a table.
const TABLES: [&str; 1] = ["src/cli/args.rs"];
/// The folders whose files are ours.
const FOLDERS: [&str; 9] = ["src", "beauty", "tests", "benches", "mark/src", "bpf-objects", "examples", "fuzz/fuzz_targets", ".ci"];

/// Whether a line of a program or table is a comment.
fn is_comment(line: &str, path: &Path) -> bool {
    let line = line.trim_start();
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("tbl") => line.starts_with('#'),
        Some("rs") => line.starts_with("//"),
        _ => ["//", "/*", "* "].iter().any(|start| line.starts_with(start)),
    }
}

/// Returns the lines of prose that are too wide, as `FILE:LINE: COLUMNS columns`.
fn wide_lines(path: &Path, is_prose: impl Fn(&str) -> bool) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().enumerate().filter(|(_, line)| line.chars().count() > COLUMNS_MAX && is_prose(line));
    lines.map(|(at, line)| format!("{}:{}: {} columns", path.display(), at + 1, line.chars().count())).collect()
}

#[test]
fn comments_have_at_most_120_columns() {
    let sources = FOLDERS.iter().flat_map(|folder| files(folder, &[".rs", ".c", ".cc", ".h", ".tbl"]));
    let faults: Vec<String> = sources.flat_map(|path| wide_lines(&path, |line| is_comment(line, &path))).collect();
    assert!(faults.is_empty(), "wrap these comments:\n{}", faults.join("\n"));
}

/// Tables and blocks of code cannot be wrapped.
#[test]
fn markdown_text_has_at_most_120_columns() {
    let folders = FOLDERS.iter().flat_map(|folder| files(folder, &[".md"]));
    let pages = folders.chain(["ARCHITECTURE.md", "README.md", "SECURITY.md"].map(PathBuf::from));
    let is_prose = |line: &str| !line.starts_with('|') && !line.starts_with("    ");
    let faults: Vec<String> = pages.flat_map(|path| wide_lines(&path, is_prose)).collect();
    assert!(faults.is_empty(), "wrap these paragraphs:\n{}", faults.join("\n"));
}

/// Returns the name and the number of lines of each function of a file. rustfmt indents the closing brace of a function
/// as its first line.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let name = |line: &str| {
        let (before, after) = line.split_once("fn ")?;
        let words = before.split_whitespace().all(|word| {
            matches!(word, "pub" | "const" | "unsafe" | "async" | "extern") || word.starts_with("pub(") || word.starts_with('"')
        });
        words.then(|| after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned())
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name(line) else { continue };
        let closing = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let Some(signature) = lines[at..].iter().position(|line| line.ends_with(['{', ';', '}'])) else { continue };
        let has_block = lines[at + signature].ends_with('{');
        let end = if has_block { lines[at..].iter().position(|line| *line == closing) } else { Some(signature) };
        found.extend(end.map(|end| (name, end + 1)));
    }
    found
}

#[test]
fn functions_have_at_most_80_lines() {
    let mut count = 0;
    let mut faults = Vec::new();
    for path in FOLDERS.iter().flat_map(|folder| files(folder, &[".rs"])) {
        let functions = functions(&fs::read_to_string(&path).unwrap());
        count += functions.len();
        let long = functions.iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        faults.extend(long.map(|(name, lines)| format!("{}: {name} has {lines} lines", path.display())));
    }
    assert!(count > 5_000, "only {count} functions were found");
    assert!(faults.is_empty(), "split these functions:\n{}", faults.join("\n"));
}

#[test]
fn files_have_at_most_450_lines() {
    let mut faults = Vec::new();
    for path in FOLDERS.iter().flat_map(|folder| files(folder, &[".rs", ".c", ".h"])) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let is_table = TABLES.iter().any(|table| path == Path::new(table));
        if (lines > FILE_LINES_MAX) != is_table {
            let why = if is_table { "which needs no exception" } else { "which are too many: split it" };
            faults.push(format!("{} has {lines} lines, {why}", path.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// ARCHITECTURE.md may shorten a path to its end.
#[test]
fn architecture_names_files_that_exist() {
    let text = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let all: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| files(folder, &[""])).collect();
    let is_folder = |word: &str| all.iter().any(|path| path.ancestors().any(|folder| folder.ends_with(word)));
    let endings = [".rs", ".h", ".c", ".tbl", ".md", "/"];
    let is_path = |word: &&str| {
        endings.iter().any(|ending| word.ends_with(ending))
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '/' | '-'))
            && !word.starts_with(['/', '.'])
    };
    let exists = |word: &&str| {
        let is_file = || all.iter().any(|path| path.ends_with(word));
        Path::new(word).exists() || if word.ends_with('/') { is_folder(word) } else { is_file() }
    };
    let words: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(words.len() > 100, "only {} files are named", words.len());
    let gone: Vec<&&str> = words.iter().filter(|word| !exists(word)).collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md names files that do not exist: {gone:?}");
}
