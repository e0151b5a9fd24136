//! Sets of system calls, by names, classes and regular expressions.

use super::{Refused, values};
use crate::beauty::lookup;
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::request::inject;
use crate::request::select;
use crate::show::strace::CallSet;
use regex::bytes::Regex;
use std::ffi::OsString;

/// The classes that have their names also without the percent sign, as strace had them first.
const PLAIN: [&str; 8] = ["file", "process", "network", "signal", "ipc", "desc", "memory", "net"];

/// A word of a set.
enum Word<'a> {
    /// The system call of this name.
    Call(&'a str),
    /// The class of this name, without the percent sign.
    Class(&'a str),
    /// The calls whose names this regular expression matches.
    Expression(&'a str),
    /// Nothing, because a name after `?` does not exist.
    Nothing,
}

/// A set of calls in rtrace's own language.
pub enum Items {
    /// All calls.
    All,
    /// The calls that these items select; none if there are none.
    Some(Vec<String>),
}

/// Translates a set of calls.
pub fn items(set: &str) -> Result<Items, Refused> {
    let (is_negated, list) = values::set(set);
    match (list, is_negated) {
        ("all", false) | ("none", true) => return Ok(Items::All),
        ("none", false) | ("all", true) => return Ok(Items::Some(Vec::new())),
        _ => {}
    }
    let sign = if is_negated { "!" } else { "" };
    let mut items = Vec::new();
    for one in list.split(',') {
        items.extend(match word(one)? {
            // Names of the C library's functions stand for several calls in rtrace, but not in strace.
            Word::Call(name) => Some(format!("{sign}/^{name}$/")),
            Word::Class(name) => Some(format!("{sign}%{name}")),
            Word::Expression(text) => Some(format!("{sign}/{text}/")),
            Word::Nothing => None,
        });
    }
    Ok(if items.is_empty() && is_negated { Items::All } else { Items::Some(items) })
}

/// Returns the options of rtrace that trace a set of calls.
pub fn selection(set: &str) -> Result<Vec<OsString>, Refused> {
    Ok(match items(set)? {
        Items::All => Vec::new(),
        Items::Some(items) if items.is_empty() => nothing(),
        Items::Some(items) => items.into_iter().flat_map(|item| ["-e".into(), item.into()]).collect(),
    })
}

/// Returns the options of rtrace for the value of `inject=` or `fault=`; none for an empty set of calls.
pub fn injection(option: &str, value: &str) -> Result<Vec<OsString>, Refused> {
    let wrong = |why: &str| Refused::Wrong(format!("invalid {option} argument '{value}': {why}"));
    let (set, actions) = inject::split_set(value);
    let items = items(set)?;
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
    let items = match items(set)? {
        Items::All => return Ok(CallSet::all()),
        Items::Some(items) if items.is_empty() => return Ok(CallSet::none()),
        Items::Some(items) => items.join(","),
    };
    let invalid = || Refused::Wrong(format!("invalid system call '{set}'"));
    let items = select::parse_list(&items, 0).map_err(|_| invalid())?;
    let selection = select::resolve(&items, None, SYSCALLS, OTHER_NAMES).map_err(|_| invalid())?;
    Ok(CallSet::of(selection.rows, selection.unknown))
}

/// Parses a word of a set.
fn word(word: &str) -> Result<Word<'_>, Refused> {
    let (is_optional, name) = word.strip_prefix('?').map_or((false, word), |name| (true, name));
    if let Some(text) = name.strip_prefix('/') {
        let text = text.strip_suffix('/').unwrap_or(text);
        let invalid = |_| Refused::Wrong(format!("invalid system call '/{text}'"));
        return Regex::new(text).map(|_| Word::Expression(text)).map_err(invalid);
    }
    let (name, personality) = name.split_once('@').map_or((name, None), |(name, personality)| (name, Some(personality)));
    match personality {
        None | Some("64") => {}
        Some("32" | "x32") => return Err(Refused::Wrong(format!("'{word}': rtrace selects a system call for all personalities"))),
        Some(_) => return Err(Refused::Wrong(format!("invalid system call '{word}'"))),
    }
    let class = name.strip_prefix('%').unwrap_or(name);
    if select::group(class).is_some() && (name.starts_with('%') || PLAIN.contains(&name)) {
        return Ok(Word::Class(class));
    }
    match lookup::index_by_name(name) {
        Some(_) => Ok(Word::Call(name)),
        None if is_optional => Ok(Word::Nothing),
        None => Err(Refused::Wrong(format!("invalid system call '{word}'", word = word.strip_prefix('?').unwrap_or(word)))),
    }
}
