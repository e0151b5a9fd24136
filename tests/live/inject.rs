//! `--inject`, and strace's `-e inject=` and `-e fault=`: what the program sees of it, and what the lines say.

use crate::json::objects;
use crate::line::{self, Result};
use crate::machine::{self, Machine};
use crate::system_wide::peer;
use crate::trace::{PATIENCE, Trace, plain, shell, start, trace, workload};
use regex::Regex;
use rustix::process::{Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;

/// Returns what the calls of each thread of `workload results` returned, and how many milliseconds they took.
fn seen(trace: &Trace) -> Vec<(Vec<i64>, Vec<i64>)> {
    let numbers = |line: &str, word: &str| -> Option<Vec<i64>> {
        Some(line.strip_prefix(word)?.split_whitespace().map(|number| number.parse().expect("it is a number")).collect())
    };
    let of = |word: &str| trace.stdout.lines().filter_map(|line| numbers(line, word)).collect::<Vec<_>>();
    of("results ").into_iter().zip(of("milliseconds ")).collect()
}

/// Returns the results of the lines of a syscall, in their order.
fn results(trace: &Trace, name: &str) -> Vec<String> {
    let lines = trace.lines();
    let of = line::calls(&lines).into_iter().filter(|(_, call)| call.name == name);
    of.filter_map(|(_, call)| if let Result::Returned(result) = call.result { Some(result) } else { None }).collect()
}

/// Traces getppid of `workload results` with this `--inject`, and checks the account.
fn changed(machine: &Machine, actions: &str, words: &str) -> Trace {
    let trace = workload(machine, &["-e", "getppid", "--inject", &format!("getppid:{actions}")], words);
    assert_eq!((trace.status, trace.conserved().lost), (0, 0), "{}", trace.stderr);
    trace
}

#[test]
fn the_program_gets_the_error_and_the_line_says_so() {
    let Some(machine) = Machine::shared() else { return };
    let trace = changed(&machine, "error=EBUSY:when=2", "results 1 4");
    assert_eq!(seen(&trace)[0].0, [0, -16, 0, 0]);
    let lines = results(&trace, "getppid");
    let changed: Vec<usize> = (0..4).filter(|at| lines[*at] == "-1 EBUSY (Device or resource busy) (injected)").collect();
    assert_eq!((lines.len(), changed), (4, vec![1]), "{lines:?}");
    assert!(lines.iter().enumerate().all(|(at, line)| at == 1 || !line.contains("injected")), "{lines:?}");
}

#[test]
fn the_program_gets_the_value() {
    let Some(machine) = Machine::shared() else { return };
    let trace = changed(&machine, "retval=0x1234", "results 1 2");
    assert_eq!(seen(&trace)[0].0, [0x1234; 2]);
    assert_eq!(results(&trace, "getppid"), ["4660 (injected)"; 2]);
}

#[test]
fn when_counts_the_calls_of_each_thread() {
    let Some(machine) = Machine::shared() else { return };
    for (when, expected) in [
        ("2+2", [0, -1, 0, -1, 0, -1]),
        ("3..4", [0, 0, -1, -1, 0, 0]),
        ("1..5+3", [-1, 0, 0, -1, 0, 0]),
        ("5+", [0, 0, 0, 0, -1, -1]),
        ("6", [0, 0, 0, 0, 0, -1]),
    ] {
        let trace = changed(&machine, &format!("error=EPERM:when={when}"), "results 3 6");
        let seen: Vec<_> = seen(&trace).into_iter().map(|(results, _)| results).collect();
        assert_eq!(seen, vec![expected.to_vec(); 3], "{when}");
        assert_eq!(
            results(&trace, "getppid").iter().filter(|line| line.ends_with("(injected)")).count() as i64,
            -3 * expected.iter().sum::<i64>()
        );
    }
}

#[test]
fn a_later_rule_replaces_an_earlier_one() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["-e", "getppid,lseek", "--inject", "getppid,lseek:error=EIO", "--inject", "getppid:retval=7:when=2"];
    let trace = workload(&machine, &options, "results 1 3").succeeded();
    assert_eq!(seen(&trace)[0].0, [0, 7, 0]);
}

#[test]
fn a_delay_is_part_of_the_calls_duration() {
    let Some(machine) = Machine::shared() else { return };
    let trace = changed(&machine, "delay_enter=150ms:when=2", "results 1 3");
    let (results, milliseconds) = &seen(&trace)[0];
    assert_eq!(*results, [0, 0, 0]);
    assert!(milliseconds[1] >= 150, "{milliseconds:?}");
    let lines = trace.lines();
    let calls: Vec<_> = line::calls(&lines).into_iter().filter(|(_, call)| call.name == "getppid").collect();
    let of = |at: usize| (calls[at].0.duration.expect("entry and exit are known"), calls[at].0.text.ends_with(" (delayed)"));
    assert!(of(1).0 >= 150.0 && of(1).1, "{}", trace.text);
    assert!(!of(0).1 && !of(2).1, "{}", trace.text);
    let both = changed(&machine, "error=EIO:delay_enter=100000:when=1", "results 1 1");
    let (results, milliseconds) = &seen(&both)[0];
    assert!(results[0] == -5 && milliseconds[0] >= 100, "{}", both.stdout);
    assert!(both.text.contains("(Input/output error) (injected) (delayed)\n"), "{}", both.text);
}

/// The delay of one thread does not hold up another one: with delays one after the other, it would take 20 seconds.
#[test]
fn delays_of_several_tasks_pass_at_the_same_time() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"for i in $(seq 40); do "$workload" tag $i & done; wait; echo "$(ls /proc/self/fd | wc -l)""#;
    let options = ["-e", "lseek", "--inject", "lseek:delay_enter=500ms"];
    let trace = trace(&machine, &[&options[..], &["--time-format", "monotonic"]].concat(), &["sh", "-c", script]).succeeded();
    assert_eq!(trace.tags(), (1..=40).collect::<Vec<_>>());
    let lines = trace.lines();
    let spans = line::calls(&lines).into_iter().map(|(line, _)| (line.start_ns(), line.duration.expect("it is known")));
    let mut spans: Vec<(u64, f64)> = spans.collect();
    spans.sort_by_key(|(start, _)| *start);
    assert!(spans.iter().all(|(_, duration)| *duration >= 500.0), "{spans:?}");
    let overlap = spans.windows(2).any(|pair| pair[1].0 < pair[0].0 + 500_000_000);
    assert!(overlap, "each call began after the delay of the one before: {spans:?}");
}

#[test]
fn the_thread_gets_the_signal_at_the_call() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--signals", "-e", "getppid", "--inject", "getppid:signal=USR1:when=2+"], "results 1 4").succeeded();
    assert!(trace.stdout.ends_with("signals 3\n"), "{}", trace.stdout);
    assert_eq!(trace.conserved().lost, 0);
    let code = if machine::engine() == "bpf" { "SI_KERNEL" } else { "SI_TKILL" };
    assert_eq!(trace.text.matches(&format!("--- SIGUSR1 {{si_signo=SIGUSR1, si_code={code}")).count(), 3, "{}", trace.text);
    let killed = workload(&machine, &["-e", "getppid", "--inject", "getppid:error=EIO:signal=KILL:when=3"], "results 1 4");
    assert_eq!((killed.status, killed.stdout.as_str()), (137, ""), "{}", killed.stderr);
}

/// Each child makes one tagged call, and is counted by itself.
#[test]
fn every_process_of_the_command_is_concerned() {
    let Some(machine) = Machine::shared() else { return };
    for words in ["forks 50", "threads 50"] {
        let trace = workload(&machine, &["-e", "lseek", "--inject", "lseek:retval=5:when=1"], words).succeeded();
        assert_eq!(trace.conserved().lost, 0);
        assert_eq!(results(&trace, "lseek"), vec!["5 (injected)"; 50], "{words}");
        assert_eq!(trace.tags(), (1..=50).collect::<Vec<_>>(), "{words}: each line has its arguments");
    }
    let alone = workload(&machine, &["--no-inherit", "-e", "lseek", "--inject", "lseek:retval=5"], "forks 3").succeeded();
    assert_eq!(alone.tags(), [0; 0], "children are not traced: {}", alone.text);
}

/// The calls by which rtrace starts the program are not changed, even if they have the same numbers: another user, a
/// directory, and the exec itself.
#[test]
fn the_start_of_the_command_is_not_changed() {
    let Some(machine) = Machine::shared() else { return };
    let rule = "execve,execveat:error=EIO:when=1";
    let script = "id -un; pwd";
    let trace = trace(
        &machine,
        &["--chdir", "/", "--run-as", "nobody", "--inject", "chdir,setgid,setuid,setgroups:error=EIO"],
        &["sh", "-c", script],
    );
    assert_eq!((trace.status, trace.stdout.as_str()), (0, "nobody\n/\n"), "{}", trace.stderr);
    let begun = plain(&machine, &["-o", "/dev/null", "--inject", rule, "--", &machine::workload(), "exit", "3"]);
    assert_eq!(begun.status, 3, "{}", begun.stderr);
    let absent = plain(&machine, &["--inject", "all:error=EIO", "--chdir", "/no/such/place", "--", "true"]);
    assert!(absent.status == 126 && absent.stderr.contains("change to the directory"), "{}", absent.stderr);
}

/// The memory of a call that the kernel never saw, on pages that nobody has touched, too.
#[test]
fn lines_of_answered_calls_have_their_arguments() {
    let Some(machine) = Machine::shared() else { return };
    let path = machine.path("not-there");
    let trace = trace(&machine, &["-e", "openat", "--inject", "openat:error=ENOENT"], &["cat", &path]);
    assert_ne!(trace.status, 0);
    let lines = trace.lines();
    let calls = line::calls(&lines);
    let names: Vec<&str> = calls.iter().filter_map(|(_, call)| call.arg("filename")).collect();
    assert!(!names.is_empty() && names.len() == calls.len() && names.iter().all(|name| name.starts_with("\"/")), "{}", trace.text);
    assert!(calls.iter().all(|(line, _)| line.duration.is_some() && line.time.is_some()), "{}", trace.text);
    let written = shell(&machine, r#""$rtrace" -o "$dir/w" -e write --inject write:error=ENOSPC sh -c 'echo some text'; cat "$dir/w""#);
    assert!(
        written.stdout.contains(r#"write(fd: 1"#) && written.stdout.contains(r#", buf: "some text\n", count: 10)"#),
        "{}",
        written.stdout
    );
    assert!(written.stdout.contains("-1 ENOSPC (No space left on device) (injected)"), "{}", written.stdout);
}

#[test]
fn json_marks_changed_calls() {
    let Some(machine) = Machine::shared() else { return };
    let rules = ["--inject", "getppid:error=EIO:delay_enter=1ms:when=2"];
    let trace = workload(&machine, &[&["--json", "-e", "getppid"][..], &rules].concat(), "results 1 3").succeeded();
    let marks: Vec<(bool, bool, bool)> = objects(&trace.text)
        .iter()
        .filter(|object| object["type"] == "call" && object["name"] == "getppid")
        .map(|call| (call["injected"] == true, call["delayed"] == true, call["entry"] == "seen" && call["duration"].is_u64()))
        .collect();
    assert_eq!(marks, [(false, false, true), (true, true, true), (false, false, true)], "{}", trace.text);
}

/// The filter of the program decides first if it is stricter.
#[test]
fn a_program_may_have_a_filter_of_its_own() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "getppid,prctl", "--inject", "getppid:retval=5"], "seccomp 7").succeeded();
    assert_eq!(results(&trace, "getppid"), vec!["-1 EXDEV (Invalid cross-device link)"; 7], "{}", trace.text);
    let other =
        shell(&machine, r#""$rtrace" -o "$dir/o" -e prctl --inject prctl:error=EPERM:when=1 "$workload" seccomp 1; grep prctl "$dir/o""#);
    assert!(other.stdout.contains("-1 EPERM (Operation not permitted) (injected)"), "{}", other.stdout);
}

#[cfg(all(feature = "bpf", target_arch = "x86_64"))]
#[test]
fn calls_of_32_bit_programs_are_changed_by_their_own_numbers() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = crate::compat::getsid(&machine) else { return };
    let trace = trace(&machine, &["--inject", "getsid:retval=99"], &[&program]).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(results(&trace, "getsid"), ["99 (injected)"], "{}", trace.text);
}

/// The filter stays when rtrace is gone, and so does the process that answers. It lets all calls pass.
#[test]
fn the_program_runs_on_unchanged_when_rtrace_is_gone() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"echo up; while [ ! -e "$dir/go" ]; do sleep .02; done; "$workload" results 1 5 > "$dir/after"; : > "$dir/done""#;
    let rule = ["-e", "getppid,clock_nanosleep", "--inject", "getppid:error=EIO", "--inject", "clock_nanosleep:delay_enter=100ms"];
    for signal in [Signal::KILL, Signal::TERM] {
        for name in ["go", "after", "done"] {
            let _ = std::fs::remove_file(machine.path(name));
        }
        let script = format!("trap '' TERM; {script}");
        let mut run = start(&machine, &rule, &["setsid", "sh", "-c", &script]);
        run.wait_for_output("up\n");
        kill_process(run.pid(), signal).expect("it is ours");
        let ended = run.finish();
        machine.file("go", 0);
        let began = Instant::now();
        while !std::path::Path::new(&machine.path("done")).exists() {
            assert!(began.elapsed() < *PATIENCE, "the command hangs after {signal:?}: {}", ended.stderr);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let after = std::fs::read_to_string(machine.path("after")).expect("it was written");
        assert!(after.starts_with("results 0 0 0 0 0\n"), "{signal:?}: {after}");
    }
    let enough = workload(&machine, &["-e", "getppid", "--inject", "getppid:error=EIO:when=3+", "--max-events", "1"], "slow 100");
    assert_eq!(enough.status, 0, "{}", enough.stderr);
}

#[test]
fn a_task_that_is_killed_while_it_waits_holds_nothing_up() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#""$workload" tag 1 & P=$!; sleep .3; kill -9 $P; wait $P; "$workload" tag 2; "$workload" results 1 1"#;
    let options = ["-e", "lseek", "--inject", "lseek:delay_enter=100s:when=1", "--inject", "lseek:retval=3"];
    let trace = trace(&machine, &options, &["sh", "-c", script]).succeeded();
    assert_eq!(trace.tags(), [1, 2], "{}", trace.text);
    let long = r#""$workload" tag 1 & P=$!; sleep .3; kill -9 $P; wait $P; echo $?"#;
    let trace = crate::trace::trace(&machine, &["-e", "lseek", "--inject", "lseek:delay_enter=1000s"], &["sh", "-c", long]).succeeded();
    assert_eq!((trace.stdout.as_str(), trace.conserved().lost), ("137\n", 0), "{}", trace.text);
}

#[test]
fn what_cannot_be_done_is_said() {
    let Some(machine) = Machine::shared() else { return };
    for (words, said) in [
        (&["--inject", "openat", "true"][..], "what is to happen to the calls is missing"),
        (&["--inject", "opeat:error=1", "true"], "there is no syscall opeat"),
        (&["--inject", "openat:error=EFOO", "true"], "error=EFOO: the error is a name"),
        (&["--inject", "openat:delay_exit=1", "true"], "it can delay them only before (delay_enter=)"),
        (&["--inject", "openat:poke_enter=@arg1=00", "true"], "does not write to the memory"),
        (&["--inject", "openat:syscall=getpid", "true"], "cannot exchange a call"),
        (&["--inject", "sched:sched_switch:error=1", "true"], "sched"),
        (&["--inject", "openat:error=1", "-a", "true"], "can be changed, and -a selects tasks that rtrace does not start"),
        (&["--inject", "openat:error=1", "-u", "nobody"], "can be changed, and -u selects tasks"),
        (&["--inject", "openat:delay_enter=1", "-p", "1"], "because BPF programs cannot delay a call (delay_enter=)"),
        (&["--inject", "openat:signal=KILL", "-p", "1"], "because BPF programs cannot end a task before its call"),
        (
            &["--inject-by", "seccomp", "--inject", "openat:error=1", "-p", "1"],
            "only a command that rtrace starts can have a seccomp filter",
        ),
        (&["--inject-by", "override", "--inject", "openat:delay_enter=1", "true"], "--inject-by override: BPF programs cannot delay"),
        (&["--inject-by", "override", "--engine", "tracepoint", "--inject", "openat:error=1", "true"], "the BPF engine does not trace"),
        (&["--inject", "openat:delay_enter=1", "-D", "5", "true"], "so leave -D out"),
        (&["strace", "-e", "inject=openat:delay_enter=1", "-p", "1"], "the calls of running tasks cannot be changed here"),
        (&["strace", "-e", "inject=openat:delay_exit=1", "-p", "1"], "it can delay them only before (delay_enter=)"),
        (&["strace", "-e", "inject=openat:poke_exit=@arg2=00", "true"], "does not write to the memory"),
    ] {
        let refused = plain(&machine, words);
        assert!(refused.status != 0 && refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
    }
    let nothing = plain(&machine, &["-o", "/dev/null", "-e", "close", "--inject", "openat:error=1", "true"]);
    assert!(nothing.status == 0 && nothing.stderr.contains("none of these calls is traced"), "{}", nothing.stderr);
}

/// Without CAP_SYS_ADMIN, the kernel accepts the filter only with no_new_privs, which rtrace does not set.
#[test]
fn without_the_privilege_nothing_is_started() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$rtrace" -o "$dir/x" --inject-by seccomp --inject lseek:error=1 sh -c 'echo started'"#;
    let refused = shell(&machine, script);
    assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    assert!(refused.status == 125 && refused.stderr.contains("--inject needs CAP_SYS_ADMIN"), "{}", refused.stderr);
}

/// The lines of strace itself for the same command, without addresses and times.
#[test]
fn lines_are_those_of_strace() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let Some(strace) = peer("strace") else { return };
    let file = machine.file("strace-inject", 11);
    let masks = [
        (r"0x[0-9a-f]{5,}", "ADDRESS"),
        (r"<\d+\.\d{6}>", "<TIME>"),
        (r"(?m)^\d+ +", ""),
        (r"getppid\(\) += \d{2,}", "getppid() = PARENT"),
    ];
    let masks = masks.map(|(pattern, by)| (Regex::new(pattern).expect("it is one"), by));
    let masked = |text: String| masks.iter().fold(text, |text, (mask, by)| mask.replace_all(&text, *by).into_owned());
    let cat = ["cat", &file, &file];
    let shell = ["sh", "-c", "cat /dev/null; cat /dev/null"];
    let results = [&*machine::workload(), "results", "2", "5"];
    for (options, command) in [
        (&["-e", "trace=openat,close", "-e", "inject=openat:error=ENOENT:when=3"][..], &cat[..]),
        (&["-e", "trace=openat,close", "-e", "inject=openat:retval=77:when=4+"], &cat),
        (&["-e", "trace=openat", "-e", "fault=openat"], &cat),
        (&["-e", "trace=openat,read", "--fault=openat,read:error=EIO:when=2+2"], &cat),
        (&["-T", "-e", "trace=openat", "-e", "inject=openat:delay_enter=10ms:when=3"], &cat),
        (&["-e", "trace=openat", "-e", "inject=openat:delay_enter=100:error=5:when=2..3"], &cat),
        (&["-e", "trace=openat", "-e", "inject=openat:signal=SIGUSR2:when=3"], &cat),
        (&["-e", "trace=openat", "-e", "inject=openat:error=1:when=2", "-e", "inject=openat:delay_enter=1:when=1"], &cat),
        (&["-e", "trace=execve", "-e", "inject=execve:error=EPERM"], &cat),
        (&["-e", "trace=none", "-e", "inject=openat:error=22"], &cat),
        (&["-f", "-e", "trace=execve", "-e", "signal=none", "-e", "inject=execve:error=EPERM:when=1"], &shell),
        (&["-e", "trace=execve", "-e", "signal=none", "-e", "inject=execve:error=EPERM:when=1"], &shell),
        (&["-f", "-e", "trace=getppid", "-e", "inject=getppid:error=EAGAIN:when=2+2"], &results),
        (&["-f", "-e", "trace=getppid", "-e", "inject=getppid:retval=3:signal=USR1:when=4"], &results),
    ] {
        let run = |program: &str, first: &[&str]| {
            let log = machine.path("log");
            let words = [first, &["-o", &log], options, command].concat();
            let output = std::process::Command::new(program).args(words).output().expect("it starts");
            (masked(std::fs::read_to_string(&log).expect("it was written")), output.status, output.stdout)
        };
        let (theirs, status, output) = run(strace, &[]);
        let (ours, our_status, our_output) = run(machine::rtrace(), &["strace", "--engine", "bpf"]);
        let said = |output: Vec<u8>| -> Vec<String> {
            let text = String::from_utf8_lossy(&output).into_owned();
            text.lines().filter(|line| !line.starts_with("milliseconds")).map(str::to_owned).collect()
        };
        assert_eq!(said(our_output), said(output), "{options:?}");
        let number = |status: ExitStatus| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        assert_eq!(number(our_status), number(status), "{options:?}");
        assert_eq!(ours, theirs, "{options:?}");
    }
}
