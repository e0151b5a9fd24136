//! Unwinding with plain rules, in ELF files that the tests write. The modules have the other ways to find a caller.

mod ends;
mod full_rows;
mod random;
mod signals;

use std::sync::Arc;

use gimli::Register;
use gimli::write::CallFrameInstruction::{Cfa, CfaExpression, CfaOffset, CfaRegister, Expression as At, Offset, Undefined, ValExpression};
use gimli::write::{CallFrameInstruction, Expression};

use super::*;
use crate::stack::image::Image;
use crate::stack::registers::Architecture;
use crate::stack::test_elf::{CODE, CODE_BYTES, Form, Function, elf, function};

/// The bias of the files' mappings.
const BIAS: u64 = 0x5555_0000_0000;
/// The stack pointer of the samples.
const STACK: u64 = 0x7fff_ffff_0000;

const RBX: Register = Register(3);
const RBP: Register = Register(6);
const RSP: Register = Register(7);
const RIP: Register = Register(16);

/// The start addresses of the files' functions.
const LEAF: u64 = CODE;
const CALLER: u64 = CODE + 0x1000;
const START: u64 = CODE + 0x2000;

fn sp_based(start: u64, cfa: i32) -> Function {
    function(start, [Cfa(RSP, cfa), Offset(RIP, -8)])
}

fn root(start: u64) -> Function {
    function(start, [Cfa(RSP, 8), Undefined(RIP)])
}

fn space(architecture: Architecture, form: Form, functions: &[Function]) -> AddressSpace {
    let image = Arc::new(Image::read(Box::new(elf(architecture, form, functions))).unwrap());
    let mut space = AddressSpace::default();
    space.map_image(BIAS + CODE..BIAS + CODE + CODE_BYTES, image, CODE);
    space
}

fn registers(architecture: Architecture, svma: u64, others: &[(u8, u64)]) -> Registers {
    let mut registers = Registers::new(architecture);
    let layout = architecture.layout();
    registers.set(layout.program_counter, BIAS + svma);
    registers.set(layout.stack_pointer, STACK);
    for (number, value) in others {
        registers.set(*number, *value);
    }
    registers
}

/// Unwinds a stack, and returns the svmas of its frames and the outcome. `words` is the memory from the stack pointer
/// on.
fn run(space: &AddressSpace, registers: &Registers, sampled: Sampled, words: &[u64]) -> (Vec<u64>, Unwound) {
    let stack_pointer = registers.stack_pointer().unwrap();
    let word = u64::from(registers.architecture().layout().word_bytes);
    let read = |address: u64| words.get((address.checked_sub(stack_pointer)? / word) as usize).copied();
    let mut frames = Vec::new();
    let unwound = Unwinder::default().unwind(registers, sampled, space, read, 20, &mut frames);
    (frames.iter().map(|frame| frame.avma.wrapping_sub(BIAS)).collect(), unwound)
}

fn run_x86_64(functions: &[Function], svma: u64, others: &[(u8, u64)], words: &[u64]) -> (Vec<u64>, Unwound) {
    let space = space(Architecture::X86_64, Form::Sorted, functions);
    run(&space, &registers(Architecture::X86_64, svma, others), Sampled::After, words)
}

#[test]
fn a_stack_is_unwound_by_stack_and_frame_pointer_up_to_the_root() {
    let caller = function(CALLER, [Cfa(RBP, 16), Offset(RIP, -8), Offset(RBP, -16)]);
    let functions = [sp_based(LEAF, 24), caller, root(START)];
    // The leaf has two words of its own. Its caller's frame pointer is three words above the return address.
    let words = [1, 2, BIAS + CALLER + 9, 3, 4, 0xabc, BIAS + START + 5, 7];
    for form in [Form::Sorted, Form::EhFrame, Form::DebugFrame] {
        let space = space(Architecture::X86_64, form, &functions);
        let registers = registers(Architecture::X86_64, LEAF + 4, &[(6, STACK + 5 * 8)]);
        let (frames, unwound) = run(&space, &registers, Sampled::After, &words);
        assert_eq!(frames, [LEAF + 4, CALLER + 9, START + 5]);
        assert_eq!(unwound, Unwound { end: StackEnd::Root, stack_bytes: 7 * 8 });
    }
}

#[test]
fn a_row_is_valid_up_to_the_next_row_or_the_functions_end() {
    let mut leaf = sp_based(LEAF, 8);
    leaf.instructions.extend([(1, CfaOffset(16)), (1, Offset(RBP, -16)), (4, CfaRegister(RBP)), (0xff, Cfa(RSP, 8))]);
    let functions = [leaf, root(START)];
    let start = BIAS + START + 5;
    let at = |offset: u64, words: &[u64]| {
        let space = space(Architecture::X86_64, Form::Sorted, &functions);
        run(&space, &registers(Architecture::X86_64, LEAF + offset, &[(6, STACK + 16)]), Sampled::At, words)
    };
    // Where the CFA is computed from the frame pointer, it is two words above that.
    let (entered, pushed, by_frame_pointer) = ([start, 0, 0, 0], [0, start, 0, 0], [0, 0, 0, start]);
    for (offset, words) in [(0, entered), (1, pushed), (3, pushed), (4, by_frame_pointer), (0xfe, by_frame_pointer), (0xff, entered)] {
        let (frames, unwound) = at(offset, &words);
        assert_eq!((frames, unwound.end), (vec![LEAF + offset, START + 5], StackEnd::Root), "at {offset:#x}");
    }
    let (frames, unwound) = at(0x100, &[start, 0, 0, 0]);
    assert_eq!((frames.len(), unwound.end), (1, StackEnd::NoRule { avma: BIAS + LEAF + 0x100 }));
}

#[test]
fn a_call_at_the_end_of_a_function_belongs_to_that_function() {
    let functions = [sp_based(LEAF, 8), sp_based(CALLER, 16), sp_based(CALLER + 0x100, 80), root(START)];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 0x100, &[], &[BIAS + CALLER + 0x100, 0, BIAS + START + 5]);
    assert_eq!((frames, unwound.end), (vec![LEAF + 0x100, CALLER + 0x100, START + 5], StackEnd::Root));
}

#[test]
fn code_without_tables_is_unwound_by_frame_pointers() {
    let mut space = space(Architecture::X86_64, Form::Sorted, &[sp_based(LEAF, 16), root(START)]);
    let jit = BIAS + 0x100_0000;
    space.map_code(jit..jit + 0x1000);
    let leaf = registers(Architecture::X86_64, LEAF + 1, &[(6, STACK + 3 * 8)]);
    // A leaf, two frames of generated code, and the program's start.
    let words = [0, jit + 0x10, 0, STACK + 6 * 8, jit + 0x20, 0, STACK + 9 * 8, BIAS + START + 5, 0, 0];
    let (frames, unwound) = run(&space, &leaf, Sampled::After, &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0010, 0x100_0020, START + 5], StackEnd::Root));
    // A chain that ends with zero, like Go's.
    let words = [0, jit + 0x10, 0, STACK + 6 * 8, jit + 0x20, 0, 0, 0, 0, 0];
    let (frames, unwound) = run(&space, &leaf, Sampled::After, &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0010, 0x100_0020], StackEnd::Root));
    // An address outside of code is no return address, and a frame pointer that leads down is no chain.
    for words in [[0, jit + 0x10, 0, STACK + 6 * 8, 0x1234, 0], [0, jit + 0x10, 0, STACK, jit + 0x20, 0]] {
        let (frames, unwound) = run(&space, &leaf, Sampled::After, &words);
        assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0010], StackEnd::NoRule { avma: jit + 0x10 }));
    }
    let (_, unwound) = run(&space, &leaf, Sampled::After, &[0, jit + 0x10, 0]);
    assert_eq!(unwound, Unwound { end: StackEnd::Truncated, stack_bytes: 5 * 8 });
}

#[test]
fn a_stack_of_a_32_bit_program_has_words_of_four_bytes() {
    let (esp, ebp, eip) = (Register(4), Register(5), Register(8));
    let leaf = function(LEAF, [Cfa(esp, 8), Offset(eip, -4)]);
    let caller = function(CALLER, [Cfa(ebp, 8), Offset(eip, -4), Offset(ebp, -8)]);
    let image = Arc::new(
        Image::read(Box::new(elf(Architecture::X86, Form::Sorted, &[leaf, caller, function(START, [Cfa(esp, 4), Undefined(eip)])])))
            .unwrap(),
    );
    let (bias, stack) = (0x5655_0000, 0xffff_0000);
    let mut space = AddressSpace::default();
    space.map_image(bias + CODE..bias + CODE + CODE_BYTES, image, CODE);
    let mut registers = Registers::new(Architecture::X86);
    for (number, value) in [(8, bias + LEAF + 1), (4, stack), (5, stack + 12)] {
        registers.set(number, value);
    }
    let (frames, unwound) = run(&space, &registers, Sampled::After, &[0, bias + CALLER + 1, 0, 0, bias + START + 1]);
    let svmas: Vec<_> = frames.iter().map(|frame| frame.wrapping_add(BIAS) - bias).collect();
    assert_eq!((svmas, unwound), (vec![LEAF + 1, CALLER + 1, START + 1], Unwound { end: StackEnd::Root, stack_bytes: 20 }));
}

#[test]
fn aarch64_return_addresses_are_in_the_link_register_or_signed() {
    let (fp, lr, sp) = (Register(29), Register(30), Register(31));
    let leaf = function(LEAF, [Cfa(sp, 0)]);
    let caller = function(CALLER, [Cfa(sp, 32), Offset(fp, -32), Offset(lr, -24), CallFrameInstruction::NegateRaState]);
    let functions = [leaf, caller, function(START, [Cfa(sp, 0), Undefined(lr)])];
    let space = space(Architecture::Aarch64, Form::Sorted, &functions);
    let registers = registers(Architecture::Aarch64, LEAF + 4, &[(30, BIAS + CALLER + 8), (29, 0xbad)]);
    let signed = BIAS + START + 4 + (0x3f << 49);
    let (frames, unwound) = run(&space, &registers, Sampled::After, &[STACK + 32, signed, 0, 0]);
    assert_eq!((frames, unwound.end), (vec![LEAF + 4, CALLER + 8, START + 4], StackEnd::Root));
}
