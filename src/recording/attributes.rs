//! Reads the attributes of the events from a file.

use super::features::{self, Features, section};
use super::layout::{ATTR_BYTES_MIN, Header, Section, feature};
use crate::stack::symbols::ReadAt;
use anyhow::anyhow;
use std::path::Path;

/// The most events of a file. An event has an index of 16 bits.
const EVENTS_MAX: u64 = 60_000;

/// The largest size of an event's attributes.
const ATTR_BYTES_MAX: u64 = 1 << 16;

/// The attributes of an event (`struct perf_event_attr`, include/uapi/linux/perf_event.h).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventAttributes {
    /// The event's name in the file; empty if it has none.
    pub name: String,
    /// The bytes of the struct, as many as the file has.
    pub bytes: Vec<u8>,
    /// The identifiers that the event's records have.
    pub ids: Vec<u64>,
}

impl EventAttributes {
    /// Returns the number of 4 bytes at this offset; 0 beyond the end of the struct.
    pub fn half(&self, at: usize) -> u32 {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u32::from_le_bytes)
    }

    /// Returns the number of 8 bytes at this offset; 0 beyond the end of the struct.
    pub fn word(&self, at: usize) -> u64 {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u64::from_le_bytes)
    }
}

/// Reads the attributes of all events of a file with their names, in their order. A file that was not completed has no
/// names.
///
/// # Errors
/// The file cannot be read, or is no perf.data file.
pub fn attributes(path: &Path) -> anyhow::Result<Vec<EventAttributes>> {
    let (file, header) = features::open(path)?;
    let mut events = events(&file, &header).map_err(|why| anyhow!("{} {why}", path.display()))?;
    let names = Features::find(&file, &header).bytes(feature::EVENT_DESC).ok().flatten();
    for (event, name) in events.iter_mut().zip(described(&names.unwrap_or_default())) {
        event.name = name;
    }
    Ok(events)
}

/// Reads the attributes of all events of a file without their names.
///
/// # Errors
/// A clause that continues the name of the file.
pub fn events(file: &dyn ReadAt, header: &Header) -> Result<Vec<EventAttributes>, String> {
    // An entry ends with the section of the event's identifiers, in 16 bytes.
    let entry = header.attr_bytes;
    if !(ATTR_BYTES_MIN as u64 + 16..=ATTR_BYTES_MAX).contains(&entry) || header.attrs.size / entry > EVENTS_MAX {
        return Err("has a table of events of an impossible size".to_owned());
    }
    let table = section(file, header.attrs)?;
    let mut left = file.size();
    let mut events = Vec::new();
    for entry in table.chunks_exact(entry as usize) {
        let (attr, place) = entry.split_at(entry.len() - 16);
        let ids = Section::from_bytes(place.first_chunk().copied().unwrap_or_default());
        // Those of several events may overlap only in a file that is to take memory.
        left = left.checked_sub(ids.size).ok_or("has more identifiers of events than bytes")?;
        let ids = section(file, ids)?;
        let ids = ids.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
        events.push(EventAttributes { name: String::new(), bytes: attr.to_vec(), ids });
    }
    Ok(events)
}

/// Returns the names in a section of event descriptions.
fn described(bytes: &[u8]) -> Vec<String> {
    let half = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).map(|bytes| u32::from_le_bytes(bytes) as usize);
    let (Some(count), Some(attr)) = (half(0), half(4)) else { return Vec::new() };
    let mut at = 8usize;
    let mut next = || {
        let text = at.checked_add(attr)?;
        let (ids, length) = (half(text)?, half(text.checked_add(4)?)?);
        let name = bytes.get(text + 8..)?.get(..length)?;
        at = (text + 8 + length).checked_add(ids.checked_mul(8)?)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(String::from_utf8_lossy(&name[..end]).into_owned())
    };
    (0..count).map_while(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tables_of_events_outside_the_file_are_refused() {
        let file = [7; 100];
        let header = |attr_bytes, size| Header { attr_bytes, attrs: Section { offset: 0, size }, ..Header::default() };
        for wrong in [header(0, 80), header(79, 80), header(80, u64::MAX), header(1 << 17, 1 << 17)] {
            assert!(events(&file, &wrong).unwrap_err().contains("of an impossible size"), "{wrong:?}");
        }
        assert!(events(&file, &header(80, 160)).unwrap_err().contains("but it ends"), "the table");
        assert!(events(&file, &header(80, 80)).unwrap_err().contains("more identifiers"), "their size is 0x0707...");
    }

    #[test]
    fn events_cannot_share_the_bytes_of_their_identifiers() {
        const COUNT: usize = 50;
        let size = COUNT * 80;
        let entry = [&[0; 64][..], &Section { offset: 0, size: size as u64 / 2 }.to_bytes()].concat();
        let file = entry.repeat(COUNT);
        let header = |count: usize| Header { attr_bytes: 80, attrs: Section { offset: 0, size: 80 * count as u64 }, ..Header::default() };
        assert_eq!(events(&file, &header(2)).map(|events| events[1].ids.len()), Ok(size / 16));
        assert_eq!(events(&file, &header(3)), Err("has more identifiers of events than bytes".to_owned()));
    }

    #[test]
    fn names_are_read_behind_their_attributes() {
        let mut bytes = [2u32, 4].map(u32::to_le_bytes).concat();
        for name in ["one", "raw_syscalls:sys_enter"] {
            bytes.extend([7; 4]);
            bytes.extend(1u32.to_le_bytes());
            bytes.extend(32u32.to_le_bytes());
            bytes.extend(name.bytes().chain(std::iter::repeat(0)).take(32));
            bytes.extend(99u64.to_le_bytes());
        }
        assert_eq!(described(&bytes), ["one", "raw_syscalls:sys_enter"]);
        assert_eq!(described(&bytes[..70]), ["one"]);
    }

    proptest! {
        #[test]
        fn any_section_is_read_without_panic(bytes: Vec<u8>) {
            described(&bytes);
        }
    }
}
