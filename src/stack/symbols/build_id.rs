//! Build-ids: the number that a linker writes into a file to identify it and its debug file.

use super::notes::notes;
use super::order::ByteOrder;
use std::fmt;

/// The greatest length. (SHA-1 has 20 bytes, and the kernel's limit is the same: `BUILD_ID_SIZE_MAX` in
/// linux/buildid.h.)
const LONGEST: usize = 20;

/// A build-id of up to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    bytes: [u8; LONGEST],
    len: u8,
}

impl BuildId {
    /// Creates a build-id. Returns `None` if there are no bytes, or too many.
    pub fn new(id: &[u8]) -> Option<BuildId> {
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        (!id.is_empty()).then_some(BuildId { bytes, len: id.len() as u8 })
    }

    /// Searches the contents of a note section or segment (man 5 elf, "Notes") for a build-id.
    pub fn in_notes(bytes: &[u8], order: ByteOrder) -> Option<BuildId> {
        const NT_GNU_BUILD_ID: u32 = 3;
        let found = notes(bytes, order).find(|note| note.kind == NT_GNU_BUILD_ID && note.name == b"GNU\0")?;
        BuildId::new(found.contents)
    }

    /// Returns the 1 to 20 bytes of the build-id.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(name: &[u8], kind: u32, contents: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        note.extend((name.len() as u32).to_le_bytes());
        note.extend((contents.len() as u32).to_le_bytes());
        note.extend(kind.to_le_bytes());
        for part in [name, contents] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let notes = [note(b"GNU\0", 1, &[9; 16]), note(b"Go\0\0", 3, b"x"), note(b"GNU\0", 3, &[0xab, 0xcd, 1])].concat();
        assert_eq!(BuildId::in_notes(&notes, ByteOrder::Little).unwrap().to_string(), "abcd01");
        for end in 0..notes.len() - 1 {
            assert_eq!(BuildId::in_notes(&notes[..end], ByteOrder::Little), None);
        }
        assert_eq!(BuildId::new(&[1; 21]), None);
        assert_eq!(BuildId::new(&[]), None);
    }

    proptest! {
        #[test]
        fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), big in any::<bool>()) {
            let _ = BuildId::in_notes(&bytes, if big { ByteOrder::Big } else { ByteOrder::Little });
        }
    }
}
