//! One object of programs, on its way into the kernel and there.
//!
//! libbpf makes the maps and relocates the programs. Having them verified, which takes longest, is done here by two threads: the two programs on calls take some 8 ms each. What programs
//! there are, and when they run, is [`super::programs`]'s.

use super::encode::On;
use super::filter_bytes::Filters;
use super::settings::Settings;
use super::types::{self, Types};
use crate::kernel::btf::{self, Btf, Sort};
use crate::kernel::machine::possible_cpus;
use crate::kernel::tracefs::Tracefs;
use crate::sys::bpf::{self, Code, Kind};
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

const REFUSED: &str = "the kernel does not take the BPF programs";

/// Maps and programs.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The maps; its programs are loaded beside it.
    object: Object,
    programs: Vec<Program>,
    /// The kernel is one of those on which what a task has in its storage is found at any moment.
    finds_always: bool,
}

#[derive(Debug)]
struct Program {
    name: String,
    /// Where it stands in the object, which says what it is for.
    section: String,
    kind: Kind,
    fd: OwnedFd,
}

impl Loaded {
    /// Loads the programs that are needed, by their names. The maps are those of another object, if there is one.
    ///
    /// # Errors
    /// The kernel refuses them: no privilege (CAP_BPF and CAP_PERFMON), no type information (BTF), or too old.
    pub fn load(settings: &Settings, on: On, needed: impl Fn(&str) -> bool, shared: Option<&Loaded>) -> anyhow::Result<Loaded> {
        let kernel = btf::of_the_kernel().with_context(|| format!("this kernel does not show its types (BTF) at {}", btf::VMLINUX))?;
        let kernel = Btf::parse(&kernel).with_context(|| format!("cannot understand {}", btf::VMLINUX))?;
        let has_cast = !kernel.named(Sort::Function, &FxHashSet::from_iter([types::CAST])).is_empty();
        let bytes = if has_cast { PLAIN_LOADS } else { BY_HELPER };
        let types = Types::of(&kernel, bytes)?;
        let mut builder = ObjectBuilder::default();
        let mut open = builder.btf_custom_path(types.path())?.open_memory(bytes).context("the built-in BPF object cannot be read")?;
        for mut program in open.progs_mut() {
            let is_needed = program.name().to_str().is_some_and(&needed);
            program.set_autoload(is_needed);
            // It is loaded by its kind, which `load_programs` finds; told that, libbpf would read all types of the kernel.
            program.set_prog_type(libbpf_rs::ProgramType::Tracepoint);
        }
        tell(&mut open, settings, on, &types, shared)?;
        let object = bpf::prepare(open).context(REFUSED)?;
        let programs = load_programs(&object, &kernel, &types)?;
        Ok(Loaded { object, programs, finds_always: has_cast })
    }

    pub fn map(&self, name: &str) -> anyhow::Result<libbpf_rs::Map<'_>> {
        self.object.maps().find(|map| map.name() == OsStr::new(name)).ok_or_else(|| anyhow!("there is no BPF map {name}"))
    }

    /// The storage of tasks that are followed. `None` on kernels before 6.2 (those that have no [`types::CAST`]): there a lookup that interrupts another one finds nothing.
    pub fn tasks(&self) -> Option<i32> {
        let map = self.map("tasks").ok()?;
        self.finds_always.then(|| map.as_fd().as_raw_fd())
    }

    /// Names and descriptors.
    pub fn programs(&self) -> impl Iterator<Item = (&str, BorrowedFd<'_>)> {
        self.programs.iter().map(|program| (program.name.as_str(), program.fd.as_fd()))
    }

    /// Lets a program run where it says itself, until the descriptor is closed.
    pub fn attach(&self, name: &str) -> anyhow::Result<OwnedFd> {
        let program = self.program(name)?;
        if program.kind == Kind::Event {
            let mut path = program.section.rsplit('/');
            let (event, subsystem) = (path.next().unwrap_or_default(), path.next().unwrap_or_default());
            return self.attach_to_event(name, Tracefs::find()?.id(subsystem, event)?, 0);
        }
        bpf::attach_to_raw_tracepoint(program.fd.as_fd()).with_context(|| format!("cannot attach the BPF program {name}"))
    }

    /// Lets a program run at the tracepoint of this number, on all CPUs, until the descriptor is closed. `cpu` is one that is online.
    pub fn attach_to_event(&self, name: &str, id: u64, cpu: u32) -> anyhow::Result<OwnedFd> {
        let event = PerfEvent::carrier(Counts::Tracepoint(id), cpu).context("cannot open a syscall's event")?;
        let program = self.program(name)?;
        event.set_program(program.fd.as_fd()).with_context(|| format!("cannot attach the BPF program {name}"))?;
        Ok(event.into())
    }

    /// All that the program of an iterator writes.
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

/// Gives the maps what they begin with.
fn tell(open: &mut OpenObject, settings: &Settings, on: On, types: &Types, shared: Option<&Loaded>) -> anyhow::Result<()> {
    let (told, constants, filters) = (settings.bytes(on), settings.constants(), Filters::new(settings));
    let stacks = settings.stacks.bytes();
    for mut map in open.maps_mut() {
        if map.name() != ".rodata.settings"
            && let Some(same) = shared.and_then(|loaded| loaded.object.maps().find(|same| same.name() == map.name()))
        {
            map.reuse_fd(same.as_fd())?;
            continue;
        }
        let bytes: &[u8] = match map.name().to_str() {
            Some(".rodata.settings") => &told,
            Some(".rodata.places") => &constants.places,
            Some(".rodata.plans") => &constants.plans,
            Some(".rodata.choices") => &constants.choices,
            Some(".rodata.links") => &constants.links,
            Some(".rodata.filters") => &filters.filters,
            Some(".rodata.filter_of") => &filters.of,
            Some(".rodata.texts") => &filters.texts,
            Some(".rodata.types") => types.identifiers(),
            Some(".rodata.stacks") => &stacks,
            Some("output") => {
                // One a CPU for each kind of record.
                map.set_max_entries((settings.stacks.kinds.len() as u32 + 1) * possible_cpus())?;
                continue;
            }
            Some("kept") => {
                // Where nothing is kept, it is as small as the kernel makes it.
                map.set_max_entries(if settings.sums { settings.kept_bytes } else { rustix::param::page_size() as u32 })?;
                continue;
            }
            Some("accounts") => {
                map.set_max_entries(possible_cpus())?;
                continue;
            }
            Some("seeds") => {
                // The kernel allots its table at once.
                map.set_max_entries(settings.seeds_max.max(1))?;
                continue;
            }
            _ => continue,
        };
        map.set_initial_value(bytes).context("the BPF programs' settings have another size than rtrace's")?;
    }
    Ok(())
}

/// Loads those programs of a prepared object that are to be loaded.
fn load_programs(object: &Object, kernel: &Btf, types: &Types) -> anyhow::Result<Vec<Program>> {
    let wanted: Vec<_> = object.progs().filter(|program| program.autoload()).collect();
    let sections: Vec<String> = wanted.iter().map(|program| program.section().to_string_lossy().into_owned()).collect();
    let kinds = types::kinds(kernel, &sections)?;
    let mut codes: Vec<Code> = wanted.iter().zip(&kinds).map(|(program, kind)| Code::of(object, program, *kind)).collect();
    for (code, section) in codes.iter_mut().zip(&sections) {
        code.may_sleep = section.starts_with("iter.s/");
        types.functions().iter().for_each(|(helper, function)| code.call_instead(*helper, *function));
    }
    let loaded = load_all(&codes)?;
    let program = |(at, fd): (usize, OwnedFd)| {
        let name = codes[at].name.to_string_lossy().into_owned();
        Program { name, section: sections[at].clone(), kind: kinds[at], fd }
    };
    Ok(loaded.into_iter().map(program).collect())
}

fn load(code: &Code) -> anyhow::Result<OwnedFd> {
    code.load_or_say_why().map_err(|refusal| {
        let reason = refusal.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let what = format!("{REFUSED}: {}{reason}", code.name.to_string_lossy());
        anyhow::Error::from(refusal.error).context(what)
    })
}

/// Has them verified by two threads, the longest first; gives their places and descriptors.
fn load_all(codes: &[Code]) -> anyhow::Result<Vec<(usize, OwnedFd)>> {
    let mut order: Vec<usize> = (0..codes.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(codes[at].instructions.len()));
    let taken = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, OwnedFd)>> {
        let next = || order.get(taken.fetch_add(1, Ordering::Relaxed)).copied();
        std::iter::from_fn(next).map(|at| Ok((at, load(&codes[at])?))).collect()
    };
    thread::scope(|scope| {
        // Where there are no more threads, one does all.
        let other = thread::Builder::new().name("rtrace-loader".to_owned()).spawn_scoped(scope, work);
        let mut loaded = work()?;
        if let Ok(other) = other {
            loaded.extend(other.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked: this is a bug in rtrace")))?);
        }
        Ok(loaded)
    })
}
