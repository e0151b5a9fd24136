//! Differences as JSON objects.

use super::difference::{Difference, Side, What};
use super::outline::End;
use super::words::{Word, Words};
use crate::beauty::{errno, signal};
use crate::text::json::{Bytes, Integer};
use serde::Serialize;
use std::collections::BTreeSet;

/// An object. Members that say nothing about a kind of difference are not in it.
#[derive(Default, Serialize)]
#[serde(tag = "type", rename = "difference")]
struct Object<'w> {
    kind: &'static str,
    programs: Vec<Bytes<'w>>,
    /// The recording with the thing that the other one has not: `a` or `b`.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    side: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Bytes<'w>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<Bytes<'w>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    always: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<Bytes<'w>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Integer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Bytes<'w>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<State<'w>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<State<'w>>,
}

/// What one recording has.
#[derive(Default, Serialize)]
struct State<'w> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ends: Vec<Ended>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<Bytes<'w>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Vec<Bytes<'w>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Integer>,
    /// In nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Integer>,
    /// The value of the attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Integer>,
}

/// How processes ended.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Status(i32),
    Signal(String),
}

/// Returns an object for each difference.
pub fn objects<'w>(differences: &'w [Difference], words: &'w Words) -> impl Iterator<Item = impl Serialize + use<'w>> {
    differences.iter().map(|difference| object(difference, words))
}

fn object<'w>(difference: &'w Difference, words: &'w Words) -> Object<'w> {
    let text = |word: &Word| Bytes(words.text(*word));
    let all = |set: &BTreeSet<Word>| set.iter().map(text).collect::<Vec<_>>();
    let name = |side: &Side| Some(if *side == Side::A { "a" } else { "b" });
    let states = |[a, b]: [State<'w>; 2]| (Some(a), Some(b));
    let object = Object {
        kind: difference.what.name(),
        programs: all(&difference.programs),
        objects: difference.objects.iter().map(text).collect(),
        ..Object::default()
    };
    match &difference.what {
        What::Fails { side, call, errnos, always } => {
            Object { side: name(side), calls: vec![text(call)], errors: errors(errnos), always: Some(*always), ..object }
        }
        What::FailsOtherwise { call, errnos } => {
            let (a, b) = states([&errnos[0], &errnos[1]].map(|errnos| State { errors: errors(errnos), ..State::default() }));
            Object { calls: vec![text(call)], a, b, ..object }
        }
        What::Ends(ends) => {
            let (a, b) = states([&ends[0], &ends[1]].map(|ends| State { ends: ends.iter().map(ended).collect(), ..State::default() }));
            Object { a, b, ..object }
        }
        What::Complains { side, text } => Object { side: name(side), text: Some(Bytes(text)), ..object },
        What::NoData { side, call } => Object { side: name(side), calls: vec![text(call)], ..object },
        What::FailsMore { call, errno, calls } => {
            let (a, b) = states([0, 1].map(|at: usize| State { calls: Some(Integer(calls[at])), ..State::default() }));
            Object { calls: vec![text(call)], errors: errors(&BTreeSet::from([*errno])), a, b, ..object }
        }
        What::File { attribute, values } => {
            let (a, b) = states([0, 1].map(|at: usize| State { value: Some(Integer(values[at])), ..State::default() }));
            Object { attribute: Some(attribute.name()), a, b, ..object }
        }
        What::Slower { side, call, timed } => {
            let state =
                |at: usize| State { calls: Some(Integer(timed.calls[at])), duration: Some(Integer(timed.time[at])), ..State::default() };
            let (a, b) = states([0, 1].map(state));
            Object { side: name(side), calls: vec![text(call)], a, b, ..object }
        }
        What::Runs { side, path, args, processes } => {
            let command = path.iter().chain(args.iter().skip(1)).map(text).collect::<Vec<_>>();
            let command = (!command.is_empty()).then_some(command);
            Object { side: name(side), command, processes: Some(Integer(*processes)), ..object }
        }
        What::Tries { side, calls, errnos, .. } | What::Calls { side, calls, errnos } => {
            Object { side: name(side), calls: all(calls), errors: errors(errnos), ..object }
        }
        What::Arguments(commands) => {
            let state = |words: &'w Vec<Word>| State { command: Some(words.iter().map(text).collect()), ..State::default() };
            let (a, b) = states([&commands[0], &commands[1]].map(state));
            Object { a, b, ..object }
        }
        What::Uses { side, calls } => Object { side: name(side), calls: all(calls), ..object },
        What::Details { call, details } => {
            let (a, b) = states([&details[0], &details[1]].map(|details| State { details: Some(all(details)), ..State::default() }));
            Object { calls: vec![text(call)], a, b, ..object }
        }
        What::More { side, call, calls } => {
            let (a, b) = states([0, 1].map(|at: usize| State { calls: Some(Integer(calls[at])), ..State::default() }));
            Object { side: name(side), calls: vec![text(call)], a, b, ..object }
        }
    }
}

fn errors(errnos: &BTreeSet<i32>) -> Vec<String> {
    errnos.iter().map(|number| errno::name(*number).map_or_else(|| number.to_string(), str::to_owned)).collect()
}

fn ended(end: &End) -> Ended {
    match end {
        End::Exited(status) => Ended::Status(*status),
        End::Killed(number) => Ended::Signal(signal::name(*number).map_or_else(|| number.to_string(), str::to_owned)),
    }
}
