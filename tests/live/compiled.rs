//! Programs of `tests/programs` that are compiled when a test runs, in the way that it wants.

use crate::machine::Machine;
use crate::needs::unsupported;
use std::process::Command;

/// Compiles a source below `tests/programs` to a file of this name; without the compiler, says so and gives nothing.
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
