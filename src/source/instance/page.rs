//! Decodes pages of a trace ring buffer, as read from `per_cpu/cpuN/trace_pipe_raw`.
//!
//! ```text
//! page     u64 time, u64 commit (bytes of data | STORED | MISSED), data, u64 records missed before it (if STORED)
//! data     {u32 kind:5 delta:27, ...}...
//!   0        u32 length of itself and the record, record
//!   1..=28   a record of kind * 4 bytes
//!   29       delta 0: end of the page; otherwise u32 length of itself and a discarded record
//!   30       u32 upper: the delta has 27 more bits
//!   31       u32 upper: an absolute time, whose upper five bits are those of the page
//! ```
//!
//! The format is defined in kernel/trace/ring_buffer.c and include/linux/ring_buffer.h. A page has its length in its
//! header. So a chunk holds pages one after the other, each cut to its used part, whatever size the buffer's pages
//! have. The bytes may come from a file: nothing here panics, and a page or record that cannot be read is a [`Fault`].

use crate::event::Time;
use crate::source::frame::Fault;

/// The size of the header before a page's data.
pub const HEADER_BYTES: usize = 16;

/// `RB_WRITE_MASK`: the bits of `commit` that are the length of the data.
const LENGTH: u64 = 0xf_ffff;
/// `RB_MISSED_EVENTS`: records were overwritten before this page.
const MISSED: u64 = 1 << 31;
/// `RB_MISSED_STORED`: the number of missed records follows the data.
const STORED: u64 = 1 << 30;
const STORED_BYTES: usize = 8;

/// `TS_SHIFT`: the bits of a delta.
const DELTA_BITS: u32 = 27;
/// `TS_MSB`: the upper bits of a time, for which an absolute time stamp has no room.
const STAMP_MSB: u64 = 0xf8 << 56;

/// `enum ring_buffer_type`.
mod kind {
    /// A record with its length in the next word, since it is longer than 28 words.
    pub const LONG: u32 = 0;
    /// `RINGBUF_TYPE_DATA_TYPE_LEN_MAX`: kinds from 1 to this are records of that many words of 4 bytes.
    pub const SHORT_MAX: u32 = 28;
    /// `RINGBUF_TYPE_PADDING`: the rest of the page is unused, or a record was discarded.
    pub const PADDING: u32 = 29;
    /// `RINGBUF_TYPE_TIME_EXTEND`: an entry without a record, for a delta that needs more than 27 bits.
    pub const TIME_EXTEND: u32 = 30;
    /// `RINGBUF_TYPE_TIME_STAMP`: an entry without a record, for an absolute time.
    pub const TIME_STAMP: u32 = 31;
}

/// A page, with the fields of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The time to which the first record's delta is added.
    pub time: Time,
    /// The records that were overwritten before this page; `None` if there were none.
    pub missed: Option<Missed>,
    data: &'a [u8],
    size: usize,
}

/// Records of this CPU were overwritten before the page's first record: their number, if the page had room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed(pub Option<u64>);

/// Returns the length of the used part of a page that was just read: zero if it is too short for a header.
pub fn used(page: &[u8]) -> usize {
    header(page).map_or(0, |(_, commit)| size(commit).min(page.len()))
}

/// Returns the bytes of the record whose header is at `offset`, from `common_type` on, or `None` if there is no record.
#[inline]
pub fn record(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let rest = bytes.get(offset..)?;
    match word(rest, 0)? & 0x1f {
        kind::LONG => rest.get(8..4 + word(rest, 4)? as usize),
        short if short <= kind::SHORT_MAX => rest.get(4..4 + 4 * short as usize),
        _ => None,
    }
}

impl<'a> Page<'a> {
    /// Decodes the page that begins at `offset`.
    ///
    /// # Errors
    /// [`Fault::Size`]: the pages that follow cannot be found either.
    pub fn at(bytes: &'a [u8], offset: usize) -> Result<Page<'a>, Fault> {
        let rest = bytes.get(offset..).unwrap_or_default();
        let (time, commit) = header(rest).ok_or(Fault::Size { size: HEADER_BYTES, left: rest.len() })?;
        let size = size(commit);
        let whole = rest.get(HEADER_BYTES..size).ok_or(Fault::Size { size, left: rest.len() })?;
        let (data, count) = whole.split_at_checked((commit & LENGTH) as usize).unwrap_or((whole, &[]));
        let count = count.first_chunk().copied().map(u64::from_le_bytes);
        Ok(Page { time: Time(time), missed: (commit & MISSED != 0).then_some(Missed(count)), data, size })
    }

    /// Returns the size in bytes, including the header.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns an iterator over the records. It ends after a record that cannot be read.
    pub fn records(&self) -> PageRecords<'a> {
        PageRecords { data: self.data, at: 0, time: self.time.0 }
    }
}

/// A record of a page, with its time and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRecord<'a> {
    /// The time of the record, computed from the page's time and all entries up to this one.
    pub time: Time,
    /// The offset of the record's header in the page, for [`record()`].
    pub offset: usize,
    /// The raw bytes, from `common_type` on, with the kernel's padding at the end.
    pub raw: &'a [u8],
}

/// An iterator over the records of a page.
#[derive(Clone, Debug)]
pub struct PageRecords<'a> {
    data: &'a [u8],
    at: usize,
    time: u64,
}

impl<'a> Iterator for PageRecords<'a> {
    /// A record, or the offset in the page and the fault of the first record that cannot be read.
    type Item = Result<PageRecord<'a>, (usize, Fault)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) = self.data.get(self.at..).filter(|rest| !rest.is_empty()) {
            let offset = HEADER_BYTES + self.at;
            let Some((taken, raw)) = self.step(rest) else {
                self.at = self.data.len();
                return None;
            };
            if taken > rest.len() {
                self.at = self.data.len();
                return Some(Err((offset, Fault::Size { size: taken, left: rest.len() })));
            }
            self.at += taken;
            if let Some(begin) = raw {
                return Some(Ok(PageRecord { time: Time(self.time), offset, raw: &rest[begin..taken] }));
            }
        }
        None
    }
}

impl PageRecords<'_> {
    /// Decodes an entry of the page: returns its length, and the offset of the record's bytes in it if it is a record.
    /// The length is greater than that of `rest` if the entry is truncated. Returns `None` at the end of the written
    /// data.
    #[inline]
    fn step(&mut self, rest: &[u8]) -> Option<(usize, Option<usize>)> {
        const TRUNCATED: (usize, Option<usize>) = (8, None);
        let Some(first) = word(rest, 0) else { return Some(TRUNCATED) };
        let (kind, delta) = (first & 0x1f, u64::from(first >> 5));
        if (1..=kind::SHORT_MAX).contains(&kind) {
            self.time = self.time.wrapping_add(delta);
            return Some((4 + 4 * kind as usize, Some(4)));
        }
        if kind == kind::PADDING && delta == 0 {
            return None;
        }
        let Some(second) = word(rest, 4) else { return Some(TRUNCATED) };
        let long = u64::from(second) << DELTA_BITS | delta;
        let size = 4 + second as usize;
        Some(match kind {
            kind::TIME_EXTEND => {
                self.time = self.time.wrapping_add(long);
                (8, None)
            }
            kind::TIME_STAMP => {
                self.time = long | self.time & STAMP_MSB;
                (8, None)
            }
            // A discarded record still has a time, from which the next delta counts.
            kind::PADDING => {
                self.time = self.time.wrapping_add(delta);
                (size, None)
            }
            _ => {
                self.time = self.time.wrapping_add(delta);
                (size.max(8), Some(8))
            }
        })
    }
}

/// Returns the time and the commit of a page's header.
fn header(bytes: &[u8]) -> Option<(u64, u64)> {
    let (time, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*time), u64::from_le_bytes(*rest.first_chunk()?)))
}

/// Returns the size in bytes of a page with this commit.
fn size(commit: u64) -> usize {
    HEADER_BYTES + (commit & LENGTH) as usize + if commit & STORED != 0 { STORED_BYTES } else { 0 }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

#[cfg(test)]
pub(crate) mod tests;
