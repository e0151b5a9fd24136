//! What a recording of perf says about the programs of which it has stacks: it has their names and identities, and not
//! the programs.

use super::identity::BuildIdBytes;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// A symbol at the beginning of the kernel's code, and its address, which is another one after each boot.
pub type KernelPlace = Arc<Mutex<Option<(Box<[u8]>, u64)>>>;

/// PERF_RECORD_MISC_BUILD_ID_SIZE: the entry has the length of the build-id.
const MISC_SIZE: u16 = 1 << 15;

/// What a recording says about programs. Clones share the place of the kernel.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The build-ids of files, by their paths. perf writes those of some files at the end of the recording. A path has
    /// several if the file was replaced meanwhile.
    pub build_ids: FxHashMap<Box<[u8]>, Vec<BuildIdBytes>>,
    /// When the recording was written. A program that was modified later is not the one that was recorded.
    pub written: SystemTime,
    /// Where the kernel was, which is known before the first sample.
    pub kernel: KernelPlace,
    /// Some samples have registers or stack memory that cannot be unwound, because registers are missing.
    pub lacks_registers: bool,
}

impl Programs {
    /// Returns what the section of build-ids says, beside the other facts.
    pub fn new(section: &[u8], written: SystemTime, lacks_registers: bool) -> Programs {
        let mut build_ids: FxHashMap<Box<[u8]>, Vec<BuildIdBytes>> = FxHashMap::default();
        for (path, id) in entries(section) {
            build_ids.entry(path.into()).or_default().push(id);
        }
        Programs { build_ids, written, kernel: KernelPlace::default(), lacks_registers }
    }
}

/// Returns the paths and build-ids in the section (`struct perf_record_header_build_id` in
/// tools/lib/perf/include/perf/event.h), as far as it can be read.
fn entries(mut section: &[u8]) -> impl Iterator<Item = (&[u8], BuildIdBytes)> {
    std::iter::from_fn(move || {
        // A header of a record, a process in 4 bytes, the build-id with its length in 24, and the path.
        let header = section.first_chunk().copied().map(u64::from_le_bytes)?;
        let (entry, rest) = section.split_at_checked((header >> 48) as usize).filter(|(entry, _)| entry.len() >= 36)?;
        section = rest;
        let has_length = (header >> 32) as u16 & MISC_SIZE != 0;
        let length = if has_length { usize::from(entry[32]).min(20) } else { 20 };
        let mut id = BuildIdBytes::default();
        id[..length].copy_from_slice(&entry[12..][..length]);
        let path = &entry[36..];
        Some((&path[..memchr::memchr(0, path).unwrap_or(path.len())], id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns an entry as perf writes it.
    fn entry(misc: u16, id: &[u8], path: &str) -> Vec<u8> {
        let size = 36 + (path.len() + 1).next_multiple_of(64);
        let mut bytes = (67 | u64::from(misc) << 32 | (size as u64) << 48).to_le_bytes().to_vec();
        bytes.extend((-1i32).to_le_bytes());
        bytes.extend(id.iter().copied().chain(std::iter::repeat(0)).take(20));
        bytes.extend([id.len() as u8, 0, 0, 0]);
        bytes.extend(path.bytes().chain(std::iter::repeat(0)).take(size - 36));
        bytes
    }

    #[test]
    fn build_ids_are_found_by_path() {
        let section = [entry(MISC_SIZE, &[7; 16], "/bin/a"), entry(0, &[8; 20], "/bin/b"), entry(MISC_SIZE, &[9; 20], "/bin/a")].concat();
        let programs = Programs::new(&section, SystemTime::UNIX_EPOCH, false);
        let of = |path: &[u8]| programs.build_ids.get(path).cloned();
        let mut short = [7; 20];
        short[16..].fill(0);
        assert_eq!((of(b"/bin/a"), of(b"/bin/b"), of(b"/bin/c")), (Some(vec![short, [9; 20]]), Some(vec![[8; 20]]), None));
        let cut = Programs::new(&section[..section.len() - 1], SystemTime::UNIX_EPOCH, false);
        assert_eq!(cut.build_ids[&b"/bin/a"[..]], [short]);
    }

    proptest! {
        #[test]
        fn any_section_is_read_without_panic(bytes: Vec<u8>, at in 0usize..300, value: u8) {
            entries(&bytes).for_each(drop);
            let mut section = [entry(MISC_SIZE, &[7; 20], "/bin/a"), entry(0, &[8; 20], "/bin/b")].concat();
            section.get_mut(at).into_iter().for_each(|byte| *byte = value);
            entries(&section).for_each(drop);
        }
    }
}
