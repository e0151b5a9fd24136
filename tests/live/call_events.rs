//! Tracepoints at the entry and exit of calls that the user asks for as events show what the lines of the calls show.

use crate::json::objects;
use crate::line::{self, What};
use crate::machine::{self, Machine};
use crate::trace::{Trace, overrun, start, trace};
use serde_json::Value;
use std::collections::BTreeMap;

/// Calls of ls(1) and cat(1) with strings, structs, descriptors and outputs, by the names of their events.
const CALLS: [(&str, &str); 14] = [
    ("execve", "execve"),
    ("openat", "openat"),
    ("read", "read"),
    ("write", "write"),
    ("close", "close"),
    ("fstat", "newfstat"),
    ("newfstatat", "newfstatat"),
    ("statx", "statx"),
    ("mmap", "mmap"),
    ("access", "access"),
    ("pread64", "pread64"),
    ("getdents64", "getdents64"),
    ("prlimit64", "prlimit64"),
    ("rt_sigaction", "rt_sigaction"),
];

/// Names and values, as printed.
type Arguments = Vec<(String, String)>;

/// What the lines of one thread show of its calls of one name, in their order.
#[derive(Debug, Default)]
struct Shown {
    calls: Vec<(Arguments, String)>,
    entries: Vec<Arguments>,
    exits: Vec<Arguments>,
}

/// Splits `a: 1, b: {.c: 2, .d: "x, y"}` at the commas between its parts.
fn arguments(text: &str) -> Arguments {
    let (mut parts, mut depth, mut quoted, mut escaped) = (vec![String::new()], 0, false, false);
    for char in text.chars() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' | '<' | '(' if !quoted => depth += 1,
            '}' | ']' | '>' | ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is one").push(char);
    }
    let pair = |part: &str| part.trim_start().split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    parts.iter().filter_map(|part| pair(part)).collect()
}

fn value<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
}

/// Returns the calls of each thread and name, with their events of these prefixes.
fn shown(run: &Trace, enter: &str, exit: &str) -> BTreeMap<(i32, String), Shown> {
    let mut shown: BTreeMap<(i32, String), Shown> = BTreeMap::new();
    for line in run.lines() {
        let of_event = |prefix: &str| {
            let (_, rest) = line.text.split_once(&format!(" {prefix}"))?;
            let (name, rest) = rest.split_once('(')?;
            Some((name.to_owned(), arguments(rest.strip_suffix(')')?)))
        };
        let of_name = |name: &str, arguments: &Arguments| {
            let named = value(arguments, "id").unwrap_or(name);
            CALLS.iter().find(|(call, event)| *event == name || *call == named).map(|(call, _)| (line.tid, (*call).to_owned()))
        };
        if let Some((name, arguments)) = of_event(enter) {
            let key = of_name(&name, &arguments);
            key.into_iter().for_each(|key| shown.entry(key).or_default().entries.push(arguments.clone()));
        } else if let Some((name, arguments)) = of_event(exit) {
            let key = of_name(&name, &arguments);
            key.into_iter().for_each(|key| shown.entry(key).or_default().exits.push(arguments.clone()));
        } else if let What::Call(call) = &line.what {
            let line::Result::Returned(result) = &call.result else { continue };
            let of = shown.entry((line.tid, call.name.clone())).or_default();
            of.calls.push((arguments(&call.args), result.clone()));
        }
    }
    shown
}

/// Checks that the events of a call have what its line has. Returns how many arguments were compared.
fn check(call: &(Arguments, String), entry: &Arguments, exit: &Arguments, by_bpf: bool) -> usize {
    let (arguments, result) = call;
    let about = || format!("{call:?}\n{entry:?}\n{exit:?}");
    let ret = value(exit, "ret").unwrap_or_else(|| panic!("no result: {}", about()));
    // Without BPF, the file behind a descriptor is not known here.
    let without_path = |text: &str| text.split('<').next().unwrap_or_default().to_owned();
    assert!(ret == result || !by_bpf && without_path(ret) == without_path(result), "{}", about());
    for (name, shown) in arguments {
        let before = value(entry, name).unwrap_or_else(|| panic!("no {name}: {}", about()));
        let is_address = before.starts_with("0x");
        if by_bpf {
            let is_output = is_address && value(exit, name) == Some(shown);
            let is_changed = shown.contains(" => ") && value(exit, name).is_some();
            assert!(before == shown || is_output || is_changed, "{name}: {}", about());
        } else {
            assert!(without_path(before) == without_path(shown) || is_address, "{name}: {}", about());
        }
    }
    for (name, _) in entry.iter().filter(|(name, _)| name != "id") {
        assert!(value(arguments, name).is_some(), "the line of the call has no {name}: {}", about());
    }
    arguments.len()
}

#[test]
fn events_at_both_ends_of_calls_show_what_the_lines_of_the_calls_show() {
    let Some(machine) = Machine::shared() else { return };
    let names: Vec<&str> = CALLS.iter().map(|(call, _)| *call).collect();
    let events: Vec<String> =
        CALLS.iter().flat_map(|(_, event)| [format!("syscalls:sys_enter_{event}"), format!("syscalls:sys_exit_{event}")]).collect();
    let (names, events) = (names.join(","), events.join(","));
    let script = format!("ls -l {}; cat /proc/self/comm /nonexistent/file 2> /dev/null; :", machine.dir().display());
    let options = ["-e", &names, "-e", &events, "-e", "raw_syscalls:*"];
    let run = trace(&machine, &options, &["sh", "-c", &script]).succeeded();
    let by_bpf = machine::engine() == "bpf";
    for (enter, exit) in [("syscalls:sys_enter_", "syscalls:sys_exit_"), ("raw_syscalls:sys_enter", "raw_syscalls:sys_exit")] {
        let (mut compared, mut kinds) = (0, Vec::new());
        for ((tid, name), of) in shown(&run, enter, exit) {
            assert_eq!(of.entries.len(), of.calls.len(), "{tid} {name} {enter}\n{}", run.text);
            assert_eq!(of.exits.len(), of.calls.len(), "{tid} {name} {exit}\n{}", run.text);
            for ((call, entry), exit) in of.calls.iter().zip(&of.entries).zip(&of.exits) {
                compared += check(call, entry, exit, by_bpf);
            }
            kinds.push(name);
        }
        assert!(compared > 200, "{compared}: {}", run.text);
        assert!(["openat", "read", "execve", "mmap", "close"].iter().all(|name| kinds.iter().any(|kind| kind == name)), "{kinds:?}");
    }
    assert!(run.text.contains("sys_exit_openat(ret: -1 ENOENT (No such file or directory))"), "{}", run.text);
    run.conserved();
}

/// The calls are recorded only to complete the events: they have no lines, and are not in the account.
#[test]
fn events_alone_have_strings_and_files_where_bpf_traces() {
    let Some(machine) = Machine::shared() else { return };
    let file = machine.file("known", 5);
    let options = ["-e", "syscalls:sys_enter_openat,syscalls:sys_exit_openat,syscalls:sys_exit_read"];
    let run = trace(&machine, &options, &["head", "-c", "99", &file]).succeeded();
    assert!(run.lines().iter().all(|line| line.call().is_none()), "{}", run.text);
    assert!(!run.stderr.contains("does not add up"), "{}", run.stderr);
    if machine::engine() == "bpf" {
        assert!(run.text.contains(&format!("syscalls:sys_enter_openat(dfd: CWD, filename: \"{file}\"")), "{}", run.text);
        assert!(
            run.text.lines().any(|line| line.contains("sys_exit_openat(ret: ") && line.ends_with(&format!("<{file}>)"))),
            "{}",
            run.text
        );
        assert!(run.text.contains("syscalls:sys_exit_read(ret: 5, buf: \""), "{}", run.text);
    } else {
        assert!(!run.text.contains(&format!("\"{file}\"")) || run.text.contains('~'), "no string is guessed: {}", run.text);
    }
}

/// The event at the entry of a call that blocks is shown at once, with the memory that the caller passed.
#[test]
fn the_entry_of_a_call_that_blocks_does_not_wait_for_its_exit() {
    let Some(machine) = Machine::shared() else { return };
    let events = "syscalls:sys_enter_clock_nanosleep,syscalls:sys_exit_clock_nanosleep";
    let mut run = start(&machine, &["-e", events], &["sleep", "3"]);
    run.wait_for_text("entry", |text| text.contains("sys_enter_clock_nanosleep(") && !text.contains("sys_exit_clock"));
    let run = run.finish().succeeded();
    let is_known = run.text.contains("rqtp: {.tv_sec: 3, .tv_nsec: 0}");
    assert_eq!(is_known, machine::engine() == "bpf", "{}", run.text);
    assert!(run.text.contains("sys_exit_clock_nanosleep(ret: 0)"), "{}", run.text);
}

/// With a tiny ring, records of both kinds are lost: what is shown is still of the right call.
#[test]
fn events_add_up_and_are_right_where_records_are_lost() {
    let Some(machine) = Machine::alone() else { return };
    let events = "syscalls:sys_enter_lseek,syscalls:sys_exit_lseek,raw_syscalls:sys_exit";
    let run = overrun(&machine, &["-m", "8K", "-e", events], "burst 4 20000").succeeded();
    assert!(!run.stderr.contains("does not add up"), "{}", run.stderr);
    let verdict = run.verdict();
    assert_eq!((verdict.issued, verdict.lost), (0, 0), "no calls were asked for: {}", run.stderr);
    for line in run.text.lines().filter(|line| line.contains("sys_exit_lseek(")) {
        assert!(line.ends_with("(ret: -1 EBADF (Bad file descriptor))"), "{line}");
    }
}

#[test]
fn objects_of_events_at_both_ends_of_calls_match_the_schema() {
    let Some(machine) = Machine::shared() else { return };
    let file = machine.file("known", 5);
    let options = ["--json", "-e", "raw_syscalls:*,syscalls:sys_enter_openat,syscalls:sys_exit_openat"];
    let run = trace(&machine, &options, &["cat", &file, "/nonexistent/file"]);
    let objects = objects(&run.text);
    let of = |name: &str| objects.iter().filter(|object| object["type"] == "event" && object["name"] == name).collect::<Vec<_>>();
    let field = |event: &Value, name: &str| -> Value {
        let fields = event["fields"].as_array().unwrap_or_else(|| panic!("{event}"));
        fields.iter().find(|field| field["name"] == name).map_or(Value::Null, |field| field["value"].clone())
    };
    let opened = of("syscalls:sys_enter_openat");
    assert!(opened.iter().all(|event| field(event, "dfd")["constant"] == "AT_FDCWD"), "{opened:?}");
    let failed = of("syscalls:sys_exit_openat");
    assert!(failed.iter().any(|event| field(event, "ret") == serde_json::json!({"failure": {"errno": 2, "name": "ENOENT"}})), "{failed:?}");
    let entered = of("raw_syscalls:sys_enter");
    let opens: Vec<_> = entered.iter().filter(|event| field(event, "id")["names"] == serde_json::json!(["openat"])).collect();
    assert_eq!(opens.len(), opened.len(), "{entered:?}");
    assert!(opens.iter().all(|event| field(event, "args")["array"].as_array().is_some_and(|args| args.len() == 6)), "{opens:?}");
    if machine::engine() == "bpf" {
        let named = |event: &&&Value| field(event, "filename")["text"] == file.as_str();
        assert_eq!((opens.iter().filter(|event| named(event)).count(), opened.iter().filter(named).count()), (1, 1), "{opens:?}");
    }
}

/// The number of a call has its name in filters, too.
#[test]
fn a_filter_takes_the_name_of_a_call_for_its_number() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["-e", "raw_syscalls:sys_enter", "--filter", "id == openat"];
    let run = trace(&machine, &options, &["cat", "/dev/null"]).succeeded();
    let events: Vec<&str> = run.text.lines().filter(|line| line.contains("raw_syscalls:sys_enter(")).collect();
    assert!(!events.is_empty() && events.iter().all(|line| line.contains("(id: openat, dfd: CWD, filename: ")), "{}", run.text);
}
