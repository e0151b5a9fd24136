//! Compares the constants of all installed headers with the rows.

use crate::files::Headers;
use crate::{report, reviewed};
use std::collections::HashSet;

/// The constants that no row had when the list was last reviewed, and the headers that no table read. Most are masks,
/// sizes and limits, parts of packets and files, or constants of single drivers; others still need a row.
const REVIEWED: &str = include_str!("../snapshots/constants.txt");

#[test]
fn constants_of_the_installed_headers_have_rows_or_were_reviewed() {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    let parsed = crate::parsed_rows();
    let names = report::header_names(&headers.directories);
    let without_row = report::without_row(&parsed, &load, &names);
    assert!(names.len() > 500 && without_row.len() > 1000, "{} headers, {} constants", names.len(), without_row.len());
    let known: HashSet<&str> = REVIEWED.lines().collect();
    let new: Vec<String> = without_row.into_iter().filter(|line| !known.contains(line.as_str())).collect();
    let advice = "give those a row that a call can have, \
                  then cargo run --example uapi -- constants > tests/snapshots/constants.txt";
    reviewed::brings("constants that are neither in beauty/tables/ nor in tests/snapshots/constants.txt", advice, &new);
}
