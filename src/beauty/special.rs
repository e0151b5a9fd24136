//! The effects of syscalls on the state that rtrace tracks: tasks, file descriptors, and the pairing of entries with
//! exits. A row declares the effect with `does=`.

/// The effect of a syscall on the tracked state. Arguments are counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Special {
    /// The syscall has no effect on the tracked state.
    #[default]
    Plain,
    /// exit(2): the thread exits with the status in argument 0.
    Exit,
    /// exit_group(2): the process exits with the status in argument 0.
    ExitGroup,
    /// execve(2): the path is argument 0.
    Execve,
    /// execveat(2): the path is argument 1, relative to argument 0.
    Execveat,
    /// sigreturn(2), the end of a signal handler: the kernel resets the task's syscall number, so the exit record has
    /// -1.
    SigReturn,
    /// fork, clone and similar calls: the call also returns 0 in the new task.
    Clone,
    /// Closes the descriptor in argument 0.
    Close,
    /// close_range(2): closes the descriptors from argument 0 to argument 1, or marks them close-on-exec, according to
    /// the flags in argument 2.
    CloseRange,
    /// Returns a duplicate of the descriptor in argument 0.
    Dup,
    /// Duplicates the descriptor in argument 0 to the number in argument 1, and replaces a descriptor of that number.
    DupTo,
    /// fcntl(2): some commands duplicate a descriptor.
    Fcntl,
    /// unshare(2): may give the thread its own descriptor table, and its future children a new pid namespace.
    Unshare,
    /// setns(2): may set the pid namespace of the thread's future children.
    Setns,
    /// io_uring: the kernel may change descriptors of this process without a call.
    IoUring,
    /// ioctl(2): one command replaces a descriptor of another process.
    Ioctl,
    /// prctl(2): PR_SET_NAME changes the comm of the task.
    Rename,
    /// May return a new descriptor, depending on the value of an argument (i386's socketcall).
    MaybeDescriptor,
    /// Returns 0 without checking its descriptors if the length is 0 (splice, tee).
    Splice,
}
