//! What a word of the command line may become: the answers that the completion scripts of bash, zsh and fish ask for.
//!
//! The scripts know nothing of rtrace. They give it the words up to the cursor (`rtrace __complete -- WORD...`) and
//! get candidates, one a line, each with a tab and a few words about it where there are any; or one line that begins
//! with `!` and says that the shell itself knows better: `!files`, `!directories`,
//! `!command N`, where the command begins at the word N of those that were given.

mod position;
mod values;

use super::{ExitCode, args, stdout};
use position::{Position, position};
use std::ffi::OsString;

/// One candidate, and what is to be said about it.
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

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    These(Vec<Candidate>),
    Files,
    Directories,
    /// The words from this one on are a command of their own.
    Command(usize),
}

/// Prints what the last of these words may become.
///
/// # Errors
/// stdout cannot be written.
pub fn print(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = match answer(&words) {
        Answer::Files => "!files\n".to_owned(),
        Answer::Directories => "!directories\n".to_owned(),
        Answer::Command(at) => format!("!command {at}\n"),
        Answer::These(candidates) => candidates.iter().map(|one| format!("{}\t{}\n", one.text, one.help)).collect(),
    };
    stdout::print(text.as_bytes())
}

fn answer(words: &[String]) -> Answer {
    let Some((current, before)) = words.split_last() else { return Answer::These(Vec::new()) };
    let command = args::command();
    match position(&command, before, current) {
        Position::Command(at) => Answer::Command(at),
        Position::Options => Answer::These(options(&command, current)),
        Position::First => first(&command, current),
        Position::Value { arg, given } => prefixed(values::of(arg, &given), current, &given),
        Position::Subcommand { names, current } => subcommand(&command, &names, &current),
    }
}

/// The values with what stands before them in the word, as `--filter=` or the `-e` of `-eopenat`.
fn prefixed(answer: Answer, word: &str, given: &str) -> Answer {
    let head = word.strip_suffix(given).unwrap_or_default();
    match answer {
        Answer::These(all) => Answer::These(all.into_iter().map(|one| Candidate { text: format!("{head}{}", one.text), ..one }).collect()),
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

/// The first word that is no option: a subcommand or a program.
fn first(command: &clap::Command, current: &str) -> Answer {
    let mut all = subcommands(command, current);
    all.extend(values::programs(current).into_iter().map(|name| Candidate::new(name, "")));
    match all.is_empty() || current.contains('/') {
        true => Answer::Files,
        false => Answer::These(all),
    }
}

fn subcommands(command: &clap::Command, current: &str) -> Vec<Candidate> {
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name().starts_with(current));
    subs.map(|sub| Candidate::new(sub.get_name(), sub.get_about().map(ToString::to_string).unwrap_or_default())).collect()
}

/// Behind `list`, `probe del` and their like.
fn subcommand(command: &clap::Command, names: &[String], current: &str) -> Answer {
    let mut found = command;
    let mut depth = 0;
    while let Some(next) = names.get(depth).and_then(|name| found.find_subcommand(name)) {
        found = next;
        depth += 1;
    }
    if current.starts_with('-') {
        return Answer::These(options(found, current));
    }
    if found.has_subcommands() {
        return Answer::These(subcommands(found, current));
    }
    let path: Vec<&str> = names[..depth].iter().map(String::as_str).collect();
    match path[..] {
        ["list"] => values::of_list(&names[depth..], current),
        ["completions"] => Answer::These(values::possible(found.get_positionals().next(), current)),
        ["probe", "add"] => Answer::Files,
        ["probe", _] => Answer::These(values::dynamic_events(current)),
        _ => Answer::These(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match answer(&words) {
            Answer::These(all) => all.into_iter().map(|one| one.text).collect(),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn whole(line: &str) -> Answer {
        answer(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn syscalls_and_groups_behind_e() {
        assert_eq!(texts("-e openat"), ["openat", "openat2"]);
        assert_eq!(texts("-e read,!openat2"), ["read,!openat2"]);
        assert_eq!(texts("-eopenat2"), ["-eopenat2"]);
        assert_eq!(texts("--event=%fil"), ["--event=%file"]);
        assert_eq!(texts("-s -e trace=openat2"), ["trace=openat2"]);
    }

    #[test]
    fn options_and_their_values() {
        assert_eq!(texts("--sum"), ["--summary", "--summary-mode"]);
        assert_eq!(texts("--summary-mode t"), ["thread", "total"]);
        assert_eq!(texts("--color=al"), ["--color=always"]);
        assert_eq!(texts("-s --engine b"), ["bpf"]);
        assert_eq!(texts("-u roo"), ["root"]);
        assert!(texts(&format!("-p {}", std::process::id())).contains(&std::process::id().to_string()));
        assert_eq!((whole("-o x"), whole("--chdir /")), (Answer::Files, Answer::Directories));
    }

    #[test]
    fn a_command_is_completed_by_its_own_rules() {
        assert_eq!(whole("-e openat ls -"), Answer::Command(2));
        assert_eq!(whole("-s -- ls"), Answer::Command(2));
        assert_eq!(whole("ls /e"), Answer::Command(0));
        assert!(texts("-s s").contains(&"sh".to_owned()));
    }

    #[test]
    fn subcommands_and_what_is_behind_them() {
        assert!(texts("li").contains(&"list".to_owned()));
        assert_eq!(texts("list sys"), ["syscalls", "sysfs", "sysinfo", "syslog"]);
        assert_eq!(texts("list tables open_fl"), ["open_flags"]);
        assert_eq!(texts("probe a"), ["add"]);
        assert_eq!(texts("completions fi"), ["fish"]);
        assert_eq!(texts("probe add --fo"), ["--force"]);
    }
}
