//! The main function of the supervisor.

use super::due_signals::DueSignals;
use super::progress::Progress;
use super::rules::Counter;
use super::supervisor::{BUFFER, MESSAGE_MAX, NAME, Order};
use crate::event::{Synthesized, Time};
use crate::kernel::procfs;
use crate::request::inject::Effect;
use crate::sys::seccomp::{Answer, Listener, Waiting, signal_thread};
use crate::sys::{clock, helper};
use crate::syscall::memory::{self, CallInFlight};
use anyhow::Context;
use libc::SIGKILL;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send, sockopt};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The target of the link of a filter's descriptor in /proc/PID/fd (kernel/seccomp.c).
const LISTENER_LINK: &[u8] = b"anon_inode:seccomp notify";

/// How long a thread may take to sleep again after a signal, and how often that is checked.
const WAKE_MAX: Duration = Duration::from_secs(1);
const WAKE_STEP: Duration = Duration::from_micros(20);

/// Runs the supervisor, if this process was started as one, and returns its exit code. Otherwise returns `None`.
pub fn serve_if_started_as_supervisor() -> Option<ExitCode> {
    helper::serve_if_started_as(NAME, |socket| supervise(socket).is_ok())
}

fn supervise(socket: BorrowedFd) -> anyhow::Result<()> {
    // Without the privilege for a larger buffer, the usual one remains.
    let _ = sockopt::set_socket_send_buffer_size_force(socket, BUFFER);
    let (order, listener, mut others) = receive_order(socket)?;
    let counter = Counter::new(&order.rules);
    let mut other = |is_passed: bool| if is_passed { others.next() } else { None };
    let progress = other(order.with_progress).and_then(|memory| Progress::of(&memory).ok());
    let signals = other(order.with_signals).and_then(|map| DueSignals::of(&map).ok());
    let mut state = State {
        order,
        listener,
        progress,
        signals,
        counter,
        rtrace: Some(socket),
        is_set_up: false,
        delayed: BinaryHeap::new(),
        delayed_ids: BTreeSet::new(),
    };
    state.release_waiting();
    state.run()
}

/// Receives the order, the filter's descriptor and the other descriptors.
fn receive_order(socket: BorrowedFd) -> anyhow::Result<(Order, Listener, std::vec::IntoIter<OwnedFd>)> {
    let mut message = vec![0; MESSAGE_MAX];
    let (length, descriptors) = helper::receive(socket, &mut message)?;
    let mut descriptors = descriptors.into_iter();
    let listener = Listener::from(descriptors.next().context("there is no descriptor")?);
    Ok((serde_json::from_slice(&message[..length])?, listener, descriptors))
}

/// What happens to a call in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    /// The kernel's number of the question.
    id: u64,
    tid: i32,
    /// The value that the call returns; `None` if it is executed.
    returns: Option<i64>,
    /// The signal that the thread gets.
    signal: Option<i32>,
}

struct State<'a> {
    order: Order,
    listener: Listener,
    progress: Option<Progress>,
    signals: Option<DueSignals>,
    counter: Counter,
    /// The socket to rtrace; `None` once rtrace has ended.
    rtrace: Option<BorrowedFd<'a>>,
    /// The command was executed. Until then, its calls are rtrace's own.
    is_set_up: bool,
    /// The calls that are delayed, with the time until which they are.
    delayed: BinaryHeap<Reverse<(u64, Outcome)>>,
    /// The kernel's numbers of these calls.
    delayed_ids: BTreeSet<u64>,
}

impl State<'_> {
    /// Answers calls until no task with the filter is left.
    fn run(&mut self) -> anyhow::Result<()> {
        loop {
            let timeout = self.delayed.peek().map(|Reverse((at, ..))| {
                let left = at.saturating_sub(clock::now().0);
                Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }
            });
            let mut polled = vec![PollFd::new(&self.listener, PollFlags::IN)];
            polled.extend(self.rtrace.as_ref().map(|socket| PollFd::new(socket, PollFlags::empty())));
            match poll(&mut polled, timeout.as_ref()) {
                Err(Errno::INTR) => continue,
                other => _ = other?,
            }
            let flags: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
            drop(polled);
            if flags.get(1).is_some_and(|flags| flags.intersects(PollFlags::HUP | PollFlags::ERR)) {
                self.rtrace = None;
            }
            self.answer_delayed();
            if flags[0].contains(PollFlags::IN) {
                if let Some(call) = self.listener.receive()? {
                    self.progress.iter().for_each(|progress| progress.received(call.id));
                    self.handle(&call);
                    self.store_oldest();
                }
            } else if flags[0].intersects(PollFlags::HUP | PollFlags::ERR) {
                return Ok(());
            }
        }
    }

    /// Answers the calls whose delay is over, or all of them if rtrace has ended.
    fn answer_delayed(&mut self) {
        while let Some(Reverse((at, outcome))) = self.delayed.peek().copied() {
            if self.rtrace.is_some() && at > clock::now().0 {
                return;
            }
            self.delayed.pop();
            self.answer(outcome);
            self.delayed_ids.remove(&outcome.id);
            self.store_oldest();
        }
    }

    /// Stores which call has waited longest, for a successor of this process.
    fn store_oldest(&self) {
        self.progress.iter().for_each(|progress| progress.oldest(self.delayed_ids.first().copied()));
    }

    /// Lets the calls pass that wait for an answer of the process whose successor this is.
    fn release_waiting(&self) {
        let Some(progress) = self.progress.as_ref().filter(|_| self.order.passes) else { return };
        let released = progress.waiting().filter(|id| self.listener.answer(*id, Answer::Continue)).count();
        progress.count_unchanged(released as u64);
        progress.oldest(None);
    }

    fn answer(&self, outcome: Outcome) {
        let Outcome { id, tid, returns, signal } = outcome;
        if signal == Some(SIGKILL) {
            self.kill(id, tid);
            return;
        }
        let answer = returns.map_or(Answer::Continue, Answer::Return);
        let signal = signal.filter(|_| self.listener.is_waiting(id));
        let signal = signal.filter(|signal| !self.signals.as_ref().is_some_and(|signals| signals.put(tid, *signal)));
        if let Some(signal) = signal.filter(|_| self.order.is_safe) {
            signal_thread(tid, signal);
            self.await_sleep(outcome);
        }
        self.listener.answer(id, answer);
        // A signal before the answer would interrupt the wait, and the call would begin again.
        if let Some(signal) = signal.filter(|_| !self.order.is_safe) {
            signal_thread(tid, signal);
        }
    }

    /// Kills the task of a call that waits. It ends in its wait, before the call is executed; an answer that came first
    /// would let the call return.
    fn kill(&self, id: u64, tid: i32) {
        let until = Instant::now() + WAKE_MAX;
        if self.listener.is_waiting(id) {
            signal_thread(tid, SIGKILL);
        }
        while self.listener.is_waiting(id) && Instant::now() < until {
            std::thread::sleep(WAKE_STEP);
        }
        self.listener.answer(id, Answer::Return(-i64::from(libc::EINTR)));
    }

    /// Waits until a thread that a signal has woken sleeps again. Before Linux 6.17, an answer that comes first is
    /// lost, and the call begins again.
    fn await_sleep(&self, Outcome { id, tid, .. }: Outcome) {
        let until = Instant::now() + WAKE_MAX;
        let is_awake = || procfs::stat(tid).is_some_and(|stat| stat.state == b'R');
        while self.listener.is_waiting(id) && is_awake() && Instant::now() < until {
            std::thread::sleep(WAKE_STEP);
        }
    }

    fn handle(&mut self, call: &Waiting) {
        let began = clock::now();
        match self.effect(call, began) {
            Some(effect) => self.carry_out(call, effect, began),
            None => _ = self.listener.answer(call.id, Answer::Continue),
        }
    }

    /// Returns the effect of a call; `None` if it has none.
    fn effect(&mut self, call: &Waiting, now: Time) -> Option<Effect> {
        self.rtrace?;
        let is_of_command = call.tid == self.order.command;
        if is_of_command && !self.is_set_up {
            let link = procfs::fd_link(self.order.command, self.order.listener_there);
            self.is_set_up = link.is_none_or(|link| link != LISTENER_LINK);
            if !self.is_set_up {
                return None;
            }
        }
        if self.order.alone && !is_of_command {
            return None;
        }
        if self.order.passes {
            self.progress.iter().for_each(|progress| progress.count_unchanged(1));
            return None;
        }
        self.counter.next(call.tid, (call.abi, call.nr), now, |tid| procfs::stat(tid).map(|stat| stat.start_ticks))
    }

    fn carry_out(&mut self, call: &Waiting, effect: Effect, began: Time) {
        let is_killed = effect.signal == Some(SIGKILL);
        let (answered, delayed) = (effect.returns.is_some() && !is_killed, effect.delay.is_some());
        if answered || delayed || is_killed {
            // The kernel does not touch the memory of a call that is not executed. Reading it here makes its pages
            // present, so that the BPF programs can copy them.
            let in_flight = CallInFlight { tid: call.tid, abi: call.abi, nr: call.nr.into(), args: call.args };
            let mut copies = memory::copies(&in_flight, self.order.string_limit);
            if !self.order.with_memory {
                copies.clear();
            }
            if !self.listener.is_waiting(call.id) {
                return;
            }
            let (tid, abi, nr, args) = (call.tid, call.abi, i64::from(call.nr), call.args);
            self.report(&(
                began,
                Synthesized::Injected { tid, abi, nr, args, answered, delayed, killable: self.order.is_safe || is_killed, copies },
            ));
        }
        let outcome = Outcome { id: call.id, tid: call.tid, returns: effect.returns, signal: effect.signal };
        match effect.delay {
            Some(delay) => {
                self.delayed_ids.insert(call.id);
                self.delayed.push(Reverse((began.0.saturating_add(delay), outcome)));
            }
            None => self.answer(outcome),
        }
    }

    /// Reports what happens to a call to rtrace, before it happens.
    fn report(&mut self, report: &(Time, Synthesized)) {
        let Some(socket) = self.rtrace else { return };
        let Ok(message) = serde_json::to_vec(report) else { return };
        let sent = loop {
            match send(socket, &message, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                sent => break sent,
            }
        };
        // A message that is too long is the only other error that does not last.
        if sent.is_err_and(|error| error != Errno::MSGSIZE) {
            self.rtrace = None;
        }
    }
}
