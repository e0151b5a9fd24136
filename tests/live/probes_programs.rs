//! Tests of probes on programs with names: symbols, source lines, variables, USDT tracepoints. The fetched values are
//! compared with what the program prints.

use crate::compiled::compiled;
use crate::machine::Machine;
use crate::needs::unsupported;
use crate::trace::{plain, shell, trace};
use std::process::Command;

const APP: &str = include_str!("../programs/probes/app.c");

/// Compiles a program of `tests/programs/probes`; the name of the file has the compiler and its flags.
fn build(machine: &Machine, compiler: &str, source: &str, flags: &[&str]) -> Option<String> {
    let name = format!("{}-{compiler}{}", source.trim_end_matches(".c"), flags.concat().replace(['/', '='], ""));
    compiled(machine, compiler, flags, &format!("probes/{source}"), &name)
}

/// Returns the number of the line with this text in the program's source.
fn line(text: &str) -> usize {
    APP.lines().position(|line| line.contains(text)).expect("the source has it") + 1
}

/// Traces a command and returns the text in the parentheses of each event.
fn fetched(machine: &Machine, probes: &[&str], command: &[&str]) -> Vec<String> {
    let options: Vec<&str> = probes.iter().flat_map(|probe| ["--probe", *probe]).collect();
    let run = trace(machine, &options, command).succeeded();
    let texts: Vec<String> = run.lines().iter().map(|line| line.text.clone()).filter(|text| !text.contains("+++")).collect();
    let within = |text: &String| Some(text.split_once("): ")?.1.split_once('(')?.1.strip_suffix(')')?.to_owned());
    texts.iter().map(|text| within(text).unwrap_or_else(|| panic!("no event: {text}"))).collect()
}

/// Compilers and flags that lead to different locations of variables.
const BUILDS: [(&str, &[&str]); 6] = [
    ("gcc", &["-O0", "-g"]),
    ("gcc", &["-O2", "-g"]),
    ("gcc", &["-O1", "-g", "-static"]),
    ("gcc", &["-O2", "-g", "-no-pie"]),
    ("clang", &["-O0", "-g"]),
    ("clang", &["-O2", "-g"]),
];

#[test]
fn variables_have_their_values_with_all_compilers() {
    let Some(machine) = Machine::shared() else { return };
    for (compiler, flags) in BUILDS {
        let Some(app) = build(&machine, compiler, "app.c", flags) else { continue };
        let seen = |what: &str| fetched(&machine, &[&format!("p {app}:{what}")], &[&app, "2"]);
        assert_eq!(seen("handle req->path:string len"), ["req_path: \"/a/path\", len: 100", "req_path: \"/a/path\", len: 101"], "{app}");
        let members = "where=req->next->path:string req->wide req->points[1].y req->list req->name tag";
        let values =
            "where: \"/last/one\", req_wide: 3001, req_points_1_y: 4, req_list: [10, -20, 30, -40], req_name: \"a name\", tag: 200";
        assert_eq!(seen(&format!("handle {members}")), [values; 2], "{app}");
        assert_eq!(
            seen("handle served_total origin.y"),
            ["served_total: 1000, origin_y: -12", "served_total: 1002, origin_y: -12"],
            "{app}"
        );
        assert_eq!(seen("many $arg*"), ["a: 1, b: -2, c: 3, d: -4, e: 5, f: -6, g: 7, h: -8"; 2], "{app}");
    }
}

#[test]
fn locals_are_fetched_at_lines() {
    let Some(machine) = Machine::shared() else { return };
    for (compiler, flags) in BUILDS {
        let Some(app) = build(&machine, compiler, "app.c", flags) else { continue };
        let seen = |what: &str| fetched(&machine, &[&format!("p {app}:{what}")], &[&app]);
        let served = line("the line \"served\"");
        assert_eq!(seen(&format!("app.c:{served} sum req->len")), ["sum: 920, req_len: 7"], "{app}");
        assert_eq!(seen(&format!("handle:{} sum", served - line("int handle("))), ["sum: 920"], "{app}");
        let starts: Vec<String> = [3, 10, 5, 16, 8, 4, 2, 1].iter().map(|start| format!("start: {start}")).collect();
        assert_eq!(seen(&format!("app.c:{} start", line("the line \"steps\""))), starts, "{app}");
        // The line is in two inlined copies. The compiler chooses the order of the two calls in an argument list.
        let mut products = seen(&format!("app.c:{} product factor", line("the line \"scaled\"")));
        products.sort_unstable();
        assert_eq!(products, ["product: 15, factor: 3", "product: 28, factor: 4"], "{app}");
    }
}

#[test]
fn return_values_are_fetched() {
    let Some(machine) = Machine::shared() else { return };
    let Some(app) = build(&machine, "gcc", "app.c", &["-O2", "-g"]) else { return };
    // The return address precedes the arguments.
    let behind = |event: String| event.split_once(", ").map_or(event.clone(), |(_, args)| args.to_owned());
    let seen = |what: &str| fetched(&machine, &[&format!("r {app}:{what}")], &[&app]).into_iter().map(behind).collect::<Vec<_>>();
    assert_eq!(seen("handle sum=$retval"), ["sum: 920"]);
    assert_eq!(seen("named name=$retval:string"), ["name: \"a name\""]);
    assert_eq!(seen("named name=+0($retval):string"), ["name: \"a name\""]);
    assert_eq!(seen("following $retval->path:string $retval->len"), ["retval_path: \"/last/one\", retval_len: 9"]);
}

#[test]
fn offsets_and_symbols_name_the_same_place() {
    let Some(machine) = Machine::shared() else { return };
    let Some(app) = build(&machine, "gcc", "app.c", &["-O0", "-g", "-no-pie", "-fcf-protection=none"]) else { return };
    let nm = Command::new("nm").arg(&app).output().expect("nm is there with the compiler");
    let names = String::from_utf8(nm.stdout).expect("names in C");
    let address = names.lines().find_map(|line| line.strip_suffix(" T handle")).expect("it has the function");
    // An executable that is linked in this way is loaded at this address.
    let offset = u64::from_str_radix(address, 16).expect("an address") - 0x40_0000;
    let probes =
        [format!("p {app}:{offset:#x} len=%si:s32"), format!("p {app}:handle len=%si:s32"), format!("p {app}:handle+1 len=%si:s32")];
    let seen = fetched(&machine, &probes.each_ref().map(String::as_str), &[&app]);
    assert_eq!(seen, ["len: 100"; 3]);
}

#[test]
fn usdt_arguments_are_fetched_and_semaphores_counted() {
    let Some(machine) = Machine::shared() else { return };
    for flags in [&["-O2", "-pie", "-fPIE"][..], &["-O0", "-no-pie"]] {
        let Some(app) = build(&machine, "gcc", "usdt.c", flags) else { return };
        let seen = |what: &str| fetched(&machine, &[&format!("usdt {app}:app:{what}")], &[&app, "2"]);
        assert_eq!(seen("begin number=arg1:x32 arg2:string arg3 arg4")[1], "number: 0x1, arg2: \"a text\", arg3: 5, arg4: 41");
        assert_eq!(seen("step number=arg1:x64").len(), 4, "two sites, twice");
        // The program reports whether its semaphore was set: by a probe on the USDT tracepoint.
        let listens = |probe: &str| shell(&machine, &format!("$rtrace --probe '{probe}' -o /dev/null {app} 3")).succeeded();
        assert!(listens(&format!("usdt {app}:app:begin")).stdout.contains("listened 3"));
        assert!(listens(&format!("usdt {app}:app:step")).stdout.contains("listened 0"));
    }
}

#[test]
fn usdt_tracepoints_of_python_are_traced() {
    let Some(machine) = Machine::shared() else { return };
    let python = "/usr/bin/python3";
    let notes = Command::new("readelf").args(["-n", python]).output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !notes.is_ok_and(|notes| notes.contains("function__entry")) {
        unsupported(&format!("{python} has no USDT tracepoints"));
        return;
    }
    let probe = format!("usdt {python}:python:function__entry file=arg1:string function=arg2:string line=arg3");
    // Python 3.11 hits this tracepoint only when its interpreter loop is entered, which a generator causes.
    let script = "def noticed(): yield 1\nnoticed()";
    let seen = fetched(&machine, &[&probe], &[python, "-c", script]);
    assert!(seen.iter().any(|event| event == "file: \"<string>\", function: \"noticed\", line: 1"), "{seen:#?}");
}

#[test]
fn lines_typed_at_bash_are_fetched() {
    let Some(machine) = Machine::shared() else { return };
    let probe = "r /bin/bash:readline +0($retval):string";
    let run = shell(
        &machine,
        &format!("echo 'echo said' | $rtrace -o $dir/lines --probe '{probe}' bash --norc -i; grep -c 'echo said' $dir/lines"),
    );
    assert!(run.stdout.ends_with("said\n1\n"), "{}\n{}", run.stdout, run.stderr);
}

#[test]
fn unknown_names_are_explained() {
    let Some(machine) = Machine::shared() else { return };
    let Some(app) = build(&machine, "gcc", "app.c", &["-O2", "-g"]) else { return };
    for (place, words) in [
        ("handle req->pth", "struct req has no member pth; similar: path"),
        ("handle rec", "handle has no variable rec; similar: req"),
        ("app.c:2", "app.c:2 has no code; line "),
        ("app.c:9999", "app.c:9999 has no code; line "),
        ("handle+99999", "is not in handle, which has"),
        ("served_total", "is data, not code"),
        ("0x0", "is not in its code, so a probe there would never be hit"),
    ] {
        let run = plain(&machine, &["--probe", &format!("p {app}:{place}"), "--", "true"]);
        assert!(run.status == 125 && run.stderr.contains(words), "{place}: {}", run.stderr);
    }
}
