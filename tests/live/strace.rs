//! The command line of strace and the lines of its style, as a user types and reads them. `tests/strace/run` compares
//! the lines with those of strace itself.

use crate::machine::{self, Machine};
use crate::trace::{Trace, plain, shell, shell_with_engine};
use regex::Regex;

/// Runs `rtrace strace` with these words.
fn strace(machine: &Machine, words: &[&str]) -> Trace {
    let engine = machine::engine_asked_for();
    let engine: Vec<&str> = engine.iter().flat_map(|engine| ["--engine", engine]).collect();
    plain(machine, &[&["strace"], &engine[..], words].concat())
}

/// Returns the lines on stderr that match no pattern, and the patterns that match no line.
fn unmatched<'t>(trace: &'t Trace, patterns: &[&'t str]) -> Vec<&'t str> {
    let all: Vec<Regex> = patterns.iter().map(|pattern| Regex::new(&format!("^{pattern}$")).expect("it is one")).collect();
    let lines: Vec<&str> = trace.stderr.lines().collect();
    let more = lines.iter().filter(|line| !all.iter().any(|one| one.is_match(line))).copied();
    let missing = patterns.iter().zip(&all).filter(|(_, one)| !lines.iter().any(|line| one.is_match(line))).map(|(text, _)| *text);
    more.chain(missing).collect()
}

#[test]
fn lines_are_those_of_strace() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let file = machine.file("strace-eleven", 11);
    let trace = plain(&machine, &["strace", "--engine", "bpf", "-e", "trace=openat,read,close", "-P", &file, "head", "-n", "5", &file]);
    assert_eq!(trace.status, 0);
    let opened = format!(r#"openat\(AT_FDCWD, "{file}", O_RDONLY\) = 3"#);
    let patterns =
        [&*opened, r#"read\(3, ".{11}", \d+\) += 11"#, r#"read\(3, "", \d+\) += 0"#, r"close\(3\) {32}= 0", r"\+\+\+ exited with 0 \+\+\+"];
    assert_eq!(unmatched(&trace, &patterns), [""; 0], "{}", trace.stderr);
}

#[test]
fn a_link_of_the_name_strace_takes_its_command_line() {
    let Some(machine) = Machine::shared() else { return };
    let run = shell(
        &machine,
        r#"ln -sf "$rtrace" "$dir/strace" && "$dir/strace" -qq -o "$dir/strace.log" -e getpgid true && cat "$dir/strace.log""#,
    );
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    let version = shell(&machine, r#""$dir/strace" -V"#);
    assert!(version.stdout.starts_with("strace -- version 7.2\nThis is rtrace "), "{}", version.stdout);
}

#[test]
fn tasks_have_numbers_where_strace_prints_them() {
    let Some(machine) = Machine::shared() else { return };
    let script = "true; sh -c :";
    let alone = strace(&machine, &["-e", "trace=wait4", "sh", "-c", script]);
    assert!(
        alone.stderr.lines().all(|line| ["wait4(", "--- SIGCHLD", "+++ exited"].iter().any(|begin| line.starts_with(begin))),
        "{}",
        alone.stderr
    );
    let followed = strace(&machine, &["-f", "-e", "trace=execve", "sh", "-c", script]);
    assert!(followed.stderr.contains("\n[pid ") && followed.stderr.contains("strace: Process "), "{}", followed.stderr);
    let log = machine.path("strace-f.log");
    assert_eq!(strace(&machine, &["-f", "-o", &log, "-e", "trace=execve", "sh", "-c", script]).status, 0);
    let text = std::fs::read_to_string(&log).expect("the log exists");
    let line = Regex::new(r"^\d+ +(execve\(|--- SIG|\+\+\+ exited)").expect("it is one");
    assert!(text.lines().count() >= 5 && text.lines().all(|one| line.is_match(one)), "{text}");
}

#[test]
fn stamps_and_durations_have_the_form_of_strace() {
    let Some(machine) = Machine::shared() else { return };
    for (option, stamp) in
        [("-t", r"\d\d:\d\d:\d\d"), ("-tt", r"\d\d:\d\d:\d\d\.\d{6}"), ("-ttt", r"\d{10}\.\d{6}"), ("-r", r" +\d\.\d{6}")]
    {
        let trace = strace(&machine, &["-qq", option, "-T", "-e", "trace=execve", "true"]);
        let line = format!(r#"{stamp} execve\("\S+true", \["true"\], 0x[0-9a-f]+ /\* \d+ vars \*/\) = 0 <0\.\d{{6}}>"#);
        // Without BPF, arguments in memory are addresses.
        let plain = format!(r#"{stamp} execve\("\S+true", 0x[0-9a-f]+, 0x[0-9a-f]+\) = 0 <0\.\d{{6}}>"#);
        let line = if machine::engine() == "bpf" { line } else { plain };
        assert_eq!(unmatched(&trace, &[&line]), [""; 0], "{}", trace.stderr);
    }
}

#[test]
fn a_call_that_takes_long_has_two_lines() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = plain(
        &machine,
        &["strace", "--engine", "bpf", "-f", "-o", "|cat", "-e", "trace=read", "sh", "-c", "(sleep 2; echo late) | cat >&2"],
    );
    let begin = trace.stdout.find(" read(0 <unfinished ...>\n").unwrap_or_else(|| panic!("{}", trace.stdout));
    let end = trace.stdout.find(r#" <... read resumed>, "late\n", 131072)"#).unwrap_or_else(|| panic!("{}", trace.stdout));
    assert!(begin < end);
}

/// The line begins while the process waits, and goes on when the call returns.
#[test]
fn the_call_in_which_a_process_waits_is_shown_at_once() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        mkfifo $dir/in; cat <$dir/in >/dev/null & reader=$!; exec 3>$dir/in; sleep .5
        until_said() { until grep -q "$1" $dir/log; do sleep .05; done; }
        $rtrace strace $engine -o "|cat >$dir/log" -p $reader & tracer=$!
        until_said 'read(0$'; wc -l <$dir/log
        echo hi >&3; until_said 'write(1.*= 3$'; until_said '^read(0$'; kill -TERM $tracer; wait $tracer; kill $reader; cat $dir/log
    "#;
    let run = shell_with_engine(&machine, script);
    let pattern = r"^0\nread\(0, 0x[0-9a-f]+, 131072\) += 3\nwrite\(1, \S+, 3\) += 3\nread\(0 <detached \.\.\.>\n$";
    assert!(Regex::new(pattern).expect("it is one").is_match(&run.stdout), "{}\n{}", run.stdout, run.stderr);
}

#[test]
fn other_tasks_of_a_process_are_traced_if_they_are_followed() {
    let Some(machine) = Machine::shared() else { return };
    let traced = |option: &str| {
        let script = format!(
            "while :; do /bin/true; sleep .05; done & looping=$!; timeout -s TERM 1 $rtrace strace $engine {option} -o $dir/log -p $looping; \
             kill $looping; cat $dir/log"
        );
        shell_with_engine(&machine, &script).stdout
    };
    let (one, all) = (traced("-e trace=wait4,execve"), traced("-f -e trace=wait4,execve"));
    assert!(one.contains("wait4(") && !one.contains("execve("), "{one}");
    assert!(all.contains("wait4(") && all.contains("execve("), "{all}");
}

#[test]
fn a_call_that_another_line_interrupts_has_two_lines_in_the_order_of_moments() {
    let Some(machine) = Machine::shared() else { return };
    let log = machine.path("strace-moments.log");
    assert_eq!(strace(&machine, &["-f", "-o", &log, "-e", "trace=wait4", "sh", "-c", "/bin/sleep 0.05; :"]).status, 0);
    let text = std::fs::read_to_string(&log).expect("the log exists");
    let places =
        [" wait4(-1 <unfinished ...>\n", " +++ exited with 0 +++\n", " <... wait4 resumed>", " --- SIGCHLD "].map(|part| text.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {text}");
}

#[test]
fn a_process_is_followed_until_it_executes_a_program_on_request() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = "/bin/cat /dev/null; exit 3";
    let trace = plain(&machine, &["strace", "--engine", "bpf", "-f", "-b", "execve", "-e", "trace=openat,execve", "sh", "-c", script]);
    let child = Regex::new(
        r#"\n\[pid +\d+\] execve\("/bin/cat", \["/bin/cat", "/dev/null"\], 0x[0-9a-f]+ /\* \d+ vars \*/strace: Process \d+ detached\n <detached \.\.\.>\n--- SIGCHLD"#,
    );
    assert!(child.expect("it is one").is_match(&trace.stderr), "{}", trace.stderr);
    assert!(trace.status == 3 && !trace.stderr.contains("/dev/null\", O_RDONLY"), "{}", trace.stderr);
    let others = plain(&machine, &["strace", "--engine", "bpf", "-f", "-b", "execve", "-e", "trace=openat", "sh", "-c", script]);
    assert!(others.stderr.contains(" detached\n") && !others.stderr.contains("execve("), "{}", others.stderr);
}

#[test]
fn calls_of_one_personality_are_traced_on_request() {
    // Tracepoints do not tell which calls a 64-bit program makes by int 0x80.
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let calls = |set: &str| {
        let trace =
            plain(&machine, &["strace", "--engine", "bpf", "-qq", "-e", &format!("trace={set}"), &machine::workload(), "int80", "3"]);
        trace.stderr.lines().filter(|line| line.starts_with("getppid()")).count()
    };
    assert_eq!([calls("getppid@32"), calls("getppid@64"), calls("!getppid@64"), calls("!getppid@32")], [3, 0, 3, 0]);
}

#[test]
fn signals_are_complete_if_no_call_is_traced() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = plain(&machine, &["strace", "--engine", "bpf", "-e", "none", "sh", "-c", "trap : USR1; kill -USR1 $$"]);
    let signal = r"--- SIGUSR1 \{si_signo=SIGUSR1, si_code=SI_USER, si_pid=\d+, si_uid=\d+\} ---";
    assert_eq!(unmatched(&trace, &[signal, r"\+\+\+ exited with 0 \+\+\+"]), [""; 0], "{}", trace.stderr);
}

#[test]
fn a_wrong_command_line_is_answered_in_the_words_of_strace() {
    let Some(machine) = Machine::shared() else { return };
    for (words, said) in [
        (&["-e", "bogus", "true"][..], "strace: invalid system call 'bogus'"),
        (&["-Q", "true"], "strace: invalid option -- 'Q'"),
        (&[], "strace: must have PROG [ARGS] or -p PID"),
    ] {
        let run = plain(&machine, &[&["strace"], words].concat());
        assert_eq!((run.status, run.stderr.lines().next()), (1, Some(said)), "{}", run.stderr);
    }
    let run = plain(&machine, &["strace", "--secontext", "true"]);
    assert!(run.status == 1 && run.stderr.contains("is not supported"), "{}", run.stderr);
}

#[test]
fn the_summary_has_the_columns_of_strace() {
    let Some(machine) = Machine::shared() else { return };
    let run = strace(&machine, &["-c", "-S", "calls", "-e", "trace=getppid,execve", &machine::workload(), "int80", "1"]);
    assert_eq!(run.status, 0);
    let row = r" *\d+\.\d\d +\d+\.\d{6} +\d+ +\d+ +\d* ";
    let rule = "------ ----------- ----------- --------- --------- ----------------";
    let patterns = [
        "% time     seconds  usecs/call     calls    errors syscall",
        rule,
        &format!("{row}(getppid|execve)"),
        r"100\.00 +\d+\.\d{6} +\d+ +\d+ +\d* total",
    ];
    assert_eq!(unmatched(&run, &patterns), [""; 0], "{}", run.stderr);
}

#[test]
fn descriptors_and_the_current_directory_have_paths_on_request() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let file = machine.file("strace-here", 11);
    let (directory, name) = file.rsplit_once('/').expect("it is absolute");
    let script = format!("cd {directory} && read line < {name}");
    let trace = plain(&machine, &["strace", "--engine", "bpf", "-y", "-e", "trace=openat,read", "sh", "-c", &script]);
    let opened = format!("openat(AT_FDCWD<{directory}>, \"{name}\", O_RDONLY) = 3<{file}>\n");
    assert!(trace.stderr.contains(&opened), "{}\nand not {opened}", trace.stderr);
    assert!(trace.stderr.contains(&format!("read(0<{file}>, \"")), "{}", trace.stderr);
}

#[test]
fn constants_and_arguments_are_numbers_on_request() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let file = machine.file("strace-numbers", 11);
    let opened = |words: &[&str]| {
        let words = [&["strace", "--engine", "bpf", "-qq", "-e", "trace=openat", "-P", &file], words, &["head", "-n", "1", &file]];
        plain(&machine, &words.concat()).stderr
    };
    assert_eq!(opened(&["-X", "raw"]), format!("openat(-100, \"{file}\", 0) = 3\n"));
    assert_eq!(opened(&["-X", "verbose"]), format!("openat(-100 /* AT_FDCWD */, \"{file}\", 0 /* O_RDONLY */) = 3\n"));
    let raw = Regex::new(r"^openat\(0xffffff9c, 0x[0-9a-f]+, 0, 0\) = 0x3\n$").expect("it is one");
    assert!(raw.is_match(&opened(&["-e", "raw=openat"])), "{}", opened(&["-e", "raw=openat"]));
    assert_eq!(opened(&["-N"]), format!("openat(dfd=AT_FDCWD, filename=\"{file}\", flags=O_RDONLY) = 3\n"));
}

#[test]
fn data_is_dumped_below_the_line() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let words =
        ["strace", "--engine", "bpf", "-qq", "-e", "write=1", "-e", "trace=write", "-o", "|cat >&2", "echo", "-n", "eighteen letters 1"];
    assert_eq!(
        plain(&machine, &words).stderr,
        "write(1, \"eighteen letters 1\", 18)      = 18\n \
         | 00000  65 69 67 68 74 65 65 6e  20 6c 65 74 74 65 72 73  eighteen letters |\n \
         | 00010  20 31                                              1               |\n"
    );
}

#[test]
fn the_end_of_the_command_is_that_of_strace() {
    let Some(machine) = Machine::shared() else { return };
    let run = shell(&machine, r#""$rtrace" strace -qq -e none sh -c 'kill -TERM $$' & wait $!; echo $?"#);
    assert_eq!(run.stdout.trim(), "143");
    let missing = strace(&machine, &["/nonexistent/program"]);
    assert_eq!(missing.status, 1);
    assert!(missing.stderr.starts_with("strace: Cannot stat '/nonexistent/program': No such file or directory\n"), "{}", missing.stderr);
}
