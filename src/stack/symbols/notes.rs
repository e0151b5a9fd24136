//! Notes in a file: what linkers and assemblers leave there for others (man 5 elf, "Notes").

/// One note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// Whose it is, with the final zero.
    pub name: &'a [u8],
    pub kind: u32,
    pub contents: &'a [u8],
}

/// The notes of a section or segment, up to the first that is cut.
pub fn notes(mut bytes: &[u8], big_endian: bool) -> impl Iterator<Item = Note<'_>> {
    std::iter::from_fn(move || {
        let (note, rest) = next(bytes, big_endian)?;
        bytes = rest;
        Some(note)
    })
}

fn next(bytes: &[u8], big_endian: bool) -> Option<(Note<'_>, &[u8])> {
    let word = |bytes: [u8; 4]| if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    let [a, b, c, d, e, f, g, h, i, j, k, l, ref rest @ ..] = *bytes else { return None };
    let (name_size, size, kind) = (word([a, b, c, d]) as usize, word([e, f, g, h]) as usize, word([i, j, k, l]));
    let name = rest.get(..name_size)?;
    let rest = rest.get(name_size.checked_next_multiple_of(4)?..)?;
    let contents = rest.get(..size)?;
    // Nothing need fill the last one up.
    let end = size.checked_next_multiple_of(4)?.min(rest.len());
    Some((Note { name, kind, contents }, &rest[end..]))
}
