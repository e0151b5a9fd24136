//! The events of `--probe`: created before anything is armed, and removed at the end of the run, however it ends.
//!
//! An event cannot be removed while any descriptor of it is open, so the owner of a [`RunEvents`] closes those first.
//! Dropping it removes the events too, which covers errors and panics. The events of a killed run are removed by
//! [`crate::arm::stale`].

use super::by_device::{self, ByDevice};
use super::dynamic_events::{DynamicEvents, WriteError};
use super::grammar::{Field, FilePlace, KernelPlace, Probe, ProbePoint};
use super::inventory;
use super::kernel;
use super::names;
use super::owner::Owner;
use super::ownership_list::{self, OwnershipList};
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

/// How long the removal of a busy event is retried after all our descriptors of it are closed: a task that is about to
/// exit may still hold it.
const IN_USE: Duration = Duration::from_secs(2);
/// A PMU is preferred to tracefs if at most this many events of a probe are opened. Each of them is a probe of its own:
/// every hit costs some 0.5 us more, and the kernel takes 36-80 ms to close it.
const DEVICE_EVENTS_MAX: usize = 4;

/// The events that this process created.
#[derive(Debug, Default)]
pub struct RunEvents {
    file: Option<DynamicEvents>,
    events: Vec<RunEvent>,
    /// The registrations that keep the user events alive: the kernel removes a user event with its last one.
    registrations: Vec<Registration>,
    /// The entries in the runs' [`OwnershipList`] for events whose names do not show their owner.
    recorded: Vec<String>,
    /// Remarks for the user on how the probes were resolved.
    pub notes: Vec<String>,
}

/// One event. A probe has several if its place resolves to several addresses.
#[derive(Clone, Debug)]
pub struct RunEvent {
    /// The index of the request's item that it belongs to; `None`: rtrace needs it for itself.
    pub item: Option<usize>,
    /// The name in tracefs, or for an event of a PMU the name that it would have there.
    pub name: EventName,
    /// The name in lines.
    pub shown: EventName,
    /// The probe as the user wrote it.
    pub probe: Probe,
    /// If set, the event is not in tracefs: the kernel creates it when it is opened and removes it when it is closed.
    pub device: Option<ByDevice>,
}

impl RunEvent {
    /// Returns the probed function, if the user named one.
    pub fn function(&self) -> Option<&str> {
        match &self.probe.place {
            ProbePoint::Kernel { at: KernelPlace::Symbol { symbol, .. }, .. } => Some(symbol),
            ProbePoint::File { at: FilePlace::Symbol { symbol, .. }, .. } => Some(symbol),
            ProbePoint::Function { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns whether its records have the address in a program that a function returns to.
    pub fn returns_in_a_program(&self) -> bool {
        matches!(self.probe.place, ProbePoint::File { .. }) && self.probe.place.is_return()
    }
}

/// A probe that a run needs.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The index of the request's item that it belongs to, counted from 0.
    pub item: usize,
    /// The definition of the probe, whose names are not resolved yet.
    pub probe: &'a Probe,
    /// How many perf events of it are opened, if a PMU may create it.
    pub by_device: Option<usize>,
}

impl RunEvents {
    /// Creates the events of these probes.
    ///
    /// # Errors
    /// A name cannot be resolved, or the kernel refuses a probe. Then none of the events exists.
    pub fn create<'a>(tracefs: &Tracefs, probes: impl IntoIterator<Item = Wanted<'a>>) -> anyhow::Result<RunEvents> {
        let mut created = RunEvents::default();
        let mut taken = HashSet::new();
        for Wanted { item, probe, by_device } in probes {
            created.create_probe(tracefs, item, probe, by_device, &mut taken).with_context(|| format!("--probe '{probe}'"))?;
        }
        Ok(created)
    }

    fn create_probe(
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
        let may_skip = resolved.probes.len() > 1 && matches!(probe.place, ProbePoint::Kernel { .. });
        let device_first = by_device.is_some_and(|events| events <= DEVICE_EVENTS_MAX) && !may_skip;
        let mut first_refusal = None;
        for mut one in resolved.probes {
            let name = name(&one, &shown, taken)?;
            if has_fixed_name(&one) {
                one.group = None;
                if tracefs.has(&name.subsystem, &name.name) {
                    return Err(anyhow!("{name} exists already; trace it with -e {name}"));
                }
            } else {
                (one.group, one.event) = (Some(name.subsystem.clone()), Some(name.name.clone()));
            }
            let place = one.place.clone();
            let device = by_device.and_then(|_| by_device::of(&one, &name.name));
            let device = match self.create_one(&file, one, &name, device, device_first)? {
                Ok(device) => device,
                // A source line may be inlined into functions in which the kernel allows no probe.
                Err(WriteError::Refused(refused)) if may_skip => {
                    self.notes.push(format!("{shown} is not probed at{place}, one of its places: {}", refused.what));
                    first_refusal.get_or_insert(refused);
                    continue;
                }
                Err(refused) => return Err(explained(refused, probe)),
            };
            self.events.push(RunEvent { item: Some(item), name: name.clone(), shown: shown.clone(), probe: probe.clone(), device });
            if matches!(probe.place, ProbePoint::Synthetic { .. }) {
                self.record(tracefs, &name)?;
            }
        }
        match first_refusal {
            Some(refused) if self.of_item(item).next().is_none() => Err(refused.into()),
            _ => Ok(()),
        }
    }

    /// Creates one event. Returns the PMU's probe if a PMU creates the event instead of tracefs: because the PMU is
    /// preferred, or because tracefs is not writable for us.
    fn create_one(
        &mut self,
        file: &DynamicEvents,
        one: Probe,
        name: &EventName,
        device: Option<ByDevice>,
        device_first: bool,
    ) -> anyhow::Result<Result<Option<ByDevice>, WriteError>> {
        if let ProbePoint::User { flags, fields } = &one.place {
            self.registrations.push(register(&name.name, flags, fields)?);
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

    /// Returns why the kernel refused to open an event that a PMU creates. The PMU reports only an errno, so this tries
    /// to create the same probe in tracefs, whose error log has the reason.
    pub fn refusal(&self, tracefs: &Tracefs) -> Option<anyhow::Error> {
        let file = DynamicEvents::of(tracefs);
        self.events.iter().find_map(|event| {
            let line = &event.device.as_ref()?.line;
            match in_tracefs(&file, line.clone()) {
                Ok(Ok(())) => {
                    // The event is ours and closed. If it stays all the same, the next run removes it.
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

    /// Records an event of ours whose name does not show its owner.
    fn record(&mut self, tracefs: &Tracefs, name: &EventName) -> anyhow::Result<()> {
        let owner = owner()?;
        let all = inventory::definitions(tracefs)?;
        let Some(created) = all.iter().find(|listed| listed.name == *name) else { return Ok(()) };
        let entry = ownership_list::entry_of_run(owner, name, &created.line);
        let existing = || Ok(all.iter().map(|listed| ownership_list::entry(&listed.name, &listed.line)).collect());
        // Without the record, the event stays only if this run is killed.
        if OwnershipList::of_runs().add(std::slice::from_ref(&entry), existing).is_ok() {
            self.recorded.push(entry);
        }
        Ok(())
    }

    /// Creates an event that rtrace needs for itself, by the first of these probes that the kernel accepts. The probes
    /// are in the kernel's own grammar.
    ///
    /// # Errors
    /// The kernel refuses all of them; the error is the one of the last probe.
    pub fn create_own(&mut self, tracefs: &Tracefs, probes: &[Probe]) -> anyhow::Result<EventName> {
        let file = self.file.get_or_insert_with(|| DynamicEvents::of(tracefs)).clone();
        let mut refused = anyhow!("there is no probe to create");
        for probe in probes {
            let shown = names::shown(probe);
            let mut taken = self.events.iter().map(|event| event.name.name.clone()).collect();
            let owner = owner()?;
            let name = match &probe.place {
                ProbePoint::Synthetic { .. } => owner.synthetic(&shown.name),
                _ => EventName { subsystem: owner.to_string(), name: names::unique(&shown.name, &mut taken) },
            };
            let one = Probe { group: Some(name.subsystem.clone()), event: Some(name.name.clone()), ..probe.clone() };
            match file.create(&one.to_string()) {
                Ok(()) => {
                    self.events.push(RunEvent { item: None, name: name.clone(), shown, probe: probe.clone(), device: None });
                    return Ok(name);
                }
                Err(error) => refused = error.into(),
            }
        }
        Err(refused)
    }

    /// Removes an event that [`RunEvents::create_own`] created, because it is of no use alone.
    pub fn remove_own(&mut self, name: &EventName) {
        // An event that cannot be removed now is removed at the end.
        if self.file.as_ref().is_some_and(|file| file.remove(name).is_ok()) {
            self.events.retain(|event| event.name != *name);
        }
    }

    /// Returns how often the kernel missed the probes that rtrace needs for itself, in all tasks of the machine.
    pub fn misses(&self) -> u64 {
        let own: Vec<&EventName> = self.events.iter().filter(|event| event.item.is_none()).map(|event| &event.name).collect();
        self.file.as_ref().filter(|_| !own.is_empty()).map_or(0, |file| file.misses(&own))
    }

    /// Returns the events that exist now, in the order of their probes.
    pub fn events(&self) -> &[RunEvent] {
        &self.events
    }

    /// Returns the PMU's probe that creates the event of this name, if the event is not in tracefs.
    pub fn device(&self, subsystem: &str, name: &str) -> Option<&ByDevice> {
        self.events.iter().find(|event| event.name.subsystem == subsystem && event.name.name == name)?.device.as_ref()
    }

    /// Returns the events of an item of the request.
    pub fn of_item(&self, item: usize) -> impl Iterator<Item = &RunEvent> {
        self.events.iter().filter(move |event| event.item == Some(item))
    }

    /// Removes all events that do not disappear with their last descriptor.
    ///
    /// # Errors
    /// Another process uses an event. That event and those created before it still exist.
    pub fn remove(&mut self) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        self.registrations.clear();
        self.events.retain(|event| event.device.is_none() && !matches!(event.probe.place, ProbePoint::User { .. }));
        let deadline = Instant::now() + IN_USE;
        // Events may refer to events that were created before them.
        while let Some(event) = self.events.last() {
            match file.remove(&event.name) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let left: Vec<String> = std::mem::take(&mut self.events).iter().map(|event| event.name.to_string()).collect();
                    return Err(error).with_context(|| format!("cannot remove the events of --probe ({})", left.join(", ")));
                }
                _ => self.events.pop(),
            };
        }
        if !self.recorded.is_empty() {
            // The next run removes entries of events that no longer exist.
            let _ = OwnershipList::of_runs().remove(&std::mem::take(&mut self.recorded));
        }
        Ok(())
    }
}

/// Removes the events after an error or a panic. A failure cannot be reported here.
impl Drop for RunEvents {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// Returns the event's name in tracefs.
fn name(probe: &Probe, shown: &EventName, taken: &mut HashSet<String>) -> anyhow::Result<EventName> {
    if has_fixed_name(probe) {
        return Ok(shown.clone());
    }
    Ok(EventName { subsystem: owner()?.to_string(), name: names::unique(&shown.name, taken) })
}

fn owner() -> anyhow::Result<Owner> {
    Owner::this().context("/proc is not mounted, so the events cannot be named after this process")
}

/// Returns whether the event keeps the name that the user chose: triggers write synthetic events, and programs write
/// user events, by their names.
fn has_fixed_name(probe: &Probe) -> bool {
    matches!(probe.place, ProbePoint::Synthetic { .. } | ProbePoint::User { .. })
}

/// Creates a user event that exists until its last registration ends, which may be ours or that of a program that
/// writes it.
fn register(name: &str, flags: &[String], fields: &[Field]) -> anyhow::Result<Registration> {
    if let Some(flag) = flags.first() {
        return Err(anyhow!(
            "a user event of --probe has no flags (`{}`); create one with flags by `rtrace probe add`",
            flag.escape_debug()
        ));
    }
    Ok(access::register(name, &Field::declarations(fields), Flags::default())?)
}

/// Creates the event in tracefs.
fn in_tracefs(file: &DynamicEvents, mut probe: Probe) -> anyhow::Result<Result<(), WriteError>> {
    let _opened = with_plain_path(&mut probe)?;
    Ok(file.create(&probe.to_string()))
}

/// Adds to the kernel's refusal what /proc/kallsyms says about the probed function or data.
fn explained(refused: WriteError, probe: &Probe) -> anyhow::Error {
    match kernel::symbol::doubt(probe, &mut Live) {
        Some(doubt) => anyhow::Error::from(refused).context(doubt),
        None => refused.into(),
    }
}

/// Replaces a path that the kernel's grammar cannot express (blanks, quotes, `#`) by one below /proc/self/fd. The
/// returned file has to stay open until the event is created.
/// the event is created.
pub(super) fn with_plain_path(probe: &mut Probe) -> anyhow::Result<Option<File>> {
    let ProbePoint::File { path, .. } = &mut probe.place else { return Ok(None) };
    let is_plain = |path: &str| !path.contains(|c: char| c.is_whitespace() || c.is_control() || "#\"'".contains(c));
    if path.to_str().is_some_and(is_plain) {
        return Ok(None);
    }
    let file = File::open(&*path).with_context(|| format!("cannot open {}", path.display()))?;
    *path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok(Some(file))
}
