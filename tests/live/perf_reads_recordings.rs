//! perf reads the recordings of rtrace: each of its tools, in each version that is here, for each kind of recording.
//! What is counted is what perf shows, and the program knows how many calls it made.

use crate::machine::Machine;
use crate::needs::{Need, unsupported};
use crate::perf_script::{Record, Script};
use crate::trace::{Trace, shell};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The newest perf, where benches/fetch-peers installs it.
const NEWEST: &str = "/var/tmp/peers/tools/perf";

/// The perfs that read the recordings: the system's, and the newest one.
pub fn perfs(machine: &Machine) -> Vec<&'static str> {
    if machine.lacks(&[Need::Program("perf")]) {
        return Vec::new();
    }
    if Path::new(NEWEST).exists() {
        return vec!["perf", NEWEST];
    }
    unsupported("no newest perf: NOT COMPARED with it (benches/fetch-peers installs it, as root)");
    vec!["perf"]
}

/// Returns what a shell line prints in the directory of the test.
pub fn run(machine: &Machine, script: &str) -> Trace {
    shell(machine, &format!("cd $dir; {script}")).succeeded()
}

/// Returns the objects that rtrace prints of a recording.
pub fn objects(machine: &Machine, file: &str) -> Vec<Value> {
    let json = run(machine, &format!("$rtrace --no-config -i {file} --json -o - 2>/dev/null")).stdout;
    json.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// Returns how often each line occurs, without blanks around it.
fn counted<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    lines.fold(BTreeMap::new(), |mut all, line| {
        *all.entry(line.trim().trim_end_matches(':').to_owned()).or_default() += 1;
        all
    })
}

/// Returns how many samples each event has by the output of `perf report --stats`.
fn of_report(text: &str) -> BTreeMap<String, usize> {
    let mut event = None;
    let mut all = BTreeMap::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(" stats:") {
            event = (name != "Aggregated").then_some(name);
        } else if let (Some(event), Some((_, number))) = (event, line.split_once("SAMPLE events:")) {
            // With stacks, calls that begin before the command are of another event of this name.
            *all.entry(event.to_owned()).or_default() += number.trim().parse::<usize>().expect("it is a number");
        }
    }
    all
}

/// Returns the times of the first and the last sample by the header, in microseconds.
fn of_header(text: &str) -> [Option<u64>; 2] {
    ["first", "last"].map(|which| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("# time of {which} sample : ")))?;
        line.trim().replace('.', "").parse().ok()
    })
}

/// Returns the times of the oldest and the newest sample that perf shows, in microseconds.
fn span(script: &str) -> [Option<u64>; 2] {
    let time = |line: &str| {
        let (seconds, rest) = line.split_once("] ")?.1.trim_start().split_once('.')?;
        format!("{seconds}{}", rest.get(..6)?).parse().ok()
    };
    let times = || script.lines().filter_map(time);
    [times().min(), times().max()]
}

/// A recording: the options of `rtrace record`, what is done with the file, and the number of threads.
struct Row {
    options: &'static str,
    then: &'static str,
    threads: usize,
    /// perf shows the calls, each by two records of raw_syscalls.
    has_calls: bool,
}

const fn row(options: &'static str, threads: usize, has_calls: bool) -> Row {
    Row { options, then: "", threads, has_calls }
}

const OF_TRACEPOINTS: [Row; 8] = [
    row("--engine tracepoint", 1, true),
    row("--engine tracepoint -z", 4, true),
    row("--for-perf", 4, true),
    row("--for-perf --compress=9", 1, true),
    row("--engine tracepoint --call-graph fp", 1, true),
    row("--engine tracepoint --call-graph dwarf,1K", 4, true),
    row("--engine tracepoint -a", 4, true),
    row("--for-perf -a", 1, true),
];

#[cfg(feature = "bpf")]
const OF_BPF: [Row; 6] = [
    row("--engine bpf", 4, false),
    row("--engine bpf -z", 1, false),
    row("--engine bpf --call-graph dwarf,1K", 1, false),
    row("--engine bpf -a", 4, false),
    Row {
        options: "--engine bpf",
        then: "$rtrace convert --to perf-tracepoints -i r.data -o c.data 2>/dev/null && mv c.data r.data",
        threads: 4,
        has_calls: true,
    },
    Row {
        options: "--engine bpf -z",
        then: "$rtrace convert --to perf-tracepoints -i r.data -o c.data 2>/dev/null && mv c.data r.data",
        threads: 1,
        has_calls: true,
    },
];

/// The number of getppid(2) calls of each thread.
const CALLS: usize = 200;

#[test]
fn each_tool_of_perf_reads_each_kind_of_recording_by_the_tracepoint_engine() {
    let Some(machine) = Machine::shared() else { return };
    OF_TRACEPOINTS.iter().for_each(|row| check(&machine, row));
}

#[cfg(feature = "bpf")]
#[test]
fn each_tool_of_perf_reads_each_kind_of_recording_by_the_bpf_engine() {
    let Some(machine) = Machine::shared() else { return };
    if !machine.lacks(&[Need::BpfEngine]) {
        OF_BPF.iter().for_each(|row| check(&machine, row));
    }
}

fn check(machine: &Machine, row: &Row) {
    let Row { options, then, threads, has_calls } = row;
    let then = if then.is_empty() { ":" } else { then };
    run(machine, &format!("$rtrace record {options} -q -o r.data $workload calls getppid {threads} {CALLS} >/dev/null; {then}"));
    let calls = objects(machine, "r.data");
    let is_converted = then != ":";
    let [ours, events] = ["script", "evlist"].map(|command| match is_converted {
        // The file is as one of perf, which these commands leave to perf.
        true => None,
        false => Some(run(machine, &format!("$rtrace {command} -i r.data")).stdout),
    });
    for perf in perfs(machine) {
        let place = format!("{perf}, {options} {then}");
        let fields = "comm,pid,tid,cpu,time,event,trace";
        let script = format!(
            "{perf} script -F event -i r.data 2>/dev/null >p.counts || echo 'script failed'; {perf} script --ns -F {fields} -i r.data 2>/dev/null >p.script;
             {perf} evlist -i r.data 2>/dev/null >p.events || echo 'evlist failed'; {perf} script --header-only -i r.data 2>/dev/null >p.header || echo 'header failed';
             {perf} report --stdio --stats -i r.data >p.report 2>/dev/null && {perf} report --stdio -i r.data >/dev/null 2>&1 || echo 'report failed';
             {perf} trace -i r.data 2>p.lines >&2 || echo 'trace failed'"
        );
        assert_eq!(run(machine, &script).stdout, "", "{place}");
        let read = |name: &str| String::from_utf8_lossy(&std::fs::read(machine.path(name)).expect("it was written")).into_owned();
        // All tools count the same samples of each event, and so does rtrace.
        let counts = counted(read("p.counts").lines().filter(|line| !line.trim().is_empty()));
        assert_eq!(of_report(&read("p.report")), counts, "{place}");
        if let (Some(ours), Some(events)) = (&ours, &events) {
            let listed = read("p.events");
            let listed: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
            assert_eq!(listed, events.lines().collect::<Vec<_>>(), "{place}");
            // A large fact is several samples, and one line.
            for (event, number) in counts.iter().filter(|(event, _)| *event != "rtrace:fact") {
                let shown = ours.lines().filter(|line| line.contains(&format!(": {event}: "))).count();
                assert_eq!(shown, *number, "{place}: {event}");
            }
        }
        let made = threads * CALLS;
        if !has_calls {
            assert!(counts["BPF calls"] >= made, "{place}: {counts:?}");
            continue;
        }
        let text = read("p.script");
        assert_eq!(of_header(&read("p.header")), span(&text), "{place}");
        let number = if cfg!(target_arch = "x86_64") { 110 } else { 173 };
        let entries = text.lines().filter(|line| line.contains(&format!("sys_enter: NR {number} ("))).count();
        // The whole machine may make more.
        let is_all = |count: usize| if options.contains("-a") { count >= made } else { count == made };
        assert!(is_all(entries), "{place}: {entries}");
        let lines = read("p.lines").lines().filter(|line| line.contains(" getppid(") && line.contains(" = ")).count();
        assert!(is_all(lines), "{place}: {lines}");
        let mut script = Script::of(&text);
        assert!(script.take(&place, &calls) > made, "{place}");
        if options.contains("-a") {
            continue;
        }
        // What rtrace's child does before it executes the command is not shown, and the first return of a new task
        // belongs to no call of its own.
        let is_of_command = |record: &Record| record.comm != "rtrace" && !record.comm.starts_with(':');
        script.retain(is_of_command, |exit| is_of_command(exit) && exit.result != 0);
        assert!(script.entries.is_empty() && script.exits.is_empty(), "{place}: not shown: {script:?}");
    }
}

/// The sections that perf needs are written at the end. perf refuses recordings of its own that lack them, too.
#[test]
fn perf_refuses_the_recording_of_a_killed_recorder_and_reads_what_it_is_converted_to() {
    let Some(machine) = Machine::shared() else { return };
    let has_bpf = cfg!(feature = "bpf") && !machine.lacks(&[Need::BpfEngine]);
    for engine in ["tracepoint", "bpf"].into_iter().filter(|engine| *engine != "bpf" || has_bpf) {
        let script = format!(
            "$rtrace record --engine {engine} -q -o killed.data dd if=/dev/zero of=/dev/null bs=1 count=5000000 >/dev/null 2>&1 &
             until [ \"$(stat -c %s killed.data 2>/dev/null || echo 0)\" -gt 1000000 ]; do sleep 0.05; done; kill -KILL $!; wait
             $rtrace convert --to perf-tracepoints -i killed.data -o c.data 2>said && grep -q 'the recorder was killed' said && sed -n 's/.*converted \\([0-9]*\\) calls.*/\\1/p' said"
        );
        let calls: usize = run(&machine, &script).stdout.trim().parse().expect("it is the number of calls");
        assert!(calls > 1000, "{engine}: {calls}");
        for perf in perfs(&machine) {
            let refused = format!("for tool in script trace; do {perf} $tool -i killed.data 2>/dev/null && echo $tool read it; done; true");
            assert_eq!(run(&machine, &refused).stdout, "", "{engine}, {perf}");
            let read = format!(
                "{perf} script -F event -i c.data 2>/dev/null >p.script && {perf} trace -i c.data >p.lines 2>&1 &&
                 grep -c sys_enter p.script && grep -c sys_exit p.script"
            );
            // The recorder may have been killed between the two records of the last call.
            let said = run(&machine, &read).stdout;
            let [entries, exits]: [usize; 2] =
                std::array::from_fn(|at| said.lines().nth(at).and_then(|line| line.parse().ok()).expect("a number"));
            assert!(entries == calls && (calls - 1..=calls).contains(&exits), "{engine}, {perf}: {calls} calls: {said}");
            let lines = String::from_utf8_lossy(&std::fs::read(machine.path("p.lines")).expect("it was written")).into_owned();
            assert_eq!(lines.lines().filter(|line| !line.starts_with("WARNING")).count(), exits, "{engine}, {perf}");
        }
    }
}

/// The other direction: rtrace shows each call that perf recorded, with the fields that perf shows.
#[test]
fn rtrace_shows_the_fields_of_what_each_perf_recorded() {
    let Some(machine) = Machine::shared() else { return };
    let recorders = [
        ("trace record", 1),
        ("record -e 'raw_syscalls:*'", 4),
        ("record -z -e 'raw_syscalls:*'", 4),
        ("record -g -e 'raw_syscalls:*'", 1),
        ("record -k CLOCK_MONOTONIC -e 'raw_syscalls:*'", 4),
        ("record -a -e 'raw_syscalls:*'", 4),
        ("record -e 'raw_syscalls:*,sched:sched_process_exit'", 1),
    ];
    for perf in perfs(&machine) {
        for (record, threads) in recorders {
            let place = format!("{perf} {record}");
            // On a busy machine, perf loses records of the whole machine, unless its rings are large.
            let ring = if record.contains("-a") { "64M" } else { "1M" };
            let script = format!(
                "{perf} {record} -m {ring} -o p.data $workload calls getppid {threads} {CALLS} >/dev/null 2>&1;
                 {perf} script --ns -F comm,pid,tid,cpu,time,event,trace -i p.data 2>/dev/null"
            );
            let made =
                |script: &Script| script.entries.values().flatten().filter(|one| one.comm == "workload" && one.number == 110).count();
            let mut script = {
                let mut recorded = (0..5).map(|_| Script::of(&run(&machine, &script).stdout));
                let is_whole = |script: &Script| made(script) == threads * CALLS || cfg!(not(target_arch = "x86_64"));
                recorded.find(is_whole).unwrap_or_else(|| panic!("{place}: perf loses records in each of five runs"))
            };
            let calls = objects(&machine, "p.data");
            assert!(script.take(&place, &calls) > threads * CALLS, "{place}");
            script.retain(|_| true, |exit| exit.result != 0);
            // On the whole machine, calls are in progress when a recording begins and ends.
            assert!(script.entries.is_empty() && script.exits.is_empty() || record.contains("-a"), "{place}: not shown: {script:?}");
        }
    }
}
