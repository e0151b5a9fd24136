//! The events of `--probe`: made before anything is armed, taken away when the run is over, however it ends.
//!
//! An event cannot be taken away while anybody has a descriptor of it open, so whoever holds a [`Made`] closes those first; dropping it takes the events away as well, for all the ways out
//! on which nobody asks. What a killed run leaves is [`crate::arm::left`]'s.

use super::by_device::{self, ByDevice};
use super::dynamic_events::{DynamicEvents, WriteError};
use super::grammar::{Field, FilePlace, KernelPlace, Place, Probe};
use super::inventory;
use super::kept::{self, Kept};
use super::kernel;
use super::names;
use super::owner::Owner;
use super::resolve::resolve;
use super::surroundings::Live;
use super::user_events::access;
use crate::kernel::tracefs::{EventName, Tracefs};
use anyhow::{Context, anyhow};
use rtrace_mark::event::{Flags, Registration};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// So long an event may still be in use after all that we have of it is closed: a task that ends just now may hold it.
const IN_USE: Duration = Duration::from_secs(2);
/// Up to so many events of one probe a device is asked first. Each is a probe of its own: whoever comes by pays some 0.5 us for it, and the kernel takes 36-80 ms to close it.
const DEVICE_EVENTS_MAX: usize = 4;

/// The events that this process made.
#[derive(Debug, Default)]
pub struct Made {
    file: Option<DynamicEvents>,
    events: Vec<MadeEvent>,
    /// What keeps the user events among them: the kernel takes them away when nobody holds them any more.
    held: Vec<Registration>,
    /// What was written down of those whose names do not say whose they are.
    noted: Vec<String>,
    /// What the user ought to know about how probes were understood.
    pub notes: Vec<String>,
}

/// One event. A probe has several where its place is several.
#[derive(Clone, Debug)]
pub struct MadeEvent {
    /// Which item of the request it is of, by its place; `None`: rtrace needs it for itself.
    pub item: Option<usize>,
    /// In tracefs, or as if it were there.
    pub name: EventName,
    /// In lines.
    pub shown: EventName,
    /// As it was asked for.
    pub probe: Probe,
    /// It is not in tracefs: opening it makes it, and closing it takes it away.
    pub device: Option<ByDevice>,
}

impl MadeEvent {
    /// The function that it is on, if the user said which.
    pub fn function(&self) -> Option<&str> {
        match &self.probe.place {
            Place::Kernel { at: KernelPlace::Symbol { symbol, .. }, .. } => Some(symbol),
            Place::File { at: FilePlace::Symbol { symbol, .. }, .. } => Some(symbol),
            Place::Function { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Its records say where in a program a function returned to.
    pub fn returns_in_a_program(&self) -> bool {
        matches!(self.probe.place, Place::File { .. }) && self.probe.place.is_return()
    }
}

/// A probe that a run is to have.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The item of the request that it is of, counted from 0.
    pub item: usize,
    pub probe: &'a Probe,
    /// How many events of it are opened, where a device may make them.
    pub by_device: Option<usize>,
}

impl Made {
    /// Makes the events of these probes.
    ///
    /// # Errors
    /// Something has no such name, or the kernel does not take it. None of the events is there then.
    pub fn make<'a>(tracefs: &Tracefs, probes: impl IntoIterator<Item = Wanted<'a>>) -> anyhow::Result<Made> {
        let mut made = Made::default();
        let mut taken = HashSet::new();
        for Wanted { item, probe, by_device } in probes {
            made.of_probe(tracefs, item, probe, by_device, &mut taken).with_context(|| format!("--probe '{probe}'"))?;
        }
        Ok(made)
    }

    fn of_probe(
        &mut self,
        tracefs: &Tracefs,
        item: usize,
        probe: &Probe,
        by_device: Option<usize>,
        taken: &mut HashSet<String>,
    ) -> anyhow::Result<()> {
        let resolved = resolve(probe, &mut Live)?;
        self.notes.extend(resolved.notes);
        let file = self.file.get_or_insert_with(|| DynamicEvents::of(tracefs)).clone();
        let shown = names::shown(probe);
        let may_leave_out = resolved.probes.len() > 1 && matches!(probe.place, Place::Kernel { .. });
        let device_first = by_device.is_some_and(|events| events <= DEVICE_EVENTS_MAX) && !may_leave_out;
        let mut first_refused = None;
        for mut one in resolved.probes {
            let name = name(&one, &shown, taken)?;
            if is_named_for_all(&one) {
                one.group = None;
                if tracefs.has(&name.subsystem, &name.name) {
                    return Err(anyhow!("{name} is there already: -e {name} traces it"));
                }
            } else {
                (one.group, one.event) = (Some(name.subsystem.clone()), Some(name.name.clone()));
            }
            let place = one.place.clone();
            let device = by_device.and_then(|_| by_device::of(&one, &name.name));
            let device = match self.one(&file, one, &name, device, device_first)? {
                Ok(device) => device,
                // A line may have been copied into functions of which the kernel allows no probe.
                Err(WriteError::Refused(refused)) if may_leave_out => {
                    self.notes.push(format!("one of the places of {shown},{place}, is left out: {}", refused.what));
                    first_refused.get_or_insert(refused);
                    continue;
                }
                Err(refused) => return Err(explained(refused, probe)),
            };
            self.events.push(MadeEvent { item: Some(item), name: name.clone(), shown: shown.clone(), probe: probe.clone(), device });
            if matches!(probe.place, Place::Synthetic { .. }) {
                self.note(tracefs, &name)?;
            }
        }
        match first_refused {
            Some(refused) if self.of(item).next().is_none() => Err(refused.into()),
            _ => Ok(()),
        }
    }

    /// Makes one event, and gives what opening it makes it by, if that is not tracefs: the device that could, if it comes first or tracefs is not for us.
    fn one(
        &mut self,
        file: &DynamicEvents,
        one: Probe,
        name: &EventName,
        device: Option<ByDevice>,
        device_first: bool,
    ) -> anyhow::Result<Result<Option<ByDevice>, WriteError>> {
        if let Place::User { flags, fields } = &one.place {
            self.held.push(hold(&name.name, flags, fields)?);
            return Ok(Ok(None));
        }
        if device.is_some() && device_first {
            return Ok(Ok(device));
        }
        Ok(match in_tracefs(file, one)? {
            Ok(()) => Ok(None),
            Err(WriteError::NoPermission(_) | WriteError::NoTracefs(_)) if device.is_some() => Ok(device),
            Err(refused) => Err(refused),
        })
    }

    /// Why the kernel refused to open what its devices should make, which say only a number: what it says in tracefs, if it refuses it there too.
    pub fn refusal(&self, tracefs: &Tracefs) -> Option<anyhow::Error> {
        let file = DynamicEvents::of(tracefs);
        self.events.iter().find_map(|event| {
            let line = &event.device.as_ref()?.line;
            match in_tracefs(&file, line.clone()) {
                Ok(Ok(())) => {
                    // It is ours and closed, and if it stays all the same, the next run takes it away.
                    let _ = file.remove(&event.name);
                    None
                }
                Ok(Err(WriteError::Refused(refused))) => {
                    Some(explained(refused.into(), &event.probe).context(format!("--probe '{}'", event.probe)))
                }
                _ => None,
            }
        })
    }

    /// Writes down an event that is ours and does not say so.
    fn note(&mut self, tracefs: &Tracefs, name: &EventName) -> anyhow::Result<()> {
        let owner = owner()?;
        let all = inventory::listed(tracefs)?;
        let Some(made) = all.iter().find(|listed| listed.name == *name) else { return Ok(()) };
        let entry = kept::entry_of_run(owner, name, &made.line);
        let living = || Ok(all.iter().map(|listed| kept::entry(&listed.name, &listed.line)).collect());
        // Where it cannot be written down, it stays only if this run is killed.
        if Kept::of_runs().add(std::slice::from_ref(&entry), living).is_ok() {
            self.noted.push(entry);
        }
        Ok(())
    }

    /// Makes an event that rtrace needs for itself: of the first of these that the kernel takes. They are in the kernel's own words.
    ///
    /// # Errors
    /// It takes none: what it says to the last.
    pub fn own(&mut self, tracefs: &Tracefs, probes: &[Probe]) -> anyhow::Result<EventName> {
        let file = self.file.get_or_insert_with(|| DynamicEvents::of(tracefs)).clone();
        let mut refused = anyhow!("there is nothing to be made");
        for probe in probes {
            let shown = names::shown(probe);
            let mut taken = self.events.iter().map(|event| event.name.name.clone()).collect();
            let owner = owner()?;
            let name = match &probe.place {
                Place::Synthetic { .. } => owner.synthetic(&shown.name),
                _ => EventName { subsystem: owner.to_string(), name: names::unique(&shown.name, &mut taken) },
            };
            let one = Probe { group: Some(name.subsystem.clone()), event: Some(name.name.clone()), ..probe.clone() };
            match file.make(&one.to_string()) {
                Ok(()) => {
                    self.events.push(MadeEvent { item: None, name: name.clone(), shown, probe: probe.clone(), device: None });
                    return Ok(name);
                }
                Err(error) => refused = error.into(),
            }
        }
        Err(refused)
    }

    /// Takes one of those away again that rtrace made for itself, as it is of no use alone.
    pub fn disown(&mut self, name: &EventName) {
        // What is not taken away now is at the end.
        if self.file.as_ref().is_some_and(|file| file.remove(name).is_ok()) {
            self.events.retain(|event| event.name != *name);
        }
    }

    /// How often the kernel missed what rtrace needs for itself, on all of the machine.
    pub fn misses(&self) -> u64 {
        let own: Vec<&EventName> = self.events.iter().filter(|event| event.item.is_none()).map(|event| &event.name).collect();
        self.file.as_ref().filter(|_| !own.is_empty()).map_or(0, |file| file.misses(&own))
    }

    pub fn events(&self) -> &[MadeEvent] {
        &self.events
    }

    /// What makes the event of this name, if it is not in tracefs.
    pub fn device(&self, subsystem: &str, name: &str) -> Option<&ByDevice> {
        self.events.iter().find(|event| event.name.subsystem == subsystem && event.name.name == name)?.device.as_ref()
    }

    /// Those of an item of the request.
    pub fn of(&self, item: usize) -> impl Iterator<Item = &MadeEvent> {
        self.events.iter().filter(move |event| event.item == Some(item))
    }

    /// Takes all away that is not gone with its last descriptor.
    ///
    /// # Errors
    /// One that somebody else uses, and perhaps others before it, are still there.
    pub fn remove(&mut self) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        self.held.clear();
        self.events.retain(|event| event.device.is_none() && !matches!(event.probe.place, Place::User { .. }));
        let patience = Instant::now() + IN_USE;
        // Events may hang on events that were made before them.
        while let Some(event) = self.events.last() {
            match file.remove(&event.name) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let left: Vec<String> = std::mem::take(&mut self.events).iter().map(|event| event.name.to_string()).collect();
                    return Err(error).with_context(|| format!("cannot take away what --probe made ({})", left.join(", ")));
                }
                _ => self.events.pop(),
            };
        }
        if !self.noted.is_empty() {
            // The next run strikes out what is not there.
            let _ = Kept::of_runs().forget(&std::mem::take(&mut self.noted));
        }
        Ok(())
    }
}

/// On the ways out on which nobody asks. There may be nobody to tell, either.
impl Drop for Made {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// The event's name in tracefs.
fn name(probe: &Probe, shown: &EventName, taken: &mut HashSet<String>) -> anyhow::Result<EventName> {
    if is_named_for_all(probe) {
        return Ok(shown.clone());
    }
    Ok(EventName { subsystem: owner()?.to_string(), name: names::unique(&shown.name, taken) })
}

fn owner() -> anyhow::Result<Owner> {
    Owner::this().context("/proc is not mounted, so nobody could tell whose the events are")
}

/// Synthetic and user events are known by their names to those who give them their values.
fn is_named_for_all(probe: &Probe) -> bool {
    matches!(probe.place, Place::Synthetic { .. } | Place::User { .. })
}

/// Makes a user event that is gone when its last holder is, however that ends: us, or the programs that write it.
fn hold(name: &str, flags: &[String], fields: &[Field]) -> anyhow::Result<Registration> {
    if let Some(flag) = flags.first() {
        return Err(anyhow!("a run's own user event takes no flags (`{}`): `rtrace probe add` makes others", flag.escape_debug()));
    }
    Ok(access::register(name, &Field::declarations(fields), Flags::default())?)
}

/// Makes it by its line, or says why the kernel does not.
fn in_tracefs(file: &DynamicEvents, mut probe: Probe) -> anyhow::Result<Result<(), WriteError>> {
    let _opened = speakable(&mut probe)?;
    Ok(file.make(&probe.to_string()))
}

/// With what rtrace itself knows of the name.
fn explained(refused: WriteError, probe: &Probe) -> anyhow::Error {
    match kernel::symbol::doubt(probe, &mut Live) {
        Some(doubt) => anyhow::Error::from(refused).context(doubt),
        None => refused.into(),
    }
}

/// Gives a file that the kernel's grammar has no words for, a path that it has: by a descriptor, which must live until the event is made.
pub(super) fn speakable(probe: &mut Probe) -> anyhow::Result<Option<File>> {
    let Place::File { path, .. } = &mut probe.place else { return Ok(None) };
    let is_plain = |path: &str| !path.contains(|c: char| c.is_whitespace() || c.is_control() || "#\"'".contains(c));
    if path.to_str().is_some_and(is_plain) {
        return Ok(None);
    }
    let file = File::open(&*path).with_context(|| format!("cannot open {}", path.display()))?;
    *path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok(Some(file))
}
