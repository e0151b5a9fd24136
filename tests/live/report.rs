//! `rtrace report`: the call paths of recordings of programs whose stacks are known.

use crate::compiled::compiled;
use crate::json::check;
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::system_wide::peer;
use crate::trace::{Trace, shell_with_engine};
use serde_json::Value;

/// A line of a report that has numbers.
#[derive(Debug)]
struct Row {
    share: f64,
    /// `None` if no duration is known.
    total_ms: Option<f64>,
    calls: u64,
    path: String,
}

/// Returns the lines with numbers of a report.
fn rows(text: &str) -> Vec<Row> {
    let (_, table) = text.split_once("call path\n").unwrap_or_else(|| panic!("there is no table in\n{text}"));
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let share = words.first()?.strip_suffix('%')?.parse().ok()?;
        Some(Row { share, total_ms: words[1].parse().ok(), calls: words[2].parse().expect("it is a number"), path: words[4..].join(" ") })
    };
    table.lines().filter_map(row).collect()
}

/// Returns the number of calls in the first line of a report.
fn calls_of(text: &str) -> u64 {
    let number = text.split_once("Call paths of ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("there is no report in\n{text}"))
}

/// Runs a shell line in the directory of the test, and returns its output.
fn run(machine: &Machine, script: &str) -> Trace {
    shell_with_engine(machine, &format!("cd $dir; export DEBUGINFOD_URLS=; {script}")).succeeded()
}

/// Checks the report of a recording of `many 2 300`, which opens and closes a file 600 times.
fn assert_report(text: &str, about: &str) {
    let rows = rows(text);
    let of = |path: &str| rows.iter().filter(|row| row.path == path).map(|row| row.calls).collect::<Vec<_>>();
    // The loader opens and closes files, too.
    assert!(of("openat(...)").contains(&600) && of("close(...)").contains(&600), "{about}: {text}");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.ends_with(" open_and_close") || *line == "open_and_close").expect(about);
    let function = |line: &str| line.rsplit(' ').next().map(str::to_owned);
    assert_eq!(function(lines[at - 1]).as_deref(), Some("work"), "{about}: {text}");
    let shares: f64 = rows.iter().filter(|row| row.path.ends_with("(...)") || row.path.starts_with('[')).map(|row| row.share).sum();
    assert!((99.0..101.0).contains(&shares), "{about}: {shares}\n{text}");
    assert!(rows.iter().all(|row| row.total_ms.is_some()), "{about}: {text}");
}

#[test]
fn call_paths_of_a_recording_are_shown_by_time_and_by_number() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/many.c", "many") else { return };
    let record = if machine::engine() == "bpf" { "record" } else { "record -m 64M" };
    let script = format!(
        "$rtrace {record} $engine -o r.data --call-graph dwarf {program} 2 300 >/dev/null 2>&1
         of_work=\"-e openat,close --percent-limit 0\"
         $rtrace report -i r.data $of_work --sort count > by.count; $rtrace report -i r.data $of_work > by.time
         $rtrace report -i r.data $of_work --json --folded folded > by.json 2>said
         $rtrace report -i r.data > all; $rtrace -i r.data -o lines; grep -c ' = ' lines; ls"
    );
    let trace = run(&machine, &script);
    let read = |name: &str| std::fs::read_to_string(machine.path(name)).expect("it was written");
    assert_report(&read("by.count"), "by number");
    let by_time = read("by.time");
    assert_report(&by_time, "by time");
    let times: Vec<f64> =
        rows(&by_time).iter().filter(|row| row.path.ends_with("(...)") && row.calls == 600).filter_map(|row| row.total_ms).collect();
    assert!(times.len() == 2 && times[0] >= times[1], "{by_time}");
    let lines: u64 = trace.text.lines().next().and_then(|line| line.parse().ok()).expect("lines were counted");
    assert_eq!(calls_of(&read("all")), lines);
    let paths: Vec<Value> = read("by.json").lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    check(&paths);
    let is_of_work = |path: &&Value| path["stack"].as_array().is_some_and(|names| names.iter().any(|name| name == "work"));
    let of_work: Vec<&Value> = paths.iter().filter(|path| path["type"] == "report_path").filter(is_of_work).collect();
    assert!(of_work.len() == 2 && of_work.iter().all(|path| path["calls"] == 600 && path["timed"] == 600), "{of_work:?}");
    assert_eq!(read("folded").lines().filter(|line| line.contains(";work;open_and_close;")).count(), 2);
}

#[test]
fn call_paths_of_recordings_of_perf_are_shown() {
    let Some(machine) = Machine::shared().filter(|machine| !machine.lacks(&[Need::Program("perf")])) else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2"], "stacks/many.c", "many") else { return };
    for perf in ["perf"].into_iter().chain(peer("perf").filter(|newer| *newer != "perf")) {
        let script = format!(
            "{perf} record -q -m 64M -e 'raw_syscalls:*' --call-graph dwarf -o p.data {program} 2 300 >/dev/null 2>&1
             $rtrace report -i p.data -e openat,close --percent-limit 0 --sort count"
        );
        assert_report(&run(&machine, &script).text, perf);
    }
}

#[test]
fn a_report_without_stacks_or_with_losses_says_so() {
    let Some(machine) = Machine::shared() else { return };
    let script = "$rtrace record $engine -o r.data $workload calls getppid 1 50 >/dev/null 2>&1; $rtrace report -i r.data -e getppid";
    let text = run(&machine, script).text;
    assert!(text.contains("No call has a stack") && text.contains("Call paths of 50 calls"), "{text}");
    let paths: Vec<(u64, String)> = rows(&text).into_iter().map(|row| (row.calls, row.path)).collect();
    assert_eq!(paths, [(50, "workload".to_owned()), (50, "getppid(...)".to_owned())], "{text}");
    if machine.lacks(&[Need::Program("perf")]) {
        return;
    }
    // A ring of one page, and a reader that comes late.
    let script =
        "chrt --batch 0 perf record -q -m 1 --no-buffering -o p.data -e 'raw_syscalls:*' $workload calls getppid 1 200000 >/dev/null 2>&1
                  $rtrace report -i p.data --strict 2>said; echo ended $?; cat said";
    let text = run(&machine, script).text;
    assert!(text.contains(" lost: calls are missing here.") && text.contains("ended 124"), "{text}");
    assert!(text.contains("records were lost; nobody counted the calls that were made"), "{text}");
}
