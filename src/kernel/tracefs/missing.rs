//! Why tracefs cannot be had where it is not mounted, and what gives it.

use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::refused::Refused;
use std::{fmt, io};

/// What kept rtrace from making a mount of its own, which nobody else would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMount {
    /// The user is not root.
    NotRoot,
    /// Root without CAP_SYS_ADMIN: as a rule, in a container.
    NoCapability,
    /// CAP_SYS_ADMIN holds only in a user namespace.
    UserNamespace,
    /// A seccomp filter answers in the kernel's place.
    Filtered,
    /// The kernel does not do it, or some policy forbids it: the kernel's number, 0 if it gave none.
    Refused(i32),
}

impl NoMount {
    /// What this refusal of a detached mount means for this process.
    pub fn of(error: &io::Error) -> NoMount {
        let privileges = Privileges::read();
        let errno = error.raw_os_error().unwrap_or(0);
        match Refused::of(&privileges, &[Capability::SysAdmin]) {
            _ if ![libc::EPERM, libc::ENOSYS].contains(&errno) => NoMount::Refused(errno),
            Refused::Filtered => NoMount::Filtered,
            _ if errno != libc::EPERM => NoMount::Refused(errno),
            Refused::NotRoot => NoMount::NotRoot,
            // Nobody may be root there who has no more than that.
            Refused::UserNamespace if privileges.uid != 0 => NoMount::NotRoot,
            Refused::UserNamespace => NoMount::UserNamespace,
            Refused::NoCapability => NoMount::NoCapability,
            Refused::Level | Refused::Unknown => NoMount::Refused(errno),
        }
    }

    /// The command that helps, where it is one.
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
            NoMount::NotRoot => f.write_str("only root needs no mount: run rtrace as root"),
            NoMount::NoCapability => f.write_str(
                "without a mount it takes CAP_SYS_ADMIN, which this process does not have: start the container with \
                 `--cap-add SYS_ADMIN` or `-v /sys/kernel/tracing:/sys/kernel/tracing` (docker, podman), or give its \
                 securityContext the capability SYS_ADMIN or a hostPath volume of /sys/kernel/tracing (kubernetes)",
            ),
            NoMount::UserNamespace => f.write_str(
                "without a mount it takes CAP_SYS_ADMIN in the initial user namespace, and this process is in another one: start \
                 the container with `--userns=host --cap-add SYS_ADMIN` (docker, podman) or `hostUsers: true` (kubernetes)",
            ),
            NoMount::Filtered => f.write_str(
                "a seccomp filter keeps rtrace from doing without a mount: start the container with `--security-opt seccomp=unconfined` \
                 or `-v /sys/kernel/tracing:/sys/kernel/tracing` (docker, podman), or give it a seccompProfile of type Unconfined or a hostPath \
                 volume of /sys/kernel/tracing (kubernetes)",
            ),
            NoMount::Refused(errno) => {
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "the kernel does not give it without a mount ({error}): run `{}` as root", MOUNT.trim_start_matches("sudo "))
            }
        }
    }
}
