//! Synthesized records: facts that rtrace reads outside the rings, stored as records of the stream.
//!
//! Examples are the comms of tasks that existed before the trace, the targets of descriptors in /proc/PID/fd, and the
//! counts of the events. Each record has the time at which its fact held, and is merged with the kernel's records by
//! time. A replay therefore needs nothing of the machine that it runs on.

use super::verdict::Shortage;
use super::{Abi, EventIndex, FileId, Notice, TaskId, Time};

/// A mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileMapping {
    /// The address of the first byte.
    pub start: u64,
    /// The address behind the last byte.
    pub end: u64,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The file's identity.
    pub file: FileId,
    /// The path as /proc/PID/maps has it; not escaped.
    pub path: Vec<u8>,
}

/// The user-space registers and stack of a task that sleeps in a call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StackMemory {
    /// The task's registers have 64 bits; otherwise 32.
    pub is_wide: bool,
    /// The registers that are known: one bit for each `PERF_REG_*` (asm/perf_regs.h).
    pub mask: u64,
    /// The values of these registers, 8 bytes each, in the order of the bits.
    pub registers: Vec<u8>,
    /// The bytes from the stack pointer upwards, as far as they were copied.
    pub stack: Vec<u8>,
}

/// A copy of memory that an argument of a call points to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MemoryCopy {
    /// The index of the argument (0..=5).
    pub arg: u8,
    /// The length of the data in bytes according to the call.
    pub wanted: u64,
    /// The bytes that were copied; none if they could not be read.
    pub bytes: Vec<u8>,
    /// Whether all of the data was copied.
    pub is_whole: bool,
}

/// A synthesized record: one fact that held at the record's time.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Synthesized {
    /// rtrace forked a child for the command. All calls of this task before its execve are rtrace's own set-up, which
    /// does not change the descriptors.
    Spawned {
        /// The child.
        task: TaskId,
        /// The path of the program that it will execute.
        path: Vec<u8>,
        /// The arguments of the program.
        argv: Vec<Vec<u8>>,
        /// The descriptors that the program inherits, with their files (readlink(2) of /proc/PID/fd/N).
        fds: Vec<(i32, Vec<u8>)>,
        /// The cgroup as in /proc/PID/cgroup, if cgroups are followed.
        #[serde(default)]
        cgroup: Option<Vec<u8>>,
        /// As in [`Synthesized::Task`].
        nested: bool,
    },
    /// The child that rtrace forked has executed its program, and has this comm now. If only some tasks are traced, the
    /// stream may not have that execve.
    Executed {
        /// The child.
        task: TaskId,
        /// Its comm.
        comm: Vec<u8>,
    },
    /// A task that existed before the trace.
    Task {
        /// The task.
        task: TaskId,
        /// Its comm.
        comm: Vec<u8>,
        /// Its parent process.
        ppid: i32,
        /// When it started: CLOCK_MONOTONIC, from `starttime` in /proc/PID/stat, rounded down.
        started: Time,
        /// The cgroup as in /proc/PID/cgroup, if cgroups are followed.
        cgroup: Option<Vec<u8>>,
        /// The ABI of its program, if that could be read.
        abi: Option<Abi>,
        /// The task is in a pid namespace below rtrace's, and uses other numbers for tasks.
        nested: bool,
    },
    /// The task had ended before rtrace read its /proc files.
    NoTask {
        /// The thread.
        tid: i32,
    },
    /// The target of a process's descriptor (readlink(2) of /proc/PID/fd/N).
    Fd {
        /// The process.
        pid: i32,
        /// The descriptor.
        fd: i32,
        /// The target; `None` if the descriptor was not open.
        path: Option<Vec<u8>>,
        /// The link was read between this time and that of the record.
        from: Time,
    },
    /// The executable mappings that a process had before the stream began (/proc/PID/maps).
    Maps {
        /// The process.
        pid: i32,
        /// Its mappings.
        maps: Vec<FileMapping>,
    },
    /// The counts of an event as read(2) returns them with PERF_FORMAT_LOST, summed over all CPUs and tasks.
    Count {
        /// The event.
        event: EventIndex,
        /// How often the event happened.
        issued: u64,
        /// The number of records that the kernel dropped.
        lost: u64,
        /// The maximum number of hits that were counted after the event had been disabled, and have no record
        /// ([`crate::syscall::ledger::Ledger::count`]).
        #[serde(default)]
        from_afar: u64,
    },
    /// The number of records that the kernel dropped of an event whose hits nobody counted: files of perf have no such
    /// counts.
    Lost {
        /// The event.
        event: EventIndex,
        /// The number of records.
        records: u64,
    },
    /// The counts of [`Synthesized::Count`] for all events of the tracefs instance together, from its
    /// `per_cpu/cpuN/stats`: the kernel does not count the events separately.
    InstanceCount {
        /// How often the events happened.
        issued: u64,
        /// The number of records that were overwritten.
        lost: u64,
    },
    /// The number of calls that the BPF programs filtered out on request, over all CPUs and tasks. No event's count
    /// includes them.
    LeftOut {
        /// The number of calls.
        calls: u64,
    },
    /// The number of calls that the BPF programs passed over, because the caller may not trace their programs.
    NotPermitted {
        /// The number of calls.
        calls: u64,
    },
    /// The number of requests of io_uring that the BPF programs counted and that are not in the stream.
    UntracedRequests {
        /// IORING_OP_* and the number of requests, for each kind that was made.
        counts: Vec<(u8, u64)>,
    },
    /// Data that is missing for another reason than a lost record.
    Shortage(Shortage),
    /// A message that rtrace printed at this time.
    Notice(Notice),
    /// A call in flight, as the BPF programs have it at the record's time. The record can also hold aggregated sums:
    /// those of a task that has just ended, or at the end of the trace those of a living task.
    InFlight {
        /// The task that made the call.
        task: TaskId,
        /// The bytes of the record ([`crate::bpf::record`]).
        call: Vec<u8>,
        /// Tracing has ended, and no further record of the call will follow.
        last: bool,
        /// The registers and stack for the call chain, if one was requested.
        #[serde(default)]
        stack: Option<StackMemory>,
        /// The memory of a call that began before tracing, in the order of the arguments.
        #[serde(default)]
        copies: Vec<MemoryCopy>,
    },
    /// A call in which a task slept when tracing began, if no BPF program records it: the contents of
    /// /proc/PID/task/TID/syscall. The task did not run between the beginning of tracing and the record's time, nor
    /// while its files were read.
    Sleeping {
        /// The task.
        task: TaskId,
        /// The number of the syscall.
        nr: i64,
        /// The argument registers.
        args: [u64; 6],
        /// The registers and stack for the call chain, if one was requested.
        stack: Option<StackMemory>,
        /// The memory of the call, in the order of the arguments.
        #[serde(default)]
        copies: Vec<MemoryCopy>,
    },
    /// The supervisor of `--inject` changed a call, which began at the record's time. What the kernel records of the
    /// call follows: only its exit if the supervisor answered it, otherwise entry and exit.
    Injected {
        /// The thread that made the call.
        tid: i32,
        /// The ABI of the call.
        abi: Abi,
        /// The number of the syscall in this ABI.
        nr: i64,
        /// The argument registers.
        args: [u64; 6],
        /// The supervisor returned a value in the kernel's place.
        answered: bool,
        /// The supervisor delayed the call.
        delayed: bool,
        /// While the call waits, only a signal that kills its task ends it (from Linux 5.19 on).
        killable: bool,
        /// The memory that was copied of a call that was answered, in the order of the arguments.
        copies: Vec<MemoryCopy>,
    },
    /// A ring was full when rtrace read it, at the record's time. The kernel may have dropped records after the ring's
    /// last one; it writes a LOST record for them only before the ring's next record.
    Full {
        /// The CPU of the ring.
        cpu: u32,
    },
    /// Other BPF programs on the same tracepoint may have suppressed samples.
    Silenced {
        /// The event of the tracepoint.
        event: EventIndex,
        /// The kernel's IDs of the programs (PERF_EVENT_IOC_QUERY_BPF).
        programs: Vec<u32>,
    },
    /// The command ended.
    Reaped {
        /// The process.
        pid: i32,
        /// The status word of wait(2).
        status: i32,
    },
}

impl Synthesized {
    /// Returns the approximate size in bytes of the data that the record owns. Only the frequent kinds are counted.
    pub fn bytes(&self) -> usize {
        if let Synthesized::InFlight { call, .. } = self { call.len() } else { 0 }
    }
}
