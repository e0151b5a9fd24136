//! Random stacks, registers and damaged files.

use proptest::prelude::*;

use super::signals::trampoline;
use super::*;

proptest! {
    /// Unwinding ends for any contents of the stack and the registers, with no more frames than requested.
    #[test]
    fn unwinding_of_any_stack_ends(words in proptest::collection::vec(prop_oneof![Just(0), 0..40_u64, any::<u64>(), (0..CODE_BYTES).prop_map(|offset| BIAS + CODE + offset), (0..64_u64).prop_map(|word| STACK + word * 8)], 0..64),
                      values in proptest::collection::vec(prop_oneof![any::<u64>(), (0..64_u64).prop_map(|word| STACK + word * 8)], 17), svma in CODE..CODE + CODE_BYTES, after: bool) {
        let mut cfa = Expression::new();
        cfa.op_breg(RBP, -8);
        cfa.op_deref();
        let functions = [
            sp_based(LEAF, 24),
            function(LEAF + 0x200, [CfaExpression(cfa), Offset(RIP, -8)]),
            function(CALLER, [Cfa(RBP, 16), Offset(RIP, -8), Offset(RBP, -16)]),
            function(CALLER + 0x200, [Cfa(RBX, 16), Offset(RIP, -8), Offset(RBX, -16)]),
            trampoline(START),
        ];
        let space = space(Architecture::X86_64, Form::Sorted, &functions);
        let others: Vec<_> = values.iter().enumerate().map(|(number, value)| (number as u8, *value)).filter(|(number, _)| ![7, 16].contains(number)).collect();
        let sampled = if after { Sampled::After } else { Sampled::At };
        let (frames, _) = run(&space, &registers(Architecture::X86_64, svma, &others), sampled, &words);
        prop_assert!((1..=20).contains(&frames.len()));
    }

    /// A file whose bytes were changed is refused, or unwound without a panic.
    #[test]
    fn damaged_files_cause_no_panic(changes in proptest::collection::vec((prop_oneof![0..0x100_usize, 0x400..0x640_usize, 0x1000..0x1100_usize, 0x8000..0x8040_usize], any::<u8>()), 1..12), form in prop_oneof![Just(Form::Sorted), Just(Form::EhFrame), Just(Form::DebugFrame)], cut in prop_oneof![Just(usize::MAX), 0..0x9000_usize]) {
        let mut cfa = Expression::new();
        cfa.op_breg(RBP, -8);
        cfa.op_deref();
        let functions = [sp_based(LEAF, 24), function(CALLER, [CfaExpression(cfa), Offset(RIP, -8), Offset(RBP, -16)]), trampoline(START)];
        let mut bytes = elf(Architecture::X86_64, form, &functions);
        for (offset, value) in changes {
            bytes[offset] = value;
        }
        bytes.truncate(cut);
        if let Ok(image) = Image::read(Box::new(bytes.clone())) {
            let mut space = AddressSpace::default();
            space.map_image(BIAS + CODE..BIAS + CODE + CODE_BYTES, Arc::new(image), CODE);
            for svma in [LEAF, LEAF + 9, CALLER, CALLER + 9, START, START + 9] {
                let words: Vec<u64> = (0..32).map(|word| if word % 2 == 0 { STACK + word * 8 } else { BIAS + LEAF + 1 }).collect();
                run(&space, &registers(Architecture::X86_64, svma, &[(6, STACK + 64), (3, STACK)]), Sampled::At, &words);
            }
        }
    }

    #[test]
    fn random_bytes_as_a_file_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = bytes;
        let _ = Image::read(Box::new(bytes.clone()));
        if bytes.len() > 20 {
            bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
            bytes[18..20].copy_from_slice(&62_u16.to_le_bytes());
            let _ = Image::read(Box::new(bytes.clone()));
        }
    }
}
