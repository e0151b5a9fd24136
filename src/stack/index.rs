//! An index by address of the functions that a CFI section has entries (FDEs) for.

/// The size of a page of the index, as a power of two. Functions are some hundred bytes long.
const PAGE_BITS: u32 = 12;

/// The start addresses of functions, and the offsets of their entries.
///
/// A function's place is its position in the order of addresses. A relative address is an svma less the image's lowest
/// one.
pub struct Index {
    entries: Entries,
    /// By page of relative addresses: the number of functions that begin before that page. It narrows the binary search
    /// to one page, which avoids most of its cache misses.
    pages: Vec<u32>,
}

/// The functions and their entries, sorted by address.
enum Entries {
    /// The linker's sorted table: pairs of a function's start and its entry's address, four bytes each, relative to the
    /// table's own address.
    Sorted { bytes: Vec<u8>, to_base: i64, to_section: i64 },
    /// Pairs of a function's start and its entry's offset in the section.
    Walked(Vec<(u32, u32)>),
}

impl Index {
    /// Creates an index from the table of an `.eh_frame_hdr` at `svma`, for an `.eh_frame` at `section_svma`. Relative
    /// addresses begin at `base_svma`.
    pub fn sorted(bytes: Vec<u8>, svma: u64, section_svma: u64, base_svma: u64) -> Self {
        let from = |other: u64| svma.wrapping_sub(other).cast_signed();
        Self::new(Entries::Sorted { bytes, to_base: from(base_svma), to_section: from(section_svma) })
    }

    /// Creates an index from pairs of a function's start and its entry's offset, in any order.
    pub fn walked(mut functions: Vec<(u32, u32)>) -> Self {
        functions.sort_unstable();
        Self::new(Entries::Walked(functions))
    }

    fn new(entries: Entries) -> Self {
        let mut pages = Vec::new();
        for place in 0..entries.len() {
            let page = u32::try_from(entries.start(place)).unwrap_or(0) >> PAGE_BITS;
            while pages.len() <= page as usize {
                pages.push(place as u32);
            }
        }
        Self { entries, pages }
    }

    /// Returns the number of functions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the place of the last function that begins at or below a relative address.
    pub fn place(&self, relative: u32) -> Option<usize> {
        let page = (relative >> PAGE_BITS) as usize;
        let count = |page: usize| self.pages.get(page).map_or(self.len(), |count| *count as usize);
        let range = count(page)..count(page + 1);
        let below = match &self.entries {
            Entries::Sorted { bytes, to_base, .. } => {
                pairs(bytes).get(range.clone())?.partition_point(|pair| to_base.wrapping_add(start_of(pair)) <= i64::from(relative))
            }
            Entries::Walked(functions) => functions.get(range.clone())?.partition_point(|(start, _)| *start <= relative),
        };
        (range.start + below).checked_sub(1)
    }

    /// Returns the offset of a function's entry in the section.
    pub fn entry_offset(&self, place: usize) -> Option<usize> {
        match &self.entries {
            Entries::Sorted { bytes, to_section, .. } => usize::try_from(to_section.wrapping_add(entry_of(pairs(bytes).get(place)?))).ok(),
            Entries::Walked(functions) => Some(functions.get(place)?.1 as usize),
        }
    }
}

impl Entries {
    fn len(&self) -> usize {
        match self {
            Self::Sorted { bytes, .. } => pairs(bytes).len(),
            Self::Walked(functions) => functions.len(),
        }
    }

    /// Returns the relative address at which a function begins.
    fn start(&self, place: usize) -> i64 {
        match self {
            Self::Sorted { bytes, to_base, .. } => to_base.wrapping_add(start_of(&pairs(bytes)[place])),
            Self::Walked(functions) => functions[place].0.into(),
        }
    }
}

fn pairs(bytes: &[u8]) -> &[[u8; 8]] {
    bytes.as_chunks().0
}

fn start_of(pair: &[u8; 8]) -> i64 {
    i32::from_le_bytes([pair[0], pair[1], pair[2], pair[3]]).into()
}

fn entry_of(pair: &[u8; 8]) -> i64 {
    i32::from_le_bytes([pair[4], pair[5], pair[6], pair[7]]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTS: [u32; 6] = [0x10, 0xfff, 0x1000, 0x5000, 0x5001, 0x1_2345];

    fn indexes() -> [Index; 2] {
        // The table is at 0x40_8000, the section at 0x40_2000, and the image begins at 0x40_0000.
        let pair = |(place, start): (usize, u32)| [(start as i32 - 0x8000).to_le_bytes(), (place as i32 * 16 - 0x6000).to_le_bytes()];
        let sorted = STARTS.into_iter().enumerate().flat_map(pair).flatten().collect();
        let walked = STARTS.into_iter().enumerate().map(|(place, start)| (start, place as u32 * 16)).rev().collect();
        [Index::sorted(sorted, 0x40_8000, 0x40_2000, 0x40_0000), Index::walked(walked)]
    }

    #[test]
    fn an_address_belongs_to_the_last_function_that_begins_below_it() {
        for index in indexes() {
            assert_eq!(index.len(), STARTS.len());
            for relative in (0..0x1_3000).chain([u32::MAX]) {
                assert_eq!(index.place(relative), STARTS.iter().rposition(|start| *start <= relative), "{relative:#x}");
            }
            assert_eq!([0, 1, 5, 6].map(|place| index.entry_offset(place)), [Some(0), Some(16), Some(80), None]);
        }
    }

    #[test]
    fn an_unsorted_table_yields_places_within_it() {
        let bytes: Vec<u8> = (0..=255).rev().cycle().take(8 * 500).collect();
        let index = Index::sorted(bytes, 0x1000, 0, 0);
        for relative in (0..u32::MAX).step_by(1 << 20) {
            assert!(index.place(relative).is_none_or(|place| place < 500));
        }
        assert_eq!(Index::walked(Vec::new()).place(7), None);
    }
}
