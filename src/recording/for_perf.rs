//! Writes what perf needs and the kernel did not write into the rings: the names and the mappings of tasks that were
//! there before the trace.
//!
//! perf itself begins a recording with such records. They belong to no event, and have the identifier 0, so rtrace's
//! reader passes over them: it has the facts.

use crate::event::{Synthesized, TaskId, Time};
use crate::source::frame::{MISC_COMM_EXEC, kind};

/// PERF_RECORD_MISC_USER: the addresses are of user space.
const MISC_USER: u16 = 2;
/// PROT_READ | PROT_EXEC
const READ_EXECUTE: u64 = 5;
/// MAP_PRIVATE
const PRIVATE: u64 = 2;
/// The longest path of a mapping (PATH_MAX).
const PATH_MAX: usize = 4096;

/// Appends the records for perf that say what this fact says, if there are any.
pub fn append(time: Time, fact: &Synthesized, out: &mut Vec<u8>) {
    match fact {
        // It had this name before. perf takes records without a time as they come.
        Synthesized::Task { task, comm, .. } => name(*task, comm, false, Time(0), out),
        // It is a copy of rtrace until it executes the command.
        Synthesized::Spawned { task, .. } => name(*task, b"rtrace", false, Time(0), out),
        Synthesized::Executed { task, comm } => name(*task, comm, true, time, out),
        Synthesized::Maps { pid, maps } => {
            for map in maps.iter().filter(|map| map.path.len() < PATH_MAX) {
                let task = TaskId { pid: *pid, tid: *pid };
                let (major, minor) = map.file.device;
                let device = u64::from(major) | u64::from(minor) << 32;
                let place = [word(task), map.start, map.end.saturating_sub(map.start), map.offset];
                let file = [device, map.file.inode, map.file.generation, READ_EXECUTE | PRIVATE << 32];
                append_record(kind::MMAP2, MISC_USER, (&[place, file].concat(), &map.path), (task, Time(0)), out);
            }
        }
        _ => {}
    }
}

/// Appends the record of a task's name.
fn name(task: TaskId, comm: &[u8], is_exec: bool, time: Time, out: &mut Vec<u8>) {
    let misc = if is_exec { MISC_COMM_EXEC } else { 0 };
    let comm = &comm[..comm.len().min(15)];
    append_record(kind::COMM, misc, (&[word(task)], comm), (task, time), out);
}

/// Returns process and thread as a record has them.
fn word(task: TaskId) -> u64 {
    u64::from(task.pid as u32) | u64::from(task.tid as u32) << 32
}

/// Appends a record with these numbers and this text, and with task, time, CPU 0 and no identifier at its end.
fn append_record(kind: u32, misc: u16, (numbers, text): (&[u64], &[u8]), (task, time): (TaskId, Time), out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend([0; 8]);
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    out.extend(text);
    // At least one NUL ends the text.
    out.resize(begin + (out.len() - begin + 1).next_multiple_of(8), 0);
    [word(task), time.0, 0, 0].iter().for_each(|field| out.extend(field.to_le_bytes()));
    let size = (out.len() - begin) as u64;
    out[begin..begin + 8].copy_from_slice(&(u64::from(kind) | u64::from(misc) << 32 | size << 48).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FileId;
    use crate::event::synthesized::FileMapping;
    use crate::source::frame::Frame;

    const TASK: TaskId = TaskId { pid: 70, tid: 71 };

    #[test]
    fn names_and_mappings_are_records_of_the_kernel() {
        let mut out = Vec::new();
        let comm = b"a name that is too long".to_vec();
        append(Time(9), &Synthesized::Executed { task: TASK, comm }, &mut out);
        let record = Frame::at(&out, 0).unwrap();
        assert_eq!((record.kind, record.misc, record.size()), (kind::COMM, MISC_COMM_EXEC, out.len()));
        assert_eq!(&record.body[..24], b"\x46\0\0\0\x47\0\0\0a name that is \0");
        assert_eq!(record.body[32..40], 9u64.to_le_bytes());
        out.clear();
        let file = FileId { device: (8, 1), inode: 2, generation: 3 };
        let map = FileMapping { start: 0x1000, end: 0x3000, offset: 0x4000, file, path: b"/bin/cat".to_vec() };
        append(Time(9), &Synthesized::Maps { pid: 70, maps: vec![map] }, &mut out);
        let record = Frame::at(&out, 0).unwrap();
        let numbers: Vec<u64> = record.body[8..64].chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!((record.kind, &numbers[..3]), (kind::MMAP2, &[0x1000, 0x2000, 0x4000][..]));
        assert_eq!(numbers[3..], [8 | 1 << 32, 2, 3, 5 | 2 << 32]);
        assert_eq!(&record.body[64..80], b"/bin/cat\0\0\0\0\0\0\0\0");
        out.clear();
        append(Time(9), &Synthesized::NoTask { tid: 7 }, &mut out);
        assert!(out.is_empty());
    }
}
