//! Path names without BPF, by each method that this kernel has. A name is complete and right, or marked as cut or
//! altered, or an address.

use crate::line;
use crate::machine::Machine;
use crate::needs::{Need, left_by_the_dead, reads, tracefs, unsupported};
use crate::trace::{self, Trace, start, workload};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CALLS: [&str; 4] = ["--engine", "tracepoint", "-e", "openat,renameat2"];
/// CONFIG_TRACE_SYSCALL_BUF_SIZE_DEFAULT of Debian's kernels, which is also the kernel's default.
const COPIED_BYTES: usize = 63;
/// The length of the longest name that fits into a page together with the rest of its record.
const PAGE_NAME_BYTES: usize = 4_000;

/// The kernel features that reading names at the return of calls needs.
const AT_EXIT: [Need; 3] = [Need::Eprobes, Need::SyntheticEvents, Need::Histograms];

/// The numbers of names by the way in which they were shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    right: usize,
    /// Names that are marked as cut or altered, and otherwise right.
    marked: usize,
    addresses: usize,
}

impl Shown {
    fn total(&self) -> usize {
        self.right + self.marked + self.addresses
    }
}

/// The names that a test counts.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Openat,
    /// Only names that the kernel can copy to its own events unaltered.
    OpenatShort,
    /// Only names that fit into a page of a tracefs instance.
    OpenatPage,
    Renameat2,
}

fn trace(machine: &Machine, way: &str, threads: u64) -> Trace {
    let options = [&CALLS[..], &["--strings-by", way]].concat();
    let trace = workload(machine, &options, &format!("names {threads} 64 {}", machine.dir().display()));
    let _ = std::fs::remove_file(machine.path("fresh"));
    trace
}

/// Compares each name with the one that the program printed.
fn shown(trace: &Trace, of: Of) -> Shown {
    let names: HashMap<u64, Vec<Vec<u8>>> = trace.stdout.lines().filter_map(named).collect();
    let mut shown = Shown::default();
    for (line, call) in line::calls(&trace.lines()) {
        let (number, args): (_, &[&str]) = match call.name.as_str() {
            "openat" if of != Of::Renameat2 => (call.number("dfd"), &["filename"]),
            "renameat2" if of == Of::Renameat2 => (call.number("olddfd"), &["oldname", "newname"]),
            _ => continue,
        };
        let Some(expected) = number.and_then(|number| names.get(&number)) else { continue };
        for (arg, name) in args.iter().zip(expected) {
            if of == Of::OpenatShort && !(name.len() <= COPIED_BYTES && name.iter().all(is_plain)) {
                continue;
            }
            if of == Of::OpenatPage && name.len() > PAGE_NAME_BYTES {
                continue;
            }
            let text = call.arg(arg).unwrap_or_else(|| panic!("no {arg}: {}", line.text));
            match text {
                _ if text == quoted(name) => shown.right += 1,
                _ if text.starts_with("0x") => shown.addresses += 1,
                _ if is_marked(text, name) => shown.marked += 1,
                _ => panic!("a wrong name, {} for {}: {}", text, quoted(name), line.text),
            }
        }
    }
    assert!(shown.total() > 0, "no line has such a name: {}", trace.text);
    shown
}

/// Parses a line `named NUMBER HEX...` of the program.
fn named(line: &str) -> Option<(u64, Vec<Vec<u8>>)> {
    let mut words = line.strip_prefix("named ")?.split(' ');
    let number = words.next()?.parse().ok()?;
    let byte = |two: &[u8]| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok();
    Some((number, words.map(|hex| hex.as_bytes().chunks(2).filter_map(byte).collect()).collect()))
}

/// Returns a known name as rtrace prints it.
fn quoted(name: &[u8]) -> String {
    let chunks = name.utf8_chunks().map(|chunk| {
        let text = chunk.valid().chars().map(|c| match c {
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            c if c.is_ascii_control() => format!("\\x{:02x}", c as u32),
            c => c.to_string(),
        });
        text.chain(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"))).collect::<String>()
    });
    format!("\"{}\"", chunks.collect::<String>())
}

/// Whether the kernel copies a byte unaltered (its isprint() accepts Latin-1, lib/ctype.c).
fn is_plain(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | 0xa0..)
}

/// Whether a name is shown with a mark, and the text is what the mark leaves of the name.
fn is_marked(text: &str, name: &[u8]) -> bool {
    let (text, may_be_altered) = text.strip_prefix('~').map_or((text, false), |text| (text, true));
    let (text, is_cut) = text.strip_suffix("\"...").map_or((text.to_owned(), false), |text| (format!("{text}\""), true));
    let copied = if is_cut { name.get(..COPIED_BYTES).unwrap_or_default() } else { name };
    let altered: Vec<u8> = copied.iter().map(|byte| if is_plain(byte) { *byte } else { b'.' }).collect();
    text == quoted(&altered) && (may_be_altered || is_cut && copied.iter().all(is_plain))
}

fn say(words: &str) {
    // The test harness hides the output of eprintln! if a test passes.
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Returns what the plan says about the method.
fn way(trace: &Trace) -> &str {
    trace
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("plan: path names "))
        .unwrap_or_else(|| panic!("-v does not say it: {}", trace.stderr))
}

/// Traces one thread with this method.
fn by(machine: &Machine, asked: &str) -> Trace {
    let trace = trace(machine, asked, 1).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    trace
}

/// Threads race, and each still has its own names.
#[test]
fn the_best_method_of_the_kernel_shows_all_names_within_its_limit() {
    let Some(machine) = Machine::alone() else { return };
    let trace = trace(&machine, "auto", 4).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let (all, short) = (shown(&trace, Of::Openat), shown(&trace, Of::OpenatShort));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
    say(&format!("names: {}: {}", kernel.trim(), way(&trace)));
    say(&format!(
        "names: {}: of {} openat, {} names are right, {} marked, {} addresses",
        kernel.trim(),
        all.total(),
        all.right,
        all.marked,
        all.addresses
    ));
    if way(&trace).starts_with("are not known") {
        assert!(!Need::Kprobes.is_met() && !Need::CopiesInEvents.is_met() && !AT_EXIT.iter().all(|need| need.is_met()), "{}", way(&trace));
        assert_eq!(all.addresses, all.total());
        return unsupported("no way to path names without BPF");
    }
    match way(&trace).starts_with("by the syscalls: events") {
        true => assert_eq!((all.addresses, short.right + short.marked), (0, short.total())),
        false => assert_eq!(all, Shown { right: all.total(), ..Shown::default() }),
    }
}

#[test]
fn names_are_addresses_on_request() {
    let Some(machine) = Machine::shared() else { return };
    let trace = trace(&machine, "none", 1).succeeded();
    let all = shown(&trace, Of::Openat);
    assert_eq!(all.addresses, all.total());
}

#[test]
fn copies_in_events_are_marked_where_they_may_be_cut() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::CopiesInEvents]) {
        return;
    }
    let trace = by(&machine, "events");
    let (all, short, two) = (shown(&trace, Of::Openat), shown(&trace, Of::OpenatShort), shown(&trace, Of::Renameat2));
    assert_eq!((all.addresses, short.addresses), (0, 0));
    assert!(all.marked > short.marked && short.right > short.marked, "{all:?} {short:?}");
    assert_eq!(two.right, two.total());
}

#[test]
fn a_return_probe_shows_both_names_of_a_call_and_is_removed_afterwards() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let trace = by(&machine, "getname");
    for of in [Of::Openat, Of::Renameat2] {
        let names = shown(&trace, of);
        assert_eq!(names, Shown { right: names.total(), ..Shown::default() });
    }
    assert_eq!(left_by_the_dead(), [""; 0]);
}

/// The test creates the probe as `perf probe` would, except that it is at the function's return, and removes it at the
/// end.
struct Convention(PathBuf);

impl Convention {
    fn make() -> Convention {
        let file = tracefs().join("kprobe_events");
        let write = |line: &str| std::fs::File::options().append(true).open(&file)?.write_all(line.as_bytes());
        let functions = ["do_getname", "do_getname.constprop.0", "getname_flags.part.0", "getname_flags"];
        let line = |function: &str| format!("r64:probe/vfs_getname {function} pathname=+0(+0($retval)):string\n");
        assert!(functions.iter().any(|function| write(&line(function)).is_ok()), "the kernel has none of {functions:?}");
        Convention(file)
    }
}

impl Drop for Convention {
    fn drop(&mut self) {
        let remove = || std::fs::File::options().append(true).open(&self.0)?.write_all(b"-:probe/vfs_getname\n");
        let until = Instant::now() + Duration::from_secs(10);
        // The kernel closes rtrace's descriptors of the probe after rtrace has ended.
        while let Err(error) = remove() {
            if Instant::now() > until {
                return assert!(std::thread::panicking(), "{error}: rtrace still has it open");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn perfs_probe_is_used_if_it_exists() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let made = Convention::make();
    let trace = by(&machine, "vfs_getname");
    drop(made);
    let (all, two) = (shown(&trace, Of::Openat), shown(&trace, Of::Renameat2));
    assert_eq!(all, Shown { right: all.total(), ..Shown::default() });
    // The probe does not say which of two names is which; copies in events do.
    assert_eq!(two.right, if Need::CopiesInEvents.is_met() { two.total() } else { 0 });
}

#[test]
fn an_event_probe_reads_complete_names_when_calls_return() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&AT_EXIT) {
        return;
    }
    // Threads race, and each still has its own names.
    for threads in [1, 4] {
        let trace = trace(&machine, "eprobe", threads).succeeded();
        assert_eq!(trace.conserved().lost, 0);
        for of in [Of::OpenatPage, Of::Renameat2] {
            let names = shown(&trace, of);
            assert_eq!(names, Shown { right: names.total(), ..Shown::default() });
        }
        // A name that does not fit is unknown, and nothing else is shown in its place.
        let all = shown(&trace, Of::Openat);
        assert!(all.right < all.total(), "{all:?}");
        let counts = trace.stderr.lines().find_map(|line| line.strip_prefix("rtrace: paths' addresses, path names: "));
        assert!(counts.is_some_and(|counts| counts.ends_with(" 0 lost")), "{}", trace.stderr);
    }
    let options = ["--engine", "tracepoint", "--strings-by", "eprobe", "-e", "execve"];
    let failed = trace::trace(&machine, &options, &["sh", "-c", "/no/such/program; true"]).succeeded();
    let name = "execve(filename: \"/no/such/program\", ";
    assert!(failed.lines().iter().any(|line| line.text.contains(name) && line.text.contains("ENOENT")), "{}", failed.text);
    assert_eq!(left_by_the_dead(), [""; 0]);
}

#[test]
fn patterns_do_not_match_the_events_that_rtrace_creates_for_names() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&AT_EXIT) {
        return;
    }
    let options = ["--engine", "tracepoint", "--strings-by", "eprobe", "-e", "openat,synthetic:*path_address"];
    let trace = trace::trace(&machine, &options, &["true"]);
    assert!(trace.stderr.contains("rtrace: no event `synthetic:*path_address` in this kernel"), "{}", trace.stderr);
    assert_eq!((trace.status, left_by_the_dead()), (125, Vec::<String>::new()));
}

/// All other programs on the machine make the same calls.
#[test]
fn names_are_read_at_the_return_of_calls_of_existing_tasks() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&AT_EXIT) {
        return;
    }
    let command = format!("{} names 2 64 {}", crate::machine::workload(), machine.dir().display());
    let options = [&CALLS[..], &["--strings-by", "eprobe", "-a"]].concat();
    let trace = trace::trace(&machine, &options, &["sh", "-c", &command]).succeeded();
    let _ = std::fs::remove_file(machine.path("fresh"));
    for of in [Of::OpenatPage, Of::Renameat2] {
        let names = shown(&trace, of);
        assert_eq!(names, Shown { right: names.total(), ..Shown::default() });
    }
}

/// Returns what this run of rtrace has in tracefs: the lines of its events, and its instance.
pub fn left_by(pid: Pid) -> Vec<String> {
    let owner = format!("rtrace_{}_", pid.as_raw_nonzero());
    let instances = std::fs::read_dir(tracefs().join("instances")).expect("tracefs has instances").flatten();
    let names = instances.map(|entry| entry.file_name().to_string_lossy().into_owned());
    reads("dynamic_events").lines().map(str::to_owned).chain(names).filter(|name| name.contains(&owner)).collect()
}

#[test]
fn events_that_read_names_at_the_return_are_removed_at_every_kind_of_end() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&AT_EXIT) {
        return;
    }
    let options = ["--engine", "tracepoint", "--strings-by", "eprobe", "-e", "openat,newfstatat,renameat2"];
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut run = start(&machine, &options, &["sh", "-c", "for i in $(seq 100); do cat /dev/null; sleep 0.02; done"]);
        let pid = run.pid();
        run.wait_for("a name", |lines| lines.iter().any(|line| line.text.contains("\"/dev/null\"")));
        let made = left_by(pid);
        assert_eq!(made.len(), 3, "{made:?}");
        kill_process(pid, signal).expect("it is ours");
        run.finish();
        if signal == Signal::KILL {
            assert_eq!(left_by(pid), made, "nobody was left to remove it");
            trace::trace(&machine, &["-e", "lseek"], &["true"]).succeeded();
        }
        assert_eq!(left_by(pid), [""; 0], "{signal:?}");
    }
}
