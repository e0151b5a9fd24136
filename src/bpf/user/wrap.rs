//! Instructions around a program: whom it runs for, the event of its own, and what it answers.
//!
//! ```text
//!     keep the context                  \
//!     not of interest? → out             | before
//!     the program; each of its exits → decide
//! decide:
//!     it returned 0? → out              \
//!     fetch the fields, give the event   | behind
//! out:                                   |
//!     return what silences nobody       /
//!     the program's other functions
//! ```
//! So a program on a tracepoint's perf event, whose answer 0 would keep the event from everybody, answers 1 whatever it returns; what it returns decides about its own event alone.
//! The verifier checks all of it like any other program.

use super::code::{self, STACK};
use super::own::Fetch;
use crate::sys::bpf::Instruction;

/// `BPF_F_CURRENT_CPU`
const CURRENT_CPU: i32 = -1;
/// What the kernel gives a program (MAX_BPF_STACK).
const STACK_BYTES: u32 = 512;

/// Whom a program runs for, as far as the kernel can tell at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Anyone,
    /// The tasks that have something in the task storage with this descriptor.
    Tasks(i32),
    /// Whoever has this effective user id.
    User(u32),
    /// The tasks of the cgroup in the first place of the map with this descriptor.
    Cgroup(i32),
}

/// An event that is given when the program returns something else than 0.
#[derive(Debug)]
pub struct Own<'a> {
    /// The descriptor of its perf event array.
    pub map: i32,
    pub fetches: &'a [Fetch],
    /// A multiple of 8.
    pub bytes: u32,
}

/// A program with all that.
#[derive(Debug)]
pub struct Wrapped {
    pub instructions: Vec<Instruction>,
    before: u32,
    main: u32,
    behind: u32,
}

/// Why a program cannot be wrapped.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(
        "it uses {used} bytes of its stack, and the fields of its event need {wanted} more than the {STACK_BYTES} that there are: name fewer fields, or use less"
    )]
    Stack { used: u32, wanted: u32 },
    #[error("it is too long: its end cannot be reached by a jump from its beginning")]
    Long,
}

impl Wrapped {
    /// Where an instruction is now that was here.
    pub fn place(&self, was: u32) -> u32 {
        match was {
            0 => 0,
            was if was < self.main => was + self.before,
            was => was + self.before + self.behind,
        }
    }
}

/// Wraps a whole program: its main function and the functions behind it.
///
/// # Errors
/// There is no room for it.
pub fn wrap(program: &[Instruction], whose: Whose, own: Option<&Own>, answer: i32) -> Result<Wrapped, Unfit> {
    let main = main_function(program);
    let used = stack_used(&program[..main]).next_multiple_of(8);
    let wanted = own.map_or(0, |own| own.bytes) + 8;
    if used + wanted > STACK_BYTES {
        return Err(Unfit::Stack { used, wanted: used + wanted - STACK_BYTES });
    }
    let context = -((used + wanted) as i16);
    let record = context + 8;

    let mut before = vec![code::store(STACK, context, 1, 8)];
    before.extend(test(whose, context));
    let mut behind = Vec::new();
    if let Some(own) = own {
        behind.push(code::load(6, STACK, context, 8));
        own.fetches.iter().for_each(|fetch| fetch.code(record, &mut behind));
        behind.extend([code::copy(1, 6)]);
        behind.extend(code::map(2, own.map));
        behind.extend([code::set(3, CURRENT_CPU), code::copy(4, STACK), code::add(4, record.into())]);
        behind.extend([code::set(5, own.bytes as i32), code::call(code::PERF_EVENT_OUTPUT)]);
        // It returned 0.
        behind.insert(0, code::jump_if(0, 0, distance(behind.len())?));
    }
    let out = behind.len();
    behind.extend([code::set(0, answer), code::exit()]);

    let mut instructions = Vec::with_capacity(before.len() + program.len() + behind.len());
    let decide = before.len() + main;
    for (at, one) in before.iter().enumerate() {
        let mut one = *one;
        // Whom it does not run for.
        if code::is_branch(&one) {
            one.off = distance(decide + out - at - 1)?;
        }
        instructions.push(one);
    }
    for (at, one) in program.iter().enumerate() {
        let to_other = code::function_named(one).filter(|&far| at < main && at as i64 + 1 + i64::from(far) >= main as i64);
        instructions.push(match to_other {
            _ if at < main && code::is_exit(one) => code::jump(distance(main - at - 1)?),
            Some(far) => Instruction { imm: far.saturating_add(behind.len() as i32), ..*one },
            None => *one,
        });
    }
    let (before, behind_len) = (before.len() as u32, behind.len() as u32);
    instructions.splice(decide..decide, behind);
    Ok(Wrapped { instructions, before, main: main as u32, behind: behind_len })
}

/// Whether a program leaves room on the stack for a record of so many bytes.
pub fn fits(program: &[Instruction], bytes: u32) -> bool {
    stack_used(&program[..main_function(program)]).next_multiple_of(8) + bytes + 8 <= STACK_BYTES
}

fn distance(instructions: usize) -> Result<i16, Unfit> {
    i16::try_from(instructions).map_err(|_| Unfit::Long)
}

/// How many instructions the main function has: the others stand behind it, and somebody names the first of them.
fn main_function(program: &[Instruction]) -> usize {
    let named =
        program.iter().enumerate().filter_map(|(at, one)| usize::try_from(at as i64 + 1 + i64::from(code::function_named(one)?)).ok());
    named.filter(|&at| at > 0).min().unwrap_or(program.len()).min(program.len())
}

/// Bytes of stack that a function may use. Rather more than too few: if it were wrong, the verifier would not take what is read there.
fn stack_used(function: &[Instruction]) -> u32 {
    let copies: Vec<u8> = function.iter().filter_map(code::copies_top).collect();
    let by_copy = |one| code::subtracts(one).filter(|(register, _)| copies.contains(register)).map(|(_, bytes)| bytes);
    let bytes = function.iter().filter_map(|one| code::below_top(one).or_else(|| by_copy(one)));
    bytes.filter(|bytes| *bytes <= STACK_BYTES).max().unwrap_or(0)
}

/// Leaves for `out` unless the program runs for this task; the jump is set by the caller.
fn test(whose: Whose, context: i16) -> Vec<Instruction> {
    let mut test = match whose {
        Whose::Anyone => return Vec::new(),
        Whose::Tasks(map) => {
            let map = code::map(1, map);
            let (current, get) = (code::call(code::GET_CURRENT_TASK), code::call(code::TASK_STORAGE_GET));
            vec![current, map[0], map[1], code::copy(2, 0), code::set(3, 0), code::set(4, 0), get, code::jump_if_null(0, 0)]
        }
        Whose::User(uid) => vec![code::call(code::GET_UID_GID), code::jump_unless(0, uid as i32, 0)],
        Whose::Cgroup(map) => {
            let map = code::map(1, map);
            vec![map[0], map[1], code::set(2, 0), code::call(code::TASK_UNDER_CGROUP), code::jump_unless(0, 1, 0)]
        }
    };
    test.push(code::load(1, STACK, context, 8));
    test
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs what only sets register 0, jumps, and calls functions of its own or helpers (which do nothing); gives the calls of helpers and what it returns.
    fn run(program: &[Instruction]) -> (Vec<i32>, i32) {
        let (mut at, mut r0, mut calls, mut returns) = (0usize, 0i32, Vec::new(), Vec::new());
        for _ in 0..1000 {
            let one = program[at];
            at += 1;
            let jump = |at: usize| (at as i64 + i64::from(one.off)) as usize;
            match one.code {
                0xb4 if one.dst_reg() == 0 => r0 = one.imm,
                0x05 => at = jump(at),
                0x15 | 0x16 if r0 == one.imm => at = jump(at),
                0x56 if r0 != one.imm => at = jump(at),
                0x85 if one.src_reg() == 1 => {
                    returns.push(at);
                    at = (at as i64 + i64::from(one.imm)) as usize;
                }
                0x85 => calls.push(one.imm),
                0x95 => match returns.pop() {
                    Some(back) => at = back,
                    None => return (calls, r0),
                },
                _ => {}
            }
        }
        panic!("it does not end");
    }

    fn function(far: i32) -> Instruction {
        let mut one = code::call(far);
        one.set_src_reg(1);
        one
    }

    /// Returns what its second function sets, from either of two exits.
    fn program(answer: i32) -> Vec<Instruction> {
        vec![
            function(3),
            code::jump_if(0, 0, 1),
            code::exit(),
            code::exit(),
            // The other function, which calls a third.
            code::set(0, 9),
            function(1),
            code::exit(),
            code::set(0, answer),
            code::exit(),
        ]
    }

    #[test]
    fn a_program_answers_for_itself_alone() {
        for (returned, answer) in [(0, 1), (5, 1), (0, 0), (7, 0)] {
            let program = program(returned);
            assert_eq!(run(&program), (vec![], returned));
            let own = Own { map: 4, fetches: &[], bytes: 8 };
            let wrapped = wrap(&program, Whose::Anyone, Some(&own), answer).unwrap();
            let given = if returned == 0 { vec![] } else { vec![code::PERF_EVENT_OUTPUT] };
            assert_eq!(run(&wrapped.instructions), (given, answer));
            let plain = wrap(&program, Whose::Anyone, None, answer).unwrap();
            assert_eq!(run(&plain.instructions), (vec![], answer));
        }
    }

    #[test]
    fn whom_it_does_not_run_for_is_left_alone() {
        // Register 0 is 0 at first, and helpers leave it so.
        let wrapped = |whose| wrap(&program(5), whose, Some(&Own { map: 4, fetches: &[], bytes: 8 }), 1).unwrap().instructions;
        assert_eq!(run(&wrapped(Whose::User(0))), (vec![code::GET_UID_GID, code::PERF_EVENT_OUTPUT], 1));
        assert_eq!(run(&wrapped(Whose::User(33))), (vec![code::GET_UID_GID], 1));
        assert_eq!(run(&wrapped(Whose::Cgroup(3))), (vec![code::TASK_UNDER_CGROUP], 1));
        assert_eq!(run(&wrapped(Whose::Tasks(3))), (vec![code::GET_CURRENT_TASK, code::TASK_STORAGE_GET], 1));
    }

    #[test]
    fn functions_and_lines_move_with_their_instructions() {
        let program = program(5);
        let wrapped = wrap(&program, Whose::User(33), None, 1).unwrap();
        for (was, one) in program.iter().enumerate().filter(|(was, one)| *was > 0 && !code::is_exit(one)) {
            let now = &wrapped.instructions[wrapped.place(was as u32) as usize];
            assert_eq!((now.code, now.off), (one.code, one.off), "{was}");
        }
        assert_eq!(wrapped.place(0), 0);
        let other = wrapped.place(4) as usize;
        assert_eq!((wrapped.instructions[other].code, wrapped.instructions[other].imm), (0xb4, 9));
    }

    #[test]
    fn the_stack_of_both_is_what_there_is() {
        let deep = vec![code::copy(2, STACK), code::add(2, -300), code::store(STACK, -96, 1, 8), code::add(3, -400), code::exit()];
        assert_eq!(stack_used(&deep), 300);
        let own = |bytes| Own { map: 4, fetches: &[], bytes };
        assert!(wrap(&deep, Whose::Anyone, Some(&own(200)), 0).is_ok());
        assert_eq!(wrap(&deep, Whose::Anyone, Some(&own(208)), 0).unwrap_err(), Unfit::Stack { used: 304, wanted: 8 });
        // Whose function is far behind all that there is, the verifier does not take.
        assert!(wrap(&[function(i32::MAX), code::exit()], Whose::Anyone, None, 0).is_ok());
        let long = vec![code::exit(); 40_000];
        assert_eq!(wrap(&long, Whose::Anyone, None, 0).unwrap_err(), Unfit::Long);
    }
}
