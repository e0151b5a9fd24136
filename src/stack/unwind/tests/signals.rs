//! Signal frames, with and without unwind tables.

use super::*;

/// A signal trampoline like glibc's, whose rules find every register in the kernel's signal frame. Here the frame has
/// four registers, from the stack pointer on.
pub(super) fn trampoline(start: u64) -> Function {
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
fn an_interrupted_function_is_looked_up_at_the_exact_address() {
    // The handler returns into the trampoline, which no call instruction precedes. The interrupted function was at its
    // very first instruction.
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
    assert_eq!(unwound.end, StackEnd::Root);
}

#[test]
fn a_signal_frame_restores_the_registers_of_the_interrupted_function() {
    // The CFA of the interrupted function is computed from %rbx, which the kernel saved.
    let by_rbx = function(CALLER, [Cfa(RBX, 16), Offset(RIP, -8)]);
    let functions = [sp_based(LEAF, 8), trampoline(LEAF + 0x100), by_rbx, root(START)];
    let words = [BIAS + LEAF + 0x101, STACK + 6 * 8, 0, BIAS + CALLER + 7, STACK + 6 * 8, 0, 0, BIAS + START + 5];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 4, &[(3, 0xbad)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 4, LEAF + 0x101, CALLER + 7, START + 5], StackEnd::Root));
}

#[test]
fn a_signal_frame_without_tables_is_found_at_the_start_of_a_mapping() {
    let mut space = space(Architecture::X86_64, Form::Sorted, &[sp_based(LEAF, 8), sp_based(CALLER, 8), root(START)]);
    let trampoline = BIAS + 0x100_0000;
    space.map_code(trampoline..trampoline + 0x1000);
    // The kernel's frame is above the return address: stack pointer, program counter, flags and segments are words 20
    // to 23.
    let mut words = [0; 40];
    words[0] = trampoline;
    words[1 + 20] = STACK + 30 * 8;
    words[1 + 21] = BIAS + CALLER;
    words[1 + 22] = 0x246;
    words[1 + 23] = 0x2b << 48 | 0x33;
    words[30] = BIAS + START + 5;
    let (frames, unwound) = run(&space, &registers(Architecture::X86_64, LEAF + 1, &[]), Sampled::After, &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x100_0000, CALLER, START + 5], StackEnd::Root));
    // The trampoline calls sigreturn(2), so it can be the sampled frame.
    let mut registers = registers(Architecture::X86_64, 0x100_0009, &[]);
    registers.set(7, STACK + 8);
    let (frames, unwound) = run(&space, &registers, Sampled::After, &words[1..]);
    assert_eq!((frames, unwound.end), (vec![0x100_0009, CALLER, START + 5], StackEnd::Root));
}
