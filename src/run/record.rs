//! Begins the recording of a trace, and says at its end what it has.

use crate::kernel::machine;
use crate::kernel::tracefs::Tracefs;
use crate::plan::Plan;
use crate::recording::{About, Begin, Totals, TracingData, Writer};
use crate::request::{Recording, Trace};
use crate::session::{Session, Targets};
use crate::sys::perf::{Attr, AttrNumbers, Delivery};
use anyhow::{Context, bail};
use rustix::fs::Access;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Creates the file of a recording.
///
/// # Errors
/// The file cannot be created, or is a pipe or a device, to which no recording can be written.
pub fn create(path: &Path) -> anyhow::Result<File> {
    let name = path.display();
    if path == Path::new("-") {
        bail!(
            "a recording is not written to standard output, because its header is written at its end: give a file (./- is a file of this name)"
        );
    }
    let file = crate::sink::path::create(path).with_context(|| format!("cannot write the recording to {name}"))?;
    if !file.metadata().with_context(|| format!("cannot write the recording to {name}"))?.is_file() {
        bail!("cannot write the recording to {name}: it is not a regular file, and the header of a recording is written at its end");
    }
    Ok(file)
}

/// Creates the file of the recording that a trace makes, if it makes one. The files of snapshots are created later.
///
/// # Errors
/// The file cannot be created, or no file can be created beside it.
pub fn create_now(request: &Trace) -> anyhow::Result<Option<(&Recording, File)>> {
    match &request.recording {
        None => Ok(None),
        Some(of) if of.snapshots.is_some() => check_directory(&of.path).map(|()| None),
        Some(of) => Ok(Some((of, create(&of.path)?))),
    }
}

/// Checks that files can be created beside this one, before anything is recorded.
///
/// # Errors
/// The directory does not exist, or the user may not write there.
fn check_directory(path: &Path) -> anyhow::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::access(parent, Access::WRITE_OK | Access::EXEC_OK)
        .with_context(|| format!("cannot write snapshots to {}", parent.display()))
}

/// What a recording begins with.
#[derive(Clone, Debug)]
pub struct Head {
    begin: Begin,
    attrs: Vec<AttrNumbers>,
    about: About,
}

impl Head {
    /// Returns this beginning for a stream whose traced processes are others
    /// ([`crate::session::Session::processes`]).
    pub fn with_processes(mut self, processes: Option<Vec<i32>>) -> Head {
        self.begin.session.processes = processes;
        self
    }

    /// Writes the beginning of a recording into its empty file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(&self, file: File, path: &Path) -> anyhow::Result<Writer> {
        let path = path.display();
        Writer::new(file, self.begin.clone(), &self.attrs, self.about.clone())
            .with_context(|| format!("cannot write the recording to {path}"))
    }
}

/// Returns what the recordings of this trace begin with.
pub fn head((request, recording): (&Trace, &Recording), plan: &Plan, session: &Session, tracefs: &Tracefs) -> Head {
    let begin = Begin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        selection: recording.selection.clone(),
        session: session.clone(),
        of_all: matches!(plan.targets, Targets::SystemWide),
        has_lines: request.graphs.lines || request.graphs.inlined,
        lacks_answers: recording.is_alone,
        ..Begin::default()
    };
    let attrs: Vec<_> = plan
        .events
        .iter()
        .map(|event| {
            Attr { counts: event.counts.clone(), inherit: event.inherit, watermark: 0, stack: event.stack, delivery: Delivery::Kept }
                .numbers()
        })
        .collect();
    let uname = rustix::system::uname();
    let about = About {
        hostname: uname.nodename().to_string_lossy().into_owned(),
        release: session.release.clone(),
        machine: uname.machine().to_string_lossy().into_owned(),
        online_cpus: machine::online_cpus().map_or(0, |cpus| cpus.len() as u32),
        command_line: std::env::args_os().map(OsString::into_vec).collect(),
        realtime_offset: session.realtime_offset,
        formats: formats(session, tracefs),
        compression: recording.compression,
    };
    Head { begin, attrs, about }
}

/// Returns the texts that describe the records of the session's tracepoints.
fn formats(session: &Session, tracefs: &Tracefs) -> TracingData {
    let mut systems: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for spec in session.events.events.iter().filter(|spec| spec.format.is_some()) {
        if let Some((system, name)) = spec.name.split_once(':')
            && let Ok(text) = tracefs.format_text(system, name)
        {
            systems.entry(system.to_owned()).or_default().push(text.into_bytes());
        }
    }
    let header = |name: &str| tracefs.root().join("events").join(name).read().unwrap_or_default();
    TracingData {
        page_bytes: rustix::param::page_size() as u32,
        header_page: header("header_page"),
        header_event: header("header_event"),
        systems: systems.into_iter().collect(),
    }
}

/// Returns the sentence about a complete recording.
pub fn sentence(path: &Path, totals: &Totals) -> String {
    let Totals { bytes, samples, lost, unreadable } = totals;
    let unreadable = if *unreadable > 0 { format!(", {unreadable} not readable") } else { String::new() };
    format!("recorded {samples} events in {} ({bytes} bytes), {lost} lost{unreadable}", path.display())
}
