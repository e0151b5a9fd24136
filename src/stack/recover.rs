//! Finds the caller of a frame whose rule is [`Full`](super::rule::Rule::Full).
//!
//! The row of such a frame may use any register that functions preserve, while plain rules follow the stack and frame
//! pointers only. The value of another register is searched for in the frames below, one after the other: either a
//! frame's row says where that function saved the register, or the search goes on down to the registers of the sample.
//! It takes one table look-up per frame, and is needed only for loader trampolines and hand-written code.

use gimli::{CfaRule, Encoding, EvaluationResult, Expression, Format, Location, RegisterRule, UnwindContext, UnwindExpression, Value};

use crate::event::frame::Frame;
use crate::stack::full_row::FullRow;
use crate::stack::image::Image;
use crate::stack::registers::{Layout, Registers};
use crate::stack::space::AddressSpace;
use crate::stack::table::{CfiTable, Reader};

/// The greatest number of operations of one DWARF expression. Expressions of real programs take ten.
const OPERATIONS_MAX: u32 = 1000;
/// The greatest number of frames that one unwinding searches for values of registers.
pub const LOOKUPS_MAX: u32 = 10_000;
/// The greatest depth of nested expressions: an expression may need a register that an expression of a frame below
/// computes.
const NESTED_MAX: u32 = 32;

/// The registers of a frame, as far as unwinding has recovered them.
#[derive(Clone, Copy, Debug)]
pub struct FrameState {
    /// The stack pointer at the address where the function continues. It is always known: unwinding ends without it.
    pub stack_pointer: u64,
    /// The frame pointer there; `None` if it could not be recovered, which ends unwinding only where a rule needs it.
    pub frame_pointer: Option<u64>,
    /// The canonical frame address. It is 0 until a row of a table has computed it, and for a frame without a row.
    pub cfa: u64,
}

/// The caller of a frame.
pub enum Caller {
    Frame {
        avma: u64,
        is_after: bool,
        stack_pointer: u64,
        frame_pointer: Option<u64>,
        link_register: Option<u64>,
        cfa: u64,
    },
    /// The frame has no caller.
    Root,
}

/// Recovers the caller of one frame.
pub struct Recover<'a, M> {
    /// The registers of the sample, which are those of the first frame.
    pub registers: &'a Registers,
    /// The mappings of the task's process.
    pub space: &'a AddressSpace,
    /// The frames from the sampled one to the one whose caller is wanted.
    pub frames: &'a [Frame],
    /// The state of each of these frames.
    pub states: &'a [FrameState],
    /// The link register of the frame whose caller is wanted. It is `None` for a function that made a call, which
    /// overwrites the register.
    pub link_register: Option<u64>,
    /// The memory in which gimli evaluates the instructions of a table, reused for all rows.
    pub context: &'a mut UnwindContext<usize>,
    /// Returns the word at an address.
    pub memory: &'a mut M,
    /// The part of [`LOOKUPS_MAX`] that is left.
    pub lookups: &'a mut u32,
    /// The number of expressions that are being evaluated.
    pub nested: u32,
}

impl<'a, M: FnMut(u64) -> Option<u64>> Recover<'a, M> {
    /// Returns the caller, or `None` if a word of memory, a register or a rule is missing.
    pub fn caller(&mut self) -> Option<Caller> {
        let index = self.states.len().checked_sub(1)?;
        let (image, relative) = self.image_of(index)?;
        let (table, row) = image.full_row(relative, self.context)?;
        let layout = self.layout();
        let cfa = match &row.cfa {
            CfaRule::RegisterAndOffset { register, offset } => self.register(index, register.0)?.wrapping_add_signed(*offset),
            CfaRule::Expression(expression) => self.evaluate(index, table, *expression, None)?,
        };
        let cfa = self.truncated(cfa);
        let avma = match (row.register(row.return_column), layout.link_register) {
            (Some(RegisterRule::Undefined), _) => return Some(Caller::Root),
            (None | Some(RegisterRule::SameValue), Some(link)) if u16::from(link) == row.return_column => self.link_register?,
            (None, _) => return None,
            (Some(rule), _) => self.saved(index, table, rule, row.return_column, cfa)?,
        };
        let stack_pointer = self.or_default(index, table, &row, layout.stack_pointer, cfa).unwrap_or(Some(cfa))?;
        let frame_pointer = self.or_default(index, table, &row, layout.frame_pointer, cfa).unwrap_or(self.states[index].frame_pointer);
        let link_register =
            layout.link_register.filter(|_| row.is_signal).and_then(|link| self.or_default(index, table, &row, link, cfa)?);
        Some(Caller::Frame { avma, is_after: !row.is_signal, stack_pointer, frame_pointer, link_register, cfa })
    }

    /// Returns the caller's value of a register by a row: `None` if the row has no rule for it, `Some(None)` if the
    /// rule's value cannot be computed.
    fn or_default(&mut self, index: usize, table: &CfiTable, row: &FullRow, number: u8, cfa: u64) -> Option<Option<u64>> {
        row.register(number.into()).map(|rule| self.saved(index, table, rule, number.into(), cfa))
    }

    /// Returns the value of a register in a frame.
    fn register(&mut self, index: usize, number: u16) -> Option<u64> {
        let layout = self.layout();
        let number = u8::try_from(number).ok()?;
        for callee in (0..=index).rev() {
            *self.lookups = self.lookups.checked_sub(1)?;
            let state = &self.states[callee];
            if number == layout.stack_pointer {
                return Some(state.stack_pointer);
            } else if number == layout.frame_pointer {
                return state.frame_pointer;
            } else if number == layout.program_counter {
                return Some(self.frames[callee].avma);
            }
            let Some(below) = callee.checked_sub(1) else { break };
            let cfa = Some(self.states[below].cfa).filter(|cfa| *cfa != 0)?;
            let (image, relative) = self.image_of(below)?;
            let (table, row) = image.full_row(relative, self.context)?;
            match row.register(number.into()) {
                None if layout.preserves(number) => {}
                None => return None,
                Some(RegisterRule::SameValue) => {}
                Some(rule) => return self.saved(below, table, rule, number.into(), cfa),
            }
        }
        self.registers.get(number)
    }

    /// Returns the value that a register had in the caller of a frame, by a rule of that frame.
    fn saved(&mut self, index: usize, table: &CfiTable, rule: &RegisterRule<usize>, number: u16, cfa: u64) -> Option<u64> {
        let value = match rule {
            RegisterRule::SameValue => self.register(index, number)?,
            RegisterRule::Offset(offset) => self.word(cfa.wrapping_add_signed(*offset))?,
            RegisterRule::ValOffset(offset) => cfa.wrapping_add_signed(*offset),
            RegisterRule::Register(other) => self.register(index, other.0)?,
            RegisterRule::Expression(expression) => {
                let address = self.evaluate(index, table, *expression, Some(cfa))?;
                self.word(address)?
            }
            RegisterRule::ValExpression(expression) => self.evaluate(index, table, *expression, Some(cfa))?,
            RegisterRule::Constant(value) => *value,
            _ => return None,
        };
        Some(self.truncated(value))
    }

    fn evaluate(&mut self, index: usize, table: &CfiTable, expression: UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
        if self.nested >= NESTED_MAX {
            return None;
        }
        self.nested += 1;
        let value = self.run(index, table.expression(expression)?, initial);
        self.nested -= 1;
        value
    }

    fn run(&mut self, index: usize, expression: Expression<Reader>, initial: Option<u64>) -> Option<u64> {
        let layout = self.layout();
        let encoding = Encoding { address_size: layout.word_bytes, format: Format::Dwarf32, version: 4 };
        let mut evaluation = expression.evaluation(encoding);
        evaluation.set_max_iterations(OPERATIONS_MAX);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.register(index, register.0)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let word = self.word(address)?;
                    let bits = u32::from(size).saturating_mul(8);
                    evaluation
                        .resume_with_memory(Value::Generic(word & u64::MAX.checked_shr(64_u32.saturating_sub(bits)).unwrap_or(0)))
                        .ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().first()?.location {
            Location::Address { address } => Some(address),
            Location::Value { value } => value.to_u64(u64::MAX).ok(),
            _ => None,
        }
    }

    fn image_of(&self, index: usize) -> Option<(&'a Image, u32)> {
        let avma = self.frames[index].lookup_avma();
        let mapping = &self.space.mappings()[self.space.find(avma, &mut 0)?];
        Some((mapping.image()?, mapping.relative(avma)?))
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let address = self.truncated(address);
        (self.memory)(address)
    }

    /// Cuts an address or a register's value to the width of the task's words.
    fn truncated(&self, value: u64) -> u64 {
        if self.layout().word_bytes == 4 { value & 0xffff_ffff } else { value }
    }

    fn layout(&self) -> &'static Layout {
        self.registers.architecture().layout()
    }
}
