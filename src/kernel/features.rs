//! The optional tracing features of the running kernel.

use super::tracefs::Tracefs;
use std::fs;
use std::path::Path;

/// The kernel's kinds of dynamic events, and the prerequisites of BPF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Probes on the kernel's instructions (CONFIG_KPROBE_EVENTS).
    pub kprobes: bool,
    /// Probes on functions' entry and exit by ftrace (`f` lines).
    pub fprobes: bool,
    /// Probes on the instructions of programs and libraries (CONFIG_UPROBE_EVENTS).
    pub uprobes: bool,
    /// Probes on events (`e` lines).
    pub eprobes: bool,
    /// Synthetic events, which combine fields of others (CONFIG_SYNTH_EVENTS).
    pub synthetic: bool,
    /// Histograms of events (`hist` triggers).
    pub histograms: bool,
    /// Events that programs register and write themselves (CONFIG_USER_EVENTS).
    pub user_events: bool,
    /// /sys/kernel/btf/vmlinux
    pub btf: bool,
}

impl Features {
    /// Detects the features by the files of tracefs and sysfs. Without tracefs, only BTF is detected.
    pub fn find(tracefs: Option<&Tracefs>) -> Features {
        let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
        let Some(tracefs) = tracefs else { return Features { btf, ..Features::default() } };
        let has = |file: &str| tracefs.root().join(file).exists();
        // Only the kernel's help text lists the accepted kinds of definitions. It also lists `e` in kernels that do not
        // accept it, so that one is detected by its function.
        let help = tracefs.root().join("README").read_to_string().unwrap_or_default();
        Features {
            kprobes: has_kprobes(tracefs),
            fprobes: has_definition(&help, "f[:"),
            uprobes: has("uprobe_events"),
            eprobes: has_function("eprobe_trigger_func"),
            synthetic: has("synthetic_events"),
            histograms: has_histograms(tracefs),
            user_events: has("user_events_data"),
            btf,
        }
    }
}

/// Whether this kernel supports kprobes.
pub fn has_kprobes(tracefs: &Tracefs) -> bool {
    tracefs.root().join("kprobe_events").exists()
}

/// Whether this kernel supports histograms of events (`hist` triggers).
pub fn has_histograms(tracefs: &Tracefs) -> bool {
    tracefs.root().join("events/raw_syscalls/sys_exit/hist").exists()
}

/// Whether a line of the help text has a kind of definition (`\t   e[:[<group>/]...`, also behind `Format:`).
fn has_definition(help: &str, kind: &str) -> bool {
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
    fn kinds_of_definitions_are_found_in_the_help_text() {
        let help = "\t   Format: p[:[<group>/][<event>]] <place> [<args>]\n\t           e[:[<group>/][<event>]] <attached-group>\n";
        assert!(has_definition(help, "p[:") && has_definition(help, "e[:") && !has_definition(help, "f[:"));
    }

    #[test]
    fn functions_of_this_kernel_are_found_by_name() {
        assert!(has_function("schedule") && !has_function("chedule"));
    }

    #[test]
    #[ignore = "needs root and tracefs"]
    fn features_of_this_kernel_are_detected() {
        let tracefs = Tracefs::find().unwrap();
        let features = Features::find(Some(&tracefs));
        assert_eq!(features.uprobes, tracefs.root().join("uprobe_events").exists());
        assert_eq!(Features::find(None), Features { btf: features.btf, ..Features::default() });
    }
}
