//! Syscalls that mean something to the core itself: those that end or replace tasks, and those that change descriptor tables.
//!
//! Numbers are facts of each ABI (arch/x86/entry/syscalls/syscall_64.tbl and syscall_32.tbl, scripts/syscall.tbl). They stand here and not in `beauty/`, because pairing
//! must be right also for calls that nobody decodes.

use crate::event::Abi;

/// What a syscall does to the state that is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Special {
    /// Nothing that concerns the core.
    #[default]
    Plain,
    /// exit(2): the thread ends with argument 0.
    Exit,
    /// exit_group(2): the process ends with argument 0.
    ExitGroup,
    /// execve(2): the path is argument 0.
    Execve,
    /// execveat(2): the path is argument 1, relative to argument 0.
    Execveat,
    /// The end of a signal handler: the kernel forgets the number, so that the exit says -1.
    SigReturn,
    /// It returns a second time, as 0, in the new task.
    Clone,
    /// Closes argument 0.
    Close,
    /// Closes or marks arguments 0 to 1, by the flags in argument 2.
    CloseRange,
    /// Returns a second descriptor of what argument 0 is.
    Dup,
    /// The same, and replaces the descriptor in argument 1.
    DupTo,
    /// fcntl: duplicates by its command.
    Fcntl,
    /// unshare(2): may give the thread a descriptor table of its own, and what it makes a pid namespace.
    Unshare,
    /// setns(2): may choose the pid namespace of what the thread makes.
    Setns,
    /// The kernel may change descriptors of this process without a call.
    IoUring,
    /// One of its commands replaces a descriptor of another process.
    Ioctl,
    /// May return a new descriptor, by an argument's value (i386's socketcall).
    MaybeDescriptor,
    /// Returns 0 without looking at its descriptors if the length is 0 (splice, tee).
    Splice,
}

/// A name, what it does, and its number in each ABI (x32's without bit 30).
type Row = (&'static str, Special, [Option<u32>; 4]);

/// One line a syscall.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    //                                            x86-64     i386       x32        aarch64
    ("exit",              Special::Exit,            [Some(60),  Some(1),   Some(60),  Some(93)]),
    ("exit_group",        Special::ExitGroup,       [Some(231), Some(252), Some(231), Some(94)]),
    ("execve",            Special::Execve,          [Some(59),  Some(11),  Some(520), Some(221)]),
    ("execveat",          Special::Execveat,        [Some(322), Some(358), Some(545), Some(281)]),
    ("rt_sigreturn",      Special::SigReturn,       [Some(15),  Some(173), Some(513), Some(139)]),
    ("sigreturn",         Special::SigReturn,       [None,      Some(119), None,      None]),
    ("clone",             Special::Clone,           [Some(56),  Some(120), Some(56),  Some(220)]),
    ("fork",              Special::Clone,           [Some(57),  Some(2),   Some(57),  None]),
    ("vfork",             Special::Clone,           [Some(58),  Some(190), Some(58),  None]),
    ("clone3",            Special::Clone,           [Some(435), Some(435), Some(435), Some(435)]),
    ("close",             Special::Close,           [Some(3),   Some(6),   Some(3),   Some(57)]),
    ("close_range",       Special::CloseRange,      [Some(436), Some(436), Some(436), Some(436)]),
    ("dup",               Special::Dup,             [Some(32),  Some(41),  Some(32),  Some(23)]),
    ("dup2",              Special::DupTo,           [Some(33),  Some(63),  Some(33),  None]),
    ("dup3",              Special::DupTo,           [Some(292), Some(330), Some(292), Some(24)]),
    ("fcntl",             Special::Fcntl,           [Some(72),  Some(55),  Some(72),  Some(25)]),
    ("fcntl64",           Special::Fcntl,           [None,      Some(221), None,      None]),
    ("unshare",           Special::Unshare,         [Some(272), Some(310), Some(272), Some(97)]),
    ("setns",             Special::Setns,           [Some(308), Some(346), Some(308), Some(268)]),
    ("io_uring_setup",    Special::IoUring,         [Some(425), Some(425), Some(425), Some(425)]),
    ("io_uring_enter",    Special::IoUring,         [Some(426), Some(426), Some(426), Some(426)]),
    ("io_uring_register", Special::IoUring,         [Some(427), Some(427), Some(427), Some(427)]),
    ("ioctl",             Special::Ioctl,           [Some(16),  Some(54),  Some(514), Some(29)]),
    ("socketcall",        Special::MaybeDescriptor, [None,      Some(102), None,      None]),
    ("splice",            Special::Splice,          [Some(275), Some(313), Some(275), Some(76)]),
    ("tee",               Special::Splice,          [Some(276), Some(315), Some(276), Some(77)]),
];

impl Special {
    /// The argument that holds the path of the program to be executed.
    pub fn path_argument(self) -> Option<u8> {
        match self {
            Special::Execve => Some(0),
            Special::Execveat => Some(1),
            _ => None,
        }
    }

    /// The caller's stack is that of the call only where it begins: it does not return, or returns to another place or program.
    pub fn has_stack_at_entry(self) -> bool {
        use Special::{Execve, Execveat, Exit, ExitGroup, SigReturn};
        matches!(self, Exit | ExitGroup | Execve | Execveat | SigReturn)
    }

    /// What the syscall with this name does.
    pub fn of_name(name: &str) -> Special {
        ROWS.iter().find(|row| row.0 == name).map_or(Special::Plain, |row| row.1)
    }

    /// A syscall's number in an ABI; for tests and for whoever arms what the core needs.
    pub fn number(name: &str, abi: Abi) -> Option<u32> {
        ROWS.iter().find(|row| row.0 == name).and_then(|row| row.2[abi as usize])
    }
}
