//! Lists of the events that rtrace created but whose names do not show it. `rtrace probe add` records its probes, which
//! outlive it. A run records its synthetic events: their names are the user's choice, and they outlive a run that is
//! killed.
//!
//! The lists are in /run, which is empty after a reboot, as the kernel's list of dynamic events is. They hold each line
//! as the kernel shows it, so that another probe which somebody creates later under the same name is not taken for
//! rtrace's. Only root can create probes, unless tracefs was opened to other users; the probes that those users create
//! cannot be recorded, so they are not recognized later.

use super::owner::Owner;
use crate::kernel::tracefs::EventName;
use anyhow::Context;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::collections::{BTreeSet, HashSet};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/run/rtrace";
const PROBES: &str = "probes";
const RUNS: &str = "runs";

/// A list of events whose names do not show who created them.
#[derive(Clone, Debug)]
pub struct OwnershipList {
    directory: PathBuf,
    file: &'static str,
}

/// Formats an entry: `GROUP:EVENT LINE`, with the line as `dynamic_events` has it.
pub fn entry(name: &EventName, line: &str) -> String {
    format!("{name} {line}")
}

/// Formats an entry of a run: `OWNER GROUP:EVENT LINE`.
pub fn entry_of_run(owner: Owner, name: &EventName, line: &str) -> String {
    format!("{owner} {}", entry(name, line))
}

/// Splits a run's entry into the owner and the [`entry`].
pub fn parse_run_entry(entry: &str) -> Option<(Owner, &str)> {
    let (owner, bare) = entry.split_once(' ')?;
    Some((Owner::parse(owner)?, bare))
}

impl OwnershipList {
    /// The list of `rtrace probe add`: [`entry`]s.
    pub fn of_probe_add() -> OwnershipList {
        OwnershipList { directory: PathBuf::from(DIRECTORY), file: PROBES }
    }

    /// The list of the runs: [`entry_of_run`]s.
    pub fn of_runs() -> OwnershipList {
        OwnershipList { directory: PathBuf::from(DIRECTORY), file: RUNS }
    }

    /// Returns the entries. There are none if the list does not exist or may not be read.
    pub fn read(&self) -> BTreeSet<String> {
        let Ok(mut file) = File::open(self.path()) else { return BTreeSet::new() };
        locked(&mut file, FlockOperation::LockShared).unwrap_or_default()
    }

    /// Adds entries, and drops those whose [`entry`] is not in `existing`. That closure is called while the list is
    /// locked: every process creates its event before it adds the entry.
    ///
    /// # Errors
    /// `existing` fails, or the list cannot be written.
    pub fn add(&self, new: &[String], existing: impl FnOnce() -> anyhow::Result<HashSet<String>>) -> anyhow::Result<()> {
        let what = || format!("cannot write {}", self.path().display());
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).with_context(what)?;
        let mut file = self.open().with_context(what)?;
        let mut all = locked(&mut file, FlockOperation::LockExclusive).with_context(what)?;
        let existing = existing()?;
        all.extend(new.iter().cloned());
        all.retain(|entry| existing.contains(parse_run_entry(entry).map_or(entry.as_str(), |(_, bare)| bare)));
        write(&mut file, &all).with_context(what)
    }

    /// Removes entries.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn remove(&self, gone: &[String]) -> io::Result<()> {
        let mut file = File::options().read(true).write(true).open(self.path())?;
        let mut all = locked(&mut file, FlockOperation::LockExclusive)?;
        all.retain(|entry| !gone.contains(entry));
        write(&mut file, &all)
    }

    fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open(self.path(), flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// The path of the list.
    pub fn path(&self) -> PathBuf {
        Path::new(&self.directory).join(self.file)
    }
}

fn write(file: &mut File, entries: &BTreeSet<String>) -> io::Result<()> {
    let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

/// Locks the list until the file is closed, and reads it.
fn locked(file: &mut File, how: FlockOperation) -> io::Result<BTreeSet<String>> {
    flock(&*file, how)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn entries_are_read_until_their_event_is_gone() {
        let directory = std::env::temp_dir().join(format!("rtrace-kept-{}", std::process::id()));
        let kept = OwnershipList { directory: directory.join("deeper"), file: PROBES };
        assert!(kept.read().is_empty());
        let existing = |entries: &[&str]| Ok(entries.iter().map(|entry| (*entry).to_owned()).collect());
        kept.add(&["a:b p:a/b x".to_owned(), "c:d p:c/d y".to_owned()], || existing(&["a:b p:a/b x", "c:d p:c/d y"])).unwrap();
        kept.add(&["e:f p:e/f z".to_owned()], || existing(&["a:b p:a/b x", "e:f p:e/f z", "g:h p:g/h somebody else's"])).unwrap();
        assert_eq!(kept.read().into_iter().collect::<Vec<_>>(), ["a:b p:a/b x", "e:f p:e/f z"]);
        assert_eq!(fs::metadata(kept.path()).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn runs_remove_the_entries_of_removed_events() {
        let directory = std::env::temp_dir().join(format!("rtrace-runs-{}", std::process::id()));
        let runs = OwnershipList { directory: directory.clone(), file: RUNS };
        let name = EventName { subsystem: "synthetic".into(), name: "lat".into() };
        let (one, two) = (Owner::parse("rtrace_1_2").unwrap(), Owner::parse("rtrace_3_4").unwrap());
        let entries = [one, two].map(|owner| entry_of_run(owner, &name, "s:synthetic/lat u64 x"));
        let existing: HashSet<String> = [entry(&name, "s:synthetic/lat u64 x")].into();
        runs.add(&entries, || Ok(existing)).unwrap();
        assert_eq!(runs.read().len(), 2);
        runs.remove(&entries[..1]).unwrap();
        let left: Vec<String> = runs.read().into_iter().collect();
        assert_eq!(left, entries[1..]);
        assert_eq!(parse_run_entry(&left[0]), Some((two, "synthetic:lat s:synthetic/lat u64 x")));
        assert_eq!(parse_run_entry("synthetic:lat s:synthetic/lat u64 x"), None);
        fs::remove_dir_all(directory).unwrap();
    }
}
