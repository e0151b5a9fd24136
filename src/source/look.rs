//! Looks at the live machine's /proc, as notes.

use super::note::{Mapped, Note};
use crate::event::{FileId, TaskId, Time};
use crate::kernel::elf;
use crate::kernel::machine::{self, ClockOffsets};
use crate::kernel::procfs::{self, Mapping};
use crate::sys::clock;
use crate::task::Look;

/// What a task is now; `None` when it is gone.
pub fn task(tid: i32) -> Option<Note> {
    task_since(tid, machine::clock_offsets())
}

fn task_since(tid: i32, offsets: ClockOffsets) -> Option<Note> {
    let stat = procfs::stat(tid)?;
    let status = procfs::status(tid)?;
    let abi = match elf::program_of(tid) {
        Ok(elf::Program::Elf(abi)) => Some(abi),
        _ => None,
    };
    Some(Note::Task {
        task: TaskId { pid: status.tgid, tid },
        started: stat.started(offsets),
        comm: stat.comm,
        ppid: stat.ppid,
        cgroup: procfs::cgroup(tid),
        abi,
        nested: status.is_nested,
    })
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

/// The live machine.
#[derive(Debug)]
pub struct Live {
    offsets: ClockOffsets,
}

impl Default for Live {
    fn default() -> Live {
        Live { offsets: machine::clock_offsets() }
    }
}

impl Look for Live {
    fn fd(&mut self, pid: i32, fd: i32) -> Option<(Time, Note)> {
        let from = clock::now();
        let path = procfs::fd_link(pid, fd);
        Some((clock::now(), Note::Fd { pid, fd, path, from }))
    }

    fn task(&mut self, tid: i32) -> Option<(Time, Note)> {
        let note = task_since(tid, self.offsets).unwrap_or(Note::NoTask { tid });
        Some((clock::now(), note))
    }
}
