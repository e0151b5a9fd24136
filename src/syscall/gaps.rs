//! Where the stream has gaps, and whether what happened on both sides of one may be joined.
//!
//! ```text
//! ring 0   e─────────────────────────────x      entry and exit of one thread, both here
//! ring 1        a═══════ lost ═══════b          the thread may have been here meanwhile: its exit, and the entry that `x` belongs to, were lost
//! ```
//!
//! Nothing in the records tells this from an honest call. So a pair that overlaps a gap is not joined, with one exception: on the same CPU, with no gap in its own
//! ring, and too short for a thread to have been moved to another CPU and back. A gap begins at the ring's last record before it, which is known as soon
//! as the round with its LOST record is here ([`Gaps::ahead`]), before the records of that time are given.

use crate::event::Time;

/// Being moved to another CPU and back takes longer than this, nanoseconds: two passages through the scheduler, and a syscall between.
const MOVE_AND_BACK: u64 = 2_000;

/// NR_CPUS of the largest kernels. Above, CPUs share what is counted, which only makes more pairs doubtful.
const CPU_MAX: u32 = 8_192;

/// The gaps so far, counted.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Counts beginnings and ends.
    number: u32,
    /// Gaps that began and did not end.
    open: u32,
    rings: Vec<Ring>,
    /// When the gaps begin that are ahead, the last first.
    ahead: Vec<(Time, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    gaps: u32,
    open: u32,
}

/// How things stood at a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    number: u32,
    ring: u32,
    pub cpu: u32,
    inside: bool,
}

impl Gaps {
    /// A gap of this CPU's ring will be met that begins after this time.
    pub fn ahead(&mut self, cpu: u32, after: Option<Time>) {
        self.ahead.push((after.unwrap_or_default(), cpu));
        self.ahead.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// The stream has come to this time.
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

    /// Something was lost until now.
    #[inline]
    pub fn was_any(&self) -> bool {
        self.number > 0
    }

    /// A LOST record: a gap of this CPU's ring is over.
    pub fn end(&mut self, cpu: u32) {
        self.number += 1;
        let ring = self.ring(cpu);
        ring.gaps += 1;
        if ring.open > 0 {
            ring.open -= 1;
            self.open -= 1;
        }
    }

    /// How things stand for a record of this CPU.
    #[inline]
    pub fn mark(&self, cpu: u32) -> Mark {
        let ring = self.rings.get(place(cpu)).map_or(0, |ring| ring.gaps);
        Mark { number: self.number, ring, cpu, inside: self.open > 0 }
    }

    /// Whether an entry at `start` and an exit at `end`, marked so, are certainly of one call.
    #[inline]
    pub fn joins(entry: Mark, start: Time, exit: Mark, end: Time) -> bool {
        Gaps::none_between(entry, exit) || (entry.cpu == exit.cpu && entry.ring == exit.ring && end.since(start) < MOVE_AND_BACK)
    }

    /// Whether nothing at all was lost from one record to the other.
    #[inline]
    pub fn none_between(earlier: Mark, later: Mark) -> bool {
        earlier.number == later.number && !earlier.inside && !later.inside
    }

    fn ring(&mut self, cpu: u32) -> &mut Ring {
        let at = place(cpu);
        if self.rings.len() <= at {
            self.rings.resize(at + 1, Ring::default());
        }
        &mut self.rings[at]
    }
}

/// CPUs are numbered from 0 and few; a damaged file may say anything.
fn place(cpu: u32) -> usize {
    cpu.min(CPU_MAX) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_joined_around_gaps_only_where_that_is_certain() {
        let mut gaps = Gaps::default();
        let before = gaps.mark(0);
        assert!(Gaps::joins(before, Time(1), gaps.mark(1), Time(9_000)));
        gaps.ahead(1, Some(Time(10_000)));
        gaps.advance(Time(10_000));
        assert!(Gaps::none_between(before, gaps.mark(0)), "a record at the same time is before the gap");
        gaps.advance(Time(10_500));
        let inside = gaps.mark(0);
        assert!(!Gaps::joins(before, Time(1), inside, Time(10_500)), "it may have been on the other CPU");
        assert!(Gaps::joins(inside, Time(10_600), gaps.mark(0), Time(11_000)), "too short for that");
        assert!(!Gaps::joins(inside, Time(10_600), gaps.mark(0), Time(13_000)));
        gaps.end(1);
        let after = gaps.mark(1);
        assert!(!Gaps::joins(gaps.mark(0), Time(0), Mark { inside: true, ..after }, Time(9_999)));
        assert!(Gaps::joins(after, Time(20_000), gaps.mark(0), Time(90_000)));
    }

    #[test]
    fn a_gap_of_the_own_ring_never_joins() {
        let mut gaps = Gaps::default();
        let entry = gaps.mark(3);
        gaps.end(3);
        assert!(!Gaps::joins(entry, Time(5), gaps.mark(3), Time(6)));
    }

    #[test]
    fn an_unannounced_gap_does_not_stay_open() {
        let mut gaps = Gaps::default();
        gaps.end(0);
        assert!(!gaps.mark(0).inside);
    }
}
