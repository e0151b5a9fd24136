//! The file `dynamic_events` of tracefs: reads its lines and writes lines to it.
//!
//! The file is opened for appending: opened with O_TRUNC, it would remove the events of everybody. This module does not
//! decide who owns an event.

use super::error_log::{self, Refused};
use super::grammar;
use super::groups::{SYNTHETIC, USER};
use super::hits;
use crate::kernel::features::Features;
use crate::kernel::tracefs::{EventName, TracePath, Tracefs, TracefsError};
use rustix::fs::OFlags;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A line must be shorter than this (WRITE_BUFSIZE in kernel/trace/trace.c, less the two bytes that end it).
const LINE_BYTES_MAX: usize = 4094;

/// How often the file is read at most while other processes keep creating and removing events.
const READINGS_MAX: usize = 100;

/// The file `dynamic_events`.
#[derive(Clone, Debug)]
pub struct DynamicEvents {
    tracefs: Tracefs,
    path: TracePath,
}

/// A line of `dynamic_events`: one dynamic event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDefinition {
    /// The group and the name in the line. If a user event has several formats, its name in tracefs differs
    /// ([`super::inventory::definitions`]).
    pub name: EventName,
    /// The line as the kernel prints it.
    pub line: String,
}

/// Why the kernel, or rtrace before it, refused a line.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    NoTracefs(Arc<TracefsError>),
    #[error("this kernel has no dynamic events: it was built without kprobe and uprobe events (CONFIG_DYNAMIC_EVENTS)")]
    NotBuilt,
    #[error("this kernel has no {0}")]
    KindNotBuilt(&'static str),
    #[error("no permission to write to {}: run rtrace as root", .0.display())]
    NoPermission(PathBuf),
    #[error("the probe's line has {0} bytes, but the kernel accepts only lines of less than {LINE_BYTES_MAX}")]
    TooLong(usize),
    #[error("a probe cannot contain a newline, a NUL or `#`: the kernel ends the line there")]
    Unwritable,
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("failed to write to {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl DynamicEvents {
    /// Returns the file of this tracefs. It need not exist.
    pub fn of(tracefs: &Tracefs) -> DynamicEvents {
        DynamicEvents { tracefs: tracefs.clone(), path: tracefs.root().join("dynamic_events") }
    }

    /// Returns how often these probes were missed, in any task: the kernel skips a probe if as many of its calls are in
    /// progress as it has room for.
    pub fn misses(&self, of: &[&EventName]) -> u64 {
        let listed = self.read().unwrap_or_default();
        let counted = listed.iter().zip(hits::of(self.tracefs.root(), &listed)).filter(|(listed, _)| of.contains(&&listed.name));
        counted.filter_map(|(_, hits)| hits?.misses).sum()
    }

    /// Reads all lines, in the order in which the events were created.
    ///
    /// # Errors
    /// The file cannot be read. (If the kernel does not have the file, there are no dynamic events, which is not an
    /// error.)
    pub fn read(&self) -> io::Result<Vec<EventDefinition>> {
        let mut bytes = self.bytes()?;
        // The kernel emits the file in chunks and resumes by line number, so a line that is removed between two chunks
        // hides another line that still exists. So the file is read until two successive reads agree.
        for _ in 0..READINGS_MAX {
            let again = self.bytes()?;
            if std::mem::replace(&mut bytes, again) == bytes {
                break;
            }
        }
        Ok(String::from_utf8_lossy(&bytes).lines().filter_map(parse_definition).collect())
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        match self.path.read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }

    /// Creates an event by writing its line.
    ///
    /// # Errors
    /// The kernel refuses the line; the reason comes from the kernel's error log if that has an entry about it.
    pub fn create(&self, line: &str) -> Result<(), WriteError> {
        if line.len() >= LINE_BYTES_MAX {
            return Err(WriteError::TooLong(line.len()));
        }
        if line.contains(['#', '\n', '\0']) {
            return Err(WriteError::Unwritable);
        }
        self.write(line).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !self.path.exists() => match self.tracefs.why_absent() {
                Some(why) => WriteError::NoTracefs(Arc::clone(why)),
                None => WriteError::NotBuilt,
            },
            io::ErrorKind::PermissionDenied if !self.may_write() => WriteError::NoPermission(self.path.shown()),
            _ => match error.raw_os_error() {
                Some(errno) => self.refused(line, errno),
                None => WriteError::Io { path: self.path.shown(), error },
            },
        })
    }

    /// Removes all events of this name.
    ///
    /// # Errors
    /// EBUSY: the event is open or enabled; ENOENT: there is no such event.
    pub fn remove(&self, name: &EventName) -> io::Result<()> {
        self.write(&format!("-:{}/{}", name.subsystem, name.name))
    }

    /// Removes the user event of this line. If several user events have the same name, the fields select one.
    ///
    /// # Errors
    /// As [`DynamicEvents::remove`].
    pub fn remove_user_event(&self, line: &str) -> io::Result<()> {
        self.write(&format!("-:{USER}/{}", line.trim_start_matches("u:")))
    }

    fn write(&self, line: &str) -> io::Result<()> {
        // The kernel takes each write for complete lines, so a line has to be written at once.
        let file = self.path.open(OFlags::WRONLY | OFlags::APPEND)?;
        rustix::io::write(&file, line.as_bytes()).map(drop).map_err(io::Error::from)
    }

    fn refused(&self, line: &str, errno: i32) -> WriteError {
        let refused = error_log::refused(&self.tracefs.root().join("error_log").read().unwrap_or_default(), line, errno);
        match self.missing(line) {
            Some(what) if refused.entry.is_none() && errno == libc::EINVAL => WriteError::KindNotBuilt(what),
            _ => WriteError::Refused(refused),
        }
    }

    /// Returns the kind of event that a line creates, if this kernel was built without that kind.
    fn missing(&self, line: &str) -> Option<&'static str> {
        let features = Features::find(Some(&self.tracefs));
        let (is_there, what) = match line.as_bytes().first()? {
            b'p' | b'r' if grammar::is_on_file(line) => (features.uprobes, "uprobes (CONFIG_UPROBE_EVENTS)"),
            b'p' | b'r' => (features.kprobes, "kprobes (CONFIG_KPROBE_EVENTS)"),
            b'f' => (features.fprobes, "function probes (CONFIG_FPROBE_EVENTS)"),
            b't' => (features.fprobes, "probes on tracepoints (CONFIG_FPROBE_EVENTS)"),
            b'e' => (features.eprobes, "event probes (CONFIG_EPROBE_EVENTS)"),
            b's' => (features.synthetic, "synthetic events (CONFIG_SYNTH_EVENTS)"),
            b'u' => (features.user_events, "user events (CONFIG_USER_EVENTS)"),
            _ => return None,
        };
        (!is_there).then_some(what)
    }

    fn may_write(&self) -> bool {
        self.path.open(OFlags::WRONLY | OFlags::APPEND).is_ok()
    }
}

/// Parses the name in `p:GROUP/EVENT ...`. User and synthetic events are listed without their group, which is always
/// the same.
fn parse_definition(line: &str) -> Option<EventDefinition> {
    let head = line.split([' ', '\t', ';']).next()?;
    let (kind, name) = head.split_once(':')?;
    let (subsystem, name) = match (name.split_once('/'), kind) {
        (Some(both), _) => both,
        (None, "s") => (SYNTHETIC, name),
        (None, "u") => (USER, name.split(':').next()?),
        (None, _) => return None,
    };
    Some(EventDefinition { name: EventName::new(subsystem, name), line: line.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_of_every_kind_of_line_are_parsed() {
        let name = |line: &str| parse_definition(line).map(|listed| listed.name.to_string());
        assert_eq!(name("p:kprobes/open do_sys_openat2 dfd=%di").as_deref(), Some("kprobes:open"));
        assert_eq!(name("r16:rtrace_1_2/readline /bin/bash:0x0000000000001189").as_deref(), Some("rtrace_1_2:readline"));
        assert_eq!(name("e:eprobes/open syscalls.sys_enter_openat").as_deref(), Some("eprobes:open"));
        assert_eq!(name("s:synthetic/wakeup\tu64 lat; pid_t pid").as_deref(), Some("synthetic:wakeup"));
        assert_eq!(name("u:test u32 count").as_deref(), Some("user_events:test"));
        assert_eq!(name("u:test").as_deref(), Some("user_events:test"));
        assert_eq!(name("nonsense"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn misses_of_other_probes_are_not_counted() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("events")).unwrap();
        let file = DynamicEvents::of(&Tracefs::at(root).unwrap());
        let name = |group: &str| EventName::new(group, "getname");
        assert_eq!(file.misses(&[&name("b")]), 0, "the file does not exist");
        fs::write(root.join("dynamic_events"), "r512:a/getname do_getname\nr512:b/getname do_getname\n").unwrap();
        fs::write(root.join("kprobe_profile"), "  getname  9  4\n  getname  8  3\n").unwrap();
        assert_eq!((file.misses(&[&name("b")]), file.misses(&[])), (3, 0));
    }
}
