//! Parses a line into its syntax tree.

mod args;
mod fetch;
mod fields;
mod kind;
mod names;
mod number;
mod place;

use super::ast::{Line, Probe, ProbePoint, Removal, When};
use super::limits::MAXACTIVE_MAX;
use super::piece::{Parsed, Piece};
use crate::text::caret::SyntaxError;
use crate::text::near;
use names::EventClass;

pub use place::is_on_file;
pub(super) use place::{is_plain_name, is_plain_path};

/// Parses one line, which has no comment.
///
/// # Errors
/// A syntax error, with its position in the line.
pub fn parse(line: &str) -> Result<Line, SyntaxError> {
    let mut rest = Piece::new(line);
    let Some(head) = rest.next_word()? else {
        return Err(rest.error(format!("a probe is missing; it begins with {KINDS_TEXT}")));
    };
    if let Some(name) = head.strip_prefix("-") {
        return removal(head, name, rest).map(Line::Remove);
    }
    let (kind, behind) = head.split_while(|c| c.is_ascii_alphabetic());
    let (count, behind) = behind.split_while(|c| c.is_ascii_digit());
    let name = behind.strip_prefix(":");
    if !KINDS.contains(&kind.text()) || !(behind.is_empty() || name.is_some()) {
        return match fields::without_kind(head, rest)? {
            Some(probe) => Ok(Line::Make(probe)),
            None => Err(head.error(unknown_kind(head.text()))),
        };
    }
    let maxactive = maxactive(kind, count)?;
    probe(&Head { word: head, kind: kind.text(), maxactive, name }, rest).map(Line::Make)
}

const KINDS: [&str; 8] = ["p", "r", "f", "t", "e", "s", "u", "usdt"];
const KINDS_TEXT: &str =
    "p or r (kernel or program), f (function), t (tracepoint), e (event), s (synthetic event), u (user event), usdt, or -: to remove";

/// The first word of a line that creates a probe.
struct Head<'a> {
    word: Piece<'a>,
    kind: &'a str,
    maxactive: Option<(u32, Piece<'a>)>,
    /// The part behind the colon.
    name: Option<Piece<'a>>,
}

fn unknown_kind(head: &str) -> String {
    let word = head.split(':').next().unwrap_or(head);
    let near = near::nearest(word, KINDS.into_iter().filter(|kind| kind.len() > 1), 1);
    format!("`{}` is not a kind of probe; a line begins with {KINDS_TEXT}{}", word.escape_debug(), near::hint(&near))
}

fn maxactive<'a>(kind: Piece<'a>, count: Piece<'a>) -> Parsed<Option<(u32, Piece<'a>)>> {
    if count.is_empty() {
        return Ok(None);
    }
    if !matches!(kind.text(), "r" | "f") {
        return Err(count.error("the number of calls to follow at a time is for return probes only: r or f"));
    }
    match number::number(count)? {
        0 => Ok(None),
        number @ 1..=MAXACTIVE_MAX => Ok(Some((number as u32, count))),
        _ => Err(count.error(format!("a return probe follows at most {MAXACTIVE_MAX} calls at a time"))),
    }
}

fn probe(head: &Head, mut rest: Piece) -> Parsed<Probe> {
    if let "s" | "u" = head.kind {
        return fields::probe(head.kind, head.word, head.name, rest);
    }
    let (group, event) = names::group_and_event(head.name)?;
    let Some(word) = rest.next_word()? else {
        return Err(rest.error_behind(format!("the place is missing: {}", place::wanted(head.kind))));
    };
    let mut place = place::place(head.kind, word)?;
    set_maxactive(&mut place, head)?;
    let args = args::args(&mut place, rest)?;
    Ok(Probe { group, event, place, args })
}

/// Sets the number behind `r` or `f` in the probe point.
fn set_maxactive(place: &mut ProbePoint, head: &Head) -> Parsed<()> {
    let Some((count, at)) = head.maxactive else { return Ok(()) };
    match place {
        ProbePoint::Kernel { when: When::Return { maxactive }, .. } | ProbePoint::Function { when: When::Return { maxactive }, .. } => {
            *maxactive = Some(count);
            Ok(())
        }
        ProbePoint::Function { .. } => {
            Err(at.error("the number of calls to follow at a time is for return probes only: f... FUNCTION%return"))
        }
        _ => Err(at.error("a return probe of a program follows any number of calls; remove the number")),
    }
}

fn removal<'a>(head: Piece<'a>, behind: Piece<'a>, mut rest: Piece<'a>) -> Parsed<Removal> {
    let name = behind.strip_prefix(":").ok_or_else(|| head.error("a probe is removed by -:[GROUP/]EVENT, all of a group by -:GROUP/"))?;
    if let Some(more) = rest.next_word()? {
        return Err(more.error("nothing may follow the name of the event to remove"));
    }
    let (group, event) = match name.split_once('/') {
        None => (None, name),
        Some((group, event)) => (Some(names::group(group)?), event),
    };
    if event.is_empty() && group.is_some() {
        return Ok(Removal { group, event: None });
    }
    Ok(Removal { group, event: Some(names::event(event, EventClass::User)?) })
}

#[cfg(test)]
mod tests;
