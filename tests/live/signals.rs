//! Signals with number, code, sender and value, as strace shows them, also where the kernel reports only that a process
//! was killed.

use crate::compiled::compiled;
use crate::line::{self, What};
use crate::machine::{self, Machine};
use crate::trace::{Trace, shell_with_engine, start_workload, trace, workload};
use rustix::process::{Pid, Signal, kill_process};

/// Returns the text between the dashes, by the task that got the signal.
fn signals(trace: &Trace) -> Vec<(i32, String)> {
    let text = |line: &line::Line| Some(line.text.split_once("--- ")?.1.strip_suffix(" ---")?.to_owned());
    trace.lines().iter().filter_map(|line| Some((line.tid, text(line)?))).collect()
}

fn ends(trace: &Trace) -> Vec<(i32, String)> {
    let end = |line: line::Line| if let What::Ended(how) = line.what { Some((line.tid, how)) } else { None };
    trace.lines().into_iter().filter_map(end).collect()
}

/// Only BPF programs read the complete siginfo_t; the tracepoints have its first three members.
fn is_whole() -> bool {
    machine::engine() == "bpf"
}

/// Returns `si_pid` of a sender, and its user if that is known.
fn sender(pid: i32, comm: &str) -> String {
    let user = if is_whole() { ", si_uid=0" } else { "" };
    format!("si_pid={pid} ({comm}){user}")
}

/// Returns the siginfo of a child that ended.
fn is_of_child(signal: &str) -> bool {
    signal.starts_with("SIGCHLD ")
}

/// The shell prints how its child ended, which wait(2) reports.
#[test]
fn the_end_by_a_signal_says_whether_a_core_was_dumped() {
    let Some(machine) = Machine::shared() else { return };
    for limit in ["0", "unlimited"] {
        let script = format!(r#"cd "$dir"; (ulimit -c {limit}) 2> /dev/null && ulimit -c {limit}; sh -c 'kill -SEGV $$'; :"#);
        let trace = trace(&machine, &["--signals", "-e", "kill"], &["sh", "-c", &script]).succeeded();
        // Without BPF, rtrace knows the kernel's exit code only of the command itself.
        let dumped = if trace.stderr.contains("core dumped") && is_whole() { " (core dumped)" } else { "" };
        let killed: Vec<String> = ends(&trace).into_iter().map(|(_, how)| how).filter(|how| how.starts_with("killed")).collect();
        assert_eq!(killed, [format!("killed by SIGSEGV{dumped}")], "{limit}: {}\n{}", trace.text, trace.stderr);
    }
}

#[test]
fn a_fatal_signal_is_shown_as_the_one_that_was_sent() {
    let Some(machine) = Machine::shared() else { return };
    for name in ["TERM", "HUP", "USR1", "PIPE", "ALRM", "KILL", "ABRT", "RTMIN+5"] {
        let script = format!("sleep 30 & P=$!; sleep .1; kill -{name} $P; wait");
        let trace = trace(&machine, &["--signals", "-e", "kill"], &["sh", "-c", &script]);
        let shell = line::calls(&trace.lines()).first().map_or(0, |(line, _)| line.tid);
        let killed: Vec<_> = signals(&trace).into_iter().filter(|(_, signal)| !is_of_child(signal)).collect();
        let shown = if name == "RTMIN+5" { "SIGRT_7".to_owned() } else { format!("SIG{name}") };
        let [(sleep, signal)] = &killed[..] else { panic!("{name}: {killed:?}\n{}", trace.text) };
        assert_eq!(*signal, format!("{shown} {{si_signo={shown}, si_code=SI_USER, {}}}", sender(shell, "sh")), "{}", trace.text);
        // Whether SIGABRT dumps a core depends on the limits and on the machine.
        let how = ends(&trace).into_iter().find(|(tid, _)| tid == sleep).map(|(_, how)| how.replace(" (core dumped)", ""));
        assert_eq!(how, Some(format!("killed by {shown}")), "{}", trace.text);
        let lines: Vec<String> = trace.text.lines().map(str::to_owned).collect();
        let place = |what: &str| lines.iter().position(|line| line.contains(what));
        assert!(place("--- SIG") < place("+++ killed by"), "{}", trace.text);
    }
}

#[test]
fn signals_are_shown_unless_no_signals_is_given() {
    let Some(machine) = Machine::shared() else { return };
    let script = "trap : USR1; kill -USR1 $$";
    let count = |options: &[&str]| signals(&trace(&machine, options, &["sh", "-c", script]).succeeded()).len();
    assert_eq!([count(&[]), count(&["-e", "lseek"]), count(&["--signals"])], [1; 3]);
    assert_eq!([count(&["--no-signals"]), count(&["-e", "sched:sched_process_exec"])], [0; 2]);
    assert_eq!(count(&["-e", "sched:sched_process_exec", "--signals"]), 1);
}

/// Records of tracepoints do not have the stack pointer, at which the mask is found.
#[test]
fn the_end_of_a_handler_shows_the_restored_mask() {
    let Some(machine) = Machine::shared() else { return };
    let command = ["env", "--block-signal=HUP,TERM", "sh", "-c", "trap : USR1; kill -USR1 $$"];
    let trace = trace(&machine, &["-e", "rt_sigreturn,kill"], &command).succeeded();
    let shown: Vec<_> = line::calls(&trace.lines())
        .into_iter()
        .filter(|(_, call)| call.name == "rt_sigreturn")
        .map(|(_, call)| call.args.clone())
        .collect();
    let expected = if is_whole() { "frame: {.mask: [HUP, TERM]}" } else { "" };
    assert_eq!(shown, [expected], "{}", trace.text);
}

#[test]
fn signals_are_shown_for_tasks_with_selected_calls() {
    let Some(machine) = Machine::shared() else { return };
    let script = "trap : USR1; kill -USR1 $$; kill -0 $$";
    let count = |options: &[&str]| signals(&trace(&machine, options, &["sh", "-c", script]).succeeded()).len();
    let none = [["--filter", "comm == nobody"], ["--path", "/nowhere"], ["--duration", "1h"]];
    assert_eq!(none.map(|options| count(&options)), [0; 3]);
    assert_eq!(none.map(|[option, value]| count(&[option, value, "--signals"])), [1; 3]);
    assert_eq!(count(&["-e", "kill", "--filter", "sig == USR1"]), 1);
    let all = trace(&machine, &["-a", "--filter", "comm == nobody"], &["sh", "-c", script]).succeeded();
    assert!(signals(&all).is_empty(), "{}", all.text);
}

#[test]
fn faults_have_their_address() {
    let Some(machine) = Machine::shared() else { return };
    let address = if is_whole() { ", si_addr=0x1234" } else { "" };
    // With the calls of the program, with no call, and beside another event.
    for options in [&["-e", "lseek"][..], &["--no-syscalls", "--signals"], &["-e", "sched:sched_process_exit", "--signals"]] {
        let trace = workload(&machine, options, "signals fault");
        assert_eq!(trace.status, 128 + libc::SIGSEGV, "{}", trace.text);
        let shown: Vec<String> = signals(&trace).into_iter().map(|(_, signal)| signal).collect();
        assert_eq!(shown, [format!("SIGSEGV {{si_signo=SIGSEGV, si_code=SEGV_MAPERR{address}}}")], "{options:?}: {}", trace.text);
        assert!(ends(&trace).iter().any(|(_, how)| how.starts_with("killed by SIGSEGV")), "{options:?}: {}", trace.text);
    }
}

/// The stack of a signal is the place that the program was at, live and in a recording, in every style.
#[test]
fn signals_have_the_stack_at_which_they_were_delivered() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O1"], "crashes.c", "crashes") else { return };
    let frames = |text: &str| {
        let mut of: Vec<(String, Vec<String>)> = Vec::new();
        for line in text.lines() {
            match line.split_once("--- ") {
                Some((_, signal)) => of.push((signal.split(' ').next().unwrap_or_default().to_owned(), Vec::new())),
                // strace has ` > FILE(FUNCTION+OFFSET)`, perf `FUNCTION (FILE)`.
                None if line.starts_with(' ') && !line.contains("): crashes/") => {
                    let name = line.split_once('(').map_or("", |(before, after)| if line.starts_with(" > ") { after } else { before });
                    let name = name.split('+').next().unwrap_or_default().trim().to_owned();
                    of.last_mut().expect("the only calls are none").1.push(name);
                }
                None => {}
            }
        }
        of
    };
    let check = |text: &str| {
        let found = frames(text);
        let [(user, at_user), (fault, at_fault)] = &found[..] else { panic!("{text}") };
        assert_eq!((user.as_str(), fault.as_str()), ("SIGUSR1", "SIGSEGV"), "{text}");
        assert_eq!(at_fault[..2], ["crashes", "main"], "{text}");
        let handles = at_user.iter().position(|name| name == "handles");
        assert!(handles.is_some_and(|at| at_user[at + 1] == "main"), "{text}");
    };
    // No call of the program is one of these.
    let live = trace(&machine, &["--call-graph", "dwarf", "-e", "lseek"], &[&program]);
    check(&live.text);
    check(&trace(&machine, &["--call-graph", "dwarf", "-e", "lseek", "--style", "strace"], &[&program]).text);
    let words = format!(
        "cd {}; $rtrace record $engine -q --call-graph dwarf -e lseek -o data {program} 2>/dev/null; $rtrace -q -i data -o -",
        machine.dir().display()
    );
    check(&shell_with_engine(&machine, &words).text);
    let objects = trace(&machine, &["--call-graph", "dwarf", "-e", "lseek", "--json"], &[&program]);
    let fault = objects.text.lines().find(|line| line.contains(r#""name":"SIGSEGV"},"fate""#)).expect("there is an object");
    assert!(fault.contains(r#""stack":[{"#) && fault.contains(r#""function":"crashes","offset":"#), "{fault}");
}

#[test]
fn sigpipe_has_the_writer_as_its_sender() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "signals pipe");
    assert_eq!(trace.status, 128 + libc::SIGPIPE, "{}", trace.text);
    let signals = signals(&trace);
    let [(tid, signal)] = &signals[..] else { panic!("{}", trace.text) };
    assert_eq!(*signal, format!("SIGPIPE {{si_signo=SIGPIPE, si_code=SI_USER, {}}}", sender(*tid, "workload")));
}

#[test]
fn sigchld_says_how_the_child_ended() {
    let Some(machine) = Machine::shared() else { return };
    let trace = trace(&machine, &["-e", "lseek"], &["sh", "-c", "(exit 3); sh -c 'kill -TERM $$'; :"]).succeeded();
    let of_children: Vec<String> = signals(&trace).into_iter().map(|(_, signal)| signal).filter(|signal| is_of_child(signal)).collect();
    assert_eq!(of_children.len(), 2, "{}", trace.text);
    let (exited, killed) = (&of_children[0], &of_children[1]);
    assert!(exited.contains("si_code=CLD_EXITED") && killed.contains("si_code=CLD_KILLED"), "{of_children:?}");
    if is_whole() {
        assert!(
            exited.ends_with(" (sh), si_uid=0, si_status=3}") && killed.ends_with(" (sh), si_uid=0, si_status=SIGTERM}"),
            "{of_children:?}"
        );
    }
}

#[test]
fn a_sender_that_is_not_traced_is_named() {
    let Some(machine) = Machine::shared() else { return };
    let mut run = start_workload(&machine, &["-e", "lseek"], "signals wait");
    run.wait_for_output("up\n");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.pid().as_raw_nonzero())).expect("it runs");
    let pid: i32 = children.split_whitespace().next().expect("rtrace has its command").parse().expect("a number");
    let me = std::process::id() as i32;
    let comm = std::fs::read_to_string("/proc/thread-self/comm").expect("every thread has a name");
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::HUP).expect("it runs");
    let trace = run.finish();
    assert_eq!(trace.status, 128 + libc::SIGHUP);
    assert_eq!(
        signals(&trace),
        [(pid, format!("SIGHUP {{si_signo=SIGHUP, si_code=SI_USER, {}}}", sender(me, comm.trim_end())))],
        "{}",
        trace.text
    );
    assert_eq!(ends(&trace), [(pid, "killed by SIGHUP".to_owned())]);
}

#[test]
fn a_signal_from_one_thread_to_another_names_both() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "signals thread").succeeded();
    let signals = signals(&trace);
    let [(tid, signal)] = &signals[..] else { panic!("{}", trace.text) };
    assert_eq!(*signal, format!("SIGUSR1 {{si_signo=SIGUSR1, si_code=SI_TKILL, {}}}", sender(*tid, "workload")));
}

#[test]
fn queued_signals_have_a_value() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "signals queue").succeeded();
    let signals = signals(&trace);
    let [(tid, signal)] = &signals[..] else { panic!("{}", trace.text) };
    let value = if is_whole() { ", si_int=42, si_ptr=0x2a" } else { "" };
    let number = libc::SIGRTMIN() + 1 - 32;
    assert_eq!(*signal, format!("SIGRT_{number} {{si_signo=SIGRT_{number}, si_code=SI_QUEUE, {}{value}}}", sender(*tid, "workload")));
}

#[test]
fn timers_have_no_sender() {
    let Some(machine) = Machine::shared() else { return };
    let only = |scene: &str| {
        let trace = workload(&machine, &["-e", "lseek"], scene).succeeded();
        let signals = signals(&trace);
        let [(_, signal)] = &signals[..] else { panic!("{}", trace.text) };
        signal.clone()
    };
    let members = if is_whole() { ", si_timerid=0, si_overrun=0, si_int=7, si_ptr=0x7" } else { "" };
    assert_eq!(only("signals timer"), format!("SIGALRM {{si_signo=SIGALRM, si_code=SI_TIMER{members}}}"));
    assert_eq!(only("signals alarm"), "SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL}");
}

/// The kernel sends a SIGKILL to each thread.
#[test]
fn a_process_of_many_threads_is_killed_once() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "signals many");
    let shown = signals(&trace);
    let [(_, signal)] = &shown[..] else { panic!("{}", trace.text) };
    assert!(signal.starts_with("SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid="), "{signal}");
    let ends = ends(&trace);
    assert_eq!(ends.len(), 4, "{}", trace.text);
    assert!(ends.iter().all(|(_, how)| how == "killed by SIGTERM"), "{ends:?}");
}

/// exit_group and execve end threads by a SIGKILL without a sender.
#[test]
fn ends_without_a_signal_show_none() {
    let Some(machine) = Machine::shared() else { return };
    for words in ["exec thread", "calls lseek 4 50", "exit 7"] {
        let trace = workload(&machine, &["-e", "lseek"], words);
        assert_eq!(signals(&trace), [], "{words}\n{}", trace.text);
    }
}

#[test]
fn ignored_signals_are_shown_as_strace_shows_them() {
    let Some(machine) = Machine::shared() else { return };
    let trace = trace(&machine, &["-e", "lseek"], &["sh", "-c", "trap '' USR2; kill -USR2 $$; kill -WINCH $$; (exit 0); :"]).succeeded();
    let names: Vec<String> = signals(&trace).iter().map(|(_, signal)| signal.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(names, ["SIGUSR2", "SIGWINCH", "SIGCHLD"], "{}", trace.text);
}

/// The kernel puts ENOSYS in the place of a result before each call. Only the BPF programs see that the task is killed.
#[test]
fn a_call_that_is_skipped_because_its_task_is_killed_has_no_result() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "getppid"], "signals skipped").succeeded();
    let lines = trace.lines();
    let [(line, call)] = &line::calls(&lines)[..] else { panic!("{}", trace.text) };
    let result = if is_whole() { line::Result::Never } else { line::Result::Returned("-1 ENOSYS (Function not implemented)".to_owned()) };
    assert_eq!((&line.time, &call.result), (&None, &result), "{}", trace.text);
    assert!(ends(&trace).contains(&(line.tid, "killed by SIGKILL".to_owned())), "{}", trace.text);
}
