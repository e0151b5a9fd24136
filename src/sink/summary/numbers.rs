//! What was counted, by group, object and syscall.

use super::objects::ObjectId;
use super::stat::Stat;
use crate::beauty::{errno, lookup, tables::SYSCALLS};
use crate::event::{Abi, Call, Exit, Sum};
use crate::text::escape;
use rustc_hash::FxHashMap;

/// The numbers of a time: of the whole run, or of an interval.
#[derive(Debug, Default)]
pub struct Numbers {
    stats: Vec<Stat>,
    of_call: FxHashMap<(u32, ObjectId, CallKey), u32>,
    /// What was counted beside calls, by group.
    counts: Vec<Counts>,
}

/// What a group did beside its calls.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub events: u64,
    pub major_faults: u64,
    pub minor_faults: u64,
    /// Nanoseconds on a CPU, from sched_stat_runtime; none if that was not asked for.
    pub runtime: Option<u64>,
}

/// A syscall: its row, so that the ABIs' numbers for it are one; its number where there is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKey {
    Row(u16),
    Number(Abi, i64),
}

/// What was counted of one group.
#[derive(Debug, Default)]
pub struct OfGroup {
    pub counts: Counts,
    pub stats: FxHashMap<(ObjectId, CallKey), Stat>,
}

impl Numbers {
    pub fn call(&mut self, group: u32, object: ObjectId, call: &Call, errnos: bool) {
        self.counts(group).events += 1;
        let stat = self.stat(group, object, call.abi, call.nr);
        stat.calls += 1;
        match call.duration() {
            Some(duration) => stat.times.add(duration),
            None => stat.untimed += u64::from(call.exit != Exit::Never),
        }
        if let Some(errno) = call.errno().filter(|errno| !errno::is_restart(*errno)) {
            stat.errors += 1;
            if errnos {
                stat.count_errno(errno, 1);
            }
        }
    }

    /// Calls that the kernel summed up.
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

    fn stat_of(&mut self, key: (u32, ObjectId, CallKey)) -> &mut Stat {
        let place = *self.of_call.entry(key).or_insert_with(|| {
            self.stats.push(Stat::default());
            self.stats.len() as u32 - 1
        });
        &mut self.stats[place as usize]
    }

    /// What another time counted as well.
    pub fn add(&mut self, other: &Numbers) {
        for (group, counts) in other.counts.iter().enumerate() {
            self.counts(group as u32).add(counts);
        }
        for (key, place) in &other.of_call {
            self.stat_of(*key).add(&other.stats[*place as usize]);
        }
    }

    pub fn events(&self) -> u64 {
        self.counts.iter().map(|counts| counts.events).sum()
    }

    /// By group; `same` says which group stands for each.
    pub fn of_groups(&self, same: &[u32]) -> Vec<(u32, OfGroup)> {
        let mut groups: FxHashMap<u32, OfGroup> = FxHashMap::default();
        let stands_for = |group: u32| same.get(group as usize).copied().unwrap_or(group);
        for (group, counts) in self.counts.iter().enumerate() {
            groups.entry(stands_for(group as u32)).or_default().counts.add(counts);
        }
        for ((group, object, key), place) in &self.of_call {
            let group = groups.entry(stands_for(*group)).or_default();
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
        if let Some(runtime) = other.runtime {
            *self.runtime.get_or_insert(0) += runtime;
        }
    }
}

impl CallKey {
    pub fn name(self) -> String {
        let mut name = Vec::new();
        match self {
            CallKey::Row(row) => name.extend_from_slice(SYSCALLS[usize::from(row)].name.as_bytes()),
            CallKey::Number(abi, nr) => lookup::write_name(&mut name, None, abi, nr),
        }
        shown(&name)
    }
}

/// Text from outside, as a table may have it.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    escape::plain(&mut text, bytes);
    String::from_utf8_lossy(&text).into_owned()
}
