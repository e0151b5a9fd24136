//! Random interleavings of threads on CPUs whose rings lose records: no call gets another's times, and every call is accounted for.

use super::bed::*;
use crate::event::{Call, Entry, Exit, Note, TaskId, Time};
use crate::task::look::Blind;
use proptest::prelude::*;
use rustc_hash::FxHashMap;

/// A small generator (SplitMix64), so that one number makes a whole case.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What really happened.
#[derive(Clone, Copy, Debug)]
struct Truth {
    start: u64,
    end: u64,
    nr: u64,
    ret: i64,
}

/// A record, stored or not.
#[derive(Clone, Copy, Debug)]
struct Written {
    time: u64,
    cpu: usize,
    task: TaskId,
    nr: u64,
    enter: bool,
    ret: i64,
}

const CPUS: usize = 3;

/// Threads that call now and then, move between CPUs now and then (which takes a while), and the records of that.
fn happen(dice: &mut Dice) -> (Vec<Written>, FxHashMap<i32, Vec<Truth>>) {
    let mut written = Vec::new();
    let mut truth: FxHashMap<i32, Vec<Truth>> = FxHashMap::default();
    let mut ret = 0;
    for tid in 10..10 + 1 + dice.below(5) as i32 {
        let (mut time, mut cpu) = (1_000 + dice.below(500), dice.below(CPUS as u64) as usize);
        for _ in 0..dice.below(60) {
            let nr = [READ, READ, READ, 1][dice.below(4) as usize];
            let long = dice.below(4) == 0;
            let step = |time: &mut u64, dice: &mut Dice| *time += 40 + dice.below(if long { 20_000 } else { 300 });
            let start = time;
            ret += 1;
            written.push(Written { time, cpu, task: task(10, tid), nr, enter: true, ret });
            step(&mut time, dice);
            if dice.below(5) == 0 {
                cpu = dice.below(CPUS as u64) as usize;
                time += 1_000;
            }
            written.push(Written { time, cpu, task: task(10, tid), nr, enter: false, ret });
            truth.entry(tid).or_default().push(Truth { start, end: time, nr, ret });
            step(&mut time, dice);
            if dice.below(8) == 0 {
                cpu = dice.below(CPUS as u64) as usize;
                time += 1_000;
            }
        }
    }
    written.sort_by_key(|w| (w.time, w.task.tid));
    (written, truth)
}

/// Writes the records into rings, some of which are full for a while.
fn store<'a>(
    session: &'a crate::session::Session,
    written: &[Written],
    dice: &mut Dice,
    lossy: bool,
) -> (Vec<Ring<'a>>, [u64; 2], Vec<(Time, Note)>) {
    let mut rings: Vec<Ring> = (0..CPUS as u32).map(|cpu| Ring::new(session, cpu)).collect();
    let mut full_until = [0u64; CPUS];
    let mut dropped = [0u64; CPUS];
    let mut lost = [0u64; 2];
    for w in written {
        if lossy && full_until[w.cpu] < w.time && dice.below(25) == 0 {
            full_until[w.cpu] = w.time + dice.below(30_000);
        }
        if w.time < full_until[w.cpu] {
            dropped[w.cpu] += 1;
            lost[usize::from(!w.enter)] += 1;
            continue;
        }
        let ring = &mut rings[w.cpu];
        if std::mem::take(&mut dropped[w.cpu]) > 0 {
            ring.lost(w.time, 1);
        }
        if w.enter {
            ring.enter(w.time, w.task, w.nr, &[w.ret as u64]);
        } else {
            ring.exit(w.time, w.task, w.nr, w.ret);
        }
    }
    let end = written.last().map_or(0, |w| w.time + 1);
    let full = (0..CPUS).filter(|&cpu| dropped[cpu] > 0).map(|cpu| (Time(end), Note::Full { cpu: cpu as u32 }));
    let full = full.collect();
    (rings, lost, full)
}

fn check(call: &Call, truth: &FxHashMap<i32, Vec<Truth>>) -> (i32, i64) {
    let of_thread = &truth[&call.id.tid];
    let by_entry = of_thread.iter().find(|t| t.start == call.id.start.0);
    match (call.entry, call.exit) {
        (Entry::Seen, exit) => {
            let t = by_entry.expect("a call starts when one was entered");
            assert_eq!((call.nr as u64, call.args.unwrap()[0]), (t.nr, t.ret as u64));
            if let Exit::Returned { at, ret } = exit {
                assert_eq!((at.0, ret), (t.end, t.ret), "the exit is its own: {call:?}");
            }
            (call.id.tid, t.ret)
        }
        (_, Exit::Returned { at, ret }) => {
            let t = of_thread.iter().find(|t| t.end == at.0).expect("an exit is one that was");
            assert_eq!((ret, call.args, call.duration()), (t.ret, None, None));
            (call.id.tid, t.ret)
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_call_has_the_times_of_another(seed: u64, lossy: bool) {
        let dice = &mut Dice(seed);
        let session = session();
        let (written, truth) = happen(dice);
        let (mut rings, lost, mut notes) = store(&session, &written, dice, lossy);
        let issued = truth.values().map(|calls| calls.len() as u64).sum::<u64>();
        let count = |event, i: usize| (Time(u64::MAX - 1), Note::Count { event, issued, lost: lost[i], from_afar: 0 });
        notes.extend([count(ENTER, 0), count(EXIT, 1), (Time(u64::MAX - 1), Note::Count { event: ENTER_OPENAT, issued: 0, lost: 0, from_afar: 0 })]);
        let (events, engine) = run(&session, rings.iter_mut().collect(), notes);
        let mut given: Vec<_> = calls(&events).iter().map(|call| check(call, &truth)).collect();
        given.sort_unstable();
        let total = given.len();
        given.dedup();
        prop_assert_eq!(given.len(), total, "no call is given twice");
        let account = engine.ledger().calls_account().unwrap();
        prop_assert!(account.is_conserved());
        prop_assert_eq!(account.issued, issued);
        prop_assert_eq!(account.printed, total as u64);
        prop_assert_eq!(engine.ledger().disagreements().count(), 0);
        if !lossy {
            prop_assert!(calls(&events).iter().all(|call| call.duration().is_some()));
            prop_assert_eq!(total as u64, issued);
        }
    }

    /// Rounds that cut the stream anywhere give what one round gives.
    #[test]
    fn rounds_do_not_matter(seed: u64) {
        let dice = &mut Dice(seed);
        let session = session();
        let (written, _) = happen(dice);
        let (mut whole, ..) = store(&session, &written, dice, false);
        let (expected, _) = run(&session, whole.iter_mut().collect(), vec![]);
        let mut pieces = Run::new(&session);
        let mut rest = &written[..];
        while !rest.is_empty() {
            let (part, later) = rest.split_at((1 + dice.below(40) as usize).min(rest.len()));
            let started = later.first().map_or(u64::MAX, |w| w.time);
            let (mut rings, ..) = store(&session, part, dice, false);
            pieces.round(started, rings.iter_mut().map(Ring::chunk).collect(), vec![], &mut Blind);
            rest = later;
        }
        let (events, _) = pieces.end();
        // Between equal times on different CPUs there is no order.
        let sorted = |events: &[crate::event::Event]| {
            let mut lines = told(events);
            lines.sort();
            lines
        };
        prop_assert_eq!(sorted(&events), sorted(&expected));
    }
}
