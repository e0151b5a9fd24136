//! Unwinds the same stacks with framehop, another unwinder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use goblin::elf::Elf;
use goblin::elf::program_header::{PF_X, PT_LOAD};

use crate::recording::{Sample, Space, vdso};

type Bytes = Rc<[u8]>;

#[derive(Default)]
pub struct Oracle {
    files: HashMap<PathBuf, Option<File>>,
    /// The keys are the addresses of the spaces.
    unwinders: HashMap<*const Space, UnwinderX86_64<Bytes>>,
    cache: CacheX86_64,
}

/// A file's sections, and its executable segments: offset, bytes, svma.
struct File {
    sections: ExplicitModuleSectionInfo<Bytes>,
    segments: Vec<(u64, u64, u64)>,
}

impl Oracle {
    /// Appends the addresses of a sample's frames. Returns the error that ended the unwinding, if there was one.
    pub fn unwind(&mut self, sample: &Sample, frames_max: usize, frames: &mut Vec<u64>) -> Option<framehop::Error> {
        let space = Rc::as_ptr(&sample.space);
        let unwinder = self.unwinders.entry(space).or_insert_with(|| unwinder(&sample.space, &mut self.files));
        let registers = &sample.registers;
        let get = |number| registers.get(number).unwrap_or_default();
        let start = UnwindRegsX86_64::new(get(16), get(7), get(6));
        let mut read = |address| sample.word(address).ok_or(());
        let mut iterator = unwinder.iter_frames(get(16), start, &mut self.cache, &mut read);
        for _ in 0..frames_max {
            match iterator.next() {
                Ok(Some(frame)) => frames.push(frame.address()),
                Ok(None) => return None,
                Err(error) => return Some(error),
            }
        }
        None
    }
}

fn unwinder(space: &Space, files: &mut HashMap<PathBuf, Option<File>>) -> UnwinderX86_64<Bytes> {
    let mut unwinder = UnwinderX86_64::new();
    for (start, end, offset, path) in &space.mapped {
        let file = files.entry(path.clone()).or_insert_with(|| open(path));
        let Some(file) = file else { continue };
        let Some(&(segment_offset, _, svma)) = file
            .segments
            .iter()
            .find(|segment| (segment.0 & !0xfff) == *offset || (segment.0 <= *offset && *offset - segment.0 < segment.1))
        else {
            continue;
        };
        let bias = start.wrapping_sub(svma.wrapping_sub(segment_offset).wrapping_add(*offset));
        unwinder.add_module(Module::new(path.display().to_string(), *start..*end, bias, file.sections.clone()));
    }
    unwinder
}

fn open(path: &Path) -> Option<File> {
    let bytes = if path == Path::new("[vdso]") { vdso().ok()? } else { std::fs::read(path).ok()? };
    let elf = Elf::parse(&bytes).ok()?;
    let section = |name: &str| {
        let found = elf.section_headers.iter().find(|section| elf.shdr_strtab.get_at(section.sh_name) == Some(name))?;
        Some((found.sh_addr..found.sh_addr + found.sh_size, Bytes::from(bytes.get(found.file_range()?)?)))
    };
    let mut sections = ExplicitModuleSectionInfo::default();
    (sections.text_svma, sections.text) = section(".text").unzip();
    (sections.eh_frame_svma, sections.eh_frame) = section(".eh_frame").unzip();
    (sections.eh_frame_hdr_svma, sections.eh_frame_hdr) = section(".eh_frame_hdr").unzip();
    sections.debug_frame = section(".debug_frame").map(|(_, bytes)| bytes);
    let executable = elf.program_headers.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0);
    let segments = executable.map(|segment| (segment.p_offset, segment.p_filesz, segment.p_vaddr)).collect();
    Some(File { sections, segments })
}
