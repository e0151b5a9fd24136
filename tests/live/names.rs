//! Path names without BPF, by each way that this kernel has: whole and right, or marked as what they are, or an address.

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
/// CONFIG_TRACE_SYSCALL_BUF_SIZE_DEFAULT of Debian's kernels, and the kernel's own choice.
const COPIED_BYTES: usize = 63;
/// So long names fit into a page beside the rest of their record.
const PAGE_NAME_BYTES: usize = 4_000;

/// What it takes to read names when calls return.
const AT_EXIT: [Need; 3] = [Need::Eprobes, Need::SyntheticEvents, Need::Histograms];

/// How names were shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    right: usize,
    /// Marked as cut or altered, and not otherwise wrong.
    marked: usize,
    addresses: usize,
}

impl Shown {
    fn total(&self) -> usize {
        self.right + self.marked + self.addresses
    }
}

/// Which names are looked at.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Openat,
    /// Of these, those that the kernel can copy to its own events without a loss.
    OpenatShort,
    /// Of these, those that fit into a page of a tracefs instance.
    OpenatPage,
    Renameat2,
}

fn trace(machine: &Machine, way: &str, threads: u64) -> Trace {
    let options = [&CALLS[..], &["--strings-by", way]].concat();
    let trace = workload(machine, &options, &format!("names {threads} 64 {}", machine.dir().display()));
    let _ = std::fs::remove_file(machine.path("fresh"));
    trace
}

/// Holds each name against the program's word.
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

/// `named NUMBER HEX...`
fn named(line: &str) -> Option<(u64, Vec<Vec<u8>>)> {
    let mut words = line.strip_prefix("named ")?.split(' ');
    let number = words.next()?.parse().ok()?;
    let byte = |two: &[u8]| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok();
    Some((number, words.map(|hex| hex.as_bytes().chunks(2).filter_map(byte).collect()).collect()))
}

/// As rtrace prints a name that it knows.
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

/// Whether the kernel leaves a byte as it is in its copies (its isprint() knows Latin-1, lib/ctype.c).
fn is_plain(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | 0xa0..)
}

/// Whether a name is shown with a mark, and is what is left of the name then.
fn is_marked(text: &str, name: &[u8]) -> bool {
    let (text, may_be_altered) = text.strip_prefix('~').map_or((text, false), |text| (text, true));
    let (text, is_cut) = text.strip_suffix("\"...").map_or((text.to_owned(), false), |text| (format!("{text}\""), true));
    let copied = if is_cut { name.get(..COPIED_BYTES).unwrap_or_default() } else { name };
    let altered: Vec<u8> = copied.iter().map(|byte| if is_plain(byte) { *byte } else { b'.' }).collect();
    text == quoted(&altered) && (may_be_altered || is_cut && copied.iter().all(is_plain))
}

fn say(words: &str) {
    // Not by eprintln!, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// The plan's word on the way.
fn way(trace: &Trace) -> &str {
    trace
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("plan: path names "))
        .unwrap_or_else(|| panic!("-v does not say it: {}", trace.stderr))
}

/// Traces one thread by this way.
fn by(machine: &Machine, asked: &str) -> Trace {
    let trace = trace(machine, asked, 1).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    trace
}

/// Threads race, and the names are theirs all the same.
#[test]
fn the_kernel_s_best_way_has_all_names_within_its_limit() {
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
fn names_are_addresses_where_that_is_asked_for() {
    let Some(machine) = Machine::shared() else { return };
    let trace = trace(&machine, "none", 1).succeeded();
    let all = shown(&trace, Of::Openat);
    assert_eq!(all.addresses, all.total());
}

#[test]
fn copies_in_events_are_marked_where_they_may_not_be_whole() {
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
fn a_return_probe_has_whole_names_also_where_a_call_has_two_and_is_gone_afterwards() {
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

/// Made as `perf probe` would, but that it is at the function's return; removed again.
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
        // rtrace's descriptors of it are closed behind its back.
        while let Err(error) = remove() {
            if Instant::now() > until {
                return assert!(std::thread::panicking(), "{error}: rtrace still has it open");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn perfs_probe_is_used_where_somebody_made_it() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let made = Convention::make();
    let trace = by(&machine, "vfs_getname");
    drop(made);
    let (all, two) = (shown(&trace, Of::Openat), shown(&trace, Of::Renameat2));
    assert_eq!(all, Shown { right: all.total(), ..Shown::default() });
    // Which of two names is which, the probe does not say; copies do.
    assert_eq!(two.right, if Need::CopiesInEvents.is_met() { two.total() } else { 0 });
}

#[test]
fn an_event_probe_reads_whole_names_when_calls_return() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&AT_EXIT) {
        return;
    }
    // Threads race, and the names are theirs all the same.
    for threads in [1, 4] {
        let trace = trace(&machine, "eprobe", threads).succeeded();
        assert_eq!(trace.conserved().lost, 0);
        for of in [Of::OpenatPage, Of::Renameat2] {
            let names = shown(&trace, of);
            assert_eq!(names, Shown { right: names.total(), ..Shown::default() });
        }
        // What does not fit is not known, and nothing else is shown for it.
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

/// Everything else on the machine makes the same calls.
#[test]
fn names_read_when_calls_return_are_known_of_tasks_that_were_there() {
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

/// What this run of rtrace's has in tracefs: its events' lines, and its instance.
pub fn left_by(pid: Pid) -> Vec<String> {
    let owner = format!("rtrace_{}_", pid.as_raw_nonzero());
    let instances = std::fs::read_dir(tracefs().join("instances")).expect("tracefs has instances").flatten();
    let names = instances.map(|entry| entry.file_name().to_string_lossy().into_owned());
    reads("dynamic_events").lines().map(str::to_owned).chain(names).filter(|name| name.contains(&owner)).collect()
}

#[test]
fn what_reads_names_when_calls_return_is_gone_however_the_run_ends() {
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
