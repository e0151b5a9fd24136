//! Starting the command: forked early, executed when everything is armed.

use super::caller;
use super::clock;
use super::map_memory::MapMemory;
use super::users::User;
use crate::event::Time;
use crate::sys::exit_code::ExitCode;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// What is to be executed, all of it prepared, because a forked child may not allocate.
#[derive(Debug)]
pub struct Program {
    /// The file, with a slash in it or relative to the directory it starts in: PATH was searched before.
    pub path: CString,
    pub argv: Vec<CString>,
    pub envp: Vec<CString>,
    pub directory: Option<CString>,
    pub user: Option<User>,
}

/// The command before and after its start.
#[derive(Debug)]
pub struct Child {
    pub pid: i32,
    /// A byte written here starts it; closing it unwritten ends it.
    go: Option<OwnedFd>,
    /// Its errno comes here when it could not be executed; the end of the file when it was.
    outcome: OwnedFd,
    /// When it called execve: a word that the child writes without a call.
    executed: MapMemory,
}

/// What the child could not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    User = 1,
    Directory = 2,
    Execute = 3,
}

/// Why the command did not start.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("cannot become the user: {0}")]
    User(io::Error),
    #[error("cannot enter the directory: {0}")]
    Directory(io::Error),
    #[error("cannot be executed: {0}")]
    Execute(io::Error),
}

impl Child {
    /// Forks. The child waits, having done nothing yet.
    ///
    /// # Errors
    /// fork(2)'s and pipe(2)'s.
    pub fn fork(program: &Program) -> io::Result<Child> {
        let (wait, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let (outcome, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        let pointers = |strings: &[CString]| strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>();
        let (argv, envp) = (pointers(&program.argv), pointers(&program.envp));
        let shell_argv: Vec<_> = [c"/bin/sh".as_ptr(), program.path.as_ptr()].into_iter().chain(argv.iter().skip(1).copied()).collect();
        let executed = MapMemory::zeros(1)?;
        // SAFETY: the child runs `child` only, which makes async-signal-safe calls on memory prepared above and never returns; the parent goes on as before.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // The child's copy of the writing end must go, or the parent's end would never end our read.
                drop(go);
                // SAFETY: as above; all pointers are to NUL-terminated strings in lists that end with null and live until the exec.
                unsafe { child(program, &argv, &envp, &shell_argv, wait.as_raw_fd(), tell.as_raw_fd(), &executed[0]) }
            }
            pid => Ok(Child { pid, go: Some(go), outcome, executed }),
        }
    }

    /// Lets it execute, waits until it has, and says when: all that it did before was rtrace's own code.
    ///
    /// # Errors
    /// Why it could not; the child is then gone, but not yet waited for.
    pub fn start(&mut self) -> Result<Time, Refused> {
        if let Some(go) = self.go.take() {
            rustix::io::write(&go, &[1]).map_err(|e| Refused::Execute(e.into()))?;
        }
        let mut told = [0u8; 5];
        let len = loop {
            match rustix::io::read(&self.outcome, &mut told) {
                Err(rustix::io::Errno::INTR) => continue,
                other => break other.map_err(|e| Refused::Execute(e.into()))?,
            }
        };
        if len < 5 {
            return Ok(Time(self.executed[0].load(Ordering::Acquire)));
        }
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes([told[1], told[2], told[3], told[4]]));
        Err(match told[0] {
            x if x == Step::User as u8 => Refused::User(error),
            x if x == Step::Directory as u8 => Refused::Directory(error),
            _ => Refused::Execute(error),
        })
    }

    /// Its status, once it is gone; `wait` waits for that.
    pub fn try_wait(&self, wait: bool) -> Option<std::process::ExitStatus> {
        use std::os::unix::process::ExitStatusExt;
        let mut status = 0;
        let options = if wait { 0 } else { libc::WNOHANG };
        loop {
            // SAFETY: waitpid writes one int to the pointer, which is a live local; the pid is our own unreaped child's.
            match unsafe { libc::waitpid(self.pid, &mut status, options) } {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                pid if pid == self.pid => return Some(std::process::ExitStatus::from_raw(status)),
                _ => return None,
            }
        }
    }
}

/// The child's life until its exec.
///
/// # Safety
/// To be called only in a freshly forked child, with `argv`, `envp` and `shell_argv` ending in null and pointing to live strings.
unsafe fn child(
    program: &Program,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
    shell_argv: &[*const libc::c_char],
    wait: i32,
    tell: i32,
    executed: &AtomicU64,
) -> ! {
    // SAFETY: only async-signal-safe functions are called, with pointers that the caller vouches for; errno is this thread's own.
    unsafe {
        let fail = |step: Step| -> ! {
            let error = *libc::__errno_location();
            let errno = error.to_ne_bytes();
            let told = [step as u8, errno[0], errno[1], errno[2], errno[3]];
            libc::write(tell, told.as_ptr().cast(), told.len());
            let not_found = matches!(step, Step::Execute) && error == libc::ENOENT;
            libc::_exit(if not_found { ExitCode::NotFound } else { ExitCode::CannotRun }.code().into())
        };
        let mut byte = 0u8;
        loop {
            match libc::read(wait, (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(127),
            }
        }
        if let Some(directory) = &program.directory
            && libc::chdir(directory.as_ptr()) != 0
        {
            fail(Step::Directory);
        }
        if let Some(user) = &program.user
            && (libc::setgroups(user.groups.len(), user.groups.as_ptr()) != 0 || libc::setgid(user.gid) != 0 || libc::setuid(user.uid) != 0)
        {
            fail(Step::User);
        }
        caller::hand_down();
        executed.store(clock::now().0, Ordering::Release);
        libc::execve(program.path.as_ptr(), argv.as_ptr(), envp.as_ptr());
        // A script without an interpreter line: what execvp(3) and every shell do.
        if *libc::__errno_location() == libc::ENOEXEC {
            libc::execve(c"/bin/sh".as_ptr(), shell_argv.as_ptr(), envp.as_ptr());
        }
        fail(Step::Execute)
    }
}

/// The path of a file below a directory list (PATH), as execvp(3) would take it.
///
/// # Errors
/// `NotFound` when no directory has it; `PermissionDenied` when one has it but it cannot be executed.
pub fn search(name: &CStr, path: &std::ffi::OsStr) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    if name.to_bytes().contains(&b'/') {
        return Ok(name.to_owned());
    }
    let mut denied = false;
    for directory in path.as_bytes().split(|&b| b == b':') {
        let directory = if directory.is_empty() { b"." } else { directory };
        let full = [directory, b"/", name.to_bytes()].concat();
        let is_file = std::fs::metadata(std::ffi::OsStr::from_bytes(&full)).is_ok_and(|m| m.is_file());
        if !is_file {
            continue;
        }
        if rustix::fs::access(full.as_slice(), rustix::fs::Access::EXEC_OK).is_ok() {
            return CString::new(full).map_err(io::Error::from);
        }
        denied = true;
    }
    Err(if denied { io::ErrorKind::PermissionDenied } else { io::ErrorKind::NotFound }.into())
}
