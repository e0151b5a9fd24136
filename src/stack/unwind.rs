//! The unwinder: it turns registers and a part of the stack into frames.
//!
//! One [`Unwinder`] serves all processes. It keeps no state of a process, so a fork, an exec or a new mapping changes
//! only the process's [`AddressSpace`].

use crate::event::frame::{Frame, StackEnd};
use crate::stack::frame_pointer::{self, Absent};
use crate::stack::recover::{Caller, FrameState, LOOKUPS_MAX, Recover};
use crate::stack::registers::{Layout, Registers};
use crate::stack::rule::{CfaBase, Rule, Slot};
use crate::stack::rule_cache::RuleCache;
use crate::stack::signal_frame;
use crate::stack::space::{AddressSpace, Mapping};

/// The outcome of one unwinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwound {
    /// Why the stack has no further frames.
    pub end: StackEnd,
    /// The number of bytes of stack that were read, from the sampled stack pointer on. If the end is
    /// [`StackEnd::Truncated`], the number that the next frame needs.
    pub stack_bytes: u64,
}

/// An address further than this from the sampled stack pointer is not on the same stack.
const STACK_BYTES_MAX: u64 = 1 << 30;

/// The position of the sampled program counter relative to the instruction that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// Behind the instruction that runs: at every system call, at its entry and its exit.
    After,
    /// At the instruction that runs next: at an interrupt, a fault, and the first instruction after execve or a return
    /// from a signal.
    At,
}

/// Unwinds stacks of all processes, with a cache of unwind rules.
pub struct Unwinder {
    cache: RuleCache,
    /// The states of the frames of the present stack.
    states: Vec<FrameState>,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self { cache: RuleCache::new(), states: Vec::new() }
    }
}

impl Unwinder {
    /// Appends the frames of a stack to `frames`, the sampled one first, at most `frames_max`.
    ///
    /// `read_word` returns the task's word (4 bytes in a 32-bit program, else 8) at an address of the dumped stack, or
    /// of other memory that has not changed since the sample.
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
            return Unwound { end: StackEnd::NoRegisters, stack_bytes: 0 };
        };
        let cursor = Cursor {
            avma: avma & layout.code_address_mask,
            is_after: sampled == Sampled::After,
            stack_pointer,
            frame_pointer: registers.get(layout.frame_pointer),
            link_register: layout.link_register.and_then(|link| registers.get(link)),
        };
        let memory = Memory { read_word, stack_pointer, word_bytes: u64::from(layout.word_bytes), stack_bytes: 0, missing: None };
        self.states.clear();
        let first = frames.len();
        let Self { cache, states } = self;
        let mut walk =
            Walk { cache, states, frames, first, registers, layout, space, memory, hint: 0, in_chain: false, lookups: LOOKUPS_MAX };
        let end = walk.run(cursor, frames_max);
        walk.unwound(end)
    }
}

/// The frame that an unwinding has reached: its program counter and registers.
#[derive(Clone, Copy)]
struct Cursor {
    avma: u64,
    /// As in [`Frame`].
    is_after: bool,
    stack_pointer: u64,
    frame_pointer: Option<u64>,
    /// The link register of an interrupted function. Functions that called another one have saved theirs on the stack.
    link_register: Option<u64>,
}

/// One unwinding.
struct Walk<'a, F> {
    cache: &'a mut RuleCache,
    /// One for each frame.
    states: &'a mut Vec<FrameState>,
    frames: &'a mut Vec<Frame>,
    /// Index of the sampled frame.
    first: usize,
    registers: &'a Registers,
    layout: &'static Layout,
    space: &'a AddressSpace,
    memory: Memory<F>,
    /// The index of the mapping that held the previous frame.
    hint: usize,
    /// Whether a frame without tables had saved the present frame pointer.
    in_chain: bool,
    /// As in [`Recover`].
    lookups: u32,
}

impl<F: FnMut(u64) -> Option<u64>> Walk<'_, F> {
    fn run(&mut self, mut cursor: Cursor, frames_max: usize) -> StackEnd {
        for _ in 0..frames_max {
            if cursor.is_after && self.space.is_return_probe(cursor.avma) {
                return StackEnd::ReturnProbe;
            }
            let mut lookup = cursor.avma.wrapping_sub(u64::from(cursor.is_after));
            let mut found = self.space.find(lookup, &mut self.hint);
            if found.is_none() && cursor.is_after {
                // No call instruction precedes the start of a mapping: it is where a signal's handler returns to.
                cursor.is_after = false;
                lookup = cursor.avma;
                found = self.space.find(lookup, &mut self.hint);
            }
            let Some(index) = found else {
                self.frames.push(Frame { avma: cursor.avma, svma: cursor.avma, image: None, is_after: false });
                return StackEnd::Unmapped { avma: cursor.avma };
            };
            let mapping = &self.space.mappings()[index];
            self.frames.push(mapping.frame(cursor.avma, cursor.is_after));
            let rule = mapping.relative(lookup).map_or(Rule::Unknown, |relative| self.cache.rule(mapping, relative));
            self.states.push(FrameState { stack_pointer: cursor.stack_pointer, frame_pointer: cursor.frame_pointer, cfa: 0 });
            let caller = match rule {
                Rule::Plain { base, cfa, return_address, frame_pointer } => {
                    self.by_plain_rule(&cursor, base, cfa, return_address, frame_pointer)
                }
                Rule::Root => return StackEnd::Root,
                Rule::Full => self.by_full_row(&cursor),
                Rule::Unknown => self.without_rule(&cursor, mapping),
            };
            match caller {
                Ok(caller) => {
                    if !caller.is_after {
                        self.mark_not_after_a_call();
                    }
                    cursor = Cursor { avma: caller.avma & self.layout.code_address_mask, ..caller };
                }
                Err(end) => return end,
            }
            if cursor.avma == 0 {
                return StackEnd::Root;
            }
        }
        StackEnd::Limit
    }

    #[inline]
    fn by_plain_rule(
        &mut self,
        cursor: &Cursor,
        base: CfaBase,
        cfa: i16,
        return_address: Slot,
        frame_pointer: Slot,
    ) -> Result<Cursor, StackEnd> {
        let word = i64::from(self.layout.word_bytes);
        let base = match base {
            CfaBase::StackPointer => cursor.stack_pointer,
            CfaBase::FramePointer => cursor.frame_pointer.ok_or_else(|| self.no_rule(cursor.avma))?,
        };
        let cfa = base.wrapping_add_signed(i64::from(cfa) * word);
        let (avma, is_leaf) = match return_address.words() {
            Some(words) => (self.memory.read(cfa.wrapping_add_signed(words * word)).ok_or(StackEnd::Truncated)?, false),
            None => (cursor.link_register.ok_or(StackEnd::NoRule { avma: cursor.avma })?, true),
        };
        if cfa < cursor.stack_pointer || (cfa == cursor.stack_pointer && !is_leaf) {
            return Err(StackEnd::NoProgress { avma: cursor.avma });
        }
        // A frame pointer that cannot be read is no error: no caller may need it.
        let frame_pointer = match frame_pointer.words() {
            Some(words) => self.memory.read(cfa.wrapping_add_signed(words * word)),
            None => cursor.frame_pointer,
        };
        self.record_cfa(cfa);
        Ok(Cursor { avma, is_after: true, stack_pointer: cfa, frame_pointer, link_register: None })
    }

    #[cold]
    fn by_full_row(&mut self, cursor: &Cursor) -> Result<Cursor, StackEnd> {
        self.memory.missing = None;
        let memory = &mut self.memory;
        let mut read = |address| memory.read(address);
        let mut recover = Recover {
            registers: self.registers,
            space: self.space,
            frames: &self.frames[self.first..],
            states: self.states,
            link_register: cursor.link_register,
            context: self.cache.context(),
            memory: &mut read,
            lookups: &mut self.lookups,
            nested: 0,
        };
        match recover.caller() {
            Some(Caller::Frame { avma, is_after, stack_pointer, frame_pointer, link_register, cfa }) => {
                self.record_cfa(cfa);
                Ok(Cursor { avma, is_after, stack_pointer, frame_pointer, link_register })
            }
            Some(Caller::Root) => Err(StackEnd::Root),
            None if self.memory.missing.is_some() => Err(StackEnd::Truncated),
            None => Err(self.no_rule(cursor.avma)),
        }
    }

    #[cold]
    fn without_rule(&mut self, cursor: &Cursor, mapping: &Mapping) -> Result<Cursor, StackEnd> {
        if self.space.is_copied_instruction(cursor.avma) {
            return Err(StackEnd::NoRule { avma: cursor.avma });
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
            Err(Absent::End) => Err(StackEnd::Root),
            // Where no tables could be read, the register may hold anything, unless a frame below has saved it.
            Err(Absent::NoWord) if self.in_chain || !mapping.image().is_some_and(|image| image.is_unread()) => Err(StackEnd::Truncated),
            Err(Absent::NoWord | Absent::NoFrame) => {
                let svma = mapping.frame(cursor.avma, cursor.is_after).svma;
                Err(match mapping.image() {
                    Some(image) if image.is_entry(svma) => StackEnd::Root,
                    Some(image) if image.is_unread() => StackEnd::Unread { avma: cursor.avma },
                    _ => self.no_rule(cursor.avma),
                })
            }
        }
    }

    /// Returns the reason why a frame cannot be left: the file has no rule, or the sample has too few registers.
    #[cold]
    fn no_rule(&self, avma: u64) -> StackEnd {
        if self.registers.are_pointers_alone() { StackEnd::NoRegister { avma } } else { StackEnd::NoRule { avma } }
    }

    /// Records the CFA of the present frame, which a rule of a table computed.
    #[inline]
    fn record_cfa(&mut self, cfa: u64) {
        self.in_chain = false;
        if let Some(state) = self.states.last_mut() {
            state.cfa = cfa;
        }
    }

    /// Marks the present frame as the code that a signal's handler returns to. The byte before its address is no
    /// instruction of that function, although tables cover it, for unwinders that look up the address before a return
    /// address.
    #[cold]
    fn mark_not_after_a_call(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.is_after = false;
        }
    }

    fn unwound(&self, end: StackEnd) -> Unwound {
        match (end, self.memory.missing) {
            (StackEnd::Truncated, Some(address)) => match self.memory.distance(address) {
                Some(stack_bytes) => Unwound { end, stack_bytes },
                None => Unwound { end: StackEnd::OtherStack { address }, stack_bytes: self.memory.stack_bytes },
            },
            _ => Unwound { end, stack_bytes: self.memory.stack_bytes },
        }
    }
}

/// The task's memory, and how much of its stack was read.
struct Memory<F> {
    read_word: F,
    /// The sampled stack pointer.
    stack_pointer: u64,
    word_bytes: u64,
    stack_bytes: u64,
    /// The address of the last word that could not be read.
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
    /// Returns the distance from the sampled stack pointer to the end of a word, if both can be on one stack.
    #[inline]
    fn distance(&self, address: u64) -> Option<u64> {
        let below = address.wrapping_sub(self.stack_pointer);
        (below < STACK_BYTES_MAX).then(|| below + self.word_bytes)
    }
}

#[cfg(test)]
mod tests;
