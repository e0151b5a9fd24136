//! Parses synthetic and user events: names, flags and fields.

use super::super::ast::{Field, Probe, ProbePoint};
use super::super::piece::{Parsed, Piece, is_blank};
use super::names::{self, EventClass};
use super::number::{index, number};
use crate::probe::groups::SYNTHETIC;
use crate::text::near;

/// The types that fields of both kinds of events may have (synth_field_size() in kernel/trace/trace_events_synth.c,
/// user_field_size() in trace_events_user.c).
const BOTH: [&str; 12] = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "char", "unsigned char", "int", "unsigned int"];
const SYNTHETIC_ONLY: [&str; 5] = ["long", "unsigned long", "bool", "pid_t", "gfp_t"];
const USER_ONLY: [&str; 2] = ["short", "unsigned short"];

/// Parses a line that begins with `s` or `u`.
///
/// # Errors
/// A syntax error in it.
pub fn probe(kind: &str, head: Piece, name: Option<Piece>, rest: Piece) -> Parsed<Probe> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(head.error_behind(format!("the event's name is missing: {kind}:NAME TYPE FIELD; TYPE FIELD")));
    };
    if kind == "u" { user(name, rest) } else { synthetic(name, rest) }
}

/// Parses a line of tracefs's `synthetic_events`: `NAME TYPE FIELD; TYPE FIELD`. Returns `None` if the word behind the
/// name is not a type.
///
/// # Errors
/// A syntax error in it.
pub fn without_kind(name: Piece, rest: Piece) -> Parsed<Option<Probe>> {
    let first = rest.trim().split_while(|c| !is_blank(c)).0;
    let known = first.text() == "unsigned" || is_type(first.text(), EventClass::Kernel);
    if known && names::is_identifier(name.text()) { synthetic(name, rest).map(Some) } else { Ok(None) }
}

fn synthetic(name: Piece, rest: Piece) -> Parsed<Probe> {
    let (group, event) = names::group_and_event(Some(name))?;
    if group.as_ref().is_some_and(|group| group != SYNTHETIC) {
        return Err(name.error(format!("the group of synthetic events is `{SYNTHETIC}`")));
    }
    if event.is_none() {
        return Err(name.error_behind("the event's name is missing here"));
    }
    let fields = fields(rest, EventClass::Kernel)?;
    if fields.is_empty() {
        return Err(rest.error_behind("the fields are missing: TYPE FIELD; TYPE FIELD"));
    }
    Ok(Probe { group, event, place: ProbePoint::Synthetic { fields }, args: Vec::new() })
}

fn user(name: Piece, rest: Piece) -> Parsed<Probe> {
    let (name, flags) = name.split_once(':').map_or((name, None), |(name, flags)| (name, Some(flags)));
    // The kernel would read a group as a part of the name.
    let name = name.strip_prefix("user_events/").unwrap_or(name);
    let event = Some(names::event(name, EventClass::User)?);
    let flags = flags.map(self::flags).transpose()?.unwrap_or_default();
    Ok(Probe { group: None, event, place: ProbePoint::User { flags, fields: fields(rest, EventClass::User)? }, args: Vec::new() })
}

fn flags(flags: Piece) -> Parsed<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = Some(flags);
    while let Some(all) = rest {
        let (flag, behind) = all.split_once(',').map_or((all, None), |(flag, behind)| (flag, Some(behind)));
        if !names::is_identifier(flag.text()) {
            return Err(flag.error("a flag is expected here: u:NAME:FLAG,FLAG"));
        }
        words.push(flag.text().to_owned());
        rest = behind;
    }
    Ok(words)
}

fn fields(fields: Piece, class: EventClass) -> Parsed<Vec<Field>> {
    let mut all: Vec<Field> = Vec::new();
    let mut rest = Some(fields);
    while let Some(text) = rest {
        let (one, behind) = text.split_once(';').map_or((text, None), |(one, behind)| (one, Some(behind)));
        rest = behind;
        if one.trim().is_empty() {
            match behind {
                Some(_) => return Err(one.error_behind("a field is missing before this semicolon")),
                None => break,
            }
        }
        let field = field(one.trim(), class)?;
        if all.iter().any(|other| other.name == field.name) {
            return Err(one.trim().error(format!("there is a field `{}` already; choose another name", field.name)));
        }
        all.push(field);
    }
    Ok(all)
}

fn field(text: Piece, class: EventClass) -> Parsed<Field> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(word) = rest.next_word()? {
        words.push(word);
    }
    let (size, words) = match words.split_last() {
        Some((last, others)) if words[0].text() == "struct" && others.len() > 2 => (Some(index(*last)?), others),
        _ => (None, &words[..]),
    };
    let Some((name, kind)) = words.split_last().filter(|(_, kind)| !kind.is_empty()) else {
        return Err(text.error("a field is written TYPE NAME"));
    };
    // As in C, the length of an array may follow the name.
    let (name, array) = name.split_while(|c| c != '[');
    let kind_text = kind.iter().map(|word| word.text()).collect::<Vec<_>>().join(" ") + array.text();
    let known = match size {
        Some(_) => class == EventClass::User && kind.len() == 2 && names::is_identifier(kind[1].text()) && array.is_empty(),
        None => is_type(&kind_text, class),
    };
    if !known {
        return Err(text.error(unknown_type(&kind_text, class)));
    }
    Ok(Field { kind: kind_text, name: names::field(name)?, size })
}

fn unknown_type(kind: &str, class: EventClass) -> String {
    let kind = kind.escape_debug().to_string();
    match (kind.split(' ').next(), class) {
        (Some("struct"), EventClass::User) => "a field that is a struct needs its size in bytes: struct TYPE NAME BYTES".to_owned(),
        (Some("long"), EventClass::User) => "the size of a long differs between programs: use u64, s64, u32 or s32".to_owned(),
        _ => {
            let near = near::nearest(&kind, names_of(class), 3);
            let event = if class == EventClass::User { "user" } else { "synthetic" };
            format!(
                "a field of a {event} event cannot have the type `{kind}`; write TYPE NAME, as in u64 count or char[16] comm{}",
                near::hint(&near)
            )
        }
    }
}

fn names_of(class: EventClass) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = if class == EventClass::User { &USER_ONLY } else { &SYNTHETIC_ONLY };
    BOTH.into_iter().chain(own.iter().copied())
}

fn is_type(kind: &str, class: EventClass) -> bool {
    let located = kind.strip_prefix("__data_loc ").or_else(|| kind.strip_prefix("__rel_loc ")).filter(|_| class == EventClass::User);
    match located.unwrap_or(kind).split_once('[') {
        None => located.is_none() && names_of(class).any(|name| name == kind),
        Some((base, length)) => {
            let length = length.strip_suffix(']');
            let sized = length.is_some_and(|length| number(Piece::new(length)).is_ok_and(|length| length > 0));
            let open = length == Some("") && (located.is_some() || class == EventClass::Kernel);
            let arrays: &[&str] = match class {
                EventClass::Kernel if open => &["char", "long", "unsigned long"],
                EventClass::Kernel => &["char"],
                EventClass::User => &["char", "unsigned char"],
            };
            (sized || open) && (arrays.contains(&base) || located.is_some() && names_of(class).any(|name| name == base))
        }
    }
}
