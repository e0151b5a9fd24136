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
    let trace = workload(&machine, &["-s", "-m", "8K", "-e", "lseek"], "calls lseek 4 50000").succeeded();
    let verdict = trace.verdict();
    assert!(verdict.lost > 0, "the ring held everything");
    assert_eq!(verdict.issued, 200_000);
    assert_eq!(row(&trace, "lseek").0 + verdict.lost, 200_000, "{}\n{}", trace.text, trace.stderr);
    let lost = verdict.lost.to_string();
    assert!(trace.text.contains(&lost), "the table itself says that {lost} calls are missing:\n{}", trace.text);
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
