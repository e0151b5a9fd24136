//! Tests of the tables' generator (with the unit tests in `beauty/gen/`), of the tables of this build, and of their
//! agreement with the installed headers and the running kernel.

#[path = "../beauty/files.rs"]
mod files;
#[path = "../beauty/gen/mod.rs"]
mod generator;
#[path = "../beauty/gen/report.rs"]
mod report;

#[path = "tables/commands.rs"]
mod commands;
#[path = "tables/constants.rs"]
mod constants;
#[path = "tables/coverage.rs"]
mod coverage;
#[path = "tables/examples.rs"]
mod examples;
#[path = "tables/generated.rs"]
mod generated;
#[path = "tables/headers.rs"]
mod headers;
#[path = "tables/kernel.rs"]
mod kernel;
#[path = "tables/layouts.rs"]
mod layouts;
#[path = "tables/reviewed.rs"]
mod reviewed;

/// Returns the rows of `beauty/`, which have no faults.
fn parsed_rows() -> generator::generate::Rows {
    let files = files::rows(std::path::Path::new("beauty")).expect("beauty");
    let mut faults = Vec::new();
    let rows = generator::generate::parse(&files, &mut faults);
    assert_eq!(faults, []);
    rows
}
