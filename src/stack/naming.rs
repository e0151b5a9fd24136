//! The names of frames: looked up in symbol tables, line tables, /proc/kallsyms and the files that just-in-time
//! compilers write, and cached.

use super::image::Image;
use super::library::{Library, MappedFile, Opened};
use super::name::{NamedFrame, Names};
use super::symbols::jit::READ_INTERVAL;
use super::symbols::{Files, Jit, KernelNames, Name, ObjectId, Options, ReadAt, Resolver};
use crate::event::Stack;
use crate::event::frame::{Frame, ImageId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The greatest number of code addresses whose names are cached.
const CACHED_MAX: usize = 1 << 16;

/// Reads the sources of names that are not mapped files. The live machine implements it.
pub trait Fetch {
    /// Reads /proc/kallsyms.
    fn kernel(&mut self) -> io::Result<Vec<u8>>;
    /// Opens /tmp/perf-PID.map, which a process's just-in-time compiler writes.
    fn perf_map(&mut self, pid: i32) -> Option<Box<dyn ReadAt>>;
    /// Opens the file jit-PID.dump that a process has mapped, by the path of the mapping.
    fn jitdump(&mut self, pid: i32, path: &[u8]) -> Option<Box<dyn ReadAt>>;
    /// Returns how long not to look again for a perf map, or for new functions while all have names. A recording is
    /// replayed faster than it was made.
    fn pause(&self) -> Duration {
        READ_INTERVAL
    }
}

/// The optional details of a frame that are looked up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Source file and line.
    pub lines: bool,
    /// Inlined functions as frames of their own.
    pub inlined: bool,
}

/// The sources of names, and the cache of the names that were looked up.
pub struct Naming<F> {
    wanted: Wanted,
    state: RefCell<State<F>>,
}

/// The part of [`Naming`] that lookups change.
struct State<F> {
    resolver: Resolver<F>,
    fetch: Box<dyn Fetch>,
    objects: FxHashMap<ImageId, Option<ObjectId>>,
    /// By image and svma: the functions there, the innermost inlined one first.
    cache: FxHashMap<(ImageId, u64), Arc<[NamedFunction]>>,
    kernel: KernelNames,
    jits: FxHashMap<i32, Jit>,
    /// The processes whose jit-PID.dump rtrace has tried to open.
    dumps: FxHashSet<i32>,
}

/// The name and the source line of one function that runs at an address.
#[derive(Debug, Default)]
struct NamedFunction {
    function: Option<Box<[u8]>>,
    /// The distance of the address from the start of the function in bytes; `None` if the function was inlined.
    offset: Option<u64>,
    line: Option<(Box<[u8]>, u32)>,
}

/// The names of frames whose images are in a run's library of files.
pub struct LibraryNames<'a, F> {
    /// The symbols of images, of the kernel and of just-in-time compilers.
    pub naming: &'a Naming<F>,
    /// `None` where no stacks are sampled.
    pub library: Option<&'a Library>,
}

impl<F: Files> Naming<F> {
    pub fn new(files: F, options: Options, fetch: Box<dyn Fetch>, wanted: Wanted) -> Naming<F> {
        let state = State {
            resolver: Resolver::new(files, options),
            fetch,
            objects: FxHashMap::default(),
            cache: FxHashMap::default(),
            kernel: KernelNames::default(),
            jits: FxHashMap::default(),
            dumps: FxHashSet::default(),
        };
        Naming { wanted, state: RefCell::new(state) }
    }

    /// Returns the opener of the files that have symbols.
    pub fn files(&self) -> F
    where
        F: Clone,
    {
        self.state.borrow().resolver.files().clone()
    }

    /// Waits for symbols that are being downloaded, until `until` at most. Names that were missing are then looked up
    /// again.
    pub fn wait(&self, until: Instant) {
        self.state.borrow_mut().resolver.wait(until);
    }

    /// Whether symbols are being downloaded.
    pub fn is_waiting(&self) -> bool {
        self.state.borrow().resolver.is_waiting()
    }

    /// Returns why some names are missing; later calls return it no more.
    pub fn take_problem(&self) -> Option<String> {
        self.state.borrow_mut().kernel.take_problem()
    }

    /// Forgets a process that ended, because the kernel may reuse its pid.
    pub fn end(&self, pid: i32) {
        let state = &mut *self.state.borrow_mut();
        state.jits.remove(&pid);
        state.dumps.remove(&pid);
    }
}

impl<F: Files> Names for LibraryNames<'_, F> {
    fn frames(&self, pid: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame)) {
        let state = &mut *self.naming.state.borrow_mut();
        for (at, frame) in stack.frames.iter().enumerate() {
            if at < stack.kernel {
                state.kernel_frame(frame, each);
                continue;
            }
            match frame.image.and_then(|id| Some((id, self.library?.file(id)?))) {
                Some((id, opened)) => {
                    let image = self.library.and_then(|library| library.mapped_image(id));
                    state.mapped_frame(self.naming.wanted, (id, image), opened, frame, each);
                }
                None => state.jit_frame(pid, self.library.and_then(|library| library.jitdump(pid)), frame, each),
            }
        }
    }

    fn function(&self, pid: i32, frame: &Frame) -> Option<(Box<[u8]>, u64)> {
        let state = &mut *self.naming.state.borrow_mut();
        match frame.image.and_then(|id| Some((id, self.library?.file(id)?))) {
            Some((id, opened)) => state.mapped_function(id, opened, frame),
            None => {
                let dump = self.library.and_then(|library| library.jitdump(pid));
                state.jit_function(pid, dump, frame).map(|(name, offset)| at_frame(name, offset, frame))
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
            memory_address: frame.avma,
            function_offset: found.as_ref().map(|found| offset_at_frame(found.offset, frame)),
            kernel: true,
            ..NamedFrame::default()
        });
    }

    fn mapped_frame(
        &mut self,
        wanted: Wanted,
        (id, image): (ImageId, Option<&Image>),
        file: &(MappedFile, Option<Opened>),
        frame: &Frame,
        each: &mut dyn FnMut(NamedFrame),
    ) {
        let place = (id, frame.lookup_svma());
        let functions = match self.cache.get(&place) {
            Some(functions) => Arc::clone(functions),
            None => {
                let (functions, is_final) = self.look_up(wanted, id, file, frame.lookup_svma());
                let functions: Arc<[NamedFunction]> = functions.into();
                if is_final {
                    if self.cache.len() == CACHED_MAX {
                        self.cache.clear();
                    }
                    self.cache.insert(place, Arc::clone(&functions));
                }
                functions
            }
        };
        let outermost = functions.len().saturating_sub(1);
        for (at, one) in functions.iter().enumerate() {
            each(NamedFrame {
                function: one.function.as_deref(),
                file: Some(&file.0.path),
                address: frame.svma,
                memory_address: frame.avma,
                build_id: image.and_then(Image::build_id),
                file_offset: image.and_then(|image| image.offset_of_svma(frame.svma)),
                function_offset: one.offset.map(|offset| offset_at_frame(offset, frame)),
                is_inlined: at < outermost,
                line: one.line.as_ref().map(|(file, line)| (&**file, *line)),
                kernel: false,
            });
        }
    }

    /// Returns the functions at an address of a file, and whether the answer is final. It is not while symbols are
    /// being downloaded.
    fn look_up(
        &mut self,
        wanted: Wanted,
        id: ImageId,
        (_, opened): &(MappedFile, Option<Opened>),
        svma: u64,
    ) -> (Vec<NamedFunction>, bool) {
        let object = *self.objects.entry(id).or_insert_with(|| object(&mut self.resolver, opened.as_ref()?));
        let Some(object) = object else { return (vec![NamedFunction::default()], true) };
        let mut all: Vec<NamedFunction> = Vec::new();
        if wanted.lines || wanted.inlined {
            let frames = self.resolver.lines(object, svma).iter().map(|frame| NamedFunction {
                function: frame.function.as_deref().map(|name| name.as_bytes().into()),
                offset: None,
                line: frame.file.as_deref().zip(frame.line).filter(|_| wanted.lines).map(|(file, line)| (file.as_bytes().into(), line)),
            });
            all.extend(frames);
            if !wanted.inlined && all.len() > 1 {
                // The line that runs in the outermost function is that of the innermost inlined one.
                all.truncate(1);
                all[0].function = None;
            }
        }
        if all.is_empty() {
            all.push(NamedFunction::default());
        }
        let outermost = all.len() - 1;
        let is_final = match self.resolver.resolve(object, svma) {
            Name::Symbol { name, offset } => {
                all[outermost].function = Some(name.into());
                all[outermost].offset = Some(offset);
                true
            }
            Name::Unknown => true,
            Name::NotYet => false,
        };
        (all, is_final)
    }

    fn mapped_function(&mut self, id: ImageId, (_, opened): &(MappedFile, Option<Opened>), frame: &Frame) -> Option<(Box<[u8]>, u64)> {
        let object = (*self.objects.entry(id).or_insert_with(|| object(&mut self.resolver, opened.as_ref()?)))?;
        match self.resolver.resolve(object, frame.lookup_svma()) {
            Name::Symbol { name, offset } => Some(at_frame(name, offset, frame)),
            Name::Unknown | Name::NotYet => None,
        }
    }

    fn jit_frame(&mut self, pid: i32, dump: Option<&[u8]>, frame: &Frame, each: &mut dyn FnMut(NamedFrame)) {
        let (function, offset) = self.jit_function(pid, dump, frame).unzip();
        let file = function.is_some().then_some(&b"[jit]"[..]);
        let function_offset = offset.map(|offset| offset_at_frame(offset, frame));
        each(NamedFrame { function, file, address: frame.avma, memory_address: frame.avma, function_offset, ..NamedFrame::default() });
    }

    /// Returns the function at a frame in code that is mapped from no file, which is mostly a just-in-time compiler's,
    /// and the offset in the function.
    fn jit_function(&mut self, pid: i32, dump: Option<&[u8]>, frame: &Frame) -> Option<(&[u8], u64)> {
        let jit = self.jits.entry(pid).or_default();
        if let Some(path) = dump.filter(|_| self.dumps.insert(pid))
            && let Some(file) = self.fetch.jitdump(pid, path)
        {
            jit.set_dump(file);
        }
        let pause = self.fetch.pause();
        let found = jit.at(frame.lookup_avma(), (Instant::now(), pause), || self.fetch.perf_map(pid))?;
        Some((found.name, found.offset))
    }
}

/// Returns a function and the offset at which it goes on, from the offset of the address by which it was looked up.
/// That is the address before for a return address.
fn at_frame(name: &[u8], offset: u64, frame: &Frame) -> (Box<[u8]>, u64) {
    (name.into(), offset_at_frame(offset, frame))
}

fn offset_at_frame(offset: u64, frame: &Frame) -> u64 {
    offset + u64::from(frame.is_after)
}

/// Returns the resolver's number of a file.
pub fn object<F: Files>(resolver: &mut Resolver<F>, opened: &Opened) -> Option<ObjectId> {
    match &opened.file {
        Some((identity, origin)) => resolver.object(*identity, origin.clone(), Box::new(opened.clone())).ok(),
        None => {
            let mut image = vec![0; usize::try_from(opened.size()).ok()?];
            opened.read_at(0, &mut image).ok()?;
            resolver.image(image).ok()
        }
    }
}
