//! `--json` of the summary, `list`, `check` and `probe list`: each object matches `schema/rtrace-1.json`, and its
//! numbers are those of the tables and lines for people.

use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::probe_command::{Events, tracefs};
use crate::summary::row;
use crate::trace::{Trace, plain, trace, workload};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// The ABI of this machine.
const ABI: &str = std::env::consts::ARCH;

/// Returns the objects of an output, after checking each against the schema.
fn objects(text: &str) -> Vec<Value> {
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect();
    crate::json::check(&objects);
    objects
}

/// Returns the objects of a command, without the first one, which has the version of the schema.
fn answer(machine: &Machine, command: &str, words: &[&str]) -> Vec<Value> {
    let run = plain(machine, words);
    assert_eq!(run.stderr, "", "{words:?}");
    let mut objects = objects(&run.stdout);
    let head = objects.remove(0);
    assert_eq!((&head["type"], &head["schema"]), (&command.into(), &1.into()), "{words:?}");
    objects
}

/// Returns the objects of a trace with a summary. The first object is that of the trace, the last one is the verdict.
fn summarized(trace: &Trace) -> Vec<Value> {
    let objects = objects(&trace.text);
    assert_eq!((&objects[0]["type"], &objects[0]["schema"]), (&"trace".into(), &1.into()), "{}", trace.text);
    let end = objects.last().expect("there is a last one");
    assert_eq!(end["type"], "end", "{end}");
    let verdict = trace.verdict();
    assert_eq!((&end["calls"]["issued"], &end["calls"]["shown"]), (&verdict.issued.into(), &verdict.printed.into()), "{}", trace.stderr);
    objects
}

/// Returns the objects of a type, of the whole trace or of its intervals.
fn rows<'a>(objects: &'a [Value], kind: &str, span: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["type"] == kind && object["span"] == span).collect()
}

fn sum(rows: &[&Value], member: &str) -> u64 {
    rows.iter().map(|row| row[member].as_u64().unwrap_or_else(|| panic!("{member}: {row}"))).sum()
}

/// Returns the only row of a syscall.
fn of_call<'a>(rows: &[&'a Value], name: &str) -> &'a Value {
    let found: Vec<_> = rows.iter().filter(|row| row["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name}: {rows:?}");
    found[0]
}

#[test]
fn the_summary_has_an_object_for_each_row_and_the_calls_add_up() {
    let Some(machine) = Machine::alone() else { return };
    let run = |json: &[&str]| workload(&machine, &[json, &["-s"]].concat(), "calls lseek 4 500 1500").succeeded();
    let (people, programs) = (run(&[]), run(&["--json"]));
    let objects = summarized(&programs);
    let rows_of_trace = rows(&objects, "summary", "trace");
    assert_eq!(sum(&rows_of_trace, "calls"), programs.verdict().printed, "{}", programs.text);
    let lseek = of_call(&rows_of_trace, "lseek");
    assert_eq!((lseek["calls"].as_u64(), lseek["errors"].as_u64()), (Some(2000), Some(2000)), "{lseek}");
    assert_eq!(row(&people, "lseek"), (2000, 2000), "{}", people.text);
    let times = &lseek["durations"];
    let of = |name: &str| times[name].as_u64().unwrap_or_else(|| panic!("{name}: {lseek}"));
    assert_eq!(of("calls"), 2000);
    assert!(of("min") <= of("p50") && of("p50") <= of("p95") && of("p95") <= of("p99") && of("p99") <= of("max"), "{lseek}");
    assert_eq!(of("average"), of("total") / 2000, "{lseek}");
    let total = rows(&objects, "summary_total", "trace");
    assert_eq!((total.len(), sum(&total, "calls"), sum(&total, "events")), (1, programs.verdict().printed, programs.verdict().printed));
    assert_eq!(rows(&objects, "summary", "interval").len(), 0);
    assert!(objects.iter().all(|object| object["type"] != "call"), "-s prints no calls");
}

#[test]
fn the_objects_of_the_summary_follow_those_of_the_events() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--json", "-S", "-e", "lseek,getppid"], "calls lseek 2 100").succeeded();
    let objects = summarized(&trace);
    let place =
        |kind: &str| objects.iter().position(|object| object["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {}", trace.text));
    let calls = objects.iter().filter(|object| object["type"] == "call").count() as u64;
    let last_call = objects.iter().rposition(|object| object["type"] == "call").expect("there are calls");
    assert!(last_call < place("summary") && place("summary") < place("summary_total"), "{}", trace.text);
    assert_eq!(sum(&rows(&objects, "summary", "trace"), "calls"), calls);
    assert_eq!(calls, trace.verdict().printed);
}

#[test]
fn the_rows_of_threads_and_processes_name_their_tasks() {
    let Some(machine) = Machine::shared() else { return };
    let of = |mode: &str| {
        let trace = workload(&machine, &["--json", "-s", "--summary-mode", mode, "-e", "lseek"], "calls lseek 3 50").succeeded();
        summarized(&trace)
    };
    let threads = of("thread");
    let totals = rows(&threads, "summary_total", "trace");
    let mut tids: Vec<i64> = totals.iter().map(|total| total["tid"].as_i64().unwrap_or_else(|| panic!("no tid: {total}"))).collect();
    tids.sort_unstable();
    tids.dedup();
    assert_eq!((totals.len(), tids.len()), (3, 3), "{totals:?}");
    for row in rows(&threads, "summary", "trace") {
        assert_eq!((&row["name"], &row["calls"], &row["pid"]), (&json!("lseek"), &json!(50), &totals[0]["pid"]), "{row}");
        assert!(tids.contains(&row["tid"].as_i64().expect("a tid")) && row["comm"].is_string(), "{row}");
    }
    let processes = of("process");
    let rows = rows(&processes, "summary", "trace");
    assert_eq!((rows.len(), &rows[0]["calls"]), (1, &json!(150)), "{rows:?}");
    assert!(rows[0]["pid"].is_i64() && rows[0]["tid"].is_null(), "{}", rows[0]);
}

#[test]
fn the_rows_of_cgroups_name_their_cgroup() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--json", "-s", "--summary-mode", "cgroup", "-e", "lseek"], "calls lseek 1 50").succeeded();
    let objects = summarized(&trace);
    let lseek = of_call(&rows(&objects, "summary", "trace"), "lseek");
    // A test in a cgroup namespace may have another name for its cgroup than the machine.
    assert!(lseek["cgroups"].is_array() || lseek["cgroups"].is_null(), "{lseek}");
    assert!(lseek.as_object().expect("an object").contains_key("cgroups") && lseek["calls"] == 50, "{lseek}");
}

#[test]
fn the_rows_of_intervals_add_up_to_those_of_the_trace() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--json", "-s", "--interval", "100ms", "-e", "lseek"], "calls lseek 1 200 400").succeeded();
    let objects = summarized(&trace);
    let by_name = |span: &str| {
        let mut calls = BTreeMap::new();
        for row in rows(&objects, "summary", span) {
            *calls.entry(row["name"].as_str().expect("a name").to_owned()).or_insert(0) += row["calls"].as_u64().expect("a count");
        }
        calls
    };
    assert_eq!(by_name("interval"), by_name("trace"), "{}", trace.text);
    let time = |total: &Value, name: &str| -> u64 { total[name]["monotonic"].as_str().expect("digits").parse().expect("a number") };
    let intervals = rows(&objects, "summary_total", "interval");
    assert!(intervals.len() > 1, "{}", trace.text);
    assert!(intervals.iter().all(|total| time(total, "from") <= time(total, "to")), "{intervals:?}");
    assert!(intervals.windows(2).all(|two| time(two[0], "to") <= time(two[1], "from")), "{intervals:?}");
    let whole = rows(&objects, "summary_total", "trace")[0];
    assert_eq!(time(whole, "from"), time(intervals[0], "from"), "{whole}");
}

#[test]
fn errnos_histograms_and_rows_that_are_left_out_add_up() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["--json", "-s", "--errno-summary", "--histogram", "--max-summary", "1"];
    let trace = workload(&machine, &options, "calls lseek 2 100").succeeded();
    let objects = summarized(&trace);
    let (shown, total) = (rows(&objects, "summary", "trace"), rows(&objects, "summary_total", "trace")[0]);
    assert_eq!(shown.len(), 1, "{}", trace.text);
    let number = |of: &Value| of.as_u64().unwrap_or_else(|| panic!("{of}: {}", trace.text));
    let sum_of = |list: &Value| -> u64 { list.as_array().expect("a list").iter().map(|one| number(&one["calls"])).sum() };
    assert_eq!(sum_of(&shown[0]["errnos"]), number(&shown[0]["errors"]));
    assert_eq!(sum_of(&shown[0]["histogram"]), number(&shown[0]["durations"]["calls"]));
    assert_eq!(number(&total["calls"]), number(&shown[0]["calls"]) + number(&total["left_out"]["calls"]));
    assert_eq!(number(&total["calls"]), trace.verdict().printed);
    let ratio = workload(&machine, &["--json", "-s", "--errno-summary", "-e", "lseek"], "calls lseek 1 70").succeeded();
    let objects = summarized(&ratio);
    let errnos = &of_call(&rows(&objects, "summary", "trace"), "lseek")["errnos"];
    assert_eq!((errnos[0]["calls"].as_u64(), errnos.as_array().map(Vec::len)), (Some(70), Some(1)), "{errnos}");
    assert!(errnos[0]["name"].is_string() && errnos[0]["errno"].as_i64() > Some(0), "{errnos}");
}

#[test]
fn objects_of_calls_are_typed() {
    let Some(machine) = Machine::shared() else { return };
    let path = machine.file("known", 10);
    let of = |by: &str| {
        let command = format!(": < {path}; : < {path}; : < /nonexistent/x");
        let trace = trace(&machine, &["--json", "-s", "--by", by, "-e", "openat"], &["sh", "-c", &command]);
        summarized(&trace)
    };
    let by_errno = of("errno");
    let found = |objects: &[Value], object: &Value| {
        let rows = rows(objects, "summary", "trace");
        rows.iter().find(|row| row["object"] == *object).map(|row| row["calls"].clone()).unwrap_or_else(|| panic!("no {object}: {rows:?}"))
    };
    assert!(found(&by_errno, &json!({"errno": 2, "name": "ENOENT"})).as_u64() >= Some(1));
    assert!(found(&by_errno, &json!({"errno": 0})).as_u64() >= Some(2));
    let by_comm = of("comm");
    assert!(found(&by_comm, &json!({"comm": "sh"})).as_u64() >= Some(3));
    let by_flags = of("arg:flags");
    let is_read_only = |row: &&Value| row["object"]["argument"] == "flags" && row["object"]["entry"]["flags"][0] == "O_RDONLY";
    assert!(rows(&by_flags, "summary", "trace").iter().any(is_read_only), "{by_flags:?}");
    if machine::engine() == "bpf" {
        assert_eq!(found(&of("path"), &json!({ "path": path })), 2);
        assert_eq!(found(&of("path"), &json!({"path": "/nonexistent/x"})), 1);
        // The address of the name differs between calls with the same name.
        assert_eq!(found(&of("arg:filename"), &json!({"argument": "filename", "entry": {"text": path}})), 2);
    }
}

#[test]
fn call_paths_are_objects() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["--json", "-s", "--stack-summary=2", "--call-graph", "fp", "-e", "lseek"];
    let trace = workload(&machine, &options, "calls lseek 2 50").succeeded();
    let objects = summarized(&trace);
    let paths: Vec<&Value> = objects.iter().filter(|object| object["type"] == "call_path").collect();
    assert!(!paths.is_empty() && paths.iter().all(|path| path["name"] == "lseek"), "{}", trace.text);
    assert!(paths[0]["paths"].as_u64() > Some(2) || sum(&paths, "calls") == 100, "{paths:?}");
    assert!(paths[0]["stack"].as_array().is_some_and(|frames| !frames.is_empty()), "{paths:?}");
}

#[test]
fn a_summary_of_the_whole_machine_has_all_rows() {
    let Some(machine) = Machine::shared() else { return };
    let objects = summarized(&trace(&machine, &["--json", "-a", "-s"], &["sleep", ".2"]).succeeded());
    let total = rows(&objects, "summary_total", "trace")[0];
    assert!(total["left_out"].is_null() && total["events"].as_u64() > Some(0), "{total}");
}

/// The lines of `rtrace list`, split into words.
fn lines(machine: &Machine, words: &[&str]) -> Vec<Vec<String>> {
    let run = plain(machine, words).succeeded();
    run.stdout.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn syscalls_and_groups_are_listed_as_objects() {
    let Some(machine) = Machine::shared() else { return };
    let (objects, lines_of_syscalls) = (answer(&machine, "list", &["list", "--json", "syscalls"]), lines(&machine, &["list", "syscalls"]));
    assert_eq!(objects.len(), lines_of_syscalls.len());
    for (object, words) in objects.iter().zip(&lines_of_syscalls) {
        let number = object["numbers"][ABI].as_u64().map_or("-".to_owned(), |number| number.to_string());
        let groups: Vec<&str> = object["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let groups = if groups.is_empty() { "-".to_owned() } else { groups.join(",") };
        assert_eq!((object["name"].as_str(), number, groups), (Some(words[0].as_str()), words[1].clone(), words[3].clone()), "{object}");
        assert_eq!(object["seen_by"] == "event", words[2] == "event", "{object}");
    }
    let openat = answer(&machine, "list", &["list", "syscalls", "openat", "--json"]);
    assert_eq!(openat.len(), 1, "{openat:?}");
    let mode = openat[0]["arguments"].as_array().and_then(|arguments| arguments.last()).expect("it has arguments");
    assert_eq!((&mode["name"], &mode["kind"]), (&json!("mode"), &json!("mode")), "{mode}");
    assert!(mode["used_if"].as_str().is_some_and(|condition| condition.contains("O_CREAT")), "{mode}");
    let (groups, lines_of_groups) = (answer(&machine, "list", &["list", "--json", "groups"]), lines(&machine, &["list", "groups"]));
    for (object, words) in groups.iter().zip(&lines_of_groups) {
        assert_eq!((&object["name"], &object["syscalls"]), (&json!(words[0]), &json!(words[2..])), "{object}");
    }
    assert_eq!(groups.len(), lines_of_groups.len());
}

#[test]
fn tables_and_structs_are_listed_as_objects() {
    let Some(machine) = Machine::shared() else { return };
    let (objects, lines_of_tables) = (answer(&machine, "list", &["list", "--json", "tables"]), lines(&machine, &["list", "tables"]));
    assert_eq!(objects.len(), lines_of_tables.len());
    for (object, words) in objects.iter().zip(&lines_of_tables) {
        let kind = if object["type"] == "struct" { "struct" } else { object["kind"].as_str().unwrap_or("?") };
        assert_eq!((object["name"].as_str(), kind), (Some(words[0].as_str()), words[2].as_str()), "{object}");
        let count = match (&object["constants"], &object["members"][ABI], &object["value"]) {
            (Value::Array(constants), ..) => constants.len().to_string(),
            (_, Value::Array(members), _) => members.len().to_string(),
            (_, _, Value::Object(_)) => "1".to_owned(),
            _ => "-".to_owned(),
        };
        assert_eq!(count, words[1], "{object}");
    }
    let constant = answer(&machine, "list", &["list", "--json", "tables", "O_CREAT"]);
    assert!(constant.iter().any(|object| object["value"] == 0o100 && object["table"] == "open_flags"), "{constant:?}");
}

#[test]
fn events_are_listed_with_their_fields() {
    let Some(machine) = Machine::shared() else { return };
    let events = answer(&machine, "list", &["list", "--json", "events", "sched:*"]);
    let name = |event: &Value| format!("{}:{}", event["subsystem"].as_str().unwrap_or("?"), event["name"].as_str().unwrap_or("?"));
    let names: Vec<String> = events.iter().map(name).collect();
    let expected: Vec<String> = lines(&machine, &["list", "events", "sched:*"]).into_iter().map(|mut words| words.remove(0)).collect();
    assert_eq!(names, expected);
    let exec = events.iter().find(|event| event["name"] == "sched_process_exec").expect("every kernel has it");
    let fields = exec["fields"].as_array().unwrap_or_else(|| panic!("{exec}"));
    let filename = fields.iter().find(|field| field["name"] == "filename").unwrap_or_else(|| panic!("{exec}"));
    assert_eq!((&filename["place"], &filename["size"]), (&json!("data_loc"), &json!(4)), "{filename}");
    assert!(fields.iter().all(|field| !field["name"].as_str().expect("a name").starts_with("common_")), "{exec}");
    let id = fs::read_to_string(tracefs().join("events/sched/sched_process_exec/id"));
    if let Ok(id) = id {
        assert_eq!(exec["id"].to_string(), id.trim(), "{exec}");
    }
}

#[test]
fn a_list_of_everything_has_objects_of_every_type() {
    let Some(machine) = Machine::shared() else { return };
    let objects = answer(&machine, "list", &["list", "--json"]);
    for kind in ["syscall", "group", "table", "struct", "tracepoint"] {
        assert!(objects.iter().any(|object| object["type"] == kind), "{kind}");
    }
    let none = plain(&machine, &["list", "--json", "nothing_like_this"]);
    assert!(none.status == 125 && none.stdout.is_empty() && none.stderr.contains("matches `nothing_like_this`"), "{}", none.stderr);
}

#[test]
fn usdt_tracepoints_are_listed_as_objects() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Program("cc")]) {
        return;
    }
    let program = machine.path("app");
    let compiled = std::process::Command::new("cc").args(["-g", "-o", &program, "tests/programs/probes/usdt.c"]).output();
    // Without the header of systemtap, the program has no tracepoints.
    if !compiled.is_ok_and(|run| run.status.success()) {
        return crate::needs::unsupported("no sys/sdt.h");
    }
    let objects = answer(&machine, "list", &["list", "--json", &format!("usdt:{program}")]);
    assert!(objects.iter().any(|object| object["provider"] == "app" && object["name"] == "begin"), "{objects:?}");
}

/// The lines for people can be written from the objects, so the objects lack nothing.
#[test]
fn the_objects_of_check_have_all_that_its_lines_have() {
    let Some(machine) = Machine::shared() else { return };
    let (people, programs) = (plain(&machine, &["check"]), plain(&machine, &["check", "--json"]));
    assert_eq!(people.status, programs.status);
    let mut text = String::new();
    let objects = answer(&machine, "check", &["check", "--json"]);
    for object in &objects {
        let of = |name: &str| object[name].as_str().unwrap_or_default();
        text += &format!("{:<8} {:<16} {}", of("state"), of("item"), of("finding"));
        text += &object["advice"].as_str().map(|advice| format!("; {advice}")).unwrap_or_default();
        text += &object["command"].as_str().map(|command| format!("; run: {command}")).unwrap_or_default();
        text.push('\n');
    }
    assert_eq!(text, people.stdout);
    let fact = |item: &str, name: &str| objects.iter().find(|object| object["item"] == item).map(|object| object["facts"][name].clone());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
    assert_eq!(fact("kernel", "release"), Some(json!(release.trim())));
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").expect("the kernel has perf events");
    assert_eq!(fact("perf events", "perf_event_paranoid"), Some(json!(level.trim().parse::<i64>().expect("a number"))));
    let setup = plain(&machine, &["check", "--setup", "--json"]);
    assert!(setup.status == 125 && setup.stderr.contains("--json"), "{}", setup.stderr);
}

#[test]
fn dynamic_events_are_listed_as_objects() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    // The kernel counts the hits of all programs with this file, and other tests run the workload as well.
    let (group, program) = (&events.prefix, machine.copy_of(&machine::workload(), "counted"));
    let name = format!("{group}:begins");
    events.stdout_of(&["add", &format!("p:{group}/begins {program}:main number=%di:u32")]);
    events.stdout_of(&["add", &format!("r:{group}/ends {program}:main")]);
    trace(&machine, &["-e", &name], &[&program, "tag", "1"]).succeeded();
    // An event that is enabled cannot be deleted, so it is enabled only while the list is made.
    let enable = tracefs().join("events").join(group).join("ends/enable");
    fs::write(&enable, "1").expect("it can be enabled");
    let listed = events.probe(&["list", "--json", &format!("{group}:*")]);
    fs::write(&enable, "0").expect("it can be disabled");
    let mut objects = objects(&listed.stdout);
    assert_eq!(objects.remove(0)["type"], "probe_list", "{}", listed.stderr);
    let [begins, ends] = &objects[..] else { panic!("{objects:?}") };
    let line = events.stdout_of(&["list", &name]);
    assert_eq!((&begins["group"], &begins["name"], &begins["kind"]), (&json!(group), &json!("begins"), &json!("uprobe")));
    assert_eq!((&begins["owner"]["creator"], &begins["hits"], &begins["enabled"]), (&json!("probe_add"), &json!(1), &json!(false)));
    assert!(line.contains(" hits=1 ") && line.trim_end().ends_with(begins["definition"].as_str().expect("a line")), "{line}\n{begins}");
    assert_eq!(begins["arguments"], json!([{"name": "number", "fetch": "%di", "type": "u32"}]), "{begins}");
    assert!(begins["place"]["path"].as_str().is_some_and(|path| path == program), "{begins}");
    assert!(begins["place"]["at"]["offset"].as_u64() > Some(0), "{begins}");
    assert_eq!((&ends["return"], &ends["enabled"]), (&json!(true), &json!(true)), "{ends}");
    let none = events.stderr_of(&["list", "--json", "nothing:like_this"]);
    assert!(none.contains("no dynamic event matches"), "{none}");
}
