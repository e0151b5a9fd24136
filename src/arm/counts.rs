//! Counts of armed events, and data that they lack.

use super::Armed;
use crate::event::EventIndex;
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

    /// Returns the number of calls that the BPF programs filtered out as requested.
    pub fn left_out(&self) -> u64 {
        self.programs.as_ref().map_or(0, |programs| programs.account().left_out)
    }

    /// Returns the number of calls that were not shown because the caller may not trace their programs.
    pub fn withheld(&self) -> u64 {
        self.programs.as_ref().map_or(0, |programs| programs.account().withheld)
    }

    /// Returns the BPF programs on the tracepoints of rtrace's events, by event. One descriptor per event is queried,
    /// because the kernel keeps the programs per tracepoint.
    pub fn programs(&self) -> Vec<(EventIndex, Vec<u32>)> {
        let mut queried = BTreeSet::new();
        let tracepoints =
            self.events.iter().filter(|e| self.table.get(e.index).is_some_and(|spec| spec.format.is_some() && spec.role != Role::Output));
        tracepoints.filter(|e| queried.insert(e.index)).map(|e| (e.index, e.event.programs())).filter(|(_, ids)| !ids.is_empty()).collect()
    }

    /// Returns a sentence for each kind of data that is missing because the BPF programs or the opening of events fell
    /// short.
    pub fn shortages(&self) -> Vec<String> {
        let skipped = self.objects.skipped();
        let of_objects = (skipped > 0).then(|| {
            format!("the kernel skipped BPF programs of -e {skipped} times, because they interrupted another BPF program; on a tracepoint, up to that many records may be missing for each of its tracers")
        });
        let unfollowed = self.objects.tasks_lost();
        let of_tasks = (unfollowed > 0)
            .then(|| format!("the BPF programs of -e did not run for {unfollowed} tasks: the kernel had no memory to follow them"));
        let of_start = self.may_lack_threads.then(|| {
            "threads of the traced processes may be missing: they were created and ended faster than rtrace could open events on them (the BPF engine needs no such events)"
                .to_owned()
        });
        self.shortages_of_calls().into_iter().chain(of_objects).chain(of_tasks).chain(of_start).collect()
    }

    fn shortages_of_calls(&self) -> Vec<String> {
        let Some(programs) = &self.programs else { return Vec::new() };
        let account = programs.account();
        let memory = "the kernel had no memory at that moment";
        let all = [
            (account.tasks_lost, "tasks were not followed", memory),
            (account.scratch_lost, "calls are shown without the memory that their arguments point to", memory),
            (
                account.parts_lost,
                "times the data of a call is truncated",
                "it did not fit into one record, and a further record did not fit into the ring buffer",
            ),
            (account.ends_lost, "signals and task exits are missing", "their records did not fit into the ring buffer"),
            (
                programs.compat_unseen(),
                "32-bit programs lack their first calls",
                "rtrace traces 32-bit calls only after such a program has started",
            ),
            (
                programs.skipped(),
                "times the kernel skipped a BPF program",
                "at most that many calls are missing, or lack their entry or exit",
            ),
            (
                programs.skipped_tasks(),
                "times the kernel skipped a BPF program that follows tasks",
                "at most that many tasks or task exits are missing",
            ),
        ];
        all.iter().filter(|(count, ..)| *count > 0).map(|(count, what, why)| format!("{count} {what}: {why}")).collect()
    }
}
