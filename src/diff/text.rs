//! Differences as sentences, one a line.

use super::align::base_name;
use super::difference::{Attribute, Difference, Side, What};
use super::outline::End;
use super::words::{Word, Words};
use crate::beauty::value::file_mode;
use crate::beauty::{errno, signal};
use crate::text::{escape, time_unit};
use owo_colors::Color;
use owo_colors::colors::{Cyan, Red, Yellow};
use std::collections::BTreeSet;

/// The most names that are listed in a sentence.
const NAMES_MAX: usize = 4;

/// The name of a program stands out.
const BOLD: &str = "\x1b[1m";

/// Returns the differences as lines, without characters that a terminal obeys except for those of colours, which are
/// those of traces. `names` are what the two recordings are called.
pub fn text(differences: &[Difference], names: [&str; 2], words: &Words, color: bool) -> Vec<u8> {
    let names = names.map(|name| escaped(escape::controls, name.as_bytes()));
    let teller = Teller { names: [&names[0], &names[1]], words, color };
    let mut out = Vec::new();
    for difference in differences {
        let programs: Vec<String> = difference.programs.iter().map(|program| shown(base_name(words, *program))).collect();
        let sentence = teller.sentence(&difference.what, &teller.objects(&difference.objects));
        out.extend(format!("{}: {sentence}\n", teller.colored(BOLD, listed(&unique(programs), "program"))).bytes());
    }
    out
}

/// Tells differences.
struct Teller<'w> {
    names: [&'w str; 2],
    words: &'w Words,
    color: bool,
}

impl Teller<'_> {
    fn sentence(&self, what: &What, objects: &str) -> String {
        let call = |call: &Word| self.call(*call) + objects;
        let on = |side: &Side| self.names[side.index()];
        let other = |side: &Side| self.names[side.other().index()];
        match what {
            What::Fails { side, call: name, errnos, always: true } => {
                format!("{} fails with {} in {}, and succeeds in {}", call(name), self.errors(errnos), on(side), other(side))
            }
            What::Fails { side, call: name, errnos, always: false } => {
                format!("{} sometimes fails with {} in {}, and never so in {}", call(name), self.errors(errnos), on(side), other(side))
            }
            What::FailsOtherwise { call: name, errnos: [a, b] } => {
                format!(
                    "{} fails with {} in {}, and with {} in {}",
                    call(name),
                    self.errors(b),
                    self.names[1],
                    self.errors(a),
                    self.names[0]
                )
            }
            What::FailsMore { call: name, errno, calls: [a, b] } => {
                let errors = self.errors(&BTreeSet::from([*errno]));
                format!("{} fails {} with {errors} in {}, and {} in {}", call(name), times(*b), self.names[1], times(*a), self.names[0])
            }
            What::Ends([a, b]) => {
                let ends = |of| self.colored(Red::ANSI_FG, ends(of));
                format!("{} in {}, and {} in {}", ends(b), self.names[1], ends(a), self.names[0])
            }
            What::Complains { side, text } => {
                let mut quoted = Vec::new();
                escape::quoted(&mut quoted, text);
                let quoted = self.colored(Red::ANSI_FG, String::from_utf8_lossy(&quoted).into_owned());
                format!("writes to standard error in {} only: {quoted}", on(side))
            }
            What::NoData { side, call: name } => {
                format!("{} finds no data in {}, and some in {}", call(name), on(side), other(side))
            }
            What::Slower { side, call: name, timed } => {
                let one = |side: Side| {
                    let time = self.colored(Yellow::ANSI_FG, time_unit::short(timed.time[side.index()]));
                    let calls = timed.calls[side.index()];
                    format!("{time} in {} ({calls} {})", self.names[side.index()], if calls == 1 { "call" } else { "calls" })
                };
                let ratio = timed.ratio(*side).map(|ratio| format!(" {ratio} times as long in {}:", on(side))).unwrap_or_default();
                format!("{} takes{ratio} {}, and {}", call(name), one(*side), one(side.other()))
            }
            What::File { attribute, values } => self.file(objects, *attribute, *values),
            What::Runs { side, path: Some(path), args, processes } => {
                let times = if *processes == 1 { String::new() } else { format!(" ({processes} processes)") };
                format!("only {} runs {}{times}", on(side), self.command(*path, args.get(1..).unwrap_or_default()))
            }
            What::Runs { side, path: None, processes, .. } => {
                format!("only {} creates child processes ({processes})", on(side))
            }
            What::Tries { side, calls, errnos, .. } => {
                format!("only {} tries{objects}: {} fails with {}", on(side), self.calls(calls), self.errors(errnos))
            }
            What::Arguments([a, b]) => {
                let command = |words: &[Word]| words.split_first().map(|(path, args)| self.command(*path, args)).unwrap_or_default();
                format!("runs as `{}` in {}, and as `{}` in {}", command(b), self.names[1], command(a), self.names[0])
            }
            What::Uses { side, calls } => format!("only {} uses{objects}: {}", on(side), self.calls(calls)),
            What::Calls { side, calls, errnos } if errnos.is_empty() => format!("only {} calls {}{objects}", on(side), self.calls(calls)),
            What::Calls { side, calls, errnos } => {
                format!("only {} calls {}{objects}, which fails with {}", on(side), self.calls(calls), self.errors(errnos))
            }
            What::Details { call: name, details: [a, b] } => self.details(&call(name), a, b),
            What::More { call: name, calls: [a, b], .. } => {
                format!("{} is called {b} times in {}, and {a} times in {}", call(name), self.names[1], self.names[0])
            }
        }
    }

    fn file(&self, objects: &str, attribute: Attribute, [a, b]: [u64; 2]) -> String {
        let [one, other] = self.names;
        let objects = objects.strip_prefix(' ').unwrap_or(objects);
        match attribute {
            Attribute::Size if objects.ends_with(')') => format!("{objects} have other sizes in {other} than in {one}"),
            Attribute::Size => format!("{objects} has {b} bytes in {other}, and {a} bytes in {one}"),
            Attribute::Mode => format!("{objects}: the mode is {} in {other}, and {} in {one}", mode(b), mode(a)),
            Attribute::User => format!("{objects}: the owner is the user {b} in {other}, and {a} in {one}"),
            Attribute::Group => format!("{objects}: the owner is the group {b} in {other}, and {a} in {one}"),
        }
    }

    fn details(&self, call: &str, a: &BTreeSet<Word>, b: &BTreeSet<Word>) -> String {
        let shown = |details: &BTreeSet<Word>| listed(&details.iter().map(|detail| self.word(*detail)).collect::<Vec<_>>(), "other");
        match (a.is_empty(), b.is_empty()) {
            (false, false) => format!("{call} has {} in {}, and {} in {}", shown(b), self.names[1], shown(a), self.names[0]),
            (true, _) => format!("{call} has {} in {} only", shown(b), self.names[1]),
            (false, true) => format!("{call} has {} in {} only", shown(a), self.names[0]),
        }
    }

    /// Returns the files of a difference, with a blank before them.
    fn objects(&self, objects: &[Word]) -> String {
        match objects {
            [] => String::new(),
            [one] => format!(" {}", self.word(*one)),
            several => {
                let paths: Vec<String> = several.iter().map(|object| self.word(*object)).collect();
                let parts: Vec<(&str, &str)> = paths.iter().map(|path| path.rsplit_once('/').unwrap_or(("", path))).collect();
                let number = several.len();
                if parts.iter().all(|(directory, _)| *directory == parts[0].0) {
                    let names: Vec<String> = parts.iter().map(|(_, name)| (*name).to_owned()).collect();
                    return format!(" {number} files in {}/ ({})", parts[0].0, listed(&names, "other"));
                }
                if parts.iter().all(|(_, name)| *name == parts[0].1) {
                    let directories: Vec<String> = parts.iter().map(|(directory, _)| (*directory).to_owned()).collect();
                    return format!(" {} in {number} directories ({})", parts[0].1, listed(&directories, "other"));
                }
                let common = common_directory(&paths);
                let names: Vec<String> = paths.iter().map(|path| path[common.len()..].to_owned()).collect();
                format!(
                    " {number} files{} ({})",
                    if common.is_empty() { String::new() } else { format!(" below {common}") },
                    listed(&names, "other")
                )
            }
        }
    }

    fn calls(&self, calls: &BTreeSet<Word>) -> String {
        calls.iter().map(|call| self.call(*call)).collect::<Vec<_>>().join(", ")
    }

    fn command(&self, path: Word, args: &[Word]) -> String {
        std::iter::once(path).chain(args.iter().copied()).map(|word| self.word(word)).collect::<Vec<_>>().join(" ")
    }

    fn call(&self, name: Word) -> String {
        self.colored(Cyan::ANSI_FG, self.word(name))
    }

    fn errors(&self, errnos: &BTreeSet<i32>) -> String {
        self.colored(Red::ANSI_FG, errors(errnos))
    }

    fn word(&self, word: Word) -> String {
        shown(self.words.text(word))
    }

    /// Returns a text in a colour, if colours are on.
    fn colored(&self, color: &str, text: String) -> String {
        if self.color { format!("{color}{text}\x1b[0m") } else { text }
    }
}

/// Returns the directory that all paths have in common, with the slash at its end; empty if there is none.
fn common_directory(paths: &[String]) -> &str {
    let Some(first) = paths.first() else { return "" };
    let is_common = |end: &usize| paths.iter().all(|path| path.starts_with(&first[..*end]));
    let end = first.rmatch_indices('/').map(|(at, _)| at + 1).find(is_common).unwrap_or_default();
    &first[..end]
}

fn times(number: u64) -> String {
    match number {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        number => format!("{number} times"),
    }
}

/// Returns the permissions in octal, behind the type if the file is not a regular one.
fn mode(mode: u64) -> String {
    let (kind, permissions) = file_mode(mode as u32);
    match kind {
        Some("S_IFREG") | None => format!("{permissions:04o}"),
        Some(kind) => format!("{kind}|{permissions:04o}"),
    }
}

fn shown(text: &[u8]) -> String {
    escaped(escape::plain, text)
}

fn escaped(escape: fn(&mut Vec<u8>, &[u8]), text: &[u8]) -> String {
    let mut out = Vec::new();
    escape(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

fn unique(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Lists names, of which only the first are shown if there are many. `thing` is what each of them is.
fn listed(names: &[String], thing: &str) -> String {
    match names {
        [] => "(unknown)".to_owned(),
        names if names.len() > NAMES_MAX + 1 => {
            format!("{} and {} {thing}s", names[..NAMES_MAX].join(", "), names.len() - NAMES_MAX)
        }
        names => names.join(", "),
    }
}

fn errors(errnos: &BTreeSet<i32>) -> String {
    let one = |number: &i32| match (errno::name(*number), errno::text(*number)) {
        (Some(name), Some(text)) => format!("{name} ({text})"),
        _ => format!("error {number}"),
    };
    errnos.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn ends(ends: &BTreeSet<End>) -> String {
    let one = |end: &End| match end {
        End::Exited(status) => format!("exits with status {status}"),
        End::Killed(number) => match signal::name(*number) {
            Some(name) => format!("is killed by {name}"),
            None => format!("is killed by signal {number}"),
        },
    };
    ends.iter().map(one).collect::<Vec<_>>().join(" or ")
}
