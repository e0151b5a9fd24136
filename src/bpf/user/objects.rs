//! The files of BPF programs that `-e` names: opened before the plan is made, which must know their events, and loaded when it is.

use super::attach::{Attached, attach};
use super::output::Output;
use super::own::OwnEvent;
use super::section::{Place, Section};
use super::wrap::{self, Own, Whose, wrap};
use super::{compile, context, record};
use crate::bpf::programs::skipped;
use crate::bpf::{self as engine, Mode, Programs, Seed};
use crate::kernel::btf::Btf;
use crate::kernel::machine::possible_cpus;
use crate::kernel::tracefs::Tracefs;
use crate::request::{Item, Selector};
use crate::session::Whom;
use crate::sys::bpf::{self, Code, Kind, Refusal};
use anyhow::{Context, anyhow, bail};
use goblin::elf::Elf;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Under these the kernel lends the helpers that give records (license_is_gpl_compatible() in include/linux/license.h).
const LICENSES: [&str; 6] = ["GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"];
/// So much of the verifier's log is shown: its end says why.
const LOG_LINES: usize = 20;
/// The kernel's names of programs on tracepoints' events begin so: whoever meets them there knows that they keep nothing from anybody.
pub const NAME_PREFIX: &str = "rtrace_";

/// All files, and what is attached of them.
#[derive(Debug, Default)]
pub struct Objects {
    files: Vec<UserFile>,
    outputs: Vec<Output>,
    attached: Vec<Attached>,
    /// What tells them the tasks that are traced, where the programs on calls do not.
    followers: Option<Programs>,
    /// Hooks whose events are over, but take the kernel long to take down.
    stopped: Vec<OwnedFd>,
}

#[derive(Debug)]
struct UserFile {
    path: PathBuf,
    license: CString,
    open: Option<OpenObject>,
    /// Its maps; programs are loaded beside it.
    object: Option<Object>,
    /// Its arrays of events, by name, with the output of each.
    arrays: Vec<(String, usize)>,
    programs: Vec<Program>,
}

#[derive(Debug)]
struct Program {
    name: String,
    section: Section,
    /// The identifier of what it is attached to among the kernel's types.
    id: u32,
    own: OwnEvent,
    /// The output of its own event, and the array that it goes through.
    output: usize,
    array: Option<MapHandle>,
    loaded: Option<OwnedFd>,
}

impl Objects {
    /// Opens the files that items name; compiles those that are C.
    ///
    /// # Errors
    /// A file is not there, is no such object or does not compile; a program is for what rtrace does not attach to, or the kernel does not have.
    pub fn open(items: &[Item], tracefs: &Tracefs) -> anyhow::Result<Objects> {
        let mut objects = Objects::default();
        for (at, item) in items.iter().enumerate() {
            let Selector::Object(path) = &item.selector else { continue };
            let bytes = if path.as_os_str().as_encoded_bytes().ends_with(b".c") {
                fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
                compile::compile(path)?
            } else {
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
            };
            objects.add(at as u16, path, &bytes, tracefs).with_context(|| path.display().to_string())?;
        }
        Ok(objects)
    }

    fn add(&mut self, item: u16, path: &Path, bytes: &[u8], tracefs: &Tracefs) -> anyhow::Result<()> {
        let elf = Elf::parse(bytes).context("it is no object file")?;
        let license = section(&elf, bytes, "license").and_then(|bytes| CStr::from_bytes_until_nul(bytes).ok()).unwrap_or_default();
        if !LICENSES.iter().any(|known| license.to_bytes() == known.as_bytes()) {
            bail!(
                "its license is {license:?}, and the kernel lends what gives records only to the GPL: name a license with RTRACE_LICENSE(\"GPL\")"
            );
        }
        let types = section(&elf, bytes, ".BTF").map(Btf::parse).transpose()?;
        let mut open = heard(|| ObjectBuilder::default().open_memory(bytes)).context("libbpf does not take it")?;
        let mut arrays = Vec::new();
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::PerfEventArray) {
            let name = map.name().to_string_lossy().into_owned();
            arrays.push((name.clone(), self.outputs.len()));
            self.outputs.push(Output { item, format: record::format(types.as_ref(), &name)?, name });
            // The type of its values is there for us to read; the kernel wants descriptors.
            map.set_value_size(size_of::<u32>() as u32)?;
            map.set_max_entries(possible_cpus())?;
        }
        let mut programs = Vec::new();
        for program in open.progs().filter(|program| program.autoload()) {
            let name = program.name().to_string_lossy().into_owned();
            let output = self.outputs.len();
            let program = Program::new(name, &program.section().to_string_lossy(), program.insns(), output, tracefs)?;
            self.outputs.push(Output { item, name: program.section.place.event(), format: program.own.format.clone() });
            programs.push(program);
        }
        if programs.is_empty() {
            bail!("it has no programs");
        }
        self.files.push(UserFile { path: path.to_owned(), license: license.to_owned(), open: Some(open), object: None, arrays, programs });
        Ok(())
    }

    /// The events that the programs give, in the order that [`Objects::write_to`] counts them.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Has the programs verified, for these tasks and (`inherit`) what they make; nothing runs yet. `on_calls`: the programs that
    /// trace calls, if there are any: they know the traced tasks.
    ///
    /// # Errors
    /// The kernel does not take them: then with the end of what the verifier says.
    pub fn load(&mut self, whom: &Whom, inherit: bool, on_calls: Option<&Programs>) -> anyhow::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let (whose, _cgroup) = self.whose(whom, inherit, on_calls)?;
        self.files.iter_mut().try_for_each(|file| file.load(whose).with_context(|| file.path.display().to_string()))
    }

    /// Whom the programs run for. With what is needed until they are loaded.
    fn whose(&mut self, whom: &Whom, inherit: bool, on_calls: Option<&Programs>) -> anyhow::Result<(Whose, Option<MapHandle>)> {
        match whom {
            Whom::Command | Whom::Tasks { .. } => Ok((self.of_tasks(whom, inherit, on_calls), None)),
            Whom::Everyone => Ok((Whose::Anyone, None)),
            Whom::User(uid) => Ok((Whose::User(*uid), None)),
            Whom::Cgroup(path) => {
                let dir = File::open(path).with_context(|| format!("cannot open the cgroup {}", path.display()))?;
                let map = bpf::descriptors(MapType::CgroupArray, 1)?;
                map.update(&0u32.to_ne_bytes(), &dir.as_raw_fd().to_ne_bytes(), MapFlags::ANY)
                    .context("only cgroups of the unified hierarchy (cgroup2) can be told apart by BPF")?;
                Ok((Whose::Cgroup(map.as_fd().as_raw_fd()), Some(map)))
            }
        }
    }

    /// By the storage of the tasks that are traced. Where that cannot be had, the programs run for everybody, and what they give is sorted out by who reads it.
    fn of_tasks(&mut self, whom: &Whom, inherit: bool, on_calls: Option<&Programs>) -> Whose {
        if on_calls.is_none() {
            let named = if let Whom::Tasks { tids, .. } = whom { tids.len() } else { 1 };
            let settings = engine::Settings { seeds_max: u32::try_from(named).unwrap_or(u32::MAX), inherit, ..Default::default() };
            self.followers = Programs::load_followers(&settings).ok().filter(|followers| followers.tasks().is_some());
        }
        on_calls.or(self.followers.as_ref()).and_then(Programs::tasks).map_or(Whose::Anyone, Whose::Tasks)
    }

    /// Follows tasks from now on, beginning with these, where nobody else does.
    ///
    /// # Errors
    /// The kernel does not let it.
    pub fn follow(&mut self, seeds: &[(Seed, Mode)]) -> anyhow::Result<()> {
        self.followers.as_mut().map_or(Ok(()), |followers| followers.follow(seeds.iter().copied()))
    }

    /// Tasks whose events are missing, because the kernel had no memory to follow them.
    pub fn tasks_lost(&self) -> u64 {
        self.followers.as_ref().map_or(0, |followers| followers.account().tasks_lost)
    }

    /// Sends records of this output from this CPU to this event.
    pub fn write_to(&self, output: usize, cpu: u32, event: BorrowedFd) -> anyhow::Result<()> {
        let (key, value) = (cpu.to_ne_bytes(), event.as_raw_fd().to_ne_bytes());
        for file in &self.files {
            if let Some((name, _)) = file.arrays.iter().find(|(_, of)| *of == output)
                && let Some(map) = file.object.iter().flat_map(Object::maps).find(|map| map.name() == OsStr::new(name))
            {
                map.update(&key, &value, MapFlags::ANY)?;
            }
            if let Some(array) = file.programs.iter().find(|program| program.output == output).and_then(|program| program.array.as_ref()) {
                array.update(&key, &value, MapFlags::ANY)?;
            }
        }
        Ok(())
    }

    /// Attaches all programs. `cpu` is one that is online.
    ///
    /// # Errors
    /// One cannot be attached.
    pub fn attach(&mut self, cpu: u32) -> anyhow::Result<()> {
        let tracefs = Tracefs::find().unwrap_or_else(Tracefs::absent);
        for file in &self.files {
            for program in &file.programs {
                let Some(loaded) = &program.loaded else { continue };
                let attached = attach(loaded.as_fd(), &program.section.place, &tracefs, cpu);
                let what = || format!("{}: cannot attach {} to {}", file.path.display(), program.name, program.section.place.event());
                self.attached.push(attached.with_context(what)?);
            }
        }
        Ok(())
    }

    /// Takes them off again.
    pub fn detach(&mut self) {
        // What is slow to close stays attached until the closer has closed it; its outputs lead nowhere by then.
        self.stopped.extend(self.attached.drain(..).filter(|one| one.slow).map(|one| one.fd));
        // Nothing of theirs is of interest any more, and what is left attached does nothing.
        let _ = self.followers.as_mut().map(Programs::stop);
    }

    /// How often the kernel passed a program over, because it interrupted another.
    pub fn skipped(&self) -> u64 {
        let programs = self.files.iter().flat_map(|file| &file.programs).filter_map(|program| program.loaded.as_ref());
        programs.filter_map(|program| skipped(program.as_fd())).sum()
    }

    /// What takes long to close, for [`crate::sys::closer`].
    pub fn slow_to_close(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stopped.iter().map(OwnedFd::as_fd).chain(self.followers.iter().flat_map(Programs::slow_to_close))
    }
}

impl Program {
    fn new(name: String, section: &str, code: &[bpf::Instruction], output: usize, tracefs: &Tracefs) -> anyhow::Result<Program> {
        let what = || format!("the program {name}");
        let section = Section::parse(section).with_context(what)?;
        let seen = context::of(&section.place, tracefs).with_context(what)?;
        let mut own = OwnEvent::new(&section.place.event(), &seen.context, &section.arguments).with_context(what)?;
        // Nobody asked for all of an event's fields by name.
        if section.arguments.is_empty() && !wrap::fits(code, own.bytes) {
            own = own.bare();
        }
        Ok(Program { section, id: seen.id, own, output, array: None, loaded: None, name })
    }

    fn kind(&self) -> Kind {
        match &self.section.place {
            Place::Tracepoint { .. } => Kind::Event,
            Place::Raw { typed: false, .. } => Kind::UntypedRawTracepoint,
            Place::Raw { typed: true, .. } => Kind::RawTracepoint(self.id),
            Place::Function { returns: false, .. } => Kind::FunctionEntry(self.id),
            Place::Function { returns: true, .. } => Kind::FunctionReturn(self.id),
            Place::KernelProbe { .. } | Place::ProgramProbe { .. } => Kind::Probe,
        }
    }

    fn load(&mut self, object: &Object, license: &CStr, whose: Whose) -> anyhow::Result<()> {
        let array = bpf::descriptors(MapType::PerfEventArray, possible_cpus())?;
        let own = Own { map: array.as_fd().as_raw_fd(), fetches: &self.own.fetches, bytes: self.own.bytes };
        let kind = self.kind();
        let Some(program) = object.progs().find(|program| program.name() == OsStr::new(&self.name)) else { return Ok(()) };
        // On a tracepoint's event, what all programs return decides whether anybody gets its record.
        let on_shared_event = kind == Kind::Event;
        let wrapped =
            wrap(program.insns(), whose, Some(&own), i32::from(on_shared_event)).with_context(|| format!("the program {}", self.name))?;
        let name = CString::new(format!("{}{}", if on_shared_event { NAME_PREFIX } else { "" }, self.name))?;
        let mut code = Code::with_lines(object, &program, kind);
        let place = |was| wrapped.place(was);
        code.replace(wrapped.instructions.clone(), place);
        (code.name, code.license, code.may_sleep) = (&name, license, self.section.may_sleep);
        let loaded = code.load_or_say_why().map_err(|refusal| self.refused(&refusal))?;
        drop(code);
        (self.array, self.loaded) = (Some(array), Some(loaded));
        Ok(())
    }

    fn refused(&self, refusal: &Refusal) -> anyhow::Error {
        let lines: Vec<&str> = refusal.log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| format!("\n    {line}")).collect::<String>();
        let said = if tail.is_empty() { String::new() } else { format!("; the verifier's last words:{tail}") };
        anyhow!("the kernel does not take the program {}: {}{said}", self.name, refusal.error)
    }
}

impl UserFile {
    fn load(&mut self, whose: Whose) -> anyhow::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let object = heard(|| bpf::prepare(open)).context("the kernel does not have what its programs need")?;
        self.programs.iter_mut().try_for_each(|program| program.load(&object, &self.license, whose))?;
        self.object = Some(object);
        Ok(())
    }
}

fn section<'a>(elf: &Elf, bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let header = elf.section_headers.iter().find(|header| elf.shdr_strtab.get_at(header.sh_name) == Some(name))?;
    bytes.get(header.file_range()?)
}

/// What libbpf warns of, which says more than its errors.
static WARNINGS: Mutex<String> = Mutex::new(String::new());

fn hear(level: PrintLevel, text: String) {
    if level == PrintLevel::Warn {
        WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }
}

/// What libbpf does, with what it warns of where it fails.
fn heard<T>(act: impl FnOnce() -> libbpf_rs::Result<T>) -> anyhow::Result<T> {
    let warnings = || std::mem::take(&mut *WARNINGS.lock().unwrap_or_else(PoisonError::into_inner));
    warnings();
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
    let result = act();
    libbpf_rs::set_print(before);
    result.map_err(|error| {
        let said: String = warnings().lines().map(|line| format!("\n    {line}")).collect();
        anyhow!("{error:#}{said}")
    })
}
