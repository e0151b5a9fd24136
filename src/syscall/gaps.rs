//! Gaps in the stream, and whether records before and after a gap may be paired.
//!
//! ```text
//! ring 0   e─────────────────────────────x      entry and exit of one thread, both in this ring
//! ring 1        a═══════ lost ═══════b          the thread may have run on this CPU meanwhile: its exit, and the
//!                                               entry that `x` belongs to, were lost
//! ```
//!
//! The records alone do not distinguish this case from a single long call. So an entry and an exit around a gap are not
//! paired, with one exception: both are from the same CPU, that CPU's ring has no gap, and the time between them is too
//! short for a thread to migrate to another CPU and back. A gap begins at the ring's last record before it. That time
//! is known as soon as the round with the LOST record has arrived ([`Gaps::ahead`]), before the records of that time
//! are processed.

use crate::event::Time;

/// A migration to another CPU and back takes longer than this, in nanoseconds: the scheduler runs twice, with a syscall
/// between.
const MIGRATION_AND_BACK: u64 = 2_000;

/// NR_CPUS of the largest kernels. CPUs with higher numbers share one counter, which only makes more pairs doubtful.
const CPU_MAX: u32 = 8_192;

/// Counts of the gaps so far.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// The number of beginnings and ends of gaps.
    number: u32,
    /// The number of gaps that have begun and not ended.
    open: u32,
    rings: Vec<RingGaps>,
    /// The begin times of announced gaps with their CPUs, in descending order.
    ahead: Vec<(Time, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RingGaps {
    gaps: u32,
    open: u32,
}

/// The gap counters at the time of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapMark {
    number: u32,
    ring: u32,
    /// The CPU of the record, whose gaps `ring` counts.
    pub cpu: u32,
    inside: bool,
}

impl Gaps {
    /// Announces a gap in this CPU's ring that begins after the given time.
    pub fn ahead(&mut self, cpu: u32, after: Option<Time>) {
        self.ahead.push((after.unwrap_or_default(), cpu));
        self.ahead.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Advances the stream's time, which begins announced gaps.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        while let Some(&(after, cpu)) = self.ahead.last()
            && after < now
        {
            self.ahead.pop();
            self.number += 1;
            self.open += 1;
            self.ring(cpu).open += 1;
        }
    }

    /// Returns whether any gap has begun.
    #[inline]
    pub fn was_any(&self) -> bool {
        self.number > 0
    }

    /// Ends a gap of this CPU's ring, at its LOST record.
    pub fn end(&mut self, cpu: u32) {
        self.number += 1;
        let ring = self.ring(cpu);
        ring.gaps += 1;
        if ring.open > 0 {
            ring.open -= 1;
            self.open -= 1;
        }
    }

    /// Returns the counters for a record of this CPU.
    #[inline]
    pub fn mark(&self, cpu: u32) -> GapMark {
        let ring = self.rings.get(place(cpu)).map_or(0, |ring| ring.gaps);
        GapMark { number: self.number, ring, cpu, inside: self.open > 0 }
    }

    /// Returns whether an entry at `start` and an exit at `end` with these marks certainly belong to one call.
    #[inline]
    pub fn can_pair(entry: GapMark, start: Time, exit: GapMark, end: Time) -> bool {
        Gaps::none_between(entry, exit) || (entry.cpu == exit.cpu && entry.ring == exit.ring && end.since(start) < MIGRATION_AND_BACK)
    }

    /// Returns whether no record was lost between the two marks.
    #[inline]
    pub fn none_between(earlier: GapMark, later: GapMark) -> bool {
        earlier.number == later.number && !earlier.inside && !later.inside
    }

    fn ring(&mut self, cpu: u32) -> &mut RingGaps {
        let at = place(cpu);
        if self.rings.len() <= at {
            self.rings.resize(at + 1, RingGaps::default());
        }
        &mut self.rings[at]
    }
}

/// Returns the index of a CPU's ring. CPU numbers are small, but a damaged file can contain any number.
fn place(cpu: u32) -> usize {
    cpu.min(CPU_MAX) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_pairs_are_joined_around_gaps() {
        let mut gaps = Gaps::default();
        let before = gaps.mark(0);
        assert!(Gaps::can_pair(before, Time(1), gaps.mark(1), Time(9_000)));
        gaps.ahead(1, Some(Time(10_000)));
        gaps.advance(Time(10_000));
        assert!(Gaps::none_between(before, gaps.mark(0)), "a record at the same time is before the gap");
        gaps.advance(Time(10_500));
        let inside = gaps.mark(0);
        assert!(!Gaps::can_pair(before, Time(1), inside, Time(10_500)), "it may have been on the other CPU");
        assert!(Gaps::can_pair(inside, Time(10_600), gaps.mark(0), Time(11_000)), "too short for that");
        assert!(!Gaps::can_pair(inside, Time(10_600), gaps.mark(0), Time(13_000)));
        gaps.end(1);
        let after = gaps.mark(1);
        assert!(!Gaps::can_pair(gaps.mark(0), Time(0), GapMark { inside: true, ..after }, Time(9_999)));
        assert!(Gaps::can_pair(after, Time(20_000), gaps.mark(0), Time(90_000)));
    }

    #[test]
    fn records_around_a_gap_of_their_own_ring_are_not_paired() {
        let mut gaps = Gaps::default();
        let entry = gaps.mark(3);
        gaps.end(3);
        assert!(!Gaps::can_pair(entry, Time(5), gaps.mark(3), Time(6)));
    }

    #[test]
    fn an_unannounced_gap_does_not_stay_open() {
        let mut gaps = Gaps::default();
        gaps.end(0);
        assert!(!gaps.mark(0).inside);
    }
}
