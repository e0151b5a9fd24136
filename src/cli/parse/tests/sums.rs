//! Tests for which command lines the BPF programs may aggregate calls in the kernel.

use super::traced_by;
use crate::plan::sums;

fn why_records(words: &str) -> Option<&'static str> {
    sums::why_records(&traced_by(words))
}

#[test]
fn only_plain_summaries_are_aggregated_in_the_kernel() {
    for summed in ["-s -a", "-s -e read,sched:sched_switch -p 1", "--errno-summary -a", "-s -F all --sched --summary-mode cgroup -a"] {
        assert_eq!(why_records(summed), None, "{summed}");
    }
    for (each, why) in [
        ("-S -a", "lines"),
        ("-a", "lines"),
        ("-s --duration 5 -a", "--duration"),
        ("-s --failure -a", "--failure"),
        ("-s -e read --filter ret<0 -a", "--filter"),
        ("-s --filter ret<0 -a", "--filter"),
        ("-s --max-events 5 -a", "--max-events"),
        ("-s -e read/nr=5/ -a", "nr="),
        ("-s -e read,write --switch-on read -a", "--switch-on"),
    ] {
        assert!(why_records(each).is_some_and(|told| told.contains(why)), "{each}: {:?}", why_records(each));
    }
}
