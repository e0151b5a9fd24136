//! `--json`: each line is an object that matches `schema/rtrace-1.json`, and together they are the whole trace.

use crate::machine::{self, Machine};
use crate::schema::Schema;
use crate::trace::{Trace, shell_with_engine, trace, workload};
use serde_json::Value;

fn schema() -> Schema {
    Schema::new(include_str!("../../schema/rtrace-1.json"))
}

/// Checks objects against the schema.
pub fn check(objects: &[Value]) {
    let schema = schema();
    for object in objects {
        schema.check(object).unwrap_or_else(|why| panic!("{why}\n{object}"));
    }
}

/// Returns the objects of a run, after checking each against the schema, and checking that the calls add up.
pub fn objects(text: &str) -> Vec<Value> {
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect();
    check(&objects);
    assert_eq!((&objects[0]["type"], &objects[0]["schema"]), (&"trace".into(), &1.into()));
    let end = objects.last().expect("there is a last one");
    assert_eq!(end["type"], "end", "{end}");
    let of = |name: &str| end["calls"][name].as_u64().unwrap_or_else(|| panic!("{name}: {end}"));
    assert_eq!(of("issued"), of("shown") + of("lost") + of("held_back") + of("given_up"), "{end}");
    assert_eq!(count(&objects, "call") as u64, of("shown"), "{end}");
    objects
}

fn count(objects: &[Value], kind: &str) -> usize {
    objects.iter().filter(|object| object["type"] == kind).count()
}

fn calls<'a>(objects: &'a [Value], name: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["type"] == "call" && object["name"] == name).collect()
}

fn argument<'a>(call: &'a Value, name: &str) -> &'a Value {
    let arguments = call["arguments"].as_array().unwrap_or_else(|| panic!("{call}"));
    arguments.iter().find(|argument| argument["name"] == name).unwrap_or_else(|| panic!("no {name}: {call}"))
}

#[test]
fn every_line_of_test_programs_matches_the_schema() {
    let Some(machine) = Machine::shared() else { return };
    let zoo = format!("zoo {}", machine.path("zoo"));
    let memory = format!("memory all 3 {}", machine.path("."));
    for words in [&zoo, &memory, "signals many", "exec thread", "seccomp 50", "unknown", "payload whole", "meanings", "forks 20", "slow 50"]
    {
        let run = workload(&machine, &["--json", "-F", "all", "--call-graph", "fp"], words);
        let objects = objects(&run.text);
        assert!(count(&objects, "call") > 10 && count(&objects, "exit") > 0, "{words}: {}", run.stderr);
    }
}

#[test]
fn every_line_of_events_and_of_the_whole_machine_matches_the_schema() {
    let Some(machine) = Machine::shared() else { return };
    let run =
        trace(&machine, &["--json", "-a", "-e", "sched:sched_switch,sched:sched_process_exec", "--syscalls"], &["sleep", ".2"]).succeeded();
    let objects = objects(&run.text);
    // Other programs of the machine execute programs at the same time.
    let execs = objects.iter().filter(|object| object["name"] == "sched:sched_process_exec");
    let mut fields = execs.flat_map(|exec| exec["fields"].as_array().expect("an event has fields"));
    let is_path =
        |field: &Value| field["name"] == "filename" && field["value"]["text"].as_str().is_some_and(|path| path.ends_with("sleep"));
    assert!(fields.any(is_path), "{}", run.text);
}

/// Values are typed and have full names, registers have their raw values, and values at the exit are beside those at
/// the entry.
#[test]
fn a_call_has_its_arguments_as_values_and_as_registers() {
    let Some(machine) = Machine::shared() else { return };
    let objects = objects(&workload(&machine, &["--json", "-e", "fcntl,openat,mkdirat"], "meanings").succeeded().text);
    let set_owner =
        calls(&objects, "fcntl").into_iter().find(|call| argument(call, "cmd")["entry"]["constant"] == "F_SETOWN").expect("it made one");
    assert_eq!(
        (&argument(set_owner, "arg")["entry"]["pid"], &argument(set_owner, "arg")["registers"][0]),
        (&(-1).into(), &"0xffffffff".into())
    );
    assert_eq!((&set_owner["return"]["errno"], &set_owner["return"]["name"]), (&9.into(), &"EBADF".into()));
    let modes: Vec<&Value> = calls(&objects, "openat").into_iter().map(|call| argument(call, "mode")).collect();
    assert!(modes.iter().any(|mode| mode["unused"] == true && mode["registers"][0] == "0x1a1"), "{modes:?}");
    assert!(modes.iter().any(|mode| mode["entry"]["permissions"] == 0o641), "{modes:?}");
    let flags = argument(calls(&objects, "openat").last().expect("it opens files"), "flags");
    assert_eq!(flags["entry"]["flags"], serde_json::json!(["O_RDONLY", "O_CREAT", "O_EXCL"]));
}

#[test]
fn names_that_are_not_utf_8_are_restored_byte_for_byte() {
    let Some(machine) = Machine::shared() else { return };
    let run = trace(&machine, &["--json", "-e", "openat"], &["sh", "-c", r#": < "$(printf '/nonexistent/\377\001"\\\n\303\244.')""#]);
    let objects = objects(&run.text);
    let last = calls(&objects, "openat").pop().expect("it opened one");
    let digits = "2f6e6f6e6578697374656e742fff01225c0ac3a42e";
    let name = &argument(last, "filename")["entry"];
    // Without BPF and without kernel probes, a name is an address whose memory was not read.
    let may_be_address = machine::engine() != "bpf";
    assert!(name["text"]["bytes"] == digits || may_be_address && name["unread"] == true, "{last}");
}

#[test]
fn a_pending_call_is_an_object_on_request() {
    let Some(machine) = Machine::shared() else { return };
    let of = |options: &[&str]| {
        let options = [&["--json", "-e", "nanosleep,clock_nanosleep"], options].concat();
        let Trace { text, .. } = trace(&machine, &options, &["sleep", ".4"]).succeeded();
        let objects = objects(&text);
        (count(&objects, "pending"), count(&objects, "call"))
    };
    assert_eq!(of(&[]), (0, 1));
    assert_eq!(of(&["--pending"]), (1, 1));
}

#[test]
fn an_output_name_chooses_json() {
    let Some(machine) = Machine::shared() else { return };
    let script = "$rtrace $engine -o $dir/x.jsonl -e exit_group true; head -n 1 $dir/x.jsonl";
    let run = shell_with_engine(&machine, script);
    assert!(run.text.starts_with(r#"{"type":"trace","schema":1,"#), "{}", run.text);
}
