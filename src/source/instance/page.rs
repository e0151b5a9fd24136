//! Pages of a trace ring buffer, as `per_cpu/cpuN/trace_pipe_raw` gives them.
//!
//! ```text
//! page     u64 time, u64 commit (bytes of data | STORED | MISSED), data, u64 records missed before the page (if STORED)
//! data     {u32 kind:5 delta:27, ...}...
//!   0        u32 length of itself and the record, record
//!   1..=28   a record of kind * 4 bytes
//!   29       delta 0: nothing more; otherwise u32 length of itself and what was thrown away
//!   30       u32 upper: the delta has 27 more bits
//!   31       u32 upper: the time itself, of which only the upper five bits are the page's
//! ```
//!
//! (kernel/trace/ring_buffer.c and include/linux/ring_buffer.h.) Pages say how long they are, so that chunks hold them cut to that, one behind the other,
//! whatever size the buffer's pages have. Bytes may come from a file: nothing here panics, and what cannot be read is a [`Fault`].

use crate::event::Time;
use crate::source::frame::Fault;

/// Before a page's data.
pub const HEADER_BYTES: usize = 16;

/// `RB_WRITE_MASK`: the bits of `commit` that are a length.
const LENGTH: u64 = 0xf_ffff;
/// `RB_MISSED_EVENTS`: records were overwritten before this page.
const MISSED: u64 = 1 << 31;
/// `RB_MISSED_STORED`: their number stands behind the data.
const STORED: u64 = 1 << 30;
const STORED_BYTES: usize = 8;

/// `TS_SHIFT`: the bits of a delta.
const DELTA_BITS: u32 = 27;
/// `TS_MSB`: the bits of a time that have no room in a stamp of its own.
const STAMP_MSB: u64 = 0xf8 << 56;

/// `enum ring_buffer_type`.
mod kind {
    pub const LONG: u32 = 0;
    pub const SHORT_MAX: u32 = 28;
    pub const PADDING: u32 = 29;
    pub const TIME_EXTEND: u32 = 30;
    pub const TIME_STAMP: u32 = 31;
}

/// A page's extent and what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// What the first record's delta is added to.
    pub time: Time,
    pub missed: Option<Missed>,
    data: &'a [u8],
    size: usize,
}

/// Records of this CPU were overwritten before the page's first one; how many, if the page had room to say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed(pub Option<u64>);

/// How many bytes of a page that was just read are worth keeping: none if it is too short for its header.
pub fn used(page: &[u8]) -> usize {
    header(page).map_or(0, |(_, commit)| size(commit).min(page.len()))
}

/// The bytes of the record whose header stands at `offset`, from `common_type` on; `None` where there is none.
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
    /// The page that begins at `offset`.
    ///
    /// # Errors
    /// [`Fault::Size`]: what follows cannot be found either.
    pub fn at(bytes: &'a [u8], offset: usize) -> Result<Page<'a>, Fault> {
        let rest = bytes.get(offset..).unwrap_or_default();
        let (time, commit) = header(rest).ok_or(Fault::Size { size: HEADER_BYTES, left: rest.len() })?;
        let size = size(commit);
        let whole = rest.get(HEADER_BYTES..size).ok_or(Fault::Size { size, left: rest.len() })?;
        let (data, count) = whole.split_at_checked((commit & LENGTH) as usize).unwrap_or((whole, &[]));
        let count = count.first_chunk().copied().map(u64::from_le_bytes);
        Ok(Page { time: Time(time), missed: (commit & MISSED != 0).then_some(Missed(count)), data, size })
    }

    /// Bytes, header included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its records. After one that cannot be read there are no more.
    pub fn entries(&self) -> Entries<'a> {
        Entries { data: self.data, at: 0, time: self.time.0 }
    }
}

/// A record's place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub time: Time,
    /// Where its header stands, from the page's beginning: what [`record()`] takes.
    pub offset: usize,
    /// From `common_type` on, with the kernel's padding at the end.
    pub raw: &'a [u8],
}

/// The records of a page.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    data: &'a [u8],
    at: usize,
    time: u64,
}

impl<'a> Iterator for Entries<'a> {
    /// A record, or where the first one stands that cannot be read, from the page's beginning.
    type Item = Result<Entry<'a>, (usize, Fault)>;

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
                return Some(Ok(Entry { time: Time(self.time), offset, raw: &rest[begin..taken] }));
            }
        }
        None
    }
}

impl Entries<'_> {
    /// How long what stands here is (more than is left, if it is cut off), and where its record begins if it is one; `None` at the end of what was written.
    #[inline]
    fn step(&mut self, rest: &[u8]) -> Option<(usize, Option<usize>)> {
        const CUT: (usize, Option<usize>) = (8, None);
        let Some(first) = word(rest, 0) else { return Some(CUT) };
        let (kind, delta) = (first & 0x1f, u64::from(first >> 5));
        if (1..=kind::SHORT_MAX).contains(&kind) {
            self.time = self.time.wrapping_add(delta);
            return Some((4 + 4 * kind as usize, Some(4)));
        }
        if kind == kind::PADDING && delta == 0 {
            return None;
        }
        let Some(second) = word(rest, 4) else { return Some(CUT) };
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
            // What was thrown away has its time all the same: the next delta counts from it.
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

/// Time and commit.
fn header(bytes: &[u8]) -> Option<(u64, u64)> {
    let (time, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*time), u64::from_le_bytes(*rest.first_chunk()?)))
}

/// Bytes of a page with this commit.
fn size(commit: u64) -> usize {
    HEADER_BYTES + (commit & LENGTH) as usize + if commit & STORED != 0 { STORED_BYTES } else { 0 }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

#[cfg(test)]
pub(crate) mod tests;
