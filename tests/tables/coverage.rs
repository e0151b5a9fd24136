//! Compares the list of what rtrace shows of each argument with the reviewed one, and limits what is not decoded.

use crate::reviewed;
use std::collections::HashSet;

/// The class of each argument, command, member and attribute: reviewed like code.
const REVIEWED: &str = include_str!("../snapshots/coverage.txt");

/// The same list of this build.
const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/coverage.txt"));

/// The share of arguments, in percent, that may be known by their type only.
const BY_TYPE_MAX: f64 = 2.0;

/// Why the memory of some calls has no row.
const IS_UNKNOWN: &str = "the command is not known";

/// Pointers to memory that no row describes, and why: a syscall, and the argument with the values that select it.
const WITHOUT_ROW: [(&str, &str, &str); 3] = [
    ("quotactl", "cmd=other addr", IS_UNKNOWN),
    ("quotactl_fd", "cmd=other addr", IS_UNKNOWN),
    ("readdir", "dirent", "the length of the name is in the structure, in 16 bits, which a row cannot say"),
];

#[test]
fn the_generated_list_is_the_reviewed_one() {
    if !reviewed::are_reviewed() {
        return report_difference();
    }
    let difference = GENERATED.lines().zip(REVIEWED.lines()).position(|(generated, reviewed)| generated != reviewed);
    let (generated, reviewed) = (GENERATED.lines().count(), REVIEWED.lines().count());
    if let Some(line) = difference.or((generated != reviewed).then_some(generated.min(reviewed))) {
        let show = |text: &str| text.lines().nth(line).unwrap_or("(its end)").to_string();
        panic!(
            "what is decoded differs from tests/snapshots/coverage.txt, first in line {}:\n  reviewed:  {}\n  generated: {}\n\
             if the change is intended: cp {}/coverage.txt tests/snapshots/coverage.txt, and review the output of git diff",
            line + 1,
            show(REVIEWED),
            show(GENERATED),
            env!("OUT_DIR")
        );
    }
}

/// Reports how many lines differ. With other headers, the list has other commands, and counts of them.
fn report_difference() {
    let (own, known): (HashSet<&str>, HashSet<&str>) = (GENERATED.lines().collect(), REVIEWED.lines().collect());
    let new = lines_without(GENERATED, &known);
    let lacking = lines_without(REVIEWED, &own);
    reviewed::brings("lines of what is decoded that are not in tests/snapshots/coverage.txt", "", &new);
    reviewed::lacks("lines of tests/snapshots/coverage.txt", &lacking);
}

/// Returns the lines of a list that are not among the others.
fn lines_without(list: &str, others: &HashSet<&str>) -> Vec<String> {
    list.lines().filter(|line| !others.contains(line)).map(|line| line.trim().to_owned()).collect()
}

/// Returns the arguments of the list: the syscall, the argument with the values that select it, and the class.
fn arguments() -> Vec<(&'static str, &'static str, &'static str)> {
    let begin = GENERATED.find("\n\n_llseek\n").expect("the first syscall");
    let mut call = "";
    let mut arguments = Vec::new();
    for line in GENERATED[begin + 2..].lines().take_while(|line| !line.starts_with("struct ")) {
        match line.strip_prefix("    ") {
            Some(rest) => {
                let class = CLASSES.iter().find_map(|class| Some((*class, rest.find(&format!(" {class}"))?)));
                let (class, at) = class.unwrap_or_else(|| panic!("{call}: no class in `{line}`"));
                arguments.push((call, rest[..at].trim_end(), class));
            }
            None => call = line,
        }
    }
    arguments
}

const CLASSES: [&str; 10] = ["by command", "decoded", "number", "by type", "bytes", "unknown", "address", "opaque", "hidden", "unused"];

#[test]
fn a_row_describes_the_memory_that_arguments_point_to() {
    let is_excused = |call: &str, place: &str| WITHOUT_ROW.iter().any(|(known, of, _)| (*known, *of) == (call, place));
    let opaque: Vec<_> = arguments().into_iter().filter(|(_, _, class)| *class == "opaque").collect();
    let missing = opaque.iter().filter(|(call, place, _)| !is_excused(call, place));
    let missing: Vec<String> = missing.map(|(call, place, _)| format!("{call} {place}")).collect();
    assert!(missing.is_empty(), "describe this memory in beauty/structs/, or say here why that is not possible: {missing:#?}");
    let is_opaque = |call: &str, place: &str| opaque.iter().any(|(of, at, _)| (*of, *at) == (call, place));
    let stale: Vec<_> = WITHOUT_ROW.iter().filter(|(call, place, _)| !is_opaque(call, place)).collect();
    assert!(stale.is_empty(), "these have a row now: {stale:?}");
}

#[test]
fn few_arguments_are_known_by_type_only() {
    let is_counted = |(_, _, class): &(&str, &str, &str)| !matches!(*class, "by command" | "unused");
    let counted: Vec<(&str, &str, &str)> = arguments().into_iter().filter(is_counted).collect();
    let by_type = counted.iter().filter(|(_, _, class)| *class == "by type");
    let by_type: Vec<String> = by_type.map(|(call, place, _)| format!("{call} {place}")).collect();
    let percent = by_type.len() as f64 * 100.0 / counted.len() as f64;
    assert!(counted.len() > 2000, "only {} arguments are listed", counted.len());
    assert!(percent <= BY_TYPE_MAX, "{percent:.1} % of the arguments are shown by their type only:\n{}", by_type.join("\n"));
}
