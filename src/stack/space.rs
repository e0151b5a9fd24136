//! The code of one process: what is mapped where.
//!
//! Only executable mappings belong here. What is written in place of older mappings takes their place, as in the kernel; there are no records of munmap(2).

use std::ops::Range;
use std::sync::Arc;

use crate::stack::frame::Frame;
use crate::stack::image::Image;

/// A fork's child begins with a clone of its parent's, an executed program with an empty one.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted by address, disjoint.
    mappings: Vec<Mapping>,
}

#[derive(Clone, Debug)]
pub struct Mapping {
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// None: code that was made by the program itself, or a file that is no image.
    pub image: Option<Arc<Image>>,
    /// avma of the image's relative address 0.
    origin: u64,
}

impl Mapping {
    /// The address as the image's tables have it: from its lowest one on.
    #[inline]
    pub(super) fn relative(&self, avma: u64) -> Option<u32> {
        u32::try_from(avma.wrapping_sub(self.origin)).ok()
    }

    fn svma(&self, avma: u64) -> u64 {
        match &self.image {
            Some(image) => avma.wrapping_sub(self.origin).wrapping_add(image.base_svma()),
            None => avma,
        }
    }
}

impl AddressSpace {
    /// Maps an image, whose file is mapped from `file_offset` on. One that has nothing loadable there is code without an image.
    pub fn map_image(&mut self, range: Range<u64>, image: Arc<Image>, file_offset: u64) {
        let svma = image.svma_of_offset(file_offset);
        match svma {
            Some(svma) => {
                let origin = range.start.wrapping_sub(svma.wrapping_sub(image.base_svma()));
                self.put(Mapping { start: range.start, end: range.end, image: Some(image), origin });
            }
            None => self.map_code(range),
        }
    }

    /// Maps code that is no image's: a JIT compiler's, mostly.
    pub fn map_code(&mut self, range: Range<u64>) {
        self.put(Mapping { start: range.start, end: range.end, image: None, origin: range.start });
    }

    pub fn unmap(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.mappings.partition_point(|mapping| mapping.end <= range.start);
        let last = self.mappings.partition_point(|mapping| mapping.start < range.end);
        let below = self.mappings[first..last].first().filter(|mapping| mapping.start < range.start);
        let below = below.map(|mapping| Mapping { end: range.start, ..mapping.clone() });
        let above = self.mappings[first..last].last().filter(|mapping| mapping.end > range.end);
        let above = above.map(|mapping| Mapping { start: range.end, ..mapping.clone() });
        self.mappings.splice(first..last, below.into_iter().chain(above));
    }

    /// Sorted by address.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// A frame that was found without unwinding, by the kernel along frame pointers. `is_after` as in [`Frame`].
    #[must_use]
    pub fn frame(&self, avma: u64, is_after: bool) -> Frame {
        self.frame_in(self.find(avma.wrapping_sub(u64::from(is_after)), &mut 0), avma, is_after)
    }

    #[inline]
    pub(super) fn frame_in(&self, mapping: Option<usize>, avma: u64, is_after: bool) -> Frame {
        match mapping.map(|index| &self.mappings[index]) {
            Some(mapping @ Mapping { image: Some(image), .. }) => {
                Frame { avma, svma: mapping.svma(avma), image: Some(image.id()), is_after }
            }
            _ => Frame { avma, svma: avma, image: None, is_after },
        }
    }

    /// The index of the mapping that holds an address. `hint` is looked at first, and becomes it.
    #[inline]
    pub(super) fn find(&self, avma: u64, hint: &mut usize) -> Option<usize> {
        let holds = |index: usize| self.mappings.get(index).is_some_and(|mapping| mapping.start <= avma && avma < mapping.end);
        if !holds(*hint) {
            let index = self.mappings.partition_point(|mapping| mapping.end <= avma);
            if !holds(index) {
                return None;
            }
            *hint = index;
        }
        Some(*hint)
    }

    fn put(&mut self, mapping: Mapping) {
        if mapping.start >= mapping.end {
            return;
        }
        self.unmap(mapping.start..mapping.end);
        let index = self.mappings.partition_point(|other| other.end <= mapping.start);
        self.mappings.insert(index, mapping);
    }
}
