//! Probes that stay, made and removed as a whole: what a call has done is taken back when a later part of it fails.

use super::dynamic_events::DynamicEvents;
use super::grammar::{Field, Place, Probe};
use super::groups::{self, USER, USER_MULTI};
use super::inventory::{self, Entry, Whose};
use super::kept::{self, Kept};
use super::made::speakable;
use super::names;
use super::user_events::{UserEventError, access};
use crate::kernel::tracefs::{EventName, Tracefs};
use anyhow::{Context, bail};
use rtrace_mark::Error as Refused;
use rtrace_mark::event::Flags;
use std::collections::HashSet;
use std::io;

/// What one call does to the kernel's dynamic events.
#[derive(Debug)]
pub struct Change<'a> {
    tracefs: &'a Tracefs,
    file: DynamicEvents,
    done: Vec<Done>,
}

#[derive(Debug)]
enum Done {
    /// The event, and its line as the kernel shows it.
    Made(EventName, String),
    Removed(Entry),
}

/// Why an event was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("{0} is in use")]
    Busy(EventName),
    #[error("{0} is gone already")]
    Gone(EventName),
    #[error("{name} cannot be removed: {error}")]
    Other { name: EventName, error: anyhow::Error },
}

impl<'a> Change<'a> {
    pub fn new(tracefs: &'a Tracefs) -> Change<'a> {
        Change { tracefs, file: DynamicEvents::of(tracefs), done: Vec::new() }
    }

    /// Whether this call has made the event.
    pub fn made(&self, name: &EventName) -> bool {
        self.done.iter().any(|done| matches!(done, Done::Made(made, _) if made == name))
    }

    /// Makes a probe that is in the kernel's own grammar. Without a group it has the one that the kernel gives its
    /// kind, without a name the wanted one, or that with a number where another event has it.
    ///
    /// # Errors
    /// There is such an event, which this call has not made; the kernel does not take it.
    pub fn make(&mut self, probe: &Probe, wanted: &str) -> anyhow::Result<()> {
        if let Place::User { flags, .. } = &probe.place {
            return self.make_user(probe, user_flags(flags)?);
        }
        let group = probe.group.clone().unwrap_or_else(|| groups::by_kind(&probe.place).to_owned());
        let event = probe.event.clone().unwrap_or_else(|| {
            let mut taken: HashSet<String> = self.tracefs.names(&group).unwrap_or_default().into_iter().collect();
            names::unique(wanted, &mut taken)
        });
        let name = EventName { subsystem: group, name: event };
        if self.tracefs.has(&name.subsystem, &name.name) && !self.made(&name) {
            bail!("there is an event {name} already");
        }
        let mut named = Probe { group: Some(name.subsystem.clone()), event: Some(name.name.clone()), ..probe.clone() };
        let _opened = speakable(&mut named)?;
        self.file.make(&named.to_string())?;
        // The last of that name: this call may have made others, which the kernel puts together. It is there, and to be taken back, even if the list cannot be read now.
        let line = self.file.read().unwrap_or_default().into_iter().rev().find(|listed| listed.name == name).map(|listed| listed.line);
        self.done.push(Done::Made(name, line.unwrap_or_else(|| named.to_string())));
        Ok(())
    }

    fn make_user(&mut self, probe: &Probe, flags: Flags) -> anyhow::Result<()> {
        // Says so where the kernel has none.
        access::data()?;
        let (Place::User { fields, .. }, Some(name)) = (&probe.place, &probe.event) else {
            bail!("a user event has a name: u:NAME TYPE FIELD; ...")
        };
        let before = inventory::read(self.tracefs)?;
        let group = if flags.multi_format { USER_MULTI } else { USER };
        let same = |entry: &Entry| {
            entry.name.subsystem == group
                && entry.registered_name() == name
                && (!flags.multi_format || entry.user_fields().as_ref() == Some(fields))
        };
        if let Some(entry) = before.iter().find(|entry| same(entry)) {
            bail!("there is a user event {} already: {}", entry.name, entry.line);
        }
        if flags.multi_format {
            access::register(name, &Field::declarations(fields), flags)?;
        } else {
            let plain = Probe { group: None, place: Place::User { flags: Vec::new(), fields: fields.clone() }, ..probe.clone() };
            self.file.make(&plain.to_string())?;
        }
        let made = inventory::read(self.tracefs)?.into_iter().find(|entry| same(entry));
        let made = made.with_context(|| format!("the kernel took the user event {name}, but does not list it"))?;
        self.done.push(Done::Made(made.name, made.line));
        Ok(())
    }

    /// Removes an event.
    ///
    /// # Errors
    /// It is in use or gone, or the kernel does not let us.
    pub fn remove(&mut self, entry: &Entry) -> Result<(), RemoveError> {
        remove(self.tracefs, entry)?;
        self.done.push(Done::Removed(entry.clone()));
        Ok(())
    }

    /// Ends well: what was made is written down as rtrace's, what is gone is struck out. Gives the events, in order.
    ///
    /// # Errors
    /// It could not be written down: the events are there all the same.
    pub fn keep(self) -> (Vec<EventName>, anyhow::Result<()>) {
        let made: Vec<(EventName, String)> = self.done.into_iter().filter_map(Done::into_made).collect();
        let entries: Vec<String> = made.iter().map(|(name, line)| kept::entry(name, line)).collect();
        let written = Kept::here().add(&entries, || {
            let all = inventory::listed(self.tracefs)?;
            Ok(all.iter().map(|listed| kept::entry(&listed.name, &listed.line)).collect())
        });
        let mut names: Vec<EventName> = made.into_iter().map(|(name, _)| name).collect();
        names.dedup();
        (names, written)
    }

    /// Undoes all of it, the last first. Gives what could not be undone, a clause each.
    pub fn take_back(mut self) -> Vec<String> {
        let mut stayed = Vec::new();
        while let Some(done) = self.done.pop() {
            match done {
                Done::Made(name, line) => {
                    let entry = Entry { name, line, whose: Whose::ProbeAdd, hits: None, listeners: None };
                    match remove(self.tracefs, &entry) {
                        // Several probes of one name go together.
                        Ok(()) | Err(RemoveError::Gone(_)) => {}
                        Err(error) => stayed.push(format!("{error}, so it stays")),
                    }
                }
                Done::Removed(entry) => {
                    if let Err(error) = self.make_again(&entry) {
                        stayed.push(format!("{} was removed and cannot be made again ({error:#})", entry.name));
                    }
                }
            }
        }
        stayed
    }

    fn make_again(&self, entry: &Entry) -> anyhow::Result<()> {
        match entry.user_fields() {
            Some(fields) if entry.name.subsystem == USER_MULTI => {
                access::register(entry.registered_name(), &Field::declarations(&fields), Flags { persist: true, multi_format: true })
                    .map(drop)
                    .map_err(Into::into)
            }
            _ => self.file.make(&entry.line).map_err(Into::into),
        }
    }
}

impl Done {
    fn into_made(self) -> Option<(EventName, String)> {
        match self {
            Done::Made(name, line) => Some((name, line)),
            Done::Removed(_) => None,
        }
    }
}

fn remove(tracefs: &Tracefs, entry: &Entry) -> Result<(), RemoveError> {
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

/// By the programs' own interface, which knows names only, unless there are others of this name.
fn remove_user(file: &DynamicEvents, entry: &Entry) -> anyhow::Result<()> {
    let head = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let namesakes = file.read()?.iter().filter(|listed| head(&listed.line) == head(&entry.line)).count();
    if namesakes > 1 { Ok(file.remove_user_event(&entry.line)?) } else { Ok(access::delete(entry.registered_name())?) }
}

/// Whether an event that is kept also is one of several formats. That it stays goes without saying.
fn user_flags(flags: &[String]) -> anyhow::Result<Flags> {
    let unknown = flags.iter().find(|flag| !["persist", "multi_format"].contains(&flag.as_str()));
    match unknown {
        Some(flag) => {
            bail!("`{}` is no flag of a user event: there are persist (which is so without it) and multi_format", flag.escape_debug())
        }
        None => Ok(Flags { persist: true, multi_format: flags.iter().any(|flag| flag == "multi_format") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_user_events() {
        let flags = |words: &[&str]| user_flags(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(flags(&[]).unwrap(), Flags { persist: true, multi_format: false });
        assert_eq!(flags(&["persist", "multi_format"]).unwrap(), Flags { persist: true, multi_format: true });
        assert!(flags(&["BPF_ITER"]).unwrap_err().to_string().contains("`BPF_ITER` is no flag"));
    }
}
