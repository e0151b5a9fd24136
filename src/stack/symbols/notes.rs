//! ELF notes, which linkers and assemblers write for other programs (man 5 elf, "Notes").

use super::order::ByteOrder;

/// An ELF note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// The owner's name, with the final zero.
    pub name: &'a [u8],
    /// `n_type`, whose meaning depends on the owner.
    pub kind: u32,
    /// The descriptor without its padding, in a format that depends on owner and kind.
    pub contents: &'a [u8],
}

/// Returns the notes of a section or segment, up to the first incomplete one.
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
    // The last note may have no padding.
    let end = size.checked_next_multiple_of(4)?.min(rest.len());
    Some((Note { name, kind, contents }, &rest[end..]))
}
