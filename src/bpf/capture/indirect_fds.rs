//! File descriptors that are not plain arguments: those in memory, and those of other processes.

use crate::beauty::row::{Arg, ArgumentKind, CopyMethod, Flow, Length};

/// `enum indirect_fds`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::bpf) enum IndirectFds {
    None = 0,
    /// In an array of struct pollfd.
    Polled = 1,
    /// Descriptors of both processes that kcmp(2) names, or of the first one only.
    Compared = 2,
    ComparedOne = 3,
    /// A descriptor of the process from which pidfd_getfd(2) copies it.
    Fetched = 4,
    /// At the beginning of the memory that argument 1 points to.
    First = 5,
    /// Two that the call opens, in the memory that argument 0 (pipe2) or 3 (socketpair) points to.
    Pipe = 6,
    Pair = 7,
}

impl IndirectFds {
    pub(super) fn of(args: &[Arg]) -> IndirectFds {
        let owner = |at: usize| args.get(at).and_then(|arg| arg.fd_of);
        let is_polled = |arg: &Arg| matches!(arg.kind, ArgumentKind::StructArray(of) if of.copied == CopyMethod::Pollfd);
        let begins_with_one = |arg: &Arg| matches!(arg.kind, ArgumentKind::Struct(of) if of.copied == CopyMethod::Fd);
        let is_pair = |arg: &Arg| {
            let is_of_fds = matches!(arg.kind, ArgumentKind::StructArray(of) if of.name == "fd_value");
            is_of_fds && arg.flow == Flow::Out && matches!(arg.length, Length::Fixed(2))
        };
        match (owner(1), owner(3), owner(4)) {
            (Some(0), None, None) => IndirectFds::Fetched,
            (None, Some(0), Some(1)) => IndirectFds::Compared,
            (None, Some(0), None) => IndirectFds::ComparedOne,
            _ if args.first().is_some_and(is_polled) => IndirectFds::Polled,
            _ if args.get(1).is_some_and(begins_with_one) => IndirectFds::First,
            _ if args.first().is_some_and(is_pair) => IndirectFds::Pipe,
            _ if args.get(3).is_some_and(is_pair) => IndirectFds::Pair,
            _ => IndirectFds::None,
        }
    }
}
