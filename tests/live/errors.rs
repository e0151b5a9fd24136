//! Errors: the user reads one sentence that says what is wrong and what to do.

use crate::machine::{self, Machine};
use crate::trace::{Trace, plain, shell};

/// Checks that rtrace failed with these words in its message, and did not start the command.
fn fails(trace: &Trace, words: &[&str]) {
    assert_eq!(trace.status, 125, "{}", trace.stderr);
    for word in words {
        assert!(trace.stderr.contains(word), "no {word:?} in\n{}", trace.stderr);
    }
    assert!(!trace.stdout.contains("started"), "the command ran");
    assert!(!trace.stderr.contains("panicked"), "{}", trace.stderr);
}

fn refuse(options: &[&str], words: &[&str]) {
    let Some(machine) = Machine::shared() else { return };
    fails(&plain(&machine, &[options, &["--", "echo", "started"]].concat()), words);
}

#[test]
fn an_unknown_syscall_is_refused_with_similar_names() {
    refuse(&["-e", "opennat"], &["opennat", "openat"]);
}

#[test]
fn an_unknown_group_or_event_is_refused_with_similar_names() {
    refuse(&["-e", "%fil"], &["%fil", "%file"]);
    refuse(&["-e", "sched:sched_swich"], &["sched_swich", "sched_switch"]);
}

#[test]
fn a_bad_expression_has_a_caret_under_the_place() {
    let Some(machine) = Machine::shared() else { return };
    let run = plain(&machine, &["-e", "lseek", "--filter", "offset == == 3", "--", "echo", "started"]);
    fails(&run, &["offset == == 3", "^"]);
    let lines: Vec<&str> = run.stderr.lines().collect();
    let at = lines.iter().position(|line| line.trim() == "^").unwrap_or_else(|| panic!("no caret in\n{}", run.stderr));
    let expression = lines[at - 1].find("offset").unwrap_or_else(|| panic!("no expression above the caret in\n{}", run.stderr));
    assert_eq!(lines[at].find('^'), Some(expression + "offset == ".len()), "{}", run.stderr);
}

#[test]
fn an_unknown_option_or_a_bad_amount_is_refused() {
    refuse(&["--no-such-option"], &["--no-such-option"]);
    refuse(&["-m", "many"], &["many"]);
    refuse(&["--duration", "3 moons"], &["3 moons"]);
}

#[test]
fn a_missing_privilege_is_named() {
    let Some(machine) = Machine::shared() else { return };
    machine.copy_of(machine::rtrace(), "rtrace");
    let script = r#"chmod 755 "$dir"; cd /; exec setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/rtrace" -- echo started"#;
    let run = shell(&machine, script);
    fails(&run, &[]);
    let helps = ["CAP_PERFMON", "CAP_SYS_ADMIN", "perf_event_paranoid", "root", "sudo"];
    assert!(helps.iter().any(|word| run.stderr.contains(word)), "{}", run.stderr);
}

#[test]
fn too_few_descriptors_name_the_limit() {
    let Some(machine) = Machine::shared() else { return };
    fails(&shell(&machine, r#"ulimit -n 12; exec "$rtrace" -- echo started"#), &["ulimit -n"]);
}
