//! Decides which items work, from the features of the machine and the privileges of the user.

use super::item::{Item, State};
use super::{Attempt, TracingSupport, TryOpen};
use crate::arm;
use crate::cli::ExitCode;
use crate::kernel::lockdown;
use crate::kernel::privileges::{Capability, LEVEL_MAX, Privileges};
use crate::kernel::refused::{self, Refused};
use crate::kernel::tracefs::TracefsError;
use crate::text::os_error;
use std::io;

/// The report about this machine.
pub struct Report {
    /// The items in the order in which they are printed.
    pub items: Vec<Item>,
    /// Whether rtrace can trace commands that this user starts.
    works: bool,
}

impl Report {
    /// Returns the exit status of `rtrace check`.
    pub fn exit_code(&self) -> ExitCode {
        if self.works { ExitCode::Success } else { ExitCode::Failed }
    }
}

/// Returns the items of the report.
pub fn report(support: &TracingSupport, try_open: TryOpen) -> Report {
    if support.is_locked_down {
        return Report { items: vec![kernel(support), Item::missing("engine", lockdown::REFUSES)], works: false };
    }
    let own = attempt(support, try_open, "own commands", |event| Attempt::OwnTask { event });
    let without_tracefs = support.tracefs.is_err() && support.bpf.is_ok();
    let works = own.state != State::Missing || without_tracefs;
    let everything = match support.is_lent {
        true => Item::missing("whole machine", "rtrace lends its privileges only for programs of the caller (man rtrace, SECURITY)")
            .by("sudo rtrace"),
        false => attempt(support, try_open, "whole machine", |event| Attempt::WholeCpu { event }),
    };
    let mut items = vec![
        kernel(support),
        tracefs(support),
        raw_syscalls(support),
        syscall_events(support),
        privileges(&support.privileges),
        own,
        everything,
        ring_memory(support),
        descriptors(support),
    ];
    items.extend(probes(support));
    items.extend(needs_of_bpf(support));
    items.push(path_names(support));
    items.push(match without_tracefs {
        true => Item::limited("engine", "bpf: only syscalls, no signals and no other events").fact("engine", "bpf"),
        false => engine(works, &support.bpf),
    });
    Report { items, works }
}

fn kernel(support: &TracingSupport) -> Item {
    Item::ok("kernel", support.release.clone()).fact("release", support.release.clone())
}

fn tracefs(support: &TracingSupport) -> Item {
    match &support.tracefs {
        Ok(Some(root)) => Item::ok("tracefs", root.as_str()).fact("path", root.as_str()),
        Ok(None) => Item::ok("tracefs", "not mounted; rtrace mounts it for itself, where nobody else sees it"),
        Err(TracefsError::NotMounted(why)) => match why.command() {
            Some(command) => Item::missing("tracefs", "not mounted").by(command),
            None => Item::missing("tracefs", format!("not mounted, and {why}")),
        },
        Err(TracefsError::NoPermission { path, .. }) if support.is_lent && support.bpf.is_ok() => {
            let finding = format!("this user may not read {}, and does not need to on this kernel", path.display());
            Item::ok("tracefs", finding).fact("path", path.display().to_string())
        }
        Err(TracefsError::NoPermission { path, mode, uid, gid }) => {
            let finding = format!("{} has mode {mode:03o}, owner {uid}:{gid}", path.display());
            let item = Item::missing("tracefs", finding).fact("path", path.display().to_string());
            item.fact("permissions", *mode)
                .fact("uid", *uid)
                .fact("gid", *gid)
                .by(format!("sudo mount -o remount,mode=750,gid=$(id -g) {}", path.display()))
        }
        Err(error) => Item::missing("tracefs", error.to_string()),
    }
}

fn raw_syscalls(support: &TracingSupport) -> Item {
    match (support.raw_syscalls, &support.tracefs) {
        (Some(_), _) => Item::ok("raw_syscalls", "all syscalls, including those of 32-bit programs"),
        (None, Ok(_)) => {
            Item::missing("raw_syscalls", "this kernel was built without CONFIG_HAVE_SYSCALL_TRACEPOINTS: another kernel is needed")
        }
        (None, Err(_)) => Item::missing("raw_syscalls", "unknown without tracefs"),
    }
}

fn syscall_events(support: &TracingSupport) -> Item {
    let strings = match support.copied_bytes {
        Some(bytes) => format!("with {bytes} bytes of each string"),
        None => "without strings (Linux 6.19 and later have them)".to_owned(),
    };
    match (support.syscall_events, &support.tracefs) {
        (0, Ok(_)) => {
            Item::limited("syscalls events", "this kernel was built without CONFIG_FTRACE_SYSCALLS: rtrace uses raw_syscalls for all calls")
        }
        (0, Err(_)) => Item::missing("syscalls events", "unknown without tracefs"),
        (count, _) => {
            let item = Item::ok("syscalls events", format!("{count}, {strings}")).number("events", count as u64);
            match support.copied_bytes {
                Some(bytes) => item.number("string_bytes", u64::from(bytes)),
                None => item,
            }
        }
    }
}

/// Reports kernel.perf_event_paranoid and CAP_PERFMON. [`attempt`] opens an event to test whether they suffice.
fn privileges(privileges: &Privileges) -> Item {
    let level = match privileges.paranoid {
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None => return Item::missing("perf events", "this kernel was built without CONFIG_PERF_EVENTS: another kernel is needed"),
    };
    let holds = if privileges.has(Capability::PerfMon) { "with" } else { "without" };
    let facts = |item: Item| item.fact("perf_event_paranoid", privileges.paranoid).fact("cap_perfmon", privileges.has(Capability::PerfMon));
    let finding = format!("{level}, {holds} cap_perfmon");
    if privileges.has(Capability::PerfMon) && privileges.is_above_perfmon() {
        let finding =
            format!("{finding}, which may not be enough: kernels of Debian and Ubuntu require cap_sys_admin above level {LEVEL_MAX}");
        return facts(Item::limited("perf events", finding)).by(format!("sudo sysctl kernel.perf_event_paranoid={LEVEL_MAX}"));
    }
    if privileges.may_read_tracepoints() {
        facts(Item::ok("perf events", finding))
    } else {
        let limited = facts(Item::limited("perf events", format!("{finding}: this user may not open every tracepoint")));
        limited.granted("perf_event_open", privileges, &[Capability::PerfMon], GRANT)
    }
}

/// The command that lets users trace their own programs.
const GRANT: &str = "rtrace check --setup";

fn attempt(support: &TracingSupport, try_open: TryOpen, item: &'static str, of: impl Fn(u64) -> Attempt) -> Item {
    let Some(event) = support.raw_syscalls else {
        return Item::missing(item, "not tried, because the ID of the tracepoint raw_syscalls:sys_enter is unknown (see above)");
    };
    match try_open(of(event)) {
        Ok(()) => Item::ok(item, "perf_event_open works"),
        Err(error) => {
            let is_refused = error.kind() == io::ErrorKind::PermissionDenied;
            let sentence = error.to_string();
            let sentence = if is_refused { os_error::without_error_numbers(&sentence) } else { sentence };
            let missing = Item::missing(item, format!("perf_event_open: {sentence}")).fact("errno", error.raw_os_error());
            match is_refused {
                true => missing.granted("perf_event_open", &support.privileges, &[Capability::PerfMon], GRANT),
                false => missing,
            }
        }
    }
}

/// The size in KiB of a ring buffer per CPU that holds a burst of some 80,000 records.
const BURST_KIB: u64 = 8 * 1024;

fn ring_memory(support: &TracingSupport) -> Item {
    match support.privileges.ring_bytes_max(support.cpus) {
        None => Item::ok("ring memory", "unlimited"),
        Some(bytes) => {
            let kib = bytes / 1024;
            let state = if kib >= BURST_KIB { State::Ok } else { State::Limited };
            let item = Item::new(state, "ring memory", format!("{kib} KiB per CPU (kernel.perf_event_mlock_kb and ulimit -l)"));
            let item = item.number("bytes_per_cpu", bytes);
            if state == State::Ok { item } else { item.by(format!("sudo sysctl kernel.perf_event_mlock_kb={}", BURST_KIB + 4)) }
        }
    }
}

/// Reports whether RLIMIT_NOFILE allows the perf events of a trace. Any trace opens a few on each CPU; each syscall
/// that is selected by its name adds two on each CPU.
fn descriptors(support: &TracingSupport) -> Item {
    const EVENTS_OF_A_PLAIN_TRACE: u64 = 12;
    let (soft, hard) = support.privileges.files;
    let needed = EVENTS_OF_A_PLAIN_TRACE * support.cpus as u64 + 64;
    let Some(limit) = hard.or(soft) else { return Item::ok("descriptors", "unlimited") };
    let cpus = support.cpus;
    let names = limit.saturating_sub(needed) / (2 * cpus.max(1) as u64);
    let facts = |item: Item| item.number("limit", limit).number("needed", needed).number("syscalls_by_name", names);
    if limit < needed {
        let finding = format!("RLIMIT_NOFILE is at most {limit}, a trace on {cpus} CPUs needs {needed}");
        facts(Item::missing("descriptors", finding)).by(format!("ulimit -n {needed}"))
    } else {
        facts(Item::ok("descriptors", format!("RLIMIT_NOFILE is at most {limit}: enough for {names} syscalls by name on {cpus} CPUs")))
    }
}

fn probes(support: &TracingSupport) -> Vec<Item> {
    if support.tracefs.is_err() {
        return vec![Item::missing("probes", "unknown without tracefs")];
    }
    let features = &support.features;
    let kinds = [
        ("kprobes", features.kprobes, "CONFIG_KPROBE_EVENTS"),
        ("fprobes", features.fprobes, "CONFIG_FPROBE_EVENTS"),
        ("uprobes", features.uprobes, "CONFIG_UPROBE_EVENTS"),
        ("eprobes", features.eprobes, "CONFIG_EPROBE_EVENTS"),
        ("synthetic events", features.synthetic, "CONFIG_SYNTH_EVENTS"),
        ("user_events", features.user_events, "CONFIG_USER_EVENTS"),
    ];
    let item = |(item, is_available, option)| match is_available {
        true => Item::ok(item, "available"),
        false => not_built(item, option),
    };
    kinds.into_iter().map(item).collect()
}

/// Reports an option of the kernel that is not set.
fn not_built(item: &'static str, option: &'static str) -> Item {
    Item::missing(item, format!("this kernel was built without {option}")).fact("option", option)
}

fn needs_of_bpf(support: &TracingSupport) -> Vec<Item> {
    let btf = match support.features.btf {
        true => Item::ok("BTF", "/sys/kernel/btf/vmlinux"),
        false => not_built("BTF", "CONFIG_DEBUG_INFO_BTF"),
    };
    let needed = [Capability::Bpf, Capability::PerfMon];
    let is_refused = support.bpf.as_ref().is_err_and(|why| arm::is_no_permission(why));
    let capability = match Refused::of(&support.privileges, &needed) {
        Refused::Filtered if is_refused => Item::missing("BPF", refused::advice("bpf", &support.privileges, &needed)),
        _ if support.privileges.has(Capability::Bpf) => Item::ok("BPF", "cap_bpf"),
        _ => Item::missing("BPF", "no cap_bpf").granted("bpf", &support.privileges, &needed, GRANT),
    };
    vec![btf, capability]
}

/// Reports the methods of `--strings-by` that work here, beginning with the one that `auto` selects.
fn path_names(support: &TracingSupport) -> Item {
    let copies = support.copied_bytes.map(|bytes| format!("events (cut to {bytes} bytes)"));
    let whole = [("getname", support.features.kprobes), ("vfs_getname", support.vfs_getname)]
        .into_iter()
        .filter(|(_, is_available)| *is_available)
        .map(|(method, _)| method.to_owned());
    let features = support.features;
    let at_exit = (features.eprobes && features.synthetic && features.histograms).then(|| "eprobe".to_owned());
    let methods: Vec<String> = whole.chain(copies).chain(at_exit).collect();
    let finding = format!("without BPF: {}", methods.join(", "));
    let item = match methods.first() {
        None => Item::missing("path names", "without BPF only addresses: this kernel supports no method of --strings-by"),
        Some(first) if first.starts_with("events") => Item::limited("path names", finding),
        Some(_) => Item::ok("path names", finding),
    };
    let names: Vec<&str> = methods.iter().filter_map(|method| method.split(' ').next()).collect();
    item.fact("methods", names)
}

/// Reports the engine that `--engine auto` selects.
fn engine(works: bool, bpf: &Result<(), String>) -> Item {
    match (works, bpf) {
        (true, Ok(())) => {
            Item::ok("engine", "bpf: reads the memory of arguments and the files of descriptors during the call").fact("engine", "bpf")
        }
        (true, Err(why)) => {
            let why = os_error::without_error_numbers(why);
            let item = Item::limited("engine", format!("tracepoint: addresses instead of strings; bpf: {why}"));
            item.fact("engine", "tracepoint").fact("bpf", why)
        }
        (false, _) => Item::missing("engine", "none works for this user"),
    }
}
