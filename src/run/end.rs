//! The end of a trace: disables the events, prints the verdict, and returns the exit status.

use super::work::Outcome;
use super::{Run, record, sentences};
use crate::event::verdict::ShortageKind;
use crate::event::{NoticeCode, Synthesized};
use crate::interrupt;
use crate::kernel::procfs;
use crate::say;
use crate::source::instance::Instance;
use crate::stream::is_given_up;
use crate::sys::closer;
use crate::sys::exit_code::ExitCode;
use crate::text::os_error::without_error_numbers;
use anyhow::Context;
use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering;

impl Run<'_> {
    /// Disables all events, and sends the last records and the kernel's counts to the worker. The worker ends after the
    /// events of this run are removed, so that it still gets notices about their removal.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let snapshots = self.end_snapshots();
        let off = self.drain.disable().context("cannot disable the events");
        self.report_not_delayed();
        self.drain.report_killed_supervisor();
        // From now on no record is written.
        self.throttle = None;
        let rounds = self.drain.last_rounds();
        self.drain.let_calls_pass();
        let names_dropped = self.drain.armed().instance().map_or(0, Instance::dropped);
        let shortages = [ShortageKind::NamesOfCalls.counted(self.run_events.misses()), ShortageKind::NamesOfThreads.counted(names_dropped)];
        shortages.into_iter().flatten().for_each(|shortage| self.drain.synthesized(Synthesized::Shortage(shortage)));
        let queue = self.queue.take().filter(|_| !self.takes_snapshots());
        if let Some(queue) = &queue {
            for round in rounds.into_iter().chain(self.drain.rest()) {
                queue.push(round)?;
            }
        }
        let instance = self.drain.remove_instance();
        self.end_probes();
        if let (Some(queue), Some(rest)) = (queue, self.drain.rest()) {
            queue.push(rest)?;
        }
        off.and(instance).and(snapshots)
    }

    /// Closes the events of `--probe` and removes them, so that none are left after this run.
    fn end_probes(&mut self) {
        let in_tracefs = self.run_events.events().iter().filter(|event| event.device.is_none());
        let names: HashSet<String> = in_tracefs.map(|event| event.name.to_string()).collect();
        if names.is_empty() {
            return;
        }
        self.drain.armed_mut().close(|event| names.contains(&event.name));
        if let Err(error) = self.run_events.remove() {
            self.drain.notice(NoticeCode::ProbesNotRemoved, without_error_numbers(&format!("{error:#}")));
        }
    }

    /// Prints the verdict and returns the exit status after the worker has ended. If the command continues untraced,
    /// this waits for it, because its exit status is rtrace's exit status.
    pub(super) fn exit_code(&mut self, outcome: &Outcome) -> ExitCode {
        if self.traced.is_some() && self.enough.load(Ordering::Relaxed) {
            self.wait_for_command();
        }
        let verdict = &outcome.verdict;
        for sentence in sentences::missing_data(verdict) {
            say!("rtrace: {sentence}");
        }
        closer::hand_over(self.drain.armed().slow_to_close(), procfs::is_in_initial_pid_namespace());
        if self.verbose {
            let (draining, lines) = (self.draining.as_secs_f64(), outcome.cpu.as_secs_f64());
            say!("rtrace: {draining:.3} s of CPU time to drain the rings, {lines:.3} s to process the records");
        }
        let failed = outcome.failed.as_ref().filter(|_| !outcome.is_quiet());
        if let Some(error) = failed {
            say!("rtrace: {}", without_error_numbers(&format!("{error:#}")));
        }
        for sentence in sentences::account(verdict, &self.request.run, outcome.is_quiet()) {
            say!("rtrace: {sentence}");
        }
        if let Some((recording, totals)) = self.request.recording.as_ref().zip(outcome.recorded.as_ref()) {
            if !self.request.run.quiet {
                say!("rtrace: {}", record::sentence(&recording.path, totals));
            }
            if recording.is_alone && totals.lost > 0 && (self.request.run.strict || self.request.run.lossless) {
                return ExitCode::Lost;
            }
        }
        if failed.is_some_and(|error| !error.downcast_ref().is_some_and(is_given_up)) {
            return ExitCode::Failed;
        }
        if self.request.run.lossless && verdict.lost_records > 0 {
            return ExitCode::Lost;
        }
        if self.request.run.strict && (verdict.lost_records > 0 || verdict.given_up > 0 || !verdict.shortages.is_empty()) {
            return ExitCode::Lost;
        }
        if self.is_refused {
            return ExitCode::WrongForStrace;
        }
        match (self.traced, self.status) {
            (Some(_), Some(status)) if self.request.run.as_strace => match status.signal() {
                Some(signal) => ExitCode::KilledAsCommand(signal),
                None => ExitCode::from_wait_status(status.into_raw()),
            },
            (Some(_), Some(status)) => ExitCode::from_wait_status(status.into_raw()),
            (Some(_), None) => ExitCode::CommandKilled(interrupt::first().unwrap_or(libc::SIGINT) as u8),
            (None, _) => ExitCode::Success,
        }
    }
}
