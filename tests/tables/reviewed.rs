//! Which headers the lists in `tests/snapshots/` were reviewed with, and what tests do with what other headers bring or
//! lack. Distributions add constants of later kernels to the headers of older ones at any time, so that another
//! machine may have headers that nobody has reviewed: that is reported, and is no fault of the rows. Values that
//! contradict rows are.

use crate::files::Headers;
use crate::generator::generate::is_ahead;
use crate::generator::header::Target;
use crate::generator::library::Library;
use crate::report;
use std::collections::HashMap;
use std::io::Write;
use std::sync::LazyLock;

/// The version and the hash of the headers that were reviewed. With these headers, nothing may differ from the lists.
/// With others, `.ci/run` says that this was not checked.
const REVIEWED: &str = include_str!("../snapshots/headers.txt");

/// The number of names that a report in one line shows.
const SHOWN_IN_LINE: usize = 8;

/// The number of lines that a failure shows.
const SHOWN: usize = 200;

/// The version and the hash of the installed headers.
static INSTALLED: LazyLock<String> = LazyLock::new(|| {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    report::identity(&load, &report::header_names(&headers.directories))
});

/// Returns the version of the headers, such as `6.1.192`.
pub fn version() -> &'static str {
    INSTALLED.split(' ').next().unwrap_or_default()
}

/// Returns whether the headers are at least those of this version of Linux.
pub fn are_of(major: u32, minor: u32) -> bool {
    let mut numbers = version().split('.').map_while(|number| number.parse().ok());
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}

/// Returns whether the headers are newer than the rows.
pub fn are_ahead() -> bool {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    is_ahead(&Library::new(&load, Target::X86_64, HashMap::new()))
}

/// Returns whether these headers were reviewed completely.
pub fn are_reviewed() -> bool {
    REVIEWED.trim() == *INSTALLED
}

/// Writes a line that is shown although the test passes.
pub fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Reports in one line what these headers bring that was not reviewed.
///
/// # Panics
/// Panics if the headers were reviewed: `advice` says what to do then.
pub fn brings(what: &str, advice: &str, found: &[String]) {
    if found.is_empty() {
        return;
    }
    assert!(!are_reviewed(), "{} {what}: {advice}:\n{}", found.len(), found[..found.len().min(SHOWN)].join("\n"));
    report(&format!("NOT REVIEWED: the headers of Linux {} bring {} {what}: {}", version(), found.len(), in_line(found)));
}

/// Reports in one line what these headers lack that rows have.
pub fn lacks(what: &str, missing: &[String]) {
    if !missing.is_empty() {
        report(&format!("SKIPPED: the headers of Linux {} lack {} {what}: {}", version(), missing.len(), in_line(missing)));
    }
}

fn in_line(names: &[String]) -> String {
    let shown = names[..names.len().min(SHOWN_IN_LINE)].join(", ");
    let rest = names.len().saturating_sub(SHOWN_IN_LINE);
    if rest > 0 { format!("{shown}, and {rest} others") } else { shown }
}

#[test]
fn a_report_has_one_line() {
    let names: Vec<String> = (0..10).map(|number| format!("NAME_{number}")).collect();
    let line = in_line(&names);
    assert!(line.starts_with("NAME_0, NAME_1") && line.ends_with("NAME_7, and 2 others"), "{line}");
    assert_eq!(in_line(&names[..2]), "NAME_0, NAME_1");
}
