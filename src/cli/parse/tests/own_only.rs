//! Tests that an rtrace with lent privileges refuses command lines that would trace other users' tasks.

use super::traced_by;
use crate::plan::own_only;

fn reason(words: &str) -> Option<&'static str> {
    own_only::root_only(&traced_by(words)).find_map(|(asked, why)| asked.then_some(why))
}

#[test]
fn options_that_trace_other_users_are_refused_by_name() {
    for (words, beginning) in [
        ("-a", "-a "),
        ("-C 0", "-C "),
        ("-u root", "-u "),
        ("-G /x", "-G "),
        ("--container x", "--container "),
        ("-e sched:* ls", "events other "),
        ("-e x.bpf.c ls", "BPF programs "),
        ("--switch-on sched:x ls", "events other "),
        ("-F all ls", "page faults "),
        ("--sched ls", "--sched "),
        ("--kernel-stack ls", "kernel stacks "),
        ("-e openat/kernel-stack/ ls", "kernel stacks "),
        ("--engine tracepoint ls", "--engine "),
        ("--lossless ls", "--lossless "),
    ] {
        let why = reason(words).unwrap_or_else(|| panic!("{words}"));
        assert!(why.starts_with(beginning), "{words}: {why}");
    }
    for words in ["ls", "-p 1", "-t 1 -s", "-e openat,!sched:* ls", "--call-graph fp ls", "--engine bpf -s ls"] {
        assert_eq!(reason(words), None, "{words}");
    }
}
