//! Reads the fields of a record, which have 8 bytes each, one after the other.

/// PERF_FORMAT_GROUP: a sample has the counters of all events of its group.
const FORMAT_GROUP: u64 = 1 << 3;

/// A reader of consecutive fields.
pub struct Fields<'a> {
    /// The bytes that were not read yet.
    pub rest: &'a [u8],
    /// The sample layout.
    pub layout: u64,
}

impl<'a> Fields<'a> {
    /// Reads some bytes.
    pub fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(taken)
    }

    /// Reads 8 bytes.
    pub fn word(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    /// Reads a field of 8 bytes, if the layout has it. Returns `None` where the bytes end.
    pub fn sample_field(&mut self, bit: u64) -> Option<Option<u64>> {
        if self.layout & bit == 0 { Some(None) } else { self.word().map(Some) }
    }

    /// Reads a field of a trailer, whose size was checked; 0 if the layout does not have it.
    pub fn optional(&mut self, bit: u64) -> u64 {
        self.sample_field(bit).flatten().unwrap_or(0)
    }

    /// Skips what PERF_SAMPLE_READ writes: the counter of the event, or those of its group, with times, identifiers and
    /// lost records as `read_format` says.
    pub fn skip_counter(&mut self, read_format: u64) -> Option<()> {
        let times = (read_format & 0b11).count_ones() as usize;
        let of_each = 1 + (read_format & 0b1_0100).count_ones() as usize;
        let words = match read_format & FORMAT_GROUP {
            0 => times + of_each,
            _ => usize::try_from(self.word()?).ok()?.checked_mul(of_each)?.checked_add(times)?,
        };
        self.take(words.checked_mul(8)?).map(|_| ())
    }
}
