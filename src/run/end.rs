//! The end of a trace: disables the events, prints the verdict, and returns the exit status.

use super::worker::Outcome;
use super::{Run, verdict};
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
    /// Disables all events, and sends the last records and the kernel's counts to the worker.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let off = self.drain.disable().context("cannot disable the events");
        let last = self.drain.round();
        self.drain.take_counts();
        let counts = self.drain.round();
        if let Some(queue) = self.queue.take() {
            for round in [last, counts] {
                queue.push(round)?;
            }
        }
        self.names_dropped = self.drain.armed().instance().map_or(0, Instance::dropped);
        let instance = self.drain.remove_instance();
        self.end_probes();
        off.and(instance)
    }

    /// Closes the events of `--probe` and removes them, so that none are left after this run.
    fn end_probes(&mut self) {
        let in_tracefs = self.run_events.events().iter().filter(|event| event.device.is_none());
        let names: HashSet<String> = in_tracefs.map(|event| event.name.to_string()).collect();
        if names.is_empty() {
            return;
        }
        self.names_missed = self.run_events.misses();
        self.drain.armed_mut().close(|event| names.contains(&event.name));
        if let Err(error) = self.run_events.remove() {
            say!("rtrace: {}", without_error_numbers(&format!("{error:#}")));
        }
    }

    /// Returns a message about calls that were not shown because the caller may not trace their programs.
    fn withheld(&self) -> Option<String> {
        let calls = self.drain.armed().withheld();
        (calls > 0).then(|| {
            format!(
                "{calls} calls are neither shown nor counted, because you may not trace the programs that made them (set-user-ID, with capabilities, \
                 of another user namespace, or not dumpable); root can trace them (sudo rtrace ...)"
            )
        })
    }

    /// Returns the exit status when the worker has ended. If the command continues untraced, waits for it, since its
    /// status is rtrace's.
    pub(super) fn exit_code(&mut self, outcome: &Outcome) -> ExitCode {
        if self.traced.is_some() && self.enough.load(Ordering::Relaxed) {
            self.wait_for_command();
        }
        let mut shortages = self.drain.armed().shortages();
        for (names, users) in
            [(self.names_missed, "calls used path names at once"), (self.names_dropped, "threads of this machine used path names")]
        {
            if names > 0 {
                shortages.push(format!("up to {names} path names are not known: more {users} than the kernel had room for"));
            }
        }
        for sentence in shortages.iter().chain(&self.withheld()) {
            say!("rtrace: {sentence}");
        }
        if let Some(sentence) = verdict::unanswered_files(&outcome.unanswered) {
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
        for sentence in verdict::sentences(self.request, self.plan, outcome) {
            say!("rtrace: {sentence}");
        }
        if failed.is_some_and(|error| !error.downcast_ref().is_some_and(is_given_up)) {
            return ExitCode::Failed;
        }
        if self.request.run.strict && (outcome.ledger.lost_records() > 0 || outcome.given_up > 0 || !shortages.is_empty()) {
            return ExitCode::Lost;
        }
        match (self.traced, self.status) {
            (Some(_), Some(status)) => ExitCode::from_wait_status(status.into_raw()),
            (Some(_), None) => ExitCode::CommandKilled(interrupt::first().unwrap_or(libc::SIGINT) as u8),
            (None, _) => ExitCode::Success,
        }
    }
}
