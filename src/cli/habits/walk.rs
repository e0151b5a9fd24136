//! The options of a command line, one by one, up to the command's first word.

use crate::cli::args;
use clap::{Arg, Command};
use std::ffi::OsString;

/// An option as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// With its dashes: by its letter if it has one, else by its long name.
    pub name: String,
    /// rtrace has it.
    pub is_known: bool,
    pub value: Option<String>,
    /// What follows an option without a value that is no option: the command's first word, or digits in the same word.
    pub behind: Option<String>,
}

/// The options before the command. An option that rtrace does not have is the last: whether it takes a value is not
/// known.
pub fn walk(words: &[OsString]) -> Vec<Given> {
    let command = args::command();
    let mut given: Vec<Given> = Vec::new();
    let mut words = words.iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        if word == "--" {
            return given;
        }
        let more = match word.strip_prefix("--") {
            Some(long) => vec![of_long(&command, long)],
            None if word.len() > 1 && word.starts_with('-') => of_letters(&command, &word[1..]),
            None => {
                if let Some(last) = given.last_mut().filter(|last| last.value.is_none() && last.behind.is_none()) {
                    last.behind = Some(word);
                }
                return given;
            }
        };
        for (mut option, waits) in more {
            if waits {
                option.value = words.next();
            }
            let is_known = option.is_known;
            given.push(option);
            if !is_known {
                return given;
            }
        }
    }
    given
}

/// `NAME` or `NAME=VALUE`, and whether the next word is its value.
fn of_long(command: &Command, word: &str) -> (Given, bool) {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value.to_owned())));
    let found = command.get_arguments().find(|arg| arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name)));
    match found {
        Some(arg) => {
            let waits = takes_value(arg) && !arg.is_require_equals_set() && value.is_none();
            (Given { name: shown(arg, name), is_known: true, value, behind: None }, waits)
        }
        None => (Given { name: format!("--{name}"), value, ..Given::default() }, false),
    }
}

/// Letters in one word; the first that takes a value takes the rest of the word, or the next one.
fn of_letters(command: &Command, letters: &str) -> Vec<(Given, bool)> {
    let mut given: Vec<(Given, bool)> = Vec::new();
    for (at, letter) in letters.char_indices() {
        let rest = &letters[at + letter.len_utf8()..];
        let name = format!("-{letter}");
        let found = command.get_arguments().find(|arg| arg.get_short() == Some(letter));
        match found {
            Some(arg) if takes_value(arg) => {
                let value = (!rest.is_empty()).then(|| rest.strip_prefix('=').unwrap_or(rest).to_owned());
                let waits = value.is_none();
                given.push((Given { name, is_known: true, value, behind: None }, waits));
                return given;
            }
            Some(_) => {
                let behind = (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())).then(|| rest.to_owned());
                let ends = behind.is_some();
                given.push((Given { name, is_known: true, value: None, behind }, false));
                if ends {
                    return given;
                }
            }
            None => {
                given.push((Given { name, ..Given::default() }, false));
                return given;
            }
        }
    }
    given
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn shown(arg: &Arg, long: &str) -> String {
    arg.get_short().map_or_else(|| format!("--{long}"), |letter| format!("-{letter}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let shown = |given: Given| {
            format!(
                "{}{}{}",
                given.name,
                given.value.map(|v| format!("={v}")).unwrap_or_default(),
                given.behind.map(|b| format!(" {b}")).unwrap_or_default()
            )
        };
        walk(&words).into_iter().map(shown).collect()
    }

    #[test]
    fn options_come_with_their_values_and_end_at_the_command() {
        assert_eq!(names("-e openat --filter=x -s ls -c"), ["-e=openat", "--filter=x", "-s ls"]);
        assert_eq!(names("-eopenat -p 12 -- -c"), ["-e=openat", "-p=12"]);
        assert_eq!(names("--event read --stack-summary ls"), ["-e=read", "--stack-summary ls"]);
        assert_eq!(names("-sT -m 4M -sk ls -c"), ["-s", "-T", "-m=4M", "-s", "-k"]);
        assert_eq!(names("--trace-path x -c"), ["--trace-path"]);
    }
}
