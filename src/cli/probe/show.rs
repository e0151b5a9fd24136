//! `rtrace probe show`: shows all about one event, dynamic or not.

use super::list::{counts, escaped, owner};
use super::pattern::{Pattern, no_match};
use crate::kernel::format::{FieldPlace, Format, FormatField};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::inventory::{self, DynamicEvent};
use crate::probe::state::{self, State};
use anyhow::bail;
use std::fmt::Write;

/// How many names an error message lists at most when several events match.
const CANDIDATES_MAX: usize = 8;

/// Returns the definition, fields, filter, triggers and histograms of an event.
///
/// # Errors
/// No event matches, or several do.
pub fn show(tracefs: &Tracefs, word: &str) -> anyhow::Result<String> {
    let name = one(tracefs, word)?;
    let format = tracefs.format(&name.subsystem, &name.name)?;
    // The definitions of probes may be readable for root alone while the events are readable for others.
    let entries: Vec<DynamicEvent> = inventory::read(tracefs).unwrap_or_default().into_iter().filter(|entry| entry.name == name).collect();
    let mut text = format!("{}\n", escaped(&name.to_string()));
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "    {label:<12}{}", escaped(value));
    };
    for entry in &entries {
        row("definition", &entry.line.replace('\t', " "));
        row("owner", &owner(entry));
        row("counts", &counts(entry));
    }
    row("id", &format.id.to_string());
    for state in state::read(tracefs, &name) {
        switched(&state, &mut row);
    }
    fields(&format, &mut row);
    row("print", &format.print);
    Ok(text)
}

/// Returns the only event that matches.
fn one(tracefs: &Tracefs, word: &str) -> anyhow::Result<EventName> {
    let pattern = Pattern::of(word);
    let found = tracefs.matching(pattern.group(), pattern.event())?;
    match &found[..] {
        [name] => Ok(name.clone()),
        [] => bail!(no_match("event", word, tracefs.matching("*", "*")?.iter())),
        several => {
            let mut names: Vec<String> = several.iter().take(CANDIDATES_MAX).map(ToString::to_string).collect();
            if several.len() > CANDIDATES_MAX {
                names.push(format!("{} more", several.len() - CANDIDATES_MAX));
            }
            bail!("`{}` is the name of {} events: {}", word.escape_debug(), several.len(), names.join(", "))
        }
    }
}

fn switched(state: &State, row: &mut impl FnMut(&str, &str)) {
    let place = state.instance.as_ref().map(|name| format!(" (instance {name})")).unwrap_or_default();
    row("enabled", &format!("{}{place}", if state.enabled { "yes" } else { "no" }));
    row("filter", &format!("{}{place}", state.filter.as_deref().unwrap_or("none")));
    if state.triggers.is_empty() && state.instance.is_none() {
        row("trigger", "none");
    }
    for trigger in &state.triggers {
        row("trigger", &format!("{trigger}{place}"));
    }
    for line in state.histograms.iter().flat_map(|text| text.lines()).filter(|line| !matches!(*line, "" | "#")) {
        row("histogram", line);
    }
}

fn fields(format: &Format, row: &mut impl FnMut(&str, &str)) {
    let declarations: Vec<String> = format.own_fields().map(declaration).collect();
    let width = declarations.iter().map(String::len).max().unwrap_or_default();
    for (field, declaration) in format.own_fields().zip(declarations) {
        let sign = if field.signed { "signed" } else { "unsigned" };
        row("field", &format!("{declaration:<width$}  offset {:>3}, size {:>2}, {sign}", field.offset, field.size));
    }
    if format.own_fields().next().is_none() {
        row("field", "none");
    }
}

/// Returns a field's declaration in C, with the length of an array after the name.
fn declaration(field: &FormatField) -> String {
    match field.array {
        Some(count) if field.place == FieldPlace::Here => format!("{} {}[{count}]", field.type_name, field.name),
        _ => format!("{} {}", field.type_name, field.name),
    }
}
