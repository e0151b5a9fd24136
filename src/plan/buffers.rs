//! Sizes the buffers between the kernel and the output when the plan is made. The sizes depend on the amount of data in
//! a record, the number of tasks and the memory of the machine.

use super::snapshots;
use crate::request::Trace;
use std::fmt;

const MIB: u64 = 1 << 20;

/// The default number of bytes of a CPU's ring. 2 MiB lose no record at 2 million records a second if the reading
/// thread is scheduled in time; the other 2 MiB are for delays. Mapping one MiB takes 0.4 ms, which leaves a trace of
/// `true` within its 30 ms.
const RING: u64 = 4 * MIB;
/// Rings of records with stacks. A record takes about 1 KiB where the BPF programs fit the copy to the depth of the
/// stack, and more than 8 KiB where every record has a copy of the same size.
const RING_OF_FITTED_STACKS: u64 = 8 * MIB;
const RING_OF_STACKS: u64 = 16 * MIB;
/// Bounds on the size of a chosen ring, and on the sum of all chosen rings, which matters with many CPUs.
const RING_MIN: u64 = 512 << 10;
/// The size of each ring with `--lossless`, and its lower bound on machines with many CPUs or little memory. The tasks
/// are delayed when half of a ring is full. The other half is for what they write until the delay is noticed (2 ms at
/// the fill rate) and takes effect (0.1 ms), and for the few calls in progress.
const RING_OF_LOSSLESS: u64 = 8 * MIB;
const RING_OF_LOSSLESS_STACKS: u64 = 32 * MIB;
const RING_OF_LOSSLESS_MIN: u64 = 2 * MIB;
const RINGS_MAX: u64 = 256 * MIB;
/// All rings together take at most this fraction of the machine's memory.
const MEMORY_SHARE: u64 = 32;

/// A ring gets one more multiple of its size for each so many bytes of data that a record may hold, up to a bound,
/// because calls that copy much data are made less often.
const DATA: u64 = 512;
const DATA_TIMES_MAX: u64 = 8;
/// The fastest rate at which the calls of a CPU fill its ring, in bytes per nanosecond. Records with stacks of 64 KiB
/// fill it about as fast as the CPU can copy memory; 3.2 were measured with the stacks of strace.
const FILL_RATE: u64 = 2;
const FILL_RATE_OF_STACKS: u64 = 8;

/// Bytes for each task that exists when tracing begins, in all rings together: all these tasks may end at once.
const OF_TASK: u64 = 1 << 10;

/// Bounds on the buffer for the aggregates of ended tasks. Most aggregates take 300 to 800 bytes, none takes 4 KiB.
const ENDED_TASKS_MIN: u64 = 4 * MIB;
const ENDED_TASKS_MAX: u64 = 64 * MIB;

/// The queue of records that were read from the rings and wait to be printed; its memory is allocated as it fills. It
/// holds the records of two million calls, whose lines take two seconds to print when the trace ends. With more data in
/// the records it is larger by the same factor as the rings.
const QUEUE: u64 = 256 * MIB;
const QUEUE_MIN: u64 = 64 * MIB;
const QUEUE_MAX: u64 = 1024 * MIB;

/// The size of each ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSize {
    /// The user's size. rtrace fails if it cannot be allocated.
    Asked(u64),
    /// A chosen size. Smaller rings are allocated when locked memory is short.
    Chosen(u64),
}

impl RingSize {
    /// Returns the number of bytes, which is a power of two.
    pub fn bytes(self) -> u64 {
        match self {
            RingSize::Asked(bytes) | RingSize::Chosen(bytes) => bytes,
        }
    }
}

/// The facts that the sizes depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferInputs {
    /// The number of CPUs that have a ring.
    pub cpus: usize,
    /// The traced tasks that already exist.
    pub tasks: usize,
    /// The machine's memory, in bytes.
    pub memory: u64,
    /// Whether the request asks for any stacks.
    pub stacks: bool,
    /// Whether the BPF programs write the records, and not tracepoints.
    pub by_bpf: bool,
    /// Whether the kernel keeps aggregates in place of records.
    pub sums: bool,
    /// The maximum number of bytes that records hold of each string or buffer.
    pub data: usize,
}

impl BufferInputs {
    /// The factor by which buffers grow because of the data in records. Records of tracepoints and aggregates have no
    /// data.
    fn data_times(self) -> u64 {
        if self.by_bpf && !self.sums { (1 + self.data as u64 / DATA).min(DATA_TIMES_MAX) } else { 1 }
    }
}

/// The chosen sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// The size of each CPU's ring.
    pub ring: RingSize,
    /// The fastest rate at which a ring is filled, in bytes per nanosecond.
    pub fill_rate: u64,
    /// Bytes of the buffer for the aggregates of ended tasks; `None` where calls are not aggregated in the kernel.
    pub ended_tasks: Option<u32>,
    /// The maximum number of bytes of records that wait to be printed.
    pub queue: usize,
    /// The reasons why the rings do not have their default size.
    reasons: Vec<String>,
}

impl Buffers {
    /// Returns the remark on rings that are larger than the user asked for.
    pub(super) fn remark(&self, request: &Trace) -> Option<String> {
        let why = match request.run.lossless {
            true => "--lossless needs room for what the command writes until it waits",
            false => "the names of files are repeated in each of several parts of it (--snapshot)",
        };
        let is_enlarged = request.run.lossless || has_snapshots(request);
        let asked = request.run.ring_bytes.filter(|asked| is_enlarged && *asked < self.ring.bytes() / 2)?;
        Some(format!("rings have {} KiB a CPU instead of {} KiB (-m): {why}", self.ring.bytes() >> 10, asked >> 10))
    }

    pub(super) fn choose(request: &Trace, facts: BufferInputs) -> Buffers {
        let mut reasons = Vec::new();
        let least = match request.run.lossless {
            true => least_of_lossless(facts),
            false if has_snapshots(request) => snapshots::RING_MIN,
            false => page_bytes(),
        };
        let ring = match request.run.ring_bytes {
            Some(bytes) => RingSize::Asked(bytes.next_power_of_two().max(least)),
            None => RingSize::Chosen(ring(facts, &mut reasons).max(least)),
        };
        let ended_tasks = facts.sums.then(|| ended_tasks(facts, ring));
        let queue = (QUEUE * facts.data_times()).min(facts.memory / MEMORY_SHARE).clamp(QUEUE_MIN, QUEUE_MAX) as usize;
        let fill_rate = if facts.stacks { FILL_RATE_OF_STACKS } else { FILL_RATE };
        Buffers { ring, fill_rate, ended_tasks, queue, reasons }
    }
}

fn has_snapshots(request: &Trace) -> bool {
    request.recording.as_ref().is_some_and(|recording| recording.snapshots.is_some())
}

/// Returns the size below which rings are enlarged for `--lossless`: at least the one that rtrace would choose.
fn least_of_lossless(facts: BufferInputs) -> u64 {
    let at_most = RINGS_MAX.min(facts.memory / MEMORY_SHARE) / facts.cpus.max(1) as u64;
    let wanted = if facts.stacks { RING_OF_LOSSLESS_STACKS } else { RING_OF_LOSSLESS };
    power_of_two_below(wanted.min(at_most)).max(RING_OF_LOSSLESS_MIN).max(ring(facts, &mut Vec::new()))
}

/// Sizes the buffer for the aggregates of ended tasks. A user who asks for larger rings (`-m`) has lost records, so
/// that size counts here too.
fn ended_tasks(facts: BufferInputs, ring: RingSize) -> u32 {
    let asked = if let RingSize::Asked(bytes) = ring { bytes.saturating_mul(facts.cpus as u64) } else { 0 };
    let at_most = (facts.memory / MEMORY_SHARE).clamp(RING_MIN, ENDED_TASKS_MAX);
    let wanted = (facts.tasks as u64 * OF_TASK).max(ENDED_TASKS_MIN).max(asked).min(at_most);
    power_of_two_below(wanted.next_power_of_two().min(at_most)) as u32
}

fn ring(facts: BufferInputs, reasons: &mut Vec<String>) -> u64 {
    let usual = match facts {
        BufferInputs { stacks: false, .. } => RING,
        BufferInputs { by_bpf: true, .. } => RING_OF_FITTED_STACKS,
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
        reasons.push(format!("{} tasks already run", facts.tasks));
    }
    let wanted = (usual * times).max(for_tasks).next_power_of_two();
    let at_most = (RINGS_MAX.min(facts.memory / MEMORY_SHARE) / cpus).max(RING_MIN);
    if wanted > at_most {
        reasons.push(format!("the machine has {} CPUs and {} MiB of memory", facts.cpus, facts.memory / MIB));
    }
    power_of_two_below(wanted.min(at_most))
}

/// Returns the largest power of two that is at most `bytes`.
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
            "plan: {} KiB of ring a CPU{chosen}; up to {} MiB of records wait to be printed",
            self.ring.bytes() >> 10,
            self.queue as u64 / MIB
        )?;
        match self.ended_tasks {
            Some(bytes) => writeln!(f, "plan: {} KiB hold the aggregates of ended tasks until rtrace reads them", bytes >> 10),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: BufferInputs = BufferInputs { cpus: 2, tasks: 1, memory: 16 << 30, stacks: false, by_bpf: true, sums: false, data: 32 };

    /// Returns the size of a ring in KiB and the reasons for a size other than the default.
    fn chosen(facts: BufferInputs) -> (u64, String) {
        let mut reasons = Vec::new();
        let bytes = ring(facts, &mut reasons);
        assert!(bytes.is_power_of_two());
        (bytes >> 10, reasons.join(" and "))
    }

    #[test]
    fn rings_are_sized_by_what_records_hold() {
        assert_eq!(chosen(USUAL), (4096, String::new()));
        assert_eq!(chosen(BufferInputs { stacks: true, ..USUAL }), (8192, "records have stacks".to_owned()));
        assert_eq!(chosen(BufferInputs { stacks: true, by_bpf: false, ..USUAL }).0, 16384);
        assert_eq!(chosen(BufferInputs { sums: true, data: 4096, ..USUAL }).0, 4096, "sums have no data");
        assert_eq!(chosen(BufferInputs { data: 4096, ..USUAL }), (32768, "records have up to 4096 bytes of each string".to_owned()));
        assert_eq!(chosen(BufferInputs { data: 1 << 20, ..USUAL }).0, 32768, "there is a bound");
        assert_eq!(chosen(BufferInputs { data: 4096, by_bpf: false, ..USUAL }).0, 4096, "tracepoints copy no data");
    }

    #[test]
    fn rings_are_sized_by_tasks_cpus_and_memory() {
        assert_eq!(chosen(BufferInputs { tasks: 10_000, ..USUAL }), (8192, "10000 tasks already run".to_owned()));
        assert_eq!(chosen(BufferInputs { cpus: 128, memory: 1 << 40, ..USUAL }).0, 2048);
        let small = BufferInputs { memory: 256 << 20, tasks: 10_000, ..USUAL };
        assert_eq!(chosen(small), (4096, "10000 tasks already run and the machine has 2 CPUs and 256 MiB of memory".to_owned()));
        assert_eq!(chosen(BufferInputs { cpus: 1024, memory: 0, ..USUAL }).0, 512, "no ring is smaller");
    }

    #[test]
    fn rings_that_must_not_fill_up_have_a_least_size() {
        assert_eq!(least_of_lossless(USUAL) >> 20, 8);
        assert_eq!(least_of_lossless(BufferInputs { stacks: true, ..USUAL }) >> 20, 32);
        assert_eq!(least_of_lossless(BufferInputs { data: 4096, ..USUAL }) >> 20, 32);
        assert_eq!(least_of_lossless(BufferInputs { cpus: 64, memory: 1 << 40, ..USUAL }) >> 20, 4);
        assert_eq!(least_of_lossless(BufferInputs { cpus: 1024, memory: 0, ..USUAL }) >> 20, 2);
    }

    #[test]
    fn room_for_sums_is_sized_by_tasks_and_memory() {
        let ended_tasks = |facts, ring| ended_tasks(facts, ring) >> 10;
        let chosen = RingSize::Chosen(4 << 20);
        assert_eq!(ended_tasks(USUAL, chosen), 4096);
        assert_eq!(ended_tasks(BufferInputs { tasks: 10_000, ..USUAL }, chosen), 16384);
        assert_eq!(ended_tasks(BufferInputs { tasks: 1_000_000, ..USUAL }, chosen), 65536, "there is a bound");
        assert_eq!(ended_tasks(BufferInputs { tasks: 10_000, memory: 256 << 20, ..USUAL }, chosen), 8192);
        assert_eq!(ended_tasks(BufferInputs { memory: 0, ..USUAL }, chosen), 512);
        assert_eq!(ended_tasks(USUAL, RingSize::Asked(16 << 20)), 32768);
        assert_eq!(ended_tasks(USUAL, RingSize::Asked(4096)), 4096, "small rings lose no sums");
    }
}
