//! `rtrace probe list`: every dynamic event of the kernel, a line each.
//!
//! `EVENT OWNER COUNTS DEFINITION`. OWNER is `probe-add`, `run:PID` for what a living rtrace made for itself, `gone:PID` for what one that was killed left, `other`. COUNTS is
//! `hits=N`, of kprobes also `misses=N`; of user events `listeners=NAME,...`.

use super::pattern::{Pattern, nothing};
use crate::kernel::tracefs::Tracefs;
use crate::probe::inventory::{self, Entry, Whose};
use crate::say;
use crate::text::escape;
use anyhow::bail;
use std::fmt::Write;

/// The lines of the events that any of the patterns matches; of all without one.
///
/// # Errors
/// The kernel's files cannot be read; a pattern matches nothing.
pub fn list(tracefs: &Tracefs, patterns: &[String]) -> anyhow::Result<String> {
    let all = inventory::read(tracefs)?;
    for word in patterns {
        let pattern = Pattern::of(word);
        if !all.iter().any(|entry| pattern.matches(&entry.name)) {
            bail!(nothing("dynamic event", word, all.iter().map(|entry| &entry.name)));
        }
    }
    let patterns: Vec<Pattern> = patterns.iter().map(|word| Pattern::of(word)).collect();
    if all.is_empty() {
        say!("rtrace: this kernel has no dynamic events now");
    }
    let asked = |entry: &&Entry| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(&entry.name));
    Ok(all.iter().filter(asked).map(line).collect())
}

fn line(entry: &Entry) -> String {
    let mut line = format!("{:<32} {:<10} {:<22} ", escaped(&entry.name.to_string()), owner(entry), counts(entry));
    // As tracefs takes it, but that it separates some words by tabs.
    let _ = writeln!(line, "{}", escaped(&entry.line.replace('\t', " ")));
    line
}

/// One word.
pub fn owner(entry: &Entry) -> String {
    match entry.whose {
        Whose::ProbeAdd => "probe-add".to_owned(),
        Whose::Run(run) => format!("{}:{}", if run.is_gone() { "gone" } else { "run" }, run.pid()),
        Whose::Other => "other".to_owned(),
    }
}

/// What the kernel counts of it.
pub fn counts(entry: &Entry) -> String {
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

/// For a line of text. Backslashes that a definition has of itself stay, so that it can be given back to the kernel, unless something else is escaped.
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
    fn a_line_an_event() {
        let of = |name, text: &str, hits, listeners| line(&Entry { name, line: text.to_owned(), whose: Whose::Other, hits, listeners });
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
