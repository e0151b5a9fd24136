//! What the kernel may sum up, by the words that ask for it.

use super::traced_by;
use crate::plan::sums;

fn hindrance(words: &str) -> Option<&'static str> {
    sums::hindrance(&traced_by(words))
}

#[test]
fn only_what_sums_answer_is_left_to_the_kernel() {
    for summed in ["-s -a", "-s -e read,sched:sched_switch -p 1", "--errno-summary -a", "-s -F all --sched --summary-mode cgroup -a"] {
        assert_eq!(hindrance(summed), None, "{summed}");
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
        ("-s -e read,write --switch-on read -a", "switches"),
    ] {
        assert!(hindrance(each).is_some_and(|told| told.contains(why)), "{each}: {:?}", hindrance(each));
    }
}
