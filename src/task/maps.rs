//! Memory mappings: which file is mapped at which address.
//!
//! The mappings come from PERF_RECORD_MMAP2, which reports new mappings of files, but no munmap(2). An address in a
//! removed mapping is therefore still resolved to its file, until a new file mapping replaces it. The mappings from
//! before the stream are read from /proc, or are not known.

use crate::event::{FileId, MapRef};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum number of mappings that are kept for a process (the kernel's default of vm.max_map_count).
const MAPS_MAX: usize = 65_530;

/// The mappings of all processes.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    by_pid: FxHashMap<i32, Arc<Areas>>,
    /// Paths, shared between processes.
    paths: FxHashMap<Box<[u8]>, Arc<[u8]>>,
}

/// The mappings of a process, by first address. After a fork, parent and child share them until one of them changes.
pub type Areas = BTreeMap<u64, Area>;

/// A mapping of a file.
#[derive(Clone, Debug)]
pub struct Area {
    /// The address after the last byte.
    pub end: u64,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The path as the kernel reported it when the file was mapped; not escaped.
    pub path: Arc<[u8]>,
    /// The file's identity.
    pub file: FileId,
    /// Whether the memory may be executed.
    pub executable: bool,
}

impl Maps {
    /// Adds a mapping of a file.
    pub fn map(&mut self, pid: i32, (start, len, offset): (u64, u64, u64), executable: bool, file: FileId, path: &[u8]) {
        let path = match self.paths.get(path) {
            Some(path) => path.clone(),
            None => self.paths.entry(path.into()).or_insert(Arc::from(path)).clone(),
        };
        let areas = Arc::make_mut(self.by_pid.entry(pid).or_default());
        let end = start.saturating_add(len);
        cut_out(areas, start, end);
        if areas.len() < MAPS_MAX && start < end {
            areas.insert(start, Area { end, offset, path, file, executable });
        }
    }

    /// Copies the parent's mappings to a new process.
    pub fn fork(&mut self, parent: i32, child: i32) {
        match self.by_pid.get(&parent).cloned() {
            Some(areas) => self.by_pid.insert(child, areas),
            None => self.by_pid.remove(&child),
        };
    }

    /// Removes the mappings of a process that has ended or executed a program.
    pub fn clear(&mut self, pid: i32) {
        self.by_pid.remove(&pid);
    }

    /// Returns all known mappings of a process.
    pub fn of(&self, pid: i32) -> Option<&Arc<Areas>> {
        self.by_pid.get(&pid)
    }

    /// Returns the file position that is mapped at an address.
    pub fn at(&self, pid: i32, address: u64) -> Option<MapRef> {
        let (start, area) = self.by_pid.get(&pid)?.range(..=address).next_back()?;
        let offset = area.offset.wrapping_add(address - start);
        (address < area.end).then(|| MapRef { path: area.path.clone(), offset, executable: area.executable })
    }
}

/// Removes the range `start..end`. Parts of mappings outside of it remain.
fn cut_out(areas: &mut Areas, start: u64, end: u64) {
    let first = areas.range(..=start).next_back().map_or(start, |(first, _)| *first);
    let covered: Vec<u64> = areas.range(first..end).filter(|(_, area)| area.end > start).map(|(first, _)| *first).collect();
    for first in covered {
        let Some(area) = areas.remove(&first) else { continue };
        if area.end > end {
            let offset = area.offset.wrapping_add(end - first);
            areas.insert(end, Area { offset, ..area.clone() });
        }
        if first < start {
            areas.insert(first, Area { end: start, ..area });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset_at(maps: &Maps, pid: i32, address: u64) -> Option<(Vec<u8>, u64)> {
        maps.at(pid, address).map(|at| (at.path.to_vec(), at.offset))
    }

    #[test]
    fn new_mappings_replace_the_ranges_they_cover() {
        let mut maps = Maps::default();
        maps.map(1, (0x1000, 0x4000, 0), true, FileId::default(), b"/a");
        maps.map(1, (0x2000, 0x1000, 0x500), false, FileId::default(), b"/b");
        assert_eq!(offset_at(&maps, 1, 0x1fff), Some((b"/a".to_vec(), 0xfff)));
        assert_eq!(offset_at(&maps, 1, 0x2000), Some((b"/b".to_vec(), 0x500)));
        assert_eq!(offset_at(&maps, 1, 0x3000), Some((b"/a".to_vec(), 0x2000)));
        assert_eq!(offset_at(&maps, 1, 0x5000), None);
        assert_eq!(offset_at(&maps, 1, 0xfff), None);
    }

    #[test]
    fn a_fork_copies_mappings_and_an_execve_removes_them() {
        let mut maps = Maps::default();
        maps.map(1, (0x1000, 0x1000, 0), true, FileId::default(), b"/a");
        maps.fork(1, 2);
        maps.map(2, (0x1000, 0x1000, 0), true, FileId::default(), b"/b");
        assert_eq!(offset_at(&maps, 1, 0x1000), Some((b"/a".to_vec(), 0)));
        assert_eq!(offset_at(&maps, 2, 0x1000), Some((b"/b".to_vec(), 0)));
        maps.clear(1);
        assert_eq!(offset_at(&maps, 1, 0x1000), None);
    }

    #[test]
    fn overflowing_extents_do_not_panic() {
        let mut maps = Maps::default();
        maps.map(1, (u64::MAX - 5, 100, u64::MAX), true, FileId::default(), b"/a");
        maps.map(1, (0, 0, 0), true, FileId::default(), b"/b");
        assert!(maps.at(1, u64::MAX - 1).is_some());
        assert_eq!(maps.at(1, 0), None);
    }
}
