//! An instance of our own: made, set up, and taken away.
//!
//! It bears its owner in its name ([`crate::probe::owner`]), so that the next run takes away what a killed one left ([`super::left`]). Nothing outside its directory is changed.

use super::buffer::Buffer;
use super::left;
use super::page::HEADER_BYTES;
use super::stats::Stats;
use crate::kernel::format::Format;
use crate::kernel::procfs;
use crate::kernel::tracefs::{EventName, TracePath, Tracefs};
use crate::probe::owner::Owner;
use crate::say;
use anyhow::{Context, anyhow, bail};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};

/// No more looks are made at threads that come and go all the time.
const LOOKS_MAX: u32 = 64;

/// The least buffer of a CPU, KiB: the kernel wants two pages.
const BUFFER_KIB_MIN: u64 = 8;
/// Options that would put records of their own beside each of ours, which the instance may have from the machine's settings.
const UNWANTED: [&str; 2] = ["stacktrace", "userstacktrace"];

/// A tracefs instance with its buffers open. Dropping it takes it away.
#[derive(Debug)]
pub struct Instance {
    directory: TracePath,
    buffers: Vec<Buffer>,
    page_bytes: usize,
    /// Events that were switched on, and triggers, in the order in which they were written.
    made: Vec<Made>,
    is_there: bool,
}

/// What was written into the files of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Made {
    Enabled(EventName),
    Trigger { event: EventName, line: String },
}

/// What the buffers are to be like.
#[derive(Clone, Copy, Debug)]
pub struct Size<'a> {
    /// Those that have a buffer that is read; what happens on others is not recorded.
    pub cpus: &'a [u32],
    /// Of each CPU's.
    pub bytes: u64,
}

/// Whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose<'a> {
    Everyone,
    /// These threads, those that these processes have by now, and if asked what they all make.
    Tasks {
        tids: &'a [i32],
        processes: &'a [i32],
        inherit: bool,
    },
}

impl Instance {
    /// Makes the instance of this process. Nothing is recorded yet.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub fn make(tracefs: &Tracefs, size: Size, whose: Whose) -> anyhow::Result<Instance> {
        let owner = Owner::this().context("cannot name a tracefs instance: /proc is not mounted")?;
        if owner.is_of_other_namespace() {
            bail!(
                "the records of a tracefs instance bear numbers of the first pid namespace, which rtrace is not in: run it outside of the container"
            );
        }
        let directory = tracefs.root().join("instances").join(owner.to_string());
        directory.create_dir().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                anyhow!("this kernel's tracefs has no instances, by which alone event probes and synthetic events are delivered")
            }
            io::ErrorKind::PermissionDenied => anyhow!("no permission to make {}: run rtrace as root", directory),
            _ => anyhow!("cannot make the tracefs instance {}: {error}", directory),
        })?;
        let mut instance = Instance { directory, buffers: Vec::new(), page_bytes: 0, made: Vec::new(), is_there: true };
        instance.set_up(size, whose)?;
        Ok(instance)
    }

    fn set_up(&mut self, size: Size, whose: Whose) -> anyhow::Result<()> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono").context("the kernel does not stamp its records by CLOCK_MONOTONIC")?;
        // What is newest is kept; how much is missing before a page then stands in it.
        self.write("options/overwrite", "1")?;
        for option in UNWANTED.map(|name| format!("options/{name}")) {
            if self.directory.join(&option).exists() {
                self.write(&option, "0")?;
            }
        }
        self.write("tracing_cpumask", &mask(size.cpus))?;
        self.write("buffer_size_kb", &BUFFER_KIB_MIN.to_string())?;
        let bytes = size.bytes.div_ceil(1024).max(BUFFER_KIB_MIN).to_string();
        for cpu in size.cpus {
            self.write(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &bytes).context("ask for less with -m")?;
        }
        self.page_bytes = self.page_bytes()?;
        for &cpu in size.cpus {
            let buffer = Buffer::open(&self.directory, cpu);
            self.buffers.push(buffer.with_context(|| format!("cannot open CPU {cpu}'s buffer of {}", self.directory))?);
        }
        match whose {
            Whose::Everyone => Ok(()),
            Whose::Tasks { tids, processes, inherit } => self.follow(tids, processes, inherit),
        }
    }

    /// Bytes of a page of the buffers. Kernels before 6.8 have one size for all instances, and say it in one place.
    fn page_bytes(&self) -> anyhow::Result<usize> {
        let own = self.directory.join("events/header_page");
        let path = if own.exists() { own } else { self.directory.join("../../events/header_page") };
        let text = read_at_once(&path).with_context(|| format!("cannot read {path}"))?;
        layout(&text).with_context(|| format!("{path}: the pages of this kernel's trace buffers are not laid out as rtrace knows them"))
    }

    /// Records these tasks only.
    fn follow(&self, tids: &[i32], processes: &[i32], inherit: bool) -> anyhow::Result<()> {
        self.write("options/event-fork", if inherit { "1" } else { "0" })?;
        let mut known = BTreeSet::new();
        let mut wanted: BTreeSet<i32> = tids.iter().copied().collect();
        // Threads that were made since the list was: those that are made from now on are followed by the kernel, if at all.
        for _ in 0..LOOKS_MAX {
            let new: Vec<String> = wanted.difference(&known).map(i32::to_string).collect();
            if new.is_empty() {
                break;
            }
            self.append("set_event_pid", &new.join(" "))?;
            known.append(&mut wanted);
            wanted.extend(processes.iter().flat_map(|&pid| procfs::threads(pid)));
        }
        Ok(())
    }

    /// Switches an event on, with a filter in the kernel's language. Its records come when recording begins.
    ///
    /// # Errors
    /// The kernel refuses the filter, or the event.
    pub fn enable(&mut self, event: &EventName, filter: Option<&str>) -> anyhow::Result<()> {
        let file = |name: &str| format!("events/{}/{}/{name}", event.subsystem, event.name);
        if let Some(filter) = filter {
            self.write(&file("filter"), filter).with_context(|| format!("the kernel refuses the filter \"{filter}\" for {event}"))?;
        }
        self.write(&file("enable"), "1").with_context(|| format!("cannot switch {event} on"))?;
        self.made.push(Made::Enabled(event.clone()));
        Ok(())
    }

    /// Writes a trigger to an event of this instance, such as `hist:keys=common_pid:f=filename`. It works from now on, whether the event itself is switched on or not.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn trigger(&mut self, event: &EventName, line: &str) -> anyhow::Result<()> {
        let file = format!("events/{}/{}/trigger", event.subsystem, event.name);
        self.append(&file, line).with_context(|| format!("the kernel refuses the trigger \"{line}\" of {event}"))?;
        self.made.push(Made::Trigger { event: event.clone(), line: line.to_owned() });
        Ok(())
    }

    /// Begins or ends recording.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record(&self, on: bool) -> anyhow::Result<()> {
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Appends what a buffer holds now ([`Buffer::drain`]).
    ///
    /// # Errors
    /// It cannot be read.
    pub fn drain(&self, buffer: &Buffer, into: &mut Vec<u8>) -> io::Result<()> {
        buffer.drain(self.page_bytes, into)
    }

    /// How often histograms found no room for another key.
    pub fn dropped(&self) -> u64 {
        let triggers = self.made.iter().filter_map(|made| if let Made::Trigger { event, .. } = made { Some(event) } else { None });
        let files = triggers.map(|event| format!("events/{}/{}/hist", event.subsystem, event.name));
        files.filter_map(|file| dropped(&self.directory.join(file).read().ok()?)).sum()
    }

    /// The kernel's own counts, over all CPUs. Recording must have ended.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn stats(&self) -> io::Result<Stats> {
        self.buffers.iter().try_fold(Stats::default(), |sum, buffer| {
            let one = buffer.stats()?;
            Ok(Stats { waiting: sum.waiting + one.waiting, read: sum.read + one.read, lost: sum.lost + one.lost })
        })
    }

    /// Takes everything away again.
    ///
    /// # Errors
    /// What is still there, and why.
    pub fn remove(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.is_there, false) {
            return Ok(());
        }
        // What was written last may use what was written before.
        for made in std::mem::take(&mut self.made).into_iter().rev() {
            // What cannot be undone is seen below: the instance is busy then.
            let _ = match made {
                Made::Enabled(event) => self.write(&format!("events/{}/{}/enable", event.subsystem, event.name), "0"),
                Made::Trigger { event, line } => {
                    self.append(&format!("events/{}/{}/trigger", event.subsystem, event.name), &format!("!{line}"))
                }
            };
        }
        // An instance that is open is not taken away.
        self.buffers.clear();
        left::take_away(&self.directory)
            .with_context(|| format!("cannot take {} away: `rmdir` does it when nobody uses it", self.directory))
    }

    fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        self.put(file, text, OFlags::WRONLY | OFlags::TRUNC)
    }

    fn append(&self, file: &str, text: &str) -> anyhow::Result<()> {
        self.put(file, text, OFlags::WRONLY | OFlags::APPEND)
    }

    /// One write: what comes in parts, the kernel takes for several.
    fn put(&self, file: &str, text: &str, how: OFlags) -> anyhow::Result<()> {
        let path = self.directory.join(file);
        let written = path.open(how).and_then(|mut open| open.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write \"{text}\" to {path}"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            say!("rtrace: {error:#}");
        }
    }
}

/// The text of a small file that the kernel gives to the first read only (show_header_page_file() in kernel/trace/trace_events.c).
fn read_at_once(path: &TracePath) -> io::Result<String> {
    let mut bytes = vec![0; 4096];
    let read = path.open(OFlags::RDONLY)?.read(&mut bytes)?;
    bytes.truncate(read);
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// What a `hist` file says at its end, behind all the keys (hist_trigger_show() in kernel/trace/trace_events_hist.c).
fn dropped(file: &[u8]) -> Option<u64> {
    let count = file.rsplit(|byte| *byte == b'\n').find_map(|line| line.trim_ascii_start().strip_prefix(b"Dropped:"))?;
    str::from_utf8(count).ok()?.trim().parse().ok()
}

/// CPUs as the kernel reads a mask: hexadecimal, the highest first, a comma before each 32 of them.
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |cpu| cpu / 32 + 1);
    let word = |at: u32| cpus.iter().filter(|cpu| **cpu / 32 == at).fold(0u32, |word, cpu| word | 1 << (cpu % 32));
    (0..words).rev().map(|at| format!("{:08x}", word(at))).collect::<Vec<_>>().join(",")
}

/// Bytes of a page, by the file `header_page`; `None` where fields do not stand where [`super::page`] reads them.
fn layout(text: &str) -> Option<usize> {
    // It has no name and no number, else it is a format file.
    let format = Format::parse(&format!("name: header_page\nID: 0\n{text}")).ok()?;
    let place = |name: &str| format.field(name).map(|field| (field.offset as usize, field.size as usize));
    let (begin, size) = place("data")?;
    (place("timestamp")? == (0, 8) && place("commit")? == (8, 8) && begin == HEADER_BYTES).then_some(begin + size)
}

#[cfg(test)]
mod tests;
