//! Programs of `tests/programs` that a test compiles when it runs, with the options that it needs.

use crate::machine::Machine;
use crate::needs::unsupported;
use std::process::Command;

/// Compiles a source below `tests/programs` to a file of this name. Without the compiler, reports that and returns
/// `None`.
pub fn compiled(machine: &Machine, compiler: &str, options: &[&str], source: &str, name: &str) -> Option<String> {
    let (from, output) = (format!("{}/tests/programs/{source}", env!("CARGO_MANIFEST_DIR")), machine.path(name));
    match Command::new(compiler).args(options).args(["-o", &output, &from]).output() {
        Ok(made) => {
            assert!(made.status.success(), "{compiler} {options:?} {source}: {}", String::from_utf8_lossy(&made.stderr));
            Some(output)
        }
        Err(error) => {
            unsupported(&format!("no {name}: {compiler}: {error}"));
            None
        }
    }
}
