//! Reads the attributes of the events from a file, for `rtrace evlist`.

use super::layout::{ATTR_BYTES_MIN, HEADER_BYTES, Header, Section, feature};
use anyhow::{Context, anyhow, bail};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The largest section that is read: that of some hundred thousand events.
const SECTION_MAX: u64 = 64 << 20;

/// The attributes of an event (`struct perf_event_attr`, include/uapi/linux/perf_event.h).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventAttributes {
    /// The event's name in the file; empty if it has none.
    pub name: String,
    /// The bytes of the struct, as many as the file has.
    pub bytes: Vec<u8>,
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

/// Reads the attributes of all events of a file, in their order.
///
/// # Errors
/// The file cannot be read, or is no perf.data file.
pub fn attributes(path: &Path) -> anyhow::Result<Vec<EventAttributes>> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open the recording {name}"))?;
    let size = file.metadata().with_context(|| format!("cannot read the recording {name}"))?.len();
    let mut bytes = [0; HEADER_BYTES as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|_| anyhow!("{name} is no recording: it has only {size} bytes"))?;
    let header = Header::parse(&bytes).map_err(|why| anyhow!("{name} {why}"))?;
    // An entry ends with the section of the event's identifiers, in 16 bytes.
    let entry = usize::try_from(header.attr_bytes).unwrap_or_default();
    if !(ATTR_BYTES_MIN + 16..=1 << 16).contains(&entry) {
        bail!("{name} has events whose attributes have an impossible size ({entry} bytes)");
    }
    let attrs = section(&file, header.attrs, size).with_context(|| format!("{name}: its attributes of events cannot be read"))?;
    let mut names = names(&file, &header, size).into_iter();
    let of = |entry: &[u8]| EventAttributes { name: names.next().unwrap_or_default(), bytes: entry[..entry.len() - 16].to_vec() };
    Ok(attrs.chunks_exact(entry).map(of).collect())
}

/// Returns the names of the events in their order, as far as the file has them: a file that was not completed has none.
fn names(file: &File, header: &Header, size: u64) -> Vec<String> {
    let read = || {
        let place = header.feature_numbers().position(|number| number == feature::EVENT_DESC)? as u64;
        let table = header.data.offset.checked_add(header.data.size)?;
        let mut entry = [0; 16];
        file.read_exact_at(&mut entry, table.checked_add(16 * place)?).ok()?;
        section(file, Section::from_bytes(entry), size).ok()
    };
    read().map(|bytes| described(&bytes)).unwrap_or_default()
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

fn section(file: &File, section: Section, size: u64) -> anyhow::Result<Vec<u8>> {
    let end = section.offset.checked_add(section.size).filter(|end| *end <= size && section.size <= SECTION_MAX);
    let Some(_) = end else { bail!("the section at byte {} with {} bytes is not in the file", section.offset, section.size) };
    let mut bytes = vec![0; section.size as usize];
    file.read_exact_at(&mut bytes, section.offset)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
