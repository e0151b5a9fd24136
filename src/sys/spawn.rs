//! Starts the command: it is forked early, and executed when everything is armed.

use super::caller;
use super::clock;
use super::map_memory::MapMemory;
use super::seccomp::{Filter, Listener};
use super::users::User;
use crate::event::Time;
use crate::sys::exit_code::ExitCode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The program to execute and its environment. All of it is prepared, because a forked child may not allocate.
#[derive(Debug)]
pub struct Program {
    /// The path of the file, absolute or relative to the start directory. PATH was searched before.
    pub path: CString,
    /// The arguments, of which the first is the name that the user typed.
    pub argv: Vec<CString>,
    /// The environment, as `NAME=VALUE`.
    pub envp: Vec<CString>,
    /// The start directory; `None` for that of rtrace.
    pub directory: Option<CString>,
    /// The user who executes the program; `None` for the caller.
    pub user: Option<User>,
    /// Whether the shell executes a script without an interpreter line, as execvp(3) and shells do.
    pub by_shell: bool,
    /// The calls of the program that a supervisor answers; `None` for none.
    pub filter: Option<Filter>,
}

/// The command's process, before and after its exec.
#[derive(Debug)]
pub struct Child {
    /// The number of the process in rtrace's pid namespace.
    pub pid: i32,
    /// The pipe that starts the command: a byte starts it, closing the pipe without one ends it.
    start_pipe: Option<OwnedFd>,
    /// The pipe that has the failed step and its errno if the program could not be executed, and end of file otherwise.
    outcome: OwnedFd,
    /// Two words that the child stores: [`EXECUTED`] and [`LISTENER`].
    shared: MapMemory,
}

/// The word with the time of the call of execve(2).
const EXECUTED: usize = 0;
/// The word with the child's descriptor for the supervisor plus one, or with the negative errno. [`SAFE`] is added if
/// calls that the supervisor has received are safe from signals.
const LISTENER: usize = 1;
const SAFE: i64 = 1 << 32;
/// How often rtrace looks whether the child has installed its filter. The child makes no call to tell it, because a
/// supervisor might have to answer that.
const LISTENER_STEP: Duration = Duration::from_micros(50);

/// A filter that the child has installed.
#[derive(Debug)]
pub struct Installed {
    /// The descriptor by which the kernel asks the supervisor.
    pub listener: Listener,
    /// The number of the child's own copy of it, which its exec closes.
    pub there: i32,
    /// Whether calls that the supervisor has received are safe from signals ([`Filter::install`]).
    pub is_safe: bool,
}

/// The step that failed in the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum StartStep {
    User = 1,
    Directory = 2,
    Execute = 3,
}

/// The reason why the command did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot switch to the user: {0}")]
    User(io::Error),
    #[error("cannot change to the directory: {0}")]
    Directory(io::Error),
    #[error("cannot be executed: {0}")]
    Execute(io::Error),
}

impl Child {
    /// Forks. The child waits and does nothing else.
    ///
    /// # Errors
    /// The errors of fork(2), pipe(2) and mmap(2).
    pub fn fork(program: &Program) -> io::Result<Child> {
        let (wait, start_pipe) = pipe_with(PipeFlags::CLOEXEC)?;
        let (outcome, report_fd) = pipe_with(PipeFlags::CLOEXEC)?;
        let pointers = |strings: &[CString]| strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>();
        let (argv, envp) = (pointers(&program.argv), pointers(&program.envp));
        let shell_argv: Vec<_> = [c"/bin/sh".as_ptr(), program.path.as_ptr()].into_iter().chain(argv.iter().skip(1).copied()).collect();
        let shared = MapMemory::zeros(2)?;
        // SAFETY: the child runs `child` only, which makes async-signal-safe calls on memory prepared above and never
        // returns. The parent continues.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // The child closes its copy of the write end. Otherwise its read would never end when the parent closes
                // its end.
                drop(start_pipe);
                // SAFETY: as above. All pointers are to NUL-terminated strings, in lists that end with null and live
                // until the exec.
                unsafe { child(program, &argv, &envp, &shell_argv, wait.as_raw_fd(), report_fd.as_raw_fd(), &shared) }
            }
            pid => Ok(Child { pid, start_pipe: Some(start_pipe), outcome, shared }),
        }
    }

    /// Lets the child execute the program, waits for that, and returns the time of the exec. Everything that the child
    /// did before that time was rtrace's own code.
    ///
    /// # Errors
    /// The program could not be executed. The child has exited, but is not yet reaped.
    pub fn start(&mut self) -> Result<Time, StartError> {
        if let Some(start_pipe) = self.start_pipe.take() {
            rustix::io::write(&start_pipe, &[1]).map_err(|e| StartError::Execute(e.into()))?;
        }
        let mut report = [0u8; 5];
        let len = loop {
            match rustix::io::read(&self.outcome, &mut report) {
                Err(rustix::io::Errno::INTR) => continue,
                other => break other.map_err(|e| StartError::Execute(e.into()))?,
            }
        };
        if len < 5 {
            return Ok(Time(self.shared[EXECUTED].load(Ordering::Acquire)));
        }
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes([report[1], report[2], report[3], report[4]]));
        Err(match report[0] {
            x if x == StartStep::User as u8 => StartError::User(error),
            x if x == StartStep::Directory as u8 => StartError::Directory(error),
            _ => StartError::Execute(error),
        })
    }

    /// Waits until the child has installed the filter of its program.
    ///
    /// # Errors
    /// The kernel did not accept the filter ([`Filter::install`]), or the child has ended.
    pub fn installed(&self) -> io::Result<Installed> {
        let pid = rustix::process::Pid::from_raw(self.pid).ok_or(io::ErrorKind::NotFound)?;
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        let stored = loop {
            match self.shared[LISTENER].load(Ordering::Acquire) as i64 {
                0 if has_ended(&pidfd)? => return Err(io::ErrorKind::NotFound.into()),
                0 => std::thread::sleep(LISTENER_STEP),
                errno @ ..0 => return Err(io::Error::from_raw_os_error(-errno as i32)),
                stored => break stored,
            }
        };
        let (there, is_safe) = ((stored & (SAFE - 1)) as i32 - 1, stored & SAFE != 0);
        let listener = rustix::process::pidfd_getfd(&pidfd, there, rustix::process::PidfdGetfdFlags::empty())?;
        Ok(Installed { listener: Listener::from(listener), there, is_safe })
    }

    /// Returns the child's exit status if it has exited. With `wait`, waits for that.
    pub fn try_wait(&self, wait: bool) -> Option<std::process::ExitStatus> {
        use std::os::unix::process::ExitStatusExt;
        let mut status = 0;
        let options = if wait { 0 } else { libc::WNOHANG };
        loop {
            // SAFETY: waitpid writes one int to the pointer, which is a live local. The pid is that of this process's
            // unreaped child.
            match unsafe { libc::waitpid(self.pid, &mut status, options) } {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                pid if pid == self.pid => return Some(std::process::ExitStatus::from_raw(status)),
                _ => return None,
            }
        }
    }
}

/// Returns whether a process has ended, by its pidfd.
fn has_ended(pidfd: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    Ok(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

/// Runs in the child until its exec.
///
/// # Safety
/// Must be called only in a freshly forked child, with `argv`, `envp` and `shell_argv` ending in null and pointing to
/// live strings.
unsafe fn child(
    program: &Program,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
    shell_argv: &[*const libc::c_char],
    wait: i32,
    report_fd: i32,
    shared: &[AtomicU64],
) -> ! {
    // SAFETY: only async-signal-safe functions are called, with pointers that the caller guarantees; errno is
    // thread-local.
    unsafe {
        let fail = |step: StartStep| -> ! {
            let error = *libc::__errno_location();
            let errno = error.to_ne_bytes();
            let report = [step as u8, errno[0], errno[1], errno[2], errno[3]];
            libc::write(report_fd, report.as_ptr().cast(), report.len());
            let not_found = matches!(step, StartStep::Execute) && error == libc::ENOENT;
            libc::_exit(if not_found { ExitCode::NotFound } else { ExitCode::CannotRun }.code().into())
        };
        if let Some(filter) = &program.filter {
            // Before the command's user is set: that user may not install it.
            let of_listener = |(fd, is_safe)| i64::from(fd) + 1 + if is_safe { SAFE } else { 0 };
            let stored = filter.install().map_or_else(i64::from, of_listener);
            shared[LISTENER].store(stored as u64, Ordering::Release);
        }
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
            fail(StartStep::Directory);
        }
        if let Some(user) = &program.user
            && (libc::setgroups(user.groups.len(), user.groups.as_ptr()) != 0 || libc::setgid(user.gid) != 0 || libc::setuid(user.uid) != 0)
        {
            fail(StartStep::User);
        }
        caller::restore_state();
        shared[EXECUTED].store(clock::now().0, Ordering::Release);
        libc::execve(program.path.as_ptr(), argv.as_ptr(), envp.as_ptr());
        if program.by_shell && *libc::__errno_location() == libc::ENOEXEC {
            libc::execve(c"/bin/sh".as_ptr(), shell_argv.as_ptr(), envp.as_ptr());
        }
        fail(StartStep::Execute)
    }
}

/// Returns the path of a program found in a list of directories (PATH), as execvp(3) searches it.
///
/// # Errors
/// `NotFound` if no directory has the file; `PermissionDenied` if one has it but it cannot be executed.
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
