//! Compares the calls that corresponding processes make on one file.

use super::difference::{Side, What};
use super::outline::{Outcome, Tally, Use};
use super::slower::{Timed, slower};
use super::words::Word;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A call is made far more often if there are at least this many times as many calls, ...
const MORE_RATIO: u64 = 10;

/// ... and at least this many more. In five runs of each of 32 commands (compilers, git, tar, python3, curl, ps) beside
/// other work on two CPUs, no call was made four times as often and 20 times more.
const MORE_CALLS: u64 = 100;

/// All calls on one file.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The place of the first call in its recording.
    pub first: u64,
    /// The calls of both recordings, by name.
    calls: BTreeMap<Word, [Calls; 2]>,
}

/// The calls of one name on one file.
#[derive(Clone, Debug, Default)]
struct Calls {
    count: u64,
    succeeded: bool,
    no_data: bool,
    /// The errors, with their numbers of calls.
    errnos: BTreeMap<i32, u64>,
    details: BTreeSet<Word>,
    time: u64,
    is_compared: bool,
    /// The calls use the file, and do not only hand a descriptor on.
    uses_file: bool,
    /// The calls have paths that the recording does not have.
    lacks_path: bool,
}

impl Calls {
    fn add(&mut self, detail: Word, tally: &Tally) {
        self.uses_file |= tally.uses_file;
        self.lacks_path |= tally.lacks_path;
        self.count += tally.calls;
        self.time = self.time.saturating_add(tally.time);
        self.is_compared |= tally.is_compared;
        self.details.insert(detail);
        for (outcome, calls) in &tally.outcomes {
            match outcome {
                Outcome::Success => self.succeeded = true,
                Outcome::NoData => self.no_data = true,
                Outcome::Errno(errno) => *self.errnos.entry(*errno).or_default() += calls,
            }
        }
    }

    fn is_there(&self) -> bool {
        self.is_compared && self.count > 0
    }

    fn worked(&self) -> bool {
        self.succeeded || self.no_data
    }

    fn errnos(&self) -> BTreeSet<i32> {
        self.errnos.keys().copied().collect()
    }

    fn timed(calls: &[Calls; 2]) -> Timed {
        Timed { time: [calls[0].time, calls[1].time], calls: [calls[0].count, calls[1].count] }
    }
}

impl Group {
    /// Returns whether a call on the file succeeded.
    pub fn worked(&self, side: Side) -> bool {
        self.calls.values().any(|calls| calls[side.index()].worked())
    }

    /// Returns how long the calls took that both recordings have, by their names, unless they are slower by themselves.
    pub fn times(&self) -> impl Iterator<Item = (Word, Timed)> {
        let both = self.calls.iter().filter(|(_, calls)| calls.iter().all(|calls| calls.count > 0));
        both.map(|(call, calls)| (*call, Calls::timed(calls))).filter(|(_, timed)| slower(timed).is_none())
    }
}

/// Returns the calls of both recordings by the file that they are about, in the order of their first calls.
pub fn groups(uses: [&FxHashMap<Use, Tally>; 2]) -> Vec<(Word, Group)> {
    let mut groups: FxHashMap<Word, Group> = FxHashMap::default();
    for (side, uses) in uses.into_iter().enumerate() {
        for (key, tally) in uses {
            let group = groups.entry(key.object).or_insert_with(|| Group { first: u64::MAX, ..Group::default() });
            group.first = group.first.min(tally.first);
            group.calls.entry(key.call).or_default()[side].add(key.detail, tally);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(object, group)| (group.first, *object));
    groups
}

/// Compares the calls of a group. `has_object` says whether they are about a file.
pub fn compare_group(group: &Group, has_object: bool) -> Vec<What> {
    let is_there = |side: Side| group.calls.values().any(|calls| calls[side.index()].is_there());
    for side in Side::BOTH {
        if has_object && is_there(side) && !is_there(side.other()) {
            let is_used = group.calls.values().any(|calls| calls[side.index()].uses_file);
            return if is_used { vec![only_in(side, group)] } else { Vec::new() };
        }
    }
    let mut found = Vec::new();
    for (call, calls) in &group.calls {
        if calls.iter().all(Calls::is_there) {
            found.extend(outcomes(*call, calls));
        }
        let timed = Calls::timed(calls);
        found.extend(slower(&timed).map(|side| What::Slower { side, call: *call, timed }));
    }
    // What a program does with a file that it cannot use follows from that.
    let is_explained = found.iter().any(|what| matches!(what, What::Fails { always: true, .. }));
    if !is_explained {
        for (call, calls) in &group.calls {
            match calls.iter().all(Calls::is_there) {
                true => found.extend(arguments(*call, calls)),
                false => found.extend(Side::BOTH.into_iter().find_map(|side| alone(side, *call, calls))),
            }
        }
    }
    found
}

/// Returns the difference of a file that one recording alone uses.
fn only_in(side: Side, group: &Group) -> What {
    let of_side = || group.calls.iter().map(|(call, calls)| (call, &calls[side.index()])).filter(|(_, calls)| calls.is_there());
    let calls = of_side().map(|(call, _)| *call).collect();
    let errnos: BTreeSet<i32> = of_side().flat_map(|(_, calls)| calls.errnos()).collect();
    match of_side().any(|(_, calls)| calls.worked()) || errnos.is_empty() {
        true => What::Uses { side, calls },
        false => What::Tries { side, calls, errnos, found: false },
    }
}

fn outcomes(call: Word, calls: &[Calls; 2]) -> Option<What> {
    for side in Side::BOTH {
        let (here, there) = (&calls[side.index()], &calls[side.other().index()]);
        if there.worked() && !here.worked() && !here.errnos.is_empty() {
            return Some(What::Fails { side, call, errnos: here.errnos(), always: true });
        }
        let errnos: BTreeSet<i32> = here.errnos().difference(&there.errnos()).copied().collect();
        if there.worked() && !errnos.is_empty() {
            return Some(What::Fails { side, call, errnos, always: false });
        }
        if there.succeeded && here.no_data && !here.succeeded {
            return Some(What::NoData { side, call });
        }
    }
    if calls.iter().any(|calls| calls.lacks_path) {
        return more_failures(call, calls);
    }
    let errnos = [calls[0].errnos(), calls[1].errnos()];
    let differ = !calls[0].worked() && !calls[1].worked() && errnos[0] != errnos[1] && !errnos.iter().any(BTreeSet::is_empty);
    differ.then_some(What::FailsOtherwise { call, errnos })
}

/// Returns the difference of a call that fails more often in one recording. If a recording does not have the paths of
/// calls, a missing file is visible in no other way.
fn more_failures(call: Word, calls: &[Calls; 2]) -> Option<What> {
    let all: BTreeSet<i32> = calls.iter().flat_map(Calls::errnos).collect();
    let count = |errno: i32| [0, 1].map(|side: usize| calls[side].errnos.get(&errno).copied().unwrap_or_default());
    let found = all.into_iter().map(|errno| (errno, count(errno))).find(|(_, [a, b])| a != b)?;
    Some(What::FailsMore { call, errno: found.0, calls: found.1 })
}

/// Returns the difference of a call that one recording alone makes on the file.
fn alone(side: Side, call: Word, calls: &[Calls; 2]) -> Option<What> {
    let (here, there) = (&calls[side.index()], &calls[side.other().index()]);
    let errnos = if here.worked() { BTreeSet::new() } else { here.errnos() };
    (here.is_there() && !there.is_there()).then(|| What::Calls { side, calls: BTreeSet::from([call]), errnos })
}

/// Returns how the arguments or the numbers of calls differ.
fn arguments(call: Word, calls: &[Calls; 2]) -> Option<What> {
    let only = |side: usize| calls[side].details.difference(&calls[1 - side].details).copied().collect::<BTreeSet<Word>>();
    let details = [only(0), only(1)];
    if details.iter().any(|details| !details.is_empty()) {
        return Some(What::Details { call, details });
    }
    let count = [calls[0].count, calls[1].count];
    let is_more = |side: &Side| {
        let (here, there) = (count[side.index()], count[side.other().index()]);
        here >= there.saturating_mul(MORE_RATIO) && here - there >= MORE_CALLS
    };
    Side::BOTH.into_iter().find(is_more).map(|side| What::More { side, call, calls: count })
}
