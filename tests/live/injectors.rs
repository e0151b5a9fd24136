//! Who changes the calls of `--inject`: BPF programs, which change those of running tasks too, or a process that a
//! seccomp filter asks, which may be killed.

use crate::json::objects;
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::{PATIENCE, Running, Trace, plain, start, trace, workload};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// A command whose calls no fault of openat or getppid ends: it runs until the file `go` exists.
const WAITING: &str = r#"echo up; while [ ! -e "$dir/go" ]; do sleep .02; done; "#;

fn traces_by_bpf() -> bool {
    machine::engine() == "bpf"
}

/// Returns the machine if calls can be overridden there, by the engine under test.
fn overriding() -> Option<Machine> {
    let machine = Machine::shared()?;
    (traces_by_bpf() && !machine.lacks(&[Need::BpfEngine, Need::OverriddenResults])).then_some(machine)
}

#[test]
fn the_plan_says_who_changes_calls_and_why() {
    let Some(machine) = Machine::shared() else { return };
    let plan = |options: &[&str]| workload(&machine, &[&["-e", "getppid"], options].concat(), "results 1 1").succeeded().stderr;
    let seccomp = "plan: --inject by a seccomp filter and a process that answers, because ";
    for (options, why) in [
        (&["--inject", "getppid:error=EIO", "--inject-by", "seccomp"][..], "--inject-by seccomp asks for it"),
        (&["--inject", "getppid:error=EIO", "--engine", "tracepoint"], "the BPF engine does not trace"),
    ] {
        let said = plan(options);
        assert!(said.contains(&format!("{seccomp}{why};")), "{options:?}: {said}");
    }
    if !traces_by_bpf() {
        return;
    }
    let delay = plan(&["--inject", "getppid:error=EIO:delay_enter=1"]);
    assert!(delay.contains(&format!("{seccomp}BPF programs cannot delay a call (delay_enter=);")), "{delay}");
    let signals = plan(&["--inject", "getppid:signal=USR1"]);
    assert!(signals.contains("plan: --inject by the BPF program at the entry of calls, which sends the signals"), "{signals}");
    let answers = plan(&["--inject", "getppid:error=EIO"]);
    let expected = match machine.lacks(&[Need::OverriddenResults]) {
        true => format!("{seccomp}this kernel does not let BPF programs override results (CONFIG_BPF_KPROBE_OVERRIDE);"),
        false => "plan: --inject by a BPF program on 1 functions of the kernel".to_owned(),
    };
    assert!(answers.contains(&expected), "{answers}");
}

/// Starts a command that is not traced, and returns it with its process.
fn untraced<'m>(machine: &'m Machine, script: &str) -> (std::process::Child, &'m Machine) {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).env("dir", machine.dir()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    (command.spawn().expect("it starts"), machine)
}

/// Traces a running shell with these options until so many lines were printed, and lets it end. Returns the trace, and
/// what the shell wrote to its stdout.
fn attached(machine: &Machine, options: &[&str], script: &str, lines: usize) -> (Trace, String) {
    let (child, _) = untraced(machine, script);
    let pid = child.id().to_string();
    let mut run = start(machine, &[&["-p", &pid], options].concat(), &[]);
    run.wait_for_text("there are enough lines", |text| text.lines().filter(|line| line.contains("wait4(")).count() >= lines);
    machine.file("go", 0);
    let output = child.wait_with_output().expect("it was started");
    (run.finish(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Signals need no seccomp filter, so that tasks get them that run already.
#[test]
fn running_tasks_get_signals() {
    let Some(machine) = Machine::shared() else { return };
    if !traces_by_bpf() {
        let refused = plain(&machine, &["--engine", "tracepoint", "--inject", "wait4:signal=USR1", "-p", "1"]);
        assert!(refused.stderr.contains("because the BPF engine does not trace; only a command"), "{}", refused.stderr);
        return;
    }
    let script = r#"trap 'echo got' USR1; while [ ! -e "$dir/go" ]; do sleep .02; done"#;
    let (trace, said) = attached(&machine, &["-e", "wait4", "--inject", "wait4:signal=USR1:when=2"], script, 6);
    assert_eq!((trace.conserved().lost, said.as_str()), (0, "got\n"), "{}", trace.text);
}

#[test]
fn running_tasks_get_errors_and_values() {
    let Some(machine) = overriding() else { return };
    let script = r#"while [ ! -e "$dir/go" ]; do sleep .02; (: < "$dir" && echo opened) || echo refused; done 2> /dev/null"#;
    let options = ["-e", "openat,wait4", "--inject", "openat:error=EMFILE:when=1"];
    let (trace, said) = attached(&machine, &options, script, 8);
    let openings: Vec<&str> =
        trace.text.lines().filter(|line| line.contains(" openat(") && line.contains(machine.path("").trim_end_matches('/'))).collect();
    assert!(openings.len() >= 3, "{}", trace.text);
    // Each opening is the first one of a subshell, in which calls are counted anew.
    assert!(openings.iter().all(|line| line.ends_with("= -1 EMFILE (Too many open files) (injected)")), "{}", trace.text);
    assert_eq!(trace.conserved().lost, 0);
    let refused = said.lines().filter(|line| *line == "refused").count();
    assert_eq!(refused, openings.len(), "{said}\n{}", trace.text);
}

/// The rules end with rtrace, however it ends, and nothing of them is left.
#[test]
fn overriding_ends_with_rtrace() {
    let Some(machine) = overriding() else { return };
    for signal in [Signal::KILL, Signal::INT] {
        let _ = std::fs::remove_file(machine.path("go"));
        let script = format!(r#"{WAITING} "$workload" results 1 3 > "$dir/after"; : > "$dir/done""#);
        let _ = std::fs::remove_file(machine.path("done"));
        let mut run = start(
            &machine,
            &["-e", "getppid", "--inject", "getppid:error=EIO"],
            &["setsid", "sh", "-c", &format!("trap '' INT; {script}")],
        );
        run.wait_for_output("up\n");
        kill_process(run.pid(), signal).expect("it is ours");
        run.finish();
        machine.file("go", 0);
        wait_until("the command ends", || std::path::Path::new(&machine.path("done")).exists());
        let after = std::fs::read_to_string(machine.path("after")).expect("it was written");
        assert!(after.starts_with("results 0 0 0\n"), "{signal:?}: {after}");
    }
}

#[test]
fn a_failed_exec_and_a_clone_without_a_task_are_calls_like_others() {
    let Some(machine) = Machine::shared() else { return };
    let script = "/bin/true; echo $?";
    let failed = trace(&machine, &["-e", "execve", "--inject", "execve:error=EACCES:when=1"], &["sh", "-c", script]).succeeded();
    assert_eq!(failed.stdout, "126\n", "{}", failed.text);
    assert!(
        failed.text.contains("execve(filename: \"/bin/true\"") && failed.text.contains("-1 EACCES (Permission denied) (injected)"),
        "{}",
        failed.text
    );
    // The shell takes itself for the child, which executes the program.
    let names = "clone,clone3,fork,vfork";
    let options = ["-e", names, "--inject", &format!("{names}:retval=0:when=1")];
    let alone = trace(&machine, &options, &["sh", "-c", "/bin/echo child; exit 7"]);
    assert_eq!((alone.status, alone.stdout.as_str()), (0, "child\n"), "{}", alone.stderr);
    assert_eq!(alone.text.lines().filter(|line| line.ends_with("= 0 (injected)")).count(), 1, "{}", alone.text);
    assert_eq!(alone.conserved().lost, 0);
}

/// The caller of the kernel's function of an exit has no code behind the call.
#[test]
fn exits_are_answered_by_the_supervisor() {
    let Some(machine) = overriding() else { return };
    let refused = plain(&machine, &["--inject-by", "override", "--inject", "exit_group:error=EIO", "true"]);
    assert!(refused.status == 125 && refused.stderr.contains("the kernel's function of exit_group never returns"), "{}", refused.stderr);
    let by_seccomp = trace(&machine, &["-e", "exit_group", "--inject", "exit_group:error=EIO:when=1"], &["true"]);
    assert!(by_seccomp.stderr.contains("by a seccomp filter"), "{}", by_seccomp.stderr);
}

#[test]
fn json_marks_overridden_calls() {
    let Some(machine) = overriding() else { return };
    let options = ["--json", "-e", "getppid", "--inject-by", "override", "--inject", "getppid:retval=-5:when=2"];
    let trace = workload(&machine, &options, "results 1 3").succeeded();
    let marks = objects(&trace.text).into_iter().filter(|object| object["name"] == "getppid");
    let marks: Vec<_> = marks.map(|call| (call["injected"] == true, call["entry"] == "seen", call["duration"].is_u64())).collect();
    assert_eq!(marks, [(false, true, true), (true, true, true), (false, true, true)], "{}", trace.text);
}

#[test]
fn all_calls_can_be_overridden_at_once() {
    let Some(machine) = overriding() else { return };
    let options =
        ["-e", "!exit,!exit_group", "--inject-by", "override", "--inject", "!exit,!exit_group,!clock_gettime:error=EIO:when=1000"];
    let trace = workload(&machine, &options, "results 2 2000").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let changed: Vec<&str> = trace.text.lines().filter(|line| line.ends_with("(injected)")).collect();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(
        changed.iter().all(|line| line.contains(" getppid() ") && line.contains("= -1 EIO (Input/output error) (injected)")),
        "{changed:?}"
    );
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < *PATIENCE, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the process that answers calls for this rtrace.
fn supervisor(of: &Running) -> Option<Pid> {
    let of = of.pid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?;
    let is_it = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "rtrace-inject");
    Pid::from_raw(children.split_whitespace().find(|pid| is_it(pid))?.parse().ok()?)
}

/// Calls wait for the successor of the supervisor, and none fails with ENOSYS.
#[test]
fn calls_go_on_unchanged_when_the_supervisor_is_killed() {
    let Some(machine) = Machine::shared() else { return };
    let script = format!(r#"{WAITING} "$workload" results 2 50; "$workload" tag 7"#);
    let rules = ["--inject", "getppid:error=EIO", "--inject", "lseek:delay_enter=1000s"];
    let options = [&["--strict", "--inject-by", "seccomp", "-e", "getppid,lseek"][..], &rules].concat();
    let mut run = start(&machine, &options, &["sh", "-c", &script]);
    run.wait_for_output("up\n");
    kill_process(supervisor(&run).expect("it answers"), Signal::KILL).expect("it is rtrace's");
    machine.file("go", 0);
    let trace = run.finish();
    let sentence = "the process that answers calls (rtrace-inject) was killed: --inject changes no calls from now on";
    assert_eq!(trace.stderr.matches(sentence).count(), 1, "{}", trace.stderr);
    let results: Vec<&str> = trace.stdout.lines().filter(|line| line.starts_with("results")).collect();
    assert_eq!(results, vec![format!("results{}", " 0".repeat(50)); 2], "{}", trace.stdout);
    assert_eq!(trace.tags(), [7]);
    // The shell itself may have asked for its parent before.
    assert!(
        trace
            .text
            .lines()
            .filter(|line| line.contains(" workload/"))
            .all(|line| !line.contains("(injected)") && !line.contains("(delayed)")),
        "{}",
        trace.text
    );
    assert_eq!((trace.status, trace.conserved().lost), (124, 0), "--strict says that calls were not changed");
    assert!(trace.stderr.contains("at most 101 calls that --inject was to change were executed unchanged"), "{}", trace.stderr);
}

/// A call that waits for the end of its delay goes on, too, and so do calls after the end of rtrace.
#[test]
fn delayed_calls_go_on_when_the_supervisor_is_killed() {
    let Some(machine) = Machine::shared() else { return };
    let script =
        r#"echo up; "$workload" tag 1; echo down; while [ ! -e "$dir/go" ]; do sleep .02; done; "$workload" tag 2; : > "$dir/done""#;
    let options = ["--json", "-e", "lseek", "--inject", "lseek:delay_enter=1000s"];
    let mut run = start(&machine, &options, &["setsid", "sh", "-c", script]);
    run.wait_for_output("up\n");
    // The call of the program begins some time after this line; if it begins after the signal, it is not delayed.
    std::thread::sleep(Duration::from_millis(100));
    kill_process(supervisor(&run).expect("it answers"), Signal::KILL).expect("it is rtrace's");
    run.wait_for_output("up\ndown\n");
    let seen = supervisor(&run).expect("it has a successor");
    run.wait_for_text("the notice is written", |text| text.contains(r#""code":"not_injected""#));
    kill_process(run.pid(), Signal::KILL).expect("it is ours");
    run.finish();
    machine.file("go", 0);
    wait_until("the command ends", || std::path::Path::new(&machine.path("done")).exists());
    wait_until("the successor ends", || !std::path::Path::new(&format!("/proc/{}/fd/0", seen.as_raw_nonzero())).exists());
}

/// The call was never executed, but the program was in it when it ended.
#[test]
fn a_call_that_is_killed_while_it_waits_has_a_line() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#""$workload" tag 5 & P=$!; sleep .5; kill -9 $P; wait $P; echo $?"#;
    let delayed = trace(&machine, &["-e", "lseek", "--inject", "lseek:delay_enter=1000s"], &["sh", "-c", script]).succeeded();
    assert_eq!((delayed.stdout.as_str(), delayed.tags()), ("137\n", vec![5]), "{}", delayed.text);
    assert!(delayed.text.contains(" = ? (delayed)\n"), "{}", delayed.text);
    assert_eq!(delayed.conserved().lost, 0);
    let killed = workload(&machine, &["-e", "getppid", "--inject", "getppid:signal=KILL:when=2"], "results 1 3");
    assert_eq!((killed.status, killed.conserved().printed), (137, 2), "{}", killed.stderr);
    let results: Vec<&str> = killed
        .text
        .lines()
        .filter(|line| line.contains("getppid()"))
        .filter_map(|line| line.rsplit_once("= "))
        .map(|(_, result)| result)
        .collect();
    assert!(results.len() == 2 && results[1] == "?", "{}", killed.text);
}
