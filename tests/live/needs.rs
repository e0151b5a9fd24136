//! Features and programs that a test needs and that a machine may lack. A test that ends for that reason prints its
//! name, so that nobody takes it for passed: `tests/vm/run` lists such tests.

use crate::machine::Machine;
use crate::trace::plain;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A requirement of a test. The kernel's own files say whether it is met, never the tool under test.
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "some are of BPF alone"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Kprobes,
    /// Probes on the entry and exit of functions by ftrace: `f` and `t` lines.
    Fprobes,
    Uprobes,
    Eprobes,
    SyntheticEvents,
    /// Histograms: the `hist` trigger.
    Histograms,
    UserEvents,
    /// Arguments by their names, which come from the kernel's type information.
    NamedArguments,
    /// The kernel's own types (BTF).
    Types,
    /// The kernel's `vmlinux` with debug information, where Debian or the test machine installs it.
    DebugInformation,
    /// Copies of memory in the events of single syscalls, from Linux 6.19 on.
    CopiesInEvents,
    /// BPF programs on events of single syscalls that the kernel either runs or counts as skipped, and never preempts.
    /// Before Linux 6.7 it does not count them, and from 7.2 on it preempts them.
    CountedProgramsOnSingleSyscalls,
    /// Eprobes that read an array among the fields of their event. Linux 6.1 and 6.12 use the content of the array as
    /// its address; 7.2 does not.
    EprobesOnArrays,
    /// A kernel that accepts the programs of the BPF engine: from Linux 6.1 on, with BTF.
    BpfEngine,
    /// BPF programs that override the results of kernel functions (CONFIG_BPF_KPROBE_OVERRIDE).
    OverriddenResults,
    /// BPF programs that look up tasks by their pid: from Linux 6.2 on.
    TasksByNumber,
    /// A program by its name in PATH or by its path; it accepts `--version`.
    Program(&'static str),
}

impl Machine {
    /// Whether any of these is missing here. If so, this is reported, and the test has to end.
    ///
    /// # Panics
    /// Panics if a kernel feature is missing although all are required (`RTRACE_REQUIRE_PROBES`).
    pub fn lacks(&self, needs: &[Need]) -> bool {
        let Some(missing) = needs.iter().find(|need| !need.is_met()) else { return false };
        assert!(
            !are_all_required() || matches!(missing, Need::Program(_) | Need::CountedProgramsOnSingleSyscalls),
            "what probes need is required, but there is no such thing: {missing}"
        );
        unsupported(&format!("no {missing}"));
        true
    }
}

/// For tests of the BPF engine, whichever engine the other tests use.
impl Machine {
    /// Like [`Machine::shared`], and `None` if the kernel is too old for the BPF engine.
    pub fn shared_with_bpf() -> Option<Machine> {
        Machine::shared().filter(|machine| !machine.lacks(&[Need::BpfEngine]))
    }

    /// Like [`Machine::alone`], and `None` if the kernel is too old for the BPF engine.
    #[cfg(feature = "bpf")]
    pub fn alone_with_bpf() -> Option<Machine> {
        Machine::alone().filter(|machine| !machine.lacks(&[Need::BpfEngine]))
    }
}

fn are_all_required() -> bool {
    std::env::var_os("RTRACE_REQUIRE_PROBES").is_some_and(|v| !v.is_empty() && v != "0")
}

/// Reports that the test in this thread, or the rest of it, cannot run here, and why.
pub fn unsupported(why: &str) {
    let name = std::thread::current().name().unwrap_or("a live test").to_owned();
    // The test harness hides the output of eprintln! if a test passes.
    let _ = writeln!(std::io::stderr(), "unsupported here: {name}: {why}");
}

/// Returns whether a program of this name is in PATH, or the name is a path.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    name.contains('/') || std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

impl Need {
    pub fn is_met(self) -> bool {
        match self {
            Need::Kprobes => has("kprobe_events"),
            Need::Fprobes => explains("f[:"),
            Need::Uprobes => has("uprobe_events"),
            Need::Eprobes => takes_eprobes(),
            Need::SyntheticEvents => has("synthetic_events"),
            Need::Histograms => explains("hist trigger"),
            Need::UserEvents => has("user_events_data"),
            Need::NamedArguments => explains("<argname>"),
            Need::Types => Path::new("/sys/kernel/btf/vmlinux").exists(),
            Need::DebugInformation => Path::new(&format!("/usr/lib/debug/boot/vmlinux-{}", release())).exists(),
            Need::CopiesInEvents => reads("events/syscalls/sys_enter_openat/format").contains("__filename_val"),
            Need::CountedProgramsOnSingleSyscalls => ((6, 7)..(7, 2)).contains(&kernel_version()),
            Need::EprobesOnArrays => takes_eprobes() && kernel_version() > (6, 12),
            Need::BpfEngine => kernel_version() >= (6, 1) && Need::Types.is_met(),
            Need::OverriddenResults => {
                std::fs::read_to_string("/proc/kallsyms").is_ok_and(|symbols| symbols.contains(" bpf_override_return\n"))
            }
            Need::TasksByNumber => std::fs::read_to_string("/proc/kallsyms").is_ok_and(|symbols| symbols.contains(" bpf_task_from_pid\n")),
            Need::Program(name) => Command::new(name).arg("--version").output().is_ok_and(|run| run.status.success()),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Need::Kprobes => "kprobe events",
            Need::Fprobes => "fprobe events",
            Need::Uprobes => "uprobe events",
            Need::Eprobes => "eprobes",
            Need::SyntheticEvents => "synthetic events",
            Need::Histograms => "histograms",
            Need::UserEvents => "user events",
            Need::NamedArguments => "arguments by name",
            Need::Types => "types of the kernel (BTF)",
            Need::DebugInformation => "vmlinux with debug information",
            Need::CopiesInEvents => "copies of memory in events",
            Need::CountedProgramsOnSingleSyscalls => "BPF programs on events of single syscalls",
            Need::EprobesOnArrays => "eprobes on arrays",
            Need::OverriddenResults => "BPF programs that override results",
            Need::BpfEngine => "kernel that takes the BPF engine's programs (Linux 6.1)",
            Need::TasksByNumber => "tasks by number in BPF programs",
            Need::Program(name) => name,
        })
    }
}

fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted").trim().to_owned()
}

pub fn tracefs() -> &'static Path {
    let dirs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
    dirs.into_iter().find(|dir| dir.join("events").is_dir()).unwrap_or(dirs[0])
}

fn has(file: &str) -> bool {
    tracefs().join(file).exists()
}

/// Returns the major and the minor version: 6 and 1 for Linux 6.1.158.
fn kernel_version() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().expect("a release begins with two numbers"));
    (numbers.next().expect("major"), numbers.next().expect("minor"))
}

/// Whether the kernel's own help text contains this.
fn explains(text: &str) -> bool {
    reads("README").contains(text)
}

/// Returns the content of a file of tracefs. The kernel returns lists in parts, and a removal between two parts hides a
/// line, so the file is read until two reads agree.
pub fn reads(file: &str) -> String {
    let read = || std::fs::read_to_string(tracefs().join(file)).unwrap_or_default();
    let mut text = read();
    for _ in 0..100 {
        let again = read();
        if text == again {
            break;
        }
        text = again;
    }
    text
}

/// Returns the dynamic events of rtrace whose owner is dead.
pub fn left_by_the_dead() -> Vec<String> {
    let all = reads("dynamic_events");
    let owner = |line: &str| line.split_once("rtrace_")?.1.split('_').next()?.parse::<i32>().ok();
    let is_left = |line: &&str| owner(line).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    all.lines().filter(is_left).map(str::to_owned).collect()
}

/// The kernel's help text explains eprobes even if it has none. A kernel with eprobes reports that the event does not
/// exist; others report bad syntax.
fn takes_eprobes() -> bool {
    let Ok(mut file) = std::fs::File::options().append(true).open(tracefs().join("dynamic_events")) else { return false };
    let error = file.write_all(b"e:rtrace_live/none rtrace_live.none\n").expect_err("there is no such event");
    error.raw_os_error() == Some(libc::ENODEV)
}

/// Checks that the answers of `rtrace check` about the kernel are right.
#[test]
fn are_what_rtrace_finds() {
    let Some(machine) = Machine::shared() else { return };
    let report = plain(&machine, &["check"]).stdout;
    let found = |thing: &str| {
        let line = report.lines().find_map(|line| line.split_once(' ').filter(|(_, rest)| rest.trim_start().starts_with(thing)));
        line.unwrap_or_else(|| panic!("no {thing} in\n{report}")).0 == "ok"
    };
    let kinds = [
        ("kprobes", Need::Kprobes),
        ("fprobes", Need::Fprobes),
        ("uprobes", Need::Uprobes),
        ("eprobes", Need::Eprobes),
        ("synthetic events", Need::SyntheticEvents),
        ("user_events", Need::UserEvents),
    ];
    for (thing, need) in kinds {
        assert_eq!(found(thing), need.is_met(), "{thing} in\n{report}");
    }
    for need in kinds.map(|(_, need)| need).into_iter().chain([Need::Histograms, Need::NamedArguments, Need::Types, Need::DebugInformation])
    {
        assert!(need.is_met() || !are_all_required(), "{need}");
    }
}
