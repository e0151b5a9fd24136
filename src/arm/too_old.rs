//! Kernels that do not take rtrace's BPF programs because of their age.

use super::fallback;
use crate::kernel::{descriptors, machine};

/// The first kernel that takes the programs: they use kernel functions and map types that came one by one until then.
const FIRST: (u32, u32) = (6, 1);

/// Puts the kernel's age in the place of a reason, if that is why programs were refused. A kernel is only called too old
/// after it has refused them, because distributions take newer features into old kernels. Where rights are missing, that
/// comes first, whatever the kernel's age is.
pub(super) fn explain(refused: anyhow::Error) -> anyhow::Error {
    // Neither is said by the kernel: a build without the programs, or a limit on descriptors.
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
    TooOld(format!("Linux {major}.{minor} is older than {}.{}, the first that takes rtrace's BPF programs", FIRST.0, FIRST.1)).into()
}

/// The kernel is too old.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct TooOld(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_kernel_is_the_reason_only_where_it_refused_for_no_other() {
        let said = |release, why: &'static str| explain_on(release, anyhow::anyhow!(why)).to_string();
        let old = "Linux 5.10 is older than 6.1, the first that takes rtrace's BPF programs";
        assert_eq!(said("5.10.0-32-amd64", "Invalid argument"), old);
        assert_eq!(said("6.1.0-31-amd64", "Invalid argument"), "Invalid argument");
        assert_eq!(said("5.14.0-503.el9.x86_64", "Operation not permitted"), "Operation not permitted");
    }
}
