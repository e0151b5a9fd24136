//! Which probes `rtrace probe add` made: they outlive it, so it writes them down. And which synthetic events runs made, whose names are the user's and say nothing of an owner: those of
//! a run that is killed outlive it, too.
//!
//! The lists are in /run, which is empty after a restart, as the kernel's dynamic events are. They have the lines as the kernel shows them: whoever deletes such a probe and makes another of its
//! name has made one that is not rtrace's. Only root can make probes, unless somebody opened tracefs to others; what these make is not known as rtrace's later.

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

/// A list of events that somebody made and whose names do not say who.
#[derive(Clone, Debug)]
pub struct Kept {
    directory: PathBuf,
    file: &'static str,
}

/// `GROUP:EVENT LINE`, the line as `dynamic_events` has it.
pub fn entry(name: &EventName, line: &str) -> String {
    format!("{name} {line}")
}

/// `OWNER GROUP:EVENT LINE`
pub fn entry_of_run(owner: Owner, name: &EventName, line: &str) -> String {
    format!("{owner} {}", entry(name, line))
}

/// The owner of a run's entry, and the [`entry`] behind it.
pub fn of_run(entry: &str) -> Option<(Owner, &str)> {
    let (owner, bare) = entry.split_once(' ')?;
    Some((Owner::parse(owner)?, bare))
}

impl Kept {
    /// What `rtrace probe add` made on this machine: [`entry`]s.
    pub fn here() -> Kept {
        Kept { directory: PathBuf::from(DIRECTORY), file: PROBES }
    }

    /// What runs made: [`entry_of_run`]s.
    pub fn of_runs() -> Kept {
        Kept { directory: PathBuf::from(DIRECTORY), file: RUNS }
    }

    /// The entries that were written down; none where there is no list, or not for us.
    pub fn read(&self) -> BTreeSet<String> {
        let Ok(mut file) = File::open(self.path()) else { return BTreeSet::new() };
        locked(&mut file, FlockOperation::LockShared).unwrap_or_default()
    }

    /// Adds entries, and forgets those that are not among the living [`entry`]s, which are asked for when nobody else can change the list: whoever has written something down has made it before.
    ///
    /// # Errors
    /// The living are not known, or the list cannot be written.
    pub fn add(&self, new: &[String], living: impl FnOnce() -> anyhow::Result<HashSet<String>>) -> anyhow::Result<()> {
        let what = || format!("cannot write {}", self.path().display());
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).with_context(what)?;
        let mut file = self.open().with_context(what)?;
        let mut all = locked(&mut file, FlockOperation::LockExclusive).with_context(what)?;
        let living = living()?;
        all.extend(new.iter().cloned());
        all.retain(|entry| living.contains(of_run(entry).map_or(entry.as_str(), |(_, bare)| bare)));
        write(&mut file, &all).with_context(what)
    }

    /// Strikes entries out.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn forget(&self, gone: &[String]) -> io::Result<()> {
        let mut file = File::options().read(true).write(true).open(self.path())?;
        let mut all = locked(&mut file, FlockOperation::LockExclusive)?;
        all.retain(|entry| !gone.contains(entry));
        write(&mut file, &all)
    }

    fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open(self.path(), flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Where it is.
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

/// Locks the list, as long as it is open, and reads it.
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
    fn what_is_added_is_read_until_it_is_gone() {
        let directory = std::env::temp_dir().join(format!("rtrace-kept-{}", std::process::id()));
        let kept = Kept { directory: directory.join("deeper"), file: PROBES };
        assert!(kept.read().is_empty());
        let living = |entries: &[&str]| Ok(entries.iter().map(|entry| (*entry).to_owned()).collect());
        kept.add(&["a:b p:a/b x".to_owned(), "c:d p:c/d y".to_owned()], || living(&["a:b p:a/b x", "c:d p:c/d y"])).unwrap();
        kept.add(&["e:f p:e/f z".to_owned()], || living(&["a:b p:a/b x", "e:f p:e/f z", "g:h p:g/h somebody else's"])).unwrap();
        assert_eq!(kept.read().into_iter().collect::<Vec<_>>(), ["a:b p:a/b x", "e:f p:e/f z"]);
        assert_eq!(fs::metadata(kept.path()).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn runs_forget_what_they_took_away() {
        let directory = std::env::temp_dir().join(format!("rtrace-runs-{}", std::process::id()));
        let runs = Kept { directory: directory.clone(), file: RUNS };
        let name = EventName { subsystem: "synthetic".into(), name: "lat".into() };
        let (one, two) = (Owner::parse("rtrace_1_2").unwrap(), Owner::parse("rtrace_3_4").unwrap());
        let entries = [one, two].map(|owner| entry_of_run(owner, &name, "s:synthetic/lat u64 x"));
        let living: HashSet<String> = [entry(&name, "s:synthetic/lat u64 x")].into();
        runs.add(&entries, || Ok(living)).unwrap();
        assert_eq!(runs.read().len(), 2);
        runs.forget(&entries[..1]).unwrap();
        let left: Vec<String> = runs.read().into_iter().collect();
        assert_eq!(left, entries[1..]);
        assert_eq!(of_run(&left[0]), Some((two, "synthetic:lat s:synthetic/lat u64 x")));
        assert_eq!(of_run("synthetic:lat s:synthetic/lat u64 x"), None);
        fs::remove_dir_all(directory).unwrap();
    }
}
