//! Installs the manual and what it names into an empty directory, and looks for each page and file there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The numbers of pages, as README's sentence writes them.
const NUMBERS: [&str; 12] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"];

fn installed() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let run = Command::new("man/install").arg(directory.path()).output().expect("to run man/install");
    assert!(run.status.success(), "man/install: {}", String::from_utf8_lossy(&run.stderr));
    directory
}

/// Returns the pages of `man/`, each with its name, its section and its text.
fn pages() -> Vec<(String, String, String)> {
    let entries = fs::read_dir("man").expect("man/").map(|entry| entry.expect("an entry of man/").path());
    let page = |path: &Path| {
        let section = path.extension()?.to_str()?;
        let is_section = section.len() == 1 && section.starts_with(|c: char| c.is_ascii_digit());
        is_section.then(|| (path.file_stem().unwrap().to_str().unwrap().to_owned(), section.to_owned(), fs::read_to_string(path).unwrap()))
    };
    entries.filter_map(|path| page(&path)).collect()
}

/// Returns README's sentence about the manual: the word for the number of pages, and their names.
fn promised() -> (String, BTreeSet<String>) {
    let readme = fs::read_to_string("README.md").unwrap();
    let (_, rest) = readme.split_once("The manual has ").expect("README's sentence about the manual");
    let (number, rest) = rest.split_once(" pages:").expect("a number of pages");
    let sentence = rest.split_once(". ").map_or(rest, |(sentence, _)| sentence);
    let quoted = sentence.split('`').skip(1).step_by(2).filter(|name| name.starts_with("rtrace"));
    (number.to_owned(), quoted.map(str::to_owned).collect())
}

#[test]
fn every_page_that_readme_promises_is_installed_in_its_section() {
    let directory = installed();
    let (number, names) = promised();
    assert_eq!(NUMBERS.get(names.len()), Some(&number.as_str()), "README names {names:?}");
    let pages = pages();
    assert_eq!(names, pages.iter().map(|(name, ..)| name.clone()).collect(), "README's pages are those of man/");
    for (name, section, text) in pages {
        let title = text.lines().find_map(|line| line.strip_prefix(".TH ")).unwrap_or_else(|| panic!("{name}: no title"));
        assert_eq!(title.split_whitespace().nth(1), Some(section.as_str()), "{name}: {title}");
        let path = directory.path().join(format!("share/man/man{section}/{name}.{section}"));
        assert_eq!(fs::read_to_string(&path).ok(), Some(text), "{}", path.display());
        found_by_man(directory.path(), &section, &name, &path);
    }
}

/// Asserts that man(1) finds a page, if there is one. A minimal system has none, or a script that says so.
fn found_by_man(directory: &Path, section: &str, name: &str, path: &Path) {
    let man = |words: &[&str]| Command::new("man").args(words).output().ok().filter(|run| run.status.success());
    if man(&["--version"]).is_none_or(|run| !String::from_utf8_lossy(&run.stdout).starts_with("man ")) {
        return eprintln!("SKIPPED: {name}({section}) is not looked up by man(1), which is not installed");
    }
    let manual = directory.join("share/man");
    let run = man(&["-M", manual.to_str().unwrap(), "--where", section, name]).unwrap_or_else(|| panic!("man: no {name}({section})"));
    assert_eq!(String::from_utf8_lossy(&run.stdout).trim(), path.to_str().unwrap());
}

#[test]
fn pages_refer_to_pages_that_exist() {
    let pages = pages();
    let exists = |name: &str, section: &str| pages.iter().any(|(own, of, _)| own == name && of == section);
    for (page, _, text) in &pages {
        let references = references(text);
        let wrong: Vec<_> = references.iter().filter(|(name, section)| !exists(name, section)).collect();
        assert!(wrong.is_empty(), "{page} refers to {wrong:?}");
        if page == "rtrace" {
            let missing: Vec<_> =
                pages.iter().filter(|(name, of, _)| name != page && !references.contains(&(name.clone(), of.clone()))).collect();
            assert!(missing.is_empty(), "rtrace(1) does not refer to {:?}", missing.iter().map(|(name, ..)| name).collect::<Vec<_>>());
        }
    }
}

/// Returns the pages of rtrace that a page refers to: `.BR rtrace\-json (5)`, `\fBrtrace\-json\fR(5)`,
/// `rtrace\-json(5)`.
fn references(text: &str) -> BTreeSet<(String, String)> {
    let text = text.replace("\\-", "-").replace("\\fR", "").replace("\\fP", "");
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let parts = text.match_indices('(').filter_map(|(at, _)| {
        let section = text[at + 1..].split_once(')')?.0;
        let before = text[..at].strip_suffix(' ').unwrap_or(&text[..at]);
        let name = &before[before.rfind(|c| !is_of_name(c)).map_or(0, |end| end + 1)..];
        let name = name.strip_prefix("fB").unwrap_or(name);
        let is_reference = section.len() == 1 && section.starts_with(|c: char| c.is_ascii_digit());
        (is_reference && (name == "rtrace" || name.starts_with("rtrace-"))).then(|| (name.to_owned(), section.to_owned()))
    });
    parts.collect()
}

#[test]
fn references_are_found_in_all_forms() {
    let found = references(".BR rtrace\\-a (5),\nsee \\fBrtrace\\-b\\fR(7), rtrace(1), strtrace(1) and rtrace (see)\n");
    let expected = [("rtrace", "1"), ("rtrace-a", "5"), ("rtrace-b", "7")];
    assert_eq!(found, expected.map(|(name, section)| (name.to_owned(), section.to_owned())).into());
}

#[test]
fn files_that_pages_name_are_installed() {
    let directory = installed();
    let mut named = 0;
    for (page, _, text) in pages() {
        // Comments are for those who change the page.
        let shown: Vec<&str> = text.lines().filter(|line| !line.starts_with(".\\\"")).collect();
        let text = shown.join("\n").replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "");
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
        let words = text.split(|c| !is_of_path(c)).map(|word| word.trim_end_matches('.')).filter(|word| !word.starts_with(['/', '.']));
        // What pages name that happens to exist in the sources as well.
        let of_sources = words.filter(|word| (word.contains('/') || word.ends_with(".md")) && Path::new(word).exists());
        for path in of_sources {
            named += 1;
            assert!(directory.path().join("share/doc/rtrace").join(path).exists(), "{page} names {path}, which is not installed");
        }
    }
    assert!(named > 2, "pages name {named} files of the sources");
}

#[test]
fn the_header_for_programs_and_each_completion_script_of_an_installed_shell_are_installed() {
    let directory = installed();
    let has_shell = |shell: &str| Command::new(shell).arg("--version").output().is_ok();
    let scripts = [
        ("bash", "share/bash-completion/completions/rtrace"),
        ("zsh", "share/zsh/site-functions/_rtrace"),
        ("fish", "share/fish/vendor_completions.d/rtrace.fish"),
    ];
    assert_eq!(fs::read_dir("man/completions").unwrap().count(), scripts.len(), "a script has no place");
    assert!(directory.path().join("include/rtrace.bpf.h").is_file());
    for (shell, path) in scripts {
        assert_eq!(directory.path().join(path).is_file(), has_shell(shell), "{path}");
    }
}
