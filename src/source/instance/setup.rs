//! Creates, configures, reads and removes a tracefs instance of this run.
//!
//! The instance's name contains its owner ([`crate::probe::owner`]), so that the next run removes an instance that a
//! killed run left ([`super::stale`]). Nothing outside the instance's directory is changed.

use super::buffer::Buffer;
use super::page::HEADER_BYTES;
use super::stale;
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

/// The most times that the threads of processes are listed. Threads may begin and end all the time.
const LISTINGS_MAX: u32 = 64;

/// The smallest buffer of a CPU in KiB: the kernel requires two pages.
const BUFFER_KIB_MIN: u64 = 8;
/// Options that add a record to each record. A new instance may inherit them from the machine's settings.
const UNWANTED: [&str; 2] = ["stacktrace", "userstacktrace"];

/// A tracefs instance with its open buffers. Dropping it removes it.
#[derive(Debug)]
pub struct Instance {
    directory: TracePath,
    buffers: Vec<Buffer>,
    page_bytes: usize,
    /// The enabled events and the triggers, in the order in which they were written.
    settings: Vec<EventSetting>,
    is_there: bool,
}

/// A setting that was written into the files of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EventSetting {
    Enabled(EventName),
    Trigger { event: EventName, line: String },
}

/// The CPUs and the size of an instance's buffers.
#[derive(Clone, Copy, Debug)]
pub struct Size<'a> {
    /// The CPUs whose buffers are read. Events on other CPUs are not recorded.
    pub cpus: &'a [u32],
    /// The size of each CPU's buffer in bytes.
    pub bytes: u64,
}

/// The tasks whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFilter<'a> {
    /// All tasks of the machine, except those that the filters of the events exclude.
    All,
    /// These threads and processes.
    Tasks {
        /// The threads.
        tids: &'a [i32],
        /// The processes, with all their present threads.
        processes: &'a [i32],
        /// Whether the tasks that all of them create are recorded too (`event-fork`).
        inherit: bool,
    },
}

impl Instance {
    /// Creates the instance of this process. Recording is off.
    ///
    /// # Errors
    /// The instance cannot be created or configured. The message says what is missing.
    pub fn make(tracefs: &Tracefs, size: Size, filter: TaskFilter) -> anyhow::Result<Instance> {
        let owner = Owner::this().context("cannot name a tracefs instance: /proc is not mounted")?;
        if owner.is_of_other_namespace() {
            bail!(
                "the records of a tracefs instance have PIDs of the initial pid namespace, and rtrace is in another one: run it outside of the container"
            );
        }
        let directory = tracefs.root().join("instances").join(owner.to_string());
        directory.create_dir().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                anyhow!("this kernel's tracefs has no instances, which event probes and synthetic events need")
            }
            io::ErrorKind::PermissionDenied => anyhow!("no permission to create {}: run rtrace as root", directory),
            _ => anyhow!("cannot create the tracefs instance {}: {error}", directory),
        })?;
        let mut instance = Instance { directory, buffers: Vec::new(), page_bytes: 0, settings: Vec::new(), is_there: true };
        instance.set_up(size, filter)?;
        Ok(instance)
    }

    fn set_up(&mut self, size: Size, filter: TaskFilter) -> anyhow::Result<()> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono").context("the kernel cannot stamp trace records with CLOCK_MONOTONIC")?;
        // In overwrite mode the newest records are kept, and a page has the number of records that were lost before it.
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
            self.write(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &bytes).context("a smaller -m may help")?;
        }
        self.page_bytes = self.page_bytes()?;
        for &cpu in size.cpus {
            let buffer = Buffer::open(&self.directory, cpu);
            self.buffers.push(buffer.with_context(|| format!("cannot open CPU {cpu}'s buffer of {}", self.directory))?);
        }
        match filter {
            TaskFilter::All => Ok(()),
            TaskFilter::Tasks { tids, processes, inherit } => self.follow(tids, processes, inherit),
        }
    }

    /// Returns the size of a buffer page in bytes. Kernels before 6.8 have one size for all instances, in one file.
    fn page_bytes(&self) -> anyhow::Result<usize> {
        let own = self.directory.join("events/header_page");
        let path = if own.exists() { own } else { self.directory.join("../../events/header_page") };
        let text = read_at_once(&path).with_context(|| format!("cannot read {path}"))?;
        layout(&text).with_context(|| format!("{path}: rtrace does not support the page layout of this kernel's trace buffers"))
    }

    /// Restricts recording to these tasks.
    fn follow(&self, tids: &[i32], processes: &[i32], inherit: bool) -> anyhow::Result<()> {
        self.write("options/event-fork", if inherit { "1" } else { "0" })?;
        let mut known = BTreeSet::new();
        let mut wanted: BTreeSet<i32> = tids.iter().copied().collect();
        // Threads may have been created since the list was read. Those created from now on are followed by the kernel,
        // if at all.
        for _ in 0..LISTINGS_MAX {
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

    /// Enables an event, with a filter in the kernel's language. It is recorded while recording is on.
    ///
    /// # Errors
    /// The kernel rejects the filter or the event.
    pub fn enable(&mut self, event: &EventName, filter: Option<&str>) -> anyhow::Result<()> {
        let file = |name: &str| format!("events/{}/{}/{name}", event.subsystem, event.name);
        if let Some(filter) = filter {
            self.write(&file("filter"), filter).with_context(|| format!("the kernel rejects the filter \"{filter}\" for {event}"))?;
        }
        self.write(&file("enable"), "1").with_context(|| format!("cannot enable {event}"))?;
        self.settings.push(EventSetting::Enabled(event.clone()));
        Ok(())
    }

    /// Adds a trigger to an event of this instance, such as `hist:keys=common_pid:f=filename`. It takes effect at once,
    /// whether or not the event itself is enabled.
    ///
    /// # Errors
    /// The kernel rejects the trigger.
    pub fn trigger(&mut self, event: &EventName, line: &str) -> anyhow::Result<()> {
        let file = format!("events/{}/{}/trigger", event.subsystem, event.name);
        self.append(&file, line).with_context(|| format!("the kernel rejects the trigger \"{line}\" of {event}"))?;
        self.settings.push(EventSetting::Trigger { event: event.clone(), line: line.to_owned() });
        Ok(())
    }

    /// Turns recording on or off.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record(&self, on: bool) -> anyhow::Result<()> {
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    /// Returns the buffers that are read, one for each CPU.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Appends a buffer's present content ([`Buffer::drain`]).
    ///
    /// # Errors
    /// The buffer cannot be read.
    pub fn drain(&self, buffer: &Buffer, into: &mut Vec<u8>) -> io::Result<()> {
        buffer.drain(self.page_bytes, into)
    }

    /// Returns how often histograms had no room for a new key.
    pub fn dropped(&self) -> u64 {
        let triggers =
            self.settings.iter().filter_map(|setting| if let EventSetting::Trigger { event, .. } = setting { Some(event) } else { None });
        let files = triggers.map(|event| format!("events/{}/{}/hist", event.subsystem, event.name));
        files.filter_map(|file| dropped(&self.directory.join(file).read().ok()?)).sum()
    }

    /// Returns the kernel's counts, summed over all CPUs. Recording must be off.
    ///
    /// # Errors
    /// The counts cannot be read.
    pub fn stats(&self) -> io::Result<Stats> {
        self.buffers.iter().try_fold(Stats::default(), |sum, buffer| {
            let one = buffer.stats()?;
            Ok(Stats { waiting: sum.waiting + one.waiting, read: sum.read + one.read, lost: sum.lost + one.lost })
        })
    }

    /// Removes the instance and its settings.
    ///
    /// # Errors
    /// The instance could not be removed. The message has its directory and the reason.
    pub fn remove(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.is_there, false) {
            return Ok(());
        }
        // Later settings may refer to earlier ones.
        for setting in std::mem::take(&mut self.settings).into_iter().rev() {
            // A setting that cannot be undone keeps the instance busy, which is reported below.
            let _ = match setting {
                EventSetting::Enabled(event) => self.write(&format!("events/{}/{}/enable", event.subsystem, event.name), "0"),
                EventSetting::Trigger { event, line } => {
                    self.append(&format!("events/{}/{}/trigger", event.subsystem, event.name), &format!("!{line}"))
                }
            };
        }
        // An instance with open files cannot be removed.
        self.buffers.clear();
        stale::remove_instance(&self.directory)
            .with_context(|| format!("cannot remove {}: remove it with `rmdir` when no process uses it", self.directory))
    }

    fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        self.put(file, text, OFlags::WRONLY | OFlags::TRUNC)
    }

    fn append(&self, file: &str, text: &str) -> anyhow::Result<()> {
        self.put(file, text, OFlags::WRONLY | OFlags::APPEND)
    }

    /// Writes the text with a single write(2), since the kernel treats each write as a separate command.
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

/// Reads a small file whose text the kernel returns to the first read only (show_header_page_file() in
/// kernel/trace/trace_events.c).
fn read_at_once(path: &TracePath) -> io::Result<String> {
    let mut bytes = vec![0; 4096];
    let read = path.open(OFlags::RDONLY)?.read(&mut bytes)?;
    bytes.truncate(read);
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Returns the count of dropped keys at the end of a `hist` file (hist_trigger_show() in
/// kernel/trace/trace_events_hist.c).
fn dropped(file: &[u8]) -> Option<u64> {
    let count = file.rsplit(|byte| *byte == b'\n').find_map(|line| line.trim_ascii_start().strip_prefix(b"Dropped:"))?;
    str::from_utf8(count).ok()?.trim().parse().ok()
}

/// Formats CPUs as a mask for the kernel: hexadecimal words of 32 CPUs, the highest first, separated by commas.
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |cpu| cpu / 32 + 1);
    let word = |at: u32| cpus.iter().filter(|cpu| **cpu / 32 == at).fold(0u32, |word, cpu| word | 1 << (cpu % 32));
    (0..words).rev().map(|at| format!("{:08x}", word(at))).collect::<Vec<_>>().join(",")
}

/// Returns the size of a page in bytes from the text of `header_page`, or `None` if its fields are not at the offsets
/// that [`super::page`] reads.
fn layout(text: &str) -> Option<usize> {
    // Unlike a format file, it has neither a name nor an ID.
    let format = Format::parse(&format!("name: header_page\nID: 0\n{text}")).ok()?;
    let place = |name: &str| format.field(name).map(|field| (field.offset as usize, field.size as usize));
    let (begin, size) = place("data")?;
    (place("timestamp")? == (0, 8) && place("commit")? == (8, 8) && begin == HEADER_BYTES).then_some(begin + size)
}

#[cfg(test)]
mod tests;
