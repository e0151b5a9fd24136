//! An ELF file that is read for unwinding, and through which stacks are unwound.

use super::walk::walk;
use rtrace::unwinding::Image;

pub fn run(file: &[u8]) {
    if let Ok(image) = Image::read(Box::new(file.to_vec())) {
        walk(image, file, (file.len() as u64).next_multiple_of(0x1000).min(0x8000), 128);
    }
}
