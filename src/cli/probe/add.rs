//! `rtrace probe add`: adds permanent probes from one line or from a file of lines. Either all lines succeed, or none
//! takes effect.

use super::pattern::{Pattern, no_match};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::change::{Change, RemoveError};
use crate::probe::grammar::{self, KernelPlace, Line, Probe, ProbePoint, Removal};
use crate::probe::inventory::{self, DynamicEvent};
use crate::probe::surroundings::Live;
use crate::probe::{holders, names, resolve};
use crate::request::ProbeSource;
use crate::say;
use anyhow::{Context, anyhow, bail};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// A parsed line of the input, ready to be carried out.
struct PlannedLine {
    /// File and line number, with which an error message begins; `None` for a line of the command line.
    location: Option<String>,
    action: Action,
}

enum Action {
    /// Create these probes, which are in the kernel's own grammar. Those without a name are called by this one.
    Create(String, Vec<Probe>),
    /// Create this probe, which is in the kernel's own grammar if the kernel can resolve the names in it.
    CreateAsWritten(Probe),
    Remove(Removal),
}

/// Carries out the lines. Returns the names of the events that were created, one per line.
///
/// # Errors
/// A line is malformed, or the kernel refuses it; the error names the line. All changes have been undone then, and the
/// error names those that could not be undone.
pub fn add(tracefs: &Tracefs, lines: &ProbeSource, force: bool) -> anyhow::Result<String> {
    let planned = match lines {
        ProbeSource::One(text) => vec![plan_line(None, parse_argument(text)?)?],
        ProbeSource::File(path) => read_file(path)?,
    };
    let mut change = Change::new(tracefs);
    for line in &planned {
        if let Err(error) = carry_out(tracefs, &mut change, &line.action, force) {
            let error = with_location(error, line.location.as_deref());
            let stayed = change.roll_back();
            return if stayed.is_empty() { Err(error) } else { Err(anyhow!("{error:#}; {}", stayed.join("; "))) };
        }
    }
    let (names, written) = change.commit();
    if let Err(error) = written {
        say!("rtrace: note: {error:#}, so `rtrace probe del` will delete these events only with --force");
    }
    Ok(names.iter().map(|name| format!("{name}\n")).collect())
}

fn parse_argument(text: &str) -> anyhow::Result<Line> {
    match grammar::parse(text)? {
        Line::Remove(_) => bail!("`{}` deletes an event: use rtrace probe del for that", text.escape_debug()),
        line => Ok(line),
    }
}

fn read_file(path: &Path) -> anyhow::Result<Vec<PlannedLine>> {
    let name = path.display().to_string();
    let text = if name == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("cannot read {name}"))?;
    let lines = grammar::parse_file(&text).map_err(|error| anyhow!("{name}, {error}"))?;
    lines.into_iter().map(|(number, line)| plan_line(Some(format!("{name}, line {number}")), line)).collect()
}

/// Resolves the names in a line, except in a line that the kernel may be able to resolve itself. Errors are found here,
/// before any line is carried out.
fn plan_line(location: Option<String>, line: Line) -> anyhow::Result<PlannedLine> {
    let action = match line {
        Line::Remove(removal) => Action::Remove(removal),
        Line::Make(probe) if kernel_may_resolve(&probe) => Action::CreateAsWritten(probe),
        Line::Make(probe) => {
            let probes = resolved(&probe).map_err(|error| with_location(error, location.as_deref()))?;
            Action::Create(names::shown(&probe).name, probes)
        }
    };
    Ok(PlannedLine { location, action })
}

fn kernel_may_resolve(probe: &Probe) -> bool {
    match &probe.place {
        ProbePoint::Kernel { at, .. } => !matches!(at, KernelPlace::Line(_)),
        place => matches!(place, ProbePoint::Function { .. } | ProbePoint::Tracepoint { .. }),
    }
}

/// Resolves the names in a probe, and prints notes about them on stderr.
fn resolved(probe: &Probe) -> anyhow::Result<Vec<Probe>> {
    let resolved = resolve(probe, &mut Live)?;
    resolved.notes.iter().for_each(|note| say!("rtrace: note: {note}"));
    Ok(numbered(resolved.probes))
}

fn with_location(error: anyhow::Error, location: Option<&str>) -> anyhow::Error {
    match location {
        Some(location) => error.context(location.to_owned()),
        None => error,
    }
}

/// If a probe has several places in the code, appends a number to the event name of each but the first.
fn numbered(mut probes: Vec<Probe>) -> Vec<Probe> {
    for (index, probe) in probes.iter_mut().enumerate().skip(1) {
        probe.event = probe.event.as_ref().map(|event| format!("{event}_{index}"));
    }
    probes
}

fn carry_out(tracefs: &Tracefs, change: &mut Change, action: &Action, force: bool) -> anyhow::Result<()> {
    match action {
        Action::Create(name, probes) => probes.iter().try_for_each(|probe| change.create(probe, name)),
        Action::CreateAsWritten(probe) => create_as_written(change, probe),
        Action::Remove(removal) => remove(tracefs, change, removal, force),
    }
}

/// Creates the probe as the user wrote it, so that the kernel shows that line in tracefs. If the kernel refuses it,
/// creates it with its names resolved.
fn create_as_written(change: &mut Change, probe: &Probe) -> anyhow::Result<()> {
    let name = names::shown(probe).name;
    let Err(refused) = change.create(probe, &name) else { return Ok(()) };
    let probes = resolved(probe)?;
    if probes == [probe.clone()] { Err(refused) } else { probes.iter().try_for_each(|probe| change.create(probe, &name)) }
}

fn remove(tracefs: &Tracefs, change: &mut Change, removal: &Removal, force: bool) -> anyhow::Result<()> {
    let all = inventory::read(tracefs)?;
    let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "*".to_owned());
    let word = format!("{}:{}", part(&removal.group), part(&removal.event));
    let pattern = Pattern::of(&word);
    let mut found: Vec<&DynamicEvent> = all.iter().filter(|entry| pattern.matches(&entry.name)).collect();
    if found.is_empty() {
        bail!(no_match("dynamic event", &word, all.iter().map(|entry| &entry.name)));
    }
    if let Some(entry) = found.iter().find(|entry| !force && !inventory::is_ours(&all, &entry.name) && !change.has_created(&entry.name)) {
        bail!(not_ours(&entry.name));
    }
    // An event may depend on one that was created before it.
    found.reverse();
    found.into_iter().try_for_each(|entry| match change.remove(entry) {
        // The kernel has removed it together with another probe of the same name.
        Ok(()) | Err(RemoveError::Gone(_)) => Ok(()),
        Err(error) => Err(explained(tracefs, entry, &all, error)),
    })
}

/// Returns the error message for an event that somebody else created.
pub fn not_ours(name: &EventName) -> String {
    format!("{name} was not created by `rtrace probe add` (--force deletes it anyway)")
}

/// Adds the processes that may be using the event to an error that says that it is in use.
pub fn explained(tracefs: &Tracefs, entry: &DynamicEvent, all: &[DynamicEvent], error: RemoveError) -> anyhow::Error {
    match error {
        RemoveError::Busy(name) => {
            let holders = holders::of(tracefs, entry, all);
            let holders = if holders.is_empty() { "no process that is visible here has it open".to_owned() } else { holders.join("; ") };
            anyhow!("{name} is in use: {holders}")
        }
        error => error.into(),
    }
}
