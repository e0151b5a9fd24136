//! Each kind of rule, in files that are made for it.

use std::sync::Arc;

use gimli::Register;
use gimli::write::CallFrameInstruction::{Cfa, CfaExpression, CfaOffset, CfaRegister, Expression as At, Offset, Undefined, ValExpression};
use gimli::write::{CallFrameInstruction, Expression};
use proptest::prelude::*;

use super::*;
use crate::stack::image::Image;
use crate::stack::made::{CODE, CODE_BYTES, Form, Function, elf, function};
use crate::stack::registers::Architecture;

/// Where files are mapped.
const BIAS: u64 = 0x5555_0000_0000;
/// The stack pointer of samples.
const STACK: u64 = 0x7fff_ffff_0000;

const RBX: Register = Register(3);
const RBP: Register = Register(6);
const RSP: Register = Register(7);
const RIP: Register = Register(16);

/// Functions of the files below.
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

/// The svmas of a stack's frames, and how it ended. `words` lie from the stack pointer on.
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
fn frames_by_stack_pointer_and_frame_pointer_up_to_the_root() {
    let caller = function(CALLER, [Cfa(RBP, 16), Offset(RIP, -8), Offset(RBP, -16)]);
    let functions = [sp_based(LEAF, 24), caller, root(START)];
    // The leaf keeps two words; its caller's frame pointer is three words further up.
    let words = [1, 2, BIAS + CALLER + 9, 3, 4, 0xabc, BIAS + START + 5, 7];
    for form in [Form::Sorted, Form::EhFrame, Form::DebugFrame] {
        let space = space(Architecture::X86_64, form, &functions);
        let registers = registers(Architecture::X86_64, LEAF + 4, &[(6, STACK + 5 * 8)]);
        let (frames, unwound) = run(&space, &registers, Sampled::After, &words);
        assert_eq!(frames, [LEAF + 4, CALLER + 9, START + 5]);
        assert_eq!(unwound, Unwound { end: End::Root, stack_bytes: 7 * 8 });
    }
}

#[test]
fn a_row_holds_up_to_the_next_one_and_the_last_up_to_the_end() {
    let mut leaf = sp_based(LEAF, 8);
    leaf.instructions.extend([(1, CfaOffset(16)), (1, Offset(RBP, -16)), (4, CfaRegister(RBP)), (0xff, Cfa(RSP, 8))]);
    let functions = [leaf, root(START)];
    let start = BIAS + START + 5;
    let at = |offset: u64, words: &[u64]| {
        let space = space(Architecture::X86_64, Form::Sorted, &functions);
        run(&space, &registers(Architecture::X86_64, LEAF + offset, &[(6, STACK + 16)]), Sampled::At, words)
    };
    // With the frame pointer as base the CFA is two words above it.
    let (entered, pushed, by_frame_pointer) = ([start, 0, 0, 0], [0, start, 0, 0], [0, 0, 0, start]);
    for (offset, words) in [(0, entered), (1, pushed), (3, pushed), (4, by_frame_pointer), (0xfe, by_frame_pointer), (0xff, entered)] {
        let (frames, unwound) = at(offset, &words);
        assert_eq!((frames, unwound.end), (vec![LEAF + offset, START + 5], End::Root), "at {offset:#x}");
    }
    let (frames, unwound) = at(0x100, &[start, 0, 0, 0]);
    assert_eq!((frames.len(), unwound.end), (1, End::NoRule { avma: BIAS + LEAF + 0x100 }));
}

#[test]
fn a_return_probe_hides_who_called() {
    let functions = [sp_based(LEAF, 16), sp_based(CALLER, 8), root(START)];
    let page = 0x7fff_ffff_e000;
    // The frame pointer is such that a caller would be found by it.
    let words = [0, page, STACK + 0x28, BIAS + START + 5, 0, 0, BIAS + START + 5];
    let registers = |svma: u64| registers(Architecture::X86_64, svma, &[(6, STACK + 0x10)]);
    for below in [false, true] {
        let mut space = space(Architecture::X86_64, Form::Sorted, &functions);
        space.map_probes(page..page + 0x1000);
        if below {
            space.map_code(page - 0x1000..page);
        }
        let (frames, unwound) = run(&space, &registers(LEAF + 4), Sampled::After, &words);
        assert_eq!((frames, unwound.end), (vec![LEAF + 4], End::ReturnProbe));
        // An instruction with a breakpoint runs in that page.
        let copied = page + 0x80;
        let (frames, unwound) = run(&space, &registers(copied.wrapping_sub(BIAS)), Sampled::At, &words);
        assert_eq!((frames, unwound.end), (vec![copied.wrapping_sub(BIAS)], End::NoRule { avma: copied }));
    }
    let mut space = space(Architecture::X86_64, Form::Sorted, &functions);
    space.map_code(page..page + 0x1000);
    assert_ne!(run(&space, &registers(LEAF + 4), Sampled::After, &words).1.end, End::ReturnProbe);
}

#[test]
fn a_call_that_is_a_functions_last_instruction_belongs_to_it() {
    let functions = [sp_based(LEAF, 8), sp_based(CALLER, 16), sp_based(CALLER + 0x100, 80), root(START)];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 0x100, &[], &[BIAS + CALLER + 0x100, 0, BIAS + START + 5]);
    assert_eq!((frames, unwound.end), (vec![LEAF + 0x100, CALLER + 0x100, START + 5], End::Root));
}

#[test]
fn a_main_that_aligned_its_stack_has_its_frame_behind_a_saved_word() {
    // lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10: the CFA is at -8(%rbp), the old %rbp at 0(%rbp).
    let (mut cfa, mut saved) = (Expression::new(), Expression::new());
    cfa.op_breg(RBP, -8);
    cfa.op_deref();
    saved.op_breg(RBP, 0);
    let aligned = function(CALLER, [CfaExpression(cfa), Offset(RIP, -8), At(RBP, saved)]);
    let above = function(START, [Cfa(RBP, 16), Undefined(RIP)]);
    let words = [BIAS + CALLER + 1, STACK + 7 * 8, STACK + 9 * 8, 0, 0, 0, BIAS + START + 5, 0, 0, 0];
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8), aligned, above], LEAF + 1, &[(6, STACK + 2 * 8)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, CALLER + 1, START + 5], End::Root));
}

#[test]
fn a_register_that_no_rule_follows_is_asked_for_in_the_frames_below() {
    // The loader's trampoline has its frame by %rbx, which the function that it called saved, and the one below left alone.
    let trampoline = function(CALLER, [Cfa(RBX, 24), Offset(RIP, -8)]);
    let saves = function(LEAF + 0x100, [Cfa(RSP, 24), Offset(RIP, -8), Offset(RBX, -16)]);
    let functions = [sp_based(LEAF, 8), saves, trampoline, root(START)];
    let words = [BIAS + LEAF + 0x110, 0, STACK + 7 * 8, BIAS + CALLER + 9, 0, 0, 0, 0, 0, BIAS + START + 5];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[(3, 0xbad)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, LEAF + 0x110, CALLER + 9, START + 5], End::Root));
    // As the sampled frame, its own register counts.
    let (frames, _) = run_x86_64(&functions, CALLER + 9, &[(3, STACK)], &[0, 0, BIAS + START + 5]);
    assert_eq!(frames, [CALLER + 9, START + 5]);
    // A register that calls do not preserve is not known in a caller.
    // Nor is one that no machine has; beyond 63 there is not even a bit for it.
    for number in [2, 40, 64 + 3, 255, 300] {
        let by_other = function(CALLER, [Cfa(Register(number), 24), Offset(RIP, -8)]);
        let words = [BIAS + CALLER + 9, 0, BIAS + START + 5];
        let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8), by_other], LEAF + 1, &[(2, STACK)], &words);
        assert_eq!((frames.len(), unwound.end), (2, End::NoRule { avma: BIAS + CALLER + 9 }), "{number}");
    }
}

/// A trampoline as glibc's: every register is in what the kernel put onto the stack. Here only four are, from the stack pointer on.
fn trampoline(start: u64) -> Function {
    let at = |word: i64| {
        let mut place = Expression::new();
        place.op_breg(RSP, word * 8);
        place
    };
    let mut cfa = at(0);
    cfa.op_deref();
    Function { is_signal: true, ..function(start, [CfaExpression(cfa), At(RSP, at(0)), At(RBP, at(1)), At(RIP, at(2)), At(RBX, at(3))]) }
}

#[test]
fn what_a_signal_interrupted_is_looked_up_where_it_was_interrupted() {
    // The handler returns into the trampoline, which nothing called; the interrupted function was at its very first instruction.
    let functions = [sp_based(LEAF, 8), trampoline(LEAF + 0x100), sp_based(CALLER, 8), sp_based(CALLER - 0x100, 800), root(START)];
    let words = [BIAS + LEAF + 0x101, STACK + 6 * 8, 0x66, BIAS + CALLER, 0x33, 0, BIAS + START + 5];
    let space = space(Architecture::X86_64, Form::Sorted, &functions);
    let mut frames = Vec::new();
    let read = |address: u64| words.get((address.checked_sub(STACK)? / 8) as usize).copied();
    let unwound =
        Unwinder::default().unwind(&registers(Architecture::X86_64, LEAF + 4, &[]), Sampled::After, &space, read, 20, &mut frames);
    let seen: Vec<_> = frames.iter().map(|frame| (frame.svma, frame.is_after, frame.lookup_svma())).collect();
    assert_eq!(
        seen,
        [(LEAF + 4, true, LEAF + 3), (LEAF + 0x101, false, LEAF + 0x101), (CALLER, false, CALLER), (START + 5, true, START + 4)]
    );
    assert_eq!(unwound.end, End::Root);
}

#[test]
fn a_signals_frame_gives_back_registers_of_the_interrupted_function() {
    // It has its frame by %rbx, and the kernel saved that.
    let by_rbx = function(CALLER, [Cfa(RBX, 16), Offset(RIP, -8)]);
    let functions = [sp_based(LEAF, 8), trampoline(LEAF + 0x100), by_rbx, root(START)];
    let words = [BIAS + LEAF + 0x101, STACK + 6 * 8, 0, BIAS + CALLER + 7, STACK + 6 * 8, 0, 0, BIAS + START + 5];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 4, &[(3, 0xbad)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 4, LEAF + 0x101, CALLER + 7, START + 5], End::Root));
}

#[test]
fn a_stub_has_its_frame_by_its_own_address() {
    // As linkers write it for the PLT: one word more after the push, which ends with the eleventh of sixteen bytes.
    let mut cfa = Expression::new();
    cfa.op_breg(RSP, 8);
    cfa.op_breg(RIP, 0);
    for operation in
        [gimli::DW_OP_lit15, gimli::DW_OP_and, gimli::DW_OP_lit11, gimli::DW_OP_ge, gimli::DW_OP_lit3, gimli::DW_OP_shl, gimli::DW_OP_plus]
    {
        cfa.op(operation);
    }
    let functions = [function(LEAF, [CfaExpression(cfa), Offset(RIP, -8)]), root(START)];
    let space = space(Architecture::X86_64, Form::Sorted, &functions);
    for (svma, words) in [(LEAF + 0x26, [BIAS + START + 5, 0]), (LEAF + 0x2b, [0, BIAS + START + 5])] {
        let (frames, _) = run(&space, &registers(Architecture::X86_64, svma, &[]), Sampled::At, &words);
        assert_eq!(frames, [svma, START + 5]);
    }
}

#[test]
fn a_cut_stack_says_how_much_takes_it_further() {
    let functions = [sp_based(LEAF, 24), sp_based(CALLER, 80), root(START)];
    let mut words = [0; 20];
    words[2] = BIAS + CALLER + 9;
    words[12] = BIAS + START + 5;
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[], &words[..8]);
    assert_eq!((frames, unwound), (vec![LEAF + 1, CALLER + 9], Unwound { end: End::Truncated, stack_bytes: 13 * 8 }));
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[], &words[..13]);
    assert_eq!((frames.len(), unwound), (3, Unwound { end: End::Root, stack_bytes: 13 * 8 }));
    // In an expression, too.
    let mut cfa = Expression::new();
    cfa.op_breg(RSP, 72);
    cfa.op_deref();
    let (_, unwound) = run_x86_64(&[function(LEAF, [CfaExpression(cfa), Offset(RIP, -8)])], LEAF + 1, &[], &[0]);
    assert_eq!(unwound, Unwound { end: End::Truncated, stack_bytes: 80 });
}

#[test]
fn another_stack_is_said_to_be_one() {
    let caller = function(CALLER, [Cfa(RBP, 16), Offset(RIP, -8)]);
    let elsewhere = 0x5000_0000_0000;
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8), caller], LEAF + 1, &[(6, STACK + (2 << 30))], &[BIAS + CALLER + 1]);
    assert_eq!((frames.len(), unwound), (2, Unwound { end: End::OtherStack { address: STACK + (2 << 30) + 8 }, stack_bytes: 8 }));
    let mut cfa = Expression::new();
    cfa.op_constu(elsewhere);
    let (_, unwound) = run_x86_64(&[function(LEAF, [CfaExpression(cfa), Offset(RIP, -8)])], LEAF + 1, &[], &[]);
    assert_eq!(unwound.end, End::OtherStack { address: elsewhere - 8 });
}

#[test]
fn a_stack_never_goes_down() {
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 0)], LEAF + 1, &[], &[0, 0]);
    assert_eq!((frames.len(), unwound.end), (1, End::OtherStack { address: STACK - 8 }));
    let caller = function(CALLER, [Cfa(RBP, 16), Offset(RIP, -8)]);
    let functions = [sp_based(LEAF, 32), caller];
    let words = [0, BIAS + CALLER + 1, 0, BIAS + CALLER + 1, 0];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[(6, STACK)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, CALLER + 1], End::NoProgress { avma: BIAS + CALLER + 1 }));
}

#[test]
fn there_are_as_many_frames_as_are_wanted() {
    let functions = [sp_based(LEAF, 8)];
    let words = vec![BIAS + LEAF + 1; 100];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[], &words);
    assert_eq!((frames.len(), unwound.end), (20, End::Limit));
}

#[test]
fn code_without_tables_is_followed_by_its_frame_pointers() {
    let mut space = space(Architecture::X86_64, Form::Sorted, &[sp_based(LEAF, 16), root(START)]);
    let jit = BIAS + 0x100_0000;
    space.map_code(jit..jit + 0x1000);
    let leaf = registers(Architecture::X86_64, LEAF + 1, &[(6, STACK + 3 * 8)]);
    // A leaf, two frames of made code, and the program's start.
    let words = [0, jit + 0x10, 0, STACK + 6 * 8, jit + 0x20, 0, STACK + 9 * 8, BIAS + START + 5, 0, 0];
    let (frames, unwound) = run(&space, &leaf, Sampled::After, &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0010, 0x100_0020, START + 5], End::Root));
    // A chain that ends with zero, as Go's.
    let words = [0, jit + 0x10, 0, STACK + 6 * 8, jit + 0x20, 0, 0, 0, 0, 0];
    let (frames, unwound) = run(&space, &leaf, Sampled::After, &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0010, 0x100_0020], End::Root));
    // What is no code is no return address, and what leads down is no chain.
    for words in [[0, jit + 0x10, 0, STACK + 6 * 8, 0x1234, 0], [0, jit + 0x10, 0, STACK, jit + 0x20, 0]] {
        let (frames, unwound) = run(&space, &leaf, Sampled::After, &words);
        assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0010], End::NoRule { avma: jit + 0x10 }));
    }
    let (_, unwound) = run(&space, &leaf, Sampled::After, &[0, jit + 0x10, 0]);
    assert_eq!(unwound, Unwound { end: End::Truncated, stack_bytes: 5 * 8 });
}

#[test]
fn a_handler_may_return_to_the_first_byte_of_a_mapping_without_tables() {
    let mut space = space(Architecture::X86_64, Form::Sorted, &[sp_based(LEAF, 8), sp_based(CALLER, 8), root(START)]);
    let trampoline = BIAS + 0x100_0000;
    space.map_code(trampoline..trampoline + 0x1000);
    // As the kernel writes it behind the return address: stack pointer, program counter, flags and segments are words 20 to 23.
    let mut words = [0; 40];
    words[0] = trampoline;
    words[1 + 20] = STACK + 30 * 8;
    words[1 + 21] = BIAS + CALLER;
    words[1 + 22] = 0x246;
    words[1 + 23] = 0x2b << 48 | 0x33;
    words[30] = BIAS + START + 5;
    let (frames, unwound) = run(&space, &registers(Architecture::X86_64, LEAF + 1, &[]), Sampled::After, &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0000, CALLER, START + 5], End::Root));
    // It makes a call itself, sigreturn, and is the sampled frame then.
    let mut registers = registers(Architecture::X86_64, 0x100_0009, &[]);
    registers.set(7, STACK + 8);
    let (frames, unwound) = run(&space, &registers, Sampled::After, &words[1..]);
    assert_eq!((frames, unwound.end), (vec![0x100_0009, CALLER, START + 5], End::Root));
}

#[test]
fn a_return_address_outside_of_all_code_is_the_last_frame() {
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8)], LEAF + 1, &[], &[BIAS + 0x999_0000]);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x999_0000], End::Unmapped { avma: BIAS + 0x999_0000 }));
}

#[test]
fn a_32_bit_program_has_words_of_four_bytes() {
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
    assert_eq!((svmas, unwound), (vec![LEAF + 1, CALLER + 1, START + 1], Unwound { end: End::Root, stack_bytes: 20 }));
}

#[test]
fn on_aarch64_a_leaf_returns_by_its_register_and_others_by_signed_words() {
    let (fp, lr, sp) = (Register(29), Register(30), Register(31));
    let leaf = function(LEAF, [Cfa(sp, 0)]);
    let caller = function(CALLER, [Cfa(sp, 32), Offset(fp, -32), Offset(lr, -24), CallFrameInstruction::NegateRaState]);
    let functions = [leaf, caller, function(START, [Cfa(sp, 0), Undefined(lr)])];
    let space = space(Architecture::Aarch64, Form::Sorted, &functions);
    let registers = registers(Architecture::Aarch64, LEAF + 4, &[(30, BIAS + CALLER + 8), (29, 0xbad)]);
    let signed = BIAS + START + 4 + (0x3f << 49);
    let (frames, unwound) = run(&space, &registers, Sampled::After, &[STACK + 32, signed, 0, 0]);
    assert_eq!((frames, unwound.end), (vec![LEAF + 4, CALLER + 8, START + 4], End::Root));
}

#[test]
fn tables_that_ask_in_circles_end() {
    // Each frame has its frame by what a register was below, which is again an expression with that register, twice.
    let mut twice = Expression::new();
    twice.op_breg(RBX, 0);
    twice.op_breg(RBX, 0);
    twice.op(gimli::DW_OP_plus);
    let mut cfa = Expression::new();
    cfa.op_breg(RSP, 8);
    let functions = [
        function(LEAF, [CfaExpression(cfa), Offset(RIP, -8), ValExpression(RBX, twice)]),
        function(CALLER, [Cfa(RBX, 8), Offset(RIP, -8)]),
    ];
    let space = space(Architecture::X86_64, Form::Sorted, &functions);
    let mut words = vec![BIAS + LEAF + 1; 500];
    words[400] = BIAS + CALLER + 1;
    let read = |address: u64| words.get((address.checked_sub(STACK)? / 8) as usize).copied();
    let mut frames = Vec::new();
    let unwound =
        Unwinder::default().unwind(&registers(Architecture::X86_64, LEAF + 1, &[(3, 1)]), Sampled::After, &space, read, 1000, &mut frames);
    assert_eq!((frames.len(), unwound.end), (402, End::NoRule { avma: BIAS + CALLER + 1 }));
}

#[test]
fn a_register_is_asked_for_through_any_number_of_frames() {
    // Each frame keeps one register in the other, so each asks the one below.
    let (one, other) = (Register(12), Register(13));
    let swap = |a, b| CallFrameInstruction::Register(a, b);
    let functions = [
        function(LEAF, [Cfa(RSP, 8), Offset(RIP, -8), swap(one, other), swap(other, one)]),
        function(CALLER, [Cfa(one, 0), Offset(RIP, -8)]),
        root(START),
    ];
    let space = space(Architecture::X86_64, Form::Sorted, &functions);
    let mut words = vec![BIAS + LEAF + 1; 9_900];
    words.extend([BIAS + CALLER + 1, 0, BIAS + START + 1]);
    let top = STACK + words.len() as u64 * 8;
    let read = |address: u64| words.get((address.checked_sub(STACK)? / 8) as usize).copied();
    let sampled = registers(Architecture::X86_64, LEAF + 1, &[(12, 0), (13, top)]);
    let mut frames = Vec::new();
    let unwound = Unwinder::default().unwind(&sampled, Sampled::After, &space, read, 10_000, &mut frames);
    assert_eq!((frames.len(), unwound.end), (9_903, End::Root));
}

proptest! {
    /// Whatever is on the stack and in the registers: an end, and no more frames than asked for.
    #[test]
    fn any_stack_ends(words in proptest::collection::vec(prop_oneof![Just(0), 0..40_u64, any::<u64>(), (0..CODE_BYTES).prop_map(|offset| BIAS + CODE + offset), (0..64_u64).prop_map(|word| STACK + word * 8)], 0..64),
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

    /// A file whose bytes were changed is refused, or unwinds somehow.
    #[test]
    fn any_damaged_file_is_survived(changes in proptest::collection::vec((prop_oneof![0..0x100_usize, 0x400..0x640_usize, 0x1000..0x1100_usize, 0x8000..0x8040_usize], any::<u8>()), 1..12), form in prop_oneof![Just(Form::Sorted), Just(Form::EhFrame), Just(Form::DebugFrame)], cut in prop_oneof![Just(usize::MAX), 0..0x9000_usize]) {
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
    fn any_bytes_are_no_image_or_one(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = bytes;
        let _ = Image::read(Box::new(bytes.clone()));
        if bytes.len() > 20 {
            bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
            bytes[18..20].copy_from_slice(&62_u16.to_le_bytes());
            let _ = Image::read(Box::new(bytes.clone()));
        }
    }
}
