//! Samples: records of tracepoints, probes and software events.

use super::{Follower, RecordContext};
use crate::event::{Caller, Event, EventIndex, EventKind, Fault, TaskId};
use crate::session::Scope;
use crate::source::{Record, Sample};
use crate::syscall::layout::Layout;
use crate::syscall::ledger::LeftOut;

impl Follower {
    /// Processes a sample.
    #[inline]
    pub(super) fn sample(&mut self, record: &Record<'_>, sample: &Sample<'_>, events: &mut Vec<Event>) {
        if let Some(Layout::Call) = self.layouts.get(usize::from(sample.event.0)) {
            return self.bpf_record(record, sample, events);
        }
        if let Some(&Layout::Generate(layout)) = self.layouts.get(usize::from(sample.event.0)) {
            self.emit_tallied(events);
            return self.generated(record, sample, layout, events);
        }
        self.ledger.account(sample.event).receive(sample.count);
        if let Some(&Layout::CgroupMove(layout)) = self.layouts.get(usize::from(sample.event.0)) {
            return self.cgroup_changed(layout, sample.raw, record.time);
        }
        if self.stream.is_output(sample.event) && !self.follows(record.task, sample.event) {
            return self.ledger.leave_out(sample.event, LeftOut::Excluded);
        }
        let task = if self.stream.is_by_instance(sample.event) {
            self.ledger.instance.receive(1);
            let Some(task) = self.task_of_thread(record.task.tid, sample.event) else {
                return self.ledger.leave_out(sample.event, LeftOut::Excluded);
            };
            task
        } else {
            record.task
        };
        let slot = self.slot(task, record.time);
        let context = RecordContext { time: record.time, cpu: record.cpu, task, slot };
        if self.kernel_pids.is_some() {
            self.learn_kernel_pid(context, sample, events);
        }
        if let Some(why) = self.left_out(context, sample) {
            self.ledger.leave_out(sample.event, why);
            return;
        }
        // Moved out for the time of the call: layouts do not change, but processing a record borrows all of the other
        // state.
        let layouts = std::mem::take(&mut self.layouts);
        match layouts.get(usize::from(sample.event.0)) {
            Some(Layout::Enter(layout)) => self.enter(context, layout, sample, events),
            Some(Layout::Exit(layout)) => self.exit(context, *layout, sample, events),
            Some(other) => {
                self.emit_tallied(events);
                self.other_sample(context, other, sample, events);
            }
            None => {}
        }
        self.layouts = layouts;
        if self.stream.is_shown(sample.event) {
            self.emit_tallied(events);
            let stack = self.stack_of_event(context, sample);
            let caller = self.caller(context, sample).map(Box::new);
            let (call, waits) = self.call_of_event(context, sample, events);
            let kind = EventKind::Tracepoint { event: sample.event, raw: sample.raw.into(), stack, caller, call };
            self.emit(context, kind, u32::from(waits), events);
        }
    }

    /// Returns the place in a program that the probed function of a return probe returned to.
    #[inline]
    fn caller(&mut self, context: RecordContext, sample: &Sample<'_>) -> Option<Caller> {
        let field = self.stream.returns(sample.event)?;
        let address = field.unsigned(sample.raw)?;
        let place = self.maps.at(context.task.pid, address)?;
        let frame = self.stacks.as_mut()?.frame(&self.maps, context.task.pid, address);
        Some(Caller { place, frame })
    }

    /// Returns the task of a record that has only a tid. If the task began unseen, its /proc files are requested; until
    /// they are read it counts as a process of one thread.
    ///
    /// Returns `None` for a task that is not traced. The kernel records events of the scheduler both for the previous
    /// and for the next thread.
    fn task_of_thread(&mut self, tid: i32, event: EventIndex) -> Option<TaskId> {
        if let Some(task) = self.tasks.get(tid) {
            return Some(task.id);
        }
        // Records that only help to interpret others are not needed for tasks that are not traced.
        if !self.stream.is_shown(event) || self.stream.scope != Scope::System && !self.gaps.was_any() {
            return None;
        }
        self.request_task(tid);
        Some(TaskId { pid: tid, tid })
    }

    /// Returns whether a task is traced. The user's BPF programs run in every task; the stream introduces each traced
    /// task before its first record.
    #[cold]
    fn follows(&mut self, task: TaskId, output: EventIndex) -> bool {
        if self.stream.scope == Scope::System {
            return true;
        }
        let inherits = self.stream.inherits(output);
        let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task) else { return false };
        let thread = &self.threads[slot.index()];
        !thread.untraced && (inherits || thread.created.is_none())
    }

    /// Returns the reason why a record is left out, if there is one.
    #[inline]
    fn left_out(&mut self, context: RecordContext, sample: &Sample<'_>) -> Option<LeftOut> {
        let thread = &mut self.threads[context.slot.index()];
        if thread.excluded {
            return Some(LeftOut::Excluded);
        }
        if self.stream.scope == Scope::Tasks && !thread.is_first_report(sample.event.0, context.cpu, sample.origin) {
            return Some(LeftOut::Duplicate);
        }
        (thread.set_up && !self.begins_command(context, sample)).then_some(LeftOut::SetUp)
    }

    /// Processes a sample that is neither the entry nor the exit of a call.
    #[cold]
    fn other_sample(&mut self, context: RecordContext, layout: &Layout, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let raw = sample.raw;
        match layout {
            Layout::Exec(layout) => {
                // If the old pid is not known, that thread has made no call here, and there is no state to take over.
                let old_tid = self.translate_pid(layout.old_pid.signed(raw) as i32).unwrap_or(context.task.tid);
                self.exec(context, layout.filename.data_loc_text(raw), old_tid, events);
            }
            Layout::NewTask(layout) => {
                let flags = layout.flags.unsigned(raw);
                if let Some(tid) = self.created_child(context, layout.pid.signed(raw) as i32) {
                    self.new_task(context, tid, layout.comm.text(raw), flags, events);
                }
            }
            Layout::Deliver(layout) => self.delivered(context, layout, sample, events),
            Layout::TaskExit => self.task_end(context, events),
            Layout::Submitted(layout) => self.submitted(context, sample.event, layout.read(raw), events),
            Layout::Completed(layout) => self.completed(context, layout.read(raw), events),
            Layout::Canceled(layout) => self.canceled(layout.read(raw)),
            Layout::PathName(layout) => self.path_name(context, *layout, raw, events),
            Layout::Fault { major } => {
                let (ip, address, pid) = (sample.ip, sample.address, context.task.pid);
                let stack = self.stack_of_event(context, sample);
                let (ip_at, address_at) = (self.maps.at(pid, ip), self.maps.at(pid, address));
                let fault = Fault { major: *major, ip, address, ip_at, address_at, stack };
                self.emit(context, EventKind::Fault(Box::new(fault)), 0, events);
            }
            Layout::Enter(_) | Layout::Exit(_) | Layout::Call | Layout::CgroupMove(_) | Layout::Generate(_) | Layout::Other { .. } => {}
        }
    }
}
