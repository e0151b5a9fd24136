//! `-a`: all tasks of the machine, except those whose calls rtrace itself causes.

use crate::cgroup::Cgroup;
use crate::line;
use crate::machine::{self, Machine};
use crate::needs::unsupported;
use crate::trace::{shell, shell_with_engine, start, trace};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

#[test]
fn a_filter_on_comm_finds_every_call() {
    let Some(machine) = Machine::alone() else { return };
    // Another test run on this machine may start the same program.
    let name = format!("lonely-{}", std::process::id());
    let program = machine.path(&name);
    std::os::unix::fs::symlink(machine::workload(), &program).expect("the test's directory is writable");
    for events in ["lseek", "*"] {
        // The calls of all tasks go through the rings, and the tasks of lost calls are unknown.
        let filter = format!("comm == \"{name}\"");
        let options = ["-a", "-m", "32M", "-e", events, "--filter", &filter];
        let trace = trace(&machine, &options, &[&program, "calls", "lseek", "4", "10000"]).succeeded();
        assert_eq!(trace.tags(), (1..=trace.issued("lseek")).collect::<Vec<_>>());
        let lines = trace.lines();
        let others: Vec<_> = line::calls(&lines).into_iter().filter(|(line, _)| line.comm != name).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

#[test]
fn rtrace_does_not_trace_itself() {
    let Some(machine) = Machine::alone() else { return };
    let run = start(&machine, &["-a"], &["sleep", "1"]);
    let own = run.pid().as_raw_nonzero().get();
    // Other rtraces may run on the machine, and their calls are traced. The threads of this one are known by their
    // tids.
    let mut threads = BTreeSet::from([own]);
    while let Ok(tasks) = std::fs::read_dir(format!("/proc/{own}/task")) {
        let tids: Vec<i32> = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
        // A zombie has one thread.
        let is_over = std::fs::read_to_string(format!("/proc/{own}/status")).is_ok_and(|status| status.contains("\nState:\tZ"));
        threads.extend(tids);
        if is_over {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let trace = run.finish().succeeded();
    let lines = trace.lines();
    assert!(lines.iter().any(|line| line.comm == "sleep"), "the timer command is on the machine too");
    assert!(threads.len() > 1, "the worker was seen: {threads:?}");
    let own_line = lines.iter().find(|line| line.time.is_some() && threads.contains(&line.tid));
    assert!(own_line.is_none(), "rtrace's own calls are not traced: {own_line:?}");
    assert_eq!(trace.conserved().held_back, 0, "nothing is traced in order to be left out");
}

/// Every line that the pager reads would cause new lines.
#[test]
fn the_pager_that_reads_the_output_is_not_traced() {
    let Some(machine) = Machine::alone() else { return };
    let script = r#""$rtrace" -a -e read,write sleep 1 2>&1 >/dev/null | { sh -c 'echo $PPID >"$dir/carrier"'; exec cat >"$dir/lines"; }"#;
    shell(&machine, script).succeeded();
    let text = std::fs::read_to_string(machine.path("lines")).unwrap_or_default();
    let carrier = std::fs::read_to_string(machine.path("carrier")).unwrap_or_default();
    let carrier: i32 = carrier.trim().parse().unwrap_or_else(|e| panic!("{e}: {carrier:?}"));
    let lines = line::parse(&text);
    assert!(!lines.is_empty(), "{text}");
    assert!(lines.iter().all(|line| line.tid != carrier), "cat's own reads and writes are not traced");
}

#[test]
fn nested_traces_both_see_all_calls() {
    let Some(machine) = Machine::alone() else { return };
    let (inner, program) = (machine.path("inner"), machine::workload());
    let command = [machine::rtrace(), "-o", &inner, "-e", "lseek", "--", &program, "calls", "lseek", "2", "5000"];
    let outer = trace(&machine, &["-e", "lseek"], &command).succeeded();
    let inner = line::parse(&std::fs::read_to_string(inner).unwrap_or_default());
    assert_eq!(line::calls(&inner).len(), 10_000);
    let lines = outer.lines();
    let of_workload = line::calls(&lines).into_iter().filter(|(line, _)| line.comm == "workload").count();
    assert_eq!(of_workload, 10_000);
}

/// perf uses the same tracepoints as rtrace, and neither takes events from the other.
#[test]
fn rtrace_and_perf_both_see_all_calls() {
    let Some(machine) = Machine::alone() else { return };
    let Some(perf) = peer("perf") else { return };
    let data = machine.path("perf.data");
    let recording = ["record", "-q", "-m", "8M", "-o", &data, "-e", "syscalls:sys_enter_lseek", "-e", "raw_syscalls:sys_exit", "--"];
    for events in ["lseek", "*"] {
        let program = machine::workload();
        let command = [&[perf], &recording[..], &[&program, "calls", "lseek", "2", "2000"]].concat();
        let trace = trace(&machine, &["-e", events], &command).succeeded();
        assert_eq!(trace.conserved().lost, 0);
        let of_workload = |line: &&line::Line| line.comm == "workload" && line.call().is_some_and(|call| call.name == "lseek");
        assert_eq!(trace.lines().iter().filter(of_workload).count(), 4000);
        let seen = |event: &str| {
            let script = format!("{perf} script -i {data} -F comm,event,trace 2>/dev/null | grep -E '^ *workload .*{event}' | wc -l");
            let output = Command::new("sh").args(["-c", &script]).output().expect("there is a shell");
            String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().expect("a number")
        };
        // perf has shown an entry twice (once in some hundred runs); what matters is that it misses none.
        let (entries, exits) = (seen("sys_enter_lseek"), seen("sys_exit: NR 8 "));
        assert!(entries >= 4000 && exits >= 4000, "{entries} entries, {exits} exits");
    }
}

/// bpftrace uses the same tracepoints as rtrace, and is started before it and after it.
#[test]
fn rtrace_and_bpftrace_both_see_all_calls() {
    let Some(machine) = Machine::alone() else { return };
    let Some(bpftrace) = peer("bpftrace") else { return };
    let script = machine.path("count.bt");
    // bpftrace counts calls of the whole machine, on which a second run of the tests may have a workload too.
    let comm = format!("own{}", std::process::id());
    let program = format!(
        r#"
tracepoint:syscalls:sys_enter_lseek /comm == "{comm}"/ {{ @entries = count(); }}
tracepoint:raw_syscalls:sys_exit /comm == "{comm}" && args->id == 8/ {{ @exits = count(); }}
"#
    );
    std::fs::write(&script, program).expect("the test's directory is writable");
    machine.copy_of(&machine::workload(), &comm);
    let workload = format!("{} calls lseek 2 2000", machine.path(&comm));
    let counted = machine.path("counted");
    let beside = [bpftrace, "-q", "-o", &counted, &script, "-c"];
    let of_workload = |lines: &[line::Line]| {
        let wanted = |line: &&line::Line| line.comm == comm && line.call().is_some_and(|call| call.name == "lseek");
        lines.iter().filter(wanted).count()
    };
    for events in ["lseek", "*"] {
        let outside = trace(&machine, &["-e", events], &[&beside[..], &[&workload]].concat()).succeeded();
        assert_eq!((outside.conserved().lost, of_workload(&outside.lines())), (0, 4000), "rtrace with -e {events}, begun first");
        assert_counted(&counted, 4000);

        let lines = machine.path("lines");
        let inside = format!("{} -o {lines} -e {events} -- {workload}", machine::rtrace());
        let run = Command::new(beside[0]).args(&beside[1..]).arg(&inside).output().expect("bpftrace can be run");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let lines = std::fs::read_to_string(&lines).unwrap_or_default();
        assert_eq!(of_workload(&line::parse(&lines)), 4000, "rtrace with -e {events}, begun last");
        assert_counted(&counted, 4000);
    }
}

/// Returns the two counts of bpftrace.
fn assert_counted(file: &str, wanted: u64) {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    for name in ["@entries", "@exits"] {
        let count = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok());
        assert_eq!(count, Some(wanted), "{name} in {text:?}");
    }
}

/// Returns the newest version of another tracer on this machine, and reports it if there is none.
pub fn peer(name: &'static str) -> Option<&'static str> {
    let fetched = format!("/var/tmp/peers/tools/{name}");
    let found = [fetched.leak() as &'static str, name].into_iter().find(|tool| Command::new(tool).arg("--version").output().is_ok());
    if found.is_none() {
        unsupported(&format!("no {name}"));
    }
    found
}

#[test]
fn only_the_selected_cpus_are_traced() {
    let Some(machine) = Machine::shared() else { return };
    if machine::engine() == "bpf" {
        let refused = trace(&machine, &["--engine", "bpf", "-a", "-C", "0", "-e", "lseek"], &["true"]);
        assert!(
            refused.status == 125
                && refused.stderr.contains("the BPF engine follows calls from CPU to CPU and cannot trace single CPUs (-C)"),
            "{}",
            refused.stderr
        );
    }
    if machine::engine_asked_for().as_deref() == Some("bpf") {
        return;
    }
    // The calls have numbers that only this test uses, because the trace includes other tests on that CPU.
    let first = 1_000_000_000 + 1000 * u64::from(std::process::id());
    let last = first + 99;
    let on_cpu_0 = |cpus: &str| {
        let filter = format!("offset >= {first} && offset <= {last}");
        let options = ["-a", "-C", cpus, "--show-cpu", "-e", "lseek", "--filter", &filter];
        let script = format!(r#"for tag in $(seq {first} {last}); do "$workload" tag $tag; done"#);
        trace(&machine, &options, &["taskset", "-c", "0", "sh", "-c", &script]).succeeded()
    };
    let seen = on_cpu_0("0");
    assert_eq!(seen.tags(), (first..=last).collect::<Vec<_>>());
    assert!(seen.lines().iter().filter(|line| line.call().is_some()).all(|line| line.text.contains(" [000] ")), "{}", seen.text);
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        assert_eq!(on_cpu_0("1").tags(), [0; 0]);
    }
}

#[test]
fn only_the_selected_cgroup_is_traced() {
    let Some(machine) = Machine::shared() else { return };
    let group = Cgroup::new(&machine, "a");
    let script =
        format!(r#""$workload" tag 8001; echo $$ >{}/cgroup.procs; "$workload" tag 8002; exec "$workload" tag 8003"#, group.dir.display());
    let trace = trace(&machine, &["-a", "-G", &group.path, "-e", "lseek"], &["sh", "-c", &script]).succeeded();
    assert_eq!(trace.tags(), [8002, 8003], "{}", trace.text);
}

/// The timer command moves itself into the traced cgroup.
#[test]
fn a_command_that_moves_itself_into_the_traced_cgroup_is_traced() {
    let Some(machine) = Machine::shared() else { return };
    let group = Cgroup::new(&machine, "a");
    let dir = group.dir.display();
    let script = format!(
        "\"$rtrace\" -v $engine -e lseek -o \"$dir/lines\" -G {dir} sh -c 'echo $$ > {dir}/cgroup.procs; exec \"$workload\" forks 20'; cat \"$dir/lines\""
    );
    let trace = shell_with_engine(&machine, &script);
    let lines: Vec<&str> = trace.text.lines().filter(|line| line.contains(" lseek(")).collect();
    assert!(lines.len() == 20 && lines.iter().all(|line| line.contains(" workload/")), "{}", trace.text);
    let script = format!(
        "\"$rtrace\" -v $engine -e getpid,close -o \"$dir/lines\" -G {dir} sh -c 'echo $$ > {dir}/cgroup.procs; exec 3</dev/null 3>&-'; cat \"$dir/lines\""
    );
    let trace = shell_with_engine(&machine, &script);
    assert!(trace.text.lines().any(|line| line.contains(" sh/") && line.contains(" close(fd: ")), "{}", trace.text);
}

#[test]
fn rtrace_does_not_exit_with_the_timers_status() {
    let Some(machine) = Machine::shared() else { return };
    trace(&machine, &["-a", "-e", "lseek"], &["sh", "-c", "exit 9"]).succeeded();
}
