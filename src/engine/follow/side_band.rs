//! Side-band records: comms, forks, ends and mappings of tasks, and lost records.

use super::{Follower, RecordContext};
use crate::event::{Event, EventKind, Loss, Time};
use crate::source::{Body, Record};
use crate::task::fds::SETTLING;

impl Follower {
    /// Processes a record that is no sample.
    #[cold]
    pub(super) fn side_band(&mut self, record: &Record<'_>, events: &mut Vec<Event>) {
        let (time, cpu) = (record.time, record.cpu);
        if self.process_filter.as_mut().is_some_and(|filter| !filter.accepts(&record.body)) {
            return;
        }
        match record.body {
            Body::Comm { task, comm, exec } => {
                let slot = self.slot(task, time);
                self.tasks.set_comm(slot, time, comm);
                if exec {
                    if self.stream.bpf.is_some() {
                        self.revive(RecordContext { time, cpu, task, slot });
                    }
                    let mark = (self.stream.execs || self.stream.bpf.is_some()).then(|| self.gaps.mark(cpu));
                    let thread = &mut self.threads[slot.index()];
                    (thread.set_up, thread.executing) = (false, mark);
                    // Another thread may have taken over the tid, with perf events of its own.
                    thread.forget_origins();
                    self.command.executed(task);
                }
                if exec && self.stream.follows_maps {
                    self.forget_maps(task.pid);
                }
            }
            Body::Fork { child, parent } => self.fork(child, parent, time, cpu, events),
            Body::Exit { task } => {
                if let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task) {
                    self.exit_record(RecordContext { time, cpu, task, slot }, events);
                }
            }
            Body::Map { task, start, len, offset, file, executable, path } if self.stream.follows_maps => {
                self.maps.map(task.pid, (start, len, offset), executable, file, path);
            }
            Body::Lost { records, after } => {
                self.gap_ends(record.cpu, record.time);
                self.lost(record, Loss { records: Some(records), after }, events);
            }
            // Losses in the tracefs instance affect neither calls nor task state, which do not come through it.
            Body::Missed { records, after } => self.lost(record, Loss { records, after }, events),
            Body::Synthesized(record) => self.synthesized(time, record, events),
            Body::Map { .. } | Body::Sample(_) => {}
        }
    }

    /// Emits a gap in the stream.
    fn lost(&mut self, record: &Record<'_>, loss: Loss, events: &mut Vec<Event>) {
        self.ledger.lost_placed += loss.records.unwrap_or_default();
        self.ledger.gaps_unsized += u64::from(loss.records.is_none());
        let event = Event {
            time: self.now,
            cpu: record.cpu,
            task: record.task,
            comm: self.tasks.comm(record.task.tid),
            kind: EventKind::Lost(loss),
        };
        self.outbox.push(event, 0, events);
    }

    /// Forgets all state that lost records may have changed, at the end of a gap in this CPU's ring.
    pub(super) fn gap_ends(&mut self, cpu: u32, time: Time) {
        self.gaps.end(cpu);
        self.forget_namespaces();
        self.forget_kernel_pids();
        self.ends.forget_sent();
        self.tables.forget_all(Time(time.0 + SETTLING));
        self.forget_cgroups(time);
    }
}
