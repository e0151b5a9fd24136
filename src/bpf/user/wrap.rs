//! Adds instructions around a program: a check of the task, the program's own event, and the return value.
//!
//! ```text
//!     save the context                       \
//!     task not traced? → out                  | before
//!     the program; each of its exits → decide
//! decide:
//!     the program returned 0? → out          \
//!     fetch the fields, write the event       | behind
//! out:                                        |
//!     return a value that suppresses nothing /
//!     the program's other functions
//! ```
//!
//! The return value of the user's program decides only about the program's own event. On a tracepoint's perf event, a
//! program that returns 0 would suppress the record for all readers, so the wrapped program always returns 1 there. The
//! verifier checks the result like any other program.

use super::code::{self, STACK};
use super::credentials::Credentials;
use super::program_event::Fetch;
use crate::sys::bpf::Instruction;

/// `BPF_F_CURRENT_CPU`
const CURRENT_CPU: i32 = -1;
/// The size of a program's stack (MAX_BPF_STACK).
const STACK_BYTES: u32 = 512;

/// The tasks for which a program runs, as far as the program can check it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFilter {
    Anyone,
    /// The tasks that have a value in the task storage with this descriptor.
    Tasks(i32),
    /// Tasks whose real or effective user ID is this one, as with the programs that trace calls. Without the places of
    /// the IDs, only the real one is known (bpf_get_current_uid_gid()).
    User(u32, Option<Credentials>),
    /// The tasks of the cgroup that is element 0 of the map with this descriptor.
    Cgroup(i32),
}

/// An event that is written when the program does not return 0.
#[derive(Debug)]
pub struct EventOutput<'a> {
    /// The descriptor of its perf event array.
    pub map: i32,
    /// How the values are copied from the context to the record.
    pub fetches: &'a [Fetch],
    /// The size of a record, a multiple of 8.
    pub bytes: u32,
}

/// A wrapped program.
#[derive(Debug)]
pub struct Wrapped {
    /// The whole program: the user's instructions with those that were added.
    pub instructions: Vec<Instruction>,
    before: u32,
    main: u32,
    behind: u32,
}

/// The reasons why a program cannot be wrapped.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrapError {
    #[error(
        "it uses {used} bytes of its stack, and the fields of its event need {wanted} bytes more than the limit of {STACK_BYTES} bytes: name fewer fields, or use less stack"
    )]
    Stack { used: u32, wanted: u32 },
    #[error("it is too long: a jump from its beginning cannot reach its end")]
    Long,
}

impl Wrapped {
    /// Returns the index in the wrapped program of an instruction of the original one.
    pub fn place(&self, was: u32) -> u32 {
        match was {
            0 => 0,
            was if was < self.main => was + self.before,
            was => was + self.before + self.behind,
        }
    }
}

/// Wraps a program: its main function and the functions that follow it.
///
/// # Errors
/// The stack is too small, or a jump would be too long.
pub fn wrap(program: &[Instruction], tasks: TaskFilter, own: Option<&EventOutput>, answer: i32) -> Result<Wrapped, WrapError> {
    let main = main_function(program);
    let used = stack_used(&program[..main]).next_multiple_of(8);
    let wanted = own.map_or(0, |own| own.bytes) + 8;
    if used + wanted > STACK_BYTES {
        return Err(WrapError::Stack { used, wanted: used + wanted - STACK_BYTES });
    }
    let context = -((used + wanted) as i16);
    let record = context + 8;

    let mut before = vec![code::store(STACK, context, 1, 8)];
    before.extend(test(tasks, context));
    let mut behind = Vec::new();
    if let Some(own) = own {
        behind.push(code::load(6, STACK, context, 8));
        own.fetches.iter().for_each(|fetch| fetch.code(record, &mut behind));
        behind.extend([code::copy(1, 6)]);
        behind.extend(code::map(2, own.map));
        behind.extend([code::set(3, CURRENT_CPU), code::copy(4, STACK), code::add(4, record.into())]);
        behind.extend([code::set(5, own.bytes as i32), code::call(code::PERF_EVENT_OUTPUT)]);
        // Skips the event if the program returned 0.
        behind.insert(0, code::jump_if(0, 0, distance(behind.len())?));
    }
    let out = behind.len();
    behind.extend([code::set(0, answer), code::exit()]);

    let mut instructions = Vec::with_capacity(before.len() + program.len() + behind.len());
    let decide = before.len() + main;
    for (at, one) in before.iter().enumerate() {
        let mut one = *one;
        // A jump of the check that has no distance yet leaves the program.
        if code::is_branch(&one) && one.off == 0 {
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

/// Returns whether a program leaves room on the stack for a record of this size.
pub fn fits(program: &[Instruction], bytes: u32) -> bool {
    stack_used(&program[..main_function(program)]).next_multiple_of(8) + bytes + 8 <= STACK_BYTES
}

fn distance(instructions: usize) -> Result<i16, WrapError> {
    i16::try_from(instructions).map_err(|_| WrapError::Long)
}

/// Returns the number of instructions of the main function. The other functions follow it, and some call refers to the
/// first of them.
fn main_function(program: &[Instruction]) -> usize {
    let named =
        program.iter().enumerate().filter_map(|(at, one)| usize::try_from(at as i64 + 1 + i64::from(code::function_named(one)?)).ok());
    named.filter(|&at| at > 0).min().unwrap_or(program.len()).min(program.len())
}

/// Returns an upper bound of the bytes of stack that a function uses. If it were too low, the verifier would refuse
/// reads of the overwritten bytes.
fn stack_used(function: &[Instruction]) -> u32 {
    let copies: Vec<u8> = function.iter().filter_map(code::copies_top).collect();
    let by_copy = |one| code::subtracts(one).filter(|(register, _)| copies.contains(register)).map(|(_, bytes)| bytes);
    let bytes = function.iter().filter_map(|one| code::below_top(one).or_else(|| by_copy(one)));
    bytes.filter(|bytes| *bytes <= STACK_BYTES).max().unwrap_or(0)
}

/// Returns the instructions that jump to `out` unless the program runs for this task. The caller sets the distance of
/// that jump, which is 0.
fn test(tasks: TaskFilter, context: i16) -> Vec<Instruction> {
    let mut test = match tasks {
        TaskFilter::Anyone => return Vec::new(),
        TaskFilter::Tasks(map) => {
            let map = code::map(1, map);
            let (current, get) = (code::call(code::GET_CURRENT_TASK), code::call(code::TASK_STORAGE_GET));
            vec![current, map[0], map[1], code::copy(2, 0), code::set(3, 0), code::set(4, 0), get, code::jump_if_null(0, 0)]
        }
        TaskFilter::User(uid, None) => vec![code::call(code::GET_UID_GID), code::jump_unless(0, uid as i32, 0)],
        TaskFilter::User(uid, Some(at)) => {
            let (uid, cred) = (uid as i32, code::load(1, 0, at.cred, 8));
            // A task whose real ID is the right one skips the test of the effective one.
            let (real, is_real) = (code::load(2, 1, at.uid, 4), code::jump_if(2, uid, 2));
            let (effective, unless_effective) = (code::load(2, 1, at.euid, 4), code::jump_unless(2, uid, 0));
            vec![code::call(code::GET_CURRENT_TASK), cred, real, is_real, effective, unless_effective]
        }
        TaskFilter::Cgroup(map) => {
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

    /// Interprets instructions that set register 0, jump, and call functions or helpers (which do nothing). Returns the
    /// called helpers and the return value.
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
        panic!("the program does not end");
    }

    fn function(far: i32) -> Instruction {
        let mut one = code::call(far);
        one.set_src_reg(1);
        one
    }

    /// Makes a program that returns the value of its second function, from either of two exits.
    fn program(answer: i32) -> Vec<Instruction> {
        vec![
            function(3),
            code::jump_if(0, 0, 1),
            code::exit(),
            code::exit(),
            // The second function, which calls a third one.
            code::set(0, 9),
            function(1),
            code::exit(),
            code::set(0, answer),
            code::exit(),
        ]
    }

    #[test]
    fn the_return_value_decides_only_about_the_own_event() {
        for (returned, answer) in [(0, 1), (5, 1), (0, 0), (7, 0)] {
            let program = program(returned);
            assert_eq!(run(&program), (vec![], returned));
            let own = EventOutput { map: 4, fetches: &[], bytes: 8 };
            let wrapped = wrap(&program, TaskFilter::Anyone, Some(&own), answer).unwrap();
            let helpers = if returned == 0 { vec![] } else { vec![code::PERF_EVENT_OUTPUT] };
            assert_eq!(run(&wrapped.instructions), (helpers, answer));
            let plain = wrap(&program, TaskFilter::Anyone, None, answer).unwrap();
            assert_eq!(run(&plain.instructions), (vec![], answer));
        }
    }

    #[test]
    fn programs_run_only_for_the_selected_tasks() {
        // Register 0 is 0 at first, and helpers do not change it.
        let wrapped = |tasks| wrap(&program(5), tasks, Some(&EventOutput { map: 4, fetches: &[], bytes: 8 }), 1).unwrap().instructions;
        assert_eq!(run(&wrapped(TaskFilter::User(0, None))), (vec![code::GET_UID_GID, code::PERF_EVENT_OUTPUT], 1));
        assert_eq!(run(&wrapped(TaskFilter::User(33, None))), (vec![code::GET_UID_GID], 1));
        let places = Some(Credentials { cred: 2400, uid: 8, euid: 24 });
        assert_eq!(run(&wrapped(TaskFilter::User(0, places))), (vec![code::GET_CURRENT_TASK, code::PERF_EVENT_OUTPUT], 1));
        assert_eq!(run(&wrapped(TaskFilter::User(33, places))), (vec![code::GET_CURRENT_TASK], 1));
        assert_eq!(run(&wrapped(TaskFilter::Cgroup(3))), (vec![code::TASK_UNDER_CGROUP], 1));
        assert_eq!(run(&wrapped(TaskFilter::Tasks(3))), (vec![code::GET_CURRENT_TASK, code::TASK_STORAGE_GET], 1));
    }

    #[test]
    fn calls_and_line_numbers_move_with_their_instructions() {
        let program = program(5);
        let wrapped = wrap(&program, TaskFilter::User(33, None), None, 1).unwrap();
        for (was, one) in program.iter().enumerate().filter(|(was, one)| *was > 0 && !code::is_exit(one)) {
            let now = &wrapped.instructions[wrapped.place(was as u32) as usize];
            assert_eq!((now.code, now.off), (one.code, one.off), "{was}");
        }
        assert_eq!(wrapped.place(0), 0);
        let other = wrapped.place(4) as usize;
        assert_eq!((wrapped.instructions[other].code, wrapped.instructions[other].imm), (0xb4, 9));
    }

    #[test]
    fn program_and_event_share_the_stack() {
        let deep = vec![code::copy(2, STACK), code::add(2, -300), code::store(STACK, -96, 1, 8), code::add(3, -400), code::exit()];
        assert_eq!(stack_used(&deep), 300);
        let own = |bytes| EventOutput { map: 4, fetches: &[], bytes };
        assert!(wrap(&deep, TaskFilter::Anyone, Some(&own(200)), 0).is_ok());
        assert_eq!(wrap(&deep, TaskFilter::Anyone, Some(&own(208)), 0).unwrap_err(), WrapError::Stack { used: 304, wanted: 8 });
        // The verifier refuses a call to a function beyond the end of the program.
        assert!(wrap(&[function(i32::MAX), code::exit()], TaskFilter::Anyone, None, 0).is_ok());
        let long = vec![code::exit(); 40_000];
        assert_eq!(wrap(&long, TaskFilter::Anyone, None, 0).unwrap_err(), WrapError::Long);
    }
}
