//! Call chains that come with records, resolved by the process's mappings at that time.

use super::stream_properties::returns;
use super::{Follower, RecordContext};
use crate::beauty::lookup;
use crate::event::frame::{Frame, StackEnd};
use crate::event::synthesized::StackMemory;
use crate::event::{Abi, Stack};
use crate::session::Session;
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

/// The maximum number of frames without a limit of the user's.
const FRAMES_MAX: usize = 1024;

/// The state of the unwinder.
pub struct Stacks {
    architecture: Architecture,
    /// By event: the fields of its samples.
    layouts: Vec<u64>,
    /// The maximum number of frames of calls: of all, and of those with a limit of their own, by the index of the row.
    most: Option<u16>,
    most_of_calls: FxHashMap<u16, u16>,
    most_of_events: Vec<Option<u16>>,
    unwinder: Unwinder,
    /// The images of the mapped files. The names of frames are looked up in them too.
    pub library: Library,
    spaces: FxHashMap<i32, CachedSpace>,
    frames: Vec<Frame>,
    /// Every executable mapping was recorded: an address outside of them is not code.
    knows_all_code: bool,
}

/// A process's address space, and the mappings that it was built from.
struct CachedSpace {
    areas: Arc<Areas>,
    space: Arc<AddressSpace>,
}

impl Stacks {
    /// Creates the state. Returns `None` if no event of the session has call chains or return addresses, or if the
    /// architecture is not supported.
    pub fn new(session: &Session, open: Box<dyn Open>) -> Option<Stacks> {
        let layouts: Vec<u64> = session.events.events.iter().map(|event| event.sample_type & field::STACK).collect();
        let wanted = layouts.iter().any(|layout| *layout != 0) || session.events.events.iter().any(|event| returns(event).is_some());
        let architecture = wanted.then(|| Architecture::of(session.abi))?;
        let most = &session.frames_max;
        let of_calls = most.calls.iter().filter_map(|(name, most)| Some((lookup::index_by_name(name)?, *most)));
        Some(Stacks {
            architecture,
            layouts,
            most: most.general,
            most_of_calls: of_calls.collect(),
            most_of_events: session.events.events.iter().map(|event| most.of_event(&event.terms)).collect(),
            unwinder: Unwinder::default(),
            library: Library::new(open, architecture),
            spaces: FxHashMap::default(),
            frames: Vec::new(),
            knows_all_code: true,
        })
    }

    /// Returns the maximum number of frames of a call, if the user limits it.
    fn most_of_call(&self, abi: Abi, nr: i64) -> Option<u16> {
        let own = if self.most_of_calls.is_empty() { None } else { lookup::index(abi, nr).and_then(|row| self.most_of_calls.get(&row)) };
        own.copied().or(self.most)
    }

    /// Returns the call chain of a sample of this process.
    fn of(&mut self, maps: &Maps, pid: i32, sample: &Sample, sampled: Sampled, most: usize) -> Option<Arc<Stack>> {
        let layout = self.layouts.get(usize::from(sample.event.0)).copied().unwrap_or_default();
        let dump = Dump::parse(sample.dump, layout, self.architecture.layout().sample_mask);
        if sample.chain.is_empty() && dump.is_none() {
            return None;
        }
        Some(self.stack(maps, pid, (sample.chain, dump), sampled, most))
    }

    /// Builds a call chain from the kernel's chain of addresses and a dump of registers and stack.
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
                stack.end = Some(StackEnd::NoCode { avma: address });
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
            let end = match unwound.end {
                StackEnd::Truncated if dump.is_cut => StackEnd::StackNotRead,
                end => end,
            };
            (stack.end, stack.copied) = (Some(end), dump.stack.len());
        }
        stack.frames = self.frames.as_slice().into();
        Arc::new(stack)
    }

    /// Returns the frame that a function returned to.
    pub fn frame(&mut self, maps: &Maps, pid: i32, address: u64) -> Frame {
        self.space(maps, pid).frame(address, true)
    }

    /// Returns the process's address space with its current mappings.
    fn space(&mut self, maps: &Maps, pid: i32) -> Arc<AddressSpace> {
        let Some(areas) = maps.of(pid) else { return Arc::default() };
        match self.spaces.get(&pid) {
            Some(known) if Arc::ptr_eq(&known.areas, areas) => Arc::clone(&known.space),
            _ => {
                let space = Arc::new(self.library.space(pid, areas));
                self.spaces.insert(pid, CachedSpace { areas: Arc::clone(areas), space: Arc::clone(&space) });
                space
            }
        }
    }

    /// Drops the state of a process whose memory is gone.
    pub fn end(&mut self, pid: i32) {
        self.spaces.remove(&pid);
        self.library.end(pid);
    }
}

/// Decodes the registers; a 32-bit task on a 64-bit machine has its own register layout.
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
    /// Returns the image files that stacks have been unwound through.
    pub fn library(&self) -> Option<&Library> {
        self.stacks.as_ref().map(|stacks| &stacks.library)
    }

    /// Returns the processes whose memory has gone away since the last call.
    pub fn gone(&mut self) -> Vec<i32> {
        self.stacks.as_mut().map(|stacks| stacks.library.take_gone()).unwrap_or_default()
    }

    /// Drops the mappings of a process that has ended, or executes another program.
    pub(super) fn forget_maps(&mut self, pid: i32) {
        self.maps.clear(pid);
        if let Some(stacks) = &mut self.stacks {
            stacks.end(pid);
        }
    }

    /// Returns the call chain of a call, if its record has one.
    #[inline]
    pub(super) fn stack_of_call(&mut self, context: RecordContext, sample: &Sample, abi: Abi, nr: i64) -> Option<Arc<Stack>> {
        let most = self.stacks.as_ref()?.most_of_call(abi, nr);
        self.stack_of(context, sample, Sampled::After, most)
    }

    /// Returns the call chain of a call in flight, from registers and stack that were copied from its task.
    pub(super) fn stack_in_flight(&mut self, context: RecordContext, memory: &StackMemory, abi: Abi, nr: i64) -> Option<Arc<Stack>> {
        let stacks = self.stacks.as_mut()?;
        let most = stacks.most_of_call(abi, nr).map_or(FRAMES_MAX, usize::from);
        Some(stacks.stack(&self.maps, context.task.pid, (&[], Some(Dump::from(memory))), Sampled::After, most))
    }

    /// Returns the call chain of another event.
    pub(super) fn stack_of_event(&mut self, context: RecordContext, sample: &Sample) -> Option<Arc<Stack>> {
        let most = self.stacks.as_ref()?.most_of_events.get(usize::from(sample.event.0)).copied().flatten();
        self.stack_of(context, sample, Sampled::At, most)
    }

    #[cold]
    fn stack_of(&mut self, context: RecordContext, sample: &Sample, sampled: Sampled, most: Option<u16>) -> Option<Arc<Stack>> {
        let stacks = self.stacks.as_mut()?;
        // The command's first execve is made by rtrace's own code.
        if self.command.runs_rtrace_code(context.task) {
            return None;
        }
        stacks.knows_all_code = !self.gaps.was_any();
        stacks.of(&self.maps, context.task.pid, sample, sampled, most.map_or(FRAMES_MAX, usize::from))
    }
}
