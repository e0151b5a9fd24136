//! The part of a line behind the place: arguments (`[NAME=]VALUE[:TYPE]`), and the condition of an event probe.

use super::super::ast::{Arg, Fetch, ProbePoint};
use super::super::limits::ARGS_MAX;
use super::super::piece::{Parsed, Piece};
use super::{fetch, kind, names};

/// Parses all arguments, and the condition of an event probe.
///
/// # Errors
/// A syntax error in one of them, two arguments of the same name, or more arguments than the kernel accepts.
pub fn args(place: &mut ProbePoint, mut rest: Piece) -> Parsed<Vec<Arg>> {
    let mut args: Vec<Arg> = Vec::new();
    while let Some(word) = rest.next_word()? {
        if let ("if", ProbePoint::Event { filter, .. }) = (word.text(), &mut *place) {
            let condition = rest.trim();
            if condition.is_empty() {
                return Err(word.error_behind("the condition on the event's fields is missing behind `if`"));
            }
            *filter = Some(condition.text().to_owned());
            return Ok(args);
        }
        if args.len() == ARGS_MAX {
            return Err(word.error(format!("a probe has {ARGS_MAX} arguments at most; this is one more")));
        }
        let arg = arg(word, place)?;
        if let Some(name) = &arg.name
            && args.iter().any(|other| other.name.as_ref() == Some(name))
        {
            return Err(word.error(format!("there is an argument `{name}` already; choose another name")));
        }
        args.push(arg);
    }
    Ok(args)
}

fn arg(word: Piece, place: &ProbePoint) -> Parsed<Arg> {
    let (name, body) = match word.split_once('=') {
        Some(_) if word.text().starts_with(TEXT) => return Err(word.error("a text with = in it needs a name: NAME=\\\"TEXT\"")),
        Some((name, body)) => (Some(names::arg(name)?), body),
        None => (None, word),
    };
    let (value, kind) = split_type(body);
    let kind = kind.map(kind::kind).transpose()?;
    if value.is_empty() {
        return Err(value.error("the value to fetch is missing here: %REGISTER, $stack0, $arg1, +0(%di), @symbol, a variable..."));
    }
    let fetched = fetch::fetch(value, place)?;
    if fetched == Fetch::Arguments && (name.is_some() || kind.is_some()) {
        return Err(
            word.error("`$arg*` stands for all arguments, each with its own name and type: write it without a name and without a type")
        );
    }
    Ok(Arg { name, value: fetched, kind })
}

/// The beginning of an immediate text.
const TEXT: &str = "\\\"";

/// Splits off the type, which is behind the first colon, or behind the first colon after an immediate text.
fn split_type(body: Piece) -> (Piece, Option<Piece>) {
    let quote = if body.text().starts_with(TEXT) { body.text().rfind('"').unwrap_or(0) } else { 0 };
    match body.text()[quote..].find(':') {
        None => (body, None),
        Some(at) => (body.split_at(quote + at).0, Some(body.split_at(quote + at + 1).1)),
    }
}
