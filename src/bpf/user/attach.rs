//! Attaches programs to the attach points of their sections, until the returned descriptor is closed.

use super::section::AttachPoint;
use crate::kernel::probe_device::ProbeDevice;
use crate::kernel::tracefs::Tracefs;
use crate::probe;
use crate::probe::grammar::{FilePlace, Probe, When};
use crate::probe::surroundings::Live;
use crate::sys::bpf;
use crate::sys::perf::{Counts, PerfEvent};
use anyhow::{Context, anyhow, bail};
use std::ffi::CString;
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An attached program.
#[derive(Debug)]
pub struct Attached {
    /// The event or link that the program is attached by. Closing it detaches the program.
    pub fd: OwnedFd,
    /// Whether closing the descriptor takes the kernel long ([`crate::sys::closer`]).
    pub slow: bool,
}

/// Attaches a program. `cpu` is an online CPU.
///
/// # Errors
/// The kernel or the file has no such attach point, or the kernel does not allow attaching to it.
pub fn attach(program: BorrowedFd, place: &AttachPoint, tracefs: &Tracefs, cpu: u32) -> anyhow::Result<Attached> {
    match place {
        AttachPoint::Tracepoint { subsystem, name } => {
            with_program(PerfEvent::for_program(Counts::Tracepoint(tracefs.id(subsystem, name)?), cpu)?, program)
        }
        AttachPoint::Raw { name, typed: false } => {
            let name = CString::new(name.as_str())?;
            Ok(Attached { fd: bpf::attach_to_named_raw_tracepoint(program, &name)?, slow: false })
        }
        AttachPoint::Raw { typed: true, .. } => Ok(Attached { fd: bpf::attach_to_raw_tracepoint(program)?, slow: false }),
        AttachPoint::Function { returns, .. } => Ok(Attached { fd: bpf::attach_to_function(program, *returns)?, slow: false }),
        AttachPoint::KernelProbe { function, offset, returns } => {
            let of = CString::new(function.as_str())?;
            let device = ProbeDevice::of_the_kernel().context("this kernel has no kprobes (CONFIG_KPROBE_EVENTS)")?;
            let made = of_device(&device, of, *offset, *returns, cpu);
            with_program(made.with_context(|| format!("the kernel cannot create a probe at {function}"))?, program)
        }
        AttachPoint::ProgramProbe { file, function, offset, returns } => {
            let (file, offset) = place_in(&find(file)?, function, *offset, *returns)?;
            let of = CString::new(file.as_os_str().as_bytes())?;
            let device = ProbeDevice::of_programs().context("this kernel has no uprobes (CONFIG_UPROBE_EVENTS)")?;
            let made = of_device(&device, of, offset, *returns, cpu);
            with_program(made.with_context(|| format!("the kernel cannot create a probe at {function} of {}", file.display()))?, program)
        }
    }
}

fn with_program(event: PerfEvent, program: BorrowedFd) -> anyhow::Result<Attached> {
    event.set_program(program)?;
    Ok(Attached { fd: event.into(), slow: true })
}

fn of_device(device: &ProbeDevice, of: CString, offset: u64, returns: bool, cpu: u32) -> anyhow::Result<PerfEvent> {
    let probe = device.probe(of, offset, returns, None).context("it has no return probes")?;
    Ok(PerfEvent::for_program(Counts::Probe(Arc::new(probe)), cpu)?)
}

/// Finds a program or library by its path, or by its name in PATH and the directories of libraries.
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

/// Resolves a function to an offset in a file. A number is an offset already.
fn place_in(file: &Path, function: &str, offset: u64, returns: bool) -> anyhow::Result<(PathBuf, u64)> {
    let at = match function.strip_prefix("0x") {
        Some(digits) => {
            let start = u64::from_str_radix(digits, 16).with_context(|| format!("{function} is not an offset in a file"))?;
            FilePlace::Offset(start.saturating_add(offset))
        }
        None => FilePlace::Symbol { symbol: function.to_owned(), offset: offset.cast_signed() },
    };
    let when = if returns { When::Return { maxactive: None } } else { When::Entry };
    let place = probe::grammar::ProbePoint::File { path: file.to_owned(), at, when, reference_counter: None };
    let resolved = probe::resolve(&Probe { group: None, event: None, place, args: Vec::new() }, &mut Live)?;
    match resolved.probes.into_iter().next().map(|probe| probe.place) {
        Some(probe::grammar::ProbePoint::File { path, at: FilePlace::Offset(offset), .. }) => Ok((path, offset)),
        _ => bail!("{function} is not a location in {}", file.display()),
    }
}
