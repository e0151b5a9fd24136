//! The executable mappings of one process.
//!
//! A new mapping replaces the parts of older ones that it overlaps, as in the kernel. perf has no records of munmap(2).

use std::ops::Range;
use std::sync::Arc;

use crate::event::frame::Frame;
use crate::event::frame::ImageId;
use crate::stack::image::Image;

/// The executable mappings of one process. A forked child begins with a clone of its parent's, an executed program with
/// an empty one.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted by address, disjoint.
    mappings: Vec<Mapping>,
    /// The page that the kernel maps for uprobes.
    probes: Option<Range<u64>>,
}

/// One executable mapping.
#[derive(Clone, Debug)]
pub struct Mapping {
    start: u64,
    end: u64,
    /// avma of the image's relative address 0.
    origin: u64,
    /// svma of the image's relative address 0.
    base_svma: u64,
    /// [`ImageId::key`] of the image, or 0.
    key: u64,
    image: Option<Arc<Image>>,
}

impl Mapping {
    fn of_image(range: Range<u64>, svma: u64, image: Arc<Image>) -> Self {
        let (base_svma, key) = (image.base_svma(), image.id().key());
        Self {
            start: range.start,
            end: range.end,
            origin: range.start.wrapping_sub(svma.wrapping_sub(base_svma)),
            base_svma,
            key,
            image: Some(image),
        }
    }

    const fn of_code(range: Range<u64>) -> Self {
        Self { start: range.start, end: range.end, origin: 0, base_svma: 0, key: 0, image: None }
    }

    /// Returns the image that is mapped. It is `None` for code that the program generated, and for a file that is not a
    /// usable ELF file.
    #[must_use]
    pub fn image(&self) -> Option<&Image> {
        self.image.as_deref()
    }

    /// Returns [`ImageId::key`] of the image, or 0.
    #[inline]
    pub(super) const fn key(&self) -> u64 {
        self.key
    }

    /// Returns an address relative to the image's lowest one, as the image's tables have it.
    #[inline]
    pub(super) fn relative(&self, avma: u64) -> Option<u32> {
        u32::try_from(avma.wrapping_sub(self.origin)).ok()
    }

    #[inline]
    pub(super) fn frame(&self, avma: u64, is_after: bool) -> Frame {
        Frame { avma, svma: avma.wrapping_sub(self.origin).wrapping_add(self.base_svma), image: ImageId::of_key(self.key), is_after }
    }
}

impl AddressSpace {
    /// Maps an image, whose file is mapped from `file_offset` on. If the file has no loaded segment there, the mapping
    /// is code without an image.
    pub fn map_image(&mut self, range: Range<u64>, image: Arc<Image>, file_offset: u64) {
        let svma = image.svma_of_offset(file_offset);
        self.put(match svma {
            Some(svma) => Mapping::of_image(range, svma, image),
            None => Mapping::of_code(range),
        });
    }

    /// Maps code that belongs to no image, which is mostly a JIT compiler's.
    pub fn map_code(&mut self, range: Range<u64>) {
        self.put(Mapping::of_code(range));
    }

    /// Maps the page that the kernel creates for uprobes. It begins with the code that functions with a return probe
    /// return to, followed by copies of the instructions that breakpoints replaced.
    pub fn map_probes(&mut self, range: Range<u64>) {
        self.map_code(range.clone());
        self.probes = Some(range);
    }

    /// Whether a return address is that of the kernel's return probes, so that the real one is unknown.
    #[inline]
    pub(super) fn is_return_probe(&self, avma: u64) -> bool {
        self.probes.as_ref().is_some_and(|page| page.start == avma)
    }

    /// Whether an address is that of an instruction's copy in the page for uprobes, which does not tell the function of
    /// the instruction.
    pub(super) fn is_copied_instruction(&self, avma: u64) -> bool {
        self.probes.as_ref().is_some_and(|page| page.contains(&avma))
    }

    /// Removes the mappings, or the parts of mappings, in this range of addresses.
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

    /// Returns the mappings, sorted by address.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns the frame for an address that was found without unwinding, in a call chain by the kernel. `is_after` is
    /// as in [`Frame`].
    #[must_use]
    pub fn frame(&self, avma: u64, is_after: bool) -> Frame {
        match self.find(avma.wrapping_sub(u64::from(is_after)), &mut 0) {
            Some(index) => self.mappings[index].frame(avma, is_after),
            None => Frame { avma, svma: avma, image: None, is_after },
        }
    }

    /// Whether code is mapped at an address.
    #[must_use]
    pub fn has_code(&self, avma: u64) -> bool {
        self.find(avma, &mut 0).is_some()
    }

    /// Returns the index of the mapping that holds an address. It tries the index `hint` first, and stores the result
    /// there.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::registers::Architecture;
    use crate::stack::test_elf::{CODE, CODE_BYTES, Form, elf};

    fn ranges(space: &AddressSpace) -> Vec<(u64, u64)> {
        space.mappings().iter().map(|mapping| (mapping.start, mapping.end)).collect()
    }

    #[test]
    fn a_mapping_replaces_the_parts_of_others_that_it_overlaps() {
        let mut space = AddressSpace::default();
        space.map_code(0x1000..0x5000);
        space.map_code(0x2000..0x3000);
        assert_eq!(ranges(&space), [(0x1000, 0x2000), (0x2000, 0x3000), (0x3000, 0x5000)]);
        space.map_code(0x1800..0x4000);
        assert_eq!(ranges(&space), [(0x1000, 0x1800), (0x1800, 0x4000), (0x4000, 0x5000)]);
        space.unmap(0..0x1800);
        space.unmap(0x4800..0x9000);
        assert_eq!(ranges(&space), [(0x1800, 0x4000), (0x4000, 0x4800)]);
        space.map_code(0x7000..0x7000);
        space.map_code(0x500..0x600);
        assert_eq!(ranges(&space), [(0x500, 0x600), (0x1800, 0x4000), (0x4000, 0x4800)]);
        assert_eq!(
            [0x4ff, 0x500, 0x5ff, 0x600, 0x47ff, 0x4800].map(|avma| space.find(avma, &mut 0)),
            [None, Some(0), Some(0), None, Some(2), None]
        );
    }

    #[test]
    fn every_part_of_a_split_mapping_keeps_its_image() {
        let image = Arc::new(Image::read(Box::new(elf(Architecture::X86_64, Form::Sorted, &[]))).unwrap());
        let mut space = AddressSpace::default();
        // Only the second half of the code is mapped, and one page of that is unmapped.
        let offset = CODE + CODE_BYTES / 2;
        space.map_image(0x7000_0000..0x7000_8000, image.clone(), offset);
        space.unmap(0x7000_1000..0x7000_2000);
        for inside in [0, 0xfff, 0x2000, 0x7fff] {
            let frame = space.frame(0x7000_0000 + inside, false);
            assert_eq!((frame.svma, frame.image), (offset + inside, Some(image.id())));
        }
        assert_eq!(space.frame(0x7000_1000, false), Frame { avma: 0x7000_1000, svma: 0x7000_1000, image: None, is_after: false });
        // An address behind the last instruction still belongs to that mapping.
        assert_eq!(space.frame(0x7000_1000, true).image, Some(image.id()));
    }

    #[test]
    fn a_mapping_outside_of_all_segments_has_no_image() {
        let image = Arc::new(Image::read(Box::new(elf(Architecture::X86_64, Form::Sorted, &[]))).unwrap());
        let mut space = AddressSpace::default();
        space.map_image(0x1000..0x2000, image, 0x100_0000);
        assert_eq!((ranges(&space), space.mappings()[0].image().is_none()), (vec![(0x1000, 0x2000)], true));
    }
}
