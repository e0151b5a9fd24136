//! Tests of event probes and synthetic events, for which perf events yield no records: the examples of the kernel's
//! documentation (Documentation/trace/eprobetrace.rst), with the fields and values that it shows.

use crate::line;
use crate::machine::Machine;
use crate::needs::{Need, reads};
use crate::trace::{Trace, plain, start, trace};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::io::Write;
use std::path::Path;

const TRACEFS: &str = "/sys/kernel/tracing";

/// Lines that the test wrote to tracefs's files. On drop, each is undone by its second line, in reverse order.
struct TracefsLines(Vec<(&'static str, String)>);

impl TracefsLines {
    fn write(lines: &[(&'static str, &'static str, String)]) -> TracefsLines {
        let mut by_hand = TracefsLines(Vec::new());
        for (file, line, back) in lines {
            append(file, line).unwrap_or_else(|error| panic!("{line} to {file}: {error}"));
            by_hand.0.push((file, back.clone()));
        }
        by_hand
    }
}

impl Drop for TracefsLines {
    fn drop(&mut self) {
        self.0.iter().rev().for_each(|(file, line)| _ = append(file, line));
    }
}

fn append(file: &str, line: &str) -> std::io::Result<()> {
    fs::OpenOptions::new().append(true).open(Path::new(TRACEFS).join(file))?.write_all(line.as_bytes())
}

/// Returns the arguments in each line of this event.
fn args_of(trace: &Trace, event: &str) -> Vec<String> {
    let begin = format!(" {event}(");
    let lines = trace.lines();
    let args = lines.iter().filter_map(|line| Some(line.text.split_once(&begin)?.1.strip_suffix(')')?.to_owned()));
    args.collect()
}

/// Asserts that tracefs has no instance of a run that has ended. (Other runs may be in progress.)
fn assert_no_instance_left() {
    let entries = fs::read_dir(Path::new(TRACEFS).join("instances")).expect("tracefs has instances").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let dead = names.filter(|name| {
        let pid = name.strip_prefix("rtrace_").and_then(|rest| rest.split('_').next());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    });
    assert_eq!(dead.collect::<Vec<_>>(), [""; 0]);
}

/// Returns the names of the opened files, from the lines of the calls. (`~` marks names that may have changed since the
/// call; these have not.)
fn opened(trace: &Trace) -> Vec<String> {
    let lines = trace.lines();
    let calls = line::calls(&lines).into_iter().filter(|(_, call)| call.name == "openat");
    calls.filter_map(|(_, call)| call.arg("filename").map(|name| name.trim_start_matches('~').to_owned())).collect()
}

#[test]
fn an_eprobe_on_sched_switch_fetches_two_pids() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Eprobes]) {
        return;
    }
    let probe = "e:sched/switch sched.sched_switch prev=$prev_pid:u32 next=$next_pid:u32";
    let trace = trace(&machine, &["--probe", probe], &["sh", "-c", "sleep 0.1; sleep 0.1"]).succeeded();
    let switches: Vec<_> = trace.lines().into_iter().filter(|line| line.text.contains(" sched:switch(")).collect();
    assert!(switches.len() > 3, "{}", trace.text);
    for line in &switches {
        // The previous task is the one that wrote the record. If the CPU becomes idle, next is 0, which is not shown.
        assert!(
            line.text.contains(&format!("(prev: {}, next: ", line.tid)) || line.text.ends_with(&format!("(prev: {})", line.tid)),
            "{line:?}"
        );
    }
    let said = trace.stderr.lines().find_map(|line| line.strip_prefix("rtrace: sched:switch: "));
    assert!(said.is_some_and(|said| said.ends_with(" 0 lost")), "{}", trace.stderr);
    assert_no_instance_left();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_eprobe_on_raw_syscalls_fetches_the_filename() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::EprobesOnArrays]) {
        return;
    }
    let file = machine.file("opened", 11);
    let probe = "e raw_syscalls.sys_enter nr=$id filename=+8($args):ustring";
    let trace = trace(&machine, &["-e", "openat", "--probe", probe, "--filter", "nr == 257"], &["cat", &file]).succeeded();
    let (seen, opened) = (args_of(&trace, "probe:sys_enter"), opened(&trace));
    assert!(!opened.is_empty() && seen.len() == opened.len(), "{}", trace.text);
    for (seen, opened) in seen.iter().zip(&opened) {
        // As the documentation says, the probe cannot read a name whose page is not in memory at the entry.
        assert!([format!("nr: 0x101, filename: {opened}"), "nr: 0x101, filename: (fault)".to_owned()].contains(seen), "{}", trace.text);
    }
    assert!(trace.stderr.contains("the kernel lets through: nr == 257"), "{}", trace.stderr);
    assert_no_instance_left();
}

/// Asserts that a synthetic event passes the address of the filename from the entry to the exit, where its page is in
/// memory.
fn by_synthetic_event(machine: &Machine, lines: &[(&'static str, &'static str, String)], synthetic: &str, event: &str) {
    let _by_hand = TracefsLines::write(lines);
    let file = machine.file("opened", 11);
    let events = format!("openat,{synthetic},{event}");
    let trace = trace(machine, &["-e", &events], &["cat", &file]).succeeded();
    let opened = opened(&trace);
    assert!(opened.iter().any(|name| name.ends_with("/opened\"")), "{}", trace.text);
    assert_eq!(args_of(&trace, event), opened.iter().map(|name| format!("filename: {name}")).collect::<Vec<_>>(), "{}", trace.text);
    assert_eq!(args_of(&trace, synthetic).len(), opened.len(), "{}", trace.text);
    assert_no_instance_left();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn raw_syscalls_and_a_synthetic_event_yield_filenames() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::EprobesOnArrays, Need::SyntheticEvents, Need::Histograms]) {
        return;
    }
    const START: &str = "hist:keys=common_pid:f=filename if nr == 257";
    const END: &str = "hist:keys=common_pid:file=$f:onmatch(rtlive.openat_start).trace(rtlive_filename,$file) if id == 257";
    let lines = [
        (
            "dynamic_events",
            "e:rtlive/openat_start raw_syscalls.sys_enter nr=$id filename=+8($args):x64",
            "-:rtlive/openat_start".to_owned(),
        ),
        ("dynamic_events", "s:rtlive_filename u64 file", "-:synthetic/rtlive_filename".to_owned()),
        ("events/rtlive/openat_start/trigger", START, format!("!{START}")),
        ("events/raw_syscalls/sys_exit/trigger", END, format!("!{END}")),
        ("dynamic_events", "e:rtlive/openat synthetic.rtlive_filename filename=+0($file):ustring", "-:rtlive/openat".to_owned()),
    ];
    by_synthetic_event(&machine, &lines, "synthetic:rtlive_filename", "rtlive:openat");
}

#[test]
fn openat_events_and_a_synthetic_event_yield_filenames() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Eprobes, Need::SyntheticEvents, Need::Histograms]) {
        return;
    }
    const START: &str = "hist:keys=common_pid:g=filename";
    const END: &str = "hist:keys=common_pid:file2=$g:onmatch(syscalls.sys_enter_openat).trace(rtlive_filename2,$file2)";
    let lines = [
        ("dynamic_events", "s:rtlive_filename2 u64 file", "-:synthetic/rtlive_filename2".to_owned()),
        ("events/syscalls/sys_enter_openat/trigger", START, format!("!{START}")),
        ("events/syscalls/sys_exit_openat/trigger", END, format!("!{END}")),
        ("dynamic_events", "e:rtlive/openat2 synthetic.rtlive_filename2 filename=+0($file):ustring", "-:rtlive/openat2".to_owned()),
    ];
    by_synthetic_event(&machine, &lines, "synthetic:rtlive_filename2", "rtlive:openat2");
}

#[test]
fn lost_records_are_counted() {
    let Some(machine) = Machine::alone() else { return };
    if machine.lacks(&[Need::Eprobes]) {
        return;
    }
    let probe = "e:rtlive/entry raw_syscalls.sys_enter nr=$id:u64";
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000", "status=none"];
    let trace = trace(&machine, &["-m", "8K", "--probe", probe], &dd).succeeded();
    let came = args_of(&trace, "rtlive:entry").len() as u64;
    let said = trace.stderr.lines().find_map(|line| line.strip_prefix("rtrace: rtlive:entry: ")).unwrap_or_default();
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [issued, received, lost] = numbers[..] else { panic!("{}", trace.stderr) };
    assert!(issued > 40_000 && received >= came && received + lost == issued, "{came} lines: {said}");
    // Besides the printed calls, rtrace's child made some calls before it executed dd.
    assert!(received - came < 200, "{came} lines: {said}");
    assert_no_instance_left();
}

/// The name of a synthetic event is the user's choice, so it does not show the owner.
#[test]
fn a_synthetic_event_of_a_killed_run_is_removed_by_the_next() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::SyntheticEvents]) {
        return;
    }
    let options = ["--probe", "s:rtlive_killed u64 number", "-e", "openat"];
    let mut run = start(&machine, &options, &["sh", "-c", "for i in $(seq 100); do cat /dev/null; sleep 0.02; done"]);
    run.wait_for("a call", |lines| !lines.is_empty());
    let pid = run.pid();
    kill_process(pid, Signal::KILL).expect("it is ours");
    run.finish();
    let has = || reads("dynamic_events").contains("rtlive_killed");
    assert!(has(), "the killed run leaves the event");
    let listed = plain(&machine, &["probe", "list"]).stdout;
    let line = listed.lines().find(|line| line.starts_with("synthetic:rtlive_killed "));
    assert!(line.is_some_and(|line| line.contains(&format!("gone:{} ", pid.as_raw_nonzero()))), "{listed}");
    trace(&machine, &["-e", "lseek"], &["true"]).succeeded();
    assert!(!has(), "{}", reads("dynamic_events"));
}
