//! Reads facts about tasks from the live machine's /proc, as synthesized records.

use crate::event::synthesized::{FileMapping, MemoryCopy, StackMemory, Synthesized};
use crate::event::{Abi, FileId, TaskId, Time};
use crate::kernel::elf;
use crate::kernel::machine::{self, ClockOffsets};
use crate::kernel::procfs::{self, Mapping, SleepingCall, Status};
use crate::stack::registers::Architecture;
use crate::sys::{clock, remote_memory};
use crate::syscall::memory::{self, CallInFlight};
use crate::task::ProcReader;

/// Reads /proc for one task after the other.
///
/// What the threads of a process share is read once for consecutive threads of it: for 10,000 threads, each file takes
/// some 0.1 s.
#[derive(Debug)]
pub struct TaskReader {
    offsets: ClockOffsets,
    cgroups: bool,
    last: Option<Process>,
}

/// The facts that all threads of a process share.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: i32,
    ppid: i32,
    is_nested: bool,
    /// `None` until a thread was read that has one: the first thread may have exited, and kernel threads execute no
    /// program.
    abi: Option<Abi>,
}

impl TaskReader {
    /// Creates a reader. With `cgroups`, it also reads the cgroup of each thread, which threads of a process do not
    /// share.
    pub fn new(cgroups: bool) -> TaskReader {
        TaskReader { offsets: machine::clock_offsets(), cgroups, last: None }
    }

    /// Reads the present state of a task. Returns `None` if the task has exited.
    pub fn read(&mut self, task: TaskId) -> Option<Synthesized> {
        let process = self.last.take_if(|last| last.pid == task.pid);
        let mut process = process.or_else(|| Process::of(procfs::status(task.tid)?))?;
        // Another process has this number by now.
        if process.pid != task.pid {
            return None;
        }
        process.abi = process.abi.or_else(|| abi(task));
        self.last = Some(process);
        let stat = procfs::thread_stat(task)?;
        Some(Synthesized::Task {
            task,
            started: stat.started(self.offsets),
            comm: stat.comm,
            ppid: process.ppid,
            cgroup: if self.cgroups { procfs::cgroup(task.tid) } else { None },
            abi: process.abi,
            nested: process.is_nested,
        })
    }
}

impl Process {
    fn of(status: Status) -> Option<Process> {
        Some(Process { pid: status.tgid, ppid: status.ppid, is_nested: status.is_nested, abi: None })
    }
}

fn abi(task: TaskId) -> Option<Abi> {
    match elf::program_of_thread(task) {
        Ok(elf::Program::Elf(abi)) => Some(abi),
        _ => None,
    }
}

/// Reads the executable mappings of a process. Returns `None` if it has exited or has no mappings, as kernel threads.
pub fn maps(pid: i32) -> Option<Synthesized> {
    let mapped = |mapping: Mapping| FileMapping {
        start: mapping.addresses.0,
        end: mapping.addresses.1,
        offset: mapping.offset,
        file: FileId { device: mapping.device, inode: mapping.inode, generation: 0 },
        path: mapping.path.to_vec(),
    };
    let text = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    let lines = text.split(|byte| *byte == b'\n').filter_map(procfs::parse_mapping);
    let maps: Vec<FileMapping> = lines.filter(|mapping| mapping.is_executable).map(mapped).collect();
    (!maps.is_empty()).then_some(Synthesized::Maps { pid, maps })
}

/// How much of a sleeping task's stack is copied, in bytes.
const STACK_BYTES: usize = 64 << 10;

/// Reads the call in which a task sleeps, with its memory, up to `string_limit` bytes of a string, with the task's
/// stack if `wants_stack`, and the time of the read.
///
/// Returns `None` if the task does not sleep in a call, or ran during the read. Of its registers, only the stack
/// pointer and the program counter are known.
pub fn sleeping(task: TaskId, abi: Abi, string_limit: usize, wants_stack: bool) -> Option<(Time, Synthesized)> {
    while_asleep(task, |call| {
        let stack = if wants_stack { stack(task, call) } else { None };
        let copies = memory::copies(&call.in_flight(task, abi), string_limit);
        (clock::now(), Synthesized::Sleeping { task, nr: call.nr, args: call.args, stack, copies })
    })
}

/// Reads the memory of this call, up to `string_limit` bytes of a string, if its task sleeps in it.
pub fn memory_of_sleeping(task: TaskId, of: CallInFlight, string_limit: usize) -> Vec<MemoryCopy> {
    let copies = while_asleep(task, |call| {
        let is_same = call.in_flight(task, of.abi) == of;
        if is_same { memory::copies(&of, string_limit) } else { Vec::new() }
    });
    copies.unwrap_or_default()
}

/// Returns what is read of the call in which a task sleeps; `None` if it does not, or ran during the read.
fn while_asleep<T>(task: TaskId, read: impl FnOnce(&SleepingCall) -> T) -> Option<T> {
    let switches = procfs::context_switches(task)?;
    let call = procfs::sleeping_call(task)?;
    let found = read(&call);
    let slept = procfs::sleeping_call(task) == Some(call) && procfs::context_switches(task) == Some(switches);
    slept.then_some(found)
}

impl SleepingCall {
    fn in_flight(&self, task: TaskId, abi: Abi) -> CallInFlight {
        // Bit 30 tells calls of x32 from others (arch/x86/include/uapi/asm/unistd.h).
        CallInFlight { tid: task.tid, abi, nr: self.nr & !(1 << 30), args: self.args }
    }
}

fn stack(task: TaskId, call: &SleepingCall) -> Option<StackMemory> {
    let native = Architecture::host()?;
    let is_wide = !matches!(elf::program_of_thread(task), Ok(elf::Program::Elf(Abi::I386)));
    let layout = native.layout();
    let place = |number: u8| layout.of_perf.iter().position(|of| *of == number);
    let mut known = [(place(layout.stack_pointer)?, call.stack_pointer), (place(layout.program_counter)?, call.program_counter)];
    known.sort_unstable();
    let mut stack = vec![0; STACK_BYTES];
    let copied = remote_memory::read(task.pid, call.stack_pointer, &mut stack);
    stack.truncate(copied);
    Some(StackMemory {
        is_wide,
        mask: known.iter().fold(0, |mask, (bit, _)| mask | 1 << bit),
        registers: known.iter().flat_map(|(_, value)| value.to_ne_bytes()).collect(),
        stack,
    })
}

/// The [`ProcReader`] of the live machine.
#[derive(Debug)]
pub struct LiveProcReader {
    tasks: TaskReader,
}

impl Default for LiveProcReader {
    fn default() -> LiveProcReader {
        LiveProcReader { tasks: TaskReader::new(true) }
    }
}

impl ProcReader for LiveProcReader {
    fn fd(&mut self, pid: i32, fd: i32) -> Option<(Time, Synthesized)> {
        let from = clock::now();
        let path = procfs::fd_link(pid, fd);
        Some((clock::now(), Synthesized::Fd { pid, fd, path, from }))
    }

    fn task(&mut self, tid: i32) -> Option<(Time, Synthesized)> {
        // Time passes between two of these reads, in which the process may have executed another program.
        self.tasks.last = None;
        let record = procfs::task(tid).and_then(|task| self.tasks.read(task)).unwrap_or(Synthesized::NoTask { tid });
        Some((clock::now(), record))
    }
}
