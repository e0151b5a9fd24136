//! Counts of armed events, and data that they lack.

use super::Armed;
use crate::bpf::Programs;
use crate::event::EventIndex;
use crate::event::verdict::{Shortage, ShortageKind};
use crate::session::Role;
use crate::sys::perf::Count;
use std::collections::BTreeSet;

impl Armed {
    /// Returns the number of events of this kind that were disabled from another CPU. For each of them, the kernel may
    /// have counted one occurrence that it did not write.
    pub fn disabled_remotely(&self, event: EventIndex) -> u64 {
        self.disabled_remotely.get(&event).copied().unwrap_or_default()
    }

    /// Returns the counts of each planned event, summed over all CPUs, targets and inherited events.
    pub fn counts(&self) -> Vec<(EventIndex, Count)> {
        let mut counts = vec![Count { issued: 0, lost: Some(0) }; self.table.events.len()];
        for armed in &self.events {
            if let (Ok(count), Some(sum)) = (armed.event.count(), counts.get_mut(usize::from(armed.index.0))) {
                sum.issued += count.issued;
                sum.lost = sum.lost.zip(count.lost).map(|(a, b)| a + b);
            }
        }
        if let Some(programs) = &self.programs {
            // The events of the BPF programs count neither calls nor lost records. The first event stands for all of
            // them.
            let of_bpf = self.table.events.iter().zip(&mut counts).filter(|(spec, _)| spec.role == Role::BpfCall);
            let account = programs.account();
            let sum = Count { issued: account.calls - account.left_out.min(account.calls), lost: Some(account.calls_lost) };
            of_bpf.enumerate().for_each(|(kind, (_, count))| *count = if kind == 0 { sum } else { Count { issued: 0, lost: Some(0) } });
        }
        let counts = counts.into_iter().zip(&self.table.events).enumerate().filter(|(_, (_, spec))| !spec.is_by_instance());
        counts.map(|(i, (count, _))| (EventIndex(i as u16), count)).collect()
    }

    /// Returns the number of calls that have begun, by the kernel's count of their entries.
    pub fn calls_begun(&self) -> u64 {
        let begin = |event: &EventIndex| self.table.get(*event).is_some_and(|spec| spec.role.begins_calls());
        self.counts().into_iter().filter(|(event, _)| begin(event)).map(|(_, count)| count.issued).sum()
    }

    /// Returns how many calls satisfied the condition for a snapshot. The kernel's filter does not count while it
    /// reports nothing.
    pub fn calls_matched(&self) -> Option<u64> {
        self.programs.as_ref().map(|programs| programs.account().matches)
    }

    /// Returns the number of calls that the BPF programs filtered out as requested.
    pub fn left_out(&self) -> u64 {
        self.programs.as_ref().map_or(0, |programs| programs.account().left_out)
    }

    /// Returns the number of calls that were not shown because the caller may not trace their programs.
    pub fn withheld(&self) -> u64 {
        self.programs.as_ref().map_or(0, |programs| programs.account().withheld)
    }

    /// Returns the opcodes of the requests of io_uring that were counted and not traced, and how many there were.
    pub fn untraced_requests(&self) -> Vec<(u8, u64)> {
        self.programs.as_ref().map_or_else(Vec::new, Programs::requests_made)
    }

    /// Returns the BPF programs on the tracepoints of rtrace's events, by event. One descriptor per event is queried,
    /// because the kernel keeps the programs per tracepoint.
    pub fn programs(&self) -> Vec<(EventIndex, Vec<u32>)> {
        let mut queried = BTreeSet::new();
        let tracepoints =
            self.events.iter().filter(|e| self.table.get(e.index).is_some_and(|spec| spec.format.is_some() && spec.role != Role::Output));
        tracepoints.filter(|e| queried.insert(e.index)).map(|e| (e.index, e.event.programs())).filter(|(_, ids)| !ids.is_empty()).collect()
    }

    /// Returns the kinds of data that are missing because the BPF programs had no room for it, or because threads
    /// started while the events were opened.
    pub fn shortages(&self) -> Vec<Shortage> {
        let of_objects =
            [ShortageKind::SkippedObjects.counted(self.objects.skipped()), ShortageKind::ObjectTasks.counted(self.objects.tasks_lost())];
        let of_start = self.may_lack_threads.then_some(Shortage { kind: ShortageKind::Threads, count: None });
        self.shortages_of_calls().into_iter().chain(of_objects).chain([of_start]).flatten().collect()
    }

    fn shortages_of_calls(&self) -> Vec<Option<Shortage>> {
        let Some(programs) = &self.programs else { return Vec::new() };
        let account = programs.account();
        let all = [
            (ShortageKind::Tasks, account.tasks_lost),
            (ShortageKind::Memory, account.scratch_lost),
            (ShortageKind::Data, account.parts_lost),
            (ShortageKind::Ends, account.ends_lost),
            (ShortageKind::CompatCalls, programs.compat_unseen()),
            (ShortageKind::SkippedCalls, programs.skipped()),
            (ShortageKind::SkippedTasks, programs.skipped_tasks()),
            (ShortageKind::UnchangedCalls, account.unchanged),
        ];
        all.into_iter().map(|(kind, count)| kind.counted(count)).collect()
    }
}
