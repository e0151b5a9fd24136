//! How large the buffers are between the kernel and what is shown: decided when the plan is made, by what a record may
//! hold, how many tasks there are, and how much memory the machine has.

use crate::request::Trace;
use std::fmt;

const MIB: u64 = 1 << 20;

/// The bytes of a CPU's ring when the user does not say: 2 MiB lose nothing at 2 million records a second where the
/// reader gets its turn; twice that for when it does not. A MiB takes 0.4 ms to map, and `true` can pay for these
/// within its 30 ms.
const RING: u64 = 4 * MIB;
/// With stacks, a record takes some 1 KiB where programs say how much of the stack is needed, and more than 8 KiB where
/// all get as much.
const RING_OF_FITTED_STACKS: u64 = 8 * MIB;
const RING_OF_STACKS: u64 = 16 * MIB;
/// No ring is chosen smaller than this, nor are all together larger: with many CPUs the sum counts.
const RING_MIN: u64 = 512 << 10;
const RINGS_MAX: u64 = 256 * MIB;
/// The same part of the machine's memory is enough for all.
const MEMORY_SHARE: u64 = 32;

/// A ring is as many times larger as calls may have so many bytes of data, up to a bound: what copies much is called
/// less often.
const DATA: u64 = 512;
const DATA_TIMES_MAX: u64 = 8;
/// Bytes for each task that is there when tracing begins, in all rings together: all may end at once.
const OF_TASK: u64 = 1 << 10;

/// Sums of tasks that have ended: most take some 300 to 800 bytes, none takes 4 KiB.
const KEPT_MIN: u64 = 4 * MIB;
const KEPT_MAX: u64 = 64 * MIB;

/// Records that have left the rings and wait to be printed: memory that is taken when it is needed. It has the records
/// of two million calls, and whoever ends the trace then waits two seconds for their lines; with more data, as many
/// times larger as the rings.
const QUEUE: u64 = 256 * MIB;
const QUEUE_MIN: u64 = 64 * MIB;
const QUEUE_MAX: u64 = 1024 * MIB;

/// How large the rings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSize {
    /// As the user asked; refused if that cannot be had.
    Asked(u64),
    /// Chosen: smaller ones are taken when locked memory is short.
    Chosen(u64),
}

impl RingSize {
    pub fn bytes(self) -> u64 {
        match self {
            RingSize::Asked(bytes) | RingSize::Chosen(bytes) => bytes,
        }
    }
}

/// What decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub cpus: usize,
    /// Tasks that are to be traced and are there already.
    pub tasks: usize,
    /// Of the machine, bytes.
    pub memory: u64,
    pub stacks: bool,
    pub by_bpf: bool,
    /// Calls are summed up in the kernel.
    pub sums: bool,
    /// Bytes that records may have of each string or buffer.
    pub data: usize,
}

impl Facts {
    /// How many times larger buffers are because of the data in records: tracepoints' and sums have none.
    fn data_times(self) -> u64 {
        if self.by_bpf && !self.sums { (1 + self.data as u64 / DATA).min(DATA_TIMES_MAX) } else { 1 }
    }
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    pub ring: RingSize,
    /// Bytes for the sums of tasks that have ended, if there are any.
    pub kept: Option<u32>,
    /// Bytes of records that may wait to be printed.
    pub queue: usize,
    /// What made the rings another size than they are mostly.
    reasons: Vec<String>,
}

impl Buffers {
    pub(super) fn choose(request: &Trace, facts: Facts) -> Buffers {
        let mut reasons = Vec::new();
        let ring = match request.run.ring_bytes {
            Some(bytes) => RingSize::Asked(bytes.next_power_of_two().max(page_bytes())),
            None => RingSize::Chosen(ring(facts, &mut reasons)),
        };
        let kept = facts.sums.then(|| kept(facts, ring));
        let queue = (QUEUE * facts.data_times()).min(facts.memory / MEMORY_SHARE).clamp(QUEUE_MIN, QUEUE_MAX) as usize;
        Buffers { ring, kept, queue, reasons }
    }
}

/// Room for the sums of tasks that have ended. Whoever asks for larger rings has lost some.
fn kept(facts: Facts, ring: RingSize) -> u32 {
    let asked = if let RingSize::Asked(bytes) = ring { bytes.saturating_mul(facts.cpus as u64) } else { 0 };
    let at_most = (facts.memory / MEMORY_SHARE).clamp(RING_MIN, KEPT_MAX);
    let wanted = (facts.tasks as u64 * OF_TASK).max(KEPT_MIN).max(asked).min(at_most);
    power_of_two_below(wanted.next_power_of_two().min(at_most)) as u32
}

fn ring(facts: Facts, reasons: &mut Vec<String>) -> u64 {
    let usual = match facts {
        Facts { stacks: false, .. } => RING,
        Facts { by_bpf: true, .. } => RING_OF_FITTED_STACKS,
        _ => RING_OF_STACKS,
    };
    if facts.stacks {
        reasons.push("records have stacks".to_owned());
    }
    let cpus = facts.cpus.max(1) as u64;
    let times = facts.data_times();
    if times > 1 {
        reasons.push(format!("records have up to {} bytes of each string", facts.data));
    }
    let for_tasks = facts.tasks as u64 * OF_TASK / cpus;
    if for_tasks > usual * times {
        reasons.push(format!("{} tasks are there", facts.tasks));
    }
    let wanted = (usual * times).max(for_tasks).next_power_of_two();
    let at_most = (RINGS_MAX.min(facts.memory / MEMORY_SHARE) / cpus).max(RING_MIN);
    if wanted > at_most {
        reasons.push(format!("the machine has {} CPUs and {} MiB of memory", facts.cpus, facts.memory / MIB));
    }
    power_of_two_below(wanted.min(at_most))
}

/// The largest power of two that is not larger.
fn power_of_two_below(bytes: u64) -> u64 {
    1 << bytes.max(1).ilog2()
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = if self.reasons.is_empty() { String::new() } else { format!(" because {}", self.reasons.join(" and ")) };
        let chosen =
            if matches!(self.ring, RingSize::Chosen(_)) { format!(" (chosen{why}; -m asks for another size)") } else { String::new() };
        writeln!(
            f,
            "plan: {} KiB of ring a CPU{chosen}; {} MiB of records at most wait to be printed",
            self.ring.bytes() >> 10,
            self.queue as u64 / MIB
        )?;
        match self.kept {
            Some(bytes) => writeln!(f, "plan: {} KiB for the sums of tasks that have ended, until they are read", bytes >> 10),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Facts = Facts { cpus: 2, tasks: 1, memory: 16 << 30, stacks: false, by_bpf: true, sums: false, data: 32 };

    /// KiB, and why they are not as usual.
    fn chosen(facts: Facts) -> (u64, String) {
        let mut reasons = Vec::new();
        let bytes = ring(facts, &mut reasons);
        assert!(bytes.is_power_of_two());
        (bytes >> 10, reasons.join(" and "))
    }

    #[test]
    fn rings_are_sized_by_what_records_hold() {
        assert_eq!(chosen(USUAL), (4096, String::new()));
        assert_eq!(chosen(Facts { stacks: true, ..USUAL }), (8192, "records have stacks".to_owned()));
        assert_eq!(chosen(Facts { stacks: true, by_bpf: false, ..USUAL }).0, 16384);
        assert_eq!(chosen(Facts { sums: true, data: 4096, ..USUAL }).0, 4096, "sums have no data");
        assert_eq!(chosen(Facts { data: 4096, ..USUAL }), (32768, "records have up to 4096 bytes of each string".to_owned()));
        assert_eq!(chosen(Facts { data: 1 << 20, ..USUAL }).0, 32768, "there is a bound");
        assert_eq!(chosen(Facts { data: 4096, by_bpf: false, ..USUAL }).0, 4096, "tracepoints copy no data");
    }

    #[test]
    fn rings_are_sized_by_tasks_cpus_and_memory() {
        assert_eq!(chosen(Facts { tasks: 10_000, ..USUAL }), (8192, "10000 tasks are there".to_owned()));
        assert_eq!(chosen(Facts { cpus: 128, memory: 1 << 40, ..USUAL }).0, 2048);
        let small = Facts { memory: 256 << 20, tasks: 10_000, ..USUAL };
        assert_eq!(chosen(small), (4096, "10000 tasks are there and the machine has 2 CPUs and 256 MiB of memory".to_owned()));
        assert_eq!(chosen(Facts { cpus: 1024, memory: 0, ..USUAL }).0, 512, "no ring is smaller");
    }

    #[test]
    fn room_for_sums_is_sized_by_tasks_and_memory() {
        let kept = |facts, ring| kept(facts, ring) >> 10;
        let chosen = RingSize::Chosen(4 << 20);
        assert_eq!(kept(USUAL, chosen), 4096);
        assert_eq!(kept(Facts { tasks: 10_000, ..USUAL }, chosen), 16384);
        assert_eq!(kept(Facts { tasks: 1_000_000, ..USUAL }, chosen), 65536, "there is a bound");
        assert_eq!(kept(Facts { tasks: 10_000, memory: 256 << 20, ..USUAL }, chosen), 8192);
        assert_eq!(kept(Facts { memory: 0, ..USUAL }, chosen), 512);
        assert_eq!(kept(USUAL, RingSize::Asked(16 << 20)), 32768);
        assert_eq!(kept(USUAL, RingSize::Asked(4096)), 4096, "small rings lose no sums");
    }
}
