//! How often probes were hit and missed: `kprobe_profile` and `uprobe_profile` of tracefs.
//!
//! Both files name a probe without its group, but list the probes in the order of `dynamic_events`, so probes of the
//! same name are matched by their order.

use super::dynamic_events::EventDefinition;
use super::grammar;
use crate::kernel::tracefs::TracePath;
use std::collections::VecDeque;

/// The counts of a probe since its creation, over all tasks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Hits that the kernel processed; the misses are not among them.
    pub hits: u64,
    /// Hits that were not recorded; the kernel counts them for kprobes only.
    pub misses: Option<u64>,
}

/// How often the files are read at most while other processes keep creating and removing probes.
const READINGS_MAX: usize = 100;

/// Returns the counts of each event. The kernel counts the hits of the probes on `p` and `r` lines only.
pub fn of(root: &TracePath, lines: &[EventDefinition]) -> Vec<Option<Hits>> {
    let read = |file: &str| String::from_utf8_lossy(&root.join(file).read().unwrap_or_default()).into_owned();
    let read_once = || assigned(&read("kprobe_profile"), &read("uprobe_profile"), lines);
    let mut counts = read_once();
    // The kernel emits the files in chunks and resumes by line number, so a line that is removed between two chunks
    // hides another line that still exists.
    let lacks = |counts: &[Option<Hits>]| lines.iter().zip(counts).any(|(line, hits)| line.line.starts_with(['p', 'r']) && hits.is_none());
    for _ in 1..READINGS_MAX {
        if !lacks(&counts) {
            break;
        }
        counts = counts.into_iter().zip(read_once()).map(|(hits, again)| hits.or(again)).collect();
    }
    counts
}

fn assigned(kprobes: &str, uprobes: &str, lines: &[EventDefinition]) -> Vec<Option<Hits>> {
    let mut kprobes: VecDeque<_> = kprobes.lines().filter_map(of_kernel).collect();
    let mut uprobes: VecDeque<_> = uprobes.lines().filter_map(of_program).collect();
    let mut counts = |listed: &EventDefinition| {
        let counted = match listed.line.as_bytes().first()? {
            b'p' | b'r' if grammar::is_on_file(&listed.line) => &mut uprobes,
            b'p' | b'r' => &mut kprobes,
            _ => return None,
        };
        next(counted, &listed.name.name)
    };
    lines.iter().map(&mut counts).collect()
}

/// Takes the next entry of this name. The entries before it belong to probes that were removed since `dynamic_events`
/// was read.
fn next(entries: &mut VecDeque<(String, Hits)>, name: &str) -> Option<Hits> {
    let at = entries.iter().position(|(entry, _)| entry == name)?;
    entries.drain(..=at).next_back().map(|(_, hits)| hits)
}

/// `NAME HITS MISSES`
fn of_kernel(line: &str) -> Option<(String, Hits)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let (hits, misses) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((name, Hits { hits, misses: Some(misses) }))
}

/// `PATH NAME HITS`
fn of_program(line: &str) -> Option<(String, Hits)> {
    let mut words = line.split_whitespace().rev();
    let hits = words.next()?.parse().ok()?;
    Some((words.next()?.to_owned(), Hits { hits, misses: None }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tracefs::EventName;

    fn listed(line: &str) -> EventDefinition {
        let name = line.split([':', ' ']).nth(1).unwrap();
        let (subsystem, name) = name.split_once('/').unwrap();
        EventDefinition { name: EventName::new(subsystem, name), line: line.to_owned() }
    }

    #[test]
    fn probes_of_one_name_are_matched_by_their_order() {
        let lines = ["p:a/open do_sys_open", "p:b/open /bin/x:0x10", "r:c/open do_sys_open", "s:synthetic/open u64 x", "e:d/open a.b"];
        let kprobes = "  open                    7               1\n  open                    8               0\n";
        let found = assigned(kprobes, "  /bin/x open                 9\n", &lines.map(listed));
        let hits = |hits, misses| Some(Hits { hits, misses });
        assert_eq!(found, [hits(7, Some(1)), hits(9, None), hits(8, Some(0)), None, None]);
    }

    #[test]
    fn a_probe_removed_meanwhile_is_skipped() {
        let found = assigned("  gone 1 0\n  here 2 0\nnonsense\n", "", &[listed("p:a/here x"), listed("p:a/new x")]);
        assert_eq!(found, [Some(Hits { hits: 2, misses: Some(0) }), None]);
    }
}
