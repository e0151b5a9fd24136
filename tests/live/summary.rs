//! `-s` and `-S`: the tables count the calls that the program issued, or say that they are partial.

use crate::machine::Machine;
use crate::trace::{Trace, overrun, workload};

/// Returns the numbers after the name of a syscall, over all tables: calls and errors.
pub fn row(trace: &Trace, name: &str) -> (u64, u64) {
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
fn the_summary_counts_every_call_and_error() {
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
fn the_summary_is_below_the_lines() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-S", "-e", "lseek,getppid"], "calls lseek 2 1000").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.tags().len(), 2000);
    assert_eq!(row(&trace, "lseek"), (2000, 2000), "{}", trace.text);
    let (summary, last_line) = (trace.text.find("Summary of events"), trace.text.rfind("lseek(fd"));
    assert!(summary.is_some() && last_line < summary, "lines first, then the summary");
}

#[test]
fn the_summary_is_marked_as_partial_after_a_loss() {
    let Some(machine) = Machine::alone() else { return };
    assert!(is_partial(&machine, &["-s", "--max-events", "1000000", "-m", "4K", "-e", "lseek"]), "the ring held every record");
}

/// Whether calls were lost; if so, checks that the loss is counted and reported.
fn is_partial(machine: &Machine, options: &[&str]) -> bool {
    let trace = overrun(machine, options, "calls lseek 4 50000").succeeded();
    let verdict = trace.verdict();
    assert_eq!(verdict.issued, 200_000);
    let calls = if verdict.lost == 200_000 { 0 } else { row(&trace, "lseek").0 };
    assert_eq!(calls + verdict.lost, 200_000, "{}\n{}", trace.text, trace.stderr);
    let lost = verdict.lost.to_string();
    assert!(verdict.lost == 0 || trace.text.contains(&lost), "the table itself says that {lost} calls are missing:\n{}", trace.text);
    verdict.lost > 0
}

/// The kernel counts nanoseconds in sched_stat_runtime and writes one sample for many of them, so the time must not be
/// multiplied by the count.
#[test]
fn cpu_time_is_at_most_the_time_that_passed() {
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
fn errors_are_listed_by_name() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--errno-summary", "-e", "lseek"], "calls lseek 1 77").succeeded();
    let row = trace.text.lines().find(|line| line.contains("EBADF")).unwrap_or_else(|| panic!("no EBADF in\n{}", trace.text));
    assert!(row.trim().ends_with("77"), "{row}");
}

/// A row of rtrace's own table layout.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    calls: u64,
    errors: u64,
    object: String,
}

/// Returns the rows of a table, and its total.
fn table(text: &str) -> (Vec<Row>, Row) {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("{line:?} is no row in\n{text}")).to_owned();
        let (name, calls, errors) = (word(), word(), word());
        (0..7).for_each(|_| _ = word());
        let number = |text: String| text.parse().unwrap_or_else(|_| panic!("{text:?} is no number in {line:?}"));
        Row { name, calls: number(calls), errors: number(errors), object: words.collect::<Vec<_>>().join(" ") }
    };
    let mut parts = text.split_inclusive('\n').skip_while(|line| !line.starts_with("   ---")).skip(1);
    let is_row = |line: &&str| !line.starts_with("   ...") && !line.starts_with("      ") && !line.starts_with('\t');
    let rows = parts.by_ref().take_while(|line| !line.starts_with("   ---")).filter(is_row).map(row).collect();
    let total = parts.next().map(row).unwrap_or_else(|| panic!("no total in\n{text}"));
    assert_eq!(total.name, "total", "{text}");
    (rows, total)
}

/// Checks that the rows add up to the total, and that the total is that of the verdict. Returns the rows.
fn adds_up(trace: &Trace) -> Vec<Row> {
    let (rows, total) = table(&trace.text);
    assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), total.calls, "{}", trace.text);
    assert_eq!(rows.iter().map(|row| row.errors).sum::<u64>(), total.errors, "{}", trace.text);
    assert_eq!(trace.verdict().printed, total.calls, "{}\n{}", trace.text, trace.stderr);
    rows
}

#[test]
fn one_table_of_the_whole_command_with_a_total() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &["-s"], "forks 30").succeeded();
    let rows = adds_up(&trace);
    let of = |name: &str| rows.iter().filter(|row| row.name == name).map(|row| (row.calls, row.errors)).collect::<Vec<_>>();
    assert_eq!((of("lseek"), of("clone")), (vec![(30, 30)], vec![(30, 0)]), "{}", trace.text);
    assert_eq!(trace.text.matches("syscall ").count(), 1, "one table:\n{}", trace.text);
    assert!(!trace.text.contains(" 0.000"), "what took some time is not 0.000:\n{}", trace.text);
}

#[test]
fn perfs_layout_is_printed_on_request() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-s", "-e", "lseek", "--summary-mode", "thread"], "calls lseek 3 40").succeeded();
    let heads: Vec<&str> =
        trace.text.lines().filter(|line| line.starts_with(" workload (") && line.contains(", 40 events, 33.3%")).collect();
    assert_eq!(heads.len(), 3, "{}", trace.text);
    assert!(trace.text.contains("   syscall            calls  errors  total       min       avg       max       stddev"), "{}", trace.text);
}

#[test]
fn the_whole_machine_fits_a_screen() {
    let Some(machine) = Machine::shared() else { return };
    let command = ["sh", "-c", "ls -lR /etc >/dev/null; sleep .3"];
    let trace = crate::trace::trace(&machine, &["-s", "-a"], &command).succeeded();
    let (rows, total) = table(&trace.text);
    assert!(rows.len() == 12 && trace.text.lines().count() <= 24, "{}", trace.text);
    assert!(trace.text.contains(" of the time (--max-summary 0 shows all)"), "{}", trace.text);
    assert!(total.calls > rows.iter().map(|row| row.calls).sum(), "the total is of all:\n{}", trace.text);
    let all = crate::trace::trace(&machine, &["-s", "-a", "--max-summary", "0"], &command).succeeded();
    assert!(table(&all.text).0.len() > 12 && !all.text.contains(" more with "), "{}", all.text);
    adds_up(&all);
}

#[test]
fn rows_by_object_add_up() {
    let Some(machine) = Machine::alone() else { return };
    let file = machine.file("of-1000-bytes", 1000);
    let script = format!("cat {file} {file} > /dev/null; cat /nonexistent; exit 0");
    let by = |what: &str| {
        let trace = crate::trace::trace(&machine, &["-s", "--by", what], &["sh", "-c", &script]).succeeded();
        assert_eq!(trace.verdict().lost, 0, "{}", trace.stderr);
        (adds_up(&trace), trace)
    };
    let calls = |rows: &[Row], name: &str, object: &str| {
        rows.iter().filter(|row| row.name == name && row.object == object).map(|row| (row.calls, row.errors)).collect::<Vec<_>>()
    };
    // Without BPF, the kernel and the moment decide whether a name is known; no call is missing in either case.
    let names_are_known = crate::machine::engine() == "bpf";
    let (rows, trace) = by("path");
    if names_are_known {
        assert_eq!(calls(&rows, "openat", &file), [(2, 0)], "{}", trace.text);
        assert_eq!(calls(&rows, "read", &file), [(4, 0)], "{}", trace.text);
        assert_eq!(calls(&rows, "openat", "/nonexistent"), [(1, 1)], "{}", trace.text);
    }
    assert!(rows.iter().any(|row| row.name == "brk" && row.object == "-"), "{}", trace.text);
    let (rows, trace) = by("fd");
    if names_are_known {
        assert_eq!(calls(&rows, "read", &format!("3<{file}>")), [(4, 0)], "{}", trace.text);
    }
    let (rows, trace) = by("comm");
    assert_eq!(calls(&rows, "execve", "cat").iter().map(|row| row.0).sum::<u64>(), 2, "{}", trace.text);
    let (rows, trace) = by("errno");
    assert_eq!(calls(&rows, "openat", "ENOENT").iter().map(|row| row.0 == row.1).collect::<Vec<_>>(), [true], "{}", trace.text);
    let (rows, trace) = by("arg:fd");
    assert!(rows.iter().any(|row| row.name == "read" && row.object.starts_with('3')), "{}", trace.text);
    assert!(rows.iter().any(|row| row.name == "execve" && row.object == "-"), "{}", trace.text);
    by("peer");
}

#[cfg(feature = "bpf")]
#[test]
fn rows_by_peer_are_addresses() {
    let Some(machine) = Machine::shared() else { return };
    if crate::machine::engine() != "bpf" {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
    let port = server.local_addr().expect("it is bound").port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3");
    let trace = crate::trace::trace(&machine, &["-s", "--by", "peer", "-e", "connect,write"], &["bash", "-c", &script]).succeeded();
    let rows = adds_up(&trace);
    assert!(rows.iter().any(|row| row.name == "write" && row.object == format!("TCP 127.0.0.1:{port}")), "{}", trace.text);
    assert!(rows.iter().any(|row| row.name == "connect" && row.object.contains(&port.to_string())), "{}", trace.text);
}

#[test]
fn grouping_by_an_unknown_argument_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    for (words, sentence) in [
        (
            &["-s", "--by", "arg:flgs", "-e", "openat"][..],
            "rtrace: --by arg:flgs: none of the syscalls that are traced has an argument of this name; similar: flags\n",
        ),
        (&["-s", "--by", "peer", "-e", "getpid"], "rtrace: --by peer: none of the syscalls that are traced has a descriptor\n"),
        (&["--by", "path"], "rtrace: --by needs a summary: add -s or -S\n"),
        (&["--max-size", "1M", "-o", "|cat"], "rtrace: --max-size needs an output file: add -o FILE\n"),
    ] {
        let run = crate::trace::plain(&machine, &[words, &["--", "echo", "started"]].concat());
        assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (125, "", sentence), "{words:?}");
    }
}

#[test]
fn a_histogram_has_every_call() {
    let Some(machine) = Machine::alone() else { return };
    for options in [&["-s", "--histogram", "-e", "lseek"][..], &["-s", "--histogram", "-e", "lseek", "--summary-mode", "total"]] {
        let trace = workload(&machine, options, "calls lseek 2 3000").succeeded();
        let bars: Vec<u64> =
            trace.text.lines().filter_map(|line| line.split_once('|')?.0.split_whitespace().last()?.parse().ok()).collect();
        assert!(bars.len() > 1 && bars.iter().sum::<u64>() == 6000, "{}", trace.text);
    }
}

#[test]
fn intervals_are_printed_during_the_trace_and_add_up() {
    let Some(machine) = Machine::alone() else { return };
    let mut run = crate::trace::start_workload(&machine, &["-s", "--interval", "200ms", "-e", "lseek"], "calls lseek 1 400 400");
    run.wait_for_text("two intervals", |text| text.matches(" Summary of events from ").count() >= 2);
    let trace = run.finish().succeeded();
    let parts: Vec<&str> = trace.text.split("\n Summary of events").skip(1).collect();
    let (whole, intervals) = parts.split_last().expect("there is a whole");
    assert!(whole.starts_with(":\n"), "{whole}");
    let calls = |text: &str| if text.contains("   total ") { table(text).1.calls } else { 0 };
    assert_eq!(intervals.iter().map(|text| calls(text)).sum::<u64>(), calls(whole), "{}", trace.text);
    assert_eq!((calls(whole), trace.verdict().printed), (400, 400), "{}", trace.text);
    let stamps: Vec<(f64, f64)> = intervals.iter().filter_map(|text| stamps(text.lines().next()?)).collect();
    assert!(stamps.windows(2).all(|two| two[0].1 <= two[1].0) && stamps.len() == intervals.len(), "{stamps:?}\n{}", trace.text);
}

/// Parses ` from A to B:`.
fn stamps(head: &str) -> Option<(f64, f64)> {
    let (from, to) = head.strip_prefix(" from ")?.strip_suffix(':')?.split_once(" to ")?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

#[test]
fn an_output_file_is_rotated_at_its_maximum_size() {
    let Some(machine) = Machine::shared() else { return };
    let (file, workload) = (machine.path("rotated"), crate::machine::workload());
    let words = ["-o", &file, "--max-size", "20K", "--rotate", "3", "-e", "lseek", "--", &workload, "calls", "lseek", "1", "2000"];
    let run = crate::trace::plain(&machine, &words).succeeded();
    let read = |name: &str| std::fs::read_to_string(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let files: Vec<String> = [".3", ".2", ".1", ""].iter().map(|ending| read(&format!("{file}{ending}"))).collect();
    assert!(files.iter().all(|text| text.len() <= 20 << 10 && text.ends_with('\n')));
    assert!(files[..3].iter().all(|text| text.len() > 19 << 10), "each is full before the next");
    assert!(!std::path::Path::new(&format!("{file}.4")).exists());
    let tags = Trace { text: files.concat(), ..run }.tags();
    assert!(tags.len() > 400 && tags.windows(2).all(|two| two[1] == two[0] + 1), "the newest, with none missing between them");
    assert_eq!(tags.last(), Some(&2000));
}

/// Returns calls and errors of each syscall, over all tables whose head names this program.
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

/// Runs `workload` with these words, with a summary that the BPF programs sum up.
#[cfg(feature = "bpf")]
fn summed(machine: &Machine, options: &[&str], words: &str) -> Trace {
    summed_of(workload(machine, &[&["--engine", "bpf", "-s"], options].concat(), words))
}

/// Checks that the kernel summed up the calls, and that none is missing.
#[cfg(feature = "bpf")]
fn summed_of(trace: Trace) -> Trace {
    let trace = trace.succeeded();
    assert!(trace.stderr.contains("summed up in the kernel"), "{}", trace.stderr);
    let verdict = trace.verdict();
    assert_eq!((verdict.lost, verdict.printed), (0, verdict.issued), "{}", trace.stderr);
    trace
}

/// The calls that a program makes equally often in each run; how often it waits varies.
#[cfg(feature = "bpf")]
#[test]
fn sums_of_the_kernel_equal_those_of_records() {
    let Some(machine) = Machine::alone_with_bpf() else { return };
    for (words, names) in [
        ("calls read 1 5000", &["execve", "read", "openat", "close", "clone3", "exit_group"][..]),
        ("calls lseek 3 1000", &["lseek", "clone3", "rseq", "set_robust_list"]),
        ("forks 50", &["execve", "lseek", "clone", "wait4", "exit_group", "brk", "mmap"]),
        ("seccomp 100", &["getppid", "prctl", "exit_group"]),
        ("exec thread", &["execve", "lseek", "poll", "clone3", "exit_group"]),
        ("int80 100", &["getppid"]),
        ("unknown", &["syscall_999", "getppid"]),
    ] {
        let by_thread = ["--summary-mode", "thread"];
        let streamed = workload(&machine, &[&["--engine", "bpf", "-S"], &by_thread[..]].concat(), words).succeeded();
        let [summed, streamed] = [summed(&machine, &by_thread, words), streamed].map(|trace| rows(&trace, "workload"));
        for name in names {
            assert!(summed.contains_key(*name), "{words}: no {name} in {summed:?}");
            assert_eq!(summed.get(*name), streamed.get(*name), "{words}: {name}");
        }
    }
}

/// The program makes more different syscalls than one aggregate of the kernel holds.
#[cfg(feature = "bpf")]
#[test]
fn a_full_aggregate_is_emitted_and_starts_again() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let rows = rows(&summed(&machine, &["--summary-mode", "thread"], "numbers 700 899 20"), "workload");
    for number in 700..=899 {
        let name = format!("syscall_{number}");
        assert_eq!(rows.get(&name), Some(&(20, 20)), "{name}");
    }
}

/// Each child is a thread of its own in the table, and has ended before the table is printed.
#[cfg(feature = "bpf")]
#[test]
fn sums_of_ten_thousand_short_children_are_complete() {
    let Some(machine) = Machine::alone_with_bpf() else { return };
    for options in [&["-e", "lseek", "--summary-mode", "thread"][..], &["--summary-mode", "thread"], &["--summary-mode", "process"]] {
        let trace = summed(&machine, options, "forks 10000");
        assert_eq!(row(&trace, "lseek"), (10_000, 10_000), "{options:?}");
        let tables = trace.text.lines().filter(|line| line.contains(" events, ")).count();
        assert!((10_000..=10_001).contains(&tables), "{tables} tables");
    }
}

/// The rings are tiny, and nothing reads them while all threads of the program run.
#[cfg(feature = "bpf")]
#[test]
fn sums_of_threads_that_end_at_once_are_complete() {
    let Some(machine) = Machine::alone_with_bpf() else { return };
    for options in [&["-e", "lseek"][..], &[]] {
        let trace = summed(&machine, &[options, &["-m", "4K"]].concat(), "burst 1000 50");
        assert_eq!(row(&trace, "lseek"), (50_000, 50_000), "{options:?}");
    }
    let trace = summed(&machine, &["-m", "4K", "-e", "lseek,exit", "--summary-mode", "thread"], "burst 1000 50");
    for (name, of_each) in [("lseek", 50), ("exit", 1)] {
        let rows = trace.text.lines().filter(|line| line.split_whitespace().next() == Some(name));
        let calls: Vec<u64> = rows.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
        assert_eq!(calls, [of_each; 1000], "{name}: each thread has its own table");
    }
}

/// A call whose task is killed in it is in the table like any other call, without a duration.
#[cfg(feature = "bpf")]
#[test]
fn calls_that_never_return_are_in_the_sums() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = r#""$rtrace" -v --engine bpf -s -m 4K -e poll,exit_group,lseek -o "$dir/lines" sh -c \
        'for i in 1 2 3 4 5; do "$workload" churn threads & sleep 0.3; kill -9 $!; done; exit 0' && cat "$dir/lines""#;
    let trace = summed_of(crate::trace::shell(&machine, script));
    let table = Trace { text: trace.stdout.clone(), ..trace };
    assert!(row(&table, "poll").0 >= 5 && row(&table, "exit_group").0 >= 1, "{}", table.text);
}

/// The aggregates of living tasks are read at the end of the trace, with those of all other tasks of the machine.
#[cfg(feature = "bpf")]
#[test]
fn the_kernel_sums_up_the_calls_of_the_whole_machine() {
    let Some(machine) = Machine::alone_with_bpf() else { return };
    let program = machine.path("summed-up");
    std::os::unix::fs::symlink(crate::machine::workload(), &program).expect("the test's directory is writable");
    let command = [&program, "calls", "lseek", "4", "50000", "150000"];
    let trace = summed_of(crate::trace::trace(&machine, &["--engine", "bpf", "-s", "-a", "--summary-mode", "thread"], &command));
    assert_eq!(rows(&trace, "summed-up").get("lseek"), Some(&(200_000, 200_000)), "{}", trace.text);
}

#[cfg(feature = "bpf")]
#[test]
fn sums_include_tasks_that_outlive_the_trace() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = r#""$workload" calls lseek 2 10000000 20000 & pid=$!
        "$rtrace" -v --engine bpf -s -e lseek -o "$dir/lines" -p $pid sleep 1; kill $pid && cat "$dir/lines""#;
    let trace = crate::trace::shell(&machine, script).succeeded();
    let verdict = trace.verdict();
    assert_eq!((verdict.lost, verdict.printed), (0, verdict.issued), "{}", trace.stderr);
    let lseek = row(&Trace { text: trace.stdout.clone(), ..trace }, "lseek");
    // Each of the two threads may be in a call when the trace ends.
    let open = lseek.0.saturating_sub(lseek.1);
    assert!(lseek.1 > 0 && lseek.1 <= lseek.0 && open <= 2 && lseek.0 <= verdict.issued, "{lseek:?}, {verdict:?}");
}
