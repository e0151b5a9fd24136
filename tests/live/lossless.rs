//! `--lossless`: a command is delayed while a ring is nearly full, and its calls return as without rtrace.
//!
//! The programs make many times as many calls as the rings hold, so that calls were lost if the program did not wait.

use crate::machine::Machine;
use crate::needs::unsupported;
use crate::trace::{PATIENCE, Running, Trace, plain, shell_with_engine, start, start_workload};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The smallest rings that a test asks for. `--lossless` makes them larger.
const SMALL: [&str; 3] = ["--lossless", "-m", "64K"];
/// More calls on each of two threads than two rings of 8 MiB hold.
const CALLS: u64 = 200_000;
/// How long a program must get no CPU time to count as waiting.
const LOOK: Duration = Duration::from_millis(500);

/// Returns the directory of this process's cgroup in the hierarchy with the CPU controller, if it can have others below
/// it. Otherwise reports that the test cannot run.
fn cpu_cgroup() -> Option<PathBuf> {
    let (mounts, cgroups) =
        ["mounts", "cgroup"].map(|name| fs::read_to_string(format!("/proc/self/{name}")).expect("there is /proc")).into();
    let one = cgroups.lines().find_map(|line| line.split_once(":cpu:").or_else(|| line.split_once(":cpu,cpuacct:")).map(|(_, path)| path));
    let (kind, path) =
        one.map_or_else(|| ("cgroup2", cgroups.lines().find_map(|line| line.strip_prefix("0::"))), |path| ("cgroup", Some(path)));
    let is_it = |words: &[&str]| words[2] == kind && (kind == "cgroup2" || words[3].split(',').any(|option| option == "cpu"));
    let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| is_it(words)).map(|words| words[1].to_owned());
    let dir = mount.zip(path).map(|(mount, path)| Path::new(&mount).join(path.trim_start_matches('/')));
    let has_controller = |dir: &Path| {
        kind == "cgroup"
            || fs::read_to_string(dir.join("cgroup.controllers")).is_ok_and(|names| names.split_whitespace().any(|name| name == "cpu"))
    };
    let is_writable = |dir: &Path| rustix::fs::access(dir.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok();
    let found = dir.filter(|dir| has_controller(dir) && is_writable(dir));
    if found.is_none() {
        unsupported("no cgroup with the CPU controller that this process may change");
    }
    found
}

/// Returns the machine if it has the CPU controller.
fn machine() -> Option<Machine> {
    Machine::alone().filter(|_| cpu_cgroup().is_some())
}

/// Returns the cgroups that a run of rtrace has now.
fn groups(of: Pid) -> Vec<PathBuf> {
    let beginning = format!("rtrace_{}_", of.as_raw_nonzero());
    let entries = fs::read_dir(cpu_cgroup().expect("it was there")).expect("it can be listed").flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&beginning)))
        .collect()
}

/// Returns the child of a process that has this name.
fn child(of: Pid, name: &str) -> Option<Pid> {
    let of = of.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?;
    let is_it = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name);
    Pid::from_raw(children.split_whitespace().find(|pid| is_it(pid))?.parse().ok()?)
}

/// Returns the fields of /proc/PID/stat after the name.
fn stat(pid: Pid) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

/// Waits until a runnable program gets no CPU time any more.
fn wait_until_delayed(command: Pid) {
    let start = Instant::now();
    // utime and stime, in clock ticks.
    let used = || stat(command).map(|fields| (fields[11].clone(), fields[12].clone())).expect("the program has not ended");
    let mut before = used();
    loop {
        std::thread::sleep(LOOK);
        let now = used();
        if now == before && now != ("0".to_owned(), "0".to_owned()) {
            return;
        }
        assert!(start.elapsed() < *PATIENCE, "the program is not delayed");
        before = now;
    }
}

/// Waits until the command of a run executes, and returns its pid.
fn command_of(run: &Running, name: &str) -> Pid {
    let start = Instant::now();
    loop {
        if let Some(pid) = child(run.pid(), name) {
            return pid;
        }
        assert!(start.elapsed() < *PATIENCE, "there is no process {name}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a run, stops rtrace, and waits until the program waits.
fn stopped<'m>(machine: &'m Machine, options: &[&str], words: &str) -> (Running<'m>, Pid) {
    let run = start_workload(machine, &[&SMALL[..], options].concat(), words);
    let command = command_of(&run, "workload");
    kill_process(run.pid(), Signal::STOP).expect("it runs");
    wait_until_delayed(command);
    (run, command)
}

/// Waits for the end of a run, and checks that it lost nothing and left nothing.
fn lost_nothing(run: Running) -> Trace {
    let pid = run.pid();
    let trace = run.finish();
    assert_eq!((trace.status, trace.verdict().lost), (0, 0), "{}", trace.stderr);
    assert!(trace.verdict().adds_up(), "{}", trace.stderr);
    assert_eq!(groups(pid), [""; 0].map(PathBuf::from));
    trace
}

#[test]
fn a_command_waits_while_rtrace_is_stopped() {
    let Some(machine) = machine() else { return };
    let (run, _) = stopped(&machine, &["-e", "lseek"], &format!("calls lseek 2 {CALLS}"));
    kill_process(run.pid(), Signal::CONT).expect("it runs");
    let trace = lost_nothing(run);
    assert_eq!(trace.tags(), (1..=2 * CALLS).collect::<Vec<_>>(), "every tag once");
    let larger = "KiB a CPU instead of 64 KiB (-m)";
    assert!(trace.stderr.contains(larger), "{}", trace.stderr);
}

#[test]
fn calls_of_a_delayed_command_return_as_without_rtrace() {
    let Some(machine) = machine() else { return };
    let (run, _) = stopped(&machine, &["-e", "lseek"], &format!("waits {CALLS}"));
    kill_process(run.pid(), Signal::CONT).expect("it runs");
    let trace = lost_nothing(run);
    let waited: Vec<&str> = trace.stdout.lines().filter(|line| !line.starts_with("issued")).collect();
    assert_eq!(waited, ["epoll_wait: 0", "semtimedop: EAGAIN", "rt_sigtimedwait: EAGAIN", "recvfrom: EAGAIN"]);
}

#[test]
fn paths_of_four_kib_at_full_rate_are_not_lost() {
    let Some(machine) = machine() else { return };
    let (run, _) = stopped(&machine, &["-e", "faccessat", "--string-limit", "4096"], "calls path 2 12000");
    kill_process(run.pid(), Signal::CONT).expect("it runs");
    let trace = lost_nothing(run);
    let lines = trace.text.lines().filter(|line| line.contains(" faccessat(")).count() as u64;
    assert_eq!(trace.verdict().printed, lines);
    assert!(lines >= trace.issued("path"));
}

#[test]
fn ten_thousand_threads_that_end_at_once_lose_no_call() {
    let Some(machine) = machine() else { return };
    for options in [&["-e", "lseek"][..], &["-s"]] {
        let trace = lost_nothing(start_workload(&machine, &[&SMALL[..], options].concat(), "burst 10000 20"));
        assert!(trace.verdict().printed >= 200_000, "{}", trace.stderr);
    }
}

/// The records of more calls than the queue between the two threads holds. The reader of the output waits until the
/// test opens the other end of a pipe.
#[test]
fn a_command_waits_while_its_output_is_not_read() {
    let Some(machine) = machine() else { return };
    let gate = machine.path("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().is_ok_and(|status| status.success()));
    let output = format!("|read go <{gate}; wc -l >{}", machine.path("count"));
    let run = start_workload(&machine, &[&SMALL[..], &["-e", "lseek", "-o", &output]].concat(), "calls lseek 2 1500000");
    wait_until_delayed(command_of(&run, "workload"));
    fs::write(&gate, "go\n").expect("somebody reads");
    lost_nothing(run);
    let lines: u64 = fs::read_to_string(machine.path("count")).expect("wc wrote it").trim().parse().expect("it is a number");
    assert!(lines >= 3_000_000, "{lines}");
}

#[test]
fn the_command_is_in_a_cgroup_of_its_own_until_the_end() {
    let Some(machine) = machine() else { return };
    let own = cpu_cgroup().expect("it was there");
    let trace = lost_nothing(start(&machine, &["--lossless"], &["cat", "/proc/self/cgroup"]));
    assert!(trace.stdout.lines().any(|line| line.contains("/rtrace_") && line.ends_with("/command")), "{}", trace.stdout);
    assert!(own.exists());
}

/// A command that continues untraced is moved back.
#[test]
fn a_command_that_continues_untraced_leaves_the_cgroup() {
    let Some(machine) = machine() else { return };
    let script = "while [ $(grep -c rtrace_ /proc/self/cgroup) -gt 0 ]; do sleep 0.01; done; echo free";
    let run = start(&machine, &["--lossless", "--max-events", "5"], &["sh", "-c", script]);
    let pid = run.pid();
    let trace = run.finish().succeeded();
    assert_eq!((trace.stdout.as_str(), groups(pid).len()), ("free\n", 0), "{}", trace.stderr);
}

#[test]
fn a_delayed_command_runs_on_when_rtrace_is_killed() {
    let Some(machine) = machine() else { return };
    let (run, command) = stopped(&machine, &["-e", "lseek"], &format!("calls lseek 2 {CALLS}"));
    let pid = run.pid();
    assert_eq!(groups(pid).len(), 1);
    kill_process(pid, Signal::KILL).expect("it runs");
    let trace = wait_for_end_of(command, run);
    assert_eq!(trace.stdout, format!("issued lseek {}\n", 2 * CALLS));
    wait_until("the cgroup is removed", || groups(pid).is_empty());
}

/// Both processes of rtrace are killed at once, so nobody is left who lifts the limit.
#[test]
fn the_next_run_frees_a_command_that_nobody_delays_any_more() {
    let Some(machine) = machine() else { return };
    let (run, command) = stopped(&machine, &["-e", "lseek"], &format!("calls lseek 2 {CALLS}"));
    let pid = run.pid();
    let watcher = child(pid, "rtrace-throttle").expect("it watches the rings");
    for one in [watcher, pid] {
        kill_process(one, Signal::KILL).expect("it runs");
        wait_until("it has ended", || stat(one).is_none_or(|fields| fields[0] == "Z"));
    }
    assert_eq!(groups(pid).len(), 1, "it is left");
    assert_eq!(plain(&machine, &["-o", &machine.path("next"), "--", "true"]).status, 0);
    let trace = wait_for_end_of(command, run);
    assert_eq!(trace.stdout, format!("issued lseek {}\n", 2 * CALLS));
    wait_until("the cgroup is removed", || groups(pid).is_empty());
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < *PATIENCE, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the command has ended, which outlives its rtrace.
fn wait_for_end_of(command: Pid, run: Running) -> Trace {
    wait_until("the command ends", || stat(command).is_none_or(|fields| fields[0] == "Z"));
    run.finish()
}

/// The test moves the command out of its cgroup, so that it is not delayed.
#[test]
fn losses_in_spite_of_the_option_are_an_error() {
    let Some(machine) = machine() else { return };
    let own = cpu_cgroup().expect("it was there");
    let script = format!("echo $$ >{}/cgroup.procs; exec $workload calls lseek 2 1000000", own.display());
    let run = start(&machine, &[&SMALL[..], &["-e", "lseek", "-o", "/dev/null"]].concat(), &["sh", "-c", &script]);
    let command = command_of(&run, "workload");
    kill_process(run.pid(), Signal::STOP).expect("it runs");
    // The program is not delayed, so it ends.
    wait_until("the command ends", || stat(command).is_none_or(|fields| fields[0] == "Z"));
    kill_process(run.pid(), Signal::CONT).expect("it runs");
    let pid = run.pid();
    let trace = run.finish();
    let verdict = trace.verdict();
    assert!(verdict.lost > 0 && verdict.adds_up(), "{}", trace.stderr);
    assert_eq!(trace.status, 124);
    assert!(trace.stderr.contains(" records were lost in spite of --lossless"), "{}", trace.stderr);
    assert!(trace.stderr.contains("tasks of the command ran on although they were to wait"), "{}", trace.stderr);
    assert_eq!(groups(pid), [""; 0].map(PathBuf::from));
}

#[test]
fn tasks_that_rtrace_does_not_start_are_refused() {
    let Some(machine) = Machine::shared() else { return };
    let pid = std::process::id().to_string();
    for options in [&["-p", &pid][..], &["-t", &pid], &["-u", "root"], &["-G", "x"], &["-C", "0"], &["-a"], &["-a", "true"], &[]] {
        let refused = plain(&machine, &[&["--lossless"], options].concat());
        assert_ne!(refused.status, 0);
        let why = refused.stderr.trim_end();
        assert!(why.starts_with("rtrace: --lossless delays a command, and ") && why.lines().count() == 1, "{why}");
    }
    let realtime = shell_with_engine(&machine, r#"chrt -f 1 "$rtrace" --lossless $engine true 2>&1 || true"#);
    if !realtime.text.contains("failed to set") {
        assert!(realtime.text.starts_with("rtrace: --lossless: the command would inherit rtrace's real-time policy"), "{}", realtime.text);
    }
}
