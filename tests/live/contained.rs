//! rtrace inside a pid namespace, as in every container: tasks have the numbers that `ps` shows there, and of tasks outside nothing is shown.

use crate::machine::{self, Machine};
use crate::namespaces::can_unshare;
use crate::needs::unsupported;
use crate::trace::{Trace, shell_with_engine, start_shell};

const INSIDE: &str = "unshare --pid --fork --mount-proc";

/// What a shell line in a pid namespace gives, in one below the machine's first and in one below that.
fn inside(machine: &Machine, script: &str) -> Vec<Trace> {
    let deep = format!("{INSIDE} {INSIDE}");
    let quoted = script.replace('\'', r"'\''");
    // The shell is number 1 there, which waits for whoever has lost its parent.
    [INSIDE, &deep].map(|unshare| shell_with_engine(machine, &format!("{unshare} sh -c '{quoted}\n:'"))).into()
}

/// What the script said of this.
fn said<'t>(trace: &'t Trace, what: &str) -> &'t str {
    let line = trace.stdout.lines().find_map(|line| line.strip_prefix(what));
    line.unwrap_or_else(|| panic!("nothing is said of {what:?}:\n{}\n{}", trace.stdout, trace.stderr))
}

fn lines_of(trace: &Trace, call: &str) -> Vec<String> {
    trace.text.lines().filter(|line| line.contains(&format!(" {call}("))).map(str::to_owned).collect()
}

#[test]
fn a_command_and_its_children() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let script = r#""$rtrace" $engine -v -o "$dir/lines" sh -c 'echo shell $$; "$workload" forks 20'; cat "$dir/lines""#;
    for trace in inside(&machine, script) {
        let verdict = trace.verdict();
        assert_eq!((verdict.printed, verdict.lost), (verdict.issued, 0), "{}", trace.stderr);
        assert_eq!(lines_of(&trace, "lseek").len(), 20, "{}", trace.text);
        let shell = format!(" sh/{} ", said(&trace, "shell "));
        assert!(trace.text.lines().any(|line| line.contains(&shell)), "no line of {shell}:\n{}", trace.text);
        assert!(trace.text.contains(" (workload)") || trace.text.contains(" (sh)"), "children have their names:\n{}", trace.text);
    }
}

#[test]
fn a_process_and_a_thread_that_are_there() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    for option in ["-p", "-t"] {
        let script = format!(
            r#"sleep 100 & echo sleeper $!
            until grep -q "(sleep) S" /proc/$!/stat; do sleep .05; done
            "$rtrace" $engine -v -o "$dir/lines" {option} $! sleep .3; kill $!; cat "$dir/lines""#
        );
        for trace in inside(&machine, &script) {
            let naps = lines_of(&trace, "clock_nanosleep");
            let sleeper = format!(" sleep/{} ", said(&trace, "sleeper "));
            assert!(naps.len() == 1 && naps[0].contains(&sleeper), "{option}: {}\n{}", trace.text, trace.stderr);
        }
    }
}

#[test]
fn everybody_there_and_nobody_else() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    // It is killed with its value, however this test ends.
    let _outside = start_shell(&machine, r#"exec "$workload" calls lseek 1 1000000000"#);
    // Without BPF, -u follows whoever is there, and what they start; the command that says how long is not among them.
    let whoever: &[&str] = if machine::engine() == "bpf" { &["-a", "-u root"] } else { &["-a"] };
    for whom in whoever {
        let script = format!(r#""$rtrace" $engine -v {whom} -e lseek -o "$dir/lines" "$workload" forks 20; cat "$dir/lines""#);
        for trace in inside(&machine, &script) {
            let verdict = trace.verdict();
            assert_eq!(verdict.printed + verdict.lost + verdict.held_back, verdict.issued, "{whom}: {}", trace.stderr);
            let calls = lines_of(&trace, "lseek");
            assert!(calls.len() == 20 && calls.iter().all(|line| line.contains(" workload/")), "{whom}: {}", trace.text);
        }
    }
}

#[test]
fn sums_and_filters() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    for trace in inside(&machine, r#""$rtrace" $engine -s -e lseek -o "$dir/lines" "$workload" forks 20; cat "$dir/lines""#) {
        let row = trace.text.lines().find(|line| line.trim_start().starts_with("lseek ")).map(|line| line.split_whitespace().nth(1));
        assert_eq!(row, Some(Some("20")), "{}", trace.text);
    }
    // There are not so many tasks there that numbers would be large; on the machine they mostly are.
    for (filter, calls) in [("tid < 1000", 20), ("tid >= 1000", 0), ("pid < 1000", 20)] {
        let script = format!(r#""$rtrace" $engine -e lseek --filter '{filter}' -o "$dir/lines" "$workload" forks 20; cat "$dir/lines""#);
        for trace in inside(&machine, &script) {
            assert_eq!(lines_of(&trace, "lseek").len(), calls, "{filter}: {}", trace.text);
        }
    }
}

/// Names and numbers in /proc would be of other tasks.
#[test]
fn a_proc_of_another_namespace_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let trace = shell_with_engine(&machine, r#"unshare --pid --fork sh -c '"$rtrace" $engine true; echo status $?'"#);
    assert_eq!(trace.stdout, "status 125\n", "{}", trace.stderr);
    assert_eq!(
        trace.stderr,
        "rtrace: /proc shows the tasks of another pid namespace than rtrace's, so numbers and names would be those of other tasks: \
         mount one of this namespace (mount -t proc proc /proc, or unshare --mount-proc)\n"
    );
}

/// The kernel says to whom a signal is sent by a number that is the first namespace's in tracepoints.
#[test]
fn signals_and_who_sent_them() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let kill = r#"sleep 100 & P=$!; echo shell $$; echo sleeper $P; sleep .2; kill -TERM $P; wait; trap : USR1; kill -USR1 $$; :"#;
    for options in ["", "-e kill", "-e lseek --signals"] {
        let script = format!(r#""$rtrace" $engine {options} -o "$dir/lines" sh -c '{kill}'; cat "$dir/lines""#);
        for trace in inside(&machine, &script) {
            let (shell, sleeper) = (said(&trace, "shell "), said(&trace, "sleeper "));
            let user = if machine::engine() == "bpf" { ", si_uid=0" } else { "" };
            let by_shell = format!("si_code=SI_USER, si_pid={shell} (sh){user}}} ---");
            let of_sleeper: Vec<&str> = trace.text.lines().filter(|line| line.contains(&format!(" sleep/{sleeper} "))).collect();
            let [.., signal, end] = of_sleeper[..] else { panic!("{options}: {}", trace.text) };
            assert!(signal.ends_with(&format!("--- SIGTERM {{si_signo=SIGTERM, {by_shell}")), "{options}: {}", trace.text);
            assert!(end.ends_with("+++ killed by SIGTERM +++"), "{options}: {}", trace.text);
            let own: Vec<&str> = trace.text.lines().filter(|line| line.contains("--- SIGUSR1 ")).collect();
            assert!(
                own.len() == 1 && own[0].contains(&format!(" sh/{shell} ")) && own[0].ends_with(&by_shell),
                "{options}: {}",
                trace.text
            );
        }
    }
}

/// All that the kernel writes about the receiver is that it is given the signal.
#[test]
fn a_signal_to_a_process_that_was_asleep_all_the_time() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let script = r#"sleep 100 & echo sleeper $!
        until grep -q "(sleep) S" /proc/$!/stat; do sleep .05; done
        "$rtrace" $engine -o "$dir/lines" -p $! sh -c "kill -TERM $!; sleep .3"; cat "$dir/lines""#;
    for trace in inside(&machine, script) {
        let sleeper = format!(" sleep/{} ", said(&trace, "sleeper "));
        let of_sleeper: Vec<&str> = trace.text.lines().filter(|line| line.contains(&sleeper)).collect();
        let [.., signal, end] = of_sleeper[..] else { panic!("{}\n{}", trace.text, trace.stderr) };
        assert!(signal.contains("--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid="), "{}", trace.text);
        assert!(end.ends_with("+++ killed by SIGTERM +++"), "{}", trace.text);
    }
}

/// A task outside may have the number that one has inside: what is sent to the former is not the latter's.
#[test]
fn signals_to_tasks_outside_are_not_shown() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    if !std::path::Path::new("/proc/sys/kernel/ns_last_pid").exists() {
        return unsupported("numbers of new tasks cannot be chosen here (CONFIG_CHECKPOINT_RESTORE)");
    }
    // It is killed with its value, however this test ends.
    let outside = start_shell(&machine, "trap '' USR1; while :; do kill -USR1 $$; sleep .01; done");
    let number = outside.pid().as_raw_nonzero();
    let inner = format!("echo $(({number} - 1)) >/proc/sys/kernel/ns_last_pid; sleep .5 & echo sleeper $!; wait; :");
    let script = format!(r#""$rtrace" $engine --signals -e clock_nanosleep -o "$dir/lines" sh -c '{inner}'; cat "$dir/lines""#);
    for trace in inside(&machine, &script) {
        assert_eq!(said(&trace, "sleeper "), number.to_string());
        assert!(trace.text.contains(&format!(" sleep/{number} ")), "it is traced: {}", trace.text);
        assert!(!trace.text.contains("SIGUSR1"), "{}", trace.text);
    }
}
