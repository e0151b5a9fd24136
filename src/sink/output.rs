//! Outputs: stderr, stdout, a file, a command, or a file per process.
//!
//! Files are created for the caller alone (mode 0600, owned by the caller also under sudo), never through a link, and
//! an old file is kept as FILE.old. Devices and pipes are written as they are. Nothing is buffered here: a write passes
//! its bytes to the kernel before it returns, so a sink's output is visible after its tick. A slow reader cannot keep
//! rtrace from ending ([`crate::interrupt`]).

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
    to: Destination,
    /// The name of the output in error messages.
    name: String,
    rotation: Option<Rotating>,
    /// The text that each file begins with.
    header: Vec<u8>,
    /// Whether the header was written. (The files of processes are in [`Destination::Processes`].)
    has_begun: bool,
    /// The error of the first write that failed. Later writes fail too, because text would be missing before theirs.
    /// (A file per process is written independently of the others.)
    failed: Option<ErrorKind>,
}

/// An output that several sinks write to: the text lines and the summary.
pub type SharedOutput = Arc<Mutex<Output>>;

/// The destination of an output.
#[derive(Debug)]
enum Destination {
    Stream(Stream),
    /// A command. Dropping its input lets it end.
    Command {
        input: Option<Stream>,
        child: Child,
    },
    /// A file per process, created at the process's first line. A file is opened for each write, since there may be
    /// more processes than descriptors.
    Processes {
        path: PathBuf,
        /// Whether the text that files already have stays.
        appends: bool,
        created: FxHashSet<Option<i32>>,
    },
}

impl Output {
    /// Opens the requested output.
    ///
    /// # Errors
    /// The file cannot be created, the command cannot be started, or `--output-separately` is given without a file.
    pub fn open(output: &request::Output) -> Result<Output> {
        match &output.to {
            request::Sink::File(path) | request::Sink::Append(path) if output.separately => {
                let appends = matches!(output.to, request::Sink::Append(_));
                let to = Destination::Processes { path: path.clone(), appends, created: FxHashSet::default() };
                Ok(Output::new(to, path.display().to_string(), None))
            }
            _ if output.separately => bail!("--output-separately needs -o FILE: it writes each process to FILE.PID"),
            request::Sink::File(path) => {
                let file = path::create(path).with_context(|| format!("cannot write to {}", path.display()))?;
                let rotation = output.rotation.map(|rotation| Rotating::new(path, &file, rotation)).transpose()?;
                Ok(Output::new(Destination::Stream(Stream::own(file, Waiter::Worker)?), path.display().to_string(), rotation))
            }
            request::Sink::Append(path) => {
                let file = path::create_or_append(path).with_context(|| format!("cannot write to {}", path.display()))?;
                Ok(Output::new(Destination::Stream(Stream::own(file, Waiter::Worker)?), path.display().to_string(), None))
            }
            request::Sink::Stderr => Output::stream(io::stderr().as_fd(), "stderr"),
            request::Sink::Stdout => Output::stream(io::stdout().as_fd(), "stdout"),
            request::Sink::Pipe(command) => Output::command(command),
        }
    }

    fn new(to: Destination, name: String, rotation: Option<Rotating>) -> Output {
        Output { to, name, rotation, header: Vec::new(), has_begun: false, failed: None }
    }

    /// Sets the text that each file begins with. It is written before the first lines of the file.
    pub fn begin_files_with(&mut self, header: &[u8]) {
        self.header = header.to_vec();
        self.rotation.iter_mut().for_each(|rotation| rotation.begin_files_with(header));
    }

    /// Wraps the output for use by several sinks.
    pub fn shared(self) -> SharedOutput {
        Arc::new(Mutex::new(self))
    }

    /// Writes lines of a process. `pid` is `None` for lines of no single process (a summary, a gap).
    ///
    /// # Errors
    /// The write, or one before it, failed after some bytes. The message names the file. [`is_quiet_end`] distinguishes
    /// a reader that has ended from errors that need a message.
    pub fn write(&mut self, pid: Option<i32>, bytes: &[u8]) -> Result<(), Unwritten> {
        if let Some(kind) = self.failed {
            return Err(Unwritten { error: kind.into(), written: 0 });
        }
        let header = if std::mem::replace(&mut self.has_begun, true) { &[] } else { &self.header[..] };
        let done = match &mut self.to {
            Destination::Stream(stream) => match &mut self.rotation {
                Some(rotation) => rotation.write(stream, bytes),
                None => write_after(stream, header, bytes),
            },
            Destination::Command { input: Some(stream), .. } => write_after(stream, header, bytes),
            Destination::Command { input: None, .. } => Ok(()),
            Destination::Processes { path, appends, created } => {
                let path = of_process(path, pid);
                let header = if created.contains(&pid) { &[] } else { &self.header[..] };
                let opened = open_for(&path, *appends, created, pid).and_then(|file| Stream::own(file, Waiter::Worker));
                let done =
                    opened.map_err(|error| Unwritten { error, written: 0 }).and_then(|mut stream| write_after(&mut stream, header, bytes));
                return done.map_err(|failed| failed.named(&path.display().to_string()));
            }
        };
        let done = done.map_err(|failed| failed.named(&self.name));
        self.failed = done.as_ref().err().map(|failed| failed.error.kind());
        done
    }

    /// Returns whether each process has its own file.
    pub fn is_separate(&self) -> bool {
        matches!(self.to, Destination::Processes { .. })
    }

    /// Returns the number of columns if the output is a terminal; 0 if the terminal does not report it.
    pub fn columns_of_terminal(&self) -> Option<u16> {
        match &self.to {
            Destination::Stream(stream) if stream.file().is_terminal() => {
                Some(rustix::termios::tcgetwinsize(stream.file()).map_or(0, |size| size.ws_col))
            }
            _ => None,
        }
    }

    /// Returns whether to use colours: as requested, or else on a terminal, subject to NO_COLOR and CLICOLOR_FORCE.
    pub fn color(&self, color: Color) -> bool {
        let terminal = matches!(&self.to, Destination::Stream(stream) if stream.file().is_terminal());
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        chooses_color(color, terminal, set("NO_COLOR"), set("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE") != Some("0".into()))
    }

    /// Returns whether the output may be read while it is written: a terminal, a pipe or a socket, but not a file.
    pub fn is_watched(&self) -> bool {
        match &self.to {
            Destination::Stream(stream) => {
                let kind = fstat(stream.file()).map(|stat| FileType::from_raw_mode(stat.st_mode));
                stream.file().is_terminal() || matches!(kind, Ok(FileType::Fifo | FileType::Socket))
            }
            Destination::Command { .. } => true,
            Destination::Processes { .. } => false,
        }
    }

    /// Returns the process that reads the output if rtrace started it. Its own calls must not be traced.
    pub fn reader(&self) -> Option<i32> {
        match &self.to {
            Destination::Command { child, .. } => i32::try_from(child.id()).ok(),
            _ => None,
        }
    }

    /// Closes the output, and waits until its command has ended, or until rtrace has to end without that. Later writes
    /// are discarded.
    ///
    /// # Errors
    /// The shell could not execute the command.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(sentence) = self.rotation.take().and_then(|rotation| rotation.deleted(&self.name)) {
            say!("rtrace: {sentence}");
        }
        let Destination::Command { input, child } = &mut self.to else { return Ok(()) };
        drop(input.take());
        // A command that is not waited for continues to read up to the end of the output.
        let Ok(status) = interrupt::patiently(Waiter::Worker, |step| ended(child, step)) else { return Ok(()) };
        match status.with_context(|| format!("cannot wait for the output's command '{}'", self.name))?.code() {
            Some(126 | 127) => bail!("the output's command '{}' could not be run", self.name),
            _ => Ok(()),
        }
    }

    fn stream(fd: BorrowedFd, name: &str) -> Result<Output> {
        // A closed stdout is /dev/null by now, so the output would be lost. The same happens to messages on a closed
        // stderr, which is intended.
        if name == "stdout" && caller::was_closed(1) {
            bail!("cannot write to stdout: it is closed");
        }
        let stream = Stream::shared(fd, Waiter::Worker).with_context(|| format!("cannot write to {name}"))?;
        Ok(Output::new(Destination::Stream(stream), name.to_owned(), None))
    }

    /// Starts the command. The shell ignores SIGINT, and so do its children unless they have a handler: a Ctrl-C that
    /// ends the trace must not end the reader of its last lines.
    fn command(command: &OsStr) -> Result<Output> {
        let mut script = OsString::from("trap '' INT\n");
        script.push(command);
        let name = command.to_string_lossy().into_owned();
        let mut child = caller::with_callers_signals(Command::new("/bin/sh").arg("-c").arg(script).stdin(Stdio::piped()))
            .spawn()
            .with_context(|| format!("cannot start the output's command '{name}'"))?;
        let input = child.stdin.take().with_context(|| format!("the output's command '{name}' has no input"))?;
        let input = Stream::own(File::from(OwnedFd::from(input)), Waiter::Worker)?;
        Ok(Output::new(Destination::Command { input: Some(input), child }, name, None))
    }
}

/// Waits for the command, so that the prompt does not return before the command has shown its last line.
impl Drop for Output {
    fn drop(&mut self) {
        // Callers that need the result have called `finish`.
        let _ = self.finish();
    }
}

/// Writes a header, which is no line and does not count as written, and lines.
fn write_after(stream: &mut Stream, header: &[u8], bytes: &[u8]) -> Result<(), Unwritten> {
    if !header.is_empty() {
        stream.write_all(header).map_err(|unwritten| Unwritten { written: 0, ..unwritten })?;
    }
    stream.write_all(bytes)
}

/// Returns whether an error only means that the reader has ended, which needs no message.
pub fn is_quiet_end(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}

/// Returns a child's status if it ends within `step`.
fn ended(child: &mut Child, step: Duration) -> Option<io::Result<ExitStatus>> {
    if let Some(status) = child.try_wait().transpose() {
        return Some(status);
    }
    let pid = Pid::from_child(child);
    // Without pidfds, the child is polled.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => _ = interrupt::is_ready(pidfd, PollFlags::IN, step),
        Err(_) => std::thread::sleep(Duration::from_millis(10)),
    }
    child.try_wait().transpose()
}

/// Returns the path of a process's file, FILE.PID, or FILE for lines of no single process.
fn of_process(path: &Path, pid: Option<i32>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if let Some(pid) = pid {
        name.push(format!(".{pid}"));
    }
    name.into()
}

fn open_for(path: &Path, appends: bool, created: &mut FxHashSet<Option<i32>>, pid: Option<i32>) -> io::Result<File> {
    if !created.contains(&pid) {
        let file = if appends { path::create_or_append(path)? } else { path::create(path)? };
        created.insert(pid);
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
