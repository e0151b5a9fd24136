//! Shows the recordings of `tests/recordings/`, which `tests/recordings/make` made. These tests need no privileges.

#[path = "recordings/calls.rs"]
mod calls;
#[path = "recordings/json_events.rs"]
mod json_events;
#[path = "recordings/other_reader.rs"]
mod other_reader;
#[path = "recordings/perf_script.rs"]
mod perf_script;

use json_events::{json_events, within};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");

fn rtrace(words: &[&str]) -> Output {
    rtrace_itself(&[&["--no-config"], words].concat())
}

/// Runs a subcommand that reads no configuration.
fn rtrace_itself(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rtrace")).args(words).output().expect("rtrace can be started")
}

/// Runs rtrace on one CPU, where a replay has a single thread.
fn rtrace_on_one_cpu(words: &[&str]) -> Output {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("every kernel has it").trim();
    let first = allowed.split([',', '-']).next().unwrap();
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", first, env!("CARGO_BIN_EXE_rtrace"), "--no-config"]).args(words).output().expect("util-linux is installed")
}

fn recordings() -> Vec<PathBuf> {
    let entries = fs::read_dir(RECORDINGS).expect("the directory is in the repository");
    let mut all: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|is| is == "data")).collect();
    all.sort();
    // small.unpacked is of a version before the records of calls were packed.
    assert!(all.len() >= 7, "there are recordings of both engines");
    all
}

#[test]
fn recordings_are_shown_in_each_style_as_when_they_were_made() {
    let styles: [(&str, &[&str]); 4] =
        [("perf.txt", &[]), ("strace.txt", &["--style", "strace"]), ("jsonl", &["--json"]), ("summary.txt", &["-s"])];
    for recording in recordings() {
        for (ending, options) in styles {
            let name = recording.to_str().expect("it is UTF-8");
            let words = [&["-i", name, "-o", "-"], options].concat();
            let run = rtrace(&words);
            assert!(rtrace_on_one_cpu(&words) == run, "{name} {options:?}: the number of CPUs changes nothing");
            let said = fs::read_to_string(recording.with_extension(format!("{ending}.said"))).unwrap_or_default();
            assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr)), (Some(0), said.into()), "{name} {options:?}");
            let expected = fs::read_to_string(recording.with_extension(ending)).expect("it was made with the recording");
            assert!(!expected.is_empty());
            assert_eq!(
                String::from_utf8_lossy(&run.stdout),
                expected,
                "{name} {options:?} (after a change of the style: tests/recordings/make -e)"
            );
        }
    }
}

#[test]
fn lines_of_calls_are_written_in_a_thread_of_their_own() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        eprintln!("skipped: on one CPU, a replay has a single thread");
        return;
    }
    let name = format!("{RECORDINGS}/pipe.bpf.data");
    let mut replay = Command::new(env!("CARGO_BIN_EXE_rtrace"));
    let mut replay = replay.args(["--no-config", "-i", &name, "-o", "-", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let tasks = format!("/proc/{}/task", replay.id());
    let has_thread = || {
        let comms = fs::read_dir(&tasks).into_iter().flatten().filter_map(|task| fs::read(task.ok()?.path().join("comm")).ok());
        comms.collect::<Vec<_>>().contains(&b"rtrace-sinks\n".to_vec())
    };
    // Nobody reads the pipe, which is smaller than the output: the replay does not end before.
    while !has_thread() {
        assert!(replay.try_wait().unwrap().is_none(), "the replay ended, and had no such thread");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = replay.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.len() > 1 << 16, "{} bytes", output.stdout.len());
}

#[test]
fn a_replay_selects_and_filters_anew() {
    let name = format!("{RECORDINGS}/pipe.bpf.data");
    let run = rtrace(&["-i", &name, "-o", "-", "-e", "write", "--filter", "ret == 5"]);
    let text = String::from_utf8(run.stdout).unwrap();
    assert_eq!(text.matches("write(").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.contains("write(") || line.contains("+++")), "{text}");
}

#[test]
fn a_span_of_time_has_the_lines_that_the_whole_recording_has_in_it() {
    for recording in recordings() {
        let name = recording.to_str().expect("it is UTF-8");
        let whole = String::from_utf8(rtrace(&["-i", name, "-o", "-", "--json"]).stdout).unwrap();
        let events = json_events(&whole);
        let lines = String::from_utf8(rtrace(&["-i", name, "-o", "-"]).stdout).unwrap();
        let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        let all = events.len();
        for (first, last) in [(0, all - 1), (0, 0), (1, all / 2), (all / 3, all / 2), (all / 2, all - 1), (all - 1, all - 1)] {
            let (from, to) = (events[first].0, events[last].0);
            let span = format!("{},{}", seconds(from), seconds(to));
            let run = rtrace(&["-i", name, "-o", "-", "--json", "--time-format", "monotonic", "--time", &span]);
            let shown = String::from_utf8(run.stdout).unwrap();
            let shown = json_events(&shown);
            assert_eq!((within(&shown, 0..=u64::MAX), run.status.code()), (within(&events, from..=to), Some(0)), "{name} --time {span}");
        }
        // Relative stamps count from the first line, although that one is not shown.
        let latest = seconds(events[all / 2].0);
        let run = rtrace(&["-i", name, "-o", "-", "--time-format", "monotonic", "--time", &format!("{latest},")]);
        let count = String::from_utf8(run.stdout).unwrap().lines().count();
        let since = events[all / 2].0 - events[0].0;
        let text = rtrace(&["-i", name, "-o", "-", "--time", &format!("{since}ns,")]).stdout;
        let text = String::from_utf8(text).unwrap();
        assert!(lines.ends_with(&text) && text.lines().count() >= count, "{name}: {text}");
    }
}

#[test]
fn the_records_of_a_span_of_time_are_those_that_the_whole_recording_has_in_it() {
    // The comm precedes the process, and may have spaces.
    let time =
        |line: &str| line.split_once(" [").and_then(|(_, rest)| rest.split_whitespace().nth(1)?.strip_suffix(':').map(str::to_owned));
    let number = |time: &str| time.replace('.', "").parse::<u64>().expect("it has six digits behind the point");
    for recording in recordings().iter().filter(|path| !path.to_string_lossy().contains("perf-")) {
        let name = recording.to_str().expect("it is UTF-8");
        let script = |options: &[&str]| {
            let run = rtrace_itself(&[&["script", "-i", name], options].concat());
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            // Some recordings are older than the index.
            let said: String = said.split_inclusive('\n').filter(|line| !line.contains("its index is damaged or missing")).collect();
            (String::from_utf8_lossy(&run.stdout).into_owned(), said, run.status.code())
        };
        let (whole, said, _) = script(&[]);
        assert_eq!(said, "", "{name}");
        let lines: Vec<(String, &str)> = whole.lines().map(|line| (time(line).unwrap_or_else(|| panic!("{line}")), line)).collect();
        let last = lines.len() - 1;
        for (first, last) in [(0, last), (1, last / 2), (last / 3, last / 2), (last, last)] {
            let (from, to) = (&lines[first].0, &lines[last].0);
            let (shown, said, code) = script(&["--time", &format!("{from},{to}")]);
            let is_inside = |(time, _): &&(String, &str)| (number(from)..=number(to)).contains(&number(time));
            let expected: String = lines.iter().filter(is_inside).map(|(_, line)| format!("{line}\n")).collect();
            assert_eq!((shown, said, code), (expected, String::new(), Some(0)), "{name} {from},{to}");
        }
        let (half, _, _) = script(&["--time", ",50%"]);
        assert!(whole.starts_with(&half) && !half.is_empty() && half.len() < whole.len(), "{name}: {half}");
        let nothing = (String::new(), format!("rtrace: {name} has no records in --time 500s,600s\n"), Some(0));
        assert_eq!(script(&["--time", "500s,600s"]), nothing);
        let (_, said, code) = script(&["--time", "2,1"]);
        assert_eq!((said.as_str(), code), ("rtrace: --time: `2,1` ends before it begins\n", Some(125)));
    }
}

#[test]
fn shares_of_recordings_of_perf_are_those_of_their_times() {
    let name = format!("{RECORDINGS}/aarch64.perf-trace.data");
    let lines = |span: &[&str]| {
        let run = rtrace(&[&["-i", &name, "-o", "-"], span].concat());
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let (all, half) = (lines(&[]), lines(&["--time", ",50%"]));
    assert!(all.starts_with(&half) && !half.is_empty() && half.len() < all.len(), "{half}");
}

#[test]
fn spans_that_mean_nothing_are_refused_in_one_sentence() {
    let name = format!("{RECORDINGS}/small.bpf.data");
    for (span, part) in [
        ("x1,2", "--time: `x1` is no moment: write seconds"),
        ("2,1", "--time: `2,1` ends before it begins"),
        ("200%,", "--time: `200%` is more than the whole recording"),
    ] {
        let run = rtrace(&["-i", &name, "--time", span]);
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(said.starts_with(&format!("rtrace: {part}")) && said.lines().count() == 1, "{said}");
        assert_eq!(run.status.code(), Some(125));
    }
    let run = rtrace(&["-i", &name, "--time", "500,600"]);
    assert_eq!(String::from_utf8_lossy(&run.stderr), "rtrace: nothing matched; 8 calls were traced but not shown, held back by --time\n");
    let said = rtrace(&["--time", "1,2", "true"]).stderr;
    assert!(String::from_utf8_lossy(&said).contains("--input"), "{}", String::from_utf8_lossy(&said));
}

/// Returns what rtrace says of these bytes as a recording, and its exit status.
fn said_of(directory: &Path, bytes: &[u8], options: &[&str]) -> (String, String, Option<i32>) {
    let path = directory.join("damaged.data");
    fs::write(&path, bytes).unwrap();
    let run = rtrace(&[&["-i", path.to_str().unwrap(), "-o", "-"], options].concat());
    (String::from_utf8_lossy(&run.stdout).into_owned(), String::from_utf8_lossy(&run.stderr).into_owned(), run.status.code())
}

#[test]
fn a_damaged_recording_is_shown_as_far_as_it_can_be_read_and_the_message_says_where_it_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = fs::read(format!("{RECORDINGS}/pipe.bpf.data")).unwrap();
    let whole = said_of(directory.path(), &bytes, &[]).0;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (begin, end) = (word(40) as usize, (word(40) + word(48)) as usize);

    // The sections behind the records are missing: nothing that is shown.
    let (text, said, _) = said_of(directory.path(), &bytes[..end], &[]);
    assert_eq!((text.as_str(), said.as_str()), (whole.as_str(), ""));

    // The file ends inside a record.
    let (text, said, code) = said_of(directory.path(), &bytes[..end - 500], &[]);
    assert!(whole.starts_with(text.trim_end()) || text.lines().count() > 10, "{text}");
    assert!(said.contains(&format!("it ends at byte {}, 500 bytes before the end of its records", end - 500)), "{said}");
    assert_eq!(code, Some(125));

    // The recorder was killed: the header does not say where the records end.
    let mut killed = bytes[..end - 500].to_vec();
    killed[48..56].fill(0);
    let (text, said, code) = said_of(directory.path(), &killed, &[]);
    assert!(text.lines().count() > 10 && said.contains("the recorder was killed, or could not write"), "{said}");
    assert_eq!(code, Some(0));
    assert_eq!(said_of(directory.path(), &killed, &["--strict"]).2, Some(124));
    let script = rtrace_itself(&["script", "-i", directory.path().join("damaged.data").to_str().unwrap()]);
    assert!(script.stdout.len() > 1000 && String::from_utf8_lossy(&script.stderr).contains("the recorder was killed"));
    assert_eq!(script.status.code(), Some(0));

    // A part of it is asked for: there is no index, and a share of an unknown whole is nothing.
    let (_, said, code) = said_of(directory.path(), &killed, &["--time", "0,"]);
    assert!(said.contains("read, because it was not completed, so it has no index"), "{said}");
    assert_eq!(code, Some(0));
    let (_, said, code) = said_of(directory.path(), &killed, &["--time", "10%,"]);
    assert!(said.contains("--time 10%,: the recording does not say how long it lasts") && said.lines().count() == 1, "{said}");
    assert_eq!(code, Some(125));
    let (text, said, code) = said_of(directory.path(), &bytes[..end], &["--time", "0,"]);
    assert_eq!(text, whole);
    assert!(said.contains("read, because its index is damaged or missing"), "{said}");
    assert_eq!(code, Some(0));

    // A record has an impossible size.
    let mut wrong = bytes.clone();
    let second = begin + usize::from(u16::from_le_bytes([bytes[begin + 6], bytes[begin + 7]]));
    wrong[second + 6..second + 8].copy_from_slice(&3u16.to_le_bytes());
    let (_, said, code) = said_of(directory.path(), &wrong, &[]);
    assert!(said.contains(&format!("the record at byte {second} has a size of 3 bytes")), "{said}");
    assert_eq!(code, Some(125));

    for (bytes, expected) in [(&b""[..], "it has only 0 bytes"), (&[0; 200], "does not begin as perf.data files do"), (&bytes[..600], "")] {
        let (text, said, code) = said_of(directory.path(), bytes, &[]);
        assert_eq!((text.as_str(), code), ("", Some(125)), "{said}");
        assert!(said.contains("damaged.data") && said.contains(expected) && said.lines().count() == 1, "{said}");
    }
}

/// Returns the table of a report: for each line with numbers the calls and the path, and for others the path.
fn table(text: &str) -> Vec<String> {
    let (_, rows) = text.split_once("call path\n").unwrap_or_else(|| panic!("there is no table in\n{text}"));
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first().is_some_and(|word| word.ends_with('%')) {
            true => format!("{} {}", words[2], words[4..].join(" ")),
            false => words.join(" "),
        }
    };
    rows.lines().filter(|line| !line.is_empty()).map(row).collect()
}

#[test]
fn a_report_shows_where_calls_come_from() {
    for engine in ["bpf", "tracepoint"] {
        let name = format!("{RECORDINGS}/stack.{engine}.data");
        let run = rtrace(&["report", "-i", &name, "--sort", "name", "--percent-limit", "0", "-e", "open,read,close,exit_group"]);
        assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr).as_ref()), (Some(0), ""), "{engine}");
        let text = String::from_utf8(run.stdout).unwrap();
        // The source of the program is in `tests/recordings/make`. It opens two files, and exits without returning.
        let expected = [
            "7 stack",
            "[callers unknown]",
            "0x1",
            "_start",
            "1 exit_group(...)",
            "6 outer",
            "inner",
            "2 close(...)",
            "2 open(...)",
            "2 read(...)",
        ];
        assert_eq!(table(&text), expected, "{engine}: {text}");
        assert!(text.contains("Call paths of 7 calls") && text.contains("1 call has no known duration"), "{engine}: {text}");
        let inverted = rtrace(&["report", "-i", &name, "-G", "--max-stack", "1", "-e", "read"]);
        assert_eq!(table(&String::from_utf8_lossy(&inverted.stdout)), ["2 read(...)", "inner", "stack"], "{engine}");
    }
}

#[test]
fn the_numbers_of_a_report_are_those_of_the_lines() {
    for recording in recordings() {
        let name = recording.to_str().expect("it is UTF-8");
        let json = |words: &[&str]| {
            let run = rtrace(words);
            let text = String::from_utf8(run.stdout).unwrap();
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect::<Vec<_>>()
        };
        for options in [&[][..], &["-e", "write,read"], &["--failure"], &["--time", "0.1ms,5ms"]] {
            let report = json(&[&["report", "-i", name, "--json"], options].concat());
            let lines = json(&[&["-i", name, "--json", "-o", "-"], options].concat());
            let sum = |key: &str| {
                report.iter().filter(|object| object["type"] == "report_path").filter_map(|object| object[key].as_u64()).sum::<u64>()
            };
            let calls: Vec<_> = lines.iter().filter(|object| object["type"] == "call").collect();
            let durations: Vec<u64> = calls.iter().filter_map(|call| call["duration"].as_u64()).collect();
            assert_eq!(
                (sum("calls"), sum("timed"), sum("total")),
                (calls.len() as u64, durations.len() as u64, durations.iter().sum()),
                "{name} {options:?}"
            );
            // Whatever is in front of the paths and behind them is the same.
            let ends = |objects: &[serde_json::Value]| objects.last().map(|end| end["calls"].clone());
            assert_eq!(ends(&report), ends(&lines), "{name} {options:?}");
        }
    }
}

#[test]
fn a_report_without_stacks_is_by_task_and_syscall() {
    let run = rtrace(&["report", "-i", &format!("{RECORDINGS}/pipe.bpf.data"), "--percent-limit", "0", "--sort", "count"]);
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("No call has a stack") && text.contains("calls are shown by task and syscall"), "{text}");
    assert!(table(&text).iter().all(|row| row.starts_with(|first: char| first.is_ascii_digit())), "{text}");
}
