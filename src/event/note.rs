//! What rtrace learns outside the rings, as records in the stream.
//!
//! Names of tasks that were there before, what a descriptor pointed to when looked at, the counts of the events: each is stamped with the time it
//! was true and merged with what the kernel says. So a replay needs nothing of the machine it runs on.

use super::{Abi, EventIndex, FileId, TaskId, Time};

/// A mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Mapped {
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    pub file: FileId,
    pub path: Vec<u8>,
}

/// Registers and stack of a task that sleeps in a call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StackMemory {
    /// The registers have 64 bits; otherwise 32.
    pub is_wide: bool,
    /// Which registers are known: a bit for each `PERF_REG_*` (asm/perf_regs.h).
    pub mask: u64,
    /// Their values, 8 bytes each, in the order of the bits.
    pub registers: Vec<u8>,
    /// The bytes from the stack pointer upwards, as far as they were copied.
    pub stack: Vec<u8>,
}

/// One fact, true at the time of its record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Note {
    /// A child of rtrace was forked: what it is about to execute, and which of its descriptors the program will have, with what they are (readlink of /proc/PID/fd/N), and its cgroup.
    /// Everything its task does before its execve is rtrace's own set-up, which leaves those descriptors alone.
    Spawned {
        task: TaskId,
        path: Vec<u8>,
        argv: Vec<Vec<u8>>,
        fds: Vec<(i32, Vec<u8>)>,
        #[serde(default)]
        cgroup: Option<Vec<u8>>,
        /// As of [`Note::Task`].
        nested: bool,
    },
    /// The child of rtrace that was forked has executed its program, and has this name now. Where only some tasks are traced, that call need not be in the stream.
    Executed { task: TaskId, comm: Vec<u8> },
    /// A task that was there before: its name, parent process, and when it was started (CLOCK_MONOTONIC, from /proc/PID/stat's starttime; rounded down).
    /// `nested`: it is in a pid namespace below rtrace's own, and has other numbers for tasks.
    Task { task: TaskId, comm: Vec<u8>, ppid: i32, started: Time, cgroup: Option<Vec<u8>>, abi: Option<Abi>, nested: bool },
    /// A look at a task that came too late: there is no such task.
    NoTask { tid: i32 },
    /// What a descriptor of a process was (readlink of /proc/PID/fd/N), looked at between `from` and the record's time; `None` when there was none.
    Fd { pid: i32, fd: i32, path: Option<Vec<u8>>, from: Time },
    /// The executable mappings that a process had before the stream began (/proc/PID/maps).
    Maps { pid: i32, maps: Vec<Mapped> },
    /// An event's count and how many records of it were dropped, as read(2) gives them with PERF_FORMAT_LOST, over all CPUs and tasks.
    /// `from_afar`: so many of its hits at most were counted when the event was switched off already, and have no record ([`crate::syscall::ledger::Ledger::count`]).
    Count {
        event: EventIndex,
        issued: u64,
        lost: u64,
        #[serde(default)]
        from_afar: u64,
    },
    /// The same for all events that come by the tracefs instance together, as its `per_cpu/cpuN/stats` count: the kernel does not tell them apart.
    InstanceCount { issued: u64, lost: u64 },
    /// Calls that the BPF programs left out, as asked, over all CPUs and tasks; they are in no event's count.
    LeftOut { calls: u64 },
    /// A call in flight, as the BPF programs have it at the record's time ([`crate::bpf::record`]); `last` when tracing
    /// has ended and no more will be heard of it. Or a tally: that of a task that ended then, or at the end that of a
    /// living one.
    InFlight {
        task: TaskId,
        call: Vec<u8>,
        last: bool,
        /// Where it was made from, if that was asked for.
        #[serde(default)]
        stack: Option<StackMemory>,
    },
    /// A call that a task slept in when tracing had begun, where no BPF program tells of it: its registers as /proc/PID/task/TID/syscall has them.
    /// The task ran neither before the record's time, since tracing began, nor while it was looked at.
    Sleeping { task: TaskId, nr: i64, args: [u64; 6], stack: Option<StackMemory> },
    /// A ring had no room left when it was looked at, at the record's time: what came after its last record may have been dropped, and no LOST record tells of it
    /// until the ring's next one.
    Full { cpu: u32 },
    /// A BPF program on the same tracepoint may have dropped samples: the programs' ids (PERF_EVENT_IOC_QUERY_BPF).
    Silenced { event: EventIndex, programs: Vec<u32> },
    /// The command is gone, with wait(2)'s status word.
    Reaped { pid: i32, status: i32 },
}

impl Note {
    /// About how many bytes it has elsewhere; of those that are few it is not asked.
    pub fn bytes(&self) -> usize {
        if let Note::InFlight { call, .. } = self { call.len() } else { 0 }
    }
}
