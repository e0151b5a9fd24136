//! Loads one BPF object into the kernel and keeps its maps and programs.
//!
//! libbpf creates the maps and relocates the programs. Two threads then have the programs verified, which takes
//! longest: each of the two programs on calls takes about 8 ms. [`super::programs`] knows which programs exist and when
//! they run.

use super::effects::EffectBytes;
use super::encode::HookSet;
use super::filter_bytes::Filters;
use super::settings::Settings;
use super::types::{self, Types};
use crate::kernel::btf::{self, Btf, LookupKind};
use crate::kernel::descriptors;
use crate::kernel::machine::possible_cpus;
use crate::kernel::tracefs::Tracefs;
use crate::sys::bpf::{self, Code, ProgramType};
use crate::sys::perf::{Counts, PerfEvent};
use anyhow::{Context, anyhow};
use libbpf_rs::{MapCore, Object, ObjectBuilder, OpenObject};
use rtrace_bpf_objects::{BY_HELPER, PLAIN_LOADS};
use rustc_hash::FxHashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The maximum number of requests of io_uring in flight of which the end is recorded. Of further ones, what the kernel
/// writes is not shown.
const REQUEST_ENDS_MAX: u32 = 1 << 16;

const REFUSED: &str = "the kernel refuses the BPF programs";

/// A loaded object: its maps and programs.
#[derive(Debug)]
pub(super) struct LoadedObject {
    /// The object with the maps. Its programs are loaded without libbpf.
    object: Object,
    programs: Vec<Program>,
    /// Whether a lookup in the task storage always finds the value of a task on this kernel.
    finds_always: bool,
}

#[derive(Debug)]
struct Program {
    name: String,
    /// The section of the object that contains the program and names its attach point.
    section: String,
    kind: ProgramType,
    fd: OwnedFd,
}

impl LoadedObject {
    /// Loads the programs whose names `needed` accepts. If `shared` is given, the maps of that object are used.
    ///
    /// # Errors
    /// The kernel refuses the programs: rtrace has no privilege for them (CAP_BPF and CAP_PERFMON), or the kernel has
    /// no type information (BTF) or is too old.
    pub fn load(
        settings: &Settings,
        on: HookSet,
        needed: impl Fn(&str) -> bool,
        shared: Option<&LoadedObject>,
    ) -> anyhow::Result<LoadedObject> {
        let kernel = btf::of_the_kernel().with_context(|| format!("this kernel has no type information (BTF) at {}", btf::VMLINUX))?;
        let kernel = Btf::parse(&kernel).with_context(|| format!("cannot parse the type information in {}", btf::VMLINUX))?;
        let has_cast = !kernel.named(LookupKind::Function, &FxHashSet::from_iter([types::CAST])).is_empty();
        let bytes = if has_cast { PLAIN_LOADS } else { BY_HELPER };
        let types = Types::of(&kernel, bytes)?;
        let mut builder = ObjectBuilder::default();
        let mut open = builder.btf_custom_path(types.path())?.open_memory(bytes).context("the built-in BPF object cannot be read")?;
        for mut program in open.progs_mut() {
            let is_needed = program.name().to_str().is_some_and(&needed);
            program.set_autoload(is_needed);
            // `load_programs` finds the real type. If libbpf knew it, it would read all types of the kernel.
            program.set_prog_type(libbpf_rs::ProgramType::Tracepoint);
        }
        set_initial_values(&mut open, settings, on, &types, shared)?;
        // Without a descriptor to spare, libbpf finds that the kernel lacks features, and leaves out maps without an
        // error. (Its maps have descriptors already.) Each program needs one, and another one when it is attached.
        let count = open.progs().filter(|program| program.autoload()).count();
        descriptors::check_room(2 * count).context(REFUSED)?;
        let object = bpf::prepare(open).context(REFUSED)?;
        let programs = load_programs(&object, &kernel, &types)?;
        Ok(LoadedObject { object, programs, finds_always: has_cast })
    }

    /// Returns the map with this name; that of global variables has the name of their section (`.data.is_over`).
    ///
    /// # Errors
    /// The object has no such map.
    pub fn map(&self, name: &str) -> anyhow::Result<libbpf_rs::Map<'_>> {
        self.object.maps().find(|map| map.name() == OsStr::new(name)).ok_or_else(|| anyhow!("there is no BPF map {name}"))
    }

    /// Returns the descriptor of the storage of traced tasks. `None` on kernels before 6.2 (those without
    /// [`types::CAST`]), where a lookup that interrupts another one finds nothing.
    pub fn tasks(&self) -> Option<i32> {
        let map = self.map("tasks").ok()?;
        self.finds_always.then(|| map.as_fd().as_raw_fd())
    }

    /// Returns the names and descriptors of the programs.
    pub fn programs(&self) -> impl Iterator<Item = (&str, BorrowedFd<'_>)> {
        self.programs.iter().map(|program| (program.name.as_str(), program.fd.as_fd()))
    }

    /// Attaches a program to the attach point that its section names, until the descriptor is closed.
    pub fn attach(&self, name: &str) -> anyhow::Result<OwnedFd> {
        let program = self.program(name)?;
        if program.kind == ProgramType::Event {
            let mut path = program.section.rsplit('/');
            let (event, subsystem) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
            return self.attach_to_event(name, Tracefs::find()?.id(subsystem, event)?, 0);
        }
        bpf::attach_to_raw_tracepoint(program.fd.as_fd()).with_context(|| format!("cannot attach the BPF program {name}"))
    }

    /// Attaches a program to the tracepoint with this id on all CPUs, until the descriptor is closed. `cpu` is an
    /// online CPU.
    pub fn attach_to_event(&self, name: &str, id: u64, cpu: u32) -> anyhow::Result<OwnedFd> {
        let event = PerfEvent::for_program(Counts::Tracepoint(id), cpu).context("cannot open a syscall's event")?;
        let program = self.program(name)?;
        event.set_program(program.fd.as_fd()).with_context(|| format!("cannot attach the BPF program {name}"))?;
        Ok(event.into())
    }

    /// Attaches a program to the functions of the kernel at these addresses, until the descriptor is closed.
    pub fn attach_to_functions(&self, name: &str, addresses: &[u64]) -> anyhow::Result<OwnedFd> {
        let program = self.program(name)?;
        bpf::attach_to_functions(program.fd.as_fd(), addresses).with_context(|| format!("cannot attach the BPF program {name}"))
    }

    /// Runs an iterator program and returns everything that it writes.
    pub fn list(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let program = self.program(name)?;
        let mut list = Vec::new();
        bpf::iterate(program.fd.as_fd()).and_then(|fd| File::from(fd).read_to_end(&mut list)).context("cannot list the tasks")?;
        Ok(list)
    }

    fn program(&self, name: &str) -> anyhow::Result<&Program> {
        self.programs.iter().find(|program| program.name == name).ok_or_else(|| anyhow!("there is no BPF program {name}"))
    }
}

/// Sets the sizes and initial values of the maps.
fn set_initial_values(
    open: &mut OpenObject,
    settings: &Settings,
    on: HookSet,
    types: &Types,
    shared: Option<&LoadedObject>,
) -> anyhow::Result<()> {
    let (settings_bytes, constants, filters) = (settings.bytes(on), settings.constants(), Filters::new(settings));
    let (stacks, effects) = (settings.stacks.bytes(), EffectBytes::of(settings.effects.as_ref()));
    for mut map in open.maps_mut() {
        if map.name() != ".rodata.settings"
            && let Some(same) = shared.and_then(|loaded| loaded.object.maps().find(|same| same.name() == map.name()))
        {
            map.reuse_fd(same.as_fd())?;
            continue;
        }
        let bytes: &[u8] = match map.name().to_str() {
            Some(".rodata.settings") => &settings_bytes,
            Some(".rodata.places") => &constants.places,
            Some(".rodata.plans") => &constants.plans,
            Some(".rodata.choices") => &constants.choices,
            Some(".rodata.links") => &constants.links,
            Some(".rodata.requests") => &constants.requests,
            Some(".rodata.filters") => &filters.filters,
            Some(".rodata.filter_of") => &filters.of,
            Some(".rodata.condition_of") => &filters.condition_of,
            Some(".rodata.texts") => &filters.texts,
            Some(".rodata.types") => types.identifiers(),
            Some(".rodata.stacks") => &stacks,
            Some(".rodata.effects") => &effects.effects,
            Some(".rodata.injections") => &effects.injections,
            Some("output") => {
                // One event on each CPU for each kind of record.
                map.set_max_entries((settings.kind_of_matches() + u32::from(!settings.conditions.is_empty())) * possible_cpus())?;
                continue;
            }
            Some("ended_tasks") => {
                // Where calls are not aggregated, the map has the smallest possible size.
                map.set_max_entries(if settings.sums { settings.ended_tasks_bytes } else { rustix::param::page_size() as u32 })?;
                continue;
            }
            Some("request_ends") => {
                map.set_max_entries(if settings.requests.opcodes.is_empty() { 1 } else { REQUEST_ENDS_MAX })?;
                continue;
            }
            Some("accounts") => {
                map.set_max_entries(possible_cpus())?;
                continue;
            }
            Some("seeds") => {
                // The kernel allocates the whole table at once.
                map.set_max_entries(settings.seeds_max.max(1))?;
                continue;
            }
            _ => continue,
        };
        map.set_initial_value(bytes).context("the built-in BPF object's constants have another size than rtrace's")?;
    }
    Ok(())
}

/// Loads the selected programs of a prepared object.
fn load_programs(object: &Object, kernel: &Btf, types: &Types) -> anyhow::Result<Vec<Program>> {
    let wanted: Vec<_> = object.progs().filter(|program| program.autoload()).collect();
    let sections: Vec<String> = wanted.iter().map(|program| program.section().to_string_lossy().into_owned()).collect();
    let kinds = types::kinds(kernel, &sections)?;
    let mut codes: Vec<Code> = wanted.iter().zip(&kinds).map(|(program, kind)| Code::of(object, program, *kind)).collect();
    for (code, section) in codes.iter_mut().zip(&sections) {
        code.may_sleep = section.starts_with("iter.s/");
        types.functions().iter().for_each(|(helper, function)| code.call_kfunc_instead(*helper, *function));
    }
    let loaded = load_all(&codes)?;
    let program = |(at, fd): (usize, OwnedFd)| {
        let name = codes[at].name.to_string_lossy().into_owned();
        Program { name, section: sections[at].clone(), kind: kinds[at], fd }
    };
    Ok(loaded.into_iter().map(program).collect())
}

fn load(code: &Code) -> anyhow::Result<OwnedFd> {
    code.load_with_log_on_error().map_err(|refusal| {
        let reason = refusal.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let what = format!("{REFUSED}: {}{reason}", code.name.to_string_lossy());
        anyhow::Error::from(refusal.error).context(what)
    })
}

/// Has the programs verified by two threads, the longest program first. Returns their indices and descriptors.
fn load_all(codes: &[Code]) -> anyhow::Result<Vec<(usize, OwnedFd)>> {
    let mut order: Vec<usize> = (0..codes.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(codes[at].instructions.len()));
    let taken = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, OwnedFd)>> {
        let next = || order.get(taken.fetch_add(1, Ordering::Relaxed)).copied();
        std::iter::from_fn(next).map(|at| Ok((at, load(&codes[at])?))).collect()
    };
    thread::scope(|scope| {
        // If no thread can be created, this one loads all programs.
        let other = thread::Builder::new().name("rtrace-loader".to_owned()).spawn_scoped(scope, work);
        let mut loaded = work()?;
        if let Ok(other) = other {
            loaded.extend(other.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked: this is a bug in rtrace")))?);
        }
        Ok(loaded)
    })
}
