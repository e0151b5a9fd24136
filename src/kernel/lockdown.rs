//! Kernel lockdown (kernel_lockdown(7)), which prevents even root from reading the kernel's memory.

use crate::kernel::mounts;
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io;

/// The file at the usual mount point of securityfs.
const USUAL: &str = "/sys/kernel/security/lockdown";

/// The message for a kernel that is locked down for confidentiality. Lockdown for integrity does not restrict rtrace.
pub const REFUSES: &str = "the kernel is locked down for confidentiality and lets nobody trace it, root included: \
                           boot it without lockdown=confidentiality, or see kernel_lockdown(7)";

/// Whether the kernel refuses tracing because it is locked down. It is `false` if the level cannot be read.
pub fn refuses() -> bool {
    level().is_ok_and(|text| is_confidential(&text))
}

/// Replaces an error by the lockdown's message if the kernel is locked down. In such a kernel, tracefs looks empty and
/// BPF programs look invalid, so that other messages mislead.
pub fn explain(error: anyhow::Error) -> anyhow::Error {
    if refuses() { anyhow::anyhow!(REFUSES) } else { error }
}

/// Reads the file's text: all levels, with the present one in brackets.
fn level() -> io::Result<String> {
    if let Ok(text) = std::fs::read_to_string(USUAL) {
        return Ok(text);
    }
    // securityfs is not mounted, so it is read through a detached mount.
    let securityfs = mounts::detached("securityfs")?;
    let file = openat(securityfs, "lockdown", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(File::from(file))
}

fn is_confidential(text: &str) -> bool {
    text.contains("[confidentiality]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_level_is_in_brackets() {
        assert!(is_confidential("none integrity [confidentiality]\n"));
        assert!(!is_confidential("none [integrity] confidentiality\n"));
        assert!(!is_confidential("[none] integrity confidentiality\n"));
    }
}
