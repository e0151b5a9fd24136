//! Looks at the live machine's /proc, as notes.

use crate::event::note::{Mapped, Note, StackMemory};
use crate::event::{Abi, FileId, TaskId, Time};
use crate::kernel::elf;
use crate::kernel::machine::{self, ClockOffsets};
use crate::kernel::procfs::{self, Mapping, SleepingCall, Status};
use crate::stack::registers::Architecture;
use crate::sys::{clock, remote_memory};
use crate::task::Look;

/// Looks at tasks, one after the other. What the threads of a process have in common is asked once for those that come one after the other: of 10,000 threads, each file takes some 0.1 s.
#[derive(Debug)]
pub struct Tasks {
    offsets: ClockOffsets,
    cgroups: bool,
    last: Option<Process>,
}

/// What all threads of a process have in common.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: i32,
    ppid: i32,
    is_nested: bool,
    /// `None` until a thread was found that says it: the first one may be gone, and kernel threads execute no program.
    abi: Option<Abi>,
}

impl Tasks {
    /// `cgroups`: these are wanted; each thread has its own.
    pub fn new(cgroups: bool) -> Tasks {
        Tasks { offsets: machine::clock_offsets(), cgroups, last: None }
    }

    /// What a task is now; `None` when it is gone.
    pub fn look(&mut self, task: TaskId) -> Option<Note> {
        let process = self.last.take_if(|last| last.pid == task.pid);
        let mut process = process.or_else(|| Process::of(procfs::status(task.tid)?))?;
        // Somebody else has the number by now.
        if process.pid != task.pid {
            return None;
        }
        process.abi = process.abi.or_else(|| abi(task));
        self.last = Some(process);
        let stat = procfs::thread_stat(task)?;
        Some(Note::Task {
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

/// The executable mappings of a process now; `None` when it is gone or has none, as kernel threads.
pub fn maps(pid: i32) -> Option<Note> {
    let mapped = |mapping: Mapping| Mapped {
        start: mapping.addresses.0,
        end: mapping.addresses.1,
        offset: mapping.offset,
        file: FileId { device: mapping.device, inode: mapping.inode, generation: 0 },
        path: mapping.path.to_vec(),
    };
    let text = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    let lines = text.split(|byte| *byte == b'\n').filter_map(procfs::parse_mapping);
    let maps: Vec<Mapped> = lines.filter(|mapping| mapping.is_executable).map(mapped).collect();
    (!maps.is_empty()).then_some(Note::Maps { pid, maps })
}

/// So much of the stack of a task that sleeps is copied, bytes.
const STACK_BYTES: usize = 64 << 10;

/// The call that a task sleeps in, with its stack if that is wanted, and when it was looked at.
///
/// `None` if it does not sleep in a call, or ran while it was looked at. Only stack pointer and program counter are known of its registers.
pub fn sleeping(task: TaskId, wants_stack: bool) -> Option<(Time, Note)> {
    let switches = procfs::context_switches(task)?;
    let call = procfs::sleeping_call(task)?;
    let stack = if wants_stack { stack(task, &call) } else { None };
    let time = clock::now();
    let slept = procfs::sleeping_call(task) == Some(call) && procfs::context_switches(task) == Some(switches);
    slept.then_some((time, Note::Sleeping { task, nr: call.nr, args: call.args, stack }))
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

/// The live machine.
#[derive(Debug)]
pub struct Live {
    tasks: Tasks,
}

impl Default for Live {
    fn default() -> Live {
        Live { tasks: Tasks::new(true) }
    }
}

impl Look for Live {
    fn fd(&mut self, pid: i32, fd: i32) -> Option<(Time, Note)> {
        let from = clock::now();
        let path = procfs::fd_link(pid, fd);
        Some((clock::now(), Note::Fd { pid, fd, path, from }))
    }

    fn task(&mut self, tid: i32) -> Option<(Time, Note)> {
        // Time goes by between two of these looks, and the process may have executed another program.
        self.tasks.last = None;
        let note = procfs::task(tid).and_then(|task| self.tasks.look(task)).unwrap_or(Note::NoTask { tid });
        Some((clock::now(), note))
    }
}
