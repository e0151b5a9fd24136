//! Tests of recordings between rtrace and perf: rtrace shows those of perf, and perf those of rtrace. perf is the
//! oracle: `perf script` prints every record of a file.

use crate::compiled::compiled;
use crate::machine::Machine;
use crate::needs::Need;
use crate::system_wide::peer;
use crate::trace::{Trace, shell};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the machine, if it has perf.
fn machine() -> Option<Machine> {
    Machine::shared().filter(|machine| !machine.lacks(&[Need::Program("perf")]))
}

/// Runs a shell line in which `count FILE EVENT` prints how many records of an event perf finds in a file.
fn run(machine: &Machine, script: &str) -> Trace {
    let count = "count() { perf script -i $1 -F event 2>/dev/null | grep -c \"$2:\"; true; }";
    shell(machine, &format!("cd $dir; {count}; {script}")).succeeded()
}

/// Returns the numbers in the lines that begin with these words.
fn numbers(trace: &Trace, word: &str) -> Vec<u64> {
    let value = |line: &str| line.strip_prefix(word)?.trim().parse().ok();
    trace.stdout.lines().filter_map(value).collect()
}

/// Returns the lines of calls in the output of rtrace, each as `name result`, sorted. The files of descriptors are left
/// out, which not every recording has. perf prints no result of calls that return a task, so it is empty then.
fn calls(text: &str) -> Vec<String> {
    let line = Regex::new(r"^.*\): \S+ (\w+)\(.*\)\s+= ([^\s<]*)").expect("the pattern is right");
    let call = |text| line.captures(text).map(|found| format!("{} {}", &found[1], &found[2]));
    let mut calls: Vec<String> = text.lines().filter_map(call).collect();
    calls.sort_unstable();
    calls
}

#[test]
fn every_call_that_perf_recorded_is_shown() {
    let Some(machine) = machine() else { return };
    for record in [
        "perf trace record",
        "perf record -q -e 'raw_syscalls:*'",
        "perf record -q -g -e 'raw_syscalls:*'",
        "perf record -q -z -e 'raw_syscalls:*'",
    ] {
        let script = format!(
            "{record} -o p.data $workload calls getppid 1 500 >/dev/null 2>&1; echo entered $(count p.data sys_enter); echo exited $(count p.data sys_exit);
             $rtrace -i p.data -o p.lines && echo rtrace $?; $rtrace -i p.data --json -o p.json; echo objects $(grep -c '\"type\":\"call\"' p.json)"
        );
        let trace = run(&machine, &script);
        let text = std::fs::read_to_string(machine.path("p.lines")).expect("it was written");
        let (entered, exited) = (numbers(&trace, "entered")[0], numbers(&trace, "exited")[0]);
        assert!(entered >= 500, "{record}: {entered}");
        // The command's execve has no entry, because the events begin with the program. A new thread's first return is
        // an exit, and no call.
        assert_eq!(numbers(&trace, "objects")[0], entered + 1, "{record}: {exited} exits\n{text}");
        assert_eq!(
            text.lines().filter(|line| line.contains("): workload/") && line.contains(" = ")).count() as u64,
            entered + 1,
            "{record}\n{text}"
        );
    }
}

#[test]
fn events_of_single_syscalls_and_other_tracepoints_are_shown() {
    let Some(machine) = machine() else { return };
    let events = "syscalls:sys_enter_openat,syscalls:sys_exit_openat,sched:sched_process_exit,syscalls:sys_enter_close";
    let script = format!(
        "perf record -q -o p.data -e '{events}' cat /dev/null >/dev/null 2>&1; for e in sys_enter_openat sys_enter_close sched_process_exit; do
         echo $e $(count p.data $e); done; $rtrace -i p.data -o p.lines; $rtrace -i p.data -e openat -o open.lines; $rtrace -i p.data -S -o sums"
    );
    let trace = run(&machine, &script);
    let read = |name: &str| std::fs::read_to_string(machine.path(name)).expect("it was written");
    let count = |text: &str, part: &str| text.lines().filter(|line| line.contains(part)).count() as u64;
    let all = read("p.lines");
    assert_eq!(count(&all, " openat("), numbers(&trace, "sys_enter_openat")[0], "{all}");
    // Without its exits, the entries of a call are events.
    assert_eq!(count(&all, "syscalls:sys_enter_close"), numbers(&trace, "sys_enter_close")[0], "{all}");
    assert_eq!(count(&all, "sched:sched_process_exit"), numbers(&trace, "sched_process_exit")[0], "{all}");
    let open = read("open.lines");
    assert_eq!((count(&open, " openat("), count(&open, "sched:")), (count(&all, " openat("), 0), "{open}");
    assert!(read("sums").contains("openat"));
}

#[test]
fn a_recording_of_the_whole_machine_has_the_names_of_tasks_that_were_there_before() {
    let Some(machine) = machine() else { return };
    // The recording lasts until the loop has begun and ended a `cat`, which on a busy machine takes long. There, perf
    // loses records of the whole machine, unless its rings are large.
    let script = "(while :; do cat /dev/null; echo >>rounds; done) & loop=$!; perf record -q -a -m 64M -o p.data -e 'raw_syscalls:*' dash -c \
                  \"$workload calls getppid 1 20; rm -f rounds; until [ \\$(cat rounds 2>/dev/null | wc -l) -ge 2 ]; do sleep 0.05; done\" \
                  >/dev/null 2>&1; kill $loop; $rtrace -i p.data -e getppid,read -o p.lines; echo entered $(count p.data sys_enter)";
    let trace = run(&machine, script);
    let text = std::fs::read_to_string(machine.path("p.lines")).expect("it was written");
    assert!(text.lines().any(|line| line.contains(" cat/")) && text.lines().any(|line| line.contains(" workload/")), "{text}");
    assert!(numbers(&trace, "entered")[0] >= 20);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_recording_of_another_architecture_has_the_calls_of_that_one() {
    let Some(machine) = machine() else { return };
    run(&machine, "perf record -q -o p.data -e 'raw_syscalls:*' $workload calls getppid 1 50 >/dev/null 2>&1");
    // The section with the architecture: a length, and the name with NUL bytes behind it.
    let (x86, arm) = (b"\x40\0\0\0x86_64\0\0", b"\x40\0\0\0aarch64\0");
    let mut bytes = std::fs::read(machine.path("p.data")).expect("it was written");
    let at = bytes.windows(x86.len()).position(|window| window == x86).expect("it is an x86-64 machine");
    bytes[at..at + arm.len()].copy_from_slice(arm);
    std::fs::write(machine.path("a.data"), bytes).expect("the directory is ours");
    run(&machine, "$rtrace -i p.data -o p.lines && $rtrace -i a.data -o a.lines");
    let count = |name: &str, call: &str| {
        let text = std::fs::read_to_string(machine.path(name)).expect("it was written");
        text.lines().filter(|line| line.contains(&format!(" {call}("))).count()
    };
    // Number 110 is another call there (include/uapi/asm-generic/unistd.h).
    let calls = count("p.lines", "getppid");
    assert!(calls >= 50);
    assert_eq!((count("a.lines", "getppid"), count("a.lines", "timer_settime")), (0, calls));
}

#[test]
fn records_that_perf_lost_are_counted() {
    let Some(machine) = machine() else { return };
    // A ring of one page, and a reader that comes once a second.
    let script = "chrt --batch 0 perf record -q -m 1 --no-buffering -o p.data -e 'raw_syscalls:*' $workload calls getppid 1 200000 >/dev/null 2>p.err;
                  perf script -i p.data --show-lost-events 2>/dev/null | grep -c PERF_RECORD_LOST; $rtrace -i p.data -o p.lines 2>r.err; cat r.err";
    let trace = shell(&machine, &format!("cd $dir; {script}"));
    let losses: u64 = trace.stdout.lines().next().and_then(|line| line.trim().parse().ok()).unwrap_or_default();
    let said = trace.stdout.contains("records were lost; nobody counted the calls that were made");
    assert!(losses > 0 && said, "{losses} losses in {}", trace.stdout);
}

#[test]
fn perf_shows_the_recordings_of_rtrace() {
    let Some(machine) = machine() else { return };
    let nameless = Regex::new(r" :\d+/").expect("the pattern is right");
    for options in ["--for-perf", "--for-perf -z", "--for-perf --compress=9 -e 'getpid,getppid,openat'"] {
        let script = format!(
            "$rtrace record {options} -o r.data $workload calls getppid 1 500 >/dev/null 2>&1; perf script -i r.data >/dev/null 2>script.err && echo script 0;
             perf trace -i r.data 2>perf.lines && echo trace 0; $rtrace -i r.data -o r.lines; echo entered $(count r.data sys_enter)"
        );
        let trace = run(&machine, &script);
        assert_eq!((numbers(&trace, "script"), numbers(&trace, "trace")), (vec![0], vec![0]), "{options}");
        let read = |name: &str| std::fs::read_to_string(machine.path(name)).expect("it was written");
        let (of_perf, of_rtrace) = (read("perf.lines"), read("r.lines"));
        let (theirs, ours) =
            [&of_perf, &of_rtrace].map(|text| calls(text).iter().filter(|call| call.starts_with("getppid ")).count()).into();
        assert!(ours >= 500 && theirs == ours, "{options}: {theirs} and {ours}\n{of_perf}");
        assert!(!nameless.is_match(&of_perf), "a task without a name in\n{of_perf}");
    }
}

#[test]
fn compressed_recordings_say_the_same() {
    let Some(machine) = Machine::shared() else { return };
    let script = "$rtrace record $engine -z -o z.data $workload calls getppid 1 2000 >/dev/null 2>&1 && $rtrace -i z.data -o z.lines && ls -s --block-size=1 z.data >&2;
                  tail -c +1 z.lines | grep -c ' = '";
    let trace = crate::trace::shell_with_engine(&machine, &format!("cd $dir; {script}"));
    assert!(trace.stdout.trim().parse::<u64>().is_ok_and(|lines| lines >= 2000), "{}", trace.stdout);
}

#[cfg(feature = "bpf")]
#[test]
fn converted_recordings_are_shown_by_perf_and_by_rtrace() {
    let Some(machine) = machine() else { return };
    if machine.lacks(&[Need::BpfEngine]) {
        return;
    }
    let script = "$rtrace record --engine bpf -o b.data $workload calls getppid 1 500 >/dev/null 2>&1; $rtrace convert --to perf-tracepoints -i b.data -o c.data 2>said;
                  cat said; perf script -i c.data >/dev/null 2>&1 && echo script 0; perf trace -i c.data 2>perf.lines && echo trace 0;
                  $rtrace -i b.data -o b.lines; $rtrace -i c.data -o c.lines; echo entered $(count c.data sys_enter)";
    let trace = run(&machine, script);
    assert_eq!((numbers(&trace, "script"), numbers(&trace, "trace")), (vec![0], vec![0]), "{}", trace.stdout);
    let read = |name: &str| calls(&std::fs::read_to_string(machine.path(name)).expect("it was written"));
    let (recorded, converted) = (read("b.lines"), read("c.lines"));
    assert!(recorded.len() > 500);
    assert_eq!(converted, recorded);
    assert!(trace.stdout.contains(&format!("converted {} calls", numbers(&trace, "entered")[0])), "{}", trace.stdout);
    let of_perf = std::fs::read_to_string(machine.path("perf.lines")).expect("it was written");
    assert!(of_perf.lines().count() >= recorded.len(), "{of_perf}");
}

/// A frame: its file, its function, and the offset in the function.
type Frame = (String, String, u64);

/// Returns the stacks that `perf script` prints of the exits of calls, by thread in their order, each with the number
/// of the call.
fn stacks_of_perf(script: &str) -> BTreeMap<i64, Vec<(i64, Vec<Frame>)>> {
    let event = Regex::new(r"^\s*(\d+)\s+raw_syscalls:sys_(enter|exit):\s+NR (-?\d+)").expect("the pattern is right");
    let frame = Regex::new(r"^\s+[0-9a-f]+ (.*?)(?:\+0x([0-9a-f]+))? \((.*)\)$").expect("the pattern is right");
    let mut stacks: BTreeMap<i64, Vec<(i64, Vec<Frame>)>> = BTreeMap::new();
    let mut open: Option<i64> = None;
    for line in script.lines() {
        if let Some(found) = event.captures(line) {
            let (tid, number) = (found[1].parse().expect("it is a number"), found[3].parse().expect("it is a number"));
            open = (&found[2] == "exit").then_some(tid);
            open.into_iter().for_each(|tid| stacks.entry(tid).or_default().push((number, Vec::new())));
        } else if let (Some(found), Some(tid)) = (frame.captures(line), open) {
            let offset = found.get(2).map_or(0, |digits| u64::from_str_radix(digits.as_str(), 16).expect("it is a number"));
            let (_, frames) = stacks.get_mut(&tid).and_then(|all| all.last_mut()).expect("the event was added before its frames");
            frames.push((found[3].replace("[kernel.kallsyms]", "[kernel]"), found[1].to_owned(), offset));
        }
    }
    stacks
}

/// Returns whether two frames are the same. Functions may have several names, so their offsets and files decide. perf
/// takes one from the addresses that it finds by unwinding tables, and names a return address at the end of a function
/// by the next function.
fn is_same(ours: &Frame, theirs: &Frame) -> bool {
    ours.0 == theirs.0 && (theirs.2 == 0 || ours.2.checked_sub(theirs.2).is_some_and(|more| more <= 1))
}

#[test]
fn stacks_are_those_that_perf_script_prints() {
    let Some(machine) = machine() else { return };
    let of_tables: &[&str] = &["-O2"];
    let of_pointers: &[&str] = &["-O2", "-fno-omit-frame-pointer", "-static"];
    for (method, options, known) in
        [("dwarf", of_tables, &["innermost", "middle", "outer", "begin"][..]), ("fp", of_pointers, &["middle", "outer", "begin"])]
    {
        let Some(program) = compiled(&machine, "cc", options, "stacks/chain.c", method) else { return };
        for perf in ["perf"].into_iter().chain(peer("perf").filter(|newer| *newer != "perf")) {
            let script = format!(
                "export DEBUGINFOD_URLS=; {perf} record -q -m 16M -o p.data -e 'raw_syscalls:*' --call-graph {method} {program} thread 4711 >/dev/null 2>&1
                 {perf} script -i p.data --no-inline -F tid,event,trace,ip,sym,symoff,dso 2>/dev/null > p.script
                 $rtrace -i p.data --json -o p.json 2>said; echo ended $?; cat said"
            );
            let trace = run(&machine, &script);
            let about = format!("{perf} --call-graph {method}: {}", trace.stdout);
            assert!(numbers(&trace, "ended") == [0] && !trace.stdout.contains("stacks lack"), "{about}");
            let read = |name: &str| std::fs::read_to_string(machine.path(name)).expect("it was written");
            let mut expected = stacks_of_perf(&read("p.script"));
            let (mut compared, mut found_known) = (0, false);
            for line in read("p.json").lines() {
                let object: Value = serde_json::from_str(line).expect("it is JSON");
                let (Some(tid), Some(number), Some(frames)) =
                    (object["tid"].as_i64(), object["number"].as_i64(), object["stack"].as_array())
                else {
                    continue;
                };
                if object["return"]["raw"].is_null() {
                    continue;
                }
                let text = |frame: &Value, key: &str| frame[key].as_str().unwrap_or_default().to_owned();
                let ours: Vec<Frame> = frames
                    .iter()
                    .map(|frame| (text(frame, "file"), text(frame, "function"), frame["offset"].as_u64().unwrap_or(0)))
                    .collect();
                let of_task = expected.get_mut(&tid).expect("perf has the task");
                let at = of_task.iter().position(|(of, _)| *of == number).expect("perf has the call");
                let (_, theirs) = of_task.drain(..=at).next_back().expect("it was just found");
                // perf goes on to addresses at which there is no code.
                let is_code = |frame: &&Frame| object["stack_ends"] != "no_code" || frame.0 != "[unknown]";
                let length = theirs.iter().take_while(is_code).count();
                let same = ours.len() == length && ours.iter().zip(&theirs).all(|(ours, theirs)| is_same(ours, theirs));
                assert!(same, "{about}\n{}: {ours:?}\nperf: {theirs:?}", object["name"]);
                compared += 1;
                let names: Vec<&str> = ours.iter().map(|(_, name, _)| name.as_str()).collect();
                found_known |= names.windows(known.len()).any(|names| names == known);
            }
            assert!(compared >= 20 && found_known, "{about}\n{compared} stacks");
        }
    }
}

#[test]
fn programs_that_are_no_longer_those_that_perf_recorded_are_not_used() {
    let Some(machine) = machine() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/chain.c", "chain") else { return };
    for perf in ["perf"].into_iter().chain(peer("perf").filter(|newer| *newer != "perf")) {
        let Some(other) = compiled(&machine, "cc", &["-O1"], "stacks/chain.c", "other") else { return };
        // The file keeps its inode, and gets other contents.
        let script = format!(
            "export DEBUGINFOD_URLS=; cp {program} tried; {perf} record -q -m 16M -o p.data -e 'raw_syscalls:*' --call-graph dwarf ./tried plain 4711 >/dev/null 2>&1
             $rtrace -i p.data -e lseek -o before 2>said; sleep 0.01; cp {other} tried; $rtrace -i p.data -e lseek -o after 2>said; cat said"
        );
        let trace = run(&machine, &script);
        let read = |name: &str| std::fs::read_to_string(machine.path(name)).expect("it was written");
        let (before, after) = (read("before"), read("after"));
        assert!(before.contains("innermost (") && before.contains("outer ("), "{perf}: {before}");
        assert!(!after.contains("innermost") && after.contains("/tried+0x"), "{perf}: {after}");
        assert!(after.contains("[the callers are unknown: this file could not be read]"), "{perf}: {after}");
        assert!(
            trace.stdout.contains("no longer those that perf recorded: ") && trace.stdout.contains("/tried"),
            "{perf}: {}",
            trace.stdout
        );
    }
}

#[test]
fn samples_without_the_registers_of_unwinding_are_named() {
    let Some(machine) = machine() else { return };
    let script = "perf record -q -o p.data -e 'raw_syscalls:*' --call-graph dwarf --user-regs=ip,sp true >/dev/null 2>&1; $rtrace -i p.data -o p.lines 2>&1";
    let trace = run(&machine, script);
    assert!(trace.stdout.contains("have not all registers that unwinding needs"), "{}", trace.stdout);
    let lines = std::fs::read_to_string(machine.path("p.lines")).expect("it was written");
    let frames: Vec<&str> = lines.lines().filter(|line| line.starts_with(&" ".repeat(38))).collect();
    assert!(!frames.is_empty() && frames.iter().all(|frame| frame.ends_with(" ([kernel])")), "{lines}");
}
