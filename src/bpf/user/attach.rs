//! Programs are attached where their sections say, until the descriptor that this gives is closed.

use super::section::Place;
use crate::kernel::tracefs::Tracefs;
use crate::sys::bpf;
use crate::sys::perf::{Attr, Counts, On, PerfEvent, Probe, StackFields};
use anyhow::{Context, anyhow, bail};
use goblin::elf::program_header::PT_LOAD;
use goblin::elf::{Elf, sym};
use std::ffi::CString;
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What keeps a program attached.
#[derive(Debug)]
pub struct Attached {
    pub fd: OwnedFd,
    /// Closing it takes the kernel long: see [`crate::sys::closer`].
    pub slow: bool,
}

/// Attaches a program. `cpu` is one that is online.
///
/// # Errors
/// The kernel or the file has no such place, or the kernel lets nobody attach there.
pub fn attach(program: BorrowedFd, place: &Place, tracefs: &Tracefs, cpu: u32) -> anyhow::Result<Attached> {
    match place {
        Place::Tracepoint { subsystem, name } => {
            let counts = Counts::Tracepoint(tracefs.id(subsystem, name)?);
            let attr = Attr { counts, inherit: false, watermark: 1, stack: StackFields::default() };
            // The kernel keeps programs by tracepoint: one event, which stays disabled, is enough for all CPUs.
            with_program(PerfEvent::open(&attr, On::Everyone, cpu)?, program)
        }
        Place::Raw { name, typed: false } => {
            let name = CString::new(name.as_str())?;
            Ok(Attached { fd: bpf::attach_to_named_raw_tracepoint(program, &name)?, slow: false })
        }
        Place::Raw { typed: true, .. } => Ok(Attached { fd: bpf::attach_to_raw_tracepoint(program)?, slow: false }),
        Place::Function { returns, .. } => Ok(Attached { fd: bpf::attach_to_function(program, *returns)?, slow: false }),
        Place::KernelProbe { function, offset, returns } => {
            let of = CString::new(function.as_str())?;
            let device = device("kprobe").context("this kernel has no kprobes (CONFIG_KPROBE_EVENTS)")?;
            let probe = Probe { device, of: &of, offset: *offset, returns: *returns };
            with_program(PerfEvent::open_probe(&probe, cpu).with_context(|| format!("the kernel makes no probe at {function}"))?, program)
        }
        Place::ProgramProbe { file, function, offset, returns } => {
            let file = find(file)?;
            let offset = offset_in(&file, function)? + offset;
            let of = CString::new(file.as_os_str().as_bytes())?;
            let device = device("uprobe").context("this kernel has no uprobes (CONFIG_UPROBE_EVENTS)")?;
            let probe = Probe { device, of: &of, offset, returns: *returns };
            let made = PerfEvent::open_probe(&probe, cpu);
            with_program(made.with_context(|| format!("the kernel makes no probe at {function} of {}", file.display()))?, program)
        }
    }
}

fn with_program(event: PerfEvent, program: BorrowedFd) -> anyhow::Result<Attached> {
    event.set_program(program)?;
    Ok(Attached { fd: event.into(), slow: true })
}

/// The number of a device that makes probes.
fn device(name: &str) -> anyhow::Result<u32> {
    Ok(fs::read_to_string(format!("/sys/bus/event_source/devices/{name}/type"))?.trim().parse()?)
}

/// A program or library by its path, or by its name where such things are.
fn find(file: &Path) -> anyhow::Result<PathBuf> {
    if file.as_os_str().as_bytes().contains(&b'/') {
        return fs::canonicalize(file).with_context(|| format!("there is no file {}", file.display()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let libraries =
        [format!("/usr/lib/{of_machine}"), format!("/lib/{of_machine}"), "/usr/lib64".into(), "/lib64".into(), "/usr/lib".into()];
    let all = std::env::split_paths(&path).chain(libraries.iter().map(PathBuf::from));
    let found = all.map(|dir| dir.join(file)).find(|path| path.is_file());
    let found = found.ok_or_else(|| anyhow!("there is no program or library {} in PATH and {}", file.display(), libraries.join(", ")))?;
    Ok(fs::canonicalize(found)?)
}

/// Where in its file a function begins; a number is that already.
fn offset_in(file: &Path, function: &str) -> anyhow::Result<u64> {
    if let Some(digits) = function.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).with_context(|| format!("{function} is no place in a file"));
    }
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let elf = Elf::parse(&bytes).with_context(|| format!("{} is no program or library", file.display()))?;
    let is_function = |one: &sym::Sym| matches!(one.st_type(), sym::STT_FUNC | sym::STT_GNU_IFUNC) && one.st_shndx != 0;
    let tables = [(&elf.syms, &elf.strtab), (&elf.dynsyms, &elf.dynstrtab)];
    let mut named = tables.into_iter().flat_map(|(symbols, names)| {
        symbols.iter().filter(is_function).filter(|one| names.get_at(one.st_name) == Some(function)).map(|one| one.st_value)
    });
    let Some(address) = named.next() else { bail!("{} has no function {function} among its symbols", file.display()) };
    let segments = elf.program_headers.iter().filter(|one| one.p_type == PT_LOAD);
    let holds = |one: &&goblin::elf::ProgramHeader| address.checked_sub(one.p_vaddr).is_some_and(|into| into < one.p_filesz);
    let segment = segments.into_iter().find(holds).ok_or_else(|| anyhow!("{function} is not in {} itself", file.display()))?;
    Ok(address - segment.p_vaddr + segment.p_offset)
}
