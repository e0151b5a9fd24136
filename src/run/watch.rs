//! The main loop of a trace: drains the rings, handles signals, and notices the end.

use super::Run;
use super::signals::EndRequest;
use crate::event::NoticeCode;
use crate::interrupt;
use crate::sys::clock;
use crate::sys::priority::RealtimePriority;
use crate::sys::signals::ReceivedSignal;
use anyhow::Context;
use rustix::event::epoll;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The pause between two rounds in milliseconds, while the last rounds had records. A record is printed two rounds
/// after it was written.
const PAUSE_BUSY_MS: i64 = 20;
/// The pause after empty rounds. The longest latency is 50 + 2 * 20 ms, which is within the bound of 100 ms.
pub(super) const PAUSE_IDLE_MS: i64 = 50;
/// The fastest rate at which a ring is filled, in bytes per nanosecond. rtrace rests until a ring could be full,
/// because otherwise each task that ends would wake it, and its priority would preempt other tasks.
const FILL_RATE: u64 = 2;
/// The longest rest. A longer one has no benefit.
const REST: Duration = Duration::from_millis(2);
/// The interval in nanoseconds at which rtrace lists the calls in flight that no record shows. A listing costs some 100
/// ns per task of the machine.
const PENDING_INTERVAL_NS: u64 = 100_000_000;
/// The epoll data of the signals; rings have their index.
const SIGNALS: u64 = u64::MAX;

/// The reason why the main loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The targets have ended, or the timer's time has passed.
    Done,
    /// The user requested the end.
    Requested,
    /// The command was signalled to end, and has not ended within a second.
    Late,
    /// Enough was printed, or the output has no reader. The command continues untraced.
    Enough,
}

impl Run<'_> {
    /// Drains the rings with real-time priority: when thousands of threads are runnable, a thread that was just woken
    /// would otherwise wait for as many of them.
    pub(super) fn watch_with_priority(&mut self, priority: io::Result<RealtimePriority>, enable_at: Option<u64>) -> anyhow::Result<End> {
        if let (Err(error), true) = (&priority, self.verbose) {
            let text =
                format!("the rings are drained without real-time priority ({error}): more records may be lost while all CPUs are busy");
            self.drain.notice(NoticeCode::NoRealtimePriority, text);
        }
        self.watch(enable_at)
    }

    /// Waits and drains the rings until there is a reason to end.
    fn watch(&mut self, mut enable_at: Option<u64>) -> anyhow::Result<End> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        self.drain.watch(&epoll)?;
        if let Some(signals) = interrupt::as_fd() {
            epoll::add(&epoll, signals, epoll::EventData::new_u64(SIGNALS), epoll::EventFlags::IN)?;
        }
        let mut end_request = EndRequest::default();
        let mut busy_rounds = 0;
        let mut waiting_is_reported = false;
        let mut listed = clock::now();
        let armed = self.drain.armed();
        let kept = armed.rings.iter().map(|of_cpu| of_cpu.ring.bytes());
        let smallest = kept.chain(armed.overwriting.iter().map(|of_cpu| of_cpu.ring.bytes())).min().unwrap_or_default() as u64;
        let rest = Duration::from_nanos(smallest / FILL_RATE).min(REST);
        loop {
            interrupt::wait(rest);
            self.wait(&epoll, if busy_rounds > 0 { PAUSE_BUSY_MS } else { PAUSE_IDLE_MS })?;
            self.report_not_delayed();
            self.drain.report_killed_supervisor();
            if enable_at.is_some_and(|at| clock::now().0 >= at) {
                enable_at = None;
                self.enable()?;
            }
            // Signals are read before the child is reaped. Otherwise the SIGCHLD for a child that ends between the two
            // steps would be lost, and the end noticed only later.
            let signals: Vec<ReceivedSignal> = std::iter::from_fn(interrupt::next).collect();
            // The end of the targets is checked before the rings are drained, so that their last records are in this
            // round or an earlier one.
            let reaped = self.reap(false);
            let gone = (reaped || self.traced.is_none()) && self.drain.targets_gone();
            self.drain.trace_32_bit_calls()?;
            if self.plan.shows_pending() && clock::now().since(listed) >= PENDING_INTERVAL_NS {
                listed = clock::now();
                self.drain.synthesize_pending()?;
            }
            if let Some(snapshots) = self.snapshots.as_mut().filter(|_| signals.iter().any(|received| received.asks_for_snapshot())) {
                snapshots.ask();
            }
            let had = if self.snapshots.is_some() { self.snapshot_round()? } else { self.round()? };
            busy_rounds = if had { 2 } else { busy_rounds.max(1) - 1 };
            if self.enough.load(Ordering::Relaxed) {
                return Ok(End::Enough);
            }
            if gone || (reaped && (self.traced.is_none() || end_request.first_arrived || !self.request.run.wait)) {
                return Ok(End::Done);
            }
            let is_for_command = self.traced.is_some() && !reaped;
            if self.handle_signals(signals, is_for_command, &mut end_request) {
                return Ok(End::Requested);
            }
            if end_request.is_overdue() {
                return Ok(End::Late);
            }
            // strace waits for them without a word.
            if reaped && !waiting_is_reported && !self.request.run.quiet && !self.request.run.as_strace {
                waiting_is_reported = true;
                let text = "the command has ended; waiting for the processes that it left running (Ctrl-C ends the trace, --no-wait does not wait)";
                self.drain.notice(NoticeCode::WaitingForProcesses, text.to_owned());
            }
        }
    }

    /// Sleeps until a ring reaches its watermark, a signal arrives, or the pause has passed.
    fn wait(&self, epoll: &OwnedFd, pause_ms: i64) -> anyhow::Result<()> {
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: pause_ms * 1_000_000 };
        let mut ready = Vec::with_capacity(16);
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut ready), Some(&pause)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error).context("cannot wait for the rings"),
        }
        for event in ready {
            let flags = event.flags;
            if event.data.u64() != SIGNALS && flags.contains(epoll::EventFlags::HUP) {
                self.drain.unwatch(epoll, event.data.u64() as usize)?;
            }
        }
        Ok(())
    }

    /// Puts a round into the queue if it has room. Returns true if the round had records.
    fn round(&mut self) -> anyhow::Result<bool> {
        let Some(queue) = &self.queue else { return Ok(false) };
        while let Some(used) = queue.spare() {
            self.drain.recycle(used);
        }
        let has_room = queue.has_room();
        // A delayed command writes no more than the little for which the kernel lets it run. The reserve is for that.
        let takes_reserve = || self.throttle.is_some() && self.drain.is_nearly_full() && queue.has_reserve();
        if !has_room && !takes_reserve() {
            return Ok(true);
        }
        let round = self.drain.round();
        let had = round.bytes() > 0;
        if has_room { queue.push(round) } else { queue.push_to_reserve(round) }?;
        if !had {
            self.report_other_programs();
        }
        Ok(had)
    }

    /// Reports BPF programs of other tracers that may suppress records, which no count would show.
    pub(super) fn report_other_programs(&mut self) {
        for (event, ids) in self.drain.find_other_programs() {
            let ids = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let text = format!(
                "a BPF program of another tracer (id {ids}) is attached to {event}: if it returns 0, the kernel drops records of rtrace without counting them (`bpftool prog show id N` shows the program)"
            );
            self.drain.notice(NoticeCode::OtherBpfPrograms, text);
        }
    }
}
