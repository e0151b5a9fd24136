//! Files that perf names by their build-ids, where the kernel names them by device and inode.
//!
//! A build-id has 20 bytes, as many as an inode number, its generation and half of a device number. So it takes their
//! place, behind a major number that no device has.

use crate::event::FileId;
use crate::stack::symbols::BuildId;

/// The major number that stands before a build-id.
const MAJOR: u32 = u32::MAX;

/// The longest build-id (BUILD_ID_SIZE_MAX of the kernel).
const LONGEST: usize = 20;

/// A build-id, followed by zeros.
pub type BuildIdBytes = [u8; LONGEST];

/// Returns a build-id as files of perf have it.
pub fn padded(id: &BuildId) -> BuildIdBytes {
    let mut bytes = [0; LONGEST];
    bytes[..id.bytes().len()].copy_from_slice(id.bytes());
    bytes
}

/// Returns the identity of a file in the layout of PERF_RECORD_MMAP2: major and minor number, inode, generation. `file`
/// has what perf writes there: the length of the build-id, three unused bytes, and the build-id.
pub fn of_build_id(file: [u8; 24]) -> [u8; 24] {
    let mut identity = [0; 24];
    let length = usize::from(file[0]).min(LONGEST);
    identity[..4].copy_from_slice(&MAJOR.to_le_bytes());
    identity[4..][..length].copy_from_slice(&file[4..][..length]);
    identity
}

/// Returns the build-id that stands for a file; `None` for a file with device and inode.
pub fn build_id(file: FileId) -> Option<BuildIdBytes> {
    let (major, minor) = file.device;
    let mut id = [0; LONGEST];
    id[..4].copy_from_slice(&minor.to_le_bytes());
    id[4..12].copy_from_slice(&file.inode.to_le_bytes());
    id[12..].copy_from_slice(&file.generation.to_le_bytes());
    (major == MAJOR).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_in_the_identity_that_stands_for_it() {
        let mut file = [0; 24];
        file[0] = 16;
        file[4..].copy_from_slice(&std::array::from_fn::<u8, 20, _>(|at| at as u8 + 1));
        let identity = of_build_id(file);
        let word = |at: usize| u64::from_le_bytes(identity[at..][..8].try_into().unwrap());
        let file = FileId { device: (word(0) as u32, (word(0) >> 32) as u32), inode: word(8), generation: word(16) };
        assert_eq!(build_id(file), Some([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 0, 0]));
        assert_eq!(build_id(FileId { device: (8, 1), ..file }), None);
    }
}
