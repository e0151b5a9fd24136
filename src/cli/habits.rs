//! What strace's and perf trace's users type out of habit: it is not guessed at, but answered in one line that says
//! what to write instead.
//!
//! The words are walked as clap will walk them, with clap's own knowledge of the options, so that what belongs to the
//! command is never looked at.

mod rows;
mod walk;

pub use rows::HABITS;

use std::ffi::OsString;
use walk::{Given, walk};

/// One habit.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    pub when: When,
    /// A command line that shows it, split at blanks.
    pub typed: &'static str,
    /// What is said.
    pub says: &'static str,
    /// A command line that does here what was meant, as far as anything does.
    pub instead: &'static str,
}

/// How a habit is recognized.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// By an option that rtrace does not have.
    Option(&'static [&'static str]),
    /// By the value of an option that rtrace has.
    Value(&'static str, fn(&str) -> bool),
    /// By the command's first word, directly behind an option that takes no value.
    Word(&'static str, fn(&str) -> bool),
    /// By an option that is given twice.
    Twice(&'static str),
    /// By an item of `-e`: one that is this word, or that begins so if the word ends with `=` or `?`.
    Item(&'static [&'static str]),
}

/// The answer to the first habit in these words (without the program's name), if there is one.
pub fn answer(words: &[OsString]) -> Option<&'static str> {
    let given = walk(words);
    HABITS.iter().find(|habit| habit.when.is_in(&given)).map(|habit| habit.says)
}

impl When {
    fn is_in(self, given: &[Given]) -> bool {
        let value_of = |option: &str, is: &dyn Fn(&str) -> bool| {
            given.iter().any(|one| one.is_known && one.name == option && one.value.as_deref().is_some_and(is))
        };
        match self {
            When::Option(names) => given.iter().any(|one| !one.is_known && names.contains(&one.name.as_str())),
            When::Value(option, is) => value_of(option, &is),
            When::Word(option, is) => given.iter().any(|one| one.name == option && one.behind.as_deref().is_some_and(is)),
            When::Twice(option) => given.iter().filter(|one| one.name == option).count() > 1,
            When::Item(beginnings) => value_of("-e", &|list| beginnings.iter().any(|beginning| has_item(list, beginning))),
        }
    }
}

/// Whether a list of `-e` has such an item. What strace means to be told by `NAME=` stands at the list's beginning.
fn has_item(list: &str, beginning: &str) -> bool {
    match beginning {
        open if open.ends_with('=') => list.trim_start_matches('!').starts_with(open),
        "?" => list.split(',').any(|item| {
            let name = item.trim_start_matches('!').strip_prefix('?');
            name.is_some_and(|name| !name.is_empty() && !name.contains(['?', '*', '[']))
        }),
        open if open.ends_with('?') => list.starts_with(open),
        word => list == word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse::{Stop, Surroundings, request};

    fn parsed(line: &str) -> Result<(), Stop> {
        let argv: Vec<OsString> = std::iter::once("rtrace").chain(line.split(' ')).map(OsString::from).collect();
        request(&argv, &Surroundings { var: &|_| None, read: &|_| Ok(None), page_bytes: 4096 }).map(|_| ())
    }

    #[test]
    fn each_habit_is_answered_in_one_line_and_what_it_advises_is_taken() {
        for habit in HABITS {
            assert_eq!(parsed(habit.typed), Err(Stop::Wrong(habit.says.to_owned())), "rtrace {}", habit.typed);
            assert!(!habit.says.contains('\n') && habit.says.chars().count() <= 140, "{}", habit.says);
            assert_eq!(parsed(habit.instead), Ok(()), "rtrace {}", habit.instead);
        }
    }

    #[test]
    fn every_name_of_an_option_is_answered() {
        for habit in HABITS {
            let When::Option(names) = habit.when else { continue };
            for name in names {
                assert_eq!(parsed(&format!("{name} ls")), Err(Stop::Wrong(habit.says.to_owned())), "{name}");
            }
        }
    }

    #[test]
    fn every_beginning_of_an_item_is_answered() {
        for habit in HABITS {
            let When::Item(beginnings) = habit.when else { continue };
            for beginning in beginnings {
                let list = if beginning.ends_with(['=', '?']) { format!("{beginning}x") } else { (*beginning).to_owned() };
                assert_eq!(parsed(&format!("-e {list} ls")), Err(Stop::Wrong(habit.says.to_owned())), "{list}");
            }
        }
    }

    #[test]
    fn what_belongs_to_the_command_is_its_own() {
        for line in
            ["ls -c", "-e openat strace -ff -c ls", "-- 200", "-s -- 200", "-p 1 -- -c", "-f -y -yy ls", "-e ????? ls", "-S -- time ls"]
        {
            assert_eq!(parsed(line), Ok(()), "rtrace {line}");
        }
    }

    #[test]
    fn letters_in_one_word_are_answered_as_well() {
        for (line, says) in [
            ("-fc ls", "-c is"),
            ("-fvttT ls", "-t TID traces threads"),
            ("-s200 ls", "-s is the summary"),
            ("-fs 200 ls", "-s is the summary"),
            ("-fZ", "-Z shows"),
        ] {
            let answered = parsed(line);
            assert!(matches!(&answered, Err(Stop::Wrong(text)) if text.starts_with(says)), "rtrace {line}: {answered:?}");
        }
    }
}
