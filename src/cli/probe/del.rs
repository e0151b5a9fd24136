//! `rtrace probe del`: deletes events that `rtrace probe add` created, and with `--force` also those that others
//! created.

use super::add::{explained, not_ours};
use super::pattern::{Pattern, no_match};
use crate::cli::ExitCode;
use crate::kernel::tracefs::Tracefs;
use crate::probe::change::{Change, RemoveError};
use crate::probe::inventory::{self, DynamicEvent};
use anyhow::bail;

/// Deletes the events that match these patterns. Without `force`, a glob matches only events that `rtrace probe add`
/// created.
///
/// # Errors
/// A pattern matches nothing, or only events that others created; no event has been deleted then. An event is in use or
/// cannot be deleted; the other events have been deleted then.
pub fn delete(tracefs: &Tracefs, patterns: &[String], force: bool) -> anyhow::Result<ExitCode> {
    let all = inventory::read(tracefs)?;
    let mut chosen = choose(&all, patterns, force)?;
    // An event may depend on one that was created before it.
    chosen.reverse();
    let mut change = Change::new(tracefs);
    let mut failed = Vec::new();
    for entry in chosen {
        match change.remove(entry) {
            Ok(()) => {}
            // The kernel has removed it together with another one: probes with one name, and twins (`is_twin`).
            Err(RemoveError::Gone(_)) => {}
            Err(error) => failed.push(format!("{:#}", explained(tracefs, entry, &all, error))),
        }
    }
    let (_, written) = change.commit();
    match failed.is_empty() {
        true => written.map(|()| ExitCode::Success),
        false => bail!(failed.join("\nrtrace: ")),
    }
}

fn choose<'a>(all: &'a [DynamicEvent], words: &[String], force: bool) -> anyhow::Result<Vec<&'a DynamicEvent>> {
    let ours = |entry: &DynamicEvent| force || inventory::is_ours(all, &entry.name);
    let mut patterns = Vec::new();
    for word in words {
        let pattern = Pattern::of(word);
        let mut found = all.iter().filter(|entry| pattern.matches(&entry.name)).peekable();
        if found.peek().is_none() {
            bail!(no_match("dynamic event", word, all.iter().map(|entry| &entry.name)));
        }
        let (own, foreign): (Vec<&DynamicEvent>, Vec<&DynamicEvent>) = found.partition(|entry| ours(entry));
        match foreign.first() {
            Some(entry) if own.is_empty() || !pattern.is_glob() => bail!(not_ours(&entry.name)),
            _ => patterns.push(pattern),
        }
    }
    let chosen: Vec<&DynamicEvent> =
        all.iter().filter(|entry| ours(entry) && patterns.iter().any(|pattern| pattern.matches(&entry.name))).collect();
    for entry in &chosen {
        if let Some(twin) = all.iter().find(|other| is_twin(entry, other) && !chosen.iter().any(|chosen| chosen.name == other.name)) {
            bail!("{} and {} have the same name and fields, so that the kernel deletes both or none: name both", entry.name, twin.name);
        }
    }
    Ok(chosen)
}

/// Whether the kernel cannot tell the two user events apart when one is deleted: they have the same name and fields,
/// but only one of them is registered with several formats.
fn is_twin(entry: &DynamicEvent, other: &DynamicEvent) -> bool {
    entry.listeners.is_some() && entry.line == other.line && entry.name != other.name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tracefs::EventName;
    use crate::probe::inventory::Creator;

    fn entry(name: &str, creator: Creator) -> DynamicEvent {
        let name = EventName::new("kprobes", name);
        DynamicEvent { name, line: String::new(), creator, hits: None, listeners: None }
    }

    #[test]
    fn twins_must_be_named_together() {
        let user = |group: &str, name: &str| {
            let name = EventName::new(group, name);
            DynamicEvent { name, line: "u:x u8 a".to_owned(), creator: Creator::ProbeAdd, hits: None, listeners: Some(Vec::new()) }
        };
        let all = [user("user_events", "x"), user("user_events_multi", "x.0")];
        let alone = choose(&all, &["user_events:x".to_owned()], false).unwrap_err().to_string();
        assert!(alone.contains("user_events_multi:x.0"), "{alone}");
        assert_eq!(choose(&all, &["x".to_owned(), "x.0".to_owned()], false).unwrap().len(), 2);
    }

    #[test]
    fn events_of_others_are_deleted_only_with_force() {
        let all = [entry("a1", Creator::ProbeAdd), entry("a2", Creator::Other), entry("b", Creator::Other)];
        let chosen = |words: &[&str], force| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let chosen = choose(&all, &words, force).map_err(|error| error.to_string())?;
            Ok::<Vec<String>, String>(chosen.into_iter().map(|entry| entry.name.name.clone()).collect())
        };
        assert_eq!(chosen(&["a*"], false).unwrap(), ["a1"]);
        assert_eq!(chosen(&["a*"], true).unwrap(), ["a1", "a2"]);
        assert_eq!(chosen(&["kprobes:a1", "*1"], false).unwrap(), ["a1"]);
        assert_eq!(chosen(&["a1", "a1"], false).unwrap(), ["a1"]);
        assert!(chosen(&["a2"], false).unwrap_err().starts_with("kprobes:a2 was not created by"));
        assert!(chosen(&["b*"], false).unwrap_err().starts_with("kprobes:b was not created by"));
        assert!(chosen(&["a1", "c"], false).unwrap_err().starts_with("no dynamic event matches `c`"));
    }
}
