//! The answers of `rtrace list`, `rtrace check`, `rtrace probe list` and `rtrace diff` with `--json`: one object per
//! line, as rtrace-json(5) describes them.

use super::{ExitCode, stdout};
use crate::beauty::json::SCHEMA;
use crate::text::json;
use serde::Serialize;

/// The first object of every answer.
#[derive(Serialize)]
struct Head {
    /// The command: `list`, `check`, `probe_list` or `diff`.
    r#type: &'static str,
    schema: u64,
    rtrace: &'static str,
}

/// Returns the lines of an answer: an object with the command and the schema's version, then the objects that the
/// command found.
///
/// # Errors
/// An object cannot be represented in JSON.
pub fn lines<T: Serialize>(command: &'static str, objects: impl IntoIterator<Item = T>) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    json::line(&mut out, &Head { r#type: command, schema: SCHEMA, rtrace: env!("CARGO_PKG_VERSION") })?;
    objects.into_iter().try_for_each(|object| json::line(&mut out, &object))?;
    Ok(out)
}

/// Prints the lines of an answer on stdout.
///
/// # Errors
/// An object cannot be represented in JSON, or stdout cannot be written.
pub fn print<T: Serialize>(command: &'static str, objects: impl IntoIterator<Item = T>) -> anyhow::Result<ExitCode> {
    stdout::print(&lines(command, objects)?)
}
