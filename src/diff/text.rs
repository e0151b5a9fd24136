//! Differences as sentences, one a line.

use super::align::base_name;
use super::difference::{Difference, Side, What};
use super::outline::End;
use super::words::{Word, Words};
use crate::beauty::{errno, signal};
use crate::text::{escape, time_unit};
use std::collections::BTreeSet;

/// The most names that are listed in a sentence.
const NAMES_MAX: usize = 4;

/// Returns the differences as lines. `names` are what the two recordings are called.
pub fn text(differences: &[Difference], names: [&str; 2], words: &Words) -> Vec<u8> {
    let teller = Teller { names, words };
    let mut out = Vec::new();
    for difference in differences {
        let programs: Vec<String> = difference.programs.iter().map(|program| shown(base_name(words, *program))).collect();
        let sentence = teller.sentence(&difference.what, &teller.objects(&difference.objects));
        out.extend(format!("{}: {sentence}\n", listed(&unique(programs), "program")).bytes());
    }
    out
}

/// Tells differences.
struct Teller<'w> {
    names: [&'w str; 2],
    words: &'w Words,
}

impl Teller<'_> {
    fn sentence(&self, what: &What, objects: &str) -> String {
        let call = |call: &Word| self.word(*call) + objects;
        let on = |side: &Side| self.names[side.index()];
        let other = |side: &Side| self.names[side.other().index()];
        match what {
            What::Fails { side, call: name, errnos, always: true } => {
                format!("{} fails with {} in {}, and succeeds in {}", call(name), errors(errnos), on(side), other(side))
            }
            What::Fails { side, call: name, errnos, always: false } => {
                format!("{} sometimes fails with {} in {}, and never so in {}", call(name), errors(errnos), on(side), other(side))
            }
            What::FailsOtherwise { call: name, errnos: [a, b] } => {
                format!("{} fails with {} in {}, and with {} in {}", call(name), errors(b), self.names[1], errors(a), self.names[0])
            }
            What::Ends([a, b]) => format!("{} in {}, and {} in {}", ends(b), self.names[1], ends(a), self.names[0]),
            What::Complains { side, text } => {
                let mut quoted = Vec::new();
                escape::quoted(&mut quoted, text);
                format!("writes to standard error in {} only: {}", on(side), String::from_utf8_lossy(&quoted))
            }
            What::NoData { side, call: name } => {
                format!("{} finds no data in {}, and some in {}", call(name), on(side), other(side))
            }
            What::Slower { side, call: name, time, calls } => {
                let one = |side: Side| {
                    let (time, calls) = (time_unit::short(time[side.index()]), calls[side.index()]);
                    format!("{time} in {} ({calls} {})", self.names[side.index()], if calls == 1 { "call" } else { "calls" })
                };
                format!("{} takes {}, and {}", call(name), one(*side), one(side.other()))
            }
            What::Runs { side, path: Some(path), args, processes } => {
                let times = if *processes == 1 { String::new() } else { format!(" ({processes} processes)") };
                format!("only {} runs {}{times}", on(side), self.command(*path, args.get(1..).unwrap_or_default()))
            }
            What::Runs { side, path: None, processes, .. } => {
                format!("only {} creates child processes ({processes})", on(side))
            }
            What::Tries { side, calls, errnos, .. } => {
                format!("only {} tries{objects}: {} fails with {}", on(side), self.calls(calls), errors(errnos))
            }
            What::Arguments([a, b]) => {
                let command = |words: &[Word]| words.split_first().map(|(path, args)| self.command(*path, args)).unwrap_or_default();
                format!("runs as `{}` in {}, and as `{}` in {}", command(b), self.names[1], command(a), self.names[0])
            }
            What::Uses { side, calls } => format!("only {} uses{objects}: {}", on(side), self.calls(calls)),
            What::Calls { side, calls, errnos } if errnos.is_empty() => format!("only {} calls {}{objects}", on(side), self.calls(calls)),
            What::Calls { side, calls, errnos } => {
                format!("only {} calls {}{objects}, which fails with {}", on(side), self.calls(calls), errors(errnos))
            }
            What::Details { call: name, details: [a, b] } => self.details(&call(name), a, b),
            What::More { call: name, calls: [a, b], .. } => {
                format!("{} is called {b} times in {}, and {a} times in {}", call(name), self.names[1], self.names[0])
            }
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
                let directory = self.word(several[0]);
                let directory = directory.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
                let names: Vec<String> = several.iter().map(|object| shown(base_name(self.words, *object))).collect();
                format!(" {} files in {directory}/ ({})", several.len(), listed(&names, "other"))
            }
        }
    }

    fn calls(&self, calls: &BTreeSet<Word>) -> String {
        calls.iter().map(|call| self.word(*call)).collect::<Vec<_>>().join(", ")
    }

    fn command(&self, path: Word, args: &[Word]) -> String {
        std::iter::once(path).chain(args.iter().copied()).map(|word| self.word(word)).collect::<Vec<_>>().join(" ")
    }

    fn word(&self, word: Word) -> String {
        shown(self.words.text(word))
    }
}

fn shown(text: &[u8]) -> String {
    let mut out = Vec::new();
    escape::plain(&mut out, text);
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
