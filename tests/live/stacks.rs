//! Call graphs: the frames under a call, of programs whose call chains are known.
//!
//! The programs of `tests/programs/stacks` print the functions that lead to their `lseek(-1, TAG, 9)`, innermost first.
//! `*` stands for any frames.

use crate::compiled::compiled;
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::{Trace, start, trace};
use std::fs;
use std::process::Command;

/// The parsed line of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function, or file and offset.
    pub name: String,
    /// The file; empty if `name` has it.
    pub file: String,
    /// The source file and line that `--lines` adds.
    line: String,
}

/// Returns the frames under the first line that has this text.
fn frames_under(trace: &Trace, text: &str) -> Vec<Frame> {
    let all: Vec<Vec<Frame>> = stacks(trace, text);
    all.into_iter().next().unwrap_or_else(|| panic!("no line has {text:?}:\n{}\n{}", trace.text, trace.stderr))
}

/// Returns the frames under each line that has this text.
fn stacks(trace: &Trace, text: &str) -> Vec<Vec<Frame>> {
    let lines: Vec<&str> = trace.text.lines().collect();
    let with_text = lines.iter().enumerate().filter(|(_, line)| line.contains(text));
    with_text.map(|(at, _)| lines[at + 1..].iter().map_while(|line| frame(line)).collect()).collect()
}

/// Parses the line of a frame, which is indented like perf's.
pub fn frame(line: &str) -> Option<Frame> {
    let body = line.strip_prefix(&" ".repeat(38)).filter(|body| !body.starts_with([' ', '[']))?;
    let (name, rest) = body.rsplit_once(" (").unwrap_or((body, ""));
    let (file, line) = rest.split_once(')').unwrap_or((rest, ""));
    Some(Frame { name: name.to_owned(), file: file.to_owned(), line: line.trim().to_owned() })
}

/// Compares frames with the output of the program: the names of functions from the second frame on (the first is the C
/// library's), with `*` for any number of others.
fn assert_frames(found: &[Frame], wanted: &str, trace: &Trace) {
    let names: Vec<&str> = found.iter().map(|frame| frame.name.as_str()).collect();
    let separator = if wanted.trim_end().contains('\n') { '\n' } else { ' ' };
    let wanted: Vec<&str> = wanted.trim_end().split(separator).collect();
    assert!(matches(&names[1.min(names.len())..], &wanted), "wanted {wanted:?}, found {names:?}\n{}\n{}", trace.text, trace.stderr);
}

/// Whether the names begin with the wanted ones.
fn matches(names: &[&str], wanted: &[&str]) -> bool {
    match (names, wanted) {
        (_, []) => true,
        (_, ["*", rest @ ..]) => (0..=names.len()).any(|skipped| matches(&names[skipped..], rest)),
        ([name, names @ ..], [first, rest @ ..]) => name == first && matches(names, rest),
        ([], _) => false,
    }
}

/// Returns options for ring buffers that hold thousands of stacks, which are written within some ten milliseconds.
/// Tracepoints write 8 KiB of stack each time, and all of them may be on one CPU.
fn room() -> &'static [&'static str] {
    if machine::engine() == "bpf" { &[] } else { &["-m", "64M"] }
}

const TAG: &str = "4711";

/// Traces a program's call, and compares its frames with the program's output.
fn assert_named(machine: &Machine, options: &[&str], command: &[&str]) -> Trace {
    assert_trace_named(trace(machine, &[&["-e", "lseek"], options].concat(), command))
}

/// Compares the frames of the call with the program's output.
fn assert_trace_named(trace: Trace) -> Trace {
    let trace = trace.succeeded();
    let found = frames_under(&trace, &format!("offset: {TAG}"));
    assert_frames(&found, &trace.stdout, &trace);
    assert_eq!(trace.conserved().lost, 0);
    trace
}

/// The word above the address in a frame pointer is a return address only if it is in mapped code.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_frame_pointer_that_leads_outside_of_code_ends_the_chain() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["-O2", "-fno-omit-frame-pointer", "-mno-red-zone"];
    let Some(program) = compiled(&machine, "cc", &options, "stacks/no_chain.c", "no_chain") else { return };
    let trace = trace(&machine, &["-e", "lseek", "--call-graph", "fp"], &[&program]).succeeded();
    let lines: Vec<&str> = trace.text.lines().map(str::trim).skip_while(|line| !line.contains("lseek(")).skip(1).collect();
    let expected = [format!("main ({program})"), "[the chain of frame pointers ends here; --call-graph dwarf needs none]".to_owned()];
    assert_eq!(lines[..2.min(lines.len())], expected, "{}", trace.text);
    assert!(!trace.text.contains("656d616e74"), "{}", trace.text);
}

/// More bytes are only recommended if there are more. The whole stack is copied here, with the environment above it.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_frame_pointer_that_leads_above_the_stack_is_not_said_to_need_more_bytes() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2", "-fno-asynchronous-unwind-tables"], "stacks/above.c", "above") else { return };
    let options = ["-e", "lseek", "--engine", "tracepoint", "--call-graph", "dwarf,60K"];
    let trace = trace(&machine, &options, &[&program]).succeeded();
    let lines: Vec<&str> = trace.text.lines().map(str::trim).skip_while(|line| !line.contains("lseek(")).skip(1).collect();
    assert_eq!(lines.first(), Some(&format!("main ({program})").as_str()), "{}", trace.text);
    assert!(
        lines[1].starts_with("[the callers are unknown: only ") && lines[1].ends_with(" bytes of this stack could be read]"),
        "{}",
        trace.text
    );
}

#[test]
fn stacks_of_programs_of_all_builds_are_unwound() {
    let Some(machine) = Machine::shared() else { return };
    let builds: [(&str, &[&str]); 7] = [
        ("optimized", &["-O2"]),
        ("plain", &["-O0"]),
        ("static", &["-O2", "-static"]),
        ("static-pie", &["-O2", "-static-pie"]),
        ("no-pie", &["-O2", "-no-pie"]),
        ("debug-frame", &["-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
        ("frame-pointers", &["-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
    ];
    for (name, options) in builds {
        let Some(program) = compiled(&machine, "cc", options, "stacks/chain.c", name) else { return };
        for scene in ["plain", "signal", "thread"] {
            let trace = assert_named(&machine, &["--call-graph", "dwarf"], &[&program, scene, TAG]);
            let frames = frames_under(&trace, &format!("offset: {TAG}"));
            if scene == "plain" && name != "frame-pointers" && name != "debug-frame" {
                assert_eq!(frames.last().map(|frame| frame.name.as_str()), Some("_start"), "{name}: {}", trace.text);
            }
        }
    }
}

#[test]
fn call_chains_by_frame_pointers_have_the_functions() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["-O2", "-fno-omit-frame-pointer", "-static"];
    let Some(program) = compiled(&machine, "cc", &options, "stacks/chain.c", "frame-pointers") else { return };
    let trace = trace(&machine, &["-e", "lseek", "--call-graph", "fp"], &[&program, "plain", TAG]).succeeded();
    let names: Vec<String> = frames_under(&trace, &format!("offset: {TAG}")).into_iter().map(|frame| frame.name).collect();
    // The C library's function has no frame of its own, so the kernel's call chain lacks its caller.
    assert!(names.iter().any(|name| name == "middle") && names.iter().any(|name| name == "outer"), "{names:?}\n{}", trace.text);
}

#[test]
fn frames_of_variable_size_are_unwound() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/chain.c", "chain") else { return };
    assert_named(&machine, &["--call-graph", "dwarf"], &[&program, "alloca", TAG]);
}

#[test]
fn frames_in_a_library_that_was_loaded_at_run_time_have_names() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/chain.c", "chain") else { return };
    let Some(library) = compiled(&machine, "cc", &["-O2", "-shared", "-fPIC"], "stacks/library.c", "library.so") else { return };
    let trace = assert_named(&machine, &["--call-graph", "dwarf"], &[&program, "library", TAG, &library]);
    let frames = frames_under(&trace, &format!("offset: {TAG}"));
    assert_eq!((frames[2].file.as_str(), frames[1].file.as_str()), (library.as_str(), program.as_str()));
}

#[test]
fn a_stack_that_is_deeper_than_the_first_copy_is_unwound() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/chain.c", "chain") else { return };
    let of_kib = |kib: u32| (kib * 2).to_string();
    assert_named(&machine, &["--call-graph", "dwarf,60K"], &[&program, "deep", TAG, &of_kib(40)]);
    // A stack that is deeper than the limit is incomplete, and a line says so.
    let trace = trace(&machine, &["-e", "lseek", "--call-graph", "dwarf,4K"], &[&program, "deep", TAG, &of_kib(40)]).succeeded();
    let frames = frames_under(&trace, &format!("offset: {TAG}"));
    assert!(frames[2..].iter().all(|frame| frame.name == "descend") && (8..=12).contains(&frames.len()), "{}", trace.text);
    assert!(trace.text.contains("[only 4096 bytes of stack were copied"), "{}", trace.text);
}

#[test]
fn frames_through_generated_code_are_unwound() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2", "-fno-omit-frame-pointer"], "stacks/chain.c", "chain") else { return };
    // The name is in perf-PID.map, or in jit-PID.dump, until the file `shown` says that the line has it.
    for scene in ["made", "dumped"] {
        let shown = machine.path(&format!("{scene}.shown"));
        let mut run = start(&machine, &["-e", "lseek", "--call-graph", "dwarf"], &[&program, scene, TAG, &shown]);
        run.wait_for_text("line with the name of generated code", |text| text.contains("made_function"));
        fs::write(&shown, "made_function").expect("the test's directory is writable");
        assert_trace_named(run.finish());
    }
}

#[test]
fn inlined_functions_and_source_lines_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "c++", &["-O2", "-g"], "stacks/inlined.cc", "inlined") else { return };
    let trace = assert_named(&machine, &["--call-graph", "dwarf", "--inline", "--lines"], &[&program, TAG]);
    let frames = frames_under(&trace, &format!("offset: {TAG}"));
    let source = include_str!("../programs/stacks/inlined.cc");
    let line = source.lines().position(|line| line.contains("lseek(-1, tag, 9);")).map_or(0, |at| at + 1);
    assert!(frames[1].line.ends_with(&format!("inlined.cc:{line}")), "{frames:?}");
}

#[test]
fn names_of_rust_functions_are_demangled() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "rustc", &["--edition", "2024", "-O"], "stacks/generic.rs", "generic") else { return };
    assert_named(&machine, &["--call-graph", "dwarf"], &[&program, TAG]);
}

/// Debian's sleep has no symbols, and its C library has those of exported functions only.
#[test]
fn frames_of_a_stripped_program_are_file_and_offset() {
    let Some(machine) = Machine::shared() else { return };
    let trace = trace(&machine, &["-e", "clock_nanosleep", "--call-graph", "dwarf"], &["sleep", "0.01"]).succeeded();
    let frames = frames_under(&trace, "clock_nanosleep");
    assert_eq!(frames[0].name, "clock_nanosleep", "{}", trace.text);
    assert!(frames.iter().any(|frame| frame.name.starts_with("__libc_start_")), "{}", trace.text);
    let sleep = frames.iter().filter(|frame| frame.name.contains("/sleep+0x")).count();
    assert!(sleep >= 3, "main, its callees, and _start are file and offset: {}", trace.text);
}

#[test]
fn frames_of_python_have_names() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Program("python3")]) {
        return;
    }
    let script = format!("import os\ndef f():\n  try: os.lseek(0, {TAG}, 9)\n  except OSError: pass\nf()");
    let trace = trace(&machine, &["-e", "lseek", "--call-graph", "dwarf"], &["python3", "-c", &script]).succeeded();
    let frames = frames_under(&trace, &format!("offset: {TAG}"));
    let has = |name: &str| frames.iter().any(|frame| frame.name == name);
    assert!(has("_PyEval_EvalFrameDefault") && has("Py_BytesMain"), "{}", trace.text);
}

/// All stacks of several threads have all their frames. `perf trace --call-graph dwarf` loses nearly all of these.
#[test]
fn thousands_of_stacks_are_complete_and_none_is_lost() {
    let Some(machine) = Machine::alone() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/many.c", "many") else { return };
    let run = trace(&machine, &[&["-e", "openat,close", "--call-graph", "dwarf"], room()].concat(), &[&program, "2", "1501"]).succeeded();
    let verdict = run.conserved();
    assert_eq!(verdict.lost, 0);
    for (text, count) in [("openat(", 3002), ("close(", 3002)] {
        let of_threads: Vec<Vec<Frame>> = stacks(&run, text).into_iter().filter(|frames| frames.iter().any(|f| f.name == "work")).collect();
        assert_eq!(of_threads.len(), count, "{text}");
        let names = |frames: &[Frame]| frames.iter().map(|frame| frame.name.clone()).collect::<Vec<_>>();
        let first = names(&of_threads[0]);
        assert_eq!(first[1..3], ["open_and_close", "work"], "{first:?}");
        assert!(of_threads.iter().all(|frames| names(frames) == first), "{text}: every stack is the same");
    }
}

/// Whether a frame is the kernel's. In Linux 6.1, rtrace's own BPF program is one of them.
fn is_in_the_kernel(frame: &Frame) -> bool {
    frame.file.starts_with("[kernel") || frame.file == "[bpf]"
}

#[test]
fn kernel_stacks_have_names() {
    let Some(machine) = Machine::shared() else { return };
    let trace = trace(&machine, &["-e", "clock_nanosleep", "--kernel-stack"], &["sleep", "0.01"]).succeeded();
    let frames = frames_under(&trace, "clock_nanosleep");
    assert!(frames.iter().all(is_in_the_kernel), "{}", trace.text);
    assert!(frames.iter().any(|frame| frame.name.contains("do_syscall_64") || frame.name.contains("el0_svc")), "{}", trace.text);
}

#[test]
fn stacks_of_a_running_process_are_unwound() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/many.c", "many") else { return };
    let mut child = Command::new(&program).args(["1", "0"]).stdout(std::process::Stdio::null()).spawn().expect("it was just compiled");
    let mut run = start(&machine, &["-e", "openat", "--call-graph", "dwarf", "-p", &child.id().to_string()], &[]);
    run.wait_for("calls", |lines| lines.len() > 20);
    let _ = child.kill();
    let _ = child.wait();
    let trace = run.finish();
    let all = stacks(&trace, "openat(");
    assert!(all.iter().all(|frames| frames.iter().any(|frame| frame.name == "work")), "{}", trace.text);
}

/// After execve the caller's stack no longer exists, and exit_group does not return.
#[test]
fn stacks_of_execve_and_exit_group_are_taken_at_the_entry() {
    let Some(machine) = Machine::shared() else { return };
    let script = "exec /usr/bin/env /usr/bin/true";
    let trace = trace(&machine, &["-e", "execve,exit_group", "--call-graph", "dwarf"], &["sh", "-c", script]).succeeded();
    let of = |text: &str| {
        stacks(&trace, text).into_iter().map(|frames| frames.iter().map(|frame| frame.file.clone() + &frame.name).collect::<String>())
    };
    let execs: Vec<String> = of("execve(").collect();
    assert_eq!(execs.len(), 3, "{}", trace.text);
    assert!(execs[0].is_empty(), "the first one is made by rtrace's own code: {}", trace.text);
    assert!(execs[1].contains("execve") && execs[1].contains("/dash"), "sh executes env: {}", trace.text);
    assert!(execs[2].contains("execve") && execs[2].contains("/env"), "env executes true: {}", trace.text);
    let ends: Vec<String> = of("exit_group(").collect();
    assert!(ends.len() == 1 && ends[0].contains("_exit") && ends[0].contains("/true"), "{}", trace.text);
}

#[test]
fn items_of_e_have_their_own_stack_options() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/chain.c", "chain") else { return };
    let events = "lseek/call-graph=dwarf,max-stack=3/,exit_group,mmap/kernel-stack/";
    let trace = trace(&machine, &["-e", events], &[&program, "plain", TAG]).succeeded();
    let names = |text| frames_under(&trace, text).into_iter().map(|frame| frame.name).collect::<Vec<_>>();
    assert_eq!(names("lseek(")[1..], ["innermost", "middle"], "{}", trace.text);
    assert!(names("exit_group(").is_empty() && frames_under(&trace, "mmap(").iter().all(is_in_the_kernel), "{}", trace.text);
}

#[test]
fn min_stack_leaves_out_calls_with_fewer_frames() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/chain.c", "chain") else { return };
    let run = |least: &str| {
        let options = ["-e", "lseek", "--min-stack", least];
        trace(&machine, &options, &[&program, "deep", TAG, "5"]).succeeded()
    };
    assert_eq!(run("8").count("lseek"), 1);
    let none = run("30");
    assert_eq!((none.count("lseek"), none.conserved().held_back), (0, 1), "{}", none.stderr);
}

#[test]
fn call_paths_add_up_to_all_calls() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/many.c", "many") else { return };
    let (folded, picture) = (machine.path("folded"), machine.path("picture.svg"));
    let options =
        ["-e", "openat,close", "--folded", &folded, "--flamegraph", &picture, "--stack-weight", "count", "-S", "--stack-summary=1"];
    let trace = trace(&machine, &[&options, room()].concat(), &[&program, "2", "500"]).succeeded();
    let folded = fs::read_to_string(folded).expect("it was written");
    let of_work: Vec<&str> = folded.lines().filter(|line| line.starts_with("many;") && line.contains(";work;open_and_close;")).collect();
    let weights: u64 = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    assert_eq!(weights, trace.lines().iter().filter(|line| line.call().is_some()).count() as u64, "each call once:\n{folded}");
    assert!(of_work.len() == 2 && of_work.iter().all(|line| line.ends_with(" 1000")), "{folded}");
    assert!(of_work[0].ends_with(";close 1000") && of_work[1].ends_with(";openat 1000"), "{folded}");
    let picture = fs::read_to_string(picture).expect("it was written");
    assert!(picture.contains("data-name=\"open_and_close\"><title>open_and_close: 2000 calls"), "{picture}");
    let summary = trace.text.split(" Call paths:").nth(1).expect("the summary has them");
    assert!(summary.contains("openat: 1000 calls") && summary.contains("      work ("), "{summary}");
}

/// With a flame graph or folded stacks, lines are printed only if another option names their destination.
#[test]
fn a_flame_graph_replaces_lines_and_is_named_at_the_end() {
    let Some(machine) = Machine::shared() else { return };
    let (folded, picture, lines) = (machine.path("folded"), machine.path("picture.svg"), machine.path("lines"));
    let workload = crate::machine::workload();
    let run = |options: &[&str]| {
        crate::trace::plain(&machine, &[options, &["-e", "lseek", "--", &workload, "calls", "lseek", "1", "30"]].concat()).succeeded()
    };
    let alone = run(&["--flamegraph", &picture]);
    assert_eq!(alone.stderr, format!("rtrace: the call paths of 30 calls are in {picture} (flame graph)\n"));
    assert!(fs::read_to_string(&picture).expect("it was written").contains("lseek"));
    let both = run(&["--folded", &folded, "--flamegraph", &picture, "-o", &lines]);
    assert_eq!(both.stderr, format!("rtrace: the call paths of 30 calls are in {folded} (folded stacks) and {picture} (flame graph)\n"));
    assert_eq!(fs::read_to_string(&lines).expect("it was written").matches(" lseek(").count(), 30);
    let summary = run(&["--folded", &folded, "-s"]);
    assert!(summary.stderr.contains("Summary of events") && !summary.stderr.contains(" lseek("), "{}", summary.stderr);
}
