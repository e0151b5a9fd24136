//! `rtrace __complete`: candidates for a word of the command line, for the completion scripts of bash, zsh and fish.
//!
//! The scripts know nothing about rtrace's options. They pass the words up to the cursor (`rtrace __complete --
//! WORD...`) and read candidates, one per line, each followed by a tab and a description, which may be empty. Instead,
//! rtrace may print one line that begins with `!` and leaves completion to the shell: `!files`, `!directories`, or
//! `!command N`, where the traced command begins at word N of those passed.

mod position;
mod values;

use super::{ExitCode, args, stdout};
use position::{Position, position};
use std::ffi::OsString;

/// A candidate and its description, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    text: String,
    help: String,
}

impl Candidate {
    fn new(text: impl Into<String>, help: impl Into<String>) -> Candidate {
        Candidate { text: text.into(), help: help.into() }
    }
}

/// The answer to a completion script.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Candidates(Vec<Candidate>),
    /// The shell completes file names.
    Files,
    /// The shell completes names of directories.
    Directories,
    /// The shell completes the traced command, which begins at the word with this index.
    Command(usize),
}

/// Prints the candidates for the last of these words.
///
/// # Errors
/// stdout cannot be written.
pub fn print(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = match answer(&words) {
        Answer::Files => "!files\n".to_owned(),
        Answer::Directories => "!directories\n".to_owned(),
        Answer::Command(at) => format!("!command {at}\n"),
        Answer::Candidates(candidates) => candidates.iter().map(|one| format!("{}\t{}\n", one.text, one.help)).collect(),
    };
    stdout::print(text.as_bytes())
}

fn answer(words: &[String]) -> Answer {
    let Some((current, before)) = words.split_last() else { return Answer::Candidates(Vec::new()) };
    let command = args::command();
    match position(&command, before, current) {
        Position::Command(at) => Answer::Command(at),
        Position::Options => Answer::Candidates(options(&command, current)),
        Position::FirstWord => first_word(&command, current),
        Position::Value { arg, typed } => prefixed(values::of(arg, &typed), current, &typed),
        Position::Subcommand { names, current } => subcommand(&command, &names, &current),
    }
}

/// Prepends the part of the word before the value to each candidate: `--filter=`, or the `-e` of `-eopenat`.
fn prefixed(answer: Answer, word: &str, value: &str) -> Answer {
    let head = word.strip_suffix(value).unwrap_or_default();
    match answer {
        Answer::Candidates(all) => {
            Answer::Candidates(all.into_iter().map(|one| Candidate { text: format!("{head}{}", one.text), ..one }).collect())
        }
        other => other,
    }
}

fn options(command: &clap::Command, current: &str) -> Vec<Candidate> {
    let mut all = Vec::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional()) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let names = arg.get_short().map(|letter| format!("-{letter}")).into_iter().chain(arg.get_long().map(|long| format!("--{long}")));
        all.extend(names.filter(|name| name.starts_with(current)).map(|name| Candidate::new(name, help.clone())));
    }
    all
}

/// Returns the candidates for the first word that is not an option: subcommands and programs.
fn first_word(command: &clap::Command, current: &str) -> Answer {
    let mut all = subcommands(command, current);
    all.extend(values::programs(current).into_iter().map(|name| Candidate::new(name, "")));
    match all.is_empty() || current.contains('/') {
        true => Answer::Files,
        false => Answer::Candidates(all),
    }
}

fn subcommands(command: &clap::Command, current: &str) -> Vec<Candidate> {
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name().starts_with(current));
    subs.map(|sub| Candidate::new(sub.get_name(), sub.get_about().map(ToString::to_string).unwrap_or_default())).collect()
}

/// Returns the candidates for a word after a subcommand such as `list` or `probe del`. `names` has the words that are
/// not options, from the subcommand on.
fn subcommand(command: &clap::Command, names: &[String], current: &str) -> Answer {
    let mut found = command;
    let mut depth = 0;
    while let Some(next) = names.get(depth).and_then(|name| found.find_subcommand(name)) {
        found = next;
        depth += 1;
    }
    if current.starts_with('-') {
        return Answer::Candidates(options(found, current));
    }
    if found.has_subcommands() {
        return Answer::Candidates(subcommands(found, current));
    }
    let path: Vec<&str> = names[..depth].iter().map(String::as_str).collect();
    match path[..] {
        ["list"] => values::of_list(&names[depth..], current),
        ["completions"] => Answer::Candidates(values::possible(found.get_positionals().next(), current)),
        ["probe", "add"] => Answer::Files,
        ["probe", _] => Answer::Candidates(values::dynamic_events(current)),
        _ => Answer::Candidates(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match answer(&words) {
            Answer::Candidates(all) => all.into_iter().map(|one| one.text).collect(),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn answer_to(line: &str) -> Answer {
        answer(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn values_of_e_are_syscalls_and_groups() {
        assert_eq!(texts("-e openat"), ["openat", "openat2"]);
        assert_eq!(texts("-e read,!openat2"), ["read,!openat2"]);
        assert_eq!(texts("-eopenat2"), ["-eopenat2"]);
        assert_eq!(texts("--event=%fil"), ["--event=%file"]);
        assert_eq!(texts("-s -e trace=openat2"), ["trace=openat2"]);
    }

    #[test]
    fn options_and_their_values_are_completed() {
        assert_eq!(texts("--sum"), ["--summary", "--summary-mode"]);
        assert_eq!(texts("--summary-mode t"), ["thread", "total"]);
        assert_eq!(texts("--color=al"), ["--color=always"]);
        assert_eq!(texts("-s --engine b"), ["bpf"]);
        assert_eq!(texts("-u roo"), ["root"]);
        assert!(texts(&format!("-p {}", std::process::id())).contains(&std::process::id().to_string()));
        assert_eq!((answer_to("-o x"), answer_to("--chdir /")), (Answer::Files, Answer::Directories));
    }

    #[test]
    fn the_traced_command_is_left_to_the_shell() {
        assert_eq!(answer_to("-e openat ls -"), Answer::Command(2));
        assert_eq!(answer_to("-s -- ls"), Answer::Command(2));
        assert_eq!(answer_to("ls /e"), Answer::Command(0));
        assert!(texts("-s s").contains(&"sh".to_owned()));
    }

    #[test]
    fn subcommands_and_their_arguments_are_completed() {
        assert!(texts("li").contains(&"list".to_owned()));
        assert_eq!(texts("list sys"), ["syscalls", "sysfs", "sysinfo", "syslog"]);
        assert_eq!(texts("list tables open_fl"), ["open_flags"]);
        assert_eq!(texts("probe a"), ["add"]);
        assert_eq!(texts("completions fi"), ["fish"]);
        assert_eq!(texts("probe add --fo"), ["--force"]);
    }
}
