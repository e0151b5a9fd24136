//! The names of the groups of syscalls.

use crate::beauty::row::Groups;

/// The groups by their names without the percent sign, in the order of `rtrace list groups`. `%%stat` and `%%statfs`
/// are strace's names.
pub const GROUPS: &[(&str, Groups)] = &[
    ("file", Groups::FILE),
    ("desc", Groups::DESC),
    ("process", Groups::PROCESS),
    ("network", Groups::NETWORK),
    ("net", Groups::NETWORK),
    ("signal", Groups::SIGNAL),
    ("ipc", Groups::IPC),
    ("memory", Groups::MEMORY),
    ("creds", Groups::CREDS),
    ("clock", Groups::CLOCK),
    ("stat", Groups::STAT),
    ("lstat", Groups::LSTAT),
    ("fstat", Groups::FSTAT),
    ("%stat", Groups::STAT_LIKE),
    ("stat_like", Groups::STAT_LIKE),
    ("statfs", Groups::STATFS),
    ("fstatfs", Groups::FSTATFS),
    ("%statfs", Groups::STATFS_LIKE),
    ("statfs_like", Groups::STATFS_LIKE),
    ("pure", Groups::PURE),
];

/// Returns the bit of a group.
pub fn group(name: &str) -> Option<Groups> {
    GROUPS.iter().find(|(known, _)| *known == name).map(|(_, bit)| *bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_a_name() {
        let named = GROUPS.iter().fold(Groups::empty(), |all, (_, bit)| all | *bit);
        assert_eq!(named, Groups::all());
        assert_eq!(group("net"), group("network"));
        assert_eq!(group("nett"), None);
    }
}
