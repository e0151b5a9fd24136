//! Events as `rtrace probe` is told of them: `group:event`, `group/event`, `event`, each part a glob.

use crate::kernel::tracefs::EventName;
use crate::text::glob;
use crate::text::near::{hint, nearest};

/// Which events are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    group: String,
    event: String,
}

impl Pattern {
    /// Without a group, the events of all.
    pub fn of(word: &str) -> Pattern {
        let (group, event) = word.split_once([':', '/']).unwrap_or(("*", word));
        Pattern { group: group.to_owned(), event: event.to_owned() }
    }

    pub fn matches(&self, name: &EventName) -> bool {
        let matches = |pattern: &str, text: &str| glob::matches(pattern.as_bytes(), text.as_bytes());
        matches(&self.group, &name.subsystem) && matches(&self.event, &name.name)
    }

    /// It may mean many, so that none in particular is meant.
    pub fn is_glob(&self) -> bool {
        self.group != "*" && glob::is_pattern(&self.group) || glob::is_pattern(&self.event)
    }

    pub fn group(&self) -> &str {
        &self.group
    }

    pub fn event(&self) -> &str {
        &self.event
    }
}

/// The sentence when a word means none of these events.
pub fn nothing<'a>(noun: &str, word: &str, names: impl Iterator<Item = &'a EventName>) -> String {
    let whole = word.contains([':', '/']);
    let names: Vec<String> = names.map(|name| if whole { name.to_string() } else { name.name.clone() }).collect();
    let near = nearest(&word.replace('/', ":"), names.iter().map(String::as_str), 4);
    format!("no {noun} matches `{}`{}", word.escape_debug(), hint(&near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_globs() {
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
    fn near_names() {
        let names = [EventName::new("kprobes", "open_file"), EventName::new("kprobes", "close")];
        assert_eq!(nothing("probe", "clsoe", names.iter()), "no probe matches `clsoe`; near: close");
        assert_eq!(nothing("probe", "kprobes/clsoe", names.iter()), "no probe matches `kprobes/clsoe`; near: kprobes:close");
    }
}
