//! Creates and removes persistent dynamic events as one transaction: if a step fails, the earlier steps are undone.

use super::dynamic_events::DynamicEvents;
use super::grammar::{Field, Probe, ProbePoint};
use super::groups::{self, USER, USER_MULTI};
use super::inventory::{self, Creator, DynamicEvent};
use super::names;
use super::ownership_list::{self, OwnershipList};
use super::run_events::with_plain_path;
use super::user_events::{UserEventError, access};
use crate::kernel::tracefs::{EventName, Tracefs};
use anyhow::{Context, bail};
use rtrace_mark::Error as Refused;
use rtrace_mark::event::Flags;
use std::collections::HashSet;
use std::io;

/// The changes that one call of `rtrace probe` makes to the kernel's dynamic events.
#[derive(Debug)]
pub struct Change<'a> {
    tracefs: &'a Tracefs,
    file: DynamicEvents,
    done: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    /// The created event, and its line as the kernel shows it.
    Created(EventName, String),
    Removed(DynamicEvent),
}

/// Why an event was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("{0} is in use")]
    Busy(EventName),
    #[error("{0} does not exist any more")]
    Gone(EventName),
    #[error("{name} cannot be removed: {error}")]
    Other { name: EventName, error: anyhow::Error },
}

impl<'a> Change<'a> {
    pub fn new(tracefs: &'a Tracefs) -> Change<'a> {
        Change { tracefs, file: DynamicEvents::of(tracefs), done: Vec::new() }
    }

    /// Returns whether this call has created the event.
    pub fn has_created(&self, name: &EventName) -> bool {
        self.done.iter().any(|step| matches!(step, Step::Created(created, _) if created == name))
    }

    /// Creates a probe that is in the kernel's own grammar. Without a group, it gets the kernel's default for its kind.
    /// Without a name, it gets the wanted one, with a number appended if another event has that name.
    ///
    /// # Errors
    /// Such an event exists, and this call has not created it; or the kernel refuses the probe.
    pub fn create(&mut self, probe: &Probe, wanted: &str) -> anyhow::Result<()> {
        if let ProbePoint::User { flags, .. } = &probe.place {
            return self.create_user(probe, user_flags(flags)?);
        }
        let group = probe.group.clone().unwrap_or_else(|| groups::by_kind(&probe.place).to_owned());
        let event = probe.event.clone().unwrap_or_else(|| {
            let mut taken: HashSet<String> = self.tracefs.names(&group).unwrap_or_default().into_iter().collect();
            names::unique(wanted, &mut taken)
        });
        let name = EventName { subsystem: group, name: event };
        if self.tracefs.has(&name.subsystem, &name.name) && !self.has_created(&name) {
            bail!("an event {name} exists already");
        }
        let mut named = Probe { group: Some(name.subsystem.clone()), event: Some(name.name.clone()), ..probe.clone() };
        let _opened = with_plain_path(&mut named)?;
        self.file.create(&named.to_string())?;
        // The kernel appends a probe to others of the same name, which this call may have created, so ours is the last
        // one. The event exists and has to be undone even if the list cannot be read now.
        let line = self.file.read().unwrap_or_default().into_iter().rev().find(|listed| listed.name == name).map(|listed| listed.line);
        self.done.push(Step::Created(name, line.unwrap_or_else(|| named.to_string())));
        Ok(())
    }

    fn create_user(&mut self, probe: &Probe, flags: Flags) -> anyhow::Result<()> {
        // Fails first if this kernel has no user events.
        access::data()?;
        let (ProbePoint::User { fields, .. }, Some(name)) = (&probe.place, &probe.event) else {
            bail!("a user event needs a name: u:NAME TYPE FIELD; ...")
        };
        let before = inventory::read(self.tracefs)?;
        let group = if flags.multi_format { USER_MULTI } else { USER };
        let same = |entry: &DynamicEvent| {
            entry.name.subsystem == group
                && entry.registered_name() == name
                && (!flags.multi_format || entry.user_fields().as_ref() == Some(fields))
        };
        if let Some(entry) = before.iter().find(|entry| same(entry)) {
            bail!("a user event {} exists already: {}", entry.name, entry.line);
        }
        if flags.multi_format {
            access::register(name, &Field::declarations(fields), flags)?;
        } else {
            let plain = Probe { group: None, place: ProbePoint::User { flags: Vec::new(), fields: fields.clone() }, ..probe.clone() };
            self.file.create(&plain.to_string())?;
        }
        let created = inventory::read(self.tracefs)?.into_iter().find(|entry| same(entry));
        let created = created.with_context(|| format!("the kernel accepted the user event {name}, but does not list it"))?;
        self.done.push(Step::Created(created.name, created.line));
        Ok(())
    }

    /// Removes an event.
    ///
    /// # Errors
    /// The event is in use or does not exist, or the kernel refuses to remove it.
    pub fn remove(&mut self, entry: &DynamicEvent) -> Result<(), RemoveError> {
        remove(self.tracefs, entry)?;
        self.done.push(Step::Removed(entry.clone()));
        Ok(())
    }

    /// Completes the changes: records the created events as rtrace's and removes the records of events that no longer
    /// exist. Returns the created events in order, and whether the records could be written.
    ///
    /// # Errors
    /// The list cannot be written. The events exist all the same.
    pub fn commit(self) -> (Vec<EventName>, anyhow::Result<()>) {
        let created: Vec<(EventName, String)> = self.done.into_iter().filter_map(Step::into_created).collect();
        let entries: Vec<String> = created.iter().map(|(name, line)| ownership_list::entry(name, line)).collect();
        let written = OwnershipList::of_probe_add().add(&entries, || {
            let all = inventory::definitions(self.tracefs)?;
            Ok(all.iter().map(|listed| ownership_list::entry(&listed.name, &listed.line)).collect())
        });
        let mut names: Vec<EventName> = created.into_iter().map(|(name, _)| name).collect();
        names.dedup();
        (names, written)
    }

    /// Undoes all steps, in reverse order. Returns a clause for each step that could not be undone.
    pub fn roll_back(mut self) -> Vec<String> {
        let mut failures = Vec::new();
        while let Some(step) = self.done.pop() {
            match step {
                Step::Created(name, line) => {
                    let entry = DynamicEvent { name, line, creator: Creator::ProbeAdd, hits: None, listeners: None };
                    match remove(self.tracefs, &entry) {
                        // The kernel removes all probes of one name together.
                        Ok(()) | Err(RemoveError::Gone(_)) => {}
                        Err(error) => failures.push(format!("{error}, so it stays")),
                    }
                }
                Step::Removed(entry) => {
                    if let Err(error) = self.create_again(&entry) {
                        failures.push(format!("{} was removed and cannot be created again ({error:#})", entry.name));
                    }
                }
            }
        }
        failures
    }

    fn create_again(&self, entry: &DynamicEvent) -> anyhow::Result<()> {
        match entry.user_fields() {
            Some(fields) if entry.name.subsystem == USER_MULTI => {
                access::register(entry.registered_name(), &Field::declarations(&fields), Flags { persist: true, multi_format: true })
                    .map(drop)
                    .map_err(Into::into)
            }
            _ => self.file.create(&entry.line).map_err(Into::into),
        }
    }
}

impl Step {
    fn into_created(self) -> Option<(EventName, String)> {
        match self {
            Step::Created(name, line) => Some((name, line)),
            Step::Removed(_) => None,
        }
    }
}

fn remove(tracefs: &Tracefs, entry: &DynamicEvent) -> Result<(), RemoveError> {
    let file = DynamicEvents::of(tracefs);
    let result = match entry.user_fields() {
        Some(_) => remove_user(&file, entry),
        None => file.remove(&entry.name).map_err(anyhow::Error::from),
    };
    result.map_err(|error| {
        let errno = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        let name = entry.name.clone();
        match (errno, error.downcast_ref()) {
            (Some(libc::EBUSY), _) | (_, Some(UserEventError::Event(Refused::Busy { .. }))) => RemoveError::Busy(name),
            (Some(libc::ENOENT), _) | (_, Some(UserEventError::Event(Refused::Unknown { .. }))) => RemoveError::Gone(name),
            _ => RemoveError::Other { name, error },
        }
    })
}

/// Removes a user event by the ioctl that programs use. That ioctl takes only a name, so if several user events have
/// it, tracefs is used.
fn remove_user(file: &DynamicEvents, entry: &DynamicEvent) -> anyhow::Result<()> {
    let head = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let namesakes = file.read()?.iter().filter(|listed| head(&listed.line) == head(&entry.line)).count();
    if namesakes > 1 { Ok(file.remove_user_event(&entry.line)?) } else { Ok(access::delete(entry.registered_name())?) }
}

/// Parses the flags of a user event. It always persists, since `rtrace probe add` creates it.
fn user_flags(flags: &[String]) -> anyhow::Result<Flags> {
    let unknown = flags.iter().find(|flag| !["persist", "multi_format"].contains(&flag.as_str()));
    match unknown {
        Some(flag) => {
            bail!("`{}` is not a flag of a user event; the flags are persist (always set) and multi_format", flag.escape_debug())
        }
        None => Ok(Flags { persist: true, multi_format: flags.iter().any(|flag| flag == "multi_format") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_flags_of_user_events_are_refused() {
        let flags = |words: &[&str]| user_flags(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(flags(&[]).unwrap(), Flags { persist: true, multi_format: false });
        assert_eq!(flags(&["persist", "multi_format"]).unwrap(), Flags { persist: true, multi_format: true });
        assert!(flags(&["BPF_ITER"]).unwrap_err().to_string().contains("`BPF_ITER` is not a flag"));
    }
}
