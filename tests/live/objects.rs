//! BPF programs of the user: the examples, their records, and the absence of effects on others.

use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::stacks;
use crate::trace::{Trace, plain, start, trace};
use std::process::Command;

/// Returns a file of programs: the source or, without clang, the object that was compiled before (`tests/vm/run` does
/// that).
fn file(dir: &str, name: &str) -> String {
    match std::env::var("RTRACE_TEST_OBJECTS") {
        Ok(objects) => format!("{objects}/{name}.bpf.o"),
        Err(_) => source(&format!("{dir}/{name}.bpf.c")),
    }
}

/// Returns the path of a file of the repository.
fn source(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn example(name: &str) -> String {
    file("examples/bpf", name)
}

fn program(name: &str) -> String {
    file("tests/programs/bpf", name)
}

/// Returns a machine that has the objects, or clang to compile them; otherwise reports so and returns `None`.
fn machine() -> Option<Machine> {
    if std::env::var_os("RTRACE_TEST_OBJECTS").is_some() { Machine::shared() } else { machine_with_clang() }
}

fn machine_with_clang() -> Option<Machine> {
    Machine::shared().filter(|machine| !machine.lacks(&[Need::Program("clang")]))
}

/// Returns the text between the parentheses of each event of this name.
fn events<'t>(trace: &'t Trace, name: &str) -> Vec<&'t str> {
    let begins = format!(" {name}(");
    trace.text.lines().filter_map(|line| line.split_once(&begins)?.1.strip_suffix(')')).collect()
}

/// Traces `events` of `CALLS` calls of getppid, with these options.
fn of_getppid(machine: &Machine, options: &[&str]) -> Trace {
    trace(machine, options, &[&machine::workload(), "calls", "getppid", "1", "40"]).succeeded()
}

#[test]
fn an_object_shows_every_opened_file() {
    let Some(machine) = machine() else { return };
    let absent = machine.path("absent");
    let run = trace(&machine, &["-e", &format!("{},openat", example("openat"))], &["cat", "/dev/null", &absent]);
    let opened = events(&run, "opened");
    assert_eq!(opened.len() as u64, run.count("openat"), "one for each call:\n{}\n{}", run.text, run.stderr);
    assert!(opened.contains(&format!("filename: \"{absent}\", ret: -2").as_str()), "{}", run.text);
    assert!(opened.iter().any(|one| one.starts_with("filename: \"/dev/null\", ret: ")), "{}", run.text);
    assert!(opened.iter().all(|one| one.starts_with("filename: \"")), "{}", run.text);
    // The line of the call is at its end, which is also when the record of the program was written.
    let of_absent: Vec<usize> = run.text.lines().enumerate().filter(|(_, line)| line.contains("absent")).map(|(at, _)| at).collect();
    assert!(of_absent.windows(2).all(|two| two[0] + 1 == two[1]), "{}", run.text);
}

#[test]
fn an_object_selects_files_below_a_directory() {
    let Some(machine) = machine() else { return };
    let run = trace(&machine, &["-e", &example("etc")], &["cat", "/etc/group", "/dev/null", "/etc/passwd"]).succeeded();
    let opens = events(&run, "syscalls:sys_enter_openat");
    assert!(opens.iter().all(|one| one.starts_with("filename: \"/etc/")), "{}", run.text);
    let has = |path: &str| opens.contains(&format!("filename: \"{path}\", flags: RDONLY").as_str());
    assert!(has("/etc/group") && has("/etc/passwd"), "{}", run.text);
    let filtered = ["-e", &example("etc"), "--filter", "filename ~ \"*passwd\" && comm == \"cat\""];
    let run = trace(&machine, &filtered, &["cat", "/etc/group", "/etc/passwd"]).succeeded();
    assert_eq!(events(&run, "syscalls:sys_enter_openat"), ["filename: \"/etc/passwd\", flags: RDONLY"], "{}", run.text);
}

#[test]
fn an_object_selects_long_sleeps() {
    let Some(machine) = machine() else { return };
    let run = trace(&machine, &["-e", &example("nanosleep")], &["sh", "-c", "sleep 0.0000005; sleep 0.00002; sleep 0.000001"]).succeeded();
    assert_eq!(events(&run, "syscalls:sys_enter_clock_nanosleep"), ["which_clock: REALTIME, nanoseconds: 20000"], "{}", run.text);
}

#[test]
fn an_object_that_is_already_compiled_is_loaded() {
    let Some(machine) = machine_with_clang() else { return };
    let object = machine.path("silent.bpf.o");
    let header = source("src/bpf/user");
    let made = Command::new("clang")
        .args(["-target", "bpf", "-g", "-O2", "-I", &header, "-c", &source("tests/programs/bpf/silent.bpf.c"), "-o", &object])
        .status();
    assert!(made.expect("clang runs").success());
    let run = of_getppid(&machine, &["-e", &format!("{object},getppid")]);
    assert_eq!((run.count("getppid"), events(&run, "syscalls:sys_enter_getppid").len()), (40, 0), "{}", run.text);
}

#[test]
fn objects_have_members_of_every_type_and_programs_of_every_type() {
    let Some(machine) = machine() else { return };
    let run = of_getppid(&machine, &["--show-zeros", "-e", &program("kinds")]);
    let kinds = events(&run, "kinds");
    assert_eq!(kinds.len(), 40, "{}\n{}", run.text, run.stderr);
    let (before, behind) = kinds[0].split_once("inner.pid: ").expect("it is a member");
    assert_eq!(before, "minus: -5, mood: CROSS, level: LOW, inner.small: 200, ", "{}", run.text);
    let behind = behind.split_once(", ").expect("there is more").1;
    assert_eq!(behind, "text: \"seven..\", words: [1, 0, 3], where: 0xfeed, yes: 1", "{}", run.text);
    assert_eq!(events(&run, "saying"), [r#"text: "half a \"word\"""#; 40], "{}", run.text);
    assert_eq!(events(&run, "syscalls:sys_enter_getppid").len(), 0, "{}", run.text);
    assert!(events(&run, "syscalls:sys_exit_getppid").iter().all(|one| one.starts_with("ret: ")), "{}", run.text);
    let of_all = ["syscalls:sys_exit_getppid", "raw_tp:sys_enter"].map(|name| events(&run, name).len());
    // Two programs are on the raw tracepoint, one of them BTF-typed.
    assert_eq!(of_all, [40, 80], "{}", run.text);
    let with_level = |level: &str| of_getppid(&machine, &["-e", &program("kinds"), "--filter", &format!("level == {level}")]);
    let [low, medium] = ["LOW", "MEDIUM"].map(|level| events(&with_level(level), "kinds").len());
    assert_eq!((low, medium), (40, 0));
    let raw = |text: &str| events(&run, "raw_tp:sys_enter").iter().filter(|one| one.starts_with(text)).count();
    assert_eq!((raw("number: "), raw("id: 0x")), (40, 40), "{}", run.text);
}

/// The calls of one process are those of a real user, of another one those of an effective user.
#[test]
fn objects_run_for_real_and_effective_users() {
    let Some(machine) = machine() else { return };
    if Machine::shared_with_bpf().is_none() || machine.lacks(&[Need::Program("setpriv")]) {
        return;
    }
    let workload = machine.copy_of(&machine::workload(), "workload");
    let calls = |options: &str| format!("{options} {workload} calls getppid 1 40");
    // No other test traces this user.
    let script = ["setpriv --euid=5", "", "setpriv --ruid=5", "setpriv --reuid=6"].map(calls).join("; ");
    let options = ["--engine", "bpf", "-u", "5", "-e", &format!("{},getppid", program("kinds"))];
    let run = start(&machine, &options, &["sh", "-c", &script]).finish().succeeded();
    assert_eq!((run.count("getppid"), events(&run, "kinds").len()), (80, 80), "{}\n{}", run.text, run.stderr);
}

#[test]
fn objects_probe_functions_of_programs_and_their_returns() {
    let Some(machine) = machine() else { return };
    let run = trace(&machine, &["--show-zeros", "-e", &program("kinds")], &["env", "LC_ALL=C", "cat", "/dev/null"]).succeeded();
    let text = |name: &str| events(&run, name).join("\n");
    // The memory of the name may not be present yet; it is then shown as an address.
    assert!(text("uprobe:setlocale").contains("category: 6, name: "), "{}\n{}", run.text, run.stderr);
    assert!(text("ret_uprobe:setlocale").contains("ret: \"C\""), "{}", run.text);
}

#[test]
fn objects_probe_functions_of_the_kernel() {
    let Some(machine) = machine() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let absent = machine.path("absent");
    let run = trace(&machine, &["-e", &program("functions")], &["cat", &absent]);
    let has = |name: &str, text: &str| events(&run, name).contains(&text);
    assert!(has("kprobe:do_sys_openat2", &format!("dfd: -100, filename: \"{absent}\"")), "{}\n{}", run.text, run.stderr);
    assert!(has("ret_kprobe:do_sys_openat2", "ret: -2"), "{}", run.text);
    assert!(has("ret_function:do_sys_openat2", &format!("filename: \"{absent}\", ret: -2")), "{}", run.text);
}

#[test]
fn records_have_stacks() {
    let Some(machine) = machine() else { return };
    let run = trace(&machine, &["-e", &format!("{}/max-stack=5/", example("openat"))], &["cat", "/dev/null"]).succeeded();
    let lines: Vec<&str> = run.text.lines().collect();
    let at = lines.iter().position(|line| line.contains("\"/dev/null\"")).unwrap_or_else(|| panic!("{}", run.text));
    let frames: Vec<stacks::Frame> = lines[at + 1..].iter().map_while(|line| stacks::frame(line)).collect();
    assert!((2..=5).contains(&frames.len()), "{}", run.text);
    assert!(frames[0].name.contains("open") && frames[0].file.contains("libc"), "{}", run.text);
    assert!(frames[1..].iter().any(|frame| frame.name.starts_with("/usr/bin/cat") || frame.file.contains("cat")), "{}", run.text);
}

/// The return value of a program on a tracepoint affects only its own event: no sample of other events or of other
/// tracers is missing.
#[test]
fn objects_do_not_silence_other_tracers() {
    let Some(machine) = machine() else { return };
    let silent = program("silent");
    let run = of_getppid(&machine, &["-e", &format!("syscalls:sys_enter_getppid,{silent}")]);
    assert_eq!(events(&run, "syscalls:sys_enter_getppid").len(), 40, "{}\n{}", run.text, run.stderr);
    assert!(!run.stderr.contains("BPF program of another tracer"), "{}", run.stderr);
    let (rtrace, workload, inner) = (machine::rtrace(), machine::workload(), machine.path("inner"));
    let other = [rtrace, "-v", "-o", &inner, "-e", "syscalls:sys_enter_getppid", "--", &workload, "calls", "getppid", "1", "40"];
    let run = trace(&machine, &["-e", &silent], &other).succeeded();
    let seen = std::fs::read_to_string(&inner).unwrap_or_default();
    assert_eq!(seen.matches(" syscalls:sys_enter_getppid(").count(), 40, "{seen}\n{}", run.stderr);
    assert!(!run.stderr.contains("BPF program of another tracer"), "{}", run.stderr);
}

/// There are as many records of `opened` as lines: no record was written for other processes.
fn assert_none_left_out(run: &Trace) {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    // Programs find the task storage of traced tasks reliably from Linux 6.2 on.
    if !symbols.contains(" bpf_rdonly_cast") {
        return crate::needs::unsupported("what is traced is not told apart in the kernel before Linux 6.2");
    }
    let said = format!("rtrace: opened: 0 issued, {} received, 0 lost", events(run, "opened").len());
    assert!(run.stderr.lines().any(|line| line == said), "not {said}: {}", run.stderr);
}

#[test]
fn objects_run_for_traced_tasks_only() {
    let Some(machine) = machine() else { return };
    let opened = example("openat");
    for (name, options) in [("alone", opened.clone()), ("calls", format!("{opened},openat"))] {
        for attached in [false, true] {
            let (over, ready) = (machine.path(&format!("over-{name}-{attached}")), machine.path(&format!("ready-{name}-{attached}")));
            let script = format!("while ! cat {over} 2>/dev/null; do : >{ready}; sleep 0.02; done");
            let mut target = attached.then(|| Command::new("sh").args(["-c", &script]).spawn().expect("sh runs"));
            let pid = target.as_ref().map(|target| target.id().to_string());
            let mut run = match &pid {
                Some(pid) => start(&machine, &["-p", pid, "-e", &options], &[]),
                None => start(&machine, &["-e", &options], &["sh", "-c", &script]),
            };
            run.wait_for("line of the shell's", |lines| lines.iter().any(|line| line.text.contains(&ready)));
            let outside = machine.file(&format!("outside-{name}-{attached}"), 1);
            assert!(Command::new("cat").arg(&outside).output().expect("cat runs").status.success());
            std::fs::write(&over, "").expect("the test's directory is writable");
            let run = run.finish().succeeded();
            target.iter_mut().for_each(|target| _ = target.wait());
            assert!(run.text.contains(&format!("\"{over}\"")) && !run.text.contains(&outside), "{}", run.text);
            assert_none_left_out(&run);
        }
    }
    // With --no-inherit, only the command itself is traced.
    let script = "cat /etc/group; : </etc/passwd";
    let run = trace(&machine, &["--no-inherit", "-e", &example("openat")], &["sh", "-c", script]).succeeded();
    assert!(run.text.contains("\"/etc/passwd\"") && !run.text.contains("\"/etc/group\""), "{}", run.text);
}

fn fails(run: &Trace, words: &[&str]) {
    assert_eq!(run.status, 125, "{}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "no {word:?} in\n{}", run.stderr);
    }
    assert!(!run.stdout.contains("started") && !run.stderr.contains("panicked"), "{}\n{}", run.stdout, run.stderr);
}

#[test]
fn mistakes_in_objects_are_refused() {
    let Some(machine) = machine_with_clang() else { return };
    let refuse = |text: &str, words: &[&str]| {
        let path = machine.path("wrong.bpf.c");
        std::fs::write(&path, text).expect("the test's directory is writable");
        fails(&plain(&machine, &["-e", &path, "--", "echo", "started"]), words);
    };
    let with = |section: &str| {
        format!("#include <rtrace.bpf.h>\nSEC(\"{section}\")\nint f(void *context)\n{{\n\treturn 0;\n}}\nRTRACE_LICENSE(\"GPL\");\n")
    };
    refuse("int f( {\n", &["wrong.bpf.c:1:8: error: ", "the command was\n    clang -target bpf", "wrong.bpf.c -o /"]);
    refuse(&with("tp/syscalls/sys_enter_opennat"), &["wrong.bpf.c: the program f: ", "sys_enter_opennat", "sys_enter_openat"]);
    refuse(&with("tp/syscalls/sys_enter_openat nix"), &["the program f: the context has no nix (it has dfd, filename, flags, mode)"]);
    refuse(&with("xdp"), &["the section \"xdp\"", "this is no attach point of rtrace"]);
    refuse(&with("uprobe/libc.so.6:no_such"), &["cannot attach f to uprobe:no_such", "has no function no_such"]);
    refuse(&with("raw_tp/no_such"), &["cannot attach f to raw_tp:no_such"]);
    let unlicensed = with("raw_tp/sys_enter").replace("GPL", "MIT");
    refuse(&unlicensed, &["its license is \"MIT\"", "RTRACE_LICENSE(\"GPL\")"]);
    fails(
        &plain(&machine, &["-e", &program("refused"), "--", "echo", "started"]),
        &[
            "the kernel refuses the program careless: Permission denied; the verifier's log ends with:",
            "R0 invalid mem access 'map_value_or_null'",
        ],
    );
    fails(&plain(&machine, &["-e", "/no/such.bpf.c", "--", "echo", "started"]), &["cannot read /no/such.bpf.c: No such file"]);
}
