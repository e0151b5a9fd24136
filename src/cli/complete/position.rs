//! Finds out in which part of the command line the cursor is: an option, its value, a subcommand, or the traced
//! command.

use clap::{Arg, Command};

/// The part of the command line that the last word belongs to.
#[derive(Debug)]
pub enum Position<'a> {
    /// The name of an option.
    Options,
    /// The value of an option, and the part of it before the cursor.
    Value { arg: &'a Arg, typed: String },
    /// The first word that is not an option.
    FirstWord,
    /// The traced command, which begins at the word with this index.
    Command(usize),
    /// A word after a subcommand. `names` has the words before it that are not options, from the subcommand on.
    Subcommand { names: Vec<String>, current: String },
}

/// Returns the position of the word `current`, which has the cursor. `before` has the words before it.
pub fn position<'a>(command: &'a Command, before: &[String], current: &str) -> Position<'a> {
    let mut without_value: Option<&Arg> = None;
    for (at, word) in before.iter().enumerate() {
        if without_value.take().is_some() {
            continue;
        }
        if word == "--" {
            return Position::Command(at + 1);
        }
        if !is_option(word) {
            let is_subcommand = at == 0 && command.find_subcommand(word).is_some();
            let names = || before[at..].iter().filter(|word| !is_option(word)).cloned().collect();
            return match is_subcommand {
                true => Position::Subcommand { names: names(), current: current.to_owned() },
                false => Position::Command(at),
            };
        }
        without_value = match value_of(command, word) {
            Some((arg, None)) => Some(arg),
            _ => None,
        };
    }
    if let Some(arg) = without_value {
        return Position::Value { arg, typed: current.to_owned() };
    }
    match value_of(command, current) {
        Some((arg, Some(typed))) => Position::Value { arg, typed },
        _ if current.starts_with('-') => Position::Options,
        _ => Position::FirstWord,
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Returns the option in this word that takes a value, and its value if that is in the same word.
fn value_of<'a>(command: &'a Command, word: &str) -> Option<(&'a Arg, Option<String>)> {
    let takes = |arg: &&Arg| arg.get_action().takes_values() && !arg.is_positional();
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
        let named = |arg: &&Arg| arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&name));
        let arg = command.get_arguments().filter(takes).find(named)?;
        return (value.is_some() || !arg.is_require_equals_set()).then_some((arg, value));
    }
    let letters = word.strip_prefix('-')?;
    letters.char_indices().find_map(|(at, letter)| {
        let arg = command.get_arguments().filter(takes).find(|arg| arg.get_short() == Some(letter))?;
        let rest = &letters[at + letter.len_utf8()..];
        Some((arg, (!rest.is_empty()).then(|| rest.to_owned())))
    })
}
