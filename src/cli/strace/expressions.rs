//! Translates what `-e` and its long forms say.

use super::{Options, Refused};
use crate::beauty::{lookup, signal};
use crate::request::inject;
use crate::request::select::GROUPS;
use crate::text::glob;
use std::ffi::OsString;

/// What `-e` and its long forms say.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    /// Words of rtrace's own command line.
    pub words: Vec<OsString>,
    /// The signals that are shown, as bits.
    pub signals: u128,
    /// The messages about tasks that are followed are not printed.
    pub hides_attached: bool,
    /// The ends of tasks are not printed.
    pub hides_ends: bool,
}

/// Translates what `-e`, `-z`, `-Z`, `--trace`, `--signal` and `--status` say.
pub(super) fn expressions(options: &Options) -> Result<Expressions, Refused> {
    let mut expressions = Expressions { signals: u128::MAX, ..Expressions::default() };
    let mut words = Vec::new();
    let long = [("trace", &options.trace), ("signal", &options.signal), ("status", &options.status)];
    let long = long.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let changes = [("inject", &options.inject), ("fault", &options.fault)];
    let changes = changes.into_iter().flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}")));
    let (mut traced, mut status) = (None, None);
    for expression in options.expression.iter().cloned().chain(long).chain(changes) {
        let (name, value) = expression.split_once('=').unwrap_or(("trace", &expression));
        match name {
            "trace" | "t" => traced = Some(value.to_owned()),
            "signal" | "signals" | "s" => expressions.signals = signals(value)?,
            "quiet" | "silent" | "silence" | "q" => quiet(value, &mut expressions)?,
            "status" => status = Some(value.to_owned()),
            "abbrev" | "a" if value == "none" => words.push("--full".into()),
            "verbose" | "v" | "abbrev" | "a" if value == "all" => {}
            "inject" | "fault" => words.extend(injection(name, value)?),
            "abbrev" | "a" | "verbose" | "v" | "raw" | "x" | "read" | "reads" | "r" | "write" | "writes" | "w" | "kvm" | "decode-fds"
            | "decode-fd" | "decode-pids" | "decode-pid" | "trace-fds" | "trace-fd" | "namespace" => {
                return Err(Refused::Wrong(format!("-e {expression} is not supported yet (rtrace has no such option)")));
            }
            _ => traced = Some(expression.clone()),
        }
    }
    let status = match (options.successful_only, options.failed_only) {
        (true, _) => Some("successful".to_owned()),
        (_, true) => Some("failed".to_owned()),
        _ => status,
    };
    match status.as_deref() {
        None | Some("all") => {}
        Some("failed" | "!successful") => words.push("--failure".into()),
        Some("successful" | "!failed") => words.extend(["--filter", "ret >= 0"].map(OsString::from)),
        Some(other) => return Err(Refused::Wrong(format!("--status={other} is not supported yet: use successful or failed"))),
    }
    if let Some(traced) = traced {
        words.extend(selection(&traced)?);
    }
    Ok(Expressions { words, ..expressions })
}

/// Returns the signals of a set, as bits.
fn signals(set: &str) -> Result<u128, Refused> {
    let (is_negated, list) = set.strip_prefix('!').map_or((false, set), |list| (true, list));
    let bits = match list {
        "all" => u128::MAX,
        "none" => 0,
        _ => list.split(',').try_fold(0, |bits, name| {
            let number = name.parse().ok().or_else(|| signal::number(&name.to_uppercase())).filter(|number| (1..128).contains(number));
            number.map(|number| bits | 1 << number).ok_or_else(|| Refused::Wrong(format!("invalid signal '{name}'")))
        })?,
    };
    Ok(if is_negated { !bits } else { bits })
}

/// Applies a set of kinds of lines that are not printed.
fn quiet(set: &str, expressions: &mut Expressions) -> Result<(), Refused> {
    for word in set.split(',') {
        match word {
            "attach" => expressions.hides_attached = true,
            "exit" | "exits" => expressions.hides_ends = true,
            "all" => (expressions.hides_attached, expressions.hides_ends) = (true, true),
            "none" => (expressions.hides_attached, expressions.hides_ends) = (false, false),
            // rtrace never prints these.
            "path-resolution" | "path-resolve" | "personality" | "thread-execve" | "superseded" => {}
            other => return Err(Refused::Wrong(format!("invalid quiet keyword '{other}'"))),
        }
    }
    Ok(())
}

/// A set of system calls.
enum Set {
    All,
    /// Items of rtrace's own language; none for no calls.
    Items(Vec<String>),
}

/// Translates a set of system calls.
fn items(set: &str) -> Result<Set, Refused> {
    let (is_negated, list) = set.strip_prefix('!').map_or((false, set), |list| (true, list));
    match (list, is_negated) {
        ("all", false) | ("none", true) => return Ok(Set::All),
        ("none", false) | ("all", true) => return Ok(Set::Items(Vec::new())),
        _ => {}
    }
    let items: Vec<Option<String>> = list.split(',').map(item).collect::<Result<_, _>>()?;
    let sign = if is_negated { "!" } else { "" };
    Ok(Set::Items(items.into_iter().flatten().map(|item| format!("{sign}{item}")).collect()))
}

/// Translates the calls that are traced.
fn selection(set: &str) -> Result<Vec<OsString>, Refused> {
    Ok(match items(set)? {
        Set::All => Vec::new(),
        Set::Items(items) if items.is_empty() => nothing(),
        Set::Items(items) => vec!["-e".into(), items.join(",").into()],
    })
}

/// Translates the value of `inject=` or `fault=`. Returns no words for an empty set of calls.
fn injection(option: &str, value: &str) -> Result<Vec<OsString>, Refused> {
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
        Set::All => vec!["--inject".into(), format!("all:{actions}").into()],
        Set::Items(items) if !items.is_empty() => vec!["--inject".into(), format!("{}:{actions}", items.join(",")).into()],
        Set::Items(_) => Vec::new(),
    })
}

/// No system calls. Signals are shown nevertheless.
fn nothing() -> Vec<OsString> {
    ["--no-syscalls", "--signals"].map(OsString::from).to_vec()
}

/// Translates an item of a set; `None` for a name after `?` that does not exist.
fn item(item: &str) -> Result<Option<String>, Refused> {
    let (is_optional, name) = item.strip_prefix('?').map_or((false, item), |name| (true, name));
    let unknown = || Refused::Wrong(format!("invalid system call '{name}'"));
    if let Some(expression) = name.strip_prefix('/') {
        return Ok(Some(format!("/{}/", expression.strip_suffix('/').unwrap_or(expression))));
    }
    let group = name.strip_prefix('%').unwrap_or(name);
    // Without the percent sign, these are the names that strace had first.
    const PLAIN: [&str; 8] = ["file", "process", "network", "signal", "ipc", "desc", "memory", "net"];
    if GROUPS.iter().any(|(known, ..)| *known == group) && (name.starts_with('%') || PLAIN.contains(&name)) {
        return Ok(Some(format!("%{group}")));
    }
    match lookup::index_by_name(name).is_some() || glob::is_pattern(name) {
        true => Ok(Some(name.to_owned())),
        false if is_optional => Ok(None),
        false => Err(unknown()),
    }
}
