//! Compares the constants of all installed headers with the rows.

use crate::files::Headers;
use crate::report;
use std::collections::HashSet;

/// The constants that no row had when the list was last reviewed, and the headers that no table read. Most are masks,
/// sizes and limits, parts of packets and files, or constants of single drivers; others still need a row.
const REVIEWED: &str = include_str!("../snapshots/constants.txt");

/// The number of lines that a failure shows.
const SHOWN: usize = 200;

#[test]
fn every_constant_of_the_installed_headers_has_a_row_or_was_reviewed() {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    let parsed = crate::parsed_rows();
    let names = report::header_names(&headers.directories);
    let without_row = report::without_row(&parsed, &load, &names);
    assert!(names.len() > 500 && without_row.len() > 1000, "{} headers, {} constants", names.len(), without_row.len());
    let reviewed: HashSet<&str> = REVIEWED.lines().collect();
    let new: Vec<&str> = without_row.iter().map(String::as_str).filter(|line| !reviewed.contains(line)).collect();
    assert!(
        new.is_empty(),
        "{} constants are neither in beauty/tables/ nor in tests/snapshots/constants.txt: give those a row that a call can have, \
         then cargo run --example uapi -- constants > tests/snapshots/constants.txt:\n{}",
        new.len(),
        new[..new.len().min(SHOWN)].join("\n")
    );
}
