//! Names of events on the command line of `rtrace probe`: `group:event`, `group/event` or `event`. Each part may be a
//! glob.

use crate::kernel::tracefs::EventName;
use crate::text::glob;
use crate::text::near::{hint, nearest};

/// A pattern for names of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    group: String,
    event: String,
}

impl Pattern {
    /// Parses a word. Without a group, the pattern matches events of all groups.
    pub fn of(word: &str) -> Pattern {
        let (group, event) = word.split_once([':', '/']).unwrap_or(("*", word));
        Pattern { group: group.to_owned(), event: event.to_owned() }
    }

    /// Returns whether both parts of the pattern match the name.
    pub fn matches(&self, name: &EventName) -> bool {
        let matches = |pattern: &str, text: &str| glob::matches(pattern.as_bytes(), text.as_bytes());
        matches(&self.group, &name.subsystem) && matches(&self.event, &name.name)
    }

    /// Whether the pattern may match several events by a wildcard that the user typed.
    pub fn is_glob(&self) -> bool {
        self.group != "*" && glob::is_pattern(&self.group) || glob::is_pattern(&self.event)
    }

    /// Returns the pattern for the group; `*` if the user typed no group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the pattern for the event's name in its group.
    pub fn event(&self) -> &str {
        &self.event
    }
}

/// Returns the error message for a word that matches none of these events.
pub fn no_match<'a>(noun: &str, word: &str, names: impl Iterator<Item = &'a EventName>) -> String {
    let has_group = word.contains([':', '/']);
    let names: Vec<String> = names.map(|name| if has_group { name.to_string() } else { name.name.clone() }).collect();
    let near = nearest(&word.replace('/', ":"), names.iter().map(String::as_str), 4);
    format!("no {noun} matches `{}`{}", word.escape_debug(), hint(&near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_groups_and_globs() {
        let open = EventName::new("kprobes", "open");
        for word in ["open", "kprobes:open", "kprobes/open", "k*:o*", "*:open", "o?en"] {
            assert!(Pattern::of(word).matches(&open), "{word}");
        }
        for word in ["ope", "uprobes:open", "kprobes:", "probes/open"] {
            assert!(!Pattern::of(word).matches(&open), "{word}");
        }
        assert!(Pattern::of("k*:open").is_glob() && Pattern::of("o*").is_glob() && !Pattern::of("open").is_glob());
    }

    #[test]
    fn similar_names_are_suggested() {
        let names = [EventName::new("kprobes", "open_file"), EventName::new("kprobes", "close")];
        assert_eq!(no_match("probe", "clsoe", names.iter()), "no probe matches `clsoe`; similar: close");
        assert_eq!(no_match("probe", "kprobes/clsoe", names.iter()), "no probe matches `kprobes/clsoe`; similar: kprobes:close");
    }
}
