//! Kernel lockdown (kernel_lockdown(7)): a kernel that keeps even root from reading its memory.

use crate::kernel::mounts;
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io;

/// Where systems mount securityfs.
const USUAL: &str = "/sys/kernel/security/lockdown";

/// What is said where the kernel is locked down for confidentiality. Locked down for integrity alone, it lets rtrace do
/// all that it does.
pub const REFUSES: &str = "the kernel is locked down for confidentiality and lets nobody trace it, root included: \
                           boot it without lockdown=confidentiality, or see kernel_lockdown(7)";

/// Whether the kernel refuses tracing because it is locked down. `false` if that cannot be known.
pub fn refuses() -> bool {
    level().is_ok_and(|text| is_confidential(&text))
}

/// Names the lockdown as the reason of an error, if there is one: it makes tracefs look empty and BPF programs look bad.
pub fn explain(error: anyhow::Error) -> anyhow::Error {
    if refuses() { anyhow::anyhow!(REFUSES) } else { error }
}

/// The file's text: all levels, with the one that holds in brackets.
fn level() -> io::Result<String> {
    if let Ok(text) = std::fs::read_to_string(USUAL) {
        return Ok(text);
    }
    // Nobody mounted securityfs: a mount that nobody sees will do.
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
    fn the_level_that_holds_stands_in_brackets() {
        assert!(is_confidential("none integrity [confidentiality]\n"));
        assert!(!is_confidential("none [integrity] confidentiality\n"));
        assert!(!is_confidential("[none] integrity confidentiality\n"));
    }
}
