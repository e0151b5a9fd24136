//! Names of a probe's events: the one that is shown in lines, which follows perf's naming, and the one in tracefs,
//! which is unique.

use super::grammar::{FilePlace, KernelPlace, NAME_BYTES_MAX, Probe, ProbePoint, SourceLine};
use super::groups;
use crate::kernel::tracefs::EventName;
use std::collections::HashSet;

/// Returns the name that lines show: the one that the user chose, or one that says where the probe is.
pub fn shown(probe: &Probe) -> EventName {
    let subsystem = probe.group.clone().unwrap_or_else(|| group(&probe.place));
    EventName { subsystem, name: probe.event.clone().unwrap_or_else(|| event(&probe.place)) }
}

/// Returns a name for tracefs that is not in `taken`, and adds it to `taken`.
pub fn unique(wanted: &str, taken: &mut HashSet<String>) -> String {
    let name = identifier(wanted);
    let base = if name.is_empty() { "probe" } else { &name };
    let numbered = (1..).map(|n| {
        let number = format!("_{n}");
        format!("{}{number}", &base[..base.len().min(NAME_BYTES_MAX - number.len())])
    });
    let name = std::iter::once(base.to_owned()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}

fn group(place: &ProbePoint) -> String {
    match place {
        ProbePoint::File { path, .. } => {
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let plain = file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(|part| !part.is_empty()).unwrap_or_default();
            if plain.is_empty() { "probe".to_owned() } else { format!("probe_{plain}") }
        }
        ProbePoint::Usdt { provider, .. } => format!("sdt_{}", identifier(provider)),
        ProbePoint::Synthetic { .. } | ProbePoint::User { .. } => groups::by_kind(place).to_owned(),
        ProbePoint::Kernel { .. } | ProbePoint::Function { .. } | ProbePoint::Tracepoint { .. } | ProbePoint::Event { .. } => {
            "probe".to_owned()
        }
    }
}

fn event(place: &ProbePoint) -> String {
    let name = match place {
        ProbePoint::Kernel { at: KernelPlace::Symbol { symbol: name, .. }, .. }
        | ProbePoint::File { at: FilePlace::Symbol { symbol: name, .. }, .. }
        | ProbePoint::Function { name, .. }
        | ProbePoint::Tracepoint { name }
        | ProbePoint::Usdt { name, .. }
        | ProbePoint::Event { event: name, .. } => name.clone(),
        ProbePoint::Kernel { at: KernelPlace::Line(line), .. } | ProbePoint::File { at: FilePlace::Line(line), .. } => source_line(line),
        ProbePoint::Kernel { at: KernelPlace::Address(address), .. } | ProbePoint::File { at: FilePlace::Offset(address), .. } => {
            format!("abs_{address:x}")
        }
        // Synthetic and user events always have a name from the user.
        ProbePoint::Synthetic { .. } | ProbePoint::User { .. } => String::new(),
    };
    if place.is_return() { format!("{name}__return") } else { name }
}

fn source_line(line: &SourceLine) -> String {
    let file = line.of.rsplit('/').next().unwrap_or_default();
    format!("{}_L{}", file.split('.').next().unwrap_or(file), line.line)
}

/// Turns a text into a name that tracefs accepts: letters, digits and underscores, no digit first, at most
/// [`NAME_BYTES_MAX`] bytes.
fn identifier(text: &str) -> String {
    let digit_first = text.starts_with(|first: char| first.is_ascii_digit()).then_some('_');
    let kept = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    digit_first.into_iter().chain(kept).take(NAME_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::grammar::{Line, parse};

    fn name(line: &str) -> String {
        match parse(line).unwrap() {
            Line::Make(probe) => shown(&probe).to_string(),
            Line::Remove(_) => unreachable!(),
        }
    }

    #[test]
    fn default_names_say_where_the_probe_is() {
        assert_eq!(name("p vfs_read+4"), "probe:vfs_read");
        assert_eq!(name("r vfs_read"), "probe:vfs_read__return");
        assert_eq!(name("f vfs_read%return"), "probe:vfs_read__return");
        assert_eq!(name("p /usr/lib/libc.so.6:read"), "probe_libc:read");
        assert_eq!(name("r /usr/bin/python3.11:0x1189"), "probe_python3:abs_1189__return");
        assert_eq!(name("p ./app:src/handle.c:72"), "probe_app:handle_L72");
        assert_eq!(name("e raw_syscalls.sys_enter nr=$id"), "probe:sys_enter");
        assert_eq!(name("usdt /usr/bin/python3:python:function__entry"), "sdt_python:function__entry");
        assert_eq!(name("t:mine/that sched_switch"), "mine:that");
        assert_eq!(name("u:test u32 count"), "user_events:test");
    }

    #[test]
    fn names_in_tracefs_are_unique_identifiers() {
        let mut taken = HashSet::new();
        assert_eq!(unique("vfs_read", &mut taken), "vfs_read");
        assert_eq!(unique("vfs_read", &mut taken), "vfs_read_1");
        assert_eq!(unique("vfs_read", &mut taken), "vfs_read_2");
        assert_eq!(unique("vfs_read_2", &mut taken), "vfs_read_2_1");
        assert_eq!(unique("", &mut taken), "probe");
        assert_eq!(unique("operator<<", &mut taken), "operator__");
        assert_eq!(unique("1é", &mut taken), "_1_");
        let long = "x".repeat(100);
        assert_eq!(unique(&long, &mut taken).len(), 63);
        let second = unique(&long, &mut taken);
        assert!(second.len() == 63 && second.ends_with("x_1"), "{second}");
    }
}
