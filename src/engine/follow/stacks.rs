//! Stacks that come with records: which frames they are, in the process as it was then.

use super::facts::returns;
use super::{Follower, Here};
use crate::beauty::lookup;
use crate::event::frame::{End, Frame};
use crate::event::note::StackMemory;
use crate::event::{Abi, Stack};
use crate::session::{FramesMax, Session};
use crate::source::Sample;
use crate::source::dump::{self, Dump, RegisterAbi, Side};
use crate::source::frame::field;
use crate::stack::library::{Library, Open};
use crate::stack::registers::{Architecture, Registers};
use crate::stack::space::AddressSpace;
use crate::stack::unwind::{Sampled, Unwinder};
use crate::task::maps::{Areas, Maps};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Without a bound of the user's, a stack has no more frames.
const FRAMES_MAX: usize = 1024;

/// What unwinding goes by.
pub struct Stacks {
    architecture: Architecture,
    /// By event: the fields of its samples.
    layouts: Vec<u64>,
    most: FramesMax,
    most_of_events: Vec<Option<u16>>,
    unwinder: Unwinder,
    pub library: Library,
    spaces: FxHashMap<i32, Known>,
    frames: Vec<Frame>,
    /// Every mapping of code was seen: an address outside of all of them is no code.
    knows_all_code: bool,
}

/// A process's code, made of these mappings.
struct Known {
    areas: Arc<Areas>,
    space: Arc<AddressSpace>,
}

impl Stacks {
    /// `None` if no event of the session has stacks or says where functions return to, or they are of an architecture that is not unwound.
    pub fn new(session: &Session, open: Box<dyn Open>) -> Option<Stacks> {
        let layouts: Vec<u64> = session.events.events.iter().map(|event| event.sample_type & field::STACK).collect();
        let wanted = layouts.iter().any(|layout| *layout != 0) || session.events.events.iter().any(|event| returns(event).is_some());
        let architecture = architecture(session.abi).filter(|_| wanted)?;
        let most = session.frames_max.clone();
        Some(Stacks {
            architecture,
            layouts,
            most_of_events: session.events.events.iter().map(|event| most.of_event(&event.terms)).collect(),
            most,
            unwinder: Unwinder::default(),
            library: Library::new(open),
            spaces: FxHashMap::default(),
            frames: Vec::new(),
            knows_all_code: true,
        })
    }

    /// The stack of a sample of this process.
    fn of(&mut self, maps: &Maps, pid: i32, sample: &Sample, sampled: Sampled, most: usize) -> Option<Arc<Stack>> {
        let layout = self.layouts.get(usize::from(sample.event.0)).copied().unwrap_or_default();
        let dump = Dump::parse(sample.dump, layout, self.architecture.layout().sample_mask);
        if sample.chain.is_empty() && dump.is_none() {
            return None;
        }
        Some(self.stack(maps, pid, (sample.chain, dump), sampled, most))
    }

    /// The stack that a chain of addresses and a dump tell of.
    fn stack(&mut self, maps: &Maps, pid: i32, (chain, dump): (&[u8], Option<Dump>), sampled: Sampled, most: usize) -> Arc<Stack> {
        let space = self.space(maps, pid);
        self.frames.clear();
        let mut stack = Stack::default();
        for (side, address) in dump::chain(chain).take(most) {
            let is_first = self.frames.len() == if side == Side::Kernel { 0 } else { stack.kernel };
            let is_after = !is_first || side == Side::User && sampled == Sampled::After;
            let frame = match side {
                Side::Kernel => Frame { avma: address, svma: address, image: None, is_after },
                Side::User => space.frame(address, is_after),
            };
            let is_known = side == Side::Kernel || is_first || !self.knows_all_code || space.mappings().is_empty();
            if !is_known && !space.has_code(frame.lookup_avma()) {
                stack.end = Some(End::NoCode { avma: address });
                break;
            }
            self.frames.push(frame);
            stack.kernel += usize::from(side == Side::Kernel);
        }
        if let Some(dump) = dump {
            let registers = registers(self.architecture, &dump);
            let bottom = registers.stack_pointer().unwrap_or_default();
            let word_bytes = usize::from(registers.architecture().layout().word_bytes);
            let word = |address: u64| word_at(dump.stack, address.checked_sub(bottom)?, word_bytes);
            let unwound = self.unwinder.unwind(&registers, sampled, &space, word, most - self.frames.len(), &mut self.frames);
            (stack.end, stack.copied) = (Some(unwound.end), dump.stack.len());
        }
        stack.frames = self.frames.as_slice().into();
        Arc::new(stack)
    }

    /// What a function returned to.
    pub fn frame(&mut self, maps: &Maps, pid: i32, address: u64) -> Frame {
        self.space(maps, pid).frame(address, true)
    }

    /// The process's code as its mappings are now.
    fn space(&mut self, maps: &Maps, pid: i32) -> Arc<AddressSpace> {
        let Some(areas) = maps.of(pid) else { return Arc::default() };
        match self.spaces.get(&pid) {
            Some(known) if Arc::ptr_eq(&known.areas, areas) => Arc::clone(&known.space),
            _ => {
                let space = Arc::new(self.library.space(pid, areas));
                self.spaces.insert(pid, Known { areas: Arc::clone(areas), space: Arc::clone(&space) });
                space
            }
        }
    }

    /// The memory of the process is gone.
    pub fn end(&mut self, pid: i32) {
        self.spaces.remove(&pid);
        self.library.end(pid);
    }
}

fn architecture(abi: Abi) -> Option<Architecture> {
    match abi {
        Abi::X86_64 | Abi::X32 => Some(Architecture::X86_64),
        Abi::I386 => Some(Architecture::X86),
        Abi::Aarch64 => Some(Architecture::Aarch64),
    }
}

/// A task of 32 bits on a machine of 64 has registers of its own kind.
fn registers(native: Architecture, dump: &Dump) -> Registers {
    let architecture = match (native, dump.abi) {
        (Architecture::X86_64, RegisterAbi::Bits32) => Architecture::X86,
        (native, _) => native,
    };
    Registers::from_sample(architecture, dump.mask, dump.registers)
}

fn word_at(stack: &[u8], offset: u64, bytes: usize) -> Option<u64> {
    let from = stack.get(usize::try_from(offset).ok()?..)?;
    match bytes {
        4 => from.first_chunk().map(|word| u64::from(u32::from_le_bytes(*word))),
        _ => from.first_chunk().map(|word| u64::from_le_bytes(*word)),
    }
}

impl Follower {
    /// The files that stacks lead through.
    pub fn library(&self) -> Option<&Library> {
        self.stacks.as_ref().map(|stacks| &stacks.library)
    }

    /// Processes whose memory is gone since this was asked last.
    pub fn gone(&mut self) -> Vec<i32> {
        self.stacks.as_mut().map(|stacks| stacks.library.take_gone()).unwrap_or_default()
    }

    /// The memory of a process is gone: it ended, or executes another program.
    pub(super) fn forget_maps(&mut self, pid: i32) {
        self.maps.clear(pid);
        if let Some(stacks) = &mut self.stacks {
            stacks.end(pid);
        }
    }

    /// Where a call was made from, if that came with its record.
    #[inline]
    pub(super) fn stack_of_call(&mut self, here: Here, sample: &Sample, abi: Abi, nr: i64) -> Option<Arc<Stack>> {
        let most = self.stacks.as_ref()?.most.of_row(lookup::index(abi, nr));
        self.stack_of(here, sample, Sampled::After, most)
    }

    /// Where a call was made from that has no record yet, by what a look at its task copied.
    pub(super) fn stack_in_flight(&mut self, here: Here, memory: &StackMemory, abi: Abi, nr: i64) -> Option<Arc<Stack>> {
        let stacks = self.stacks.as_mut()?;
        let most = stacks.most.of_row(lookup::index(abi, nr)).map_or(FRAMES_MAX, usize::from);
        Some(stacks.stack(&self.maps, here.task.pid, (&[], Some(Dump::from(memory))), Sampled::After, most))
    }

    /// Where something else happened.
    pub(super) fn stack_of_event(&mut self, here: Here, sample: &Sample) -> Option<Arc<Stack>> {
        let most = self.stacks.as_ref()?.most_of_events.get(usize::from(sample.event.0)).copied().flatten();
        self.stack_of(here, sample, Sampled::At, most)
    }

    #[cold]
    fn stack_of(&mut self, here: Here, sample: &Sample, sampled: Sampled, most: Option<u16>) -> Option<Arc<Stack>> {
        let stacks = self.stacks.as_mut()?;
        // The command's first execve is made by rtrace's own code.
        if self.command.is_still_ours(here.task) {
            return None;
        }
        stacks.knows_all_code = !self.gaps.was_any();
        stacks.of(&self.maps, here.task.pid, sample, sampled, most.map_or(FRAMES_MAX, usize::from))
    }
}
