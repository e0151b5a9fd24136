//! Tasks in strace's style: how they end, what interrupts their calls, and which ABI they use. `tests/strace/alone`
//! compares such lines with those of strace itself.

use crate::machine::{self, Machine};
use crate::trace::plain;
use regex::Regex;

/// Runs a scene of the test program with these options, and returns the lines about it.
fn lines(machine: &Machine, options: &[&str], scene: &str) -> Vec<String> {
    let workload = machine::workload();
    let words: Vec<&str> =
        ["strace", "--engine", "bpf"].iter().chain(options).copied().chain([&*workload]).chain(scene.split(' ')).collect();
    plain(machine, &words).stderr.lines().map(str::to_owned).collect()
}

/// Asserts that lines match these patterns one after the other, and returns the captured texts.
fn assert_in_order(lines: &[String], patterns: &[&str]) -> Vec<String> {
    let mut captured = Vec::new();
    let mut rest = lines.iter();
    for pattern in patterns {
        let regex = Regex::new(&format!("^{pattern}$")).expect("it is one");
        let found = rest.find_map(|line| regex.captures(line));
        let found = found.unwrap_or_else(|| panic!("no line matches {pattern} in its place:\n{}", lines.join("\n")));
        captured.extend(found.iter().skip(1).flatten().map(|text| text.as_str().to_owned()));
    }
    captured
}

#[test]
fn a_thread_that_executes_a_program_supersedes_the_leader() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = lines(&machine, &["-f", "-e", "trace=execve", "--always-show-pid"], "exec thread");
    let numbers = assert_in_order(
        &trace,
        &[
            r#"(\d+) +execve\("\S+workload", \["\S+, "tag", "2"\], \S+ /\* \d+ vars \*/ <unfinished \.\.\.>"#,
            r"(\d+) +\+\+\+ superseded by execve in pid (\d+) \+\+\+",
            r"(\d+) +<\.\.\. execve resumed>\) += 0",
            r"(\d+) +\+\+\+ exited with 0 \+\+\+",
        ],
    );
    let [thread, leader, old, resumed, ended] = &numbers[..] else { panic!("{numbers:?}") };
    assert!(thread == old && leader == resumed && leader == ended && leader != thread, "{numbers:?}");
    // The other threads end before the leader, whose end is not shown twice.
    assert_eq!(
        trace.iter().filter(|line| line.starts_with(&format!("{leader} ")) && line.contains("+++ exited")).count(),
        1,
        "{}",
        trace.join("\n")
    );
    assert!(!lines(&machine, &["-f", "-qqq", "-e", "trace=execve"], "exec thread").iter().any(|line| line.contains("superseded")));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_change_of_the_abi_has_a_line() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    // If few calls are selected, rtrace traces these by events that do not see calls of another ABI.
    let trace = lines(&machine, &[], "int80 1");
    assert_in_order(
        &trace,
        &[
            r"execve\(.*",
            r"\[ Process PID=\d+ runs in 32 bit mode\. \]",
            r"getppid\(\) += \d+",
            r"\[ Process PID=\d+ runs in 64 bit mode\. \]",
            r"write\(1, .*",
        ],
    );
    for quiet in [&["-q"][..], &["-e", "quiet=personality"]] {
        let trace = lines(&machine, quiet, "int80 1");
        assert!(!trace.iter().any(|line| line.contains("runs in")), "{}", trace.join("\n"));
    }
}

#[test]
fn a_call_has_no_result_if_its_task_is_killed_in_it() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = lines(&machine, &["-f", "-qq", "-a1", "-e", "trace=pause,read,/poll"], "signals killed");
    let of_child = |text: &str| format!(r"(?:\[pid +\d+\] )?{text}");
    for (call, interrupted) in [("pause", "ERESTARTNOHAND"), ("read", "ERESTARTSYS")] {
        // SIGKILL, which no tracer sees, and then SIGTERM. The parent's calls may interrupt both.
        let begin = format!(r"(?:{call}\(\d*|<\.\.\. {call} resumed>)");
        let unfinished = if call == "pause" { "" } else { r" <unfinished \.\.\.>" };
        let killed = of_child(&format!(r"{begin}{unfinished}\) = \?"));
        let arguments = if call == "pause" { "" } else { ", .*" };
        let ended = of_child(&format!(r"{begin}{arguments}\) = \? {interrupted} \(.*\)"));
        assert_in_order(&trace, &[&killed, &ended, &of_child(r"--- SIGTERM \{si_signo=SIGTERM, si_code=SI_USER, .*\} ---")]);
    }
}

#[test]
fn ignored_signals_follow_the_call_that_they_arrive_in() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = lines(&machine, &["-qq", "-e", "trace=wait4,tgkill"], "signals ignored");
    let sigchld = r"--- SIGCHLD \{si_signo=SIGCHLD, si_code=CLD_EXITED, .*\} ---";
    let waited = r"wait4\(\d+, .*\) += \d+";
    assert_in_order(
        &trace,
        &[
            waited,
            sigchld,
            // This child ends while its parent makes no call.
            sigchld,
            waited,
            r"tgkill\(.*, SIGUSR1\) += 0",
            r"--- SIGUSR1 \{.*\} ---",
            r"tgkill\(.*, SIGWINCH\) += 0",
            r"--- SIGWINCH \{.*\} ---",
        ],
    );
    assert_eq!(trace.len(), 8, "{}", trace.join("\n"));
}

#[test]
fn the_stack_of_the_last_call_is_below_the_end_of_the_task() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = lines(&machine, &["-k", "-e", "trace=exit_group"], "exit 3");
    assert_in_order(&trace[..3], &[r"exit_group\(3\) += \?", r"\+\+\+ exited with 3 \+\+\+", r" > \S+\(\S+\) \[0x[0-9a-f]+\]"]);
}
