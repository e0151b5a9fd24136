//! `rtrace probe add`: probes that stay, from a line or from a file of them; all or none.

use super::pattern::{Pattern, nothing};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::change::{Change, RemoveError};
use crate::probe::grammar::{self, KernelPlace, Line, Place, Probe, Removal};
use crate::probe::inventory::{self, Entry};
use crate::probe::surroundings::Live;
use crate::probe::{holders, names, resolve};
use crate::request::Lines;
use crate::say;
use anyhow::{Context, anyhow, bail};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// A line, and what an error in it begins with.
struct Step {
    place: Option<String>,
    act: Act,
}

enum Act {
    /// In the kernel's own grammar, and what they are called if they have no names.
    Make(String, Vec<Probe>),
    /// It may be, if the kernel knows the names in it.
    Offer(Probe),
    Remove(Removal),
}

/// Does what the lines say. Gives the names of the events that were made, one a line.
///
/// # Errors
/// A line that says nothing, or that the kernel does not take, by its number. Then all is as before, or it is said what is not.
pub fn add(tracefs: &Tracefs, lines: &Lines, force: bool) -> anyhow::Result<String> {
    let steps = match lines {
        Lines::One(text) => vec![step(None, one(text)?)?],
        Lines::File(path) => of_file(path)?,
    };
    let mut change = Change::new(tracefs);
    for step in &steps {
        if let Err(error) = take(tracefs, &mut change, &step.act, force) {
            let error = in_place(error, step.place.as_deref());
            let stayed = change.take_back();
            return if stayed.is_empty() { Err(error) } else { Err(anyhow!("{error:#}; {}", stayed.join("; "))) };
        }
    }
    let (names, written) = change.keep();
    if let Err(error) = written {
        say!("rtrace: note: {error:#}, so `rtrace probe del` takes these for somebody else's (--force deletes them)");
    }
    Ok(names.iter().map(|name| format!("{name}\n")).collect())
}

fn one(text: &str) -> anyhow::Result<Line> {
    match grammar::parse(text)? {
        Line::Remove(_) => bail!("`{}` removes: rtrace probe del does that", text.escape_debug()),
        line => Ok(line),
    }
}

fn of_file(path: &Path) -> anyhow::Result<Vec<Step>> {
    let name = path.display().to_string();
    let text = if name == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        // An error quotes the line that it is about.
        fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("cannot read {name}"))?;
    let lines = grammar::parse_file(&text).map_err(|error| anyhow!("{name}, {error}"))?;
    lines.into_iter().map(|(number, line)| step(Some(format!("{name}, line {number}")), line)).collect()
}

/// Looks up the names in a line, but for those that the kernel may know itself: what is wrong with them is said before anything is done.
fn step(place: Option<String>, line: Line) -> anyhow::Result<Step> {
    let act = match line {
        Line::Remove(removal) => Act::Remove(removal),
        Line::Make(probe) if may_be_in_the_kernels_words(&probe) => Act::Offer(probe),
        Line::Make(probe) => {
            let probes = looked_up(&probe).map_err(|error| in_place(error, place.as_deref()))?;
            Act::Make(names::shown(&probe).name, probes)
        }
    };
    Ok(Step { place, act })
}

fn may_be_in_the_kernels_words(probe: &Probe) -> bool {
    match &probe.place {
        Place::Kernel { at, .. } => !matches!(at, KernelPlace::Line(_)),
        place => matches!(place, Place::Function { .. } | Place::Tracepoint { .. }),
    }
}

fn looked_up(probe: &Probe) -> anyhow::Result<Vec<Probe>> {
    let resolved = resolve(probe, &mut Live)?;
    resolved.notes.iter().for_each(|note| say!("rtrace: note: {note}"));
    Ok(told_apart(resolved.probes))
}

fn in_place(error: anyhow::Error, place: Option<&str>) -> anyhow::Error {
    match place {
        Some(place) => error.context(place.to_owned()),
        None => error,
    }
}

/// Several places of one probe get numbers behind their name.
fn told_apart(mut probes: Vec<Probe>) -> Vec<Probe> {
    for (index, probe) in probes.iter_mut().enumerate().skip(1) {
        probe.event = probe.event.as_ref().map(|event| format!("{event}_{index}"));
    }
    probes
}

fn take(tracefs: &Tracefs, change: &mut Change, act: &Act, force: bool) -> anyhow::Result<()> {
    match act {
        Act::Make(name, probes) => probes.iter().try_for_each(|probe| change.make(probe, name)),
        Act::Offer(probe) => offer(change, probe),
        Act::Remove(removal) => remove(tracefs, change, removal, force),
    }
}

/// As it is, if the kernel takes it: then the line that it shows is the one that was written. Else with its names looked up.
fn offer(change: &mut Change, probe: &Probe) -> anyhow::Result<()> {
    let name = names::shown(probe).name;
    let Err(refused) = change.make(probe, &name) else { return Ok(()) };
    let probes = looked_up(probe)?;
    if probes == [probe.clone()] { Err(refused) } else { probes.iter().try_for_each(|probe| change.make(probe, &name)) }
}

fn remove(tracefs: &Tracefs, change: &mut Change, removal: &Removal, force: bool) -> anyhow::Result<()> {
    let all = inventory::read(tracefs)?;
    let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "*".to_owned());
    let word = format!("{}:{}", part(&removal.group), part(&removal.event));
    let pattern = Pattern::of(&word);
    let mut found: Vec<&Entry> = all.iter().filter(|entry| pattern.matches(&entry.name)).collect();
    if found.is_empty() {
        bail!(nothing("dynamic event", &word, all.iter().map(|entry| &entry.name)));
    }
    if let Some(entry) = found.iter().find(|entry| !force && !inventory::is_ours(&all, &entry.name) && !change.made(&entry.name)) {
        bail!(not_ours(&entry.name));
    }
    // Events may hang on those that were made before them.
    found.reverse();
    found.into_iter().try_for_each(|entry| match change.remove(entry) {
        // It went with another of its name.
        Ok(()) | Err(RemoveError::Gone(_)) => Ok(()),
        Err(error) => Err(explained(tracefs, entry, &all, error)),
    })
}

/// The sentence about an event that is not for us to delete.
pub fn not_ours(name: &EventName) -> String {
    format!("{name} was not made by `rtrace probe add` (--force deletes it nonetheless)")
}

/// Who may hold an event that is in use.
pub fn explained(tracefs: &Tracefs, entry: &Entry, all: &[Entry], error: RemoveError) -> anyhow::Error {
    match error {
        RemoveError::Busy(name) => {
            let holders = holders::of(tracefs, entry, all);
            let holders = if holders.is_empty() { "nobody who can be seen from here has it".to_owned() } else { holders.join("; ") };
            anyhow!("{name} is in use: {holders}")
        }
        error => error.into(),
    }
}
