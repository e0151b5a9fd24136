//! Reads the records of a file one after the other, those inside compressed records included.
//!
//! The file may be damaged, cut or made by an enemy: what cannot be read is a [`Damage`] with its place, and memory is
//! bounded by what one compressed record may hold.

use super::compression::Unpacker;
use super::index::Gap;
use super::layout::{Section, kind};
use super::reader::Damage;
use crate::source::frame::{Fault, Frame, HEADER_BYTES};
use crate::stack::symbols::ReadAt;
use anyhow::{Context, bail};
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// How many bytes are read at once: few enough that they are in the cache of a CPU until their records are used.
const READ_BYTES: usize = 256 << 10;

/// The largest size of a record, and of what follows it in the file without being counted in its size.
const RECORD_MAX: usize = u16::MAX as usize + 8;

/// The most bytes that a compressed record may hold. perf compresses a ring at a time, whose parts have 64 KiB
/// compressed.
const UNPACKED_MAX: usize = 512 << 20;

/// The records of a file.
pub struct RecordStream {
    file: Box<dyn ReadAt>,
    /// The beginning of the records, the place of the next byte to read from the file, and the end of the records.
    begin: u64,
    next: u64,
    end: u64,
    /// Room for bytes of the file. It has those up to `filled`, of which those before `at` were used.
    window: Vec<u8>,
    filled: usize,
    at: usize,
    /// What compressed records held, of which the bytes before `unpacked_at` were used.
    unpacked: Vec<u8>,
    unpacked_at: usize,
    /// The offset in the file of the compressed record that was read last.
    packed_at: u64,
    unpacker: Option<Unpacker>,
    /// The parts that are passed over, in their order.
    gaps: VecDeque<Gap>,
    /// The number of calls in the parts that were passed over.
    passed_calls: u64,
    damages: Vec<Damage>,
    /// The file was not completed, or lacks its end.
    is_incomplete: bool,
    has_ended: bool,
}

/// A record of the file.
#[derive(Clone, Copy, Debug)]
pub struct FileRecord<'a> {
    /// The offset in the file of the record, or of the compressed record that it is in.
    pub at: u64,
    /// The record.
    pub frame: Frame<'a>,
    /// The record with its header.
    pub bytes: &'a [u8],
}

impl RecordStream {
    /// Returns the records of this part of a file.
    pub fn new(file: Box<dyn ReadAt>, data: Section) -> RecordStream {
        let size = file.size();
        let end = data.offset.saturating_add(data.size);
        let (end, damage) = match data.size {
            0 => (size, Some(Damage::NotFinished)),
            _ if end > size => (size, Some(Damage::Cut { size, missing: end - size })),
            _ => (end, None),
        };
        RecordStream {
            file,
            begin: data.offset,
            next: data.offset,
            end,
            window: vec![0; RECORD_MAX + READ_BYTES],
            filled: 0,
            at: 0,
            unpacked: Vec::new(),
            unpacked_at: 0,
            packed_at: 0,
            unpacker: None,
            gaps: VecDeque::new(),
            passed_calls: 0,
            is_incomplete: damage.is_some(),
            damages: damage.into_iter().collect(),
            has_ended: false,
        }
    }

    /// Returns the offset of the first byte that was not read from the file.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Returns the file.
    pub fn file(&self) -> &dyn ReadAt {
        self.file.as_ref()
    }

    /// Passes over these parts of the file from now on. They begin and end between records, and none begins before
    /// [`RecordStream::position`].
    pub fn pass_over(&mut self, gaps: Vec<Gap>) {
        self.gaps = gaps.into();
    }

    /// Returns the number of calls in the parts that were passed over.
    pub fn passed_calls(&self) -> u64 {
        self.passed_calls
    }

    /// Returns what is wrong with the file, as far as it was read.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Returns what is wrong with the file and was not returned before.
    pub fn take_damages(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damages)
    }

    /// Returns the number of bytes of the records that were read, and that of all of them.
    pub fn progress(&self) -> (u64, u64) {
        (self.file_at().saturating_sub(self.begin), self.end.saturating_sub(self.begin))
    }

    /// Adds something that is wrong with the file.
    pub fn damaged(&mut self, damage: Damage) {
        self.damages.push(damage);
    }

    /// Returns the next record; `None` at the end, or where the file cannot be read any further.
    pub fn next_record(&mut self) -> Option<FileRecord<'_>> {
        let place = self.find()?;
        let bytes = if place.is_unpacked { &self.unpacked } else { &self.window };
        // It was read there once already.
        let frame = Frame::at(bytes, place.at).ok()?;
        Some(FileRecord { at: place.file_at, frame, bytes: &bytes[place.at..place.at + frame.size()] })
    }

    /// Finds the next record that is not compressed.
    fn find(&mut self) -> Option<Place> {
        while !self.has_ended {
            if let Ok(frame) = Frame::at(&self.unpacked, self.unpacked_at) {
                let at = self.unpacked_at;
                self.unpacked_at += frame.size();
                return Some(Place { at, file_at: self.packed_at, is_unpacked: true });
            }
            let (at, file_at) = (self.at, self.file_at());
            let (kind, size) = match extent(&self.window[at..self.filled]) {
                Ok(extent) => extent,
                Err(fault) => {
                    let is_cut = matches!(fault, Fault::Size { size, left } if size > left || left < HEADER_BYTES);
                    if is_cut && self.next < self.limit() && self.filled - at < RECORD_MAX {
                        self.read_more();
                        continue;
                    }
                    if at == self.filled {
                        if let Some(gap) = self.gaps.front().copied().filter(|gap| gap.begin == file_at && gap.end <= self.end) {
                            self.gaps.pop_front();
                            self.next = gap.end;
                            self.passed_calls += gap.calls;
                            continue;
                        }
                        self.end(file_at);
                        return None;
                    }
                    // The last record of a file that was not completed is incomplete, too.
                    if !is_cut || !self.is_incomplete {
                        self.damages.push(Damage::Record { at: file_at, fault });
                    }
                    self.has_ended = true;
                    return None;
                }
            };
            self.at += size;
            match kind {
                kind::COMPRESSED => self.unpack(at + HEADER_BYTES, self.at, file_at),
                kind::COMPRESSED2 => {
                    let begin = at + HEADER_BYTES + 8;
                    let length = self.window[at + HEADER_BYTES..].first_chunk().copied().map_or(0, u64::from_le_bytes);
                    self.unpack(begin, begin + length as usize, file_at);
                }
                kind::AUXTRACE => self.skip_trace(at),
                _ => return Some(Place { at, file_at, is_unpacked: false }),
            }
        }
        None
    }

    /// Returns up to where the file is read: the end of the records, or of those before a part that is passed over.
    fn limit(&self) -> u64 {
        self.gaps.front().map_or(self.end, |gap| gap.begin.min(self.end))
    }

    /// Returns the offset in the file of the first byte that was not used.
    fn file_at(&self) -> u64 {
        self.next - (self.filled - self.at) as u64
    }

    fn end(&mut self, at: u64) {
        let left = self.unpacked.len() - self.unpacked_at;
        if left > 0 {
            self.damages.push(Damage::Record { at, fault: Fault::Size { size: left + 1, left } });
        }
        self.has_ended = true;
    }

    /// Unpacks these bytes of the window.
    fn unpack(&mut self, from: usize, to: usize, at: u64) {
        self.unpacked.drain(..self.unpacked_at);
        (self.unpacked_at, self.packed_at) = (0, at);
        let unpacker = self.unpacker.get_or_insert_with(Unpacker::new);
        let bytes = self.window[..self.filled].get(from..to).unwrap_or_default();
        if let Err(why) = unpacker.unpack(bytes, &mut self.unpacked, UNPACKED_MAX) {
            self.damages.push(Damage::Compressed { at, why });
            self.has_ended = true;
        }
    }

    /// Skips the data of a hardware trace, which follows its record and is not counted in the record's size.
    fn skip_trace(&mut self, record: usize) {
        let size = self.window[record + HEADER_BYTES..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        let buffered = (self.filled - self.at) as u64;
        self.at += size.min(buffered) as usize;
        self.next = self.next.saturating_add(size.saturating_sub(buffered)).min(self.end);
    }

    /// Reads the next bytes of the file.
    fn read_more(&mut self) {
        self.window.copy_within(self.at..self.filled, 0);
        (self.filled, self.at) = (self.filled - self.at, 0);
        let wanted = READ_BYTES.min((self.limit() - self.next) as usize);
        match self.file.read_at(self.next, &mut self.window[self.filled..][..wanted]) {
            Ok(()) => (self.next, self.filled) = (self.next + wanted as u64, self.filled + wanted),
            Err(error) => {
                self.damages.push(Damage::Io { at: self.next, why: error.to_string() });
                self.end = self.next;
            }
        }
    }
}

/// A regular file.
pub struct Regular {
    /// The open file.
    pub file: File,
    /// The size at the beginning. A file that has become shorter cannot be read to there.
    pub size: u64,
}

impl Regular {
    /// Opens a recording.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub fn open(path: &Path) -> anyhow::Result<Regular> {
        let name = path.display();
        if path == Path::new("-") {
            bail!(
                "a recording is not read from standard input, because its end is read first: write it to a file (./- is a file of this name)"
            );
        }
        // Opening a pipe would wait for somebody to write to it.
        let opened = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
        let file = opened.with_context(|| format!("cannot open the recording {name}"))?;
        let meta = file.metadata().with_context(|| format!("cannot read the recording {name}"))?;
        if !meta.is_file() {
            bail!("{name} is not a regular file, and recordings are");
        }
        Ok(Regular { file, size: meta.len() })
    }
}

impl ReadAt for Regular {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

/// Where a record is.
struct Place {
    /// Its offset in the window, or in the unpacked bytes.
    at: usize,
    /// Its offset in the file, or that of the compressed record that it is in.
    file_at: u64,
    is_unpacked: bool,
}

/// Returns the type of the record at the beginning of these bytes, and the number of bytes that it takes.
fn extent(bytes: &[u8]) -> Result<(u32, usize), Fault> {
    let header = bytes.first_chunk().copied().map(u64::from_le_bytes).ok_or(Fault::Size { size: HEADER_BYTES, left: bytes.len() })?;
    if header as u32 != kind::COMPRESSED2 {
        return Frame::at(bytes, 0).map(|frame| (frame.kind, frame.size()));
    }
    // The size in the header wraps around in large ones, so it is computed from that of the content.
    let length = bytes.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk().copied()).map_or(u64::MAX, u64::from_le_bytes);
    let size = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(HEADER_BYTES + 8);
    let padded = size.checked_next_multiple_of(8).unwrap_or(usize::MAX);
    if padded > bytes.len() {
        return Err(Fault::Size { size: padded, left: bytes.len() });
    }
    Ok((kind::COMPRESSED2, padded))
}

#[cfg(test)]
mod tests;
