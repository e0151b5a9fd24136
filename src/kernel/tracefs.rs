//! tracefs: where it is mounted, its events, and their format files. This module only reads. The one thing that it
//! creates is a detached mount, which only this process has, if tracefs is not mounted anywhere.

use super::format::{Format, FormatError};
use crate::text::glob;
use crate::text::near::{hint, nearest};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod missing;
mod path;

pub use missing::NoMount;
pub use path::TracePath;

/// A readable tracefs, or the reason why there is none ([`Tracefs::absent`]).
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: TracePath,
    absent: Option<Arc<TracefsError>>,
}

/// The reason why rtrace cannot use tracefs.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    #[error("tracefs is not mounted, and {0}")]
    NotMounted(NoMount),
    #[error(
        "no permission to read {} (mode {mode:03o}, owner {uid}:{gid}): run rtrace as root, or let a group in with `mount -o remount,gid=GROUP,mode=750 {}`",
        path.display(), path.display()
    )]
    NoPermission { path: PathBuf, mode: u32, uid: u32, gid: u32 },
    #[error("this kernel has no tracefs (CONFIG_TRACING is off)")]
    NotBuilt,
    #[error("failed to read {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The reason why an event's files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    #[error("no event `{name}` in this kernel{}", hint(near))]
    Unknown { name: EventName, near: Vec<String> },
    #[error("no permission to read {}: run rtrace as root, or let a group in with `mount -o remount,gid=GROUP /sys/kernel/tracing`", path.display())]
    NoPermission { path: PathBuf },
    #[error("failed to read {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Format { path: PathBuf, error: FormatError },
    #[error("{name}: {error}")]
    NoTracefs { name: EventName, error: Arc<TracefsError> },
}

/// The name of an event: `subsystem:name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventName {
    /// The directory below `events/`: the trace system, or the group of a probe.
    pub subsystem: String,
    /// The directory of the event below that of its subsystem.
    pub name: String,
}

impl EventName {
    /// Returns the name of the event `subsystem:name`. It is not looked up.
    pub fn new(subsystem: &str, name: &str) -> EventName {
        EventName { subsystem: subsystem.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for EventName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.subsystem, self.name)
    }
}

impl Tracefs {
    /// Finds a mounted tracefs: at the usual place first, then at the mount points in /proc/self/mounts. If it is not
    /// mounted, creates a detached mount, which only this process has. The place below debugfs is tried last, because
    /// an access there makes the kernel mount tracefs for everybody.
    ///
    /// # Errors
    /// Fails if there is no tracefs that may be read. The error's text says what to do.
    pub fn find() -> Result<Tracefs, TracefsError> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mut denied = None;
        for root in std::iter::once(PathBuf::from("/sys/kernel/tracing")).chain(mounts.lines().filter_map(mount_point)) {
            match Tracefs::at(&root) {
                Ok(tracefs) => return Ok(tracefs),
                Err(error @ TracefsError::NoPermission { .. }) => denied = denied.or(Some(error)),
                Err(_) => {}
            }
        }
        // The mount point without a mount has the mode of sysfs, which everybody may read. So the directory that denied
        // access has tracefs mounted, or may have.
        if let Some(denied) = denied {
            return Err(denied);
        }
        let refused = match path::detached() {
            Ok(root) => return Ok(Tracefs { root, absent: None }),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Err(TracefsError::NotBuilt),
            Err(error) => NoMount::of(&error),
        };
        Tracefs::at(Path::new("/sys/kernel/debug/tracing")).map_err(|_| TracefsError::NotMounted(refused))
    }

    /// Returns the tracefs at a mount point.
    ///
    /// # Errors
    /// Fails if tracefs is not mounted there, or may not be read.
    pub fn at(root: &Path) -> Result<Tracefs, TracefsError> {
        match fs::read_dir(root.join("events")) {
            Ok(_) => Ok(Tracefs { root: TracePath::mounted(root), absent: None }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(denied(root)),
            Err(error) => Err(TracefsError::Io { path: root.to_owned(), error }),
        }
    }

    /// Returns a tracefs without events. A lookup of an event fails with the reason `why`.
    pub fn absent(why: TracefsError) -> Tracefs {
        Tracefs { root: TracePath::absent(), absent: Some(Arc::new(why)) }
    }

    /// Returns the reason why there is no tracefs, if there is none.
    pub fn why_absent(&self) -> Option<&Arc<TracefsError>> {
        self.absent.as_ref()
    }

    /// Returns the topmost directory of tracefs.
    pub fn root(&self) -> &TracePath {
        &self.root
    }

    /// Whether the kernel has an event. An event in a directory that may not be searched counts as absent.
    pub fn has(&self, subsystem: &str, name: &str) -> bool {
        is_plain(subsystem) && is_plain(name) && self.directory(subsystem, name).is_dir()
    }

    /// Reads and parses an event's format file.
    ///
    /// # Errors
    /// Fails if there is no such event (the error then has the nearest names), or the file cannot be read or parsed.
    pub fn format(&self, subsystem: &str, name: &str) -> Result<Format, EventError> {
        let (path, text) = self.read(subsystem, name, "format")?;
        Format::parse(&text).map_err(|error| EventError::Format { path, error })
    }

    /// Reads the text of an event's format file.
    ///
    /// # Errors
    /// Fails if there is no such event, or its file may not be read.
    pub fn format_text(&self, subsystem: &str, name: &str) -> Result<String, EventError> {
        self.read(subsystem, name, "format").map(|(_, text)| text)
    }

    /// Reads an event's number, which is the value for perf_event_open's `config`.
    ///
    /// # Errors
    /// Fails as [`Tracefs::format`].
    pub fn id(&self, subsystem: &str, name: &str) -> Result<u64, EventError> {
        let (path, text) = self.read(subsystem, name, "id")?;
        text.trim()
            .parse()
            .map_err(|_| EventError::Format { path, error: FormatError { line: 1, what: format!("`{}` is not a number", text.trim()) } })
    }

    /// Returns the subsystems, sorted by name.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn subsystems(&self) -> Result<Vec<String>, EventError> {
        directories(&self.root.join("events"))
    }

    /// Returns the events of a subsystem, sorted by name. It is empty if there is no such subsystem.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn names(&self, subsystem: &str) -> Result<Vec<String>, EventError> {
        if !is_plain(subsystem) {
            return Ok(Vec::new());
        }
        directories(&self.root.join("events").join(subsystem))
    }

    /// Returns the events whose subsystem and name match these globs ([`crate::text::glob`]), sorted by name. It only
    /// lists directories, so it is fast. ftrace's own records (`ftrace:*`) cannot be opened and are left out.
    ///
    /// # Errors
    /// Fails if a directory cannot be read.
    pub fn matching(&self, subsystem: &str, name: &str) -> Result<Vec<EventName>, EventError> {
        let mut found = Vec::new();
        let matches = |pattern: &str, text: &str| glob::matches(pattern.as_bytes(), text.as_bytes());
        for subsystem in self.subsystems()?.into_iter().filter(|found| found != "ftrace" && matches(subsystem, found)) {
            let matching = self.names(&subsystem)?.into_iter().filter(|found| matches(name, found));
            found.extend(matching.map(|name| EventName { subsystem: subsystem.clone(), name }));
        }
        Ok(found)
    }

    /// Returns the same events as [`Tracefs::matching`], at least one.
    ///
    /// # Errors
    /// Fails as [`Tracefs::matching`], and if no event matches. The error then has the nearest names.
    pub fn some_matching(&self, subsystem: &str, name: &str) -> Result<Vec<EventName>, EventError> {
        let found = self.matching(subsystem, name)?;
        if found.is_empty() { Err(self.unknown(subsystem, name)) } else { Ok(found) }
    }

    /// Returns the events nearest to an unknown name: similar names in its subsystem, else the same name in other
    /// subsystems, else events that are similar in both.
    pub fn near(&self, subsystem: &str, name: &str) -> Vec<String> {
        let names = self.names(subsystem).unwrap_or_default();
        let similar = nearest(name, names.iter().map(String::as_str), 3);
        if !similar.is_empty() {
            return similar.into_iter().map(|name| format!("{subsystem}:{name}")).collect();
        }
        let all = self.matching("*", "*").unwrap_or_default();
        let namesakes: Vec<String> = all.iter().filter(|event| event.name == name).take(3).map(EventName::to_string).collect();
        if !namesakes.is_empty() {
            return namesakes;
        }
        let all: Vec<String> = all.iter().map(EventName::to_string).collect();
        nearest(&format!("{subsystem}:{name}"), all.iter().map(String::as_str), 3).into_iter().map(str::to_owned).collect()
    }

    /// Returns the syscalls X that have an event `syscalls:sys_enter_X`. It is empty without CONFIG_FTRACE_SYSCALLS.
    pub fn syscalls(&self) -> Vec<String> {
        let names = self.names("syscalls").unwrap_or_default();
        names.into_iter().filter_map(|name| name.strip_prefix("sys_enter_").map(str::to_owned)).collect()
    }

    fn unknown(&self, subsystem: &str, name: &str) -> EventError {
        let name = EventName::new(subsystem, name);
        match &self.absent {
            Some(error) => EventError::NoTracefs { name, error: Arc::clone(error) },
            None => EventError::Unknown { near: self.near(subsystem, &name.name), name },
        }
    }

    fn directory(&self, subsystem: &str, name: &str) -> TracePath {
        self.root.join("events").join(subsystem).join(name)
    }

    fn read(&self, subsystem: &str, name: &str, file: &str) -> Result<(PathBuf, String), EventError> {
        let unknown = || self.unknown(subsystem, name);
        if !is_plain(subsystem) || !is_plain(name) {
            return Err(unknown());
        }
        let path = self.directory(subsystem, name).join(file);
        match path.read() {
            // The event of a module or a user may have any bytes. Nobody can request a name that is not UTF-8.
            Ok(bytes) => Ok((path.shown(), String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(EventError::NoPermission { path: path.shown() }),
            Err(error) => Err(EventError::Io { path: path.shown(), error }),
        }
    }
}

/// Whether a name is a single path component, and neither `.` nor `..`.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// Returns the names of the directories in a directory, sorted. It is empty if the directory does not exist.
fn directories(path: &TracePath) -> Result<Vec<String>, EventError> {
    let mut names = match path.directories() {
        Ok(names) => names,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(EventError::NoPermission { path: path.shown() }),
        Err(error) => return Err(EventError::Io { path: path.shown(), error }),
    };
    names.sort_unstable();
    Ok(names)
}

/// Returns the mount point of a line of /proc/self/mounts, if the line is tracefs's.
fn mount_point(line: &str) -> Option<PathBuf> {
    let mut words = line.split(' ');
    let (_, path, kind) = (words.next()?, words.next()?, words.next()?);
    // The kernel writes blanks in paths as octal (man 5 fstab).
    (kind == "tracefs")
        .then(|| PathBuf::from(path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")))
}

fn denied(root: &Path) -> TracefsError {
    let about = fs::metadata(root);
    let (mode, uid, gid) = about.map_or((0o700, 0, 0), |about| (about.mode() & 0o7777, about.uid(), about.gid()));
    TracefsError::NoPermission { path: root.to_owned(), mode, uid, gid }
}

#[cfg(test)]
pub(crate) mod tests;
