//! rtrace inside a pid namespace, as in every container: tasks have the pids that `ps` shows there, and tasks outside
//! are not shown.

use crate::machine::{self, Machine};
use crate::namespaces::can_unshare;
use crate::needs::unsupported;
use crate::trace::{Trace, shell_with_engine, start_shell};

const INSIDE: &str = "unshare --pid --fork --mount-proc";

/// Runs a shell line in a pid namespace below the initial one, and in a pid namespace below such a one.
fn inside(machine: &Machine, script: &str) -> Vec<Trace> {
    let deep = format!("{INSIDE} {INSIDE}");
    let quoted = script.replace('\'', r"'\''");
    // The shell has pid 1 there, and reaps processes whose parent has ended.
    [INSIDE, &deep].map(|unshare| shell_with_engine(machine, &format!("{unshare} sh -c '{quoted}\n:'"))).into()
}

/// Returns the rest of the line of the script's output that begins with `what`.
fn rest_of_line<'t>(trace: &'t Trace, what: &str) -> &'t str {
    let line = trace.stdout.lines().find_map(|line| line.strip_prefix(what));
    line.unwrap_or_else(|| panic!("no line begins with {what:?}:\n{}\n{}", trace.stdout, trace.stderr))
}

fn lines_of(trace: &Trace, call: &str) -> Vec<String> {
    trace.text.lines().filter(|line| line.contains(&format!(" {call}("))).map(str::to_owned).collect()
}

#[test]
fn a_command_and_its_children_are_traced_by_their_inner_pids() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let script = r#""$rtrace" $engine -v -o "$dir/lines" sh -c 'echo shell $$; "$workload" forks 20'; cat "$dir/lines""#;
    for trace in inside(&machine, script) {
        let verdict = trace.verdict();
        assert_eq!((verdict.printed, verdict.lost), (verdict.issued, 0), "{}", trace.stderr);
        assert_eq!(lines_of(&trace, "lseek").len(), 20, "{}", trace.text);
        let shell = format!(" sh/{} ", rest_of_line(&trace, "shell "));
        assert!(trace.text.lines().any(|line| line.contains(&shell)), "no line of {shell}:\n{}", trace.text);
        assert!(trace.text.contains(" (workload)") || trace.text.contains(" (sh)"), "children have their names:\n{}", trace.text);
    }
}

#[test]
fn a_running_process_and_thread_are_traced_by_their_inner_pids() {
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
            let sleeper = format!(" sleep/{} ", rest_of_line(&trace, "sleeper "));
            assert!(naps.len() == 1 && naps[0].contains(&sleeper), "{option}: {}\n{}", trace.text, trace.stderr);
        }
    }
}

#[test]
fn a_system_wide_trace_has_only_the_tasks_of_the_namespace() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    // It is killed when the value is dropped.
    let _outside = start_shell(&machine, r#"while "$workload" calls lseek 1 1000 >/dev/null; do sleep .01; done"#);
    // Without BPF, -u follows the tasks that exist at the start and their children. The command, whose end ends the
    // trace, is started later.
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
fn summaries_and_filters_use_the_inner_pids() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    for trace in inside(&machine, r#""$rtrace" $engine -s -e lseek -o "$dir/lines" "$workload" forks 20; cat "$dir/lines""#) {
        let row = trace.text.lines().find(|line| line.trim_start().starts_with("lseek ")).map(|line| line.split_whitespace().nth(1));
        assert_eq!(row, Some(Some("20")), "{}", trace.text);
    }
    // The namespace has few tasks, so its pids are small. Outside, pids are mostly larger.
    for (filter, calls) in [("tid < 1000", 20), ("tid >= 1000", 0), ("pid < 1000", 20)] {
        let script = format!(r#""$rtrace" $engine -e lseek --filter '{filter}' -o "$dir/lines" "$workload" forks 20; cat "$dir/lines""#);
        for trace in inside(&machine, &script) {
            assert_eq!(lines_of(&trace, "lseek").len(), calls, "{filter}: {}", trace.text);
        }
    }
}

/// The names and pids in that /proc are those of other tasks.
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

/// The kernel's tracepoint has the receiver's pid in the initial namespace.
#[test]
fn signals_are_shown_with_the_inner_pid_of_their_sender() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let kill = r#"sleep 100 & P=$!; echo shell $$; echo sleeper $P; sleep .2; kill -TERM $P; wait; trap : USR1; kill -USR1 $$; :"#;
    for options in ["", "-e kill", "-e lseek --signals"] {
        let script = format!(r#""$rtrace" $engine {options} -o "$dir/lines" sh -c '{kill}'; cat "$dir/lines""#);
        for trace in inside(&machine, &script) {
            let (shell, sleeper) = (rest_of_line(&trace, "shell "), rest_of_line(&trace, "sleeper "));
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

/// The receiver has no other record than that of the delivered signal.
#[test]
fn a_signal_to_a_process_that_was_asleep_is_shown() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let script = r#"sleep 100 & echo sleeper $!
        until grep -q "(sleep) S" /proc/$!/stat; do sleep .05; done
        "$rtrace" $engine -o "$dir/lines" -p $! sh -c "kill -TERM $!; sleep .3"; cat "$dir/lines""#;
    for trace in inside(&machine, script) {
        let sleeper = format!(" sleep/{} ", rest_of_line(&trace, "sleeper "));
        let of_sleeper: Vec<&str> = trace.text.lines().filter(|line| line.contains(&sleeper)).collect();
        let [.., signal, end] = of_sleeper[..] else { panic!("{}\n{}", trace.text, trace.stderr) };
        assert!(signal.contains("--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid="), "{}", trace.text);
        assert!(end.ends_with("+++ killed by SIGTERM +++"), "{}", trace.text);
    }
}

/// A task outside may have the same pid as one inside. A signal to the former must not be shown for the latter.
#[test]
fn signals_to_tasks_outside_are_not_shown() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    if !std::path::Path::new("/proc/sys/kernel/ns_last_pid").exists() {
        return unsupported("numbers of new tasks cannot be chosen here (CONFIG_CHECKPOINT_RESTORE)");
    }
    // It is killed when the value is dropped.
    let outside = start_shell(&machine, "trap '' USR1; while :; do kill -USR1 $$; sleep .01; done");
    let number = outside.pid().as_raw_nonzero();
    let inner = format!("echo $(({number} - 1)) >/proc/sys/kernel/ns_last_pid; sleep .5 & echo sleeper $!; wait; :");
    let script = format!(r#""$rtrace" $engine --signals -e clock_nanosleep -o "$dir/lines" sh -c '{inner}'; cat "$dir/lines""#);
    for trace in inside(&machine, &script) {
        assert_eq!(rest_of_line(&trace, "sleeper "), number.to_string());
        assert!(trace.text.contains(&format!(" sleep/{number} ")), "it is traced: {}", trace.text);
        assert!(!trace.text.contains("SIGUSR1"), "{}", trace.text);
    }
}
