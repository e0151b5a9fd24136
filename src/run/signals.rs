//! Handles signals while a trace runs, and waits for a command that continues untraced.

use super::Run;
use super::watch::PAUSE_IDLE_MS;
use crate::beauty::signal;
use crate::event::NoticeCode;
use crate::interrupt;
use crate::sys::signals::ReceivedSignal;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// The state of a user's request to end the trace while a command runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndRequest {
    /// Whether the first signal has arrived, which is meant for the command.
    pub(super) first_arrived: bool,
    /// When the signal was forwarded to the command. Its sender may never send a second one (timeout(1)).
    forwarded: Option<Instant>,
}

impl EndRequest {
    pub(super) fn is_overdue(&self) -> bool {
        self.forwarded.is_some_and(|at| at.elapsed() >= interrupt::PATIENCE)
    }
}

impl Run<'_> {
    /// Handles signals. The first one is for the command, if there is one. Returns true if rtrace has to end.
    pub(super) fn handle_signals(&self, signals: Vec<ReceivedSignal>, is_for_command: bool, end_request: &mut EndRequest) -> bool {
        signals.into_iter().filter(|received| received.asks_for_end()).any(|received| {
            let is_for_us = end_request.first_arrived || !is_for_command;
            if !is_for_us {
                end_request.first_arrived = true;
                end_request.forwarded = self.forward(received).then(Instant::now);
            }
            is_for_us
        })
    }

    /// Forwards a signal to the command if a process sent it, which then sent it to rtrace only. The terminal sends its
    /// signals to all processes in the foreground.
    fn forward(&self, received: ReceivedSignal) -> bool {
        let pid = self.traced.filter(|_| received.sent).and_then(Pid::from_raw);
        let Some((pid, signal)) = pid.zip(Signal::from_named_raw(received.signal)) else { return false };
        let _ = kill_process(pid, signal);
        true
    }

    /// Waits for the command, which continues untraced, or until signals request the end of rtrace as during the trace.
    pub(super) fn wait_for_command(&mut self) {
        let mut end_request = EndRequest::default();
        while !self.reap(false) {
            interrupt::wait(Duration::from_millis(PAUSE_IDLE_MS as u64));
            let signals = std::iter::from_fn(interrupt::next).collect();
            if self.handle_signals(signals, true, &mut end_request) {
                return;
            }
            if end_request.is_overdue() {
                return self.report_overdue();
            }
        }
    }

    /// Reports that the command has not ended. If the output is already closed, the notice is only on stderr.
    pub(super) fn report_overdue(&mut self) {
        let pid = self.traced.unwrap_or_default();
        let name = interrupt::first().and_then(signal::name).unwrap_or("a signal");
        let text = format!("the command (pid {pid}) has not ended within a second after {name} was forwarded to it; it continues untraced");
        self.drain.notice(NoticeCode::CommandOverdue, text);
    }
}
