//! The files of BPF programs that `-e` names. They are opened before the plan is made, which needs their events, and
//! loaded when the plan is opened.

use super::attach::{Attached, attach};
use super::credentials::Credentials;
use super::output::Output;
use super::program_event::ProgramEvent;
use super::section::{AttachPoint, Section};
use super::wrap::{self, EventOutput, TaskFilter, wrap};
use super::{compile, context, record};
use crate::bpf::programs::skipped;
use crate::bpf::{self as engine, Mode, Programs, Seed};
use crate::kernel::btf::Btf;
use crate::kernel::machine::possible_cpus;
use crate::kernel::tracefs::Tracefs;
use crate::request::{Item, Selector};
use crate::session::Targets;
use crate::sys::bpf::{self, Code, LoadError, ProgramType};
use anyhow::{Context, anyhow, bail};
use goblin::elf::Elf;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The licenses under which programs may call the helpers that write records (license_is_gpl_compatible() in
/// include/linux/license.h).
const LICENSES: [&str; 6] = ["GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"];
/// The number of lines at the end of the verifier's log that are shown: they contain the reason.
const LOG_LINES: usize = 20;
/// The prefix of the kernel's names of programs on tracepoints' perf events. By this prefix other rtrace processes
/// recognize that the programs do not suppress anybody's records.
pub const NAME_PREFIX: &str = "rtrace_";

/// All files and the attached programs.
#[derive(Debug, Default)]
pub struct Objects {
    files: Vec<UserFile>,
    outputs: Vec<Output>,
    attached: Vec<Attached>,
    /// The programs that follow the traced tasks, where the programs on calls do not.
    followers: Option<Programs>,
    /// Programs that the kernel takes long to detach; their events are no longer read.
    stopped: Vec<OwnedFd>,
}

#[derive(Debug)]
struct UserFile {
    path: PathBuf,
    license: CString,
    open: Option<OpenObject>,
    /// The object with the maps. Its programs are loaded without libbpf.
    object: Option<Object>,
    /// The names of its perf event arrays, with the index of the output of each.
    arrays: Vec<(String, usize)>,
    programs: Vec<Program>,
}

#[derive(Debug)]
struct Program {
    name: String,
    section: Section,
    /// The id of the attach point's type in the kernel's type information.
    id: u32,
    own: ProgramEvent,
    /// The output of the program's event, and the perf event array for it.
    output: usize,
    array: Option<MapHandle>,
    loaded: Option<OwnedFd>,
}

impl Objects {
    /// Opens the files that items name, and compiles C files.
    ///
    /// # Errors
    /// A file does not exist, is not a BPF object or does not compile; or a program is for an attach point that rtrace
    /// does not support or the kernel does not have.
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
        let elf = Elf::parse(bytes).context("this is not an object file")?;
        let license = section(&elf, bytes, "license").and_then(|bytes| CStr::from_bytes_until_nul(bytes).ok()).unwrap_or_default();
        if !LICENSES.iter().any(|known| license.to_bytes() == known.as_bytes()) {
            bail!(
                "its license is {license:?}, and the kernel offers the helpers that write records only under the GPL: declare RTRACE_LICENSE(\"GPL\")"
            );
        }
        let types = section(&elf, bytes, ".BTF").map(Btf::parse).transpose()?;
        let mut open = with_warnings(|| ObjectBuilder::default().open_memory(bytes)).context("libbpf cannot open it")?;
        let mut arrays = Vec::new();
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::PerfEventArray) {
            let name = map.name().to_string_lossy().into_owned();
            arrays.push((name.clone(), self.outputs.len()));
            self.outputs.push(Output { item, format: record::format(types.as_ref(), &name)?, name });
            // The type of the values is only a declaration for rtrace; the kernel needs descriptors as values.
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

    /// Returns the events of the programs, in the order of the indices of [`Objects::write_to`].
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Has the programs verified and loaded for these tasks and, with `inherit`, those that they create. None is
    /// attached yet. `on_calls` are the programs that trace calls, if there are any; they know the traced tasks.
    ///
    /// # Errors
    /// The kernel refuses a program; the error has the end of the verifier's log.
    pub fn load(&mut self, targets: &Targets, inherit: bool, on_calls: Option<&Programs>) -> anyhow::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let (tasks, _cgroup) = self.task_filter(targets, inherit, on_calls)?;
        self.files.iter_mut().try_for_each(|file| file.load(tasks).with_context(|| file.path.display().to_string()))
    }

    /// Returns the tasks that the programs run for, with a map that must stay open until the programs are loaded.
    fn task_filter(
        &mut self,
        targets: &Targets,
        inherit: bool,
        on_calls: Option<&Programs>,
    ) -> anyhow::Result<(TaskFilter, Option<MapHandle>)> {
        match targets {
            Targets::Command | Targets::Tasks { .. } => Ok((self.of_tasks(targets, inherit, on_calls), None)),
            Targets::SystemWide => Ok((TaskFilter::Anyone, None)),
            Targets::User(uid) => Ok((TaskFilter::User(*uid, Credentials::of_the_kernel()), None)),
            Targets::Cgroup(path) => {
                let dir = File::open(path).with_context(|| format!("cannot open the cgroup {}", path.display()))?;
                let map = bpf::descriptors(MapType::CgroupArray, 1)?;
                map.update(&0u32.to_ne_bytes(), &dir.as_raw_fd().to_ne_bytes(), MapFlags::ANY)
                    .context("only cgroups of the unified hierarchy (cgroup2) can be selected by BPF")?;
                Ok((TaskFilter::Cgroup(map.as_fd().as_raw_fd()), Some(map)))
            }
        }
    }

    /// Limits the programs to the traced tasks by their task storage. Where no task storage is available, the programs
    /// run for all tasks, and the reader drops the records of other tasks.
    fn of_tasks(&mut self, targets: &Targets, inherit: bool, on_calls: Option<&Programs>) -> TaskFilter {
        if on_calls.is_none() {
            let named = if let Targets::Tasks { tids, .. } = targets { tids.len() } else { 1 };
            let settings = engine::Settings { seeds_max: u32::try_from(named).unwrap_or(u32::MAX), inherit, ..Default::default() };
            self.followers = Programs::load_followers(&settings).ok().filter(|followers| followers.tasks().is_some());
        }
        on_calls.or(self.followers.as_ref()).and_then(Programs::tasks).map_or(TaskFilter::Anyone, TaskFilter::Tasks)
    }

    /// Follows tasks from now on, starting with these, unless the programs on calls follow them.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn follow(&mut self, seeds: &[(Seed, Mode)]) -> anyhow::Result<()> {
        self.followers.as_mut().map_or(Ok(()), |followers| followers.follow(seeds.iter().copied()))
    }

    /// Returns the number of tasks whose events are missing because the kernel had no memory to follow them.
    pub fn tasks_lost(&self) -> u64 {
        self.followers.as_ref().map_or(0, |followers| followers.account().tasks_lost)
    }

    /// Directs the records of this output that are written on this CPU to this event.
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

    /// Attaches all programs. `cpu` is an online CPU.
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

    /// Detaches all programs.
    pub fn detach(&mut self) {
        // Programs that are slow to detach stay attached until the closer has closed them; their outputs lead nowhere
        // by then.
        self.stopped.extend(self.attached.drain(..).filter(|one| one.slow).map(|one| one.fd));
        // The remaining records are not needed, and programs that stay attached do nothing.
        let _ = self.followers.as_mut().map(Programs::stop);
    }

    /// Returns how often the kernel skipped a program because it would have interrupted another one.
    pub fn skipped(&self) -> u64 {
        let programs = self.files.iter().flat_map(|file| &file.programs).filter_map(|program| program.loaded.as_ref());
        programs.filter_map(|program| skipped(program.as_fd())).sum()
    }

    /// Returns the descriptors that take long to close, for [`crate::sys::closer`].
    pub fn slow_to_close(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stopped.iter().map(OwnedFd::as_fd).chain(self.followers.iter().flat_map(Programs::slow_to_close))
    }
}

impl Program {
    fn new(name: String, section: &str, code: &[bpf::Instruction], output: usize, tracefs: &Tracefs) -> anyhow::Result<Program> {
        let what = || format!("the program {name}");
        let section = Section::parse(section).with_context(what)?;
        let seen = context::of(&section.place, tracefs).with_context(what)?;
        let mut own = ProgramEvent::new(&section.place.event(), &seen.context, &section.arguments).with_context(what)?;
        // All fields are only a default. If they do not fit on the stack, the event has none.
        if section.arguments.is_empty() && !wrap::fits(code, own.bytes) {
            own = own.bare();
        }
        Ok(Program { section, id: seen.id, own, output, array: None, loaded: None, name })
    }

    fn program_type(&self) -> ProgramType {
        match &self.section.place {
            AttachPoint::Tracepoint { .. } => ProgramType::Event,
            AttachPoint::Raw { typed: false, .. } => ProgramType::UntypedRawTracepoint,
            AttachPoint::Raw { typed: true, .. } => ProgramType::RawTracepoint(self.id),
            AttachPoint::Function { returns: false, .. } => ProgramType::FunctionEntry(self.id),
            AttachPoint::Function { returns: true, .. } => ProgramType::FunctionReturn(self.id),
            AttachPoint::KernelProbe { .. } | AttachPoint::ProgramProbe { .. } => ProgramType::Probe,
        }
    }

    fn load(&mut self, object: &Object, license: &CStr, tasks: TaskFilter) -> anyhow::Result<()> {
        let array = bpf::descriptors(MapType::PerfEventArray, possible_cpus())?;
        let own = EventOutput { map: array.as_fd().as_raw_fd(), fetches: &self.own.fetches, bytes: self.own.bytes };
        let program_type = self.program_type();
        let Some(program) = object.progs().find(|program| program.name() == OsStr::new(&self.name)) else { return Ok(()) };
        // On a tracepoint's perf event, the return values of all programs together decide whether anybody gets the
        // record.
        let on_shared_event = program_type == ProgramType::Event;
        let wrapped =
            wrap(program.insns(), tasks, Some(&own), i32::from(on_shared_event)).with_context(|| format!("the program {}", self.name))?;
        let name = CString::new(format!("{}{}", if on_shared_event { NAME_PREFIX } else { "" }, self.name))?;
        let mut code = Code::with_lines(object, &program, program_type);
        let place = |was| wrapped.place(was);
        code.replace(wrapped.instructions.clone(), place);
        (code.name, code.license, code.may_sleep) = (&name, license, self.section.may_sleep);
        let loaded = code.load_with_log_on_error().map_err(|refusal| self.refused(&refusal))?;
        drop(code);
        (self.array, self.loaded) = (Some(array), Some(loaded));
        Ok(())
    }

    fn refused(&self, refusal: &LoadError) -> anyhow::Error {
        let lines: Vec<&str> = refusal.log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| format!("\n    {line}")).collect::<String>();
        let log = if tail.is_empty() { String::new() } else { format!("; the verifier's log ends with:{tail}") };
        anyhow!("the kernel refuses the program {}: {}{log}", self.name, refusal.error)
    }
}

impl UserFile {
    fn load(&mut self, tasks: TaskFilter) -> anyhow::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let object = with_warnings(|| bpf::prepare(open)).context("the kernel lacks a facility that its programs need")?;
        self.programs.iter_mut().try_for_each(|program| program.load(&object, &self.license, tasks))?;
        self.object = Some(object);
        Ok(())
    }
}

fn section<'a>(elf: &Elf, bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let header = elf.section_headers.iter().find(|header| elf.shdr_strtab.get_at(header.sh_name) == Some(name))?;
    bytes.get(header.file_range()?)
}

/// The warnings of libbpf, which say more than its errors.
static WARNINGS: Mutex<String> = Mutex::new(String::new());

fn collect_warning(level: PrintLevel, text: String) {
    if level == PrintLevel::Warn {
        WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }
}

/// Calls libbpf, and adds its warnings to the error if it fails.
fn with_warnings<T>(act: impl FnOnce() -> libbpf_rs::Result<T>) -> anyhow::Result<T> {
    let warnings = || std::mem::take(&mut *WARNINGS.lock().unwrap_or_else(PoisonError::into_inner));
    warnings();
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, collect_warning)));
    let result = act();
    libbpf_rs::set_print(before);
    result.map_err(|error| {
        let warnings: String = warnings().lines().map(|line| format!("\n    {line}")).collect();
        anyhow!("{error:#}{warnings}")
    })
}
