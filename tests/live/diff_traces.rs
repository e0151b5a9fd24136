//! `rtrace diff` of traces in JSON, of parts of recordings, and its colours.

use crate::diff::{diff, has_paths, recorded};
use crate::machine::Machine;
use crate::output::terminal;
use crate::trace::{plain, shell};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

/// Writes a recording as a trace in JSON, and returns its path.
fn as_json(machine: &Machine, recording: &str) -> String {
    let path = format!("{recording}.jsonl");
    let run = plain(machine, &["-i", recording, "--json", "-o", &path]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    path
}

/// Records two runs that differ in a file, and returns their recordings.
fn two_runs(machine: &Machine) -> [String; 2] {
    let settings = machine.file("settings", 10);
    let script = format!(
        "cat {settings} | sort | head -1; f=$(mktemp); echo x > $f; rm $f; ls -l / > /dev/null; stat {settings}; sh -c 'kill $$'; \
         python3 -c 'import socket; socket.socket().connect_ex((\"127.0.0.1\", 1))'; exit 3"
    );
    let command = ["sh", "-c", &script];
    let a = recorded(machine, "a", &[], &command);
    fs::remove_file(&settings).expect("it was just written");
    let b = recorded(machine, "b", &[], &command);
    [a, b]
}

fn objects(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the trace is there");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

#[test]
fn traces_in_json_are_compared_as_their_recordings() {
    let Some(machine) = Machine::shared() else { return };
    let [a, b] = two_runs(&machine);
    let json = [&a, &b].map(|recording| as_json(&machine, recording));
    for options in
        [&[][..], &["-e", "openat,statx,exit_group"], &["-e", "statx"], &["--filter", "ret < 0"], &["--failure"], &["--time", "0.1ms,"]]
    {
        let of = |a: &str, b: &str| {
            let run = diff(&machine, &[options, &[a, b]].concat());
            (run.status, run.stdout.replace(".jsonl", ""))
        };
        let expected = of(&a, &b);
        assert_eq!(expected.0, 1, "{options:?}");
        for (a, b) in [(&a, &json[1]), (&json[0], &b), (&json[0], &json[1])] {
            assert_eq!(of(a, b), expected, "{options:?} {a} {b}");
        }
        for (recording, json) in [(&a, &json[0]), (&b, &json[1])] {
            assert_eq!(of(recording, json), (0, String::new()), "{options:?}");
            assert_eq!(of(json, recording), (0, String::new()), "{options:?}");
        }
    }
    // The inside of a struct is not read for filters.
    let run = plain(&machine, &["diff", "--filter", "statbuf.st_size > 1", &a, &json[0]]);
    let is_said = run.stderr.contains("a.jsonl has not all values that the filter needs: ") && run.stderr.lines().count() == 1;
    assert!(is_said, "{}", run.stderr);
    let lines = diff(&machine, &json.each_ref().map(String::as_str)).stdout;
    assert!(!has_paths() || lines.contains(&format!(" {} fails with ENOENT", machine.path("settings"))), "{lines}");
}

/// Returns the parents of processes, by the first object of each process. Other objects have none.
fn parents(objects: &[Value]) -> BTreeMap<i64, Option<i64>> {
    let mut parents = BTreeMap::new();
    for object in objects {
        let Some(pid) = object["pid"].as_i64() else { continue };
        let parent = object["parent"].as_i64();
        let before = parents.insert(pid, parent);
        if let Some(before) = before {
            assert_eq!(parent, None, "{object}");
            parents.insert(pid, before);
        }
    }
    parents
}

/// Each process has its parent, whichever calls are shown.
#[test]
fn the_first_object_of_a_process_has_its_parent() {
    let Some(machine) = Machine::shared() else { return };
    let recording = recorded(&machine, "a", &[], &["sh", "-c", "(cat /dev/null; true); sh -c 'true; ls / > /dev/null; exit 0'"]);
    let shown = |options: &[&str]| {
        let path = machine.path("a.jsonl");
        plain(&machine, &[options, &["-i", &recording, "--json", "-o", &path]].concat()).succeeded();
        let objects = objects(&path);
        crate::json::check(&objects);
        parents(&objects)
    };
    let all = shown(&[]);
    // The command itself was created before the trace.
    let of_command: Vec<i64> = all.iter().filter(|(_, parent)| parent.is_none()).map(|(pid, _)| *pid).collect();
    assert!(of_command.len() == 1 && all.len() > 4, "{all:?}");
    assert!(all.values().flatten().all(|parent| all.contains_key(parent)), "{all:?}");
    let some = shown(&["-e", "openat"]);
    assert!(some.len() > 2 && some.iter().all(|(pid, parent)| all[pid] == *parent), "{some:?}\n{all:?}");
}

#[test]
fn what_is_no_trace_is_refused_with_file_and_line() {
    let Some(machine) = Machine::shared() else { return };
    let good = recorded(&machine, "good", &[], &["true"]);
    let trace = fs::read_to_string(as_json(&machine, &good)).expect("it was just written");
    let summary = machine.path("summary.jsonl");
    plain(&machine, &["-i", &good, "-s", "--json", "-o", &summary]).succeeded();
    let write = |name: &str, text: &str| {
        let path = machine.path(name);
        fs::write(&path, text).expect("the directory is ours");
        path
    };
    let first = trace.lines().next().expect("a trace has objects");
    for (path, part) in [
        (write("other.json", "{\"name\":\"x\"}\n"), "other.json:1: this is no object of a trace"),
        (write("list.json", "{\"type\":\"list\",\"schema\":1}\n"), "list.json:1: this is no trace of rtrace --json"),
        (write("cut.json", &first[..20]), "cut.json:1: this is no object of a trace"),
        (write("newer.json", &trace.replacen("\"schema\":1", "\"schema\":2,\"started\":7", 1)), "newer.json:1: the trace has version 2 of"),
        (write("abi.json", &trace.replacen("\"abi\":\"", "\"abi\":\"x", 1)), "abi.json:1: no machine has the ABI"),
        (summary, "has only a summary"),
    ] {
        for words in [["diff", &good, &path], ["diff", &path, &good]] {
            let run = plain(&machine, &words);
            assert_eq!((run.status, run.stdout.as_str()), (125, ""), "{words:?}");
            assert!(run.stderr.contains(part) && run.stderr.lines().count() == 1, "{part}: {}", run.stderr);
        }
    }
}

/// The lines of a damaged trace that are whole are compared.
#[test]
fn damages_and_losses_of_a_trace_are_said_with_the_line() {
    let Some(machine) = Machine::shared() else { return };
    let good = recorded(&machine, "good", &[], &["cat", "/dev/null"]);
    let json = as_json(&machine, &good);
    let trace = fs::read_to_string(&json).expect("it was just written");
    let lines: Vec<&str> = trace.lines().collect();
    let count = lines.len();
    let brk = lines.iter().position(|line| line.contains("\"name\":\"brk\"")).expect("the dynamic linker calls brk");
    let with = |at: usize, text: &str| {
        let mut lines = lines.clone();
        lines[at] = text;
        lines.join("\n") + "\n"
    };
    let lost = lines[count - 1].replace("\"lost_records\":0", "\"lost_records\":5");
    let long = format!("{{\"type\":\"call\",\"x\":\"{}\"}}", "x".repeat(17 << 20));
    let cases = [
        (with(brk, &lines[brk][..40]), format!("bad.jsonl:{}: this line is left out: it is no JSON", brk + 1)),
        (with(brk, "{\"type\":\"call\"}"), format!("bad.jsonl:{}: this line is left out: the object is not as the schema says", brk + 1)),
        (with(brk, &long), format!("bad.jsonl:{}: this line is left out: it has more than 16 MiB", brk + 1)),
        (with(brk, "\u{0}\u{7f}"), format!("bad.jsonl:{}: this line is left out: it is no JSON", brk + 1)),
        (lines[..count - 1].join("\n") + "\n", format!("bad.jsonl:{}: the trace ends here without its last object", count - 1)),
        (trace[..trace.len() - 20].to_owned(), format!("bad.jsonl:{count}: the trace ends here without its last object")),
        (with(count - 1, &lost), "bad.jsonl lacks 5 lost records".to_owned()),
        // Objects of later versions are passed over.
        (with(brk, "{\"type\":\"of_a_later_version\",\"call\":7}"), String::new()),
    ];
    for (text, part) in cases {
        let path = machine.path("bad.jsonl");
        fs::write(&path, text).expect("the directory is ours");
        let run = plain(&machine, &["diff", &json, &path]);
        // How memory is divided is not compared.
        assert_eq!((run.status, run.stdout.as_str()), (0, ""), "{part}");
        assert!(run.stderr.contains(&part) && run.stderr.lines().count() == usize::from(!part.is_empty()), "{part}: {}", run.stderr);
    }
    let many = lines.iter().map(|line| format!("{line}\nx\n")).collect::<String>();
    fs::write(machine.path("bad.jsonl"), many).expect("the directory is ours");
    let run = plain(&machine, &["diff", &json, &machine.path("bad.jsonl")]);
    assert!(run.status == 0 && run.stderr.lines().count() == 9, "{}", run.stderr);
    assert!(run.stderr.ends_with(&format!("has {} more lines that are left out\n", count - 8)), "{}", run.stderr);
}

/// What is outside the span is no difference, but says which programs the processes in it run.
#[test]
fn a_span_limits_the_comparison() {
    let Some(machine) = Machine::shared() else { return };
    let script = |status: &str| format!("ls / >/dev/null; sh -c 'cat /dev/null'; (cat /etc/hostname >/dev/null); exit {status}");
    let [a, b] = ["3", "4"].map(|status| recorded(&machine, status, &[], &["sh", "-c", &script(status)]));
    let json = as_json(&machine, &a);
    let all = diff(&machine, &[&a, &b]);
    let of = |span: &str, a: &str, b: &str| {
        let run = diff(&machine, &["--time", span, a, b]);
        (run.status, run.stdout)
    };
    assert_eq!(of("0,", &a, &b), (all.status, all.stdout.clone()));
    assert_eq!(of("0%,100%", &a, &b), (all.status, all.stdout));
    assert_eq!(of(",0ns", &a, &b), (0, String::new()));
    // A moment in the middle: when the second shell executed cat.
    let objects = objects(&json);
    let time = |object: &Value, name: &str| object[name]["monotonic"].as_str().and_then(|text| text.parse::<u64>().ok());
    let start = time(&objects[1], "start").expect("the first call has a start");
    let executes = objects.iter().filter(|object| object["executes"] == true).nth(3).expect("four programs were executed");
    let at = time(executes, "time").expect("a call has a time") - start;
    for span in [format!("{at}ns,"), format!(",{at}ns")] {
        assert_eq!(of(&span, &a, &json), (0, String::new()), "{span}");
        assert_eq!(of(&span, &json, &a), (0, String::new()), "{span}");
    }
    for wrong in ["1", "x,"] {
        let run = plain(&machine, &["diff", "--time", wrong, &a, &b]);
        assert!(run.status == 125 && run.stderr.contains("--time") && run.stderr.lines().count() == 1, "{}", run.stderr);
    }
}

#[test]
fn differences_have_colours_on_a_terminal_or_if_requested() {
    let Some(machine) = Machine::shared() else { return };
    let [a, b] = two_runs(&machine);
    let text = diff(&machine, &[&a, &b]).stdout;
    assert!(!text.contains('\x1b'), "{text}");
    assert_eq!(diff(&machine, &["--color", "never", &a, &b]).stdout, text);
    let colored = diff(&machine, &["--color", "always", &a, &b]).stdout;
    let plain_of = |text: &str| regex::Regex::new("\x1b\\[[0-9;]*m").expect("the pattern is right").replace_all(text, "").into_owned();
    assert!(colored.contains("\x1b[1mcat") && colored.contains("\x1b[31m"), "{colored}");
    assert_eq!(plain_of(&colored), text);
    let on_terminal = |variables: &str| {
        let (path, mut ours, _theirs) = terminal(200);
        shell(&machine, &format!("env -u NO_COLOR -u CLICOLOR_FORCE {variables} $rtrace diff {a} {b} >{path}"));
        let mut bytes = vec![0; 1 << 16];
        let read = ours.read(&mut bytes).expect("lines were written");
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    };
    assert!(on_terminal("").contains("\x1b[1m"));
    assert!(!on_terminal("NO_COLOR=1").contains('\x1b'));
    let forced = shell(&machine, &format!("env -u NO_COLOR CLICOLOR_FORCE=1 $rtrace diff {a} {b}"));
    assert!(forced.stdout.contains("\x1b[1m"), "{}", forced.stdout);
}
