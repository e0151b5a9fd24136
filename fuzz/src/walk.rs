//! Unwinds stacks of arbitrary bytes through an image.

use rtrace::events::Frame;
use rtrace::unwinding::{AddressSpace, Architecture, Image, Registers, Sampled, Unwinder};
use std::sync::Arc;

/// The address at which images are mapped. It has 32 bits, so that it is valid in all architectures.
const BIAS: u64 = 0x4000_0000;
const STACK: u64 = 0x7fff_0000;
const STACK_WORDS: u64 = 1024;
const FRAMES_MAX: usize = 64;

/// Unwinds at the program counters from 0 to `code_bytes` in steps of `step`, and from there at the return addresses on
/// the stack.
///
/// The words of registers and of the stack are read from `bytes`. Most are converted to addresses of code or of the
/// stack, because unwinding ends at most other values.
pub fn walk(image: Image, bytes: &[u8], code_bytes: u64, step: u64) {
    let architecture = image.architecture();
    let layout = architecture.layout();
    let mut space = AddressSpace::default();
    let image = Arc::new(image);
    const PAGE: u64 = 0x1000;
    for offset in (0..code_bytes).step_by(PAGE as usize) {
        space.map_image(BIAS + offset..BIAS + offset + PAGE, image.clone(), offset);
    }
    let word = |index: u64| {
        let chunks = bytes.as_chunks::<8>().0;
        let word = u64::from_le_bytes(*chunks.get((index % (chunks.len().max(1) as u64)) as usize)?);
        Some(match index.wrapping_add(word) % 4 {
            0 => word,
            1 => STACK + word % STACK_WORDS * u64::from(layout.word_bytes),
            _ => BIAS + word % code_bytes.max(1),
        })
    };
    let read = |address: u64| {
        let index = address.checked_sub(STACK)? / u64::from(layout.word_bytes);
        word(index).filter(|_| index < STACK_WORDS)
    };
    let mut unwinder = Unwinder::default();
    let mut frames: Vec<Frame> = Vec::new();
    for counter in (0..code_bytes).step_by(step as usize) {
        let registers = registers(architecture, BIAS + counter, word);
        let sampled = if (counter / step).is_multiple_of(2) { Sampled::At } else { Sampled::After };
        frames.clear();
        unwinder.unwind(&registers, sampled, &space, read, FRAMES_MAX, &mut frames);
        assert!((1..=FRAMES_MAX).contains(&frames.len()), "there is a frame for the sample, and there are at most FRAMES_MAX");
    }
}

fn registers(architecture: Architecture, counter: u64, word: impl Fn(u64) -> Option<u64>) -> Registers {
    let layout = architecture.layout();
    let mut registers = Registers::new(architecture);
    for number in 0..32 {
        if let Some(value) = word(u64::from(number)) {
            registers.set(number, value);
        }
    }
    registers.set(layout.program_counter, counter);
    registers.set(layout.stack_pointer, STACK);
    registers.set(layout.frame_pointer, STACK + 16 * u64::from(layout.word_bytes));
    registers
}
