//! `rtrace probe list`: lists the dynamic events of the kernel, one per line.
//!
//! A line is `EVENT OWNER COUNTS DEFINITION`. OWNER is `probe-add`, `run:PID` for an event that a running rtrace
//! created for itself, `gone:PID` for one that a killed rtrace left behind, or `other`. COUNTS is `hits=N`, for kprobes
//! also `misses=N`, and for user events `listeners=NAME,...`. With `--json`, each event is an object.

use super::object::Object;
use super::pattern::{Pattern, no_match};
use crate::cli::{ExitCode, json, stdout};
use crate::kernel::tracefs::Tracefs;
use crate::probe::inventory::{self, Creator, DynamicEvent};
use crate::probe::state;
use crate::request::AnswerFormat;
use crate::say;
use crate::text::escape;
use anyhow::bail;
use std::fmt::Write;

/// Prints the events that match any of the patterns on stdout, or all events if there are no patterns.
///
/// # Errors
/// The files of tracefs cannot be read, a pattern matches nothing, or stdout cannot be written.
pub fn list(tracefs: &Tracefs, patterns: &[String], format: AnswerFormat) -> anyhow::Result<ExitCode> {
    let found = find(tracefs, patterns)?;
    if found.is_empty() {
        say!("rtrace: this kernel has no dynamic events at the moment");
    }
    match format {
        AnswerFormat::Text => stdout::print(found.iter().map(line).collect::<String>().as_bytes()),
        AnswerFormat::Json => {
            let is_enabled = |event: &DynamicEvent| state::read(tracefs, &event.name).iter().any(|state| state.enabled);
            json::print("probe_list", found.iter().map(|event| Object::new(event, is_enabled(event))))
        }
    }
}

fn find(tracefs: &Tracefs, patterns: &[String]) -> anyhow::Result<Vec<DynamicEvent>> {
    let all = inventory::read(tracefs)?;
    for word in patterns {
        let pattern = Pattern::of(word);
        if !all.iter().any(|entry| pattern.matches(&entry.name)) {
            bail!(no_match("dynamic event", word, all.iter().map(|entry| &entry.name)));
        }
    }
    let patterns: Vec<Pattern> = patterns.iter().map(|word| Pattern::of(word)).collect();
    let is_asked_for = |entry: &DynamicEvent| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(&entry.name));
    Ok(all.into_iter().filter(is_asked_for).collect())
}

fn line(entry: &DynamicEvent) -> String {
    let mut line = format!("{:<32} {:<10} {:<22} ", escaped(&entry.name.to_string()), owner(entry), counts(entry));
    // tracefs accepts this line again. It separates some words by tabs, which are printed as blanks.
    let _ = writeln!(line, "{}", escaped(&entry.line.replace('\t', " ")));
    line
}

/// Returns the OWNER column.
pub fn owner(entry: &DynamicEvent) -> String {
    match entry.creator {
        Creator::ProbeAdd => "probe-add".to_owned(),
        Creator::Run(run) => format!("{}:{}", if run.is_gone() { "gone" } else { "run" }, run.pid()),
        Creator::Other => "other".to_owned(),
    }
}

/// Returns the COUNTS column: what the kernel counts for this event.
pub fn counts(entry: &DynamicEvent) -> String {
    let mut words = Vec::new();
    if let Some(hits) = entry.hits {
        words.push(format!("hits={}", hits.hits));
        words.extend(hits.misses.map(|misses| format!("misses={misses}")));
    }
    if let Some(listeners) = &entry.listeners {
        words.push(format!("listeners={}", if listeners.is_empty() { "none".to_owned() } else { listeners.join(",") }));
    }
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

/// Escapes a definition for a line of text. One that is printable ASCII stays as it is, with its own backslashes, so
/// that it can be written to tracefs again.
pub fn escaped(text: &str) -> String {
    if text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = Vec::new();
    escape::plain(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tracefs::EventName;
    use crate::probe::hits::Hits;

    #[test]
    fn an_event_has_one_line() {
        let of = |name, text: &str, hits, listeners| {
            line(&DynamicEvent { name, line: text.to_owned(), creator: Creator::Other, hits, listeners })
        };
        let hits = Some(Hits { hits: 12, misses: Some(0) });
        assert_eq!(
            of(EventName::new("kprobes", "open"), "p:kprobes/open do_sys_open", hits, None),
            "kprobes:open                     other      hits=12 misses=0       p:kprobes/open do_sys_open\n"
        );
        let user = of(EventName::new("user_events", "test"), "u:test u32 count", None, Some(vec!["ftrace".to_owned(), "perf".to_owned()]));
        assert!(user.contains(" listeners=ftrace,perf ") && user.ends_with(" u:test u32 count\n"), "{user}");
        assert!(of(EventName::new("user_events", "test"), "u:test", None, Some(Vec::new())).contains(" listeners=none "));
        let synthetic = of(EventName::new("synthetic", "x\x1b"), "s:synthetic/x\tu64 a", None, None);
        assert!(synthetic.starts_with("synthetic:x\\x1b ") && synthetic.ends_with(" s:synthetic/x u64 a\n"), "{synthetic}");
    }
}
