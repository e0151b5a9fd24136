//! SIGKILL at any moment: the kernel takes down what rtrace made, and whom it traced runs on.

use crate::machine::{self, Machine};
use crate::trace::workload;
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TIMES: u32 = 200;
const CALLS: u32 = 2_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Moments spread evenly up to the last, in an order that does not follow time: multiples of the golden section.
fn moment(i: u32, last: Duration) -> Duration {
    last.mul_f64((f64::from(i) * 0.618_034).fract())
}

/// So long takes a run here that nobody disturbs.
fn undisturbed(machine: &Machine) -> Duration {
    let start = Instant::now();
    workload(machine, &["-o", "/dev/null"], &format!("calls lseek 1 {CALLS}")).succeeded();
    start.elapsed()
}

/// What a command left in its output whose tracer was killed after so long.
fn killed(machine: &Machine, i: u32, after: Duration) -> String {
    let path = machine.path(&format!("out{i}"));
    let stdout = File::create(&path).expect("the test's directory is writable");
    let engine = machine::engine();
    let mut rtrace = Command::new(machine::rtrace())
        .args(["--engine", engine, "-o", "/dev/null", "--", &machine::workload(), "calls", "lseek", "1", &CALLS.to_string()])
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("rtrace starts");
    let pid = Pid::from_child(&rtrace);
    std::thread::sleep(after);
    // It may have ended by itself: then its number is still taken, for nobody waited.
    kill_process(pid, Signal::KILL).expect("it is ours");
    rtrace.wait().expect("it is ours");
    let start = Instant::now();
    while test_kill_process_group(pid).is_ok() {
        assert!(start.elapsed() < PATIENCE, "{i}: the command hangs after {after:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
    std::fs::read_to_string(path).expect("it was created")
}

#[test]
fn at_any_moment_leaves_nothing_and_harms_nobody() {
    let Some(machine) = Machine::shared() else { return };
    let whole = format!("issued lseek {CALLS}\n");
    let mut last = Duration::ZERO;
    let mut finished = 0;
    for i in 0..TIMES {
        if i % 20 == 0 {
            // The machine's speed changes, so the last moment is chosen anew: after most of the runs' ends.
            last = undisturbed(&machine).mul_f64(1.5);
        }
        let after = moment(i, last);
        let output = killed(&machine, i, after);
        assert!(output.is_empty() || output == whole, "{i}: killed after {after:?}, the command wrote {output:?}");
        finished += u32::from(!output.is_empty());
    }
    assert!((1..TIMES).contains(&finished), "{finished} of {TIMES} commands were started: the moments are badly chosen");
    #[cfg(feature = "bpf")]
    left::nothing();
}

#[cfg(feature = "bpf")]
mod left {
    use super::PATIENCE;
    use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    const PROGRAMS: [&str; 7] = ["enter", "leave", "enter_event", "leave_event", "forked", "executed", "ended"];
    const MAPS: [&str; 3] = ["tasks", "scratches", "seeds"];

    /// Waits until the kernel has no program or map of rtrace's that no living process holds. (Others may trace at this moment.)
    pub fn nothing() {
        let start = Instant::now();
        loop {
            let mut programs: HashSet<u32> =
                ProgInfoIter::default().filter(|p| PROGRAMS.iter().any(|n| p.name == *n)).map(|p| p.id).collect();
            let mut maps: HashSet<u32> = MapInfoIter::default().filter(|m| MAPS.iter().any(|n| m.name == *n)).map(|m| m.id).collect();
            held(|line| {
                let id = |key| line.strip_prefix(key).and_then(|id: &str| id.trim().parse::<u32>().ok());
                id("prog_id:").map(|id| programs.remove(&id));
                id("map_id:").map(|id| maps.remove(&id));
            });
            if programs.is_empty() && maps.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "the kernel still has the programs {programs:?} and the maps {maps:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The lines of /proc/PID/fdinfo/FD of all processes.
    fn held(mut line: impl FnMut(&str)) {
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            for info in std::fs::read_dir(process.path().join("fdinfo")).into_iter().flatten().flatten() {
                std::fs::read_to_string(info.path()).unwrap_or_default().lines().for_each(&mut line);
            }
        }
    }
}
