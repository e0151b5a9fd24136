//! Which of the kernel's optional tracing parts are there.

use super::tracefs::Tracefs;
use std::fs;
use std::path::Path;

/// The ways to make events of one's own, and what BPF needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    pub kprobes: bool,
    /// Probes on functions' entry and exit by ftrace (`f` lines).
    pub fprobes: bool,
    pub uprobes: bool,
    /// Probes on events (`e` lines).
    pub eprobes: bool,
    pub synthetic: bool,
    /// Histograms of events (`hist` triggers).
    pub histograms: bool,
    pub user_events: bool,
    /// /sys/kernel/btf/vmlinux
    pub btf: bool,
}

impl Features {
    /// Looks at the files; without tracefs only BTF can be told.
    pub fn find(tracefs: Option<&Tracefs>) -> Features {
        let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
        let Some(tracefs) = tracefs else { return Features { btf, ..Features::default() } };
        let has = |file: &str| tracefs.root().join(file).exists();
        // The kernel's own help names the kinds of line it takes, and no file does; but `e` it names where it takes none.
        let help = tracefs.root().join("README").read_to_string().unwrap_or_default();
        Features {
            kprobes: has_kprobes(tracefs),
            fprobes: takes(&help, "f[:"),
            uprobes: has("uprobe_events"),
            eprobes: has_function("eprobe_trigger_func"),
            synthetic: has("synthetic_events"),
            histograms: has_histograms(tracefs),
            user_events: has("user_events_data"),
            btf,
        }
    }
}

/// Whether this kernel takes probes in its code.
pub fn has_kprobes(tracefs: &Tracefs) -> bool {
    tracefs.root().join("kprobe_events").exists()
}

/// Whether it makes histograms of events.
pub fn has_histograms(tracefs: &Tracefs) -> bool {
    tracefs.root().join("events/raw_syscalls/sys_exit/hist").exists()
}

/// Whether a line of the help gives this kind of definition (`\t   e[:[<group>/]...`, perhaps behind `Format:`).
fn takes(help: &str, kind: &str) -> bool {
    help.lines().any(|line| line.trim_start().trim_start_matches("Format:").trim_start().starts_with(kind))
}

/// Whether the kernel has a function of this name.
fn has_function(name: &str) -> bool {
    let symbols = fs::read("/proc/kallsyms").unwrap_or_default();
    memchr::memmem::find(&symbols, format!(" {name}\n").as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_definitions() {
        let help = "\t   Format: p[:[<group>/][<event>]] <place> [<args>]\n\t           e[:[<group>/][<event>]] <attached-group>\n";
        assert!(takes(help, "p[:") && takes(help, "e[:") && !takes(help, "f[:"));
    }

    #[test]
    fn functions_of_this_kernel() {
        assert!(has_function("schedule") && !has_function("chedule"));
    }

    #[test]
    #[ignore = "needs root and tracefs"]
    fn this_kernel() {
        let tracefs = Tracefs::find().unwrap();
        let features = Features::find(Some(&tracefs));
        assert_eq!(features.uprobes, tracefs.root().join("uprobe_events").exists());
        assert_eq!(Features::find(None), Features { btf: features.btf, ..Features::default() });
    }
}
