//! `record --snapshot`: the newest records, written when somebody asks for them.
//!
//! The programs make many times as many calls as the rings hold. Each tagged call has a number, so a call that is
//! missing inside of a snapshot is seen.

use crate::compiled::compiled;
use crate::machine::{self, Machine};
use crate::trace::shell_with_engine;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Defines `recorder`, which starts a recorder with the smallest rings; `pid` is its number then. `until TEXT` waits
/// until its messages have this text, and `snapshots` waits for so many of them.
const BEGIN: &str = r#"
    cd $dir
    recorder() { $rtrace record $engine -m 256K -o data "$@" 2>said & pid=$!; until_said 'kill -USR2' && reader=$pid; }
    until_said() { until grep -q -e "$1" said; do kill -0 $pid 2>/dev/null || { cat said; return 1; }; sleep 0.05; done; }
    snapshots() { until [ "$(grep -c 'a snapshot of' said)" -ge $1 ]; do kill -0 $pid 2>/dev/null || { cat said; return 1; }; sleep 0.05; done; }
"#;

/// Runs a shell line after [`BEGIN`]. Returns its standard output and what the recorder said.
fn run(machine: &Machine, script: &str) -> (String, String) {
    let text = shell_with_engine(machine, &format!("dir={}; {BEGIN} {script}", machine.dir().display())).text;
    (text, std::fs::read_to_string(machine.path("said")).unwrap_or_default())
}

/// Returns the snapshots of a test, the oldest first.
fn files(machine: &Machine) -> Vec<PathBuf> {
    let all = std::fs::read_dir(machine.dir()).expect("the directory of the test can be read").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("data."))).collect();
    files.sort();
    files
}

/// Returns the lines of a recording, and its messages.
fn shown(machine: &Machine, file: &std::path::Path, options: &str) -> (Vec<String>, String) {
    let script = format!("$rtrace -i {} -o - {options} 2>$dir/messages", file.display());
    let text = shell_with_engine(machine, &script).text;
    let messages = std::fs::read_to_string(machine.path("messages")).unwrap_or_default();
    (text.lines().map(str::to_owned).collect(), messages)
}

/// Returns the tags of the calls of lseek, by thread, in the order of the lines.
fn tags(lines: &[String]) -> BTreeMap<String, Vec<u64>> {
    let mut tags: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in lines {
        // A call that was in flight when the snapshot begins has no entry there, if entries have records of their own.
        let Some((head, rest)) = line.split_once("lseek(").filter(|(_, rest)| !rest.starts_with("?)")) else { continue };
        let thread = head.split_whitespace().last().expect("the task precedes the call").to_owned();
        let tag = rest.split_once("offset: ").and_then(|(_, rest)| rest.split([',', ')']).next()?.parse().ok());
        tags.entry(thread).or_default().push(tag.unwrap_or_else(|| panic!("no tag in {line}")));
    }
    tags
}

/// Checks that no call is missing inside of a snapshot, and returns the first and last tag of each thread.
fn contiguous(lines: &[String]) -> Vec<(u64, u64)> {
    let tags = tags(lines);
    for (thread, tags) in &tags {
        assert!(tags.windows(2).all(|pair| pair[1] == pair[0] + 1), "calls of {thread} are missing or not in order: {tags:?}");
    }
    tags.values().map(|tags| (tags[0], tags[tags.len() - 1])).collect()
}

#[test]
fn a_signal_takes_the_newest_calls_of_all_threads() {
    let Some(machine) = Machine::shared() else { return };
    // The program would run for minutes.
    let script = r#"
        recorder --snapshot -e lseek $workload calls lseek 2 10000000 40000
        count=0; calls=0
        while [ $calls -lt 60000 ]; do
            sleep 0.3; kill -USR2 $pid; count=$((count + 1)); snapshots $count || break
            calls=$(sed -n 's/.* of \([0-9]*\) since the trace began.*/\1/p' said | tail -n 1)
        done
        kill -TERM $pid; wait $pid
        true"#;
    let (text, said) = run(&machine, script);
    let files = files(&machine);
    assert_eq!(text, "", "{said}");
    assert!(files.len() > 1 && said.contains(&format!("{} snapshots were taken", files.len())), "{said}");
    let (mut before, mut is_cut) = (0, false);
    for file in &files {
        let (lines, messages) = shown(&machine, file, "");
        let ranges = contiguous(&lines);
        assert_eq!(ranges.len(), 2, "two threads make calls at the same rate: {ranges:?}");
        is_cut = ranges.iter().all(|(first, _)| *first % 10_000_000 > 1);
        let last = ranges[0].1;
        assert!(last > before, "the snapshots follow each other: {ranges:?}, after {before}");
        before = last;
        assert!(messages.contains("taken on SIGUSR2"), "{messages}");
        assert!(lines.iter().all(|line| !line.contains("LOST")), "{lines:?}");
    }
    assert!(is_cut, "the last snapshot lacks the first calls, which were overwritten");
}

#[test]
fn a_call_that_satisfies_the_condition_takes_a_snapshot_that_has_it() {
    let Some(machine) = Machine::shared() else { return };
    let conditions = match machine::engine() {
        "bpf" => {
            &["syscall == \"rmdir\" && ret < 0", "syscall == rmdir && duration >= 0 && pathname ~ \"nowhere*\"", "errno == ENOENT"][..]
        }
        _ => &["syscall == \"rmdir\" && ret < 0", "errno == ENOENT"],
    };
    for condition in conditions {
        let script = format!(
            r#"rm -f data.*
            recorder --snapshot-on '{condition}' -e lseek,rmdir \
                sh -c '$workload calls lseek 1 50000; rmdir nowhere; while ! grep -q "a snapshot of" said; do sleep 0.05; done; $workload calls lseek 1 10'
            wait $pid; true"#
        );
        let (_, said) = run(&machine, &script);
        let files = files(&machine);
        assert_eq!(files.len(), 1, "{condition}: {said}");
        let (lines, messages) = shown(&machine, &files[0], "-e lseek,rmdir --no-signals -q");
        let calls: Vec<&String> = lines.iter().filter(|line| line.contains("lseek(") || line.contains("rmdir(")).collect();
        let last = calls.last().unwrap_or_else(|| panic!("{condition}: there are no calls: {said}"));
        assert!(last.contains("rmdir(pathname:") && last.contains("ENOENT"), "{condition}: {last}");
        let ranges = contiguous(&lines);
        assert_eq!(ranges.len(), 1, "{condition}");
        assert!(ranges[0].0 > 1 && ranges[0].1 == 50_000, "{condition}: {ranges:?}");
        assert_eq!(messages, "", "-q");
        assert!(said.contains("because of rmdir of thread") && said.contains("which returned -2"), "{condition}: {said}");
    }
}

#[test]
fn a_storm_of_matches_takes_few_snapshots_and_is_counted() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        recorder --snapshot-on 'syscall == "lseek"' --snapshot-max 2 -e lseek $workload calls lseek 2 100000 50000
        wait $pid; true"#;
    let (_, said) = run(&machine, script);
    assert_eq!(files(&machine).len(), 2, "{said}");
    assert!(said.contains("2 snapshots were taken because calls satisfied --snapshot-on"), "{said}");
    if machine::engine() == "bpf" {
        assert!(said.contains("2 snapshots were taken; 200000 calls satisfied --snapshot-on"), "{said}");
    }
    for file in files(&machine) {
        contiguous(&shown(&machine, &file, "").0);
    }
}

#[test]
fn the_path_of_a_descriptor_is_right_however_long_ago_it_was_opened() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        recorder --snapshot-at-end -e read $workload calls read 2 40000
        wait $pid; true"#;
    let (_, said) = run(&machine, script);
    let files = files(&machine);
    assert_eq!(files.len(), 1, "{said}");
    let (lines, _) = shown(&machine, &files[0], "--filter 'ret > 0' -e read");
    let reads: Vec<&String> = lines.iter().filter(|line| line.contains("read(fd: ")).collect();
    assert!(reads.len() > 500 && reads.len() < 70_000, "{}", reads.len());
    let known = reads.iter().filter(|line| line.contains("</dev/zero>")).count();
    let unknown = reads.iter().filter(|line| !line.contains('<')).count();
    assert_eq!(known + unknown, reads.len(), "a path is right or unknown: {:?}", reads.iter().find(|line| line.contains('<')));
    if machine::engine() == "bpf" {
        assert!(known >= reads.len() * 9 / 10, "{known} of {}", reads.len());
    }
}

#[test]
fn tasks_have_the_names_that_they_got_long_before() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        ($workload calls lseek 2 10000000 40000 >/dev/null & echo $! >of; wait) 2>/dev/null &
        until [ -s of ]; do sleep 0.05; done
        for target in "-p $(cat of)" "-a"; do
            recorder --snapshot -e lseek $target
            sleep 0.5
            kill -USR2 $pid; snapshots 1; kill -TERM $pid; wait $pid
        done
        kill $(cat of); true"#;
    let (_, said) = run(&machine, script);
    let files = files(&machine);
    assert_eq!(files.len(), 2, "{said}");
    let of: i32 = std::fs::read_to_string(machine.path("of")).unwrap().trim().parse().unwrap();
    for file in &files {
        let (lines, _) = shown(&machine, file, &format!("--filter 'pid == {of}'"));
        let ranges = contiguous(&lines);
        assert_eq!(ranges.len(), 2, "{}: {ranges:?}", file.display());
        assert!(lines.iter().filter(|line| line.contains("lseek(")).all(|line| line.contains("workload/")), "{:?}", lines.first());
    }
}

/// The program was mapped before the oldest record that is kept, and is gone when the snapshot is shown.
#[test]
fn a_snapshot_has_the_stacks_of_its_calls() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2", "-fno-omit-frame-pointer"], "stacks/many.c", "many") else { return };
    // close(2) of the C library has no frame, so the chain of frame pointers lacks its caller.
    for (graph, has_caller) in [("dwarf,1K", true), ("fp", false)] {
        let script = format!(
            "rm -f data.*; cp {program} copy; recorder --snapshot-at-end -e close --call-graph {graph} ./copy 2 20000 && wait $pid; rm copy"
        );
        let (text, said) = run(&machine, &script);
        let files = files(&machine);
        assert_eq!((files.len(), text.as_str()), (1, ""), "{graph}: {said}");
        let (lines, messages) = shown(&machine, &files[0], "");
        let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        let calls = count(" close(");
        assert!((100..40_000).contains(&calls), "{graph}: {calls} calls; {said}{messages}");
        assert_eq!((count(" open_and_close "), count(" work ")), (calls * usize::from(has_caller), calls), "{graph}: {messages}{lines:?}");
    }
}

#[test]
fn what_does_not_go_together_is_refused_in_one_sentence() {
    let Some(machine) = Machine::shared() else { return };
    let refused = |options: &str| {
        let script = format!("cd $dir; $rtrace record $engine {options} true 2>&1; echo status $?");
        shell_with_engine(&machine, &script).text
    };
    for (options, sentence) in [
        ("--snapshot --lossless", "record --snapshot --lossless: snapshots have only the newest records"),
        ("--snapshot -o -", "record --snapshot -o -: each snapshot is a file"),
        ("--snapshot --inject 'write:error=EIO'", "record --snapshot --inject: "),
        ("--snapshot-on 'rett < 0'", "no traced syscall or event has an argument or field `rett`; similar: ret"),
        ("--snapshot-on 'syscall == opennat'", "`opennat` is not a known value of syscall; similar: openat"),
        ("--snapshot-on 'fd.path ~ \"/etc/*\"' -e read", "cannot evaluate `fd.path ~ \"/etc/*\"` for read, and nobody else sees the calls"),
        ("--snapshot -m 256K --call-graph dwarf,60K", "has too little room for records with up to 61440 bytes of stack; use -m 2048K"),
        ("--snapshot -o /nowhere/data", "cannot write snapshots to /nowhere: "),
    ] {
        let text = refused(options);
        assert!(text.contains(sentence) && text.ends_with("status 125\n") | text.ends_with("status 2\n"), "{options}: {text}");
        assert_eq!(text.lines().count(), 2, "{options}: {text}");
    }
    if machine::engine() != "bpf" {
        let text = refused("--snapshot-on 'duration > 100ms' -e read");
        assert!(text.contains("the filter of a tracepoint (--engine tracepoint) cannot evaluate `duration > 100ms` for read"), "{text}");
    }
    assert!(files(&machine).is_empty(), "{:?}", files(&machine));
}

/// The recorder must not grow with the number of tasks that have come and gone.
#[test]
fn the_memory_of_the_recorder_is_bounded() {
    let Some(machine) = Machine::shared() else { return };
    let peak = |tasks: u32| {
        let script = format!(
            r#"rm -f data.*
            recorder --snapshot -e lseek sh -c '$workload threads {tasks} >/dev/null; grep VmHWM /proc/$PPID/status >peak; kill -USR2 $PPID; while ! grep -q "a snapshot of" said; do sleep 0.05; done'
            wait $pid; sed 's/[^0-9]//g' peak"#
        );
        run(&machine, &script).0.trim().parse::<u64>().expect("a number of KiB")
    };
    let (few, many) = (peak(1_000), peak(60_000));
    assert!(many < few + 8 * 1024, "{few} KiB for 1,000 tasks, {many} KiB for 60,000");
    let lines = shown(&machine, &files(&machine)[0], "").0;
    assert!(lines.len() > 500, "{lines:?}");
}
