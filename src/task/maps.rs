//! Memory maps: which file is mapped where.
//!
//! Fed by PERF_RECORD_MMAP2, which tells of new mappings of files and not of what was unmapped. So an address in what was unmapped since is still
//! said to be there; a new mapping of a file replaces what it covers. What a process had before the stream began is known by a look, or not at all.

use crate::event::{FileId, MapRef};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// No process is remembered with more mappings (the kernel's own default is 65530, vm.max_map_count).
const MAPS_MAX: usize = 65_530;

/// The maps of all processes.
#[derive(Debug, Default)]
pub struct Maps {
    by_pid: FxHashMap<i32, Arc<Areas>>,
    /// Paths are shared by processes.
    paths: FxHashMap<Box<[u8]>, Arc<[u8]>>,
}

/// The mappings of a process, by first address. Processes that were forked share them until one changes its own.
pub type Areas = BTreeMap<u64, Area>;

/// A mapping.
#[derive(Clone, Debug)]
pub struct Area {
    /// The address behind the last.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    pub path: Arc<[u8]>,
    pub file: FileId,
    pub executable: bool,
}

impl Maps {
    /// A file was mapped.
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

    /// A process was made with a copy of its parent's memory.
    pub fn fork(&mut self, parent: i32, child: i32) {
        match self.by_pid.get(&parent).cloned() {
            Some(areas) => self.by_pid.insert(child, areas),
            None => self.by_pid.remove(&child),
        };
    }

    /// The memory of the process is gone: it ended, or started another program.
    pub fn clear(&mut self, pid: i32) {
        self.by_pid.remove(&pid);
    }

    /// All mappings of a process that are known.
    pub fn of(&self, pid: i32) -> Option<&Arc<Areas>> {
        self.by_pid.get(&pid)
    }

    /// What is mapped at an address.
    pub fn at(&self, pid: i32, address: u64) -> Option<MapRef> {
        let (start, area) = self.by_pid.get(&pid)?.range(..=address).next_back()?;
        let offset = area.offset.wrapping_add(address - start);
        (address < area.end).then(|| MapRef { path: area.path.clone(), offset, executable: area.executable })
    }
}

/// Takes what lies in `start..end` out; what sticks out on either side stays.
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
    fn new_mappings_replace_what_they_cover() {
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
    fn children_have_a_copy_and_execs_none() {
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
    fn absurd_extents_do_no_harm() {
        let mut maps = Maps::default();
        maps.map(1, (u64::MAX - 5, 100, u64::MAX), true, FileId::default(), b"/a");
        maps.map(1, (0, 0, 0), true, FileId::default(), b"/b");
        assert!(maps.at(1, u64::MAX - 1).is_some());
        assert_eq!(maps.at(1, 0), None);
    }
}
