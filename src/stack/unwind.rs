//! From registers and a piece of stack to frames.
//!
//! One [`Unwinder`] serves all processes. It keeps nothing of a process, so a fork, an exec or a new mapping concerns the process's [`AddressSpace`] alone.

use crate::event::frame::{End, Frame};
use crate::stack::frame_pointer::{self, Absent};
use crate::stack::recover::{Caller, QUESTIONS_MAX, Recover, Step};
use crate::stack::registers::{Layout, Registers};
use crate::stack::rule::{Base, Rule, Slot};
use crate::stack::rule_cache::RuleCache;
use crate::stack::signal_frame;
use crate::stack::space::{AddressSpace, Mapping};

/// How an unwinding went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwound {
    pub end: End,
    /// How many bytes of stack, from the sampled stack pointer on, were read; if the end is [`End::Truncated`], how many it takes to go one frame further.
    pub stack_bytes: u64,
}

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
        let cursor = Cursor {
            avma: avma & layout.code_address_mask,
            is_after: sampled == Sampled::After,
            stack_pointer,
            frame_pointer: registers.get(layout.frame_pointer),
            link_register: layout.link_register.and_then(|link| registers.get(link)),
        };
        let memory = Memory { read_word, stack_pointer, word_bytes: u64::from(layout.word_bytes), stack_bytes: 0, missing: None };
        self.steps.clear();
        let first = frames.len();
        let Self { cache, steps } = self;
        let mut walk =
            Walk { cache, steps, frames, first, registers, layout, space, memory, hint: 0, in_chain: false, questions: QUESTIONS_MAX };
        let end = walk.run(cursor, frames_max);
        walk.unwound(end)
    }
}

/// A frame that was come to.
#[derive(Clone, Copy)]
struct Cursor {
    avma: u64,
    /// As in [`Frame`].
    is_after: bool,
    stack_pointer: u64,
    frame_pointer: Option<u64>,
    /// Of an interrupted function only: others have saved it.
    link_register: Option<u64>,
}

/// One unwinding.
struct Walk<'a, F> {
    cache: &'a mut RuleCache,
    /// One for each frame.
    steps: &'a mut Vec<Step>,
    frames: &'a mut Vec<Frame>,
    /// Index of the sampled one.
    first: usize,
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
    fn run(&mut self, mut cursor: Cursor, frames_max: usize) -> End {
        for _ in 0..frames_max {
            if cursor.is_after && self.space.is_return_probe(cursor.avma) {
                return End::ReturnProbe;
            }
            let mut lookup = cursor.avma.wrapping_sub(u64::from(cursor.is_after));
            let mut found = self.space.find(lookup, &mut self.hint);
            if found.is_none() && cursor.is_after {
                // Nothing was called at the start of a mapping: a signal's handler returns to it.
                cursor.is_after = false;
                lookup = cursor.avma;
                found = self.space.find(lookup, &mut self.hint);
            }
            let Some(index) = found else {
                self.frames.push(Frame { avma: cursor.avma, svma: cursor.avma, image: None, is_after: false });
                return End::Unmapped { avma: cursor.avma };
            };
            let mapping = &self.space.mappings()[index];
            self.frames.push(mapping.frame(cursor.avma, cursor.is_after));
            let rule = mapping.relative(lookup).map_or(Rule::Unknown, |relative| self.cache.rule(mapping, relative));
            self.steps.push(Step { stack_pointer: cursor.stack_pointer, frame_pointer: cursor.frame_pointer, cfa: 0 });
            let caller = match rule {
                Rule::Plain { base, cfa, return_address, frame_pointer } => {
                    self.by_plain_rule(&cursor, base, cfa, return_address, frame_pointer)
                }
                Rule::Root => return End::Root,
                Rule::Full => self.by_full_row(&cursor),
                Rule::Unknown => self.without_rule(&cursor, mapping),
            };
            match caller {
                Ok(caller) => {
                    if !caller.is_after {
                        self.was_not_called();
                    }
                    cursor = Cursor { avma: caller.avma & self.layout.code_address_mask, ..caller };
                }
                Err(end) => return end,
            }
            if cursor.avma == 0 {
                return End::Root;
            }
        }
        End::Limit
    }

    #[inline]
    fn by_plain_rule(&mut self, cursor: &Cursor, base: Base, cfa: i16, return_address: Slot, frame_pointer: Slot) -> Result<Cursor, End> {
        let word = i64::from(self.layout.word_bytes);
        let base = match base {
            Base::StackPointer => cursor.stack_pointer,
            Base::FramePointer => cursor.frame_pointer.ok_or_else(|| self.no_rule(cursor.avma))?,
        };
        let cfa = base.wrapping_add_signed(i64::from(cfa) * word);
        let (avma, is_leaf) = match return_address.words() {
            Some(words) => (self.memory.read(cfa.wrapping_add_signed(words * word)).ok_or(End::Truncated)?, false),
            None => (cursor.link_register.ok_or(End::NoRule { avma: cursor.avma })?, true),
        };
        if cfa < cursor.stack_pointer || (cfa == cursor.stack_pointer && !is_leaf) {
            return Err(End::NoProgress { avma: cursor.avma });
        }
        // One that cannot be read may never be needed.
        let frame_pointer = match frame_pointer.words() {
            Some(words) => self.memory.read(cfa.wrapping_add_signed(words * word)),
            None => cursor.frame_pointer,
        };
        self.left(cfa);
        Ok(Cursor { avma, is_after: true, stack_pointer: cfa, frame_pointer, link_register: None })
    }

    #[cold]
    fn by_full_row(&mut self, cursor: &Cursor) -> Result<Cursor, End> {
        self.memory.missing = None;
        let memory = &mut self.memory;
        let mut read = |address| memory.read(address);
        let mut recover = Recover {
            registers: self.registers,
            space: self.space,
            frames: &self.frames[self.first..],
            steps: self.steps,
            link_register: cursor.link_register,
            context: self.cache.context(),
            memory: &mut read,
            questions: &mut self.questions,
            nested: 0,
        };
        match recover.caller() {
            Some(Caller::Found { avma, is_after, stack_pointer, frame_pointer, link_register, cfa }) => {
                self.left(cfa);
                Ok(Cursor { avma, is_after, stack_pointer, frame_pointer, link_register })
            }
            Some(Caller::Root) => Err(End::Root),
            None if self.memory.missing.is_some() => Err(End::Truncated),
            None => Err(self.no_rule(cursor.avma)),
        }
    }

    #[cold]
    fn without_rule(&mut self, cursor: &Cursor, mapping: &Mapping) -> Result<Cursor, End> {
        if self.space.is_copied_instruction(cursor.avma) {
            return Err(End::NoRule { avma: cursor.avma });
        }
        let memory = &mut self.memory;
        let mut read = |address| memory.read(address);
        if let Some(found) = signal_frame::interrupted(self.registers.architecture(), self.space, cursor.stack_pointer, &mut read) {
            let signal_frame::Interrupted { avma, stack_pointer, frame_pointer, link_register } = found;
            self.in_chain = false;
            return Ok(Cursor { avma, is_after: false, stack_pointer, frame_pointer: Some(frame_pointer), link_register });
        }
        let found = match cursor.frame_pointer {
            Some(frame_pointer) => {
                frame_pointer::caller(self.layout, self.space, (cursor.stack_pointer, frame_pointer, self.in_chain), &mut read)
            }
            None => Err(Absent::NoFrame),
        };
        match found {
            Ok(frame_pointer::Caller { avma, stack_pointer, frame_pointer }) => {
                self.in_chain = true;
                Ok(Cursor { avma, is_after: true, stack_pointer, frame_pointer: Some(frame_pointer), link_register: None })
            }
            Err(Absent::End) => Err(End::Root),
            Err(Absent::NoWord) => Err(End::Truncated),
            Err(Absent::NoFrame) => {
                let svma = mapping.frame(cursor.avma, cursor.is_after).svma;
                Err(match mapping.image() {
                    Some(image) if image.is_entry(svma) => End::Root,
                    Some(image) if image.is_unread() => End::Unread { avma: cursor.avma },
                    _ => self.no_rule(cursor.avma),
                })
            }
        }
    }

    /// Why a frame cannot be left: what is known of the registers may be too little.
    #[cold]
    fn no_rule(&self, avma: u64) -> End {
        if self.registers.are_pointers_alone() { End::NoRegister { avma } } else { End::NoRule { avma } }
    }

    /// The frame was left by a rule.
    #[inline]
    fn left(&mut self, cfa: u64) {
        self.in_chain = false;
        if let Some(step) = self.steps.last_mut() {
            step.cfa = cfa;
        }
    }

    /// The frame is what a signal's handler returns to. No instruction before it is one of its function's, though tables cover that, so that who looks there finds them.
    #[cold]
    fn was_not_called(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.is_after = false;
        }
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
