//! The supervisor as rtrace sees it: a process that reports what it did.

use super::Rules;
use super::progress::Progress;
use crate::event::{Synthesized, Time};
use crate::sys::helper::{self, Helper};
use crate::sys::seccomp::Listener;
use crate::sys::spawn::Installed;
use anyhow::{Context, anyhow};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

/// `argv[0]` of the supervisor, by which the program recognizes that it is to be the supervisor.
pub(super) const NAME: &CStr = c"rtrace-inject";
/// The greatest length of a message in bytes.
pub(super) const MESSAGE_MAX: usize = 256 << 10;
/// The size in bytes of the socket's buffer. The supervisor waits while it is full, and so does the command; rtrace
/// empties it in each round.
pub(super) const BUFFER: usize = 8 << 20;

/// How long the end of the supervisor is awaited, after its socket was closed. It lives on if tasks of the command do.
const END_MAX: Duration = Duration::from_millis(100);

/// The first message to the supervisor. The descriptor of the filter comes with it, and then the others that it names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// What is changed.
    pub rules: Rules,
    /// The command's process.
    pub command: i32,
    /// The number of the filter's descriptor in that process, until its exec.
    pub listener_there: i32,
    /// Only calls of the command's first thread are changed.
    pub alone: bool,
    /// The maximum number of bytes of strings other than paths.
    pub string_limit: usize,
    /// Whether reports have the memory of answered calls.
    pub with_memory: bool,
    /// Whether calls that the supervisor has received are safe from signals.
    pub is_safe: bool,
    /// The descriptor of the shared memory for the supervisor's progress is passed.
    pub with_progress: bool,
    /// The descriptor of the memory from which the BPF programs take the signals for tasks is passed.
    pub with_signals: bool,
    /// All calls pass: this is the successor of a supervisor that was killed.
    pub passes: bool,
}

/// The running supervisor. When this is dropped, the supervisor lets all further calls pass.
#[derive(Debug)]
pub struct Supervisor {
    /// Present until the drop.
    socket: Option<OwnedFd>,
    child: Child,
    buffer: Vec<u8>,
    /// The descriptor of the filter, so that calls wait for a successor if the supervisor is killed.
    listener: Listener,
    progress: Option<(OwnedFd, Progress)>,
    order: Order,
    /// What it reported before it was killed.
    reported: Vec<(Time, Synthesized)>,
}

impl Supervisor {
    /// Starts the supervisor of a command's process, which has installed a filter.
    /// With `alone`, only its first thread is concerned. With `with_memory`, its reports have the memory of calls that
    /// it answered, at most `string_limit` bytes of a string. `due_signals` is the memory from which the BPF programs
    /// take the signals that tasks are to get.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(
        rules: &Rules,
        command: i32,
        installed: Installed,
        alone: bool,
        (string_limit, with_memory): (usize, bool),
        due_signals: Option<OwnedFd>,
    ) -> anyhow::Result<Supervisor> {
        let Installed { listener, there: listener_there, is_safe } = installed;
        let progress = Progress::create().ok();
        let (with_progress, with_signals) = (progress.is_some(), due_signals.is_some());
        let rules = rules.clone();
        let order =
            Order { rules, command, listener_there, alone, string_limit, with_memory, is_safe, with_progress, with_signals, passes: false };
        let others = progress.iter().map(|(memory, _)| memory.as_fd()).chain(due_signals.iter().map(AsFd::as_fd));
        let Helper { process: child, socket } = start(&order, listener.as_fd(), others)?;
        Ok(Supervisor { socket: Some(socket), child, buffer: vec![0; MESSAGE_MAX], listener, progress, order, reported: Vec::new() })
    }

    /// Starts a successor if the supervisor has ended before the tasks with the filter: it was killed. The successor
    /// lets all calls pass, because it does not know how many each thread has made. Returns a sentence that says so.
    pub fn succeed(&mut self) -> Option<String> {
        if self.socket.is_none() || !matches!(self.child.try_wait(), Ok(Some(_))) || self.listener.has_no_tasks() {
            return None;
        }
        self.reported = self.reports();
        self.order = Order { passes: true, with_signals: false, ..self.order.clone() };
        match start(&self.order, self.listener.as_fd(), self.progress.iter().map(|(memory, _)| memory.as_fd())) {
            Ok(Helper { process, socket }) => {
                (self.child, self.socket) = (process, Some(socket));
                Some("the process that answers calls (rtrace-inject) was killed: --inject changes no calls from now on".to_owned())
            }
            Err(error) => {
                self.socket = None;
                Some(format!(
                    "the process that answers calls (rtrace-inject) was killed, and {error:#}: the calls of --inject hang until rtrace ends, and then fail with ENOSYS"
                ))
            }
        }
    }

    /// Returns how many calls were executed unchanged because the supervisor was killed, at most.
    pub fn unchanged(&self) -> u64 {
        self.progress.as_ref().map_or(0, |(_, progress)| progress.unchanged())
    }

    /// Returns what the supervisor has reported since the last call. It reports a call before the call goes on, so that
    /// the report precedes the records of what follows.
    pub fn reports(&mut self) -> Vec<(Time, Synthesized)> {
        let mut reports = std::mem::take(&mut self.reported);
        let Some(socket) = &self.socket else { return reports };
        loop {
            match recv(socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, length @ 1..)) => reports.extend(serde_json::from_slice::<(Time, Synthesized)>(&self.buffer[..length]).ok()),
                Err(Errno::INTR) => {}
                _ => return reports,
            }
        }
    }
}

/// Starts the process, and gives it its order with the filter's descriptor and the others.
fn start<'a>(order: &Order, listener: BorrowedFd<'a>, others: impl Iterator<Item = BorrowedFd<'a>>) -> anyhow::Result<Helper> {
    let order = serde_json::to_vec(order)?;
    if order.len() > MESSAGE_MAX {
        return Err(anyhow!("--inject names too many calls"));
    }
    let helper = Helper::start(NAME).context("cannot start the process that answers calls (--inject)")?;
    let _ = sockopt::set_socket_send_buffer_size(&helper.socket, BUFFER);
    let descriptors: Vec<_> = std::iter::once(listener).chain(others).collect();
    helper::send(&helper.socket, &order, &descriptors).context("cannot reach the process that answers calls (--inject)")?;
    Ok(helper)
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.socket = None;
        helper::await_end(&mut self.child, Instant::now() + END_MAX);
    }
}
