//! Compares recordings of `calls.c`, which were made on other machines, with what the program said about its calls
//! there, and with what perf showed of the same file there.

use super::perf_script::{Script, register, time};
use super::{RECORDINGS, rtrace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A call, as the program said it.
#[derive(Debug)]
struct Told {
    tid: i64,
    name: String,
    number: i64,
    registers: Vec<u64>,
    /// `None` if the call did not return, or if its result is not known to the program.
    result: Option<i64>,
    /// The arguments as they stand in the program.
    arguments: Vec<String>,
}

/// Parses the output of the program.
fn told(text: &str) -> Vec<Told> {
    let line = |line: &str| {
        let (call, arguments) = line.split_once(" : ").expect("each line has the arguments");
        let (call, result) = call.split_once(" = ").expect("each line has the result");
        let words: Vec<&str> = call.split(' ').collect();
        Told {
            tid: words[0].parse().expect("the task is a number"),
            name: words[1].to_owned(),
            number: words[2].parse().expect("the call is a number"),
            registers: words[3..].iter().map(|word| register(word)).collect(),
            result: result.parse().ok(),
            arguments: arguments.split(", ").map(str::to_owned).collect(),
        }
    };
    text.lines().map(line).collect()
}

/// Returns the names of the recordings of the program, without what follows.
fn names() -> Vec<String> {
    let files = fs::read_dir(RECORDINGS).expect("the directory is in the repository");
    let name = |file: fs::DirEntry| file.file_name().to_str()?.strip_suffix(".calls.txt").map(str::to_owned);
    let names: BTreeSet<String> = files.filter_map(|file| name(file.expect("it can be read"))).collect();
    assert!(names.len() >= 3, "{names:?}");
    names.into_iter().collect()
}

fn file(name: &str, ending: &str) -> String {
    fs::read_to_string(format!("{RECORDINGS}/{name}.{ending}")).unwrap_or_else(|error| panic!("{name}.{ending}: {error}"))
}

/// Returns the objects that rtrace prints of a recording.
fn objects(name: &str) -> Vec<Value> {
    let run = rtrace(&["-i", &format!("{RECORDINGS}/{name}.data"), "--json", "-o", "-"]);
    assert_eq!(run.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("it is UTF-8").lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// Returns the calls whose entry was recorded, by their task, in the order in which they began.
fn calls(objects: &[Value]) -> BTreeMap<i64, Vec<&Value>> {
    let mut calls: BTreeMap<i64, Vec<&Value>> = BTreeMap::new();
    for call in objects.iter().filter(|object| object["type"] == "call" && object["entry"] == "seen") {
        calls.entry(call["tid"].as_i64().expect("it is a number")).or_default().push(call);
    }
    let begin = |call: &&Value| time(&call["start"]);
    calls.values_mut().for_each(|calls| calls.sort_by_key(begin));
    calls
}

/// Returns the constants in an argument as it stands in the program; `None` if it is something else.
fn constants(text: &str) -> Option<BTreeSet<&str>> {
    let is_constant = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    text.split('|').all(is_constant).then(|| text.split('|').collect())
}

/// Returns the names that rtrace shows for an argument.
fn shown_constants(value: &Value) -> BTreeSet<&str> {
    let flags = value["flags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    flags.chain(["constant", "name"].into_iter().filter_map(|member| value[member].as_str())).collect()
}

/// Whether a recording has the calls of all names.
fn has_all_calls(name: &str) -> bool {
    !name.ends_with(".perf-single") && !name.ends_with(".rtrace-dwarf")
}

/// Checks one call.
fn compare(told: &Told, shown: &Value, has_names: bool) {
    let place = format!("{told:?}\n{shown}");
    let name = if told.name == "4000" { "syscall_4000" } else { &told.name };
    assert_eq!((shown["name"].as_str(), shown["number"].as_i64()), (Some(name), Some(told.number)), "{place}");
    match told.result {
        Some(result) => assert_eq!(shown["return"]["raw"].as_i64(), Some(result), "{place}"),
        // The kernel writes an exit for rt_sigreturn(2), whose result is the register of the interrupted code.
        None => assert!(shown["exit"] == "never" || name == "rt_sigreturn", "{place}"),
    }
    if let Some(error) = told.result.filter(|result| *result < 0) {
        assert_eq!(shown["return"]["errno"].as_i64(), Some(-error), "{place}");
    }
    let arguments = shown["arguments"].as_array().expect("a call has arguments");
    let of_shown = |argument: &Value| argument["registers"].as_array().and_then(|all| all[0].as_str().map(register));
    let mut registers = told.registers.clone();
    // Its last two arguments have different orders on x86-64, which rtrace's rows are in, and on aarch64.
    if name == "clone" && shown["abi"] == "aarch64" {
        registers.swap(3, 4);
    }
    for (at, argument) in arguments.iter().enumerate() {
        assert_eq!(of_shown(argument), Some(registers[at]), "argument {at} of {place}");
    }
    for (text, argument) in told.arguments.iter().zip(arguments) {
        let value = if argument["entry"].is_null() { &argument["exit"] } else { &argument["entry"] };
        if let Some(constants) = constants(text) {
            assert_eq!(shown_constants(value), constants, "{text} of {place}");
        }
        if let Some(text) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            // Without BPF programs, rtrace reads the names of files, and no other memory.
            let is_read = has_names && argument["name"].as_str().is_some_and(|name| name.ends_with("name"));
            let is_unread = value["unread"] == true && !is_read;
            assert!(is_unread || value["text"].as_str() == Some(text), "{text} of {place}");
        }
    }
}

/// Names, numbers, registers, results, flags and other constants of each call are those of the program.
#[test]
fn the_calls_of_a_recording_are_those_that_the_program_made() {
    for name in names() {
        let objects = objects(&name);
        let calls = calls(&objects);
        let mut all = told(&file(&name, "calls.txt"));
        let recorded: &[&str] = match name.rsplit_once('.') {
            Some((_, "perf-single")) => &["openat", "renameat", "newfstatat", "fcntl", "clone"],
            Some((_, "rtrace-dwarf")) => &["lseek"],
            _ => &[],
        };
        if recorded.is_empty() {
            let tasks: BTreeSet<i64> = all.iter().map(|told| told.tid).collect();
            assert_eq!(calls.keys().copied().collect::<BTreeSet<i64>>(), tasks, "{name}");
            assert!(all.len() > 80 && tasks.len() == 3, "{name}");
        } else {
            all.retain(|told| recorded.contains(&told.name.as_str()));
            assert!(all.len() > 2, "{name}");
        }
        for (tid, calls) in calls {
            // The program says nothing about the execve(2) that began it, and about the writes of its lines.
            let writes_lines = |call: &Value| call["name"] == "write" && call["arguments"][0]["registers"][0] == "0x1";
            let is_told = |call: &&&Value| call["executes"] != true && !writes_lines(call);
            let (shown, told): (Vec<&&Value>, Vec<&Told>) =
                (calls.iter().filter(is_told).collect(), all.iter().filter(|told| told.tid == tid).collect());
            let names = |calls: &[&&Value]| calls.iter().map(|call| call["name"].to_string()).collect::<Vec<String>>();
            assert_eq!(shown.len(), told.len(), "{name}, task {tid}: {:?}", names(&shown));
            told.iter().zip(shown).for_each(|(told, shown)| compare(told, shown, name.contains(".rtrace")));
        }
    }
}

/// Returns the functions of a call's stack that have names, from the innermost.
fn functions(objects: &[Value], call: impl Fn(&Value) -> bool) -> Vec<&str> {
    let found = objects.iter().find(|object| call(object)).expect("it was recorded");
    found["stack"].as_array().expect("it has a stack").iter().filter_map(|frame| frame["function"].as_str()).collect()
}

/// The call paths are those of the program's source. The kernel and rtrace followed them on the other machine.
#[test]
fn stacks_are_the_call_paths_of_the_program() {
    let at = |offset: &'static str| move |call: &Value| call["name"] == "lseek" && call["arguments"][1]["registers"][0] == offset;
    let path = ["made", "inner", "middle", "outer", "start", "_start"];
    for name in ["aarch64.rtrace-stacks", "aarch64.rtrace-dwarf"] {
        assert_eq!(functions(&objects(name), at("0x7")), path, "{name}");
    }
    // The handler makes its call itself. The signal interrupted a call of tasks(), which the compiler put into start().
    let objects = objects("aarch64.rtrace-dwarf");
    assert_eq!(functions(&objects, at("0xa")), ["handler", "__kernel_rt_sigreturn", "made", "start", "_start"]);
}

/// The programs end with the status that they asked for.
#[test]
fn the_ends_of_tasks_are_shown() {
    for name in names().iter().filter(|name| has_all_calls(name)) {
        let ends: BTreeMap<i64, i64> = told(&file(name, "calls.txt"))
            .iter()
            .filter(|told| told.name.starts_with("exit"))
            .map(|told| (told.tid, told.registers[0] as i64))
            .collect();
        let number = |object: &Value, member: &str| object[member].as_i64().expect("it is a number");
        let objects = objects(name);
        let exits = objects.iter().filter(|object| object["type"] == "exit");
        let shown: BTreeMap<i64, i64> = exits.map(|exit| (number(exit, "tid"), number(exit, "status"))).collect();
        assert_eq!((shown, ends.len()), (ends, 3), "{name}");
    }
}

/// The fields of each record are those that perf showed on the machine where the recording was made.
#[test]
fn the_records_have_the_fields_that_perf_showed() {
    for name in names().iter().filter(|name| has_all_calls(name)) {
        let mut script = Script::of(&file(name, "script.txt"));
        assert!(script.entries.len() > 80 && script.exits.len() > 80, "{name}: {script:?}");
        assert!(script.take(name, &objects(name)) > 80, "{name}");
        // What rtrace's child does before it executes the program belongs to rtrace, and the first return of a new task
        // belongs to no call of its own.
        script.retain(|entry| entry.comm != "rtrace", |exit| exit.comm != "rtrace");
        assert!(script.entries.is_empty(), "{name}: not shown: {script:?}");
        assert!(script.exits.values().flatten().all(|exit| exit.result == 0) && script.exits.len() <= 2, "{name}: not shown: {script:?}");
    }
}
