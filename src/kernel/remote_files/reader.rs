//! The reader as rtrace sees it: a child process that is started at the first request, and abandoned when it does not
//! respond.

use super::protocol::{BYTES_MAX, FileRef, MESSAGE_MAX, Operation, Request, Response};
use super::silent::SilentFileSystems;
use crate::interrupt::{self, Waiter};
use crate::kernel::procfs;
use crate::sys::helper::{self, Helper};
use rustix::event::PollFlags;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `argv[0]` of the reader, by which the program recognizes that it is to be the reader.
pub const NAME: &CStr = c"rtrace-reader";

/// The greatest time for a response. After it, the reader counts as blocked only if it sleeps: on a busy machine it may
/// be runnable and not have run.
pub const RESPONSE_MAX: Duration = Duration::from_secs(3);
/// The greatest time for the start of the reader.
const START_MAX: Duration = Duration::from_secs(10);
/// The greatest time for the end of an idle reader after its socket was closed.
const END_MAX: Duration = Duration::from_millis(200);

/// Whether /proc/self/exe is a program that can be the reader.
static CAN_BE_STARTED: AtomicBool = AtomicBool::new(false);

/// Sets whether this program can be started as the reader.
pub fn can_be_started(can: bool) {
    CAN_BE_STARTED.store(can, Ordering::Relaxed);
}

/// Whether the reader runs or can be started.
pub fn is_available() -> bool {
    CAN_BE_STARTED.load(Ordering::Relaxed)
}

/// The error that the reader did not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoResponse;

/// A response, with the bytes that follow it or the descriptor that it passes.
pub enum Reply {
    Bytes(Response, Vec<u8>),
    File(Response, OwnedFd),
}

/// The reader, and the file systems that did not answer.
#[derive(Debug, Default)]
pub struct Reader {
    running: Option<Running>,
    /// Readers that did not respond in time. They were killed, and end when they are no longer blocked.
    abandoned: Vec<Child>,
    silent: SilentFileSystems,
    /// The requested files that could not be read because their file systems did not answer.
    unanswered: BTreeSet<Vec<u8>>,
}

/// A running reader.
#[derive(Debug)]
struct Running {
    child: Child,
    socket: OwnedFd,
    is_ready: bool,
}

impl Reader {
    /// Starts the reader if it does not run. Returns its pid.
    pub fn start(&mut self) -> Option<i32> {
        if self.running.is_none() && is_available() {
            self.running = Running::start();
        }
        self.running.as_ref().map(|running| running.child.id() as i32)
    }

    /// Sends a request and waits for the response. It fails without a request if the file's file system did not answer
    /// earlier. A file without a response is one of [`Self::unanswered`]; if the request is not sent, this holds for
    /// mapped files only, because others may not exist.
    pub fn request(&mut self, file: &FileRef, operation: Operation) -> Result<Reply, NoResponse> {
        if self.silent.contains(file) {
            if matches!(file, FileRef::Mapped { .. }) {
                self.unanswered.insert(bare(file));
            }
            return Err(NoResponse);
        }
        let request = Request { file: file.clone(), operation };
        // A reader that ended (somebody may have killed it) is replaced, once.
        for _ in 0..2 {
            if self.start().is_none() {
                return Err(NoResponse);
            }
            let Some(running) = &mut self.running else { break };
            match running.request(&request) {
                Ok(reply) => return Ok(reply),
                Err(Failure::Ended) => self.abandon(),
                Err(Failure::Blocked) => {
                    self.abandon();
                    self.silent.add(file);
                    self.unanswered.insert(bare(file));
                    break;
                }
            }
        }
        Err(NoResponse)
    }

    /// Whether the reader cannot be started for a file whose file system is not known to be silent. The caller then
    /// opens the file itself.
    pub fn cannot_start(&mut self, file: &FileRef) -> bool {
        !self.silent.contains(file) && self.start().is_none()
    }

    /// Returns the requested files whose file systems did not answer.
    pub fn unanswered(&self) -> Vec<Vec<u8>> {
        self.unanswered.iter().cloned().collect()
    }

    /// Kills the reader and does not wait for its end. On most file systems, a blocked process ends when it is killed.
    fn abandon(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.kill();
            self.abandoned.push(running.child);
        }
    }
}

/// An idle reader ends when its socket is closed. All readers together get [`END_MAX`] to end.
impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(Running { child, socket, .. }) = self.running.take() {
            drop(socket);
            self.abandoned.push(child);
        }
        let until = Instant::now() + END_MAX;
        self.abandoned.iter_mut().for_each(|child| helper::await_end(child, until));
    }
}

/// The reason why there is no response.
enum Failure {
    /// The reader has ended.
    Ended,
    /// The reader is blocked in a file system.
    Blocked,
}

impl Running {
    fn start() -> Option<Running> {
        let Helper { process: child, socket } = Helper::start(NAME).ok()?;
        Some(Running { child, socket, is_ready: false })
    }

    fn request(&mut self, request: &Request) -> Result<Reply, Failure> {
        if !self.is_ready {
            // The start does not depend on the file, so a failure is not the file system's.
            match self.wait(START_MAX) {
                Ok(Reply::Bytes(Response::Ready, _)) => self.is_ready = true,
                _ => return Err(Failure::Ended),
            }
        }
        let message = serde_json::to_vec(request).map_err(|_| Failure::Ended)?;
        helper::send(&self.socket, &message, &[]).map_err(|_| Failure::Ended)?;
        self.wait(RESPONSE_MAX)
    }

    /// Waits for a response.
    fn wait(&self, at_most: Duration) -> Result<Reply, Failure> {
        let began = Instant::now();
        let answered = interrupt::patiently(Waiter::Worker, |step| {
            let is_there = interrupt::is_ready(&self.socket, PollFlags::IN, step);
            (is_there || began.elapsed() >= at_most && self.is_sleeping()).then_some(is_there)
        });
        if answered == Ok(true) { self.receive() } else { Err(Failure::Blocked) }
    }

    fn is_sleeping(&self) -> bool {
        procfs::stat(self.child.id() as i32).is_none_or(|stat| stat.state != b'R')
    }

    fn receive(&self) -> Result<Reply, Failure> {
        let mut message = vec![0; MESSAGE_MAX];
        let (length, files) = helper::receive(&self.socket, &mut message).map_err(|_| Failure::Ended)?;
        let (response, bytes) = Response::of_message(&message[..length]).ok_or(Failure::Ended)?;
        Ok(match files.into_iter().next() {
            Some(file) => Reply::File(response, file),
            None => Reply::Bytes(response, bytes.to_vec()),
        })
    }
}

/// Returns the file's path without ` (deleted)`, which the kernel appends to that of a deleted file.
fn bare(file: &FileRef) -> Vec<u8> {
    let path = file.path().as_os_str().as_encoded_bytes();
    path.strip_suffix(b" (deleted)").unwrap_or(path).to_vec()
}

const _: () = assert!(BYTES_MAX < MESSAGE_MAX);
