//! Says in a sentence why clap refuses a command line.

use super::{Stop, args, wrong};
use crate::text::near;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Converts an error of clap about these words to one sentence. Its tips are left out, since they advise to pass
/// unknown options to the traced command.
pub fn refused(error: &clap::Error, words: &[OsString]) -> Stop {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return Stop::Text(text);
    }
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) = (error.kind(), error.get(ContextKind::InvalidArg)) {
        let command = args::command();
        return match subcommand(&command, words) {
            Some(subcommand) => wrong(unknown_to_subcommand(&command, subcommand, word)),
            None => wrong(format!("there is no option {word}{} (`rtrace --help` shows all)", similar(&command, word))),
        };
    }
    if let Some(sentence) = incomplete(error) {
        return wrong(sentence);
    }
    let sentence = text.split("\n\n").next().unwrap_or_default().trim_end();
    wrong(sentence.strip_prefix("error: ").unwrap_or(sentence))
}

/// Says which arguments or subcommands are missing, and what may be written.
fn incomplete(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::Usage)?) {
        (ErrorKind::MissingSubcommand, _) => {
            let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand) else { return None };
            let Some(ContextValue::Strings(subcommands)) = error.get(ContextKind::ValidSubcommand) else { return None };
            Some(format!("`{command}` needs a subcommand: {} (`{command} --help` explains them)", subcommands.join(", ")))
        }
        (ErrorKind::MissingRequiredArgument, ContextValue::StyledStr(usage)) => {
            let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
            let usage = usage.to_string();
            let forms = usage.trim_start_matches("Usage:").lines().map(|form| format!("`{}`", form.trim()));
            Some(format!("the command line lacks {}: write {}", missing.join(" and "), forms.collect::<Vec<_>>().join(" or ")))
        }
        _ => None,
    }
}

/// Returns the subcommand that the words name.
fn subcommand<'c>(command: &'c Command, words: &[OsString]) -> Option<&'c Command> {
    let first = words.iter().find(|word| *word != "--no-config")?;
    command.get_subcommands().find(|subcommand| *first == *subcommand.get_name())
}

/// Says that a subcommand does not know a word. Options that choose what is shown are those of a replay.
fn unknown_to_subcommand(command: &Command, subcommand: &Command, word: &str) -> String {
    let name = subcommand.get_name();
    if !word.starts_with('-') && has_option(subcommand, "--input") {
        return format!("`rtrace {name}` does not know what {word} means here; `rtrace {name} -i {word}` reads a recording of that name");
    }
    if !word.starts_with('-') {
        return format!("`rtrace {name}` does not know what {word} means here (`rtrace {name} --help` shows what may follow)");
    }
    if name == "record" && has_option(command, word) {
        return format!(
            "`rtrace record` has no option {word}: it shows nothing; give the option to `rtrace -i FILE`, which shows the recording"
        );
    }
    format!("`rtrace {name}` has no option {word}{} (`rtrace {name} --help` shows all)", similar(subcommand, word))
}

/// Returns whether a command has an option as it was typed.
fn has_option(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|arg| match option.strip_prefix("--") {
        Some(name) => arg.get_long() == Some(name),
        None => arg.get_short() == option.chars().nth(1),
    })
}

/// Returns the end of a sentence with the options that are similar to a long one.
fn similar(command: &Command, option: &str) -> String {
    let options = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
    let long: Vec<String> = options.map(|name| format!("--{name}")).collect();
    match option.strip_prefix("--") {
        Some(_) => near::hint(&near::nearest(option, long.iter().map(String::as_str), 3)),
        None => String::new(),
    }
}
