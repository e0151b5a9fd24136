//! From registers and a piece of stack to frames.
//!
//! One [`Unwinder`] serves all processes. It keeps nothing of a process, so a fork, an exec or a new mapping concerns the process's [`AddressSpace`] alone.

use crate::stack::frame::{End, Frame, Unwound};
use crate::stack::frame_pointer::{self, Absent};
use crate::stack::recover::{Caller, QUESTIONS_MAX, Recover, Step};
use crate::stack::registers::{Layout, Registers};
use crate::stack::rule::{Base, Rule};
use crate::stack::rule_cache::RuleCache;
use crate::stack::space::AddressSpace;

/// What is further from the sampled stack pointer is not on the same stack.
const STACK_BYTES_MAX: u64 = 1 << 30;

/// Where the sampled program counter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// Behind an instruction that runs: every system call's, entered or about to return.
    After,
    /// At the instruction that comes next: an interrupt, a fault, the first instruction after execve or a return from a signal.
    At,
}

pub struct Unwinder {
    cache: RuleCache,
    /// Of the present stack.
    steps: Vec<Step>,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self { cache: RuleCache::new(), steps: Vec::new() }
    }
}

impl Unwinder {
    /// Appends the frames of a stack, the sampled one first, at most `frames_max`.
    ///
    /// `read_word` gives the word (of the task: 4 bytes in a 32-bit program, else 8) at an address of the dumped stack, or of other memory that did not change since.
    pub fn unwind(
        &mut self,
        registers: &Registers,
        sampled: Sampled,
        space: &AddressSpace,
        read_word: impl FnMut(u64) -> Option<u64>,
        frames_max: usize,
        frames: &mut Vec<Frame>,
    ) -> Unwound {
        let layout = registers.architecture().layout();
        let (Some(avma), Some(stack_pointer)) = (registers.program_counter(), registers.stack_pointer()) else {
            return Unwound { end: End::NoRegisters, stack_bytes: 0 };
        };
        self.steps.clear();
        let step = Step {
            avma: avma & layout.code_address_mask,
            is_after: sampled == Sampled::After,
            stack_pointer,
            frame_pointer: registers.get(layout.frame_pointer),
            link_register: layout.link_register.and_then(|link| registers.get(link)),
            mapping: None,
            cfa: 0,
        };
        let memory = Memory { read_word, stack_pointer, word_bytes: u64::from(layout.word_bytes), stack_bytes: 0, missing: None };
        let mut walk = Walk {
            cache: &mut self.cache,
            steps: &mut self.steps,
            registers,
            layout,
            space,
            memory,
            hint: 0,
            in_chain: false,
            questions: QUESTIONS_MAX,
        };
        let end = walk.run(step, frames_max, frames);
        walk.unwound(end)
    }
}

/// One unwinding.
struct Walk<'a, F> {
    cache: &'a mut RuleCache,
    steps: &'a mut Vec<Step>,
    registers: &'a Registers,
    layout: &'static Layout,
    space: &'a AddressSpace,
    memory: Memory<F>,
    /// The mapping that was found last.
    hint: usize,
    /// The frame pointer is one that a frame without tables had saved.
    in_chain: bool,
    questions: u32,
}

impl<F: FnMut(u64) -> Option<u64>> Walk<'_, F> {
    fn run(&mut self, mut step: Step, frames_max: usize, frames: &mut Vec<Frame>) -> End {
        for _ in 0..frames_max {
            step.mapping = self.space.find(step.lookup_avma(), &mut self.hint);
            frames.push(self.space.frame_in(step.mapping, step.avma, step.is_after));
            step = match self.leave(step) {
                Ok(caller) => caller,
                Err(end) => return end,
            };
        }
        End::Limit
    }

    /// The frame's caller.
    #[inline]
    fn leave(&mut self, mut step: Step) -> Result<Step, End> {
        let Some(index) = step.mapping else { return Err(End::Unmapped { avma: step.avma }) };
        let mapping = &self.space.mappings()[index];
        let image = mapping.image.as_deref().filter(|image| image.architecture() == self.registers.architecture());
        let relative = mapping.relative(step.lookup_avma());
        let rule = image.zip(relative).map_or(Rule::Unknown, |(image, relative)| self.cache.rule(image, relative));
        let caller = match rule {
            Rule::Plain { base, cfa, return_address, frame_pointer } => {
                let word = i64::from(self.layout.word_bytes);
                let base = match base {
                    Base::StackPointer => Some(step.stack_pointer),
                    Base::FramePointer => step.frame_pointer,
                };
                step.cfa = base.ok_or(End::NoRule { avma: step.avma })?.wrapping_add_signed(i64::from(cfa) * word);
                let slot = |words: i64| step.cfa.wrapping_add_signed(words * word);
                let avma = match return_address.words() {
                    Some(words) => self.memory.read(slot(words)).ok_or(End::Truncated)?,
                    None => step.link_register.ok_or(End::NoRule { avma: step.avma })?,
                };
                let is_leaf = return_address.words().is_none();
                if step.cfa < step.stack_pointer || (step.cfa == step.stack_pointer && !is_leaf) {
                    return Err(End::NoProgress { avma: step.avma });
                }
                let frame_pointer = match frame_pointer.words() {
                    Some(words) => self.memory.read(slot(words)),
                    None => step.frame_pointer,
                };
                self.in_chain = false;
                Step { avma, is_after: true, stack_pointer: step.cfa, frame_pointer, link_register: None, mapping: None, cfa: 0 }
            }
            Rule::Root => return Err(End::Root),
            Rule::Full => return self.leave_by_full_row(step),
            Rule::Unknown => return self.leave_by_frame_pointer(step),
        };
        self.steps.push(step);
        self.arrived(caller)
    }

    fn leave_by_full_row(&mut self, step: Step) -> Result<Step, End> {
        self.steps.push(step);
        self.memory.missing = None;
        let memory = &mut self.memory;
        let mut read = |address| memory.read(address);
        let recover = &mut Recover {
            registers: self.registers,
            space: self.space,
            steps: self.steps,
            context: self.cache.context(),
            memory: &mut read,
            questions: &mut self.questions,
            nested: 0,
        };
        let caller = recover.caller();
        match caller {
            Some(Caller::Found { avma, is_after, stack_pointer, frame_pointer, link_register, cfa }) => {
                if let Some(left) = self.steps.last_mut() {
                    left.cfa = cfa;
                }
                self.in_chain = false;
                self.arrived(Step { avma, is_after, stack_pointer, frame_pointer, link_register, mapping: None, cfa: 0 })
            }
            Some(Caller::Root) => Err(End::Root),
            None if self.memory.missing.is_some() => Err(End::Truncated),
            None => Err(End::NoRule { avma: step.avma }),
        }
    }

    fn leave_by_frame_pointer(&mut self, step: Step) -> Result<Step, End> {
        self.steps.push(step);
        let Some(frame_pointer) = step.frame_pointer else { return Err(self.no_rule(step)) };
        let memory = &mut self.memory;
        let mut read = |address| memory.read(address);
        match frame_pointer::caller(self.layout, self.space, (step.stack_pointer, frame_pointer, self.in_chain), &mut read) {
            Ok(frame_pointer::Caller { avma, stack_pointer, frame_pointer }) => {
                self.in_chain = true;
                self.arrived(Step {
                    avma,
                    is_after: true,
                    stack_pointer,
                    frame_pointer: Some(frame_pointer),
                    link_register: None,
                    mapping: None,
                    cfa: 0,
                })
            }
            Err(Absent::End) => Err(End::Root),
            Err(Absent::NoFrame) => Err(self.no_rule(step)),
            Err(Absent::NoWord) => Err(End::Truncated),
        }
    }

    fn no_rule(&self, step: Step) -> End {
        let frame = self.space.frame_in(step.mapping, step.avma, step.is_after);
        let image = step.mapping.and_then(|index| self.space.mappings()[index].image.as_ref());
        if image.is_some_and(|image| image.is_entry(frame.svma)) { End::Root } else { End::NoRule { avma: step.avma } }
    }

    /// A caller as it is to be looked at.
    #[inline]
    fn arrived(&self, mut caller: Step) -> Result<Step, End> {
        caller.avma &= self.layout.code_address_mask;
        if caller.avma == 0 { Err(End::Root) } else { Ok(caller) }
    }

    fn unwound(&self, end: End) -> Unwound {
        match (end, self.memory.missing) {
            (End::Truncated, Some(address)) => match self.memory.distance(address) {
                Some(stack_bytes) => Unwound { end, stack_bytes },
                None => Unwound { end: End::OtherStack { address }, stack_bytes: self.memory.stack_bytes },
            },
            _ => Unwound { end, stack_bytes: self.memory.stack_bytes },
        }
    }
}

/// The task's memory, and how much of its stack was looked at.
struct Memory<F> {
    read_word: F,
    /// The sampled one.
    stack_pointer: u64,
    word_bytes: u64,
    stack_bytes: u64,
    /// The word that was asked for last and not there.
    missing: Option<u64>,
}

impl<F: FnMut(u64) -> Option<u64>> Memory<F> {
    #[inline]
    fn read(&mut self, address: u64) -> Option<u64> {
        let Some(word) = (self.read_word)(address) else {
            self.missing = Some(address);
            return None;
        };
        if let Some(distance) = self.distance(address) {
            self.stack_bytes = self.stack_bytes.max(distance);
        }
        Some(word)
    }
}

impl<F> Memory<F> {
    /// From the sampled stack pointer to the end of a word, if they can be on one stack.
    #[inline]
    fn distance(&self, address: u64) -> Option<u64> {
        let below = address.wrapping_sub(self.stack_pointer);
        (below < STACK_BYTES_MAX).then(|| below + self.word_bytes)
    }
}

#[cfg(test)]
mod tests;
