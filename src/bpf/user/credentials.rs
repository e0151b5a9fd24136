//! The places of a task's user IDs in the kernel's structs.

use crate::kernel::btf::{self, Btf, LookupKind, Types};

/// The offsets in bytes by which programs find the user IDs of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Of the pointer `cred` in `struct task_struct`.
    pub cred: i16,
    /// Of the real user ID in `struct cred`.
    pub uid: i16,
    /// Of the effective user ID in `struct cred`.
    pub euid: i16,
}

impl Credentials {
    /// Looks the offsets up in the kernel's type information. Returns `None` if the kernel has none, or if it
    /// randomizes the layout of these structs.
    pub fn of_the_kernel() -> Option<Credentials> {
        let blob = btf::of_the_kernel().ok()?;
        let types = Types::of_kernel(Btf::parse(&blob).ok()?);
        let offset = |of: &str, name: &str| {
            let members = types.members(types.named(LookupKind::Struct, of)?);
            let member = members.iter().find(|member| member.name == name.as_bytes())?;
            i16::try_from(member.offset / 8).ok()
        };
        Some(Credentials { cred: offset("task_struct", "cred")?, uid: offset("cred", "uid")?, euid: offset("cred", "euid")? })
    }
}
