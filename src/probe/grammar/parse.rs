//! From a line to what it says.

mod args;
mod fetch;
mod fields;
mod kind;
mod names;
mod number;
mod place;

use super::ast::{Line, Place, Probe, Removal, When};
use super::limits::MAXACTIVE_MAX;
use super::piece::{Parsed, Piece};
use crate::text::caret::Misplaced;
use crate::text::near;
use names::Whose;

pub use place::is_on_file;
pub(super) use place::{is_plain_name, is_plain_path};

/// One line, without a comment.
///
/// # Errors
/// A mistake in the line, with its place.
pub fn parse(line: &str) -> Result<Line, Misplaced> {
    let mut rest = Piece::new(line);
    let Some(head) = rest.next_word()? else {
        return Err(rest.wrong(format!("a probe is missing; it begins with {KINDS_TEXT}")));
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
            None => Err(head.wrong(unknown_kind(head.text()))),
        };
    }
    let maxactive = maxactive(kind, count)?;
    probe(&Head { word: head, kind: kind.text(), maxactive, name }, rest).map(Line::Make)
}

const KINDS: [&str; 8] = ["p", "r", "f", "t", "e", "s", "u", "usdt"];
const KINDS_TEXT: &str =
    "p or r (kernel or program), f (function), t (tracepoint), e (event), s (synthetic event), u (user event), usdt, or -: to remove";

/// The first word of a line that makes a probe.
struct Head<'a> {
    word: Piece<'a>,
    kind: &'a str,
    maxactive: Option<(u32, Piece<'a>)>,
    /// What is behind the colon.
    name: Option<Piece<'a>>,
}

fn unknown_kind(head: &str) -> String {
    let word = head.split(':').next().unwrap_or(head);
    let near = near::nearest(word, KINDS.into_iter().filter(|kind| kind.len() > 1), 1);
    format!("`{}` is no kind of probe; a line begins with {KINDS_TEXT}{}", word.escape_debug(), near::hint(&near))
}

fn maxactive<'a>(kind: Piece<'a>, count: Piece<'a>) -> Parsed<Option<(u32, Piece<'a>)>> {
    if count.is_empty() {
        return Ok(None);
    }
    if !matches!(kind.text(), "r" | "f") {
        return Err(count.wrong("how many calls are followed at a time is for return probes only: r or f"));
    }
    match number::number(count)? {
        0 => Ok(None),
        number @ 1..=MAXACTIVE_MAX => Ok(Some((number as u32, count))),
        _ => Err(count.wrong(format!("a return probe follows {MAXACTIVE_MAX} calls at a time at most"))),
    }
}

fn probe(head: &Head, mut rest: Piece) -> Parsed<Probe> {
    if let "s" | "u" = head.kind {
        return fields::probe(head.kind, head.word, head.name, rest);
    }
    let (group, event) = names::group_and_event(head.name)?;
    let Some(word) = rest.next_word()? else {
        return Err(rest.wrong_behind(format!("the place is missing: {}", place::wanted(head.kind))));
    };
    let mut place = place::place(head.kind, word)?;
    take_maxactive(&mut place, head)?;
    let args = args::args(&mut place, rest)?;
    Ok(Probe { group, event, place, args })
}

/// Puts the number behind `r` or `f` where it belongs.
fn take_maxactive(place: &mut Place, head: &Head) -> Parsed<()> {
    let Some((count, at)) = head.maxactive else { return Ok(()) };
    match place {
        Place::Kernel { when: When::Return { maxactive }, .. } | Place::Function { when: When::Return { maxactive }, .. } => {
            *maxactive = Some(count);
            Ok(())
        }
        Place::Function { .. } => Err(at.wrong("how many calls are followed at a time is for return probes only: f... FUNCTION%return")),
        _ => Err(at.wrong("a program's return probes follow as many calls as there are; take the number away")),
    }
}

fn removal<'a>(head: Piece<'a>, behind: Piece<'a>, mut rest: Piece<'a>) -> Parsed<Removal> {
    let name = behind.strip_prefix(":").ok_or_else(|| head.wrong("a probe is removed by -:[GROUP/]EVENT, all of a group by -:GROUP/"))?;
    if let Some(more) = rest.next_word()? {
        return Err(more.wrong("nothing may follow the name of what is removed"));
    }
    let (group, event) = match name.split_once('/') {
        None => (None, name),
        Some((group, event)) => (Some(names::group(group)?), event),
    };
    if event.is_empty() && group.is_some() {
        return Ok(Removal { group, event: None });
    }
    Ok(Removal { group, event: Some(names::event(event, Whose::User)?) })
}

#[cfg(test)]
mod tests;
