//! The process that reads files for this one: started when it is first asked, and left behind when it does not answer.

use super::ask::{Answer, Ask, BYTES_MAX, MESSAGE_MAX, Request, Wish};
use super::silent::Silent;
use crate::interrupt::{self, Waiter};
use crate::kernel::procfs;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags, SocketType, recvmsg, send, socketpair,
};
use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// By this name it is started, and knows what it is.
pub const NAME: &str = "rtrace-reader";

/// So long one answer is waited for. Only a process that waits itself is taken to be kept waiting; one that would run, on a busy machine, is not.
pub const ANSWER_MAX: Duration = Duration::from_secs(3);
/// The same for its start.
const START_MAX: Duration = Duration::from_secs(10);
/// So long one that is idle, and is told to end, has for that.
const END_MAX: Duration = Duration::from_millis(200);

/// This program is one that can be started to read files.
static CAN_BE_STARTED: AtomicBool = AtomicBool::new(false);

pub fn can_be_started(can: bool) {
    CAN_BE_STARTED.store(can, Ordering::Relaxed);
}

/// Whether there is, or can be, somebody who reads files.
pub fn is_there() -> bool {
    CAN_BE_STARTED.load(Ordering::Relaxed)
}

/// Nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAnswer;

/// What a file that is open there, or here, is.
pub enum Reply {
    Answer(Answer, Vec<u8>),
    File(Answer, OwnedFd),
}

/// Who is asked, and what became of that.
#[derive(Debug, Default)]
pub struct Helper {
    running: Option<Running>,
    /// Those that did not answer: when they do after all, they end.
    left: Vec<Child>,
    silent: Silent,
    /// Files that were wanted and not to be had for that reason.
    unanswered: BTreeSet<Vec<u8>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    socket: OwnedFd,
    is_ready: bool,
}

impl Helper {
    /// Starts the process before it is needed; its number.
    pub fn start(&mut self) -> Option<i32> {
        if self.running.is_none() && is_there() {
            self.running = Running::start();
        }
        self.running.as_ref().map(|running| running.child.id() as i32)
    }

    /// Asks. Where no answer comes, or is not to be expected after what was asked before, the file is one of [`Helper::unanswered`], unless it is only looked for.
    pub fn ask(&mut self, ask: &Ask, wish: Wish) -> Result<Reply, NoAnswer> {
        if self.silent.has(ask) {
            if matches!(ask, Ask::Mapped { .. }) {
                self.unanswered.insert(bare(ask));
            }
            return Err(NoAnswer);
        }
        let request = Request { ask: ask.clone(), wish };
        // One that ended by itself (somebody killed it) is replaced, once.
        for _ in 0..2 {
            if self.start().is_none() {
                return Err(NoAnswer);
            }
            let Some(running) = &mut self.running else { break };
            match running.ask(&request) {
                Ok(reply) => return Ok(reply),
                Err(Trouble::Gone) => self.leave(),
                Err(Trouble::Silent) => {
                    self.leave();
                    self.silent.add(ask);
                    self.unanswered.insert(bare(ask));
                    break;
                }
            }
        }
        Err(NoAnswer)
    }

    /// Whether nobody could be asked, though it is not known that no answer would come: no process can be started here.
    pub fn is_in_vain(&mut self, ask: &Ask) -> bool {
        !self.silent.has(ask) && self.start().is_none()
    }

    /// Files that were wanted, on file systems that did not answer.
    pub fn unanswered(&self) -> Vec<Vec<u8>> {
        self.unanswered.iter().cloned().collect()
    }

    /// Most file systems let a process go that is killed.
    fn leave(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.kill();
            self.left.push(running.child);
        }
    }
}

/// One that is idle ends when its socket is closed. What does not end at once is not waited for.
impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(Running { child, socket, .. }) = self.running.take() {
            drop(socket);
            self.left.push(child);
        }
        let until = Instant::now() + END_MAX;
        for child in &mut self.left {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Why there is no answer.
enum Trouble {
    /// The process ended.
    Gone,
    Silent,
}

impl Running {
    fn start() -> Option<Running> {
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).ok()?;
        let mut command = Command::new("/proc/self/exe");
        // It has the mask of this thread, so that what ends rtrace does not end it before.
        let child =
            command.arg0(NAME).current_dir("/").stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        Some(Running { child, socket, is_ready: false })
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, Trouble> {
        if !self.is_ready {
            // Nothing of it depends on the file.
            match self.answer(START_MAX) {
                Ok(Reply::Answer(Answer::Ready, _)) => self.is_ready = true,
                _ => return Err(Trouble::Gone),
            }
        }
        let message = serde_json::to_vec(request).map_err(|_| Trouble::Gone)?;
        send(&self.socket, &message, SendFlags::NOSIGNAL).map_err(|_| Trouble::Gone)?;
        self.answer(ANSWER_MAX)
    }

    fn answer(&self, at_most: Duration) -> Result<Reply, Trouble> {
        let began = Instant::now();
        let answered = interrupt::patiently(Waiter::Worker, |step| {
            let is_there = interrupt::is_ready(&self.socket, PollFlags::IN, step);
            (is_there || began.elapsed() >= at_most && self.waits()).then_some(is_there)
        });
        if answered == Ok(true) { self.receive() } else { Err(Trouble::Silent) }
    }

    fn waits(&self) -> bool {
        procfs::stat(self.child.id() as i32).is_none_or(|stat| stat.state != b'R')
    }

    fn receive(&self) -> Result<Reply, Trouble> {
        let mut message = vec![0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut message)], &mut rights, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                received => break received.map_err(|_| Trouble::Gone)?,
            }
        };
        let files = rights.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let file = files.flatten().next();
        let (answer, bytes) = Answer::of_message(&message[..received.bytes]).ok_or(Trouble::Gone)?;
        Ok(match file {
            Some(file) => Reply::File(answer, file),
            None => Reply::Answer(answer, bytes.to_vec()),
        })
    }
}

/// The file's path, without what the kernel adds to that of a deleted one.
fn bare(ask: &Ask) -> Vec<u8> {
    let path = ask.path().as_os_str().as_encoded_bytes();
    path.strip_suffix(b" (deleted)").unwrap_or(path).to_vec()
}

const _: () = assert!(BYTES_MAX < MESSAGE_MAX);
