//! An unwind section in a well-formed file.
//!
//! The first byte chooses the machine (bits 0-1) and the section (bits 2-3). The next 64 bytes are for registers and
//! the stack. If there is a sorted table, its length follows in two bytes.

use super::walk::walk;
use rtrace::unwinding::Image;

/// The stated address (svma) and file offset of the section. All addresses around it are code.
const SECTION: u64 = 0x2000;
const CODE_BYTES: u64 = 0x4000;
const SORTED: u64 = 0x1000;

pub fn run(bytes: &[u8]) {
    let Some(([kind], rest)) = bytes.split_first_chunk() else { return };
    let Some((words, section)) = rest.split_first_chunk::<64>() else { return };
    let file = match kind >> 2 & 3 {
        0 | 1 => file(kind & 3, ".eh_frame", section),
        2 => file(kind & 3, ".debug_frame", section),
        _ => {
            let Some((length, rest)) = section.split_first_chunk() else { return };
            let Some((sorted, tables)) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length))) else { return };
            file_with_sorted_table(kind & 3, sorted, tables)
        }
    };
    let image = Image::read(Box::new(file)).expect("the file is well-formed");
    walk(image, words, CODE_BYTES, 64);
}

fn file(machine: u8, name: &str, contents: &[u8]) -> Vec<u8> {
    let mut file = File::new(machine);
    file.header(1, 3);
    file.segment(1, 0, CODE_BYTES);
    let sections = file.bytes.len();
    let names = format!("\0{name}\0");
    file.section(0, 0, 0, 0);
    file.section(1, 1, SECTION, contents.len() as u64);
    file.section(0, 3, 0x400, names.len() as u64);
    file.sections_are_at(sections);
    file.put(0x400, names.as_bytes());
    file.put(SECTION, contents);
    file.bytes
}

fn file_with_sorted_table(machine: u8, sorted: &[u8], tables: &[u8]) -> Vec<u8> {
    const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
    let sorted = &sorted[..sorted.len().min((SECTION - SORTED) as usize)];
    let mut file = File::new(machine);
    file.header(2, 0);
    file.segment(1, 0, CODE_BYTES);
    file.segment(PT_GNU_EH_FRAME, SORTED, sorted.len() as u64);
    file.put(SORTED, sorted);
    file.put(SECTION, tables);
    file.bytes
}

struct File {
    bytes: Vec<u8>,
    machine: u16,
    wide: bool,
}

impl File {
    fn new(machine: u8) -> File {
        let (machine, wide) = match machine {
            0 | 1 => (62, true),
            2 => (3, false),
            _ => (183, true),
        };
        File { bytes: Vec::new(), machine, wide }
    }

    fn header(&mut self, segments: u16, sections: u16) {
        self.bytes.extend([0x7f, b'E', b'L', b'F', 1 + u8::from(self.wide), 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0]);
        self.bytes.extend(self.machine.to_le_bytes());
        self.bytes.extend(1_u32.to_le_bytes());
        let (header, segment, section) = if self.wide { (64, 56, 64) } else { (52, 32, 40) };
        self.words(&[0, u64::from(header), 0]);
        self.bytes.extend([0; 4]);
        let last = sections.saturating_sub(1);
        self.bytes.extend([header, segment, segments, section, sections, last].into_iter().flat_map(u16::to_le_bytes));
    }

    /// Adds a readable and executable segment whose svma and offset are equal.
    fn segment(&mut self, kind: u32, at: u64, size: u64) {
        let flags = 5_u32.to_le_bytes();
        self.bytes.extend(kind.to_le_bytes());
        if self.wide {
            self.bytes.extend(flags);
        }
        self.words(&[at, at, at, size, size]);
        if !self.wide {
            self.bytes.extend(flags);
        }
        self.words(&[0x1000]);
    }

    fn section(&mut self, name: u32, kind: u32, at: u64, size: u64) {
        self.bytes.extend([name, kind].into_iter().flat_map(u32::to_le_bytes));
        self.words(&[2, at, at, size]);
        self.bytes.extend([0; 8]);
        self.words(&[1, 0]);
    }

    fn sections_are_at(&mut self, offset: usize) {
        let field = if self.wide { 40 } else { 32 };
        self.bytes[field..field + 4].copy_from_slice(&(offset as u32).to_le_bytes());
    }

    fn words(&mut self, words: &[u64]) {
        for word in words {
            self.bytes.extend(&word.to_le_bytes()[..if self.wide { 8 } else { 4 }]);
        }
    }

    fn put(&mut self, at: u64, contents: &[u8]) {
        self.bytes.resize(at as usize, 0);
        self.bytes.extend(contents);
    }
}
