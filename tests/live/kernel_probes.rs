//! Tests of probes on the kernel, on kernels that have them: kprobes, fprobes and event probes.

use crate::attach::{Target, armed};
use crate::machine::{self, Machine};
use crate::needs::{Need, left_by_the_dead, reads};
use crate::trace::{Trace, plain, start, trace};
use regex::Regex;
use rustix::process::{Signal, kill_process};
use std::process::Command;

/// The file that the traced commands open.
const FILE: &str = "/etc/passwd";

/// Returns the text behind the task in each line of a probe.
pub fn events(trace: &Trace) -> Vec<String> {
    let lines = trace.lines();
    let texts = lines.iter().filter_map(|line| line.text.split_once("): ")?.1.split_once(' '));
    texts.map(|(_, what)| what.to_owned()).filter(|what| what.starts_with("probe:")).collect()
}

/// Traces `cat` of the file and asserts that a line of the probe matches the pattern.
fn assert_line(machine: &Machine, options: &[&str], pattern: &str) -> Trace {
    assert_line_of(machine, options, &["cat", FILE], pattern)
}

/// Traces a command and asserts that a line of the probe matches the pattern.
pub fn assert_line_of(machine: &Machine, options: &[&str], command: &[&str], pattern: &str) -> Trace {
    let trace = trace(machine, options, command).succeeded();
    let pattern = Regex::new(&format!("^probe:{pattern}$")).expect("the pattern is right");
    assert!(events(&trace).iter().any(|event| pattern.is_match(event)), "{pattern} in\n{}\n{}", trace.text, trace.stderr);
    assert_gone();
    trace
}

/// Asserts that no event of a dead rtrace is left.
pub fn assert_gone() {
    assert_eq!(left_by_the_dead(), [""; 0]);
}

#[test]
fn kprobes_fetch_arguments_and_return_values() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let entry = "p do_sys_openat2 dfd=$arg1:s32 filename=+0($arg2):ustring flags=+0($arg3):x64 mode=+8($arg3):u16";
    assert_line(&machine, &["--probe", entry], r#"do_sys_openat2\(dfd: CWD, filename: "/etc/passwd", flags: (0|0x[0-9a-f]+), mode: 0\)"#);
    let back = r"do_sys_openat2__return\([a-z0-9_.]+\+0x[0-9a-f]+ <- do_sys_openat2, arg1: 3\)";
    assert_line(&machine, &["--probe", "r do_sys_openat2 $retval:s32"], back);
    assert_line(&machine, &["--probe", "p:probe/mine do_sys_openat2+0 where=%ip:symbol"], r"mine\(where: do_sys_openat2(\+0x[0-9a-f]+)?\)");
}

#[test]
fn fprobes_fetch_arguments_and_return_values() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Fprobes]) {
        return;
    }
    assert_line(&machine, &["--probe", "f vfs_read count=$arg3:u64"], r"vfs_read\(count: [0-9]+\)");
    assert_line(
        &machine,
        &["--probe", "f vfs_read%return $retval:s64"],
        r"vfs_read__return\([a-z0-9_.]+\+0x[0-9a-f]+ <- vfs_read, arg1: [0-9]+\)",
    );
}

#[test]
fn an_eprobe_fetches_fields_of_its_event() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Eprobes]) {
        return;
    }
    let probe = "e raw_syscalls.sys_enter nr=$id:s64 filename=+8($args):ustring";
    let trace = assert_line(&machine, &["--probe", probe, "--filter", "nr == 257"], r#"sys_enter\(nr: 257, filename: .*\)"#);
    assert!(events(&trace).iter().all(|event| event.contains("nr: 257,")), "{}", trace.text);
}

#[test]
fn kernel_stacks_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let trace = assert_line(&machine, &["--kernel-stack", "--probe", "p do_sys_openat2"], r"do_sys_openat2\(\)");
    let frames: Vec<String> = trace.text.lines().skip(1).map_while(crate::stacks::frame).map(|frame| frame.name).collect();
    assert!(frames.iter().any(|name| name.contains("sys_openat")), "{}", trace.text);
}

/// A filter forces the probe into tracefs; without it, the kernel creates the probe when its perf event is opened.
#[test]
fn the_kprobe_pmu_yields_the_same_lines_as_tracefs() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let opened = "created by perf_event_open (not in tracefs)";
    for probe in ["p:mine/open do_sys_openat2", "r do_sys_openat2"] {
        let of_cat = |options: &[&str], is_opened: bool| {
            let run = trace(&machine, &[&["-a", "--probe", probe], options].concat(), &["cat", FILE]).succeeded();
            assert_eq!(run.stderr.contains(opened), is_opened, "{}", run.stderr);
            let lines: Vec<String> =
                run.text.lines().filter_map(|line| Some(line.split_once("): cat/")?.1.split_once(' ')?.1.to_owned())).collect();
            assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("open")), "{}\n{}", run.text, run.stderr);
            lines
        };
        assert_eq!(of_cat(&[], true), of_cat(&["--filter", "common_pid > 0"], false), "{probe}");
    }
    let mut run = start(&machine, &["-a", "--probe", "r do_sys_openat2"], &["sleep", "1000"]);
    run.wait_for("line of a probe", |lines| !lines.is_empty());
    let owned = format!("rtrace_{}_", run.pid().as_raw_nonzero());
    let events = || reads("dynamic_events");
    assert!(!events().contains(&owned), "{}", events());
    kill_process(run.pid(), Signal::KILL).expect("it is ours");
    run.finish();
    assert!(!events().contains(&owned), "{}", events());
    // The PMUs report only an errno, so the reason comes from tracefs's error log.
    for (probe, words) in [("p do_sys_openat2+1", "instruction boundary"), ("p no_such_function_here", "no_such_function_here")] {
        let run = plain(&machine, &["-a", "--probe", probe, "--", "true"]);
        assert!(run.status == 125 && run.stderr.contains(words) && run.stderr.contains(&format!("--probe '{probe}'")), "{}", run.stderr);
    }
    assert_gone();
}

/// The traced program makes its calls from an existing thread, from new threads and from children.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_running_process_is_probed() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let mut target = Target::new();
    // 104 is the offset of the call's second argument in struct pt_regs.
    let probe = "p __x64_sys_lseek tag=+104($arg1):u64";
    let mut run = start(&machine, &["-p", &target.pid(), "-e", "poll", "--probe", probe], &[]);
    run.wait_for("poll", armed);
    // Calls of other processes are not traced.
    assert!(Command::new(machine::workload()).args(["tag", "77"]).status().is_ok_and(|status| status.success()));
    target.go();
    let events = events(&run.finish().succeeded());
    let mut tags: Vec<&str> = events.iter().filter_map(|event| event.strip_prefix("probe:__x64_sys_lseek(tag: ")).collect();
    tags.sort_unstable();
    assert_eq!(tags, ["1)", "2)", "3)", "4)", "5)"], "{events:?}");
    assert_gone();
}

#[test]
fn user_frames_follow_kernel_frames() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let Some(program) = crate::probes::program(&machine) else { return };
    let trace = trace(&machine, &["--call-graph", "dwarf", "--probe", "p vfs_write"], &[&program, "1"]).succeeded();
    let frames: Vec<_> = trace.text.lines().skip(1).map_while(crate::stacks::frame).collect();
    let kernels = frames.iter().take_while(|frame| frame.file == "[kernel]").count();
    assert!(frames[0].name == "vfs_write" && kernels >= 2, "{}", trace.text);
    let own: Vec<&str> = frames[kernels..].iter().filter(|frame| frame.file == program).map(|frame| frame.name.as_str()).collect();
    assert_eq!(own.first().copied(), Some("main"), "{}", trace.text);
}

#[test]
fn a_summary_counts_hits_of_probes() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let options = ["-s", "--probe", "p vfs_read count=$arg3:u64", "--filter", "count == 3"];
    let trace = trace(&machine, &options, &["dd", "if=/dev/zero", "of=/dev/null", "bs=3", "count=7", "status=none"]).succeeded();
    assert!(Regex::new(r"(?m)^ 7 events$").expect("the pattern is right").is_match(&trace.text), "{}", trace.text);
}

#[test]
fn refusals_of_the_kernel_are_explained() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let refused = |probe: &str, words: &[&str]| {
        let run = plain(&machine, &["--probe", probe, "--", "echo", "started"]);
        assert_eq!((run.status, run.stdout.as_str()), (125, ""), "{probe}: {}", run.stderr);
        words.iter().for_each(|word| assert!(run.stderr.contains(word), "no {word:?} in\n{}", run.stderr));
        run.stderr
    };
    // The kernel's entry in its error log: the message, the line, and a caret under the wrong part.
    let refused_by_kernel = |probe: &str, words: &[&str], part: &str| {
        let said = refused(probe, words);
        let [message, line, caret] = said.lines().skip(1).collect::<Vec<_>>()[..] else { panic!("{said}") };
        assert!(message.starts_with("    trace_") && message.contains(" error: "), "{said}");
        let behind = |text: &str| text.split_once(' ').map(|(_, place)| place.to_owned());
        assert!(line.starts_with("    p:rtrace_") || line.starts_with("    r:rtrace_"), "{said}");
        assert_eq!(behind(line.trim()), behind(probe), "{said}");
        assert_eq!((caret.trim(), caret.find('^').and_then(|at| line.get(at..))), ("^", Some(part)), "{said}");
    };
    refused_by_kernel("p do_sys_openat2+1", &["instruction boundary"], "do_sys_openat2+1");
    refused_by_kernel("p no_such_function_here", &["the kernel has no function no_such_function_here"], "no_such_function_here");
    refused_by_kernel("r do_sys_openat2 a=%di:string", &["a string must be read from memory"], "string");
    refused("p do_sys_openat2 a=@no_such_data_here", &["the kernel has no symbol no_such_data_here", "^"]);
    refused("r do_sys_openat2+16", &["return probe", "^"]);
    refused("p do_sys_openat2 a=%zz", &["the kernel knows no register `%zz`", "    p do_sys_openat2 a=%zz\n", "^~~"]);
    refused("p do_sys_openat2 a=%di:u7", &["there is no type `u7`", "similar: u", "^~"]);
    let many: String = (0..129).map(|n| format!(" a{n}=%di")).collect();
    refused(&format!("p do_sys_openat2{many}"), &["128 arguments at most", "a128=%di\n", "^~~~~~~~"]);
    // `0xffffffff81000000-0xffffffff81000010\tname`
    let blacklist = std::fs::read_to_string("/sys/kernel/debug/kprobes/blacklist").unwrap_or_default();
    let names = blacklist.lines().filter_map(|line| line.split_whitespace().nth(1));
    match names.into_iter().find(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')) {
        Some(name) => refused_by_kernel(&format!("p {name}"), &["blacklisted"], name),
        None => crate::needs::unsupported("no kprobes/blacklist in debugfs: the refusal of a blacklisted function was not tested"),
    }
    assert_gone();
}

#[test]
fn the_next_run_removes_kprobes_of_a_killed_run() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    for probe in ["p do_sys_openat2", "r do_sys_openat2"] {
        let mut run = start(&machine, &["--probe", probe], &["sleep", "1000"]);
        run.wait_for("line of a probe", |lines| !lines.is_empty());
        kill_process(run.pid(), Signal::KILL).expect("it is ours");
        run.finish();
        trace(&machine, &["-e", "lseek"], &["true"]).succeeded();
        assert_gone();
    }
}
