//! Where lines go: stderr, stdout, a file, a command, or a file for each process.
//!
//! Files are made for the caller alone (0600, theirs also under sudo), never through a link, and an old one is kept as FILE.old. Devices and pipes are written as they
//! are. Nothing is buffered here: a write is given to the kernel before it returns, so what a sink writes at a tick is to be seen at that tick. Whoever reads may take his time, but
//! not keep rtrace from ending ([`crate::interrupt`]).

mod rotating;

use super::path;
use crate::interrupt::{self, Waiter};
use crate::request::{self, Color};
use crate::say;
use crate::stream::{Stream, Unwritten};
use crate::sys::caller;
use anyhow::{Context, Result, bail};
use rotating::Rotating;
use rustc_hash::FxHashSet;
use rustix::event::PollFlags;
use rustix::fs::{FileType, fstat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An open output.
#[derive(Debug)]
pub struct Output {
    to: To,
    /// What error messages call it.
    name: String,
    rotation: Option<Rotating>,
}

/// An output that several sinks write to: the lines' and the summary's.
pub type Shared = Arc<Mutex<Output>>;

#[derive(Debug)]
enum To {
    Stream(Stream),
    /// Dropping its input is what ends the command.
    Command {
        input: Option<Stream>,
        child: Child,
    },
    /// One file a process, made when its first line comes. They are opened for each write: there may be more processes than descriptors.
    Processes {
        path: PathBuf,
        made: FxHashSet<Option<i32>>,
    },
}

impl Output {
    /// Opens what was asked for.
    ///
    /// # Errors
    /// The file cannot be made, the command cannot be started, or `--output-separately` stands without a file's name.
    pub fn open(output: &request::Output) -> Result<Output> {
        match &output.to {
            request::Sink::File(path) if output.separately => Ok(Output {
                to: To::Processes { path: path.clone(), made: FxHashSet::default() },
                name: path.display().to_string(),
                rotation: None,
            }),
            _ if output.separately => bail!("--output-separately needs -o FILE: it makes a FILE.PID for each process"),
            request::Sink::File(path) => {
                let file = path::create(path).with_context(|| format!("cannot write to {}", path.display()))?;
                let rotation = output.rotation.map(|rotation| Rotating::new(path, &file, rotation)).transpose()?;
                Ok(Output { to: To::Stream(Stream::own(file, Waiter::Worker)?), name: path.display().to_string(), rotation })
            }
            request::Sink::Stderr => Output::stream(io::stderr().as_fd(), "stderr"),
            request::Sink::Stdout => Output::stream(io::stdout().as_fd(), "stdout"),
            request::Sink::Pipe(command) => Output::command(command),
        }
    }

    /// For several sinks.
    pub fn shared(self) -> Shared {
        Arc::new(Mutex::new(self))
    }

    /// Writes lines of a process; `None` is for what concerns no single one (a summary, a gap).
    ///
    /// # Errors
    /// The write failed, after so many bytes; the message names the file. [`is_quiet_end`] tells a reader that went away from what is worth a message.
    pub fn write(&mut self, pid: Option<i32>, bytes: &[u8]) -> Result<(), Unwritten> {
        let done = match &mut self.to {
            To::Stream(stream) => match &mut self.rotation {
                Some(rotation) => rotation.write(stream, bytes),
                None => stream.write_all(bytes),
            },
            To::Command { input: Some(stream), .. } => stream.write_all(bytes),
            To::Command { input: None, .. } => Ok(()),
            To::Processes { path, made } => {
                let path = of_process(path, pid);
                let opened = open_for(&path, made, pid).and_then(|file| Stream::own(file, Waiter::Worker));
                let done = opened.map_err(|error| Unwritten { error, written: 0 }).and_then(|mut stream| stream.write_all(bytes));
                return done.map_err(|failed| failed.named(&path.display().to_string()));
            }
        };
        done.map_err(|failed| failed.named(&self.name))
    }

    /// Whether each process has a file of its own.
    pub fn is_separate(&self) -> bool {
        matches!(self.to, To::Processes { .. })
    }

    /// The terminal's columns, if lines go to one; 0 where it does not say.
    pub fn columns_of_terminal(&self) -> Option<u16> {
        match &self.to {
            To::Stream(stream) if stream.file().is_terminal() => {
                Some(rustix::termios::tcgetwinsize(stream.file()).map_or(0, |size| size.ws_col))
            }
            _ => None,
        }
    }

    /// Whether to write in colours: as asked, else on a terminal, with NO_COLOR and CLICOLOR_FORCE in between.
    pub fn color(&self, color: Color) -> bool {
        let terminal = matches!(&self.to, To::Stream(stream) if stream.file().is_terminal());
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        chooses_color(color, terminal, set("NO_COLOR"), set("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE") != Some("0".into()))
    }

    /// Whether somebody may be reading along: a terminal, a pipe or a socket is read while it is written, a file is read later.
    pub fn is_watched(&self) -> bool {
        match &self.to {
            To::Stream(stream) => {
                let kind = fstat(stream.file()).map(|stat| FileType::from_raw_mode(stat.st_mode));
                stream.file().is_terminal() || matches!(kind, Ok(FileType::Fifo | FileType::Socket))
            }
            To::Command { .. } => true,
            To::Processes { .. } => false,
        }
    }

    /// The process that reads what is written, if it was started here: its own calls must not be traced.
    pub fn reader(&self) -> Option<i32> {
        match &self.to {
            To::Command { child, .. } => i32::try_from(child.id()).ok(),
            _ => None,
        }
    }

    /// Ends the output; waits until a command has read all and is done, or rtrace is to end without that. What is written later goes nowhere.
    ///
    /// # Errors
    /// The shell could not run the command.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(sentence) = self.rotation.take().and_then(|rotation| rotation.dropped(&self.name)) {
            say!("rtrace: {sentence}");
        }
        let To::Command { input, child } = &mut self.to else { return Ok(()) };
        drop(input.take());
        // Whoever is not waited for reads on, until he finds the end.
        let Ok(status) = interrupt::patiently(Waiter::Worker, |step| ended(child, step)) else { return Ok(()) };
        match status.with_context(|| format!("cannot wait for the output's command '{}'", self.name))?.code() {
            Some(126 | 127) => bail!("the output's command '{}' could not be run", self.name),
            _ => Ok(()),
        }
    }

    fn stream(fd: BorrowedFd, name: &str) -> Result<Output> {
        // It leads to /dev/null then, and what was asked for would go nowhere. Messages on a closed stderr go there, too: nobody wants them.
        if name == "stdout" && caller::was_closed(1) {
            bail!("cannot write to stdout: it is closed");
        }
        let stream = Stream::shared(fd, Waiter::Worker).with_context(|| format!("cannot write to {name}"))?;
        Ok(Output { to: To::Stream(stream), name: name.to_owned(), rotation: None })
    }

    /// The shell ignores SIGINT and so does what it starts, unless that has a handler: a Ctrl-C that ends the trace must not take away the reader of its last lines.
    fn command(command: &OsStr) -> Result<Output> {
        let mut script = OsString::from("trap '' INT\n");
        script.push(command);
        let name = command.to_string_lossy().into_owned();
        let mut child = caller::with_callers_signals(Command::new("/bin/sh").arg("-c").arg(script).stdin(Stdio::piped()))
            .spawn()
            .with_context(|| format!("cannot start the output's command '{name}'"))?;
        let input = child.stdin.take().with_context(|| format!("the output's command '{name}' has no input"))?;
        let input = Stream::own(File::from(OwnedFd::from(input)), Waiter::Worker)?;
        Ok(Output { to: To::Command { input: Some(input), child }, name, rotation: None })
    }
}

/// The prompt must not come back before the command has shown its last line.
impl Drop for Output {
    fn drop(&mut self) {
        // Who wants to know whether the command ran has called `finish`.
        let _ = self.finish();
    }
}

/// Whether an error only means that the reader is gone: a normal end, without a message.
pub fn is_quiet_end(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}

/// A child's status, if it ends within so long.
fn ended(child: &mut Child, step: Duration) -> Option<io::Result<ExitStatus>> {
    if let Some(status) = child.try_wait().transpose() {
        return Some(status);
    }
    let pid = Pid::from_child(child);
    // A kernel that gives no such descriptor is asked now and then.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => _ = interrupt::is_ready(pidfd, PollFlags::IN, step),
        Err(_) => std::thread::sleep(Duration::from_millis(10)),
    }
    child.try_wait().transpose()
}

/// The file of a process, FILE.PID; what concerns all of them goes to FILE.
fn of_process(path: &Path, pid: Option<i32>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if let Some(pid) = pid {
        name.push(format!(".{pid}"));
    }
    name.into()
}

fn open_for(path: &Path, made: &mut FxHashSet<Option<i32>>, pid: Option<i32>) -> io::Result<File> {
    if !made.contains(&pid) {
        let file = path::create(path)?;
        made.insert(pid);
        return Ok(file);
    }
    path::append(path)
}

fn chooses_color(color: Color, terminal: bool, no_color: bool, force: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => force || terminal && !no_color,
    }
}

#[cfg(test)]
mod tests;
