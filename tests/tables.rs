//! The generator of the tables (its own tests are in `beauty/gen/`), what it made, and whether the running kernel agrees.

#[path = "../beauty/files.rs"]
mod files;
#[path = "../beauty/gen/mod.rs"]
mod generator;
#[path = "../beauty/gen/report.rs"]
mod report;

#[path = "tables/examples.rs"]
mod examples;
#[path = "tables/headers.rs"]
mod headers;
#[path = "tables/kernel.rs"]
mod kernel;
#[path = "tables/layouts.rs"]
mod layouts;
#[path = "tables/made.rs"]
mod made;
