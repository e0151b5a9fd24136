//! Random interleavings of threads on CPUs whose rings lose records: no call gets the times of another call, and every
//! call is accounted for.

use super::fixture::*;
use crate::event::{Call, EntryState, ExitState, Synthesized, TaskId, Time};
use proptest::prelude::*;
use rustc_hash::FxHashMap;

/// A small random generator (SplitMix64), so that a case is determined by one number.
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

/// A call that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedCall {
    start: u64,
    end: u64,
    nr: u64,
    ret: i64,
}

/// A record of a call, stored or dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneratedRecord {
    time: u64,
    cpu: usize,
    task: TaskId,
    nr: u64,
    enter: bool,
    ret: i64,
}

const CPUS: usize = 3;

/// Generates threads that make calls and sometimes migrate between CPUs (which takes some time), with their records.
pub(super) fn generate_calls(dice: &mut Dice) -> (Vec<GeneratedRecord>, FxHashMap<i32, Vec<ExpectedCall>>) {
    let mut written = Vec::new();
    let mut expected_calls: FxHashMap<i32, Vec<ExpectedCall>> = FxHashMap::default();
    let mut ret = 0;
    for tid in 10..10 + 1 + dice.below(5) as i32 {
        let (mut time, mut cpu) = (1_000 + dice.below(500), dice.below(CPUS as u64) as usize);
        for _ in 0..dice.below(60) {
            let nr = [READ, READ, READ, 1][dice.below(4) as usize];
            let long = dice.below(4) == 0;
            let step = |time: &mut u64, dice: &mut Dice| *time += 40 + dice.below(if long { 20_000 } else { 300 });
            let start = time;
            ret += 1;
            written.push(GeneratedRecord { time, cpu, task: task(10, tid), nr, enter: true, ret });
            step(&mut time, dice);
            if dice.below(5) == 0 {
                cpu = dice.below(CPUS as u64) as usize;
                time += 1_000;
            }
            written.push(GeneratedRecord { time, cpu, task: task(10, tid), nr, enter: false, ret });
            expected_calls.entry(tid).or_default().push(ExpectedCall { start, end: time, nr, ret });
            step(&mut time, dice);
            if dice.below(8) == 0 {
                cpu = dice.below(CPUS as u64) as usize;
                time += 1_000;
            }
        }
    }
    written.sort_by_key(|w| (w.time, w.task.tid));
    (written, expected_calls)
}

/// Writes the records into rings, some of which are full for a time.
pub(super) fn write_rings<'a>(
    session: &'a crate::session::Session,
    written: &[GeneratedRecord],
    dice: &mut Dice,
    lossy: bool,
) -> (Vec<Ring<'a>>, [u64; 2], Vec<(Time, Synthesized)>) {
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
    let full = (0..CPUS).filter(|&cpu| dropped[cpu] > 0).map(|cpu| (Time(end), Synthesized::Full { cpu: cpu as u32 }));
    let full = full.collect();
    (rings, lost, full)
}

fn check(call: &Call, expected_calls: &FxHashMap<i32, Vec<ExpectedCall>>) -> (i32, i64) {
    let of_thread = &expected_calls[&call.id.tid];
    let by_entry = of_thread.iter().find(|t| t.start == call.id.start.0);
    match (call.entry, call.exit) {
        (EntryState::Seen, exit) => {
            let t = by_entry.expect("each call starts at an entry");
            assert_eq!((call.nr as u64, call.args.unwrap()[0]), (t.nr, t.ret as u64));
            if let ExitState::Returned { at, ret } = exit {
                assert_eq!((at.0, ret), (t.end, t.ret), "the exit belongs to the call: {call:?}");
            }
            (call.id.tid, t.ret)
        }
        (_, ExitState::Returned { at, ret }) => {
            let t = of_thread.iter().find(|t| t.end == at.0).expect("each exit was generated");
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
        let (written, expected_calls) = generate_calls(dice);
        let (mut rings, lost, mut synthesized) = write_rings(&session, &written, dice, lossy);
        let issued = expected_calls.values().map(|calls| calls.len() as u64).sum::<u64>();
        let count = |event, i: usize| (Time(u64::MAX - 1), Synthesized::Count { event, issued, lost: lost[i], from_afar: 0 });
        synthesized.extend([count(ENTER, 0), count(EXIT, 1), (Time(u64::MAX - 1), Synthesized::Count { event: ENTER_OPENAT, issued: 0, lost: 0, from_afar: 0 })]);
        let (events, engine) = run(&session, rings.iter_mut().collect(), synthesized);
        let mut emitted: Vec<_> = calls(&events).iter().map(|call| check(call, &expected_calls)).collect();
        emitted.sort_unstable();
        let total = emitted.len();
        emitted.dedup();
        prop_assert_eq!(emitted.len(), total, "no call is emitted twice");
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

    /// The events do not depend on how the stream is cut into rounds.
    #[test]
    fn events_do_not_depend_on_round_boundaries(seed: u64) {
        let dice = &mut Dice(seed);
        let session = session();
        let (written, _) = generate_calls(dice);
        let (mut whole, ..) = write_rings(&session, &written, dice, false);
        let (expected, _) = run(&session, whole.iter_mut().collect(), vec![]);
        let mut pieces = Run::new(&session);
        let mut rest = &written[..];
        while !rest.is_empty() {
            let (part, later) = rest.split_at((1 + dice.below(40) as usize).min(rest.len()));
            let started = later.first().map_or(u64::MAX, |w| w.time);
            let (mut rings, ..) = write_rings(&session, part, dice, false);
            pieces.round(started, rings.iter_mut().map(Ring::chunk).collect(), vec![], &mut NoProc);
            rest = later;
        }
        let (events, _) = pieces.end();
        // Records with the same time on different CPUs are in no defined order.
        let sorted = |events: &[crate::event::Event]| {
            let mut lines = call_lines(events);
            lines.sort();
            lines
        };
        prop_assert_eq!(sorted(&events), sorted(&expected));
    }
}
