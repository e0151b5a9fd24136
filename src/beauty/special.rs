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

impl Special {
    /// Returns the word of `does=` in rows, and what the call does, with arguments counted from 1. Returns `None` for a
    /// call without an effect.
    pub fn described(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Special::Plain => return None,
            Special::Exit => ("exit", "ends the thread with the status in argument 1"),
            Special::ExitGroup => ("exit_group", "ends the process with the status in argument 1"),
            Special::Execve => ("execve", "executes the program in argument 1"),
            Special::Execveat => ("execveat", "executes the program in argument 2, relative to argument 1"),
            Special::SigReturn => ("sigreturn", "ends a signal handler"),
            Special::Clone => ("clone", "creates a task, in which the call returns 0"),
            Special::Close => ("close", "closes the descriptor in argument 1"),
            Special::CloseRange => ("close_range", "closes the descriptors from argument 1 to 2, or marks them close-on-exec"),
            Special::Dup => ("dup", "returns a duplicate of the descriptor in argument 1"),
            Special::DupTo => ("dup_to", "duplicates the descriptor in argument 1 to the number in argument 2"),
            Special::Fcntl => ("fcntl", "duplicates a descriptor with some commands"),
            Special::Unshare => ("unshare", "may give the thread its own descriptors, and its children a pid namespace"),
            Special::Setns => ("setns", "may put the thread's children into another pid namespace"),
            Special::IoUring => ("io_uring", "may change descriptors of the process later, without a call"),
            Special::Ioctl => ("ioctl", "replaces a descriptor of another process with one command"),
            Special::Rename => ("rename", "renames the task with PR_SET_NAME"),
            Special::MaybeDescriptor => ("socketcall", "may return a descriptor, depending on argument 1"),
            Special::Splice => ("splice", "returns 0 without a check of its descriptors if the length is 0"),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::beauty::{lookup, tables};
    use std::path::Path;

    #[test]
    fn effects_have_the_words_of_the_rows() {
        let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("beauty/syscalls");
        let mut found = 0;
        for file in std::fs::read_dir(rows).unwrap() {
            for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
                let Some((row, word)) = line.split_once(" does=") else { continue };
                let name = row.split([' ', '/', '@']).next().unwrap();
                let row = &tables::SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())];
                assert_eq!(row.does.described().map(|(known, _)| known), word.split_whitespace().next(), "{name}");
                found += 1;
            }
        }
        assert_eq!(found, tables::SYSCALLS.iter().filter(|row| row.does.described().is_some()).count());
    }
}
