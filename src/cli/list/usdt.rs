//! `rtrace list usdt:PATH`: lists the USDT tracepoints of a program or library.

use super::json;
use crate::cli::{ExitCode, stdout};
use crate::probe::program::usdt::{self, UsdtTracepoint};
use crate::probe::surroundings::Live;
use crate::request::AnswerFormat;
use std::path::Path;

/// Prints one line per tracepoint on stdout: PROVIDER:NAME, the number of its places in the code, and its arguments as
/// the program's ELF note has them.
///
/// # Errors
/// The file cannot be read or has no USDT tracepoints; stdout cannot be written.
pub fn list(path: &Path, format: AnswerFormat) -> anyhow::Result<ExitCode> {
    let found = usdt::list(path, &mut Live)?;
    match format {
        AnswerFormat::Text => stdout::print(found.iter().map(line).collect::<String>().as_bytes()),
        AnswerFormat::Json => crate::cli::json::print("list", found.iter().map(json::usdt)),
    }
}

fn line(one: &UsdtTracepoint) -> String {
    let name = format!("{}:{}", one.provider, one.name).escape_debug().to_string();
    let places = if one.sites == 1 { "1 place".to_owned() } else { format!("{} places", one.sites) };
    format!("{}\n", format!("{name:<40} {places:>10}  {}", one.arguments.escape_debug()).trim_end())
}
