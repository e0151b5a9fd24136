//! Options that users of strace and perf trace type out of habit. rtrace does not guess what they mean: it answers in
//! one line that says what to write instead.
//!
//! The words are walked as clap will parse them, with clap's own definitions of the options, so that the words of the
//! traced command are never examined.

mod rows;
pub mod walk;

pub use rows::HABITS;

use std::ffi::OsString;
use walk::{TypedOption, walk};

/// A habit: an option of another tool that rtrace does not have, or that means something else in rtrace.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    /// What the user types out of this habit.
    pub when: When,
    /// An example: a command line with the habit, without the program's name, to be split at blanks.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test parses the examples"))]
    pub typed: &'static str,
    /// The error message: one line.
    pub answer: &'static str,
    /// The command line for rtrace that comes closest to the example.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test parses the examples"))]
    pub instead: &'static str,
}

/// How a habit is recognized.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// By an option that rtrace does not have.
    Option(&'static [&'static str]),
    /// By the value of an option that rtrace has.
    Value(&'static str, fn(&str) -> bool),
    /// By the word that directly follows an option without a value. For rtrace, the command begins there.
    Word(&'static str, fn(&str) -> bool),
    /// By an option that is typed more than once.
    Twice(&'static str),
    /// By the list of `-e`: it is one of these words, or begins with one that ends with `=` or `?` (see `has_item`).
    Item(&'static [&'static str]),
}

/// Returns the answer to the first habit in these words (without the program's name), if there is one.
pub fn answer(words: &[OsString]) -> Option<&'static str> {
    let typed = walk(words);
    HABITS.iter().find(|habit| habit.when.is_in(&typed)).map(|habit| habit.answer)
}

impl When {
    fn is_in(self, typed: &[TypedOption]) -> bool {
        let has_value = |option: &str, is: &dyn Fn(&str) -> bool| {
            typed.iter().any(|one| one.is_known && one.name == option && one.value.as_deref().is_some_and(is))
        };
        match self {
            When::Option(names) => typed.iter().any(|one| !one.is_known && names.contains(&one.name.as_str())),
            When::Value(option, is) => has_value(option, &is),
            When::Word(option, is) => typed.iter().any(|one| one.name == option && one.following.as_deref().is_some_and(is)),
            When::Twice(option) => typed.iter().filter(|one| one.name == option).count() > 1,
            When::Item(beginnings) => has_value("-e", &|list| beginnings.iter().any(|beginning| has_item(list, beginning))),
        }
    }
}

/// Whether a list of `-e` has such an item: `?` before a name anywhere in it, a qualifier of strace's (`NAME=`) at its
/// beginning, or the whole list as one word.
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
    fn each_habit_has_a_one_line_answer_and_an_accepted_alternative() {
        for habit in HABITS {
            assert_eq!(parsed(habit.typed), Err(Stop::Wrong(habit.answer.to_owned())), "rtrace {}", habit.typed);
            assert!(!habit.answer.contains('\n') && habit.answer.chars().count() <= 140, "{}", habit.answer);
            assert_eq!(parsed(habit.instead), Ok(()), "rtrace {}", habit.instead);
        }
    }

    #[test]
    fn every_name_of_an_option_is_answered() {
        for habit in HABITS {
            let When::Option(names) = habit.when else { continue };
            for name in names {
                assert_eq!(parsed(&format!("{name} ls")), Err(Stop::Wrong(habit.answer.to_owned())), "{name}");
            }
        }
    }

    #[test]
    fn every_beginning_of_an_item_is_answered() {
        for habit in HABITS {
            let When::Item(beginnings) = habit.when else { continue };
            for beginning in beginnings {
                let list = if beginning.ends_with(['=', '?']) { format!("{beginning}x") } else { (*beginning).to_owned() };
                assert_eq!(parsed(&format!("-e {list} ls")), Err(Stop::Wrong(habit.answer.to_owned())), "{list}");
            }
        }
    }

    #[test]
    fn words_of_the_command_are_not_habits() {
        for line in
            ["ls -c", "-e openat strace -ff -c ls", "-- 200", "-s -- 200", "-p 1 -- -c", "-f -y -yy ls", "-e ????? ls", "-S -- time ls"]
        {
            assert_eq!(parsed(line), Ok(()), "rtrace {line}");
        }
    }

    #[test]
    fn several_letters_in_one_word_are_answered() {
        for (line, beginning) in [
            ("-fc ls", "-c is"),
            ("-fvttT ls", "-t TID traces threads"),
            ("-s200 ls", "-s is the summary"),
            ("-fs 200 ls", "-s is the summary"),
            ("-fZ", "strace's -Z shows"),
        ] {
            let answered = parsed(line);
            assert!(matches!(&answered, Err(Stop::Wrong(text)) if text.starts_with(beginning)), "rtrace {line}: {answered:?}");
        }
    }
}
