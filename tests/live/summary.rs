//! `-s` and `-S`: the tables count what the program issued, or say that they are partial.

use crate::machine::Machine;
use crate::trace::{Trace, workload};

/// The numbers after a syscall's name, over all tables: calls and errors.
fn row(trace: &Trace, name: &str) -> (u64, u64) {
    let rows = trace.text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        if words.next() != Some(name) {
            return None;
        }
        Some((words.next()?.parse::<u64>().ok()?, words.next()?.parse::<u64>().ok()?))
    });
    rows.fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1))
}

#[test]
fn counts_every_call_and_error() {
    let Some(machine) = Machine::alone() else { return };
    for options in [&["-s", "-e", "lseek"][..], &["-s"], &["-s", "--summary-mode", "total"], &["-s", "--summary-mode", "process"]] {
        let trace = workload(&machine, options, "calls lseek 4 50000 150000").succeeded();
        let verdict = trace.verdict();
        assert_eq!(verdict.lost, 0, "{}", trace.stderr);
        assert_eq!(verdict.issued, verdict.printed, "{options:?}: {}", trace.stderr);
        assert_eq!(row(&trace, "lseek"), (200_000, 200_000), "{options:?}:\n{}", trace.text);
        assert!(trace.lines().is_empty(), "-s prints no lines");
    }
}

#[test]
fn stands_below_the_lines() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-S", "-e", "lseek,getppid"], "calls lseek 2 1000").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.tags().len(), 2000);
    assert_eq!(row(&trace, "lseek"), (2000, 2000), "{}", trace.text);
    let (summary, last_line) = (trace.text.find("Summary of events"), trace.text.rfind("lseek(fd"));
    assert!(summary.is_some() && last_line < summary, "lines first, then the summary");
}

#[test]
fn says_that_it_is_partial_after_a_loss() {
    let Some(machine) = Machine::alone() else { return };
    assert!(is_partial(&machine, &["-s", "--max-events", "1000000", "-m", "4K", "-e", "lseek"]), "the ring held every record");
    // Where the kernel sums up, a thread has one record at its end, and the reader may be there in time for each.
    assert!((0..50).any(|_| is_partial(&machine, &["-s", "-m", "4K", "-e", "lseek"])), "the ring held every sum, 50 times");
}

/// Whether there was a loss, which was counted and said then.
fn is_partial(machine: &Machine, options: &[&str]) -> bool {
    let trace = workload(machine, options, "calls lseek 4 50000").succeeded();
    let verdict = trace.verdict();
    assert_eq!(verdict.issued, 200_000);
    let calls = if verdict.lost == 200_000 { 0 } else { row(&trace, "lseek").0 };
    assert_eq!(calls + verdict.lost, 200_000, "{}\n{}", trace.text, trace.stderr);
    let lost = verdict.lost.to_string();
    assert!(verdict.lost == 0 || trace.text.contains(&lost), "the table itself says that {lost} calls are missing:\n{}", trace.text);
    verdict.lost > 0
}

/// The kernel counts nanoseconds in sched_stat_runtime, one sample for many: the time is not taken as often as there are nanoseconds.
#[test]
fn time_on_a_cpu_is_no_more_than_there_was() {
    let Some(machine) = Machine::alone() else { return };
    let began = std::time::Instant::now();
    let trace = workload(&machine, &["-s", "--sched", "-e", "lseek"], "calls lseek 1 100000").succeeded();
    let most = began.elapsed().as_secs_f64() * 1e3;
    let head = trace.text.lines().find(|line| line.contains(" events, ")).unwrap_or_else(|| panic!("no head in\n{}", trace.text));
    let runtime: f64 = head
        .trim()
        .strip_suffix(" msec")
        .and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("no time in {head}"));
    assert!(runtime > 0.0 && runtime < most, "{head}, after {most} ms");
    assert!(!trace.stderr.contains("does not add up"), "{}", trace.stderr);
}

#[test]
fn lists_the_errors_by_name() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--errno-summary", "-e", "lseek"], "calls lseek 1 77").succeeded();
    let row = trace.text.lines().find(|line| line.contains("EBADF")).unwrap_or_else(|| panic!("no EBADF in\n{}", trace.text));
    assert!(row.trim().ends_with("77"), "{row}");
}

/// Calls and errors of each syscall, over all tables whose head names this program.
#[cfg(feature = "bpf")]
fn rows(trace: &Trace, comm: &str) -> std::collections::BTreeMap<String, (u64, u64)> {
    let mut rows = std::collections::BTreeMap::<String, (u64, u64)>::new();
    let mut is_of_comm = false;
    for line in trace.text.lines() {
        if line.contains(" events, ") {
            is_of_comm = line.trim_start().starts_with(&format!("{comm} ("));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let (true, [name, calls, errors, ..]) = (is_of_comm && words.len() == 11, words.as_slice())
            && let (Ok(calls), Ok(errors)) = (calls.parse::<u64>(), errors.parse::<u64>())
        {
            let row = rows.entry((*name).to_owned()).or_default();
            *row = (row.0 + calls, row.1 + errors);
        }
    }
    rows
}

/// The summary that the BPF programs make, on `workload` with these words.
#[cfg(feature = "bpf")]
fn summed(machine: &Machine, options: &[&str], words: &str) -> Trace {
    summed_of(workload(machine, &[&["--engine", "bpf", "-s"], options].concat(), words))
}

/// Holds that the kernel made the sums, and that none is missing.
#[cfg(feature = "bpf")]
fn summed_of(trace: Trace) -> Trace {
    let trace = trace.succeeded();
    assert!(trace.stderr.contains("summed up in the kernel"), "{}", trace.stderr);
    let verdict = trace.verdict();
    assert_eq!((verdict.lost, verdict.printed), (0, verdict.issued), "{}", trace.stderr);
    trace
}

/// What a program does the same way in each run: not how often it waits for another.
#[cfg(feature = "bpf")]
#[test]
fn the_kernel_counts_what_records_tell() {
    let Some(machine) = Machine::alone() else { return };
    for (words, names) in [
        ("calls read 1 5000", &["execve", "read", "openat", "close", "clone3", "exit_group"][..]),
        ("calls lseek 3 1000", &["lseek", "clone3", "rseq", "set_robust_list"]),
        ("forks 50", &["execve", "lseek", "clone", "wait4", "exit_group", "brk", "mmap"]),
        ("seccomp 100", &["getppid", "prctl", "exit_group"]),
        ("exec thread", &["execve", "lseek", "poll", "clone3", "exit_group"]),
        ("int80 100", &["getppid"]),
        ("unknown", &["syscall_999", "getppid"]),
    ] {
        let streamed = workload(&machine, &["--engine", "bpf", "-S"], words).succeeded();
        let [summed, streamed] = [summed(&machine, &[], words), streamed].map(|trace| rows(&trace, "workload"));
        for name in names {
            assert!(summed.contains_key(*name), "{words}: no {name} in {summed:?}");
            assert_eq!(summed.get(*name), streamed.get(*name), "{words}: {name}");
        }
    }
}

/// More syscalls than the kernel's table of a task holds at once.
#[cfg(feature = "bpf")]
#[test]
fn a_table_that_is_full_is_given_and_begun_anew() {
    let Some(machine) = Machine::shared() else { return };
    let rows = rows(&summed(&machine, &[], "numbers 700 899 20"), "workload");
    for number in 700..=899 {
        let name = format!("syscall_{number}");
        assert_eq!(rows.get(&name), Some(&(20, 20)), "{name}");
    }
}

/// Each child is a thread of its own in the table, and gone when the table is made.
#[cfg(feature = "bpf")]
#[test]
fn ten_thousand_short_children_are_summed_up() {
    let Some(machine) = Machine::alone() else { return };
    for options in [&["-e", "lseek"][..], &[], &["--summary-mode", "process"]] {
        let trace = summed(&machine, options, "forks 10000");
        assert_eq!(row(&trace, "lseek"), (10_000, 10_000), "{options:?}");
        let tables = trace.text.lines().filter(|line| line.contains(" events, ")).count();
        assert!((10_000..=10_001).contains(&tables), "{tables} tables");
    }
}

/// The tables of tasks that live on are read when tracing ends. Beside them all others on the machine are summed up.
#[cfg(feature = "bpf")]
#[test]
fn everybody_is_summed_up_in_the_kernel() {
    let Some(machine) = Machine::alone() else { return };
    let program = machine.path("summed-up");
    std::os::unix::fs::symlink(crate::machine::workload(), &program).expect("the test's directory is writable");
    let command = [&program, "calls", "lseek", "4", "50000", "150000"];
    let trace = summed_of(crate::trace::trace(&machine, &["--engine", "bpf", "-s", "-a"], &command));
    assert_eq!(rows(&trace, "summed-up").get("lseek"), Some(&(200_000, 200_000)), "{}", trace.text);
}

#[cfg(feature = "bpf")]
#[test]
fn tasks_that_live_on_are_summed_up_too() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#""$workload" calls lseek 2 10000000 20000 & pid=$!
        "$rtrace" -v --engine bpf -s -e lseek -o "$dir/lines" -p $pid sleep 1; kill $pid && cat "$dir/lines""#;
    let trace = crate::trace::shell(&machine, script).succeeded();
    let verdict = trace.verdict();
    assert_eq!((verdict.lost, verdict.printed), (0, verdict.issued), "{}", trace.stderr);
    let lseek = row(&Trace { text: trace.stdout.clone(), ..trace }, "lseek");
    assert!(lseek.0 > 0 && lseek.0 == lseek.1 && lseek.0 <= verdict.issued, "{lseek:?}, {verdict:?}");
}

/// A cgroup of the unified hierarchy that is taken away when its tasks are gone.
struct Cgroup {
    dir: std::path::PathBuf,
    /// As /proc/PID/cgroup has it.
    path: String,
}

impl Cgroup {
    fn new(machine: &Machine, name: &str) -> Cgroup {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("there is /proc");
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (place, kind) = (words.next()?, words.next()?);
            (kind == "cgroup2").then(|| place.to_owned())
        });
        let own = machine.dir().file_name().expect("it has a name").to_string_lossy().into_owned();
        let path = format!("/{own}-{name}");
        let dir = std::path::PathBuf::from(mount.expect("a cgroup2 is mounted")).join(&path[1..]);
        std::fs::create_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        Cgroup { dir, path }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let wait = || std::thread::sleep(std::time::Duration::from_millis(20));
        (0..100).find(|_| std::fs::remove_dir(&self.dir).inspect_err(|_| wait()).is_ok());
    }
}

/// Calls and errors of a syscall by the cgroup that a table's head names.
fn in_cgroup(trace: &Trace, cgroup: &str, name: &str) -> (u64, u64) {
    let head = format!(" cgroup {cgroup},");
    let table = trace.text.lines().skip_while(|line| !line.starts_with(&head)).skip(1).take_while(|line| !line.starts_with(" cgroup "));
    row(&Trace { text: table.map(|line| format!("{line}\n")).collect(), stdout: String::new(), stderr: String::new(), ..*trace }, name)
}

#[test]
fn children_are_in_the_cgroup_of_whoever_made_them() {
    let Some(machine) = Machine::alone() else { return };
    let group = Cgroup::new(&machine, "a");
    let (dir, path) = (group.dir.display(), &group.path);
    let script = format!(
        "sh -c 'echo $$ > {dir}/cgroup.procs; exec \"$rtrace\" -v -s --summary-mode cgroup $engine -o \"$dir/lines\" \"$workload\" forks 50'; cat \"$dir/lines\""
    );
    let trace = with_engine(&machine, &script);
    assert_eq!(in_cgroup(&trace, path, "lseek"), (50, 50), "{}", trace.text);
    assert!(!trace.text.contains("cgroup ?"), "{}", trace.text);
}

#[test]
fn calls_are_of_the_cgroup_that_a_task_was_in_when_it_made_them() {
    let Some(machine) = Machine::alone() else { return };
    let (one, two) = (Cgroup::new(&machine, "a"), Cgroup::new(&machine, "b"));
    // A process that moves itself, and one that somebody who is not traced moves.
    let script = format!(
        "\"$rtrace\" -v -S --summary-mode cgroup $engine -e lseek -o \"$dir/lines\" sh -c '
            echo $$ > {}/cgroup.procs; \"$workload\" forks 7
            echo $$ > {}/cgroup.procs; \"$workload\" forks 5'; cat \"$dir/lines\"",
        one.dir.display(),
        two.dir.display()
    );
    let trace = with_engine(&machine, &script);
    assert_eq!([&one, &two].map(|group| in_cgroup(&trace, &group.path, "lseek").0), [7, 5], "{}", trace.text);
    assert!(!trace.text.contains("cgroup ?"), "{}", trace.text);
}

/// Where calls are summed up in the kernel, a sum is of all cgroups in which its task was.
#[test]
fn a_process_that_comes_into_the_traced_cgroup_is_in_it() {
    let Some(machine) = Machine::alone() else { return };
    let group = Cgroup::new(&machine, "a");
    let (dir, path) = (group.dir.display(), &group.path);
    let script = format!(
        "\"$rtrace\" -v -s --summary-mode cgroup $engine -e lseek -o \"$dir/lines\" -G {dir} sleep 1.5 & sleep .7
        sh -c 'echo $$ > {dir}/cgroup.procs; exec \"$workload\" forks 20'; wait; cat \"$dir/lines\""
    );
    let trace = with_engine(&machine, &script);
    assert_eq!(in_cgroup(&trace, path, "lseek"), (20, 20), "{}", trace.text);
    assert!(!trace.text.contains("cgroup ?"), "{}", trace.text);
}

/// A shell line in which `$engine` is the option for the engine under test; its standard output passes for what `-o` wrote.
fn with_engine(machine: &Machine, script: &str) -> Trace {
    let engine = crate::machine::engine_asked_for().map(|engine| format!("--engine {engine}")).unwrap_or_default();
    let trace = crate::trace::shell(machine, &format!("engine='{engine}'; {script}")).succeeded();
    Trace { text: trace.stdout.clone(), ..trace }
}
