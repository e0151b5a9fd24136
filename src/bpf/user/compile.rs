//! Compiles C files to BPF objects by clang, with rtrace's header on the include path.

use crate::sys::caller;
use anyhow::{Context, anyhow};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The header that programs include as `<rtrace.bpf.h>`.
const HEADER: &str = include_str!("rtrace.bpf.h");
const HEADER_NAME: &str = "rtrace.bpf.h";

/// Compiles a file. clang prints its own messages on stderr.
///
/// # Errors
/// There is no clang, or it rejects the file; the error then has the command line.
pub fn compile(source: &Path) -> anyhow::Result<Vec<u8>> {
    let scratch = tempfile::Builder::new().prefix("rtrace-").tempdir().context("cannot create a directory for clang's files")?;
    let dir = scratch.path();
    let object = dir.join("object.bpf.o");
    fs::write(dir.join(HEADER_NAME), HEADER).with_context(|| format!("cannot write {HEADER_NAME} to {}", dir.display()))?;
    // The environment variable CLANG names another compiler, as in rtrace's own build.
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| OsString::from("clang"));
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall"]).arg(format!("-D__TARGET_ARCH_{}", architecture()));
    command.arg("-I").arg(dir).args(system_headers()).arg("-c").arg(source).arg("-o").arg(&object);
    let status = caller::with_callers_signals(&mut command).status().map_err(|error| {
        anyhow!(
            "cannot run {}: {error}; it compiles {} (apt-get install clang), a .bpf.o file needs no compiler",
            clang.display(),
            source.display()
        )
    })?;
    if !status.success() {
        return Err(anyhow!("clang cannot compile {} ({status}); the command was\n    {}", source.display(), line(&command)));
    }
    fs::read(&object).with_context(|| format!("cannot read the object that clang made of {}", source.display()))
}

/// Returns the architecture's name in the kernel's build, which headers use to select the registers.
fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x86" }
}

/// Returns the options for Debian's headers of the architecture (`asm/types.h`), which clang does not search when it
/// compiles for BPF.
fn system_headers() -> Vec<OsString> {
    let dir = PathBuf::from(format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH));
    if dir.is_dir() { vec!["-idirafter".into(), dir.into()] } else { Vec::new() }
}

/// Returns a command line that a shell can execute.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(|word| {
        let word = word.to_string_lossy();
        let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=+,:@".contains(c));
        if is_plain { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_quoted_for_a_shell() {
        let mut command = Command::new("clang");
        command.args(["-I", "/tmp/a b", "it's", ""]);
        assert_eq!(line(&command), r"clang -I '/tmp/a b' 'it'\''s' ''");
    }
}
