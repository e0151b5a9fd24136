//! `rtrace probe del`: takes away what `rtrace probe add` made, and what others made if it must be.

use super::add::{explained, not_ours};
use super::pattern::{Pattern, nothing};
use crate::cli::ExitCode;
use crate::kernel::tracefs::Tracefs;
use crate::probe::change::{Change, RemoveError};
use crate::probe::inventory::{self, Entry};
use anyhow::bail;

/// Deletes the events of these patterns. A glob means rtrace's own only, without `force`.
///
/// # Errors
/// A pattern matches nothing, or only what is not rtrace's (then nothing was deleted); one is in use or cannot be deleted (the others were).
pub fn delete(tracefs: &Tracefs, patterns: &[String], force: bool) -> anyhow::Result<ExitCode> {
    let all = inventory::read(tracefs)?;
    let mut chosen = choose(&all, patterns, force)?;
    // Events may hang on those that were made before them.
    chosen.reverse();
    let mut change = Change::new(tracefs);
    let mut failed = Vec::new();
    for entry in chosen {
        match change.remove(entry) {
            Ok(()) => {}
            // It went with another: probes of one name do, and twins.
            Err(RemoveError::Gone(_)) => {}
            Err(error) => failed.push(format!("{:#}", explained(tracefs, entry, &all, error))),
        }
    }
    let (_, written) = change.keep();
    match failed.is_empty() {
        true => written.map(|()| ExitCode::Success),
        false => bail!(failed.join("\nrtrace: ")),
    }
}

fn choose<'a>(all: &'a [Entry], words: &[String], force: bool) -> anyhow::Result<Vec<&'a Entry>> {
    let ours = |entry: &Entry| force || inventory::is_ours(all, &entry.name);
    let mut patterns = Vec::new();
    for word in words {
        let pattern = Pattern::of(word);
        let mut found = all.iter().filter(|entry| pattern.matches(&entry.name)).peekable();
        if found.peek().is_none() {
            bail!(nothing("dynamic event", word, all.iter().map(|entry| &entry.name)));
        }
        let (own, foreign): (Vec<&Entry>, Vec<&Entry>) = found.partition(|entry| ours(entry));
        match foreign.first() {
            Some(entry) if own.is_empty() || !pattern.is_glob() => bail!(not_ours(&entry.name)),
            _ => patterns.push(pattern),
        }
    }
    let chosen: Vec<&Entry> =
        all.iter().filter(|entry| ours(entry) && patterns.iter().any(|pattern| pattern.matches(&entry.name))).collect();
    for entry in &chosen {
        if let Some(twin) = all.iter().find(|other| is_twin(entry, other) && !chosen.iter().any(|chosen| chosen.name == other.name)) {
            bail!("{} and {} have the same name and fields, so that the kernel deletes both or none: name both", entry.name, twin.name);
        }
    }
    Ok(chosen)
}

/// A user event that the kernel cannot tell from the other: one is of several formats, the other is not.
fn is_twin(entry: &Entry, other: &Entry) -> bool {
    entry.listeners.is_some() && entry.line == other.line && entry.name != other.name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tracefs::EventName;
    use crate::probe::inventory::Whose;

    fn entry(name: &str, whose: Whose) -> Entry {
        let name = EventName::new("kprobes", name);
        Entry { name, line: String::new(), whose, hits: None, listeners: None }
    }

    #[test]
    fn twins_go_together() {
        let user = |group: &str, name: &str| {
            let name = EventName::new(group, name);
            Entry { name, line: "u:x u8 a".to_owned(), whose: Whose::ProbeAdd, hits: None, listeners: Some(Vec::new()) }
        };
        let all = [user("user_events", "x"), user("user_events_multi", "x.0")];
        let alone = choose(&all, &["user_events:x".to_owned()], false).unwrap_err().to_string();
        assert!(alone.contains("user_events_multi:x.0"), "{alone}");
        assert_eq!(choose(&all, &["x".to_owned(), "x.0".to_owned()], false).unwrap().len(), 2);
    }

    #[test]
    fn only_ones_own_unless_forced() {
        let all = [entry("a1", Whose::ProbeAdd), entry("a2", Whose::Other), entry("b", Whose::Other)];
        let chosen = |words: &[&str], force| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let chosen = choose(&all, &words, force).map_err(|error| error.to_string())?;
            Ok::<Vec<String>, String>(chosen.into_iter().map(|entry| entry.name.name.clone()).collect())
        };
        assert_eq!(chosen(&["a*"], false).unwrap(), ["a1"]);
        assert_eq!(chosen(&["a*"], true).unwrap(), ["a1", "a2"]);
        assert_eq!(chosen(&["kprobes:a1", "*1"], false).unwrap(), ["a1"]);
        assert_eq!(chosen(&["a1", "a1"], false).unwrap(), ["a1"]);
        assert!(chosen(&["a2"], false).unwrap_err().starts_with("kprobes:a2 was not made by"));
        assert!(chosen(&["b*"], false).unwrap_err().starts_with("kprobes:b was not made by"));
        assert!(chosen(&["a1", "c"], false).unwrap_err().starts_with("no dynamic event matches `c`"));
    }
}
