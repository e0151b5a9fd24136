//! What calls like fstat(2) say about a file.

use crate::beauty::value::{StructValue, Value};

/// What is known of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// The type and the permissions (`st_mode`).
    pub mode: Option<u32>,
    /// The owner.
    pub user: Option<u32>,
    /// The group.
    pub group: Option<u32>,
    /// The size in bytes of a regular file.
    pub size: Option<u64>,
}

impl FileState {
    /// Adds what another call says, unless an earlier one has said it.
    pub fn add(&mut self, other: &FileState) {
        self.mode = self.mode.or(other.mode);
        self.user = self.user.or(other.user);
        self.group = self.group.or(other.group);
        self.size = self.size.or(other.size);
    }
}

/// Reads a struct stat, stat64 or statx. Other structs say nothing.
pub fn read(of: &StructValue) -> FileState {
    let member = |name: &str| {
        of.members.iter().find(|(other, _)| other.split_once("_").is_some_and(|(_, rest)| rest == name)).map(|(_, value)| value)
    };
    if !of.name.starts_with("stat") {
        return FileState::default();
    }
    let mode = member("mode").and_then(|value| match value {
        Value::FileMode(mode) => Some(*mode),
        _ => None,
    });
    let number = |name: &str| member(name).and_then(number);
    let id = |name: &str| number(name).and_then(|id| u32::try_from(id).ok());
    let is_regular = mode.is_some_and(|mode| mode & libc::S_IFMT == libc::S_IFREG);
    FileState { mode, user: id("uid"), group: id("gid"), size: number("size").filter(|_| is_regular) }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Uint(number) => Some(*number),
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Id { id, .. } => Some(u64::from(*id)),
        _ => None,
    }
}
