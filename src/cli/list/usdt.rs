//! `rtrace list usdt:PATH`: lists the USDT tracepoints of a program or library.

use crate::cli::{ExitCode, stdout};
use crate::probe::program::usdt;
use crate::probe::surroundings::Live;
use std::fmt::Write;
use std::path::Path;

/// Prints one line per tracepoint on stdout: PROVIDER:NAME, the number of its places in the code, and its arguments as
/// the program's ELF note has them.
///
/// # Errors
/// The file cannot be read or has no USDT tracepoints; stdout cannot be written.
pub fn list(path: &Path) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for one in usdt::list(path, &mut Live)? {
        let name = format!("{}:{}", one.provider, one.name).escape_debug().to_string();
        let places = if one.sites == 1 { "1 place".to_owned() } else { format!("{} places", one.sites) };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", format!("{name:<40} {places:>10}  {}", one.arguments.escape_debug()).trim_end());
    }
    stdout::print(text.as_bytes())
}
