//! Generates `man/rtrace.1` (from `man/rtrace.1.in`) and the completion scripts from the definition of the command
//! line.
//!
//! `cargo run --example man` updates them. The test below fails when they are out of date.

use clap::{Arg, Command};
use clap_complete::Shell;
use rtrace::command_line::{command, completion_script};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    for (path, text) in generated() {
        let path = root().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(root()))?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path of every generated file, relative to the project, and its contents.
fn generated() -> Vec<(PathBuf, Vec<u8>)> {
    let page =
        include_str!("../man/rtrace.1.in").replace("@VERSION@", env!("CARGO_PKG_VERSION")).replace("@OPTIONS@\n", &options(command()));
    vec![
        ("man/rtrace.1".into(), page.into_bytes()),
        ("man/completions/rtrace.bash".into(), completion_script(Shell::Bash)),
        ("man/completions/_rtrace".into(), completion_script(Shell::Zsh)),
        ("man/completions/rtrace.fish".into(), completion_script(Shell::Fish)),
    ]
}

/// Returns the options under their headings, as roff.
fn options(mut command: Command) -> String {
    command.build();
    let mut text = String::new();
    let mut heading = None;
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional()) {
        if arg.get_help_heading() != heading {
            heading = arg.get_help_heading();
            let _ = writeln!(text, ".SS {}", heading.unwrap_or("Others"));
        }
        let _ = writeln!(text, ".TP\n{}\n{}", names(arg), help(arg));
    }
    text
}

fn names(arg: &Arg) -> String {
    let short = arg.get_short().map(|c| format!("-{c}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let aliases = arg.get_visible_aliases().unwrap_or_default().into_iter().map(|alias| format!("--{alias}"));
    let all: Vec<String> = short.into_iter().chain(long).chain(aliases).map(|name| format!("\\fB{}\\fR", escaped(&name))).collect();
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values()).and_then(|names| names.first());
    format!("{}{}", all.join(", "), value.map(|value| format!(" \\fI{}\\fR", escaped(value))).unwrap_or_default())
}

fn help(arg: &Arg) -> String {
    let mut text = format!("{}.", escaped(&arg.get_help().map(ToString::to_string).unwrap_or_default()));
    if !arg.get_action().takes_values() {
        return text;
    }
    let values = arg.get_possible_values();
    let names: Vec<String> = values.iter().map(|value| format!("\\fB{}\\fR", escaped(value.get_name()))).collect();
    if values.iter().all(|value| value.get_help().is_none()) {
        let _ = write!(text, "{}", if names.is_empty() { String::new() } else { format!("\nOne of {}.", names.join(", ")) });
        return text;
    }
    for (name, value) in names.iter().zip(&values) {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, "\n.br\n{name}: {}", escaped(&help));
    }
    text
}

/// Escapes text so that roff prints it literally: hyphens and backslashes as such, no requests, no typographic quotes.
fn escaped(text: &str) -> String {
    let text = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrace::command_line::{Surroundings, parse_probe, request, split_words};
    use rtrace::program::Request;
    use std::ffi::OsString;

    #[test]
    fn generated_files_are_up_to_date() {
        for (path, text) in generated() {
            let present = std::fs::read(root().join(&path)).unwrap_or_default();
            assert!(present == text, "{} is out of date: update it with `cargo run --example man`", path.display());
        }
    }

    /// Splits a command line of a manual page into words as a shell does.
    fn words_of(line: &str) -> Vec<OsString> {
        let plain = line.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", "\"").replace("\\e", "\\").replace("sudo ", "");
        split_words(plain.trim_start_matches(".B ")).unwrap().into_iter().map(OsString::from).collect()
    }

    #[test]
    fn every_example_of_the_pages_is_a_valid_command_line() {
        let around = Surroundings { var: &|_| None, read: &|_| Ok(None), page_bytes: 4096 };
        let pages = [include_str!("../man/rtrace.1.in"), include_str!("../man/rtrace-filter.7")]
            .map(|page| page.split(".SH EXAMPLES\n").nth(1).unwrap().split("\n.SH ").next().unwrap());
        let mut seen = 0;
        for line in
            pages.iter().flat_map(|page| page.lines()).filter(|line| line.contains("rtrace \\-") && !line.contains("user_events:build"))
        {
            let parsed = request(&words_of(&line.replace("$(pidof nginx)", "12 34")), &around);
            assert!(matches!(parsed, Ok(Request::Trace(_))), "{line}: {parsed:?}");
            seen += 1;
        }
        assert!(seen >= 16, "only {seen} examples were found");
    }

    /// Checks the definitions after `--probe` and `probe add`.
    #[test]
    fn every_example_of_the_probe_page_is_a_valid_definition() {
        let page = include_str!("../man/rtrace-probe.7").split(".SH EXAMPLES\n").nth(1).unwrap();
        let mut seen = 0;
        for line in page.lines().filter(|line| line.starts_with("rtrace ")) {
            let words = words_of(line);
            let at = words.iter().position(|word| word == "--probe" || word == "add").unwrap();
            let spec = words[at + 1].to_str().unwrap();
            assert!(parse_probe(spec).is_ok_and(|parsed| parsed.to_string() == spec), "{line}");
            seen += 1;
        }
        assert!(seen >= 13, "only {seen} examples were found");
    }

    /// Checks the bold options in the right column of the tables that compare rtrace with strace and perf trace.
    #[test]
    fn options_recommended_to_strace_and_perf_users_are_valid() {
        let around = Surroundings { var: &|_| None, read: &|_| Ok(None), page_bytes: 4096 };
        let page = include_str!("../man/rtrace.1.in");
        let sections = ["STRACE", "PERF TRACE"].map(|name| page.split_once(&format!(".SH FROM {name}\n")).unwrap().1);
        let tables = sections.map(|section| section.split_once(".nf\n\\fI").unwrap().1.split_once(".fi\n").unwrap().0);
        let mut seen = 0;
        for line in tables.iter().flat_map(|table| table.lines().skip(1)) {
            let (_, right) = line.split_once("  ").unwrap_or_else(|| panic!("no second column: {line}"));
            let bold = right.split("\\fB").skip(1).map(|text| text.split("\\fR").next().unwrap()).filter(|text| text.starts_with("\\-"));
            for options in bold {
                let options = options.replace("FILE", "x").replace("USER", "root").replace("CGROUP", "x").replace(" N", " 5");
                let parsed = request(&words_of(&format!("rtrace {options} ls")), &around);
                assert!(matches!(parsed, Ok(Request::Trace(_))), "{line}: {parsed:?}");
                seen += 1;
            }
        }
        assert!(seen >= 27, "only {seen} options were found");
    }

    #[test]
    fn the_page_documents_every_option() {
        let page = options(command());
        for arg in command().get_arguments().filter(|arg| !arg.is_hide_set()) {
            if let Some(long) = arg.get_long() {
                assert!(page.contains(&format!("\\fB{}\\fR", escaped(&format!("--{long}")))), "--{long} is missing");
            }
        }
    }

    #[test]
    fn roff_prints_escaped_text_literally() {
        assert_eq!(escaped(r".a-b 'c' \d"), r"\&.a\-b \(aqc\(aq \ed");
    }
}
