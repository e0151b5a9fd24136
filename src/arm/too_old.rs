//! Kernels that are too old for rtrace's BPF programs.

use super::fallback;
use crate::kernel::{descriptors, machine};

/// The first kernel that supports the programs: they use kernel functions and map types that were added up to that
/// version.
const FIRST: (u32, u32) = (6, 1);

/// Replaces an error by the kernel's age if that is why the programs were rejected. A kernel is called too old only
/// after it has rejected them, because distributions backport features. Missing permissions are reported instead,
/// whatever the kernel's age is.
pub(super) fn explain(refused: anyhow::Error) -> anyhow::Error {
    // Neither error comes from the kernel: a build without the programs, or a limit of descriptors.
    if cfg!(not(feature = "bpf")) || descriptors::reason(&refused).is_some() {
        return refused;
    }
    match machine::release() {
        Ok(release) => explain_on(&release, refused),
        Err(_) => refused,
    }
}

fn explain_on(release: &str, refused: anyhow::Error) -> anyhow::Error {
    let Some((major, minor)) = machine::version(release).filter(|version| *version < FIRST) else { return refused };
    if fallback::is_no_permission(&format!("{refused:#}")) {
        return refused;
    }
    TooOld(format!("Linux {major}.{minor} is older than {}.{}, the first version that supports rtrace's BPF programs", FIRST.0, FIRST.1))
        .into()
}

/// The error of a kernel that is too old.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct TooOld(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_s_age_is_reported_only_without_another_reason() {
        let message = |release, why: &'static str| explain_on(release, anyhow::anyhow!(why)).to_string();
        let old = "Linux 5.10 is older than 6.1, the first version that supports rtrace's BPF programs";
        assert_eq!(message("5.10.0-32-amd64", "Invalid argument"), old);
        assert_eq!(message("6.1.0-31-amd64", "Invalid argument"), "Invalid argument");
        assert_eq!(message("5.14.0-503.el9.x86_64", "Operation not permitted"), "Operation not permitted");
    }
}
