//! What a probe's events are called: in lines as perf would call them, in tracefs so that they are like no other's.

use super::grammar::{FilePlace, KernelPlace, Place, Probe, SourceLine, When};
use crate::kernel::tracefs::EventName;
use std::collections::HashSet;

/// Bytes of a name in tracefs at most (MAX_EVENT_NAME_LEN in kernel/trace/trace.h, less the NUL).
const NAME_BYTES_MAX: usize = 63;

/// The name that lines show: what the user chose, else one that says where the probe is.
pub fn shown(probe: &Probe) -> EventName {
    let subsystem = probe.group.clone().unwrap_or_else(|| group(&probe.place));
    EventName { subsystem, name: probe.event.clone().unwrap_or_else(|| event(&probe.place)) }
}

/// A name for tracefs that none of these has; it is added to them.
pub fn unique(wanted: &str, taken: &mut HashSet<String>) -> String {
    let base = identifier(wanted);
    let numbered = (1..).map(|n| {
        let number = format!("_{n}");
        format!("{}{number}", &base[..base.len().min(NAME_BYTES_MAX - number.len())])
    });
    let name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}

fn group(place: &Place) -> String {
    match place {
        Place::File { path, .. } => {
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let plain = file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(|part| !part.is_empty()).unwrap_or_default();
            if plain.is_empty() { "probe".to_owned() } else { format!("probe_{plain}") }
        }
        Place::Usdt { provider, .. } => format!("sdt_{}", identifier(provider)),
        Place::Synthetic { .. } => "synthetic".to_owned(),
        Place::User { .. } => "user_events".to_owned(),
        Place::Kernel { .. } | Place::Function { .. } | Place::Tracepoint { .. } | Place::Event { .. } => "probe".to_owned(),
    }
}

fn event(place: &Place) -> String {
    let (name, when) = match place {
        Place::Kernel { at, when } => (kernel_place(at), Some(when)),
        Place::File { at, when, .. } => (file_place(at), Some(when)),
        Place::Function { name, when } => (name.clone(), Some(when)),
        Place::Tracepoint { name } | Place::Usdt { name, .. } => (name.clone(), None),
        Place::Event { event, .. } => (event.clone(), None),
        Place::Synthetic { .. } | Place::User { .. } => ("unnamed".to_owned(), None),
    };
    if matches!(when, Some(When::Return { .. })) { format!("{name}__return") } else { name }
}

fn kernel_place(at: &KernelPlace) -> String {
    match at {
        KernelPlace::Symbol { symbol, .. } => symbol.clone(),
        KernelPlace::Address(address) => format!("abs_{address:x}"),
        KernelPlace::Line(line) => source_line(line),
    }
}

fn file_place(at: &FilePlace) -> String {
    match at {
        FilePlace::Offset(offset) => format!("abs_{offset:x}"),
        FilePlace::Symbol { symbol, .. } => symbol.clone(),
        FilePlace::Line(line) => source_line(line),
    }
}

fn source_line(line: &SourceLine) -> String {
    let file = line.of.rsplit('/').next().unwrap_or_default();
    format!("{}_L{}", file.split('.').next().unwrap_or(file), line.line)
}

/// What tracefs takes for a name: C's identifiers. What is none of their characters becomes an underscore.
fn identifier(name: &str) -> String {
    let digit_first = name.starts_with(|c: char| c.is_ascii_digit()).then_some('_');
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let identifier: String = digit_first.into_iter().chain(plain).take(NAME_BYTES_MAX).collect();
    if identifier.is_empty() { "_".to_owned() } else { identifier }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn name(place: Place) -> String {
        shown(&Probe { group: None, event: None, place, args: Vec::new() }).to_string()
    }

    #[test]
    fn names_say_where() {
        let entry = When::Entry;
        let back = When::Return { maxactive: None };
        let symbol = |symbol: &str| KernelPlace::Symbol { module: None, symbol: symbol.to_owned(), offset: 4 };
        let file = |path: &str, at: FilePlace, when| Place::File { path: PathBuf::from(path), at, when, reference_counter: None };
        let of_file = |symbol: &str| FilePlace::Symbol { symbol: symbol.to_owned(), offset: 0 };
        assert_eq!(name(Place::Kernel { at: symbol("vfs_read"), when: entry }), "probe:vfs_read");
        assert_eq!(name(Place::Kernel { at: symbol("vfs_read"), when: back }), "probe:vfs_read__return");
        assert_eq!(name(file("/usr/lib/libc.so.6", of_file("read"), entry)), "probe_libc:read");
        assert_eq!(name(file("/usr/bin/python3.11", FilePlace::Offset(0x1189), back)), "probe_python3:abs_1189__return");
        let line = FilePlace::Line(SourceLine { of: "src/handle.c".to_owned(), line: 72 });
        assert_eq!(name(file("./app", line, entry)), "probe_app:handle_L72");
        assert_eq!(
            name(Place::Event { subsystem: "raw_syscalls".to_owned(), event: "sys_enter".to_owned(), filter: None }),
            "probe:sys_enter"
        );
        let chosen = Probe {
            group: Some("mine".to_owned()),
            event: Some("that".to_owned()),
            place: Place::Tracepoint { name: "x".to_owned() },
            args: Vec::new(),
        };
        assert_eq!(shown(&chosen).to_string(), "mine:that");
    }

    #[test]
    fn names_in_tracefs_are_identifiers_and_like_no_other() {
        let mut taken = HashSet::new();
        assert_eq!(unique("vfs_read", &mut taken), "vfs_read");
        assert_eq!(unique("vfs_read", &mut taken), "vfs_read_1");
        assert_eq!(unique("vfs_read", &mut taken), "vfs_read_2");
        assert_eq!(unique("operator<<é", &mut taken), "operator___");
        assert_eq!(unique("1st", &mut taken), "_1st");
        assert_eq!(unique("", &mut taken), "_");
        let long = "x".repeat(100);
        assert_eq!(unique(&long, &mut taken).len(), 63);
        let second = unique(&long, &mut taken);
        assert!(second.len() == 63 && second.ends_with("x_1"), "{second}");
    }
}
