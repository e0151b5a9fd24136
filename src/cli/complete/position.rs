//! Where the cursor is: in an option, in its value, in a subcommand, or in the command.

use clap::{Arg, Command};

/// What the last word is to become.
#[derive(Debug)]
pub enum Position<'a> {
    /// An option.
    Options,
    /// The value of an option, of which this much is there.
    Value { arg: &'a Arg, given: String },
    /// The first word that is no option.
    First,
    /// Part of the command that begins at this word.
    Command(usize),
    /// Behind a subcommand, with the words that are no options up to there.
    Subcommand { names: Vec<String>, current: String },
}

/// `before`: the words up to the one that the cursor is in.
pub fn position<'a>(command: &'a Command, before: &[String], current: &str) -> Position<'a> {
    let mut waits: Option<&Arg> = None;
    for (at, word) in before.iter().enumerate() {
        if waits.take().is_some() {
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
        waits = match value_of(command, word) {
            Some((arg, None)) => Some(arg),
            _ => None,
        };
    }
    if let Some(arg) = waits {
        return Position::Value { arg, given: current.to_owned() };
    }
    match value_of(command, current) {
        Some((arg, Some(given))) => Position::Value { arg, given },
        _ if current.starts_with('-') => Position::Options,
        _ => Position::First,
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The option of this word that takes a value, and the value if it stands in the same word.
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
