//! Splits a command line into its options, up to the first word of the command.

use crate::cli::args;
use clap::{Arg, Command};
use std::ffi::OsString;

/// An option as the user typed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedOption {
    /// The letter of the option, or its long name if it has no letter, with the dashes.
    pub name: String,
    /// Whether rtrace has this option.
    pub is_known: bool,
    /// The value; `None` if the option takes none or the user typed none. Of an option that rtrace does not have, only
    /// a value behind `=` is known.
    pub value: Option<String>,
    /// For an option without a value: the first word of the command if that follows directly, or digits in the same
    /// word (`200` of `-s200`).
    pub following: Option<String>,
}

/// Returns the options before the command. The walk ends at the first option that rtrace does not have, because it is
/// not known whether that one takes a value.
pub fn walk(words: &[OsString]) -> Vec<TypedOption> {
    let command = args::command();
    let mut options: Vec<TypedOption> = Vec::new();
    let mut words = words.iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        if word == "--" {
            return options;
        }
        let more = match word.strip_prefix("--") {
            Some(long) => vec![long_option(&command, long)],
            None if word.len() > 1 && word.starts_with('-') => short_options(&command, &word[1..]),
            None => {
                if let Some(last) = options.last_mut().filter(|last| last.value.is_none() && last.following.is_none()) {
                    last.following = Some(word);
                }
                return options;
            }
        };
        for (mut option, takes_next) in more {
            if takes_next {
                option.value = words.next();
            }
            let is_known = option.is_known;
            options.push(option);
            if !is_known {
                return options;
            }
        }
    }
    options
}

/// Parses `NAME` or `NAME=VALUE`. Returns the option, and whether the next word is its value.
fn long_option(command: &Command, word: &str) -> (TypedOption, bool) {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value.to_owned())));
    let found = command.get_arguments().find(|arg| arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name)));
    match found {
        Some(arg) => {
            let takes_next = takes_value(arg) && !arg.is_require_equals_set() && value.is_none();
            (TypedOption { name: displayed_name(arg, name), is_known: true, value, following: None }, takes_next)
        }
        None => (TypedOption { name: format!("--{name}"), value, ..TypedOption::default() }, false),
    }
}

/// Parses several letters in one word. The first letter that takes a value takes the rest of the word, or the next
/// word. Returns each option, and whether the next word is its value.
fn short_options(command: &Command, letters: &str) -> Vec<(TypedOption, bool)> {
    let mut options: Vec<(TypedOption, bool)> = Vec::new();
    for (at, letter) in letters.char_indices() {
        let rest = &letters[at + letter.len_utf8()..];
        let name = format!("-{letter}");
        let found = command.get_arguments().find(|arg| arg.get_short() == Some(letter));
        match found {
            Some(arg) if takes_value(arg) => {
                let value = (!rest.is_empty()).then(|| rest.strip_prefix('=').unwrap_or(rest).to_owned());
                let takes_next = value.is_none();
                options.push((TypedOption { name, is_known: true, value, following: None }, takes_next));
                return options;
            }
            Some(_) => {
                let following = (!rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())).then(|| rest.to_owned());
                let ends = following.is_some();
                options.push((TypedOption { name, is_known: true, value: None, following }, false));
                if ends {
                    return options;
                }
            }
            None => {
                options.push((TypedOption { name, ..TypedOption::default() }, false));
                return options;
            }
        }
    }
    options
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn displayed_name(arg: &Arg, long: &str) -> String {
    arg.get_short().map_or_else(|| format!("--{long}"), |letter| format!("-{letter}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let shown = |option: TypedOption| {
            format!(
                "{}{}{}",
                option.name,
                option.value.map(|v| format!("={v}")).unwrap_or_default(),
                option.following.map(|f| format!(" {f}")).unwrap_or_default()
            )
        };
        walk(&words).into_iter().map(shown).collect()
    }

    #[test]
    fn options_have_their_values_and_end_at_the_command() {
        assert_eq!(names("-e openat --filter=x -s ls -c"), ["-e=openat", "--filter=x", "-s ls"]);
        assert_eq!(names("-eopenat -p 12 -- -c"), ["-e=openat", "-p=12"]);
        assert_eq!(names("--event read --stack-summary ls"), ["-e=read", "--stack-summary ls"]);
        assert_eq!(names("-sT -m 4M -sk ls -c"), ["-s", "-T", "-m=4M", "-s", "-k"]);
        assert_eq!(names("--trace-path x -c"), ["--trace-path"]);
    }
}
