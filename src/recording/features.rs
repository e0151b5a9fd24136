//! Reads the feature sections of a file, and other parts of it outside the records.

use super::layout::{HEADER_BYTES, Header, Section, feature};
use super::record_stream::Regular;
use super::sections::About;
use crate::event::Abi;
use crate::session::Session;
use crate::stack::symbols::ReadAt;
use anyhow::anyhow;
use std::path::Path;

/// The largest section that is read into memory. The formats of all events of a kernel have some 5 MiB, and the index
/// of some TiB of records has this size.
const SECTION_MAX: u64 = 256 << 20;

/// The feature sections of a file.
pub struct Features<'a> {
    file: &'a dyn ReadAt,
    table: Vec<(u32, Section)>,
}

impl Features<'_> {
    /// Finds the feature sections of a file with this header. One that was not completed has none.
    pub fn find<'a>(file: &'a dyn ReadAt, header: &Header) -> Features<'a> {
        let table = if header.data.size == 0 { Vec::new() } else { feature_table(file, header) };
        Features { file, table }
    }

    /// Returns the bytes of a section; `None` if the file does not have it.
    ///
    /// # Errors
    /// The section is not inside the file: a clause that continues the file's name.
    pub fn bytes(&self, number: u32) -> Result<Option<Vec<u8>>, String> {
        let found = self.table.iter().find(|(known, _)| *known == number);
        found.map(|(_, place)| section(self.file, *place)).transpose()
    }

    /// Returns the text of a section with one; `None` if the file does not have it.
    ///
    /// # Errors
    /// As [`Features::bytes`].
    pub fn text(&self, number: u32) -> Result<Option<String>, String> {
        let text = |bytes: Vec<u8>| {
            let text = bytes.get(4..).unwrap_or_default();
            String::from_utf8_lossy(&text[..memchr::memchr(0, text).unwrap_or(text.len())]).into_owned()
        };
        Ok(self.bytes(number)?.map(text))
    }
}

/// Opens a file, and reads its header.
///
/// # Errors
/// The file cannot be read, or is no perf.data file.
pub fn open(path: &Path) -> anyhow::Result<(Regular, Header)> {
    let file = Regular::open(path)?;
    let header = header(&file).map_err(|why| anyhow!("{} {why}", path.display()))?;
    Ok((file, header))
}

/// Reads the header of a file.
///
/// # Errors
/// The file is no perf.data file: a clause that continues its name.
pub fn header(file: &dyn ReadAt) -> Result<Header, String> {
    let mut bytes = [0; HEADER_BYTES as usize];
    file.read_at(0, &mut bytes).map_err(|_| format!("is no recording: it has only {} bytes", file.size()))?;
    Ok(Header::parse(&bytes)?)
}

/// Returns what a recording says about the machine and the run. What its feature sections lack is taken from the
/// session.
pub fn about(path: &Path, session: &Session) -> About {
    let machine = if session.abi == Abi::Aarch64 { "aarch64" } else { "x86_64" };
    let known = About {
        release: session.release.clone(),
        machine: machine.to_owned(),
        realtime_offset: session.realtime_offset,
        ..About::default()
    };
    let read = || {
        let (file, header) = open(path).ok()?;
        let features = Features::find(&file, &header);
        let cpus = features.bytes(feature::NRCPUS).ok().flatten().unwrap_or_default();
        Some(About {
            hostname: features.text(feature::HOSTNAME).ok().flatten().unwrap_or_default(),
            online_cpus: cpus.get(4..).and_then(|cpus| cpus.first_chunk().copied()).map_or(0, u32::from_le_bytes),
            command_line: std::env::args_os().map(std::os::unix::ffi::OsStringExt::into_vec).collect(),
            ..known.clone()
        })
    };
    read().unwrap_or(known)
}

/// Returns the places of the feature sections.
fn feature_table(file: &dyn ReadAt, header: &Header) -> Vec<(u32, Section)> {
    let numbers: Vec<u32> = header.feature_numbers().collect();
    let place = Section { offset: header.data.offset.saturating_add(header.data.size), size: 16 * numbers.len() as u64 };
    let table = section(file, place).unwrap_or_default();
    numbers.into_iter().zip(table.as_chunks().0.iter().map(|entry| Section::from_bytes(*entry))).collect()
}

/// Reads a section of a file.
///
/// # Errors
/// A clause that continues the name of the file.
pub fn section(file: &dyn ReadAt, section: Section) -> Result<Vec<u8>, String> {
    let size = file.size();
    if section.offset.checked_add(section.size).is_none_or(|end| end > size) {
        return Err(format!("says that it has {} bytes at offset {}, but it ends at byte {size}", section.size, section.offset));
    }
    if section.size > SECTION_MAX {
        return Err(format!("has a section of {} bytes at offset {}; rtrace reads up to {SECTION_MAX}", section.size, section.offset));
    }
    let mut bytes = vec![0; section.size as usize];
    file.read_at(section.offset, &mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn sections_outside_the_file_are_refused() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100]).unwrap();
        let mut file = Regular { file, size: 100 };
        assert_eq!(section(&file, Section { offset: 90, size: 10 }).unwrap(), [7; 10]);
        for (offset, size) in [(90, 11), (u64::MAX, 1), (0, u64::MAX)] {
            assert!(section(&file, Section { offset, size }).unwrap_err().contains("but it ends at byte 100"));
        }
        file.size = SECTION_MAX + 1;
        assert!(section(&file, Section { offset: 0, size: SECTION_MAX + 1 }).unwrap_err().contains("rtrace reads up to"));
    }
}
