//! Sets of system calls, by names, classes and regular expressions.

use super::{Refused, values};
use crate::beauty::lookup;
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::event::Abi;
use crate::request::inject;
use crate::request::select;
use crate::show::strace::CallSet;
use regex::bytes::Regex;
use std::ffi::OsString;

/// The classes that have their names also without the percent sign, as strace had them first.
const PLAIN: [&str; 8] = ["file", "process", "network", "signal", "ipc", "desc", "memory", "net"];

/// The calls of each ABI, by `Abi as usize`.
pub type Personalities = [CallSet; 4];

/// What a word of a set is about.
enum Word<'a> {
    /// All calls.
    All,
    /// The system call of this name.
    Call(&'a str),
    /// The class of this name, without the percent sign.
    Class(&'a str),
    /// The calls whose names this regular expression matches.
    Expression(&'a str),
    /// Nothing, because the word is `none`, or a name after `?` that does not exist.
    Nothing,
}

/// A word, and the ABIs of the personality behind it; all ABIs if there is none.
type OfAbis<'a> = (Word<'a>, &'static [Abi]);

/// A set of calls in rtrace's own language.
pub enum Items {
    /// All calls.
    All,
    /// The calls that these items select; none if there are none.
    Some(Vec<String>),
}

/// Translates a set of calls, whatever their personality.
pub fn items(set: &str) -> Result<Items, Refused> {
    let (is_negated, words) = words(set)?;
    // A word about one personality excludes no call of the others.
    let is_for_all = |abis: &[Abi]| !is_negated || abis == Abi::ALL;
    Ok(translated(is_negated, words.iter().filter(|(_, abis)| is_for_all(abis)).map(|(word, _)| word)))
}

/// Returns the calls of each personality; `None` if the set has no word about one of them.
pub fn personalities(set: &str) -> Result<Option<Personalities>, Refused> {
    let (is_negated, words) = words(set)?;
    if words.iter().all(|(_, abis)| *abis == Abi::ALL) {
        return Ok(None);
    }
    let of = |abi: Abi| translated(is_negated, words.iter().filter(|(_, abis)| abis.contains(&abi)).map(|(word, _)| word));
    let [a, b, c, d] = Abi::ALL.map(|abi| resolved(set, of(abi)));
    Ok(Some([a?, b?, c?, d?]))
}

/// Translates words, each of which has a `!` before it or none has.
fn translated<'a>(is_negated: bool, words: impl Iterator<Item = &'a Word<'a>>) -> Items {
    let sign = if is_negated { "!" } else { "" };
    let mut items = Vec::new();
    for word in words {
        items.extend(match word {
            Word::All if is_negated => return Items::Some(Vec::new()),
            Word::All => return Items::All,
            // Names of the C library's functions stand for several calls in rtrace, but not in strace.
            Word::Call(name) => Some(format!("{sign}/^{name}$/")),
            Word::Class(name) => Some(format!("{sign}%{name}")),
            Word::Expression(text) => Some(format!("{sign}/{text}/")),
            Word::Nothing => None,
        });
    }
    if items.is_empty() && is_negated { Items::All } else { Items::Some(items) }
}

/// Returns the options of rtrace that trace a set of calls.
pub fn selection(set: &str) -> Result<Vec<OsString>, Refused> {
    Ok(match items(set)? {
        Items::All => Vec::new(),
        Items::Some(items) if items.is_empty() => nothing(),
        Items::Some(items) => items.into_iter().flat_map(|item| ["-e".into(), item.into()]).collect(),
    })
}

/// Returns the options of rtrace that trace a set of calls, and those of a further item; none if all are traced, which
/// is also done for a set of all calls but some.
pub fn selection_with(set: &str, item: &str) -> Result<Vec<OsString>, Refused> {
    let items = match items(set)? {
        Items::Some(items) if !values::set(set).0 => items,
        _ => return Ok(Vec::new()),
    };
    Ok(items.into_iter().chain([item.to_owned()]).flat_map(|item| ["-e".into(), item.into()]).collect())
}

/// Returns the options of rtrace for the value of `inject=` or `fault=`; none for an empty set of calls.
pub fn injection(option: &str, value: &str) -> Result<Vec<OsString>, Refused> {
    let wrong = |why: &str| Refused::Wrong(format!("invalid {option} argument '{value}': {why}"));
    let (set, actions) = inject::split_set(value);
    let items = items_of_all(set)?;
    let actions = match (option, actions.unwrap_or_default()) {
        ("fault", "") => "error=ENOSYS".to_owned(),
        ("fault", actions) => match actions.split(':').find(|action| !action.starts_with("error=") && !action.starts_with("when=")) {
            Some(action) => return Err(wrong(&format!("{action}: fault= has only error= and when="))),
            None if actions.split(':').any(|action| action.starts_with("error=")) => actions.to_owned(),
            None => format!("error=ENOSYS:{actions}"),
        },
        (_, "") => return Err(wrong("what is to happen to the calls is missing (error=ENOENT, for example)")),
        (_, actions) => actions.to_owned(),
    };
    inject::effect(&actions).map_err(|why| wrong(&why))?;
    Ok(match items {
        Items::All => vec!["--inject".into(), format!("all:{actions}").into()],
        Items::Some(items) if !items.is_empty() => vec!["--inject".into(), format!("{}:{actions}", items.join(",")).into()],
        Items::Some(_) => Vec::new(),
    })
}

/// No system calls. Signals are shown nevertheless.
fn nothing() -> Vec<OsString> {
    ["--no-syscalls", "--signals"].map(OsString::from).to_vec()
}

/// Returns the calls that `-e abbrev=`, `-e verbose=` or `-e raw=` names.
pub fn set(set: &str) -> Result<CallSet, Refused> {
    resolved(set, items_of_all(set)?)
}

/// Translates a set of calls that may not distinguish personalities.
fn items_of_all(set: &str) -> Result<Items, Refused> {
    let (_, words) = words(set)?;
    match words.iter().all(|(_, abis)| *abis == Abi::ALL) {
        true => items(set),
        false => Err(Refused::Wrong(format!("'{set}': only -e trace= distinguishes personalities in rtrace"))),
    }
}

/// Returns the calls that items of rtrace's own language select.
fn resolved(set: &str, items: Items) -> Result<CallSet, Refused> {
    let items = match items {
        Items::All => return Ok(CallSet::all()),
        Items::Some(items) if items.is_empty() => return Ok(CallSet::none()),
        Items::Some(items) => items.join(","),
    };
    let invalid = || Refused::Wrong(format!("invalid system call '{set}'"));
    let items = select::parse_list(&items, 0).map_err(|_| invalid())?;
    let selection = select::resolve(&items, None, SYSCALLS, OTHER_NAMES).map_err(|_| invalid())?;
    Ok(CallSet::of(selection.rows, selection.unknown))
}

/// Parses the words of a set, each with the ABIs of its personality. Returns first whether a `!` stands before them.
fn words(set: &str) -> Result<(bool, Vec<OfAbis<'_>>), Refused> {
    let (is_negated, list) = values::set(set);
    let words = if list == "none" { Ok(vec![(Word::Nothing, &Abi::ALL[..])]) } else { list.split(',').map(word).collect() };
    Ok((is_negated, words?))
}

/// Parses a word of a set.
fn word(word: &str) -> Result<OfAbis<'_>, Refused> {
    let (is_optional, name) = word.strip_prefix('?').map_or((false, word), |name| (true, name));
    let (name, personality) = name.rsplit_once('@').map_or((name, None), |(name, personality)| (name, Some(personality)));
    let abis: &[Abi] = match personality {
        None => &Abi::ALL,
        Some("64") => &[Abi::X86_64, Abi::Aarch64],
        Some("32") => &[Abi::I386],
        Some("x32") => &[Abi::X32],
        Some(other) => {
            return Err(Refused::Usage(format!("incorrect personality designator '{other}' in qualification '{word}'")));
        }
    };
    let invalid = || Refused::Wrong(format!("invalid system call '{}'", word.strip_prefix('?').unwrap_or(word)));
    if let Some(text) = name.strip_prefix('/') {
        let text = text.strip_suffix('/').unwrap_or(text);
        let invalid = |_| Refused::Wrong(format!("invalid system call '/{text}'"));
        return Regex::new(text).map(|_| (Word::Expression(text), abis)).map_err(invalid);
    }
    let class = name.strip_prefix('%').unwrap_or(name);
    let by_number = |number: i64| abis.iter().find_map(|abi| lookup::row(*abi, number)).map(|row| Word::Call(row.name));
    let word = match name.parse::<i64>() {
        _ if name == "all" => Some(Word::All),
        _ if select::group(class).is_some() && (name.starts_with('%') || PLAIN.contains(&name)) => Some(Word::Class(class)),
        Ok(number) => by_number(number),
        Err(_) => lookup::index_by_name(name).map(|_| Word::Call(name)),
    };
    match word {
        Some(word) => Ok((word, abis)),
        None if is_optional => Ok((Word::Nothing, abis)),
        None => Err(invalid()),
    }
}
