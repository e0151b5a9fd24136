//! The caller of a frame whose rule is [`Full`](super::rule::Rule::Full).
//!
//! It may need any register that functions preserve, while rules only follow the stack and frame pointers. What such a register held is asked for backwards: the frames below say
//! one after the other whether they saved it, down to the registers of the sample. That costs a table look-up a frame, and happens where a loader's trampoline or hand-written code
//! is on the stack.

use gimli::{CfaRule, Encoding, EvaluationResult, Expression, Format, Location, RegisterRule, UnwindContext, UnwindExpression, Value};

use crate::event::frame::Frame;
use crate::stack::full_row::FullRow;
use crate::stack::image::Image;
use crate::stack::registers::{Layout, Registers};
use crate::stack::space::AddressSpace;
use crate::stack::table::{Reader, Table};

/// Operations that one expression may take: those of real programs take ten.
const OPERATIONS_MAX: u32 = 1000;
/// Registers that one unwinding may ask the frames below for.
pub const QUESTIONS_MAX: u32 = 10_000;
/// Expressions that wait for a register which an expression of a frame below gives.
const NESTED_MAX: u32 = 32;

/// What is known of a frame beside where it is.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub stack_pointer: u64,
    pub frame_pointer: Option<u64>,
    /// 0 until the frame is left, and in one that was left without a rule.
    pub cfa: u64,
}

/// What a caller was found to be.
pub enum Caller {
    Found {
        avma: u64,
        is_after: bool,
        stack_pointer: u64,
        frame_pointer: Option<u64>,
        link_register: Option<u64>,
        cfa: u64,
    },
    /// Nobody.
    Root,
}

pub struct Recover<'a, M> {
    pub registers: &'a Registers,
    pub space: &'a AddressSpace,
    /// From the sampled frame to the one whose caller is wanted.
    pub frames: &'a [Frame],
    /// One for each of them.
    pub steps: &'a [Step],
    /// Of the frame whose caller is wanted: that of functions which called was overwritten.
    pub link_register: Option<u64>,
    pub context: &'a mut UnwindContext<usize>,
    pub memory: &'a mut M,
    /// Left of [`QUESTIONS_MAX`].
    pub questions: &'a mut u32,
    /// Expressions that are being evaluated.
    pub nested: u32,
}

impl<'a, M: FnMut(u64) -> Option<u64>> Recover<'a, M> {
    /// `None` if something is not known: a word that was asked for and not there, or a rule.
    pub fn caller(&mut self) -> Option<Caller> {
        let index = self.steps.len().checked_sub(1)?;
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
        let frame_pointer = self.or_default(index, table, &row, layout.frame_pointer, cfa).unwrap_or(self.steps[index].frame_pointer);
        let link_register =
            layout.link_register.filter(|_| row.is_signal).and_then(|link| self.or_default(index, table, &row, link, cfa)?);
        Some(Caller::Found { avma, is_after: !row.is_signal, stack_pointer, frame_pointer, link_register, cfa })
    }

    /// What a row says of a register: `None` if nothing, `Some(None)` if it is not known.
    fn or_default(&mut self, index: usize, table: &Table, row: &FullRow, number: u8, cfa: u64) -> Option<Option<u64>> {
        row.register(number.into()).map(|rule| self.saved(index, table, rule, number.into(), cfa))
    }

    /// What a register held in a frame.
    fn register(&mut self, index: usize, number: u16) -> Option<u64> {
        let layout = self.layout();
        let number = u8::try_from(number).ok()?;
        for callee in (0..=index).rev() {
            *self.questions = self.questions.checked_sub(1)?;
            let step = &self.steps[callee];
            if number == layout.stack_pointer {
                return Some(step.stack_pointer);
            } else if number == layout.frame_pointer {
                return step.frame_pointer;
            } else if number == layout.program_counter {
                return Some(self.frames[callee].avma);
            }
            let Some(below) = callee.checked_sub(1) else { break };
            let cfa = Some(self.steps[below].cfa).filter(|cfa| *cfa != 0)?;
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

    /// What a register held in the caller of a frame, by a rule of that frame.
    fn saved(&mut self, index: usize, table: &Table, rule: &RegisterRule<usize>, number: u16, cfa: u64) -> Option<u64> {
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

    fn evaluate(&mut self, index: usize, table: &Table, expression: UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
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

    /// An address or register as wide as the task's are.
    fn truncated(&self, value: u64) -> u64 {
        if self.layout().word_bytes == 4 { value & 0xffff_ffff } else { value }
    }

    fn layout(&self) -> &'static Layout {
        self.registers.architecture().layout()
    }
}
