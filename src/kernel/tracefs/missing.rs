//! The reasons why rtrace cannot use a tracefs that is not mounted, and the remedies.

use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::refused::Refused;
use std::{fmt, io};

/// The reason why rtrace could not create a detached mount, which nobody else would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMount {
    /// The user is not root.
    NotRoot,
    /// The user is root without CAP_SYS_ADMIN, as in most containers.
    NoCapability,
    /// The process has CAP_SYS_ADMIN only in a user namespace.
    UserNamespace,
    /// A seccomp filter refuses the call.
    Filtered,
    /// The kernel does not support detached mounts, or a security policy forbids them. It has the kernel's errno, or 0
    /// if there was none.
    Refused(i32),
}

impl NoMount {
    /// Returns the reason for which the kernel refused a detached mount to this process.
    pub fn of(error: &io::Error) -> NoMount {
        let privileges = Privileges::read();
        let errno = error.raw_os_error().unwrap_or(0);
        match Refused::of(&privileges, &[Capability::SysAdmin]) {
            _ if ![libc::EPERM, libc::ENOSYS].contains(&errno) => NoMount::Refused(errno),
            Refused::Filtered => NoMount::Filtered,
            _ if errno != libc::EPERM => NoMount::Refused(errno),
            Refused::NotRoot => NoMount::NotRoot,
            // A process that is not root even in its user namespace must become root first.
            Refused::UserNamespace if privileges.uid != 0 => NoMount::NotRoot,
            Refused::UserNamespace => NoMount::UserNamespace,
            Refused::NoCapability => NoMount::NoCapability,
            Refused::Level | Refused::Unknown => NoMount::Refused(errno),
        }
    }

    /// Returns the command that solves the problem, if there is one.
    pub fn command(self) -> Option<&'static str> {
        match self {
            NoMount::NotRoot | NoMount::Refused(_) => Some(MOUNT),
            NoMount::NoCapability | NoMount::UserNamespace | NoMount::Filtered => None,
        }
    }
}

const MOUNT: &str = "sudo mount -t tracefs tracefs /sys/kernel/tracing";

impl fmt::Display for NoMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoMount::NotRoot => f.write_str("only root can use it without a mount: run rtrace as root"),
            NoMount::NoCapability => f.write_str(
                "using it without a mount needs CAP_SYS_ADMIN, which this process does not have: start the container with \
                 `--cap-add SYS_ADMIN` or `-v /sys/kernel/tracing:/sys/kernel/tracing` (docker, podman), or give its \
                 securityContext the capability SYS_ADMIN or a hostPath volume of /sys/kernel/tracing (kubernetes)",
            ),
            NoMount::UserNamespace => f.write_str(
                "using it without a mount needs CAP_SYS_ADMIN in the initial user namespace, and this process is in another one: start \
                 the container with `--userns=host --cap-add SYS_ADMIN` (docker, podman) or `hostUsers: true` (kubernetes)",
            ),
            NoMount::Filtered => f.write_str(
                "a seccomp filter does not let rtrace use it without a mount: start the container with `--security-opt seccomp=unconfined` \
                 or `-v /sys/kernel/tracing:/sys/kernel/tracing` (docker, podman), or give it a seccompProfile of type Unconfined or a hostPath \
                 volume of /sys/kernel/tracing (kubernetes)",
            ),
            NoMount::Refused(errno) => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "the kernel does not let rtrace use it without a mount ({error}): run `{}` as root", MOUNT.trim_start_matches("sudo "))
            }
        }
    }
}
