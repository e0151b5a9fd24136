//! The reasons for which unwinding ends.

use super::*;

#[test]
fn unwinding_ends_at_a_return_probe() {
    let functions = [sp_based(LEAF, 16), sp_based(CALLER, 8), root(START)];
    let page = 0x7fff_ffff_e000;
    // The chain of frame pointers would lead to a caller.
    let words = [0, page, STACK + 0x28, BIAS + START + 5, 0, 0, BIAS + START + 5];
    let registers = |svma: u64| registers(Architecture::X86_64, svma, &[(6, STACK + 0x10)]);
    for below in [false, true] {
        let mut space = space(Architecture::X86_64, Form::Sorted, &functions);
        space.map_probes(page..page + 0x1000);
        if below {
            space.map_code(page - 0x1000..page);
        }
        let (frames, unwound) = run(&space, &registers(LEAF + 4), Sampled::After, &words);
        assert_eq!((frames, unwound.end), (vec![LEAF + 4], StackEnd::ReturnProbe));
        // The kernel executes a copy of the instruction that a breakpoint replaced in that page.
        let copied = page + 0x80;
        let (frames, unwound) = run(&space, &registers(copied.wrapping_sub(BIAS)), Sampled::At, &words);
        assert_eq!((frames, unwound.end), (vec![copied.wrapping_sub(BIAS)], StackEnd::NoRule { avma: copied }));
    }
    let mut space = space(Architecture::X86_64, Form::Sorted, &functions);
    space.map_code(page..page + 0x1000);
    assert_ne!(run(&space, &registers(LEAF + 4), Sampled::After, &words).1.end, StackEnd::ReturnProbe);
}

#[test]
fn a_truncated_stack_reports_how_many_bytes_are_needed() {
    let functions = [sp_based(LEAF, 24), sp_based(CALLER, 80), root(START)];
    let mut words = [0; 20];
    words[2] = BIAS + CALLER + 9;
    words[12] = BIAS + START + 5;
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[], &words[..8]);
    assert_eq!((frames, unwound), (vec![LEAF + 1, CALLER + 9], Unwound { end: StackEnd::Truncated, stack_bytes: 13 * 8 }));
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[], &words[..13]);
    assert_eq!((frames.len(), unwound), (3, Unwound { end: StackEnd::Root, stack_bytes: 13 * 8 }));
    // The same holds for a word that an expression reads.
    let mut cfa = Expression::new();
    cfa.op_breg(RSP, 72);
    cfa.op_deref();
    let (_, unwound) = run_x86_64(&[function(LEAF, [CfaExpression(cfa), Offset(RIP, -8)])], LEAF + 1, &[], &[0]);
    assert_eq!(unwound, Unwound { end: StackEnd::Truncated, stack_bytes: 80 });
}

#[test]
fn an_address_far_from_the_sampled_stack_is_on_another_stack() {
    let caller = function(CALLER, [Cfa(RBP, 16), Offset(RIP, -8)]);
    let elsewhere = 0x5000_0000_0000;
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8), caller], LEAF + 1, &[(6, STACK + (2 << 30))], &[BIAS + CALLER + 1]);
    assert_eq!((frames.len(), unwound), (2, Unwound { end: StackEnd::OtherStack { address: STACK + (2 << 30) + 8 }, stack_bytes: 8 }));
    let mut cfa = Expression::new();
    cfa.op_constu(elsewhere);
    let (_, unwound) = run_x86_64(&[function(LEAF, [CfaExpression(cfa), Offset(RIP, -8)])], LEAF + 1, &[], &[]);
    assert_eq!(unwound.end, StackEnd::OtherStack { address: elsewhere - 8 });
}

#[test]
fn a_caller_without_a_higher_cfa_ends_unwinding() {
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 0)], LEAF + 1, &[], &[0, 0]);
    assert_eq!((frames.len(), unwound.end), (1, StackEnd::OtherStack { address: STACK - 8 }));
    let caller = function(CALLER, [Cfa(RBP, 16), Offset(RIP, -8)]);
    let functions = [sp_based(LEAF, 32), caller];
    let words = [0, BIAS + CALLER + 1, 0, BIAS + CALLER + 1, 0];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[(6, STACK)], &words);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, CALLER + 1], StackEnd::NoProgress { avma: BIAS + CALLER + 1 }));
}

#[test]
fn unwinding_ends_at_the_greatest_number_of_frames() {
    let functions = [sp_based(LEAF, 8)];
    let words = vec![BIAS + LEAF + 1; 100];
    let (frames, unwound) = run_x86_64(&functions, LEAF + 1, &[], &words);
    assert_eq!((frames.len(), unwound.end), (20, StackEnd::Limit));
}

#[test]
fn a_return_address_outside_of_all_code_is_the_last_frame() {
    let (frames, unwound) = run_x86_64(&[sp_based(LEAF, 8)], LEAF + 1, &[], &[BIAS + 0x999_0000]);
    assert_eq!((frames, unwound.end), (vec![LEAF + 1, 0x999_0000], StackEnd::Unmapped { avma: BIAS + 0x999_0000 }));
}

#[test]
fn a_file_that_could_not_be_read_is_the_reason_unless_a_frame_pointer_was_saved() {
    let mut unread = AddressSpace::default();
    unread.map_image(BIAS + CODE..BIAS + CODE + CODE_BYTES, Arc::new(Image::unread(Architecture::X86_64)), CODE);
    let unwind = |space: &AddressSpace, frame_pointer: u64| {
        let words = [0, 0, STACK + 0x100, BIAS + CALLER + 1];
        let (frames, unwound) = run(space, &registers(Architecture::X86_64, LEAF + 1, &[(6, frame_pointer)]), Sampled::After, &words);
        (frames.len(), unwound.end)
    };
    assert_eq!(unwind(&unread, STACK + 0x80), (1, StackEnd::Unread { avma: BIAS + LEAF + 1 }), "the register may be anything");
    assert_eq!(unwind(&unread, STACK + 0x10), (2, StackEnd::Truncated), "the leaf has saved a frame pointer");
    let without_tables = space(Architecture::X86_64, Form::Sorted, &[]);
    assert_eq!(unwind(&without_tables, STACK + 0x80), (1, StackEnd::Truncated), "code without tables has frame pointers, if anything");
}
