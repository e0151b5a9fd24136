//! Frames whose rules have expressions or use other registers than the stack and frame pointers.

use super::*;

#[test]
fn a_function_that_aligns_its_stack_has_a_cfa_by_expression() {
    // lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10: the CFA is at -8(%rbp), the
    // old %rbp at 0(%rbp).
    let (mut cfa, mut saved) = (Expression::new(), Expression::new());
    cfa.op_breg(RBP, -8);
    cfa.op_deref();
    saved.op_breg(RBP, 0);
    let aligned = function(CALLER, [CfaExpression(cfa), Offset(RIP, -8), At(RBP, saved)]);
    let above = function(START, [Cfa(RBP, 16), Undefined(RIP)]);
    let words = [BIAS + CALLER + 1, STACK + 7 * 8, STACK + 9 * 8, 0, 0, 0, BIAS + START + 5, 0, 0, 0];
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8), aligned, above], LEAF + 1, &[(6, STACK + 2 * 8)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, CALLER + 1, START + 5], StackEnd::Root));
}

#[test]
fn a_preserved_register_is_searched_for_in_the_frames_below() {
    // The CFA of the loader's trampoline is computed from %rbx. The function that it called saved %rbx, the leaf did
    // not change it.
    let trampoline = function(CALLER, [Cfa(RBX, 24), Offset(RIP, -8)]);
    let saves = function(LEAF + 0x100, [Cfa(RSP, 24), Offset(RIP, -8), Offset(RBX, -16)]);
    let functions = [sp_based(LEAF, 8), saves, trampoline, root(START)];
    let words = [BIAS + LEAF + 0x110, 0, STACK + 7 * 8, BIAS + CALLER + 9, 0, 0, 0, 0, 0, BIAS + START + 5];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[(3, 0xbad)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, LEAF + 0x110, CALLER + 9, START + 5], StackEnd::Root));
    // In the sampled frame, the value of the sampled register is used.
    let (frames, _) = run_x86_64(&functions, CALLER + 9, &[(3, STACK)], &[0, 0, BIAS + START + 5]);
    assert_eq!(frames, [CALLER + 9, START + 5]);
    // The caller's value of a register that functions do not preserve is unknown.
    // So is that of a number without a register; beyond 63 there is no bit for it in the masks.
    for number in [2, 40, 64 + 3, 255, 300] {
        let by_other = function(CALLER, [Cfa(Register(number), 24), Offset(RIP, -8)]);
        let words = [BIAS + CALLER + 9, 0, BIAS + START + 5];
        let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8), by_other], LEAF + 1, &[(2, STACK)], &words);
        assert_eq!((frames.len(), unwound.end), (2, StackEnd::NoRule { avma: BIAS + CALLER + 9 }), "{number}");
    }
}

#[test]
fn the_cfa_of_a_plt_stub_depends_on_its_own_address() {
    // Linkers write this expression for the PLT: the CFA is one word further after the push, which ends with the
    // eleventh of sixteen bytes.
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
fn tables_with_exponentially_many_register_lookups_end() {
    // Each frame computes the register by an expression that uses the value in the frame below twice.
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
    assert_eq!((frames.len(), unwound.end), (402, StackEnd::NoRule { avma: BIAS + CALLER + 1 }));
}

/// The search is recursive. Without optimization, it needs more stack than threads of tests have.
#[test]
fn a_register_is_found_through_thousands_of_frames() {
    let search = std::thread::Builder::new().stack_size(64 << 20).spawn(search_through_thousands_of_frames).unwrap();
    search.join().unwrap();
}

fn search_through_thousands_of_frames() {
    // Each function swaps two registers, so the search goes on in the frame below.
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
    assert_eq!((frames.len(), unwound.end), (9_903, StackEnd::Root));
}
