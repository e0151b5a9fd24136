//! What a call does to what rtrace follows (tasks, descriptors, the pairing of entries with exits): `does=` of its row.

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
    /// One of its options changes the name that the kernel has of the task (PR_SET_NAME of prctl(2)).
    Rename,
    /// May return a new descriptor, by an argument's value (i386's socketcall).
    MaybeDescriptor,
    /// Returns 0 without looking at its descriptors if the length is 0 (splice, tee).
    Splice,
}
