//! The registers and the stack memory in samples of `perf record --call-graph dwarf`.
//!
//! perf requests all registers. Those that unwinding does not use are left out, so that the rest has the layout of
//! rtrace's own samples ([`crate::source::dump`]).

use super::attrs::PerfEvent;
use super::fields::Fields;
use crate::source::frame::field;

/// PERF_SAMPLE_BRANCH_STACK: the last branches that the CPU took, in front of the registers. The kernel refuses it for
/// tracepoints and software events (`perf_tp_event_init()` and `perf_swevent_init()`), so no sample has it that rtrace
/// shows.
const BRANCH_STACK: u64 = 1 << 11;

/// Returns the fields of dumps that samples of an event have after they were rewritten. `registers` are those that
/// unwinding uses: without one of them, a dump cannot be unwound.
pub fn layout(event: &PerfEvent, registers: u64) -> u64 {
    let is_usable = event.sample_type & (field::REGS_USER | BRANCH_STACK) == field::REGS_USER && event.registers & registers == registers;
    if is_usable { event.sample_type & (field::REGS_USER | field::STACK_USER) } else { 0 }
}

/// Returns whether samples of an event have stack memory that cannot be unwound. Registers alone are no stack: on
/// aarch64, `perf record --call-graph fp` records the link register, too.
pub fn is_unusable(event: &PerfEvent, registers: u64) -> bool {
    event.sample_type & field::STACK_USER != layout(event, registers) & field::STACK_USER
}

/// Appends the dump at the end of a sample. Returns `None` where the bytes end.
pub fn copy(fields: &mut Fields, event: &PerfEvent, registers: u64, out: &mut Vec<u8>) -> Option<()> {
    if layout(event, registers) == 0 {
        return Some(());
    }
    let abi = fields.word()?;
    out.extend(abi.to_le_bytes());
    // A kernel thread has neither registers nor a stack.
    if abi != 0 {
        for register in (0..64).filter(|register| event.registers >> register & 1 == 1) {
            let value = fields.word()?;
            if registers >> register & 1 == 1 {
                out.extend(value.to_le_bytes());
            }
        }
    }
    if event.sample_type & field::STACK_USER != 0 {
        let size = fields.word()?;
        out.extend(size.to_le_bytes());
        out.extend(fields.take(usize::try_from(size).ok()?)?);
        if size != 0 {
            out.extend(fields.word()?.to_le_bytes());
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::dump::{Dump, RegisterAbi};
    use proptest::prelude::*;

    const BOTH: u64 = field::REGS_USER | field::STACK_USER;

    fn event(sample_type: u64, registers: u64) -> PerfEvent {
        PerfEvent { sample_type, registers, ..PerfEvent::default() }
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn registers_that_unwinding_does_not_use_are_left_out() {
        // The ABI, three registers, the size, two words of stack, of which one is used.
        let sample = bytes(&[2, 10, 11, 13, 16, 0xa, 0xb, 8]);
        let (event, used) = (event(BOTH, 0b1011), 0b1001);
        let (mut fields, mut out) = (Fields { rest: &sample, layout: BOTH }, Vec::new());
        copy(&mut fields, &event, used, &mut out).unwrap();
        let dump = Dump::parse(&out, layout(&event, used), used).unwrap();
        assert_eq!((dump.abi, dump.registers, dump.stack), (RegisterAbi::Bits64, &bytes(&[10, 13])[..], &bytes(&[0xa])[..]));
        assert!(fields.rest.is_empty());
        for end in 0..sample.len() {
            assert_eq!(copy(&mut Fields { rest: &sample[..end], layout: BOTH }, &event, used, &mut Vec::new()), None, "{end}");
        }
    }

    #[test]
    fn samples_without_the_needed_registers_have_no_stack() {
        assert_eq!((layout(&event(BOTH, 0b1011), 0b1111), is_unusable(&event(BOTH, 0b1011), 0b1111)), (0, true));
        assert_eq!((layout(&event(field::STACK_USER, 0b1111), 0b1111), is_unusable(&event(field::STACK_USER, 0b1111), 0b1111)), (0, true));
        assert_eq!((layout(&event(BOTH | BRANCH_STACK, 1), 1), is_unusable(&event(BOTH | BRANCH_STACK, 1), 1)), (0, true));
        assert_eq!((layout(&event(BOTH, 0b11), 1), is_unusable(&event(BOTH, 0b11), 1)), (BOTH, false));
        assert_eq!((layout(&event(0, 0), 1), is_unusable(&event(0, 0), 1)), (0, false));
        let link = event(field::REGS_USER, 0b10);
        assert_eq!((layout(&link, 0b11), is_unusable(&link, 0b11)), (0, false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_in_bounded_memory(sample: Vec<u8>, registers: u64, used: u64) {
            let mut out = Vec::new();
            _ = copy(&mut Fields { rest: &sample, layout: BOTH }, &event(BOTH, registers | used), used, &mut out);
            prop_assert!(out.len() <= sample.len() + 8);
        }
    }
}
