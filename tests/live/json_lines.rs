//! Tests that the objects of `--json` have every fact that lines show. `tests/json/perf_lines.py`, which knows only the
//! schema, writes the lines of `--full` from objects.
//!
//! The unit tests of `src/beauty/json/` do that with calls of all rows; here, programs make the calls.

use crate::attach::{Target, armed};
use crate::compiled::compiled;
use crate::json::objects;
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::{shell_with_engine, start, trace};
use goblin::elf::{Elf, program_header::PT_LOAD};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::Command;

/// Returns the lines that the script writes from a stream of objects.
fn lines_of(machine: &Machine, text: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    let name = machine.path("objects");
    std::fs::write(&name, text).expect("the test's directory is writable");
    let words = [format!("{root}/tests/json/perf_lines.py"), format!("{root}/schema/rtrace-1.json")];
    let run = Command::new("python3").args(words).stdin(File::open(&name).expect("it was written")).output().expect("python3 is installed");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("lines are UTF-8")
}

/// Returns the lines of each thread, without stamps and durations, which differ between two traces. Calls that begin
/// before both traces run are left out.
fn of_threads(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let (_, line) = line.split_once("): ").unwrap_or_else(|| panic!("no duration: {line}"));
        let (task, what) = line.split_once(' ').unwrap_or_else(|| panic!("no task: {line}"));
        if ![" ... [continued]", "poll(", "futex(", "restart_syscall("].iter().any(|early| what.starts_with(early)) {
            let (_, tid) = task.rsplit_once('/').unwrap_or_else(|| panic!("no thread: {line}"));
            threads.entry(tid.to_owned()).or_default().push(line.to_owned());
        }
    }
    threads
}

#[test]
fn two_traces_of_a_process_as_lines_and_as_objects_have_the_same_lines() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Program("python3")]) {
        return;
    }
    let mut target = Target::new();
    let pid = target.pid();
    let mut lines = start(&machine, &["-p", &pid, "--full"], &[]);
    let mut json = start(&machine, &["-p", &pid, "--json"], &[]);
    lines.wait_for("poll", armed);
    json.wait_for_text("poll", |text| text.contains(r#""name":"poll""#));
    target.go();
    assert!(target.ends_well());
    let (lines, json) = (lines.finish().succeeded(), json.finish().succeeded());
    objects(&json.text);
    let (expected, written) = (of_threads(&lines.text), of_threads(&lines_of(&machine, &json.text)));
    assert!(expected.len() >= 5 && expected.values().flatten().any(|line| line.contains("lseek(")), "{}", lines.text);
    for (tid, expected) in &expected {
        assert_eq!(written.get(tid), Some(expected), "thread {tid}");
    }
    assert_eq!(written.len(), expected.len());
}

/// Names of files, programs and tasks may have any byte but `/` and NUL, and data may have any byte.
#[test]
fn hostile_bytes_match_the_schema_and_none_is_lost() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"name="$dir/$(printf 'x\377\001"\\\n\033[31m\342\200\256')z"; cp /bin/true "$name"
        printf 'c\377\n"\\d' > /proc/$$/comm; "$name" "$(printf 'a\377\t\n"')z"; printf '\000\377"\n\342\200\256\303' > "$dir/out"; :"#;
    let script = format!("dir={}; {script}", machine.dir().display());
    let run = trace(&machine, &["--json", "-F", "all", "--call-graph", "fp", "--string-limit", "64"], &["sh", "-c", &script]).succeeded();
    let objects = objects(&run.text);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let has_bytes = |bytes: &[u8]| run.text.contains(&format!("\"bytes\":\"{}\"", hex(bytes)));
    assert!(has_bytes(b"c\xff\n\"\\d"), "the name of the task:\n{}", run.text);
    let name = [machine.path("").as_bytes(), b"x\xff\x01\"\\\n\x1b[31m\xe2\x80\xaez"].concat();
    // Without BPF, the data of calls are not copied, and names only as far as the kernel permits.
    if machine::engine() == "bpf" {
        let executed = objects.iter().filter(|object| object["executes"] == true && object["return"]["raw"] == 0);
        let named = |call: &&Value| call["arguments"][0]["entry"]["text"]["bytes"] == hex(&name);
        let call = executed.clone().find(named).unwrap_or_else(|| panic!("{:?}", executed.clone().collect::<Vec<_>>()));
        assert_eq!(call["arguments"][1]["entry"]["array"][1]["text"]["bytes"], hex(b"a\xff\t\n\"z"), "{call}");
        assert!(has_bytes(b"\x00\xff\"\n\xe2\x80\xae\xc3"), "the data:\n{}", run.text);
    }
    if machine.lacks(&[Need::Program("python3")]) {
        return;
    }
    let lines = lines_of(&machine, &run.text);
    assert!(!lines.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{lines}");
    let calls = objects.iter().filter(|object| object["type"] == "call").count();
    assert_eq!(lines.lines().filter(|line| line.contains(") ") && line.contains("= ")).count(), calls, "{lines}");
}

/// Each frame has the position of its address in the file, in the function, and in the memory of the process.
#[test]
fn frames_have_the_build_id_and_the_places_in_file_and_function() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["-O2", "-no-pie", "-fno-omit-frame-pointer", "-Wl,--build-id=0x0123456789abcdef"];
    let Some(program) = compiled(&machine, "cc", &options, "stacks/chain.c", "placed") else { return };
    let run = trace(&machine, &["--json", "-e", "lseek", "--call-graph", "dwarf"], &[&program, "alloca", "4711"]).succeeded();
    let objects = objects(&run.text);
    let bytes = std::fs::read(&program).expect("it was compiled");
    let elf = Elf::parse(&bytes).expect("it is an ELF file");
    let hex = |value: &Value| u64::from_str_radix(&value.as_str().unwrap_or_else(|| panic!("{value}"))[2..], 16).expect("digits");
    let frames: Vec<&Value> = objects.iter().filter_map(|object| object["stack"].as_array()).flatten().collect();
    let of_program: Vec<&Value> =
        frames.into_iter().filter(|frame| frame["file"].as_str().is_some_and(|file| file.ends_with("/placed"))).collect();
    assert!(of_program.len() > 2, "{}", run.text);
    for frame in of_program {
        assert_eq!(frame["build_id"], "0123456789abcdef", "{frame}");
        let (address, memory, offset) = (hex(&frame["address"]), hex(&frame["memory_address"]), hex(&frame["file_offset"]));
        assert_eq!(address, memory, "a program at a fixed address: {frame}");
        let loads = elf.program_headers.iter().filter(|header| header.p_type == PT_LOAD);
        let mut places = loads.filter(|header| (header.p_vaddr..header.p_vaddr + header.p_filesz).contains(&address));
        assert_eq!(places.next().map(|header| address - header.p_vaddr + header.p_offset), Some(offset), "{frame}");
        let Some(name) = frame["function"].as_str() else { continue };
        let named = elf.syms.iter().filter(|symbol| elf.strtab.get_at(symbol.st_name) == Some(name));
        let starts: Vec<u64> = named.map(|symbol| symbol.st_value).collect();
        let start = address - frame["offset"].as_u64().unwrap_or_else(|| panic!("no offset: {frame}"));
        assert!(starts.contains(&start), "{frame}: {starts:x?}");
    }
}

#[test]
fn every_file_of_an_output_begins_with_the_object_of_the_trace() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"mkdir $dir/each $dir/rotated
        $rtrace $engine --json --output-separately -o $dir/each/x -- sh -c '/bin/true; /bin/true; exit 0'
        $rtrace $engine --json --max-size 20K --rotate 99 -o $dir/rotated/x -- "$workload" forks 20 > /dev/null"#;
    shell_with_engine(&machine, script);
    for (directory, files_min) in [("each", 4), ("rotated", 3)] {
        let entries = std::fs::read_dir(machine.path(directory)).expect("it was made");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        assert!(files.len() >= files_min, "{files:?}");
        let (mut heads, mut ends) = (Vec::new(), 0);
        for file in &files {
            let text = std::fs::read_to_string(file).expect("JSON is UTF-8");
            let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
            crate::json::check(&objects);
            assert!(objects.len() > 1 && objects[1..].iter().all(|object| object["type"] != "trace"), "{file:?}: {text}");
            heads.push(objects[0].clone());
            ends += objects.iter().filter(|object| object["type"] == "end").count();
        }
        assert!(heads.iter().all(|head| head["type"] == "trace" && *head == heads[0]), "{heads:?}");
        assert_eq!(ends, 1, "{files:?}");
    }
}

/// The command under EXAMPLES of rtrace-json(5) prints the output that the page states.
#[test]
fn the_example_of_the_manual_page_works() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Program("jq")]) {
        return;
    }
    let page = include_str!("../../man/rtrace-json.5");
    let example =
        page.split_once(".SH EXAMPLES").and_then(|(_, rest)| rest.split_once(".nf\n")?.1.split_once(".fi")).expect("an example").0;
    let command = example.trim().replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\");
    assert!(command.contains("rtrace --json") && command.contains("-e openat make |"), "{command}");
    let command = command.replace("rtrace --json", "$rtrace $engine --json").replace("make |", "sh -c ': < /nonexistent/file; :' |");
    let run = shell_with_engine(&machine, &format!("{{ {command}; }} 2> /dev/null"));
    let failed =
        run.text.lines().find(|line| line.starts_with("ENOENT") && !line.contains(".so")).unwrap_or_else(|| panic!("{}", run.text));
    assert!(failed == "ENOENT\t/nonexistent/file" || machine::engine() != "bpf", "{failed}");
}

#[test]
fn objects_have_the_cgroup_where_the_trace_follows_cgroups() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["--json", "-S", "--summary-mode", "cgroup"];
    let run = trace(&machine, &options, &["cat", "/proc/self/cgroup"]).succeeded();
    let paths: Vec<&str> = run.stdout.lines().filter_map(|line| line.splitn(3, ':').nth(2)).collect();
    let objects: Vec<Value> = run.text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    crate::json::check(&objects);
    let calls: Vec<&Value> = objects.iter().filter(|object| object["type"] == "call").collect();
    let is_there = |call: &&Value| call["cgroup"].as_str().is_some_and(|cgroup| paths.contains(&cgroup));
    assert!(calls.len() > 10 && calls.iter().all(is_there), "{paths:?}: {}", run.text);
}
