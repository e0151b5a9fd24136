//! Notes in a file: what linkers and assemblers leave there for others (man 5 elf, "Notes").

use super::order::ByteOrder;

/// One note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// Whose it is, with the final zero.
    pub name: &'a [u8],
    pub kind: u32,
    pub contents: &'a [u8],
}

/// The notes of a section or segment, up to the first that is cut.
pub fn notes(mut bytes: &[u8], order: ByteOrder) -> impl Iterator<Item = Note<'_>> {
    std::iter::from_fn(move || {
        let (note, rest) = next(bytes, order)?;
        bytes = rest;
        Some(note)
    })
}

fn next(bytes: &[u8], order: ByteOrder) -> Option<(Note<'_>, &[u8])> {
    let word = |number: usize| order.u32(bytes, 4 * number);
    let (name_size, size, kind) = (word(0)? as usize, word(1)? as usize, word(2)?);
    let rest = bytes.get(12..)?;
    let name = rest.get(..name_size)?;
    let rest = rest.get(name_size.checked_next_multiple_of(4)?..)?;
    let contents = rest.get(..size)?;
    // Nothing need fill the last one up.
    let end = size.checked_next_multiple_of(4)?.min(rest.len());
    Some((Note { name, kind, contents }, &rest[end..]))
}
