//! Printed + lost = issued, exactly. The traced program says how many calls it issued, the test counts the printed
//! lines, and rtrace reports the lost calls.

use crate::cgroup::Cgroup;
use crate::line::{self, Result};
use crate::machine::Machine;
use crate::needs::unsupported;
use crate::trace::{Trace, overrun, shell, shell_with_engine, trace, workload};
use std::collections::BTreeSet;

/// The option for a ring that is so small that a burst overruns it.
const TINY: [&str; 2] = ["-m", "8K"];

fn all_tags(trace: &Trace, count: u64) {
    let verdict = trace.conserved();
    assert_eq!(verdict.lost, 0, "{}", trace.stderr);
    assert_eq!(trace.tags(), (1..=count).collect::<Vec<_>>(), "every tag once");
}

#[test]
fn every_call_of_threads_is_printed_with_one_syscall_selected() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "calls lseek 4 25000 150000").succeeded();
    all_tags(&trace, trace.issued("lseek"));
    assert_eq!(trace.verdict().issued, 100_000);
}

#[test]
fn every_call_of_threads_is_printed_with_all_syscalls_selected() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &[], "calls lseek 4 25000 150000").succeeded();
    all_tags(&trace, 100_000);
    assert!(trace.verdict().issued > 100_000, "the program's start and end count too");
}

#[test]
fn every_call_of_ten_thousand_short_children_is_printed() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "forks 10000").succeeded();
    all_tags(&trace, trace.issued("lseek"));
    let lines = trace.lines();
    let callers: BTreeSet<i32> = line::calls(&lines).iter().map(|(line, _)| line.tid).collect();
    assert_eq!(callers.len(), 10_000, "each child made its own call");
}

#[test]
fn every_call_of_short_children_is_printed_with_all_syscalls_selected() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &[], "forks 1000").succeeded();
    all_tags(&trace, trace.issued("lseek"));
}

#[test]
fn every_call_of_threads_that_are_created_while_traced_is_printed() {
    let Some(machine) = Machine::shared() else { return };
    for options in [&["-e", "lseek"][..], &[]] {
        let trace = workload(&machine, options, "threads 1000").succeeded();
        all_tags(&trace, trace.issued("lseek"));
    }
}

/// Whether the reader keeps up with a higher rate depends on the load of the machine: `cargo bench --bench peers`
/// measures it on a quiet one.
#[test]
fn rings_of_the_default_size_hold_a_moderate_rate_and_account_for_a_high_one() {
    let Some(machine) = Machine::alone() else { return };
    for options in [&["-e", "getppid"][..], &[]] {
        let moderate = workload(&machine, options, "calls getppid 1 40000 20000").succeeded();
        assert_eq!(moderate.conserved().lost, 0, "{}", moderate.stderr);
        assert_eq!(moderate.count("getppid"), moderate.issued("getppid"));
        let high = workload(&machine, options, "calls getppid 1 200000 200000").succeeded();
        let lost = high.conserved().lost;
        assert!(high.issued("getppid") - high.count("getppid") <= lost, "{}", high.stderr);
    }
}

/// Thousands of threads are runnable at the same time as the thread that reads the rings. How many calls are lost then
/// depends on the machine: `cargo bench --bench burst` measures it.
#[test]
fn calls_of_threads_that_end_at_once_are_all_accounted_for() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "burst 3000 100").succeeded();
    let verdict = trace.conserved();
    assert_eq!(verdict.issued, 300_000);
    assert_eq!(trace.tags().len() as u64, verdict.printed, "each line is one call");
}

#[test]
fn only_the_thread_that_empties_the_rings_has_a_real_time_priority() {
    let Some(machine) = Machine::shared() else { return };
    if !shell(&machine, "chrt -f 1 true").stderr.is_empty() {
        return unsupported("no real-time priorities");
    }
    let policies = "for task in /proc/$PPID/task/* /proc/$$; do chrt -p ${task##*/}; done | sed -n 's/^pid .* policy: //p'";
    let trace =
        shell_with_engine(&machine, &format!(r#""$rtrace" $engine -o "$dir/lines" -e lseek sh -c "{}""#, policies.replace('$', r"\$")));
    let (threads, command) = trace.stdout.trim_end().rsplit_once('\n').expect("rtrace and the command have a thread each");
    assert_eq!(command, "SCHED_OTHER", "{}", trace.stdout);
    let first = threads.lines().filter(|policy| *policy == "SCHED_FIFO|SCHED_RESET_ON_FORK").count();
    assert_eq!(first, 1, "{}", trace.stdout);
}

/// The maximum size of a record decides the size of the rings, unless the user chooses it.
#[cfg_attr(not(feature = "bpf"), ignore = "rtrace is built without BPF")]
#[test]
fn the_size_of_the_rings_follows_from_the_size_of_records() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let kib = |options: &[&str]| {
        let trace = trace(&machine, &[&["--engine", "bpf"], options].concat(), &["true"]).succeeded();
        let line = trace.stderr.lines().find(|line| line.contains(" KiB of ring a CPU")).expect("-v says the size").to_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.iter().position(|word| *word == "KiB").expect("it is in the line");
        (words[at - 1].parse::<u64>().expect("a number is before it"), line)
    };
    let [(usual, says_nothing), (long, says_why)] = [kib(&[]), kib(&["--string-limit", "4096"])];
    assert!(long > usual, "{says_nothing}\n{says_why}");
    assert!(says_why.contains("(chosen because records have up to 4096 bytes of each string"), "{says_why}");
    let (asked, says_nothing) = kib(&["--string-limit", "4096", "-m", "64K"]);
    assert!(asked == 64 && !says_nothing.contains("chosen"), "{says_nothing}");
}

#[test]
fn an_overrun_ring_is_accounted_for_with_one_syscall_selected() {
    let Some(machine) = Machine::alone() else { return };
    let trace = overrun(&machine, &[&TINY[..], &["-e", "lseek"]].concat(), "calls lseek 4 50000").succeeded();
    let verdict = trace.conserved();
    assert!(verdict.lost > 0, "the ring held everything: {verdict:?}");
    assert_eq!(verdict.issued, trace.issued("lseek"));
    let mut tags = trace.tags();
    let printed = tags.len();
    tags.dedup();
    assert_eq!(tags.len(), printed, "no call was printed twice");
    assert!(tags.iter().all(|tag| (1..=200_000).contains(tag)), "no tag was invented");
}

#[test]
fn an_overrun_ring_is_accounted_for_with_all_syscalls_selected() {
    let Some(machine) = Machine::alone() else { return };
    let trace = overrun(&machine, &TINY, "calls lseek 4 50000").succeeded();
    let verdict = trace.conserved();
    assert!(verdict.lost > 0, "the ring held everything: {verdict:?}");
    assert!(verdict.issued > trace.issued("lseek"));
    assert!(verdict.issued < trace.issued("lseek") + 1000, "a small program's start and end are a few hundred calls: {verdict:?}");
}

/// A read of /dev/zero returns its count, and the count differs from call to call, so an exit that was paired with the
/// entry of another call is visible.
#[test]
fn an_entry_before_a_gap_is_not_paired_with_another_calls_exit() {
    let Some(machine) = Machine::alone() else { return };
    let trace = overrun(&machine, &[&TINY[..], &["-e", "read"]].concat(), "calls read 4 200000").succeeded();
    assert!(trace.conserved().lost > 0);
    let lines = trace.lines();
    let mut paired = 0;
    for (line, call) in line::calls(&lines) {
        let (Some(count), Result::Returned(result)) = (call.number("count"), &call.result) else { continue };
        let from_zero = line.comm == "workload" && count <= 4096 && result.parse::<u64>().is_ok_and(|r| r > 0);
        // The start of the program also reads ELF files and /proc, which may return less than the count; there are few
        // such reads.
        paired += u64::from(from_zero && *result == count.to_string());
        let foreign = from_zero && *result != count.to_string() && line.tid != lines[0].tid;
        assert!(!foreign, "{}", line.text);
    }
    assert!(paired > 1000, "only {paired} pairs");
}

/// For a call that seccomp answers, the kernel reports only the exit, and no entry.
#[test]
fn calls_that_a_seccomp_filter_answers_are_accounted_for() {
    let Some(machine) = Machine::shared() else { return };
    for options in [&["-e", "getppid"][..], &[]] {
        let trace = workload(&machine, options, "seccomp 1000").succeeded();
        assert_eq!(trace.conserved().lost, 0);
        let lines = trace.lines();
        let answered = line::calls(&lines)
            .into_iter()
            .filter(|(_, call)| call.name == "getppid" && matches!(&call.result, Result::Returned(r) if r.starts_with("-1 EXDEV ")))
            .count() as u64;
        assert_eq!(answered, trace.issued("getppid"));
    }
}

/// The kernel counts some events of a cgroup without writing a record, if their task is moved at that moment.
#[test]
fn calls_of_tasks_that_move_between_cgroups_are_accounted_for() {
    let Some(machine) = Machine::shared() else { return };
    let groups = ["a", "b"].map(|name| Cgroup::new(&machine, name));
    let [a, b] = groups.each_ref().map(|group| group.dir.display().to_string());
    let script = format!(
        r#"for i in 1 2 3; do "$workload" calls getppid 2 100000 100000 >/dev/null & pids="$pids $!"; done
        for i in $(seq 60); do for to in {a} {b}; do for pid in $pids; do echo $pid >$to/cgroup.procs; done; sleep .003; done; done 2>/dev/null; kill $pids; wait"#
    );
    let trace = crate::trace::trace(&machine, &["-G", &a, "-m", "16M"], &["sh", "-c", &script]).succeeded();
    let verdict = trace.conserved();
    assert!(verdict.printed > 0 && !trace.stderr.contains("does not add up"), "{}", trace.stderr);
    let unwritten = trace.stderr.contains("of the lost records were counted but not written by the kernel");
    assert!(verdict.lost == 0 || unwritten || trace.text.contains("LOST"), "{}", trace.stderr);
}

/// If the trace is switched off during a call, the kernel may count the call and write no record (it did so in 14 of
/// 100 such runs).
#[test]
fn traces_that_end_during_calls_are_accounted_for() {
    let Some(machine) = Machine::shared() else { return };
    let script = "$workload calls lseek 4 1000000000000 >/dev/null & calls=$!
        for i in $(seq 30); do $rtrace $engine -v -s -e lseek -m 4M -p $calls sleep .00$((i % 10)) 2>&1 >/dev/null || echo failed; done; kill $calls";
    let trace = crate::trace::shell_with_engine(&machine, script);
    let accounts: Vec<&str> = trace.text.lines().filter(|line| line.contains(" calls issued, ")).collect();
    assert_eq!(accounts.len(), 30, "{}{}", trace.text, trace.stderr);
    assert!(!trace.text.contains("does not add up") && !trace.text.contains("failed"), "{}", trace.text);
}
