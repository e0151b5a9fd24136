//! Signals at any moment. After SIGKILL, the kernel removes everything that rtrace created; after other signals, rtrace
//! writes what it has. The traced process continues in either case.
//!
//! `RTRACE_TEST_KILLS` is the number of signals that each test sends.

use crate::line;
use crate::machine::{self, Machine};
use crate::trace::{PATIENCE, Trace, workload};
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: u32 = 2_000;

/// Returns how often a test sends a signal.
fn times(usual: u32) -> u32 {
    std::env::var("RTRACE_TEST_KILLS").map_or(usual, |times| times.parse().expect("RTRACE_TEST_KILLS is a number"))
}

/// Returns moments that are spread evenly up to the last one, in an order that does not follow time: multiples of the
/// golden ratio.
fn moment(i: u32, last: Duration) -> Duration {
    last.mul_f64((f64::from(i) * 0.618_034).fract())
}

/// Returns how long a run takes here that nothing disturbs.
fn undisturbed(machine: &Machine) -> Duration {
    let start = Instant::now();
    workload(machine, &["-o", "/dev/null"], &format!("calls lseek 1 {CALLS}")).succeeded();
    start.elapsed()
}

/// The remains of a run whose rtrace got a signal.
struct Left {
    /// The output of the command.
    output: String,
    /// The messages of rtrace, and its lines.
    said: String,
    lines: String,
}

/// Sends a signal to rtrace after this time, and waits for the command, which ignores all signals but SIGKILL.
fn signalled(machine: &Machine, signal: Signal, i: u32, after: Duration) -> Left {
    let [output, said, lines] = ["out", "said", "lines"].map(|name| machine.path(&format!("{name}{i}")));
    let create = |path: &str| File::create(path).expect("the test's directory is writable");
    create(&lines);
    let command = format!("trap '' INT TERM HUP QUIT; exec {} calls lseek 1 {CALLS}", machine::workload());
    let mut rtrace = Command::new(machine::rtrace())
        .args(["-v", "--engine", machine::engine(), "-o", &lines, "--", "sh", "-c", &command])
        .stdin(Stdio::null())
        .stdout(create(&output))
        .stderr(create(&said))
        .process_group(0)
        .spawn()
        .expect("rtrace starts");
    let pid = Pid::from_child(&rtrace);
    std::thread::sleep(after);
    // If it has ended by itself, its number is still in use, because no process has waited for it.
    kill_process(pid, signal).expect("it is ours");
    rtrace.wait().expect("it is ours");
    let start = Instant::now();
    while test_kill_process_group(pid).is_ok() {
        assert!(start.elapsed() < *PATIENCE, "{i}: the command hangs after {after:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
    let take = |path: String| {
        let text = std::fs::read_to_string(&path).expect("it was created");
        std::fs::remove_file(path).expect("it is ours");
        text
    };
    Left { output: take(output), said: take(said), lines: take(lines) }
}

/// Sends signals at moments from before the start of rtrace to after its end; `check` examines what each run leaves.
fn at_any_moment(machine: &Machine, times: u32, signals: &[Signal], check: impl Fn(u32, &Left)) {
    let whole = format!("issued lseek {CALLS}\n");
    let mut last = Duration::ZERO;
    let mut finished = 0;
    for i in 0..times {
        if i % 20 == 0 {
            // The speed of the machine changes, so the last moment is chosen again: after the ends of most runs.
            last = undisturbed(machine).mul_f64(1.5);
        }
        let after = moment(i, last);
        let left = signalled(machine, signals[i as usize % signals.len()], i, after);
        assert!(left.output.is_empty() || left.output == whole, "{i}: after {after:?}, the command wrote {:?}", left.output);
        check(i, &left);
        finished += u32::from(!left.output.is_empty());
    }
    assert!((1..times).contains(&finished), "{finished} of {times} commands were started: the moments are badly chosen");
}

#[test]
fn sigkill_at_any_moment_leaves_nothing_and_does_not_harm_the_target() {
    let Some(machine) = Machine::shared() else { return };
    at_any_moment(&machine, times(60), &[Signal::KILL], |_, _| {});
    #[cfg(feature = "bpf")]
    left::nothing();
}

/// Before rtrace blocks signals, they have their default effect: rtrace then has printed and written nothing.
#[test]
fn other_signals_at_any_moment_truncate_nothing_and_do_not_harm_the_target() {
    let Some(machine) = Machine::shared() else { return };
    at_any_moment(&machine, times(24), &[Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT], |i, left| {
        assert!(left.lines.is_empty() || left.lines.ends_with('\n'), "{i}: {:?}", left.lines.lines().next_back());
        if !left.said.contains(" calls issued, ") {
            assert!(left.lines.is_empty(), "{i}: no verdict, but lines: {}\n{}", left.said, left.lines);
            return;
        }
        let trace = Trace { text: left.lines.clone(), stderr: left.said.clone(), ..Trace::default() };
        let verdict = trace.verdict();
        assert!(verdict.adds_up() && !left.said.contains("does not add up"), "{i}: {}", left.said);
        assert_eq!(line::calls(&trace.lines()).len() as u64, verdict.printed, "{i}: {}", left.said);
    });
    #[cfg(feature = "bpf")]
    left::nothing();
}

#[cfg(feature = "bpf")]
mod left {
    use crate::needs::unsupported;
    use crate::trace::PATIENCE;
    use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    const PROGRAMS: [&str; 7] = ["enter", "leave", "enter_event", "leave_event", "forked", "executed", "ended"];
    const MAPS: [&str; 3] = ["tasks", "scratches", "seeds"];

    /// Waits until the kernel has no program or map of rtrace's without a living process that holds it. (Other traces
    /// may run at this moment.)
    pub fn nothing() {
        // PROC_PID_INIT_INO in include/linux/proc_ns.h
        if std::fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() != "pid:[4026531836]") {
            return unsupported(
                "in a pid namespace it cannot be seen who else holds BPF programs, so it was not tested whether some were left",
            );
        }
        let start = Instant::now();
        let (mut programs, mut maps) = unowned();
        // Other traces of this machine end at any moment, so only what was there at the beginning counts.
        while !(programs.is_empty() && maps.is_empty()) {
            assert!(start.elapsed() < *PATIENCE, "the kernel still has the programs {programs:?} and the maps {maps:?}");
            std::thread::sleep(Duration::from_millis(50));
            let now = unowned();
            programs.retain(|id| now.0.contains(id));
            maps.retain(|id| now.1.contains(id));
        }
    }

    /// Returns the IDs of the programs and maps with names of rtrace's that no process holds.
    fn unowned() -> (HashSet<u32>, HashSet<u32>) {
        let mut programs: HashSet<u32> = ProgInfoIter::default().filter(|p| PROGRAMS.iter().any(|n| p.name == *n)).map(|p| p.id).collect();
        let mut maps: HashSet<u32> = MapInfoIter::default().filter(|m| MAPS.iter().any(|n| m.name == *n)).map(|m| m.id).collect();
        held(|line| {
            let id = |key| line.strip_prefix(key).and_then(|id: &str| id.trim().parse::<u32>().ok());
            id("prog_id:").map(|id| programs.remove(&id));
            id("map_id:").map(|id| maps.remove(&id));
        });
        (programs, maps)
    }

    /// Returns the lines of /proc/PID/fdinfo/FD of all processes.
    fn held(mut line: impl FnMut(&str)) {
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            for info in std::fs::read_dir(process.path().join("fdinfo")).into_iter().flatten().flatten() {
                std::fs::read_to_string(info.path()).unwrap_or_default().lines().for_each(&mut line);
            }
        }
    }
}
