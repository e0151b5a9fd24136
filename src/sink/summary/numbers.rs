//! The numbers of the summary, by group, object and syscall.

use super::objects::ObjectId;
use super::stat::Stat;
use crate::beauty::{errno, lookup, tables::SYSCALLS};
use crate::event::{Abi, Call, ExitState, Sum, TalliedCall};
use crate::text::escape;
use rustc_hash::FxHashMap;

/// The number of syscalls that are found without a look-up by hash.
const RECENT: usize = 32;

/// A syscall of a group and an object.
type StatKey = (u32, ObjectId, CallKey);

/// The numbers of a period: of the whole run, or of an interval.
#[derive(Debug, Default)]
pub struct Numbers {
    stats: Vec<Stat>,
    /// The place in `stats` of each syscall of each group and object.
    of_call: FxHashMap<StatKey, u32>,
    /// The last syscalls that were looked up there, by their row or number: programs make few different ones in turn.
    recent: [Option<(StatKey, u32)>; RECENT],
    /// The counts by group.
    counts: Vec<Counts>,
}

/// The counts of a group: all events including calls, page faults, and CPU time.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The number of events: calls, page faults and tracepoints.
    pub events: u64,
    /// The number of page faults that needed I/O.
    pub major_faults: u64,
    /// The number of page faults without I/O.
    pub minor_faults: u64,
    /// The CPU time in nanoseconds from sched_stat_runtime; `None` if that was not requested.
    pub runtime: Option<u64>,
}

/// A syscall: its row, which is common to the ABIs, or its number if it has no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKey {
    Row(u16),
    Number(Abi, i64),
}

/// The numbers of one group.
#[derive(Debug, Default)]
pub struct GroupNumbers {
    /// The counts that are not of single syscalls.
    pub counts: Counts,
    /// The numbers of the group's calls, by object and syscall.
    pub stats: FxHashMap<(ObjectId, CallKey), Stat>,
}

impl Numbers {
    /// Adds one call, with its duration if that is known. With `errnos`, failures are also counted by errno.
    pub fn call(&mut self, group: u32, object: ObjectId, call: &Call, errnos: bool) {
        self.counts(group).events += 1;
        let stat = self.stat(group, object, call.abi, call.nr);
        stat.calls += 1;
        match call.duration() {
            Some(duration) => stat.times.add(duration),
            None => stat.untimed += u64::from(call.exit != ExitState::Never),
        }
        call.errno().into_iter().for_each(|errno| stat.failure(errno, errnos));
    }

    /// As [`Numbers::call`], for a call of which only numbers are known.
    #[inline]
    pub fn tallied(&mut self, group: u32, call: &TalliedCall, errnos: bool) {
        self.counts(group).events += 1;
        let stat = self.stat_of((group, ObjectId::ANY, CallKey::Row(call.row)));
        stat.calls += 1;
        stat.times.add(call.duration);
        if call.errno != 0 {
            stat.failure(call.errno.into(), errnos);
        }
    }

    /// Adds calls that the BPF programs aggregated.
    pub fn sum(&mut self, group: u32, sum: &Sum, errnos: bool) {
        self.counts(group).events += sum.calls;
        let stat = self.stat(group, ObjectId::ANY, sum.abi, sum.nr);
        stat.calls += sum.calls;
        stat.times.add_all(sum.times.count(), &sum.times);
        for &(errno, count) in sum.errnos.iter().filter(|(errno, _)| !errno::is_restart(*errno)) {
            stat.errors += count;
            if errnos {
                stat.count_errno(errno, count);
            }
        }
    }

    /// Returns the counts of a group, to be changed. A new group has counts of 0.
    pub fn counts(&mut self, group: u32) -> &mut Counts {
        let at = group as usize;
        if self.counts.len() <= at {
            self.counts.resize_with(at + 1, Counts::default);
        }
        &mut self.counts[at]
    }

    fn stat(&mut self, group: u32, object: ObjectId, abi: Abi, nr: i64) -> &mut Stat {
        let key = lookup::index(abi, nr).map_or(CallKey::Number(abi, nr), CallKey::Row);
        self.stat_of((group, object, key))
    }

    #[inline]
    fn stat_of(&mut self, key: StatKey) -> &mut Stat {
        let number = match key.2 {
            CallKey::Row(row) => usize::from(row),
            CallKey::Number(_, nr) => nr as usize,
        };
        let recent = &mut self.recent[number % RECENT];
        if let Some((_, place)) = recent.filter(|(recent, _)| *recent == key) {
            return &mut self.stats[place as usize];
        }
        let place = *self.of_call.entry(key).or_insert_with(|| {
            self.stats.push(Stat::default());
            self.stats.len() as u32 - 1
        });
        *recent = Some((key, place));
        &mut self.stats[place as usize]
    }

    /// Adds the numbers of another period.
    pub fn add(&mut self, other: &Numbers) {
        for (group, counts) in other.counts.iter().enumerate() {
            self.counts(group as u32).add(counts);
        }
        for (key, place) in &other.of_call {
            self.stat_of(*key).add(&other.stats[*place as usize]);
        }
    }

    /// Returns the number of events of all groups together.
    pub fn events(&self) -> u64 {
        self.counts.iter().map(|counts| counts.events).sum()
    }

    /// Returns the numbers by group. `same` has for each group the group in which it is counted.
    pub fn of_groups(&self, same: &[u32]) -> Vec<(u32, GroupNumbers)> {
        let mut groups: FxHashMap<u32, GroupNumbers> = FxHashMap::default();
        let counted_in = |group: u32| same.get(group as usize).copied().unwrap_or(group);
        for (group, counts) in self.counts.iter().enumerate() {
            groups.entry(counted_in(group as u32)).or_default().counts.add(counts);
        }
        for ((group, object, key), place) in &self.of_call {
            let group = groups.entry(counted_in(*group)).or_default();
            group.stats.entry((*object, *key)).or_default().add(&self.stats[*place as usize]);
        }
        groups.retain(|_, of| of.counts.events > 0 || of.counts.runtime.is_some() || !of.stats.is_empty());
        groups.into_iter().collect()
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.events += other.events;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
        other.runtime.into_iter().for_each(|runtime| self.add_runtime(runtime));
    }

    /// Adds nanoseconds on a CPU. A sum that is too large becomes the largest value.
    pub fn add_runtime(&mut self, runtime: u64) {
        self.runtime = Some(self.runtime.unwrap_or(0).saturating_add(runtime));
    }
}

impl CallKey {
    /// Returns the name of the syscall or request, escaped for a table; `syscall_N` for a number without a known name.
    pub fn name(self) -> String {
        let mut name = Vec::new();
        match self {
            CallKey::Row(row) => name.extend_from_slice(SYSCALLS[usize::from(row)].name.as_bytes()),
            CallKey::Number(abi, nr) => lookup::write_name(&mut name, None, abi, nr),
        }
        shown(&name)
    }
}

/// Returns untrusted text, escaped for a table.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    escape::plain(&mut text, bytes);
    String::from_utf8_lossy(&text).into_owned()
}
