//! The names of frames: asked of symbols, lines, the kernel's list and what just-in-time compilers write down, and remembered.

use super::library::{Library, MappedFile, Opened};
use super::name::{NamedFrame, Names};
use super::symbols::{Files, Jit, KernelNames, Name, ObjectId, Options, ReadAt, Resolver};
use crate::event::Stack;
use crate::event::frame::{Frame, ImageId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// So many places are remembered with their names.
const KNOWN_MAX: usize = 1 << 16;

/// Who fetches what is no file of a mapping: the live machine.
pub trait Fetch {
    /// /proc/kallsyms
    fn kernel(&mut self) -> io::Result<Vec<u8>>;
    /// What a process's just-in-time compiler writes into /tmp/perf-PID.map.
    fn perf_map(&mut self, pid: i32) -> Option<Box<dyn ReadAt>>;
    /// The same of a file jit-PID.dump that it has mapped.
    fn jitdump(&mut self, pid: i32, path: &[u8]) -> Option<Box<dyn ReadAt>>;
}

/// What of a frame is to be told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub lines: bool,
    pub inlined: bool,
}

/// All names.
pub struct Naming<F> {
    wanted: Wanted,
    state: RefCell<State<F>>,
}

struct State<F> {
    resolver: Resolver<F>,
    fetch: Box<dyn Fetch>,
    objects: FxHashMap<ImageId, Option<ObjectId>>,
    known: FxHashMap<(ImageId, u64), Arc<[Known]>>,
    kernel: KernelNames,
    jits: FxHashMap<i32, Jit>,
    /// Processes whose jit-PID.dump was looked for.
    dumps: FxHashSet<i32>,
}

/// One function at a place: the innermost inlined one first.
#[derive(Debug)]
struct Known {
    function: Option<Box<[u8]>>,
    line: Option<(Box<[u8]>, u32)>,
}

/// Names by a run's library of files.
pub struct Named<'a, F> {
    pub naming: &'a Naming<F>,
    /// `None` where no stacks are taken.
    pub library: Option<&'a Library>,
}

impl<F: Files> Naming<F> {
    pub fn new(files: F, options: Options, fetch: Box<dyn Fetch>, wanted: Wanted) -> Naming<F> {
        let state = State {
            resolver: Resolver::new(files, options),
            fetch,
            objects: FxHashMap::default(),
            known: FxHashMap::default(),
            kernel: KernelNames::default(),
            jits: FxHashMap::default(),
            dumps: FxHashSet::default(),
        };
        Naming { wanted, state: RefCell::new(state) }
    }

    /// Who opens files.
    pub fn files(&self) -> F
    where
        F: Clone,
    {
        self.state.borrow().resolver.files().clone()
    }

    /// Waits for symbols that are on their way, but not beyond a moment; names that were missing are asked again.
    pub fn wait(&self, until: Instant) {
        self.state.borrow_mut().resolver.wait(until);
    }

    /// Symbols are on their way.
    pub fn is_waiting(&self) -> bool {
        self.state.borrow().resolver.is_waiting()
    }

    /// Why some names are missing, once.
    pub fn trouble(&self) -> Option<String> {
        self.state.borrow_mut().kernel.take_problem()
    }

    /// The process is gone, and its number may be given again.
    pub fn end(&self, pid: i32) {
        let state = &mut *self.state.borrow_mut();
        state.jits.remove(&pid);
        state.dumps.remove(&pid);
    }
}

impl<F: Files> Names for Named<'_, F> {
    fn frames(&self, pid: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame)) {
        let state = &mut *self.naming.state.borrow_mut();
        for (at, frame) in stack.frames.iter().enumerate() {
            if at < stack.kernel {
                state.kernel_frame(frame, each);
                continue;
            }
            match frame.image.and_then(|id| Some((id, self.library?.file(id)?))) {
                Some((id, opened)) => state.mapped_frame(self.naming.wanted, id, opened, frame, each),
                None => state.made_frame(pid, self.library.and_then(|library| library.jitdump(pid)), frame, each),
            }
        }
    }

    fn function(&self, pid: i32, frame: &Frame) -> Option<(Box<[u8]>, u64)> {
        let state = &mut *self.naming.state.borrow_mut();
        match frame.image.and_then(|id| Some((id, self.library?.file(id)?))) {
            Some((id, opened)) => state.mapped_function(id, opened, frame),
            None => {
                let dump = self.library.and_then(|library| library.jitdump(pid));
                state.made(pid, dump, frame).map(|(name, offset)| behind(name, offset, frame))
            }
        }
    }

    fn kernel(&self, address: u64) -> Option<(Box<[u8]>, u64)> {
        self.naming.state.borrow_mut().kernel(address)
    }
}

impl<F: Files> State<F> {
    fn kernel(&mut self, address: u64) -> Option<(Box<[u8]>, u64)> {
        let found = self.kernel.at(address, Instant::now(), || self.fetch.kernel())?;
        Some((found.name.into(), found.offset))
    }

    fn kernel_frame(&mut self, frame: &Frame, each: &mut dyn FnMut(NamedFrame)) {
        let found = self.kernel.at(frame.lookup_avma(), Instant::now(), || self.fetch.kernel());
        let module = found.as_ref().and_then(|found| found.module).map(|module| [b"[", module, b"]"].concat());
        each(NamedFrame {
            function: found.as_ref().map(|found| found.name),
            file: Some(module.as_deref().unwrap_or(b"[kernel]")),
            address: frame.avma,
            line: None,
            kernel: true,
        });
    }

    fn mapped_frame(
        &mut self,
        wanted: Wanted,
        id: ImageId,
        file: &(MappedFile, Option<Opened>),
        frame: &Frame,
        each: &mut dyn FnMut(NamedFrame),
    ) {
        let place = (id, frame.lookup_svma());
        let known = match self.known.get(&place) {
            Some(known) => Arc::clone(known),
            None => {
                let (known, lasting) = self.look_up(wanted, id, file, frame.lookup_svma());
                let known: Arc<[Known]> = known.into();
                if lasting {
                    if self.known.len() == KNOWN_MAX {
                        self.known.clear();
                    }
                    self.known.insert(place, Arc::clone(&known));
                }
                known
            }
        };
        for one in known.iter() {
            each(NamedFrame {
                function: one.function.as_deref(),
                file: Some(&file.0.path),
                address: frame.svma,
                line: one.line.as_ref().map(|(file, line)| (&**file, *line)),
                kernel: false,
            });
        }
    }

    /// The functions at a place of a file, and whether that is all that will ever be known of it.
    fn look_up(&mut self, wanted: Wanted, id: ImageId, (_, opened): &(MappedFile, Option<Opened>), svma: u64) -> (Vec<Known>, bool) {
        let object = *self.objects.entry(id).or_insert_with(|| object(&mut self.resolver, opened.as_ref()?));
        let Some(object) = object else { return (vec![Known { function: None, line: None }], true) };
        let mut all: Vec<Known> = Vec::new();
        if wanted.lines || wanted.inlined {
            let frames = self.resolver.lines(object, svma).iter().map(|frame| Known {
                function: frame.function.as_deref().map(|name| name.as_bytes().into()),
                line: frame.file.as_deref().zip(frame.line).filter(|_| wanted.lines).map(|(file, line)| (file.as_bytes().into(), line)),
            });
            all.extend(frames);
            if !wanted.inlined && all.len() > 1 {
                // Of the function whose code it is, the line that runs is that of the innermost.
                all.truncate(1);
                all[0].function = None;
            }
        }
        if all.is_empty() {
            all.push(Known { function: None, line: None });
        }
        let outermost = all.len() - 1;
        let lasting = match self.resolver.resolve(object, svma) {
            Name::Symbol { name, .. } => {
                all[outermost].function = Some(name.into());
                true
            }
            Name::Unknown => true,
            Name::NotYet => false,
        };
        (all, lasting)
    }

    fn mapped_function(&mut self, id: ImageId, (_, opened): &(MappedFile, Option<Opened>), frame: &Frame) -> Option<(Box<[u8]>, u64)> {
        let object = (*self.objects.entry(id).or_insert_with(|| object(&mut self.resolver, opened.as_ref()?)))?;
        match self.resolver.resolve(object, frame.lookup_svma()) {
            Name::Symbol { name, offset } => Some(behind(name, offset, frame)),
            Name::Unknown | Name::NotYet => None,
        }
    }

    fn made_frame(&mut self, pid: i32, dump: Option<&[u8]>, frame: &Frame, each: &mut dyn FnMut(NamedFrame)) {
        let function = self.made(pid, dump, frame).map(|(name, _)| name);
        let file = function.is_some().then_some(&b"[jit]"[..]);
        each(NamedFrame { function, file, address: frame.avma, line: None, kernel: false });
    }

    /// Code that is no file's: a just-in-time compiler's, mostly.
    fn made(&mut self, pid: i32, dump: Option<&[u8]>, frame: &Frame) -> Option<(&[u8], u64)> {
        let jit = self.jits.entry(pid).or_default();
        if let Some(path) = dump.filter(|_| self.dumps.insert(pid))
            && let Some(file) = self.fetch.jitdump(pid, path)
        {
            jit.set_dump(file);
        }
        let found = jit.at(frame.lookup_avma(), Instant::now(), || self.fetch.perf_map(pid))?;
        Some((found.name, found.offset))
    }
}

/// A function that was looked up by the address before the one at which it goes on, or by that.
fn behind(name: &[u8], offset: u64, frame: &Frame) -> (Box<[u8]>, u64) {
    (name.into(), offset + u64::from(frame.is_after))
}

/// The resolver's number for a file.
fn object<F: Files>(resolver: &mut Resolver<F>, opened: &Opened) -> Option<ObjectId> {
    match &opened.file {
        Some((identity, origin)) => resolver.object(*identity, origin.clone(), Box::new(opened.clone())).ok(),
        None => {
            let mut image = vec![0; usize::try_from(opened.size()).ok()?];
            opened.read_at(0, &mut image).ok()?;
            resolver.image(image).ok()
        }
    }
}
