//! What is refused where rights are lent, by the words that ask for it.

use super::traced_by;
use crate::plan::own_only;

fn hindrance(words: &str) -> Option<&'static str> {
    own_only::hindrances(&traced_by(words)).find_map(|(asked, why)| asked.then_some(why))
}

#[test]
fn what_is_of_others_is_refused_by_the_word_that_asks_for_it() {
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
    ] {
        let why = hindrance(words).unwrap_or_else(|| panic!("{words}"));
        assert!(why.starts_with(beginning), "{words}: {why}");
    }
    for words in ["ls", "-p 1", "-t 1 -s", "-e openat,!sched:* ls", "--call-graph fp ls", "--engine bpf -s ls"] {
        assert_eq!(hindrance(words), None, "{words}");
    }
}
