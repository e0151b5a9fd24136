//! Synthesized records: facts that were read outside the rings.

use super::Follower;
use crate::event::synthesized::FileMapping;
use crate::event::{Event, Injected, Notice, PidTranslation, Synthesized, Time};
use crate::syscall::pairing::ChangedCall;
use crate::task::ends;

impl Follower {
    /// Processes a synthesized record.
    pub(super) fn synthesized(&mut self, time: Time, record: &Synthesized, events: &mut Vec<Event>) {
        match record {
            Synthesized::Spawned { task, path, fds, cgroup, nested, .. } => {
                self.spawned(*task, path, fds, *nested, time);
                self.set_cgroup(*task, cgroup.as_deref());
            }
            Synthesized::Executed { task, comm } => self.command_begun(*task, comm, time),
            Synthesized::Task { task, comm, ppid, started, cgroup, abi, nested } => {
                let is_known = self.tasks.find(task.tid).is_some_and(|slot| self.tasks.at(slot).id == *task && !self.tasks.at(slot).ended);
                let slot = self.slot_from_proc(*task, time);
                self.threads[slot.index()].untraced |= !is_known && self.task_reads.is_awaited(task.tid);
                self.tasks.set_comm_from_proc(slot, comm, *started);
                let found = self.tasks.at_mut(slot);
                found.parent = *ppid;
                found.abi = abi.unwrap_or(found.abi);
                self.set_cgroup(*task, cgroup.as_deref());
                self.set_namespace(slot, *nested);
                self.answered(task.tid, events);
            }
            Synthesized::NoTask { tid } => {
                self.task_reads.store_missing(*tid);
                self.answered(*tid, events);
            }
            Synthesized::Fd { pid, fd, path, from } => self.tables.store_read(*pid, *fd, path.as_deref(), *from, time),
            Synthesized::Count { event, issued, lost, from_afar } => self.ledger.count(*event, *issued, *lost, *from_afar),
            Synthesized::Lost { event, records } => self.ledger.account(*event).lost = Some(*records),
            Synthesized::InstanceCount { issued, lost } => {
                (self.ledger.instance.issued, self.ledger.instance.lost) = (Some(*issued), Some(*lost));
            }
            Synthesized::LeftOut { calls } => self.ledger.left_out = *calls,
            Synthesized::NotPermitted { calls } => self.ledger.not_permitted = *calls,
            Synthesized::UntracedRequests { counts } => self.ledger.untraced_requests.clone_from(counts),
            Synthesized::Shortage(shortage) => self.ledger.shortages.push(*shortage),
            Synthesized::Notice(notice) => self.notice(notice.clone(), events),
            Synthesized::Reaped { pid, status } => self.reaped(*pid, *status, events),
            Synthesized::Full { cpu } => self.gap_ends(*cpu, time),
            Synthesized::InFlight { task, call, last, stack, copies } => {
                self.in_flight(time, *task, (call, stack.as_ref(), copies), *last, events);
            }
            Synthesized::Sleeping { task, nr, args, stack, copies } => self.sleeping(time, *task, (*nr, *args), (stack.as_ref(), copies)),
            Synthesized::Injected { tid, abi, nr, args, answered, delayed, killable, copies } => {
                let injected = Injected { answered: *answered, delayed: *delayed, as_value: self.is_value(*abi, *nr) };
                let (start, copies) = (time, copies.clone());
                self.call_changed(*tid, ChangedCall { start, abi: *abi, nr: *nr, args: *args, injected, killable: *killable, copies });
            }
            Synthesized::Maps { pid, maps } => {
                for FileMapping { start, end, offset, file, path } in maps {
                    self.maps.map(*pid, (*start, end.saturating_sub(*start), *offset), true, *file, path);
                }
            }
            Synthesized::Silenced { .. } => {}
        }
    }

    /// Emits a notice as an event that belongs to no task.
    pub fn notice(&mut self, notice: Notice, events: &mut Vec<Event>) {
        self.outbox.push(Event::of_notice(self.now, notice), 0, events);
    }

    /// Releases the events that waited for a read of a task's /proc files.
    fn answered(&mut self, tid: i32, events: &mut Vec<Event>) {
        let is_in_namespace = self.tasks.find(tid).is_some_and(|slot| self.threads[slot.index()].nested == Some(false));
        for ticket in self.task_reads.take_waiting(tid) {
            if let Some(call) = self.outbox.call(ticket).filter(|call| is_in_namespace && call.id.tid == tid) {
                call.pids = PidTranslation::Same;
            }
            self.outbox.release_one(ticket, events);
        }
    }

    /// Sets how the command ended, in the event of its end.
    fn reaped(&mut self, pid: i32, status: i32, events: &mut Vec<Event>) {
        let Some(ticket) = self.command.take_end(pid) else { return };
        self.outbox.set_task_end(ticket, ends::of_status(status), events);
    }
}
