//! Options that users of strace and perf trace type, the answers that they get, and `--path`.

use crate::machine::{self, Machine};
use crate::trace::{plain, shell, trace};

/// Returns the words of a command line with the option for the engine under test.
fn run(machine: &Machine, words: &[&str]) -> crate::trace::Trace {
    let engine = machine::engine_asked_for();
    let engine: Vec<&str> = engine.iter().flat_map(|engine| ["--engine", engine]).collect();
    plain(machine, &[&engine[..], words].concat())
}

#[test]
fn letters_of_strace_are_answered_by_one_line_with_the_option_of_rtrace() {
    let Some(machine) = Machine::shared() else { return };
    for (typed, said) in [
        ("-c true", "-c is strace's summary; write -s (with the lines: -S)"),
        ("-s 200 true", "-s is the summary here and takes no number; strace's -s N is --string-limit N"),
        ("-fZ true", "strace's -Z shows calls that failed; write --failure"),
        ("-P /etc/passwd true", "-P is strace's; write --path FILE: calls that name it or have a descriptor open on it"),
        ("-ff -o out true", "strace's -ff writes a file for each process; write --output-separately (children are always followed)"),
        ("-e none true", "-e none is strace's; write --no-syscalls"),
        ("--sumary true", "there is no option --sumary; similar: --summary (`rtrace --help` shows all)"),
        ("-j true", "there is no option -j (`rtrace --help` shows all)"),
    ] {
        let words: Vec<&str> = typed.split(' ').collect();
        let run = plain(&machine, &words);
        assert_eq!((run.status, run.stderr.as_str(), run.stdout.as_str()), (125, format!("rtrace: {said}\n").as_str(), ""), "{typed}");
    }
}

#[test]
fn letters_of_strace_for_what_rtrace_always_does_are_accepted() {
    let Some(machine) = Machine::shared() else { return };
    let run = run(&machine, &["-f", "-y", "-yy", "-e", "execve", "true"]);
    assert_eq!(run.status, 0);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains(" execve(") && lines[1].ends_with("+++ exited with 0 +++"), "{}", run.stderr);
}

#[test]
fn a_command_beside_a_target_is_reported_as_the_timer() {
    let Some(machine) = Machine::shared() else { return };
    // Lines of calls that other processes make meanwhile do not begin like notices.
    let user = run(&machine, &["-q", "-o", "/dev/null", "-u", "root", "-e", "getpgid", "sleep", "0.01"]);
    assert_eq!((user.status, user.stderr.as_str()), (0, ""));
    let user = run(&machine, &["-o", "/dev/null", "-u", "root", "-e", "getpgid", "sleep", "0.01"]);
    let note = "rtrace: `sleep` only sets how long root's processes are traced; to trace it as root: rtrace --run-as root sleep 0.01\n";
    assert!(user.status == 0 && user.stderr.starts_with(note), "{}", user.stderr);
    let pid = std::process::id().to_string();
    let process = run(&machine, &["-p", &pid, "-e", "getpgid", "sleep", "0.01"]);
    let note = "rtrace: `sleep` only sets how long the trace lasts; to trace it, leave -p out: rtrace sleep 0.01\n";
    assert!(process.status == 0 && process.stderr.starts_with(note), "{}", process.stderr);
}

/// `--path` selects calls by descriptor and by name. Calls that open, read and close another file are not shown.
#[test]
fn path_selects_calls_by_name_and_by_descriptor() {
    let Some(machine) = Machine::shared() else { return };
    let (one, other) = (machine.file("one", 10), machine.file("other", 10));
    let command = ["head", "-c", "4", one.as_str(), other.as_str()];
    let trace = |path: &str| trace(&machine, &["--path", path], &command).succeeded();
    let without_names = "rtrace: --path finds hardly anything here, because path names are not known without BPF (-v says why)";
    if trace(&one).stderr.contains(without_names) {
        assert_eq!(machine::engine(), "tracepoint");
        return;
    }
    let names = |trace: &crate::trace::Trace| -> Vec<String> {
        crate::line::calls(&trace.lines()).iter().map(|(_, call)| call.name.clone()).collect()
    };
    let of_one = trace(&one);
    assert_eq!(of_one.conserved().lost, 0);
    for name in ["openat", "read", "close"] {
        assert!(names(&of_one).contains(&name.to_owned()), "no {name}: {}", of_one.text);
    }
    let shown: Vec<_> = of_one.lines().into_iter().filter(|line| line.call().is_some_and(|call| call.name != "execve")).collect();
    assert!(shown.iter().all(|line| line.text.contains(&one) && !line.text.contains(&other)), "{}", of_one.text);
    let of_both = trace(&machine.path("o*"));
    assert!(of_both.text.contains(&one) && of_both.text.contains(&other), "{}", of_both.text);
    assert!(!of_both.text.contains("libc.so"), "{}", of_both.text);
}

/// A call that fails on a path has no descriptor, so only the name selects it.
#[cfg(feature = "bpf")]
#[test]
fn path_selects_failed_calls_too() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let run = trace(&machine, &["--engine", "bpf", "--path", "/nonexistent/*"], &["sh", "-c", "cat /nonexistent/x /etc/hostname; true"]);
    let calls = run.lines();
    let calls = crate::line::calls(&calls);
    assert!(!calls.is_empty() && calls.iter().all(|(_, call)| call.args.contains("/nonexistent/x")), "{}", run.text);
}

#[test]
fn quiet_leaves_out_exit_lines_and_notices() {
    let Some(machine) = Machine::shared() else { return };
    let quiet = run(&machine, &["-q", "--no-signals", "-e", "execve", "sh", "-c", "(true); sleep 0.05 & exit 3"]);
    assert_eq!(quiet.status, 3);
    assert!(!quiet.stderr.is_empty() && quiet.stderr.lines().all(|line| line.contains(" execve(")), "{}", quiet.stderr);
    let nothing = run(&machine, &["--quiet", "-e", "getpgid,umount", "true"]);
    assert_eq!((nothing.status, nothing.stderr.as_str()), (0, ""));
}

/// The shell makes no selected call, and its child makes one.
#[test]
fn a_process_without_shown_calls_has_no_exit_line() {
    let Some(machine) = Machine::shared() else { return };
    let ends = |text: &str| -> Vec<String> {
        let ends = text.lines().filter(|line| line.contains("+++"));
        ends.map(|line| line[line.find("): ").expect("a head") + 3..].split('/').next().unwrap_or_default().to_owned()).collect()
    };
    let script = ["sh", "-c", "cat /dev/null; mkdir /proc/no; true"];
    let limited = trace(&machine, &["-e", "mkdir,mkdirat"], &script).succeeded();
    assert_eq!(ends(&limited.text), ["mkdir"], "{}", limited.text);
    let filtered = trace(&machine, &["--filter", "comm == \"mkdir\" && mode == 0777"], &script).succeeded();
    assert_eq!(ends(&filtered.text), ["mkdir"], "{}", filtered.text);
    let asked = trace(&machine, &["-e", "mkdir,mkdirat,exit_group"], &script).succeeded();
    assert_eq!(ends(&asked.text), ["cat", "mkdir", "sh"], "{}", asked.text);
    let all = trace(&machine, &[], &script).succeeded();
    assert_eq!(ends(&all.text), ["cat", "mkdir", "sh"], "{}", all.text);
    let killed = trace(&machine, &["-e", "mkdir,mkdirat"], &["sh", "-c", "kill -9 $$"]);
    assert!(killed.text.contains("+++ killed by SIGKILL +++"), "{}", killed.text);
}

#[test]
fn path_names_that_fall_back_to_addresses_are_reported_in_one_line() {
    let Some(machine) = Machine::shared() else { return };
    let said = |text: &str| text.lines().filter(|line| line.contains("printed as addresses")).map(str::to_owned).collect::<Vec<_>>();
    let cpus = plain(&machine, &["-C", "0", "-e", "getpgid", "sleep", "0.01"]);
    let [line] = &said(&cpus.stderr)[..] else { panic!("{}", cpus.stderr) };
    assert!(
        line.starts_with("rtrace: ")
            && line.ends_with("because -C excludes the BPF engine; to trace with BPF, replace -C by -a --filter 'cpu == 0'"),
        "{line}"
    );
    let asked = plain(&machine, &["--engine", "tracepoint", "-e", "getpgid", "true"]);
    assert_eq!(said(&asked.stderr), [""; 0], "it was asked for");
    let script = "setpriv --bounding-set -sys_admin,-bpf --inh-caps -sys_admin,-bpf $rtrace -e getpgid true";
    let without = shell(&machine, script);
    if without.status == 0 && machine::engine() == "bpf" {
        let [line] = &said(&without.stderr)[..] else { panic!("{}", without.stderr) };
        let why = "because BPF programs may not be loaded: this is root without CAP_BPF: start the container with `--cap-add SYS_ADMIN`";
        assert!(line.contains(why), "{line}");
    }
}
