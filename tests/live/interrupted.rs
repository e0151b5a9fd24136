//! rtrace ends on request even if another process blocks it, and reports the calls that it did not print.
//!
//! Each script starts rtrace in the background, waits until it is blocked, requests its end, and waits for that. A test
//! that hangs fails (`trace.rs`).

use crate::line;
use crate::machine::Machine;
use crate::needs::unsupported;
use crate::trace::{Trace, Verdict, shell_with_engine, start_on_a_terminal};
use rustix::process::{Signal, kill_process};

/// A command that causes more lines than a pipe or a terminal holds.
const MANY: &str = "$workload calls lseek 1 20000";

/// Runs a script with two functions: `said` waits until a file contains a text, and then until all threads of a process
/// sleep; `ends` sends signals to the process and prints its status.
fn run(machine: &Machine, script: &str) -> Trace {
    let helpers = r#"
        exec 2>$dir/stderr
        asleep() { for n in 1 2 3; do while grep -qs '^State:.R' /proc/$1/task/*/status; do sleep .05; done; sleep .1; done; }
        said() { until grep -qs "$2" $1 || ! kill -0 $3; do sleep .05; done; asleep $3; }
        ends() { pid=$1; shift; for signal; do kill -$signal $pid; sleep .05; done; wait $pid; echo "status $?"; }
    "#;
    let done = shell_with_engine(machine, &format!("{helpers}{script}"));
    Trace { stderr: std::fs::read_to_string(machine.path("stderr")).unwrap_or_default(), ..done }
}

#[test]
fn a_fifo_without_a_reader_does_not_block_rtrace() {
    let Some(machine) = Machine::shared() else { return };
    for option in ["-o", "--folded", "--flamegraph"] {
        let script = format!("mkfifo $dir/fifo; $rtrace $engine {option} $dir/fifo true & asleep $!; ends $! TERM; rm $dir/fifo");
        let run = run(&machine, &script);
        let dir = machine.dir().display();
        let wanted = format!("rtrace: cannot write to {dir}/fifo: it has no reader, and rtrace was asked to end\n");
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("status 125\n", wanted.as_str()), "{option}");
    }
}

/// The lines that were written are complete, and the others are counted.
#[test]
fn a_stopped_reader_does_not_block_the_end() {
    let Some(machine) = Machine::shared() else { return };
    for signals in ["TERM", "HUP TERM", "HUP", "TERM TERM TERM"] {
        let script = format!(
            r#"rm -f $dir/out; mkfifo $dir/fifo; sleep 1000 <$dir/fifo & reader=$!
            $rtrace -v $engine -e lseek -o $dir/fifo {MANY} >$dir/out & said $dir/out issued $!; ends $! {signals}
            kill $reader; rm $dir/fifo"#
        );
        let run = run(&machine, &script);
        let verdict = run.verdict();
        assert_eq!(run.stdout, "status 0\n", "the command's own: {}", run.stderr);
        assert!(run.stderr.contains("rtrace: the output has not been read any further, and rtrace was asked to end\n"), "{}", run.stderr);
        assert!(verdict.adds_up() && verdict.issued == 20_000 && verdict.given_up > 0, "{signals}: {verdict:?}\n{}", run.stderr);
    }
}

/// Nothing else would say that rtrace runs, and until when.
#[test]
fn a_silent_trace_of_the_whole_machine_says_how_it_is_ended() {
    let Some(machine) = Machine::shared() else { return };
    let recorded = "rtrace: all tasks are recorded; Ctrl-C ends the recording\n";
    let counted = "rtrace: all tasks are counted; Ctrl-C ends the trace and prints the table\n";
    for (words, remark) in [("record -e acct -o $dir/data", recorded), ("-s -e acct -o $dir/table", counted)] {
        let run = run(&machine, &format!("$rtrace {words} $engine & said $dir/stderr 'all tasks are' $!; ends $! TERM"));
        assert!(run.stdout == "status 0\n" && run.stderr.contains(remark), "{words}: {run:?}");
        let limited = shell_with_engine(&machine, &format!("$rtrace {words} -a $engine true"));
        assert!(!limited.stderr.contains("all tasks"), "{words}: {}", limited.stderr);
    }
}

#[test]
fn a_full_stderr_does_not_block_the_end() {
    let Some(machine) = Machine::shared() else { return };
    let script = format!(
        r#"mkfifo $dir/fifo; sleep 1000 <$dir/fifo & reader=$!
        $rtrace -v $engine -e lseek {MANY} 2>$dir/fifo >$dir/out & said $dir/out issued $!; ends $! TERM; kill $reader; rm $dir/fifo"#
    );
    assert_eq!(run(&machine, &script).stdout, "status 0\n");
}

#[test]
fn a_stopped_terminal_does_not_block_the_end() {
    let Some(machine) = Machine::shared() else { return };
    let command = format!("exec $rtrace -e lseek -o /dev/tty {MANY} >$dir/out");
    let (run, terminal) = start_on_a_terminal(&machine, &["-e", "!*"], &["sh", "-c", &command]);
    let ended = || std::fs::read_to_string(machine.path("out")).is_ok_and(|out| out.contains("issued lseek"));
    while !ended() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.pid().as_raw_nonzero())).expect("it runs");
    let inner = children.split_whitespace().filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?));
    inner.for_each(|pid| kill_process(pid, Signal::TERM).expect("it runs"));
    assert_eq!(run.finish().status, 0);
    drop(terminal);
}

#[test]
fn an_output_command_that_does_not_read_does_not_block_the_end() {
    let Some(machine) = Machine::shared() else { return };
    let script = "$rtrace $engine -o '|echo $$ >$dir/reader; exec sleep 1000' echo over >$dir/out & said $dir/out over $!; ends $! TERM; kill $(cat $dir/reader)";
    let run = run(&machine, script);
    assert_eq!(run.stdout, "status 0\n", "{}", run.stderr);
}

/// `head` reads the first lines and ends, so the pipe has no reader any more.
#[test]
fn unwritten_calls_are_counted_as_given_up() {
    let Some(machine) = Machine::shared() else { return };
    let run = run(&machine, &format!("$rtrace -v --strict $engine -e lseek -o '|head -n 5' {MANY} >$dir/out; echo status $?"));
    let verdict = run.verdict();
    assert_eq!(run.stdout, "status 124\n");
    let read = std::fs::read_to_string(machine.path("out")).expect("it is written");
    let first = line::calls(&line::parse(&read)).len();
    assert!(first == 5 && verdict.printed >= 5 && verdict.given_up > 0 && verdict.adds_up(), "{verdict:?}\n{}", run.stderr);
}

#[test]
fn a_full_disk_is_reported_by_the_verdict() {
    let Some(machine) = Machine::shared() else { return };
    let script = format!(
        r#"unshare -m sh -c 'mount -t tmpfs -o size=64k none $dir && $rtrace -v $engine -e lseek -o $dir/lines {MANY} >/dev/null; echo status $?; cat $dir/lines'"#
    );
    let run = run(&machine, &script);
    let dir = machine.dir().display();
    assert!(run.stderr.contains(&format!("rtrace: cannot write to {dir}/lines: No space left on device")), "{}", run.stderr);
    assert!(run.stdout.starts_with("status 125\n"), "{}", run.stdout);
    // The last line may be cut off, because the disk was full.
    let whole: String = run.stdout.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
    let Verdict { printed, given_up, .. } = run.verdict();
    assert!(run.verdict().adds_up() && given_up > 0, "{}", run.stderr);
    assert_eq!(line::calls(&line::parse(&whole)).len() as u64, printed);
}

#[test]
fn a_command_that_ignores_the_signal_continues() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"$rtrace $engine -e execve -o $dir/lines sh -c 'trap "" TERM; echo $$ >$dir/pid; while :; do sleep 1; done' &
        until [ -s $dir/pid ]; do sleep .05; done; ends $! TERM; kill -0 $(cat $dir/pid) && echo alive; kill -KILL $(cat $dir/pid)"#;
    let run = run(&machine, script);
    assert_eq!(run.stdout, "status 143\nalive\n", "{}", run.stderr);
    let said = "has not ended within a second after SIGTERM was forwarded to it; it continues untraced\n";
    assert!(run.stderr.starts_with("rtrace: the command (pid ") && run.stderr.ends_with(said), "{}", run.stderr);
}

/// `--max-events` is reached, and the command continues.
#[test]
fn a_command_that_continues_untraced_gets_the_signal() {
    let Some(machine) = Machine::shared() else { return };
    let script =
        "$rtrace $engine --max-events 1 -o $dir/lines sleep 1000 & until [ -s $dir/lines ]; do sleep .05; done; asleep $!; ends $! TERM";
    assert_eq!(run(&machine, script).stdout, "status 143\n");
}

#[test]
fn a_debuginfod_server_that_does_not_answer_does_not_block_the_end() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"printf '#!/bin/sh\necho $$ >%s/asked\nexec sleep 1000\n' $dir >$dir/debuginfod-find; chmod +x $dir/debuginfod-find
        PATH=$dir:$PATH DEBUGINFOD_URLS=http://localhost $rtrace $engine --call-graph dwarf --resolve-at-end -e write -o $dir/lines echo out >$dir/out &
        said $dir/asked . $!; ends $! TERM"#;
    let run = run(&machine, script);
    assert_eq!(run.stdout, "status 0\n", "{}", run.stderr);
    if !std::fs::exists(machine.path("asked")).unwrap_or_default() {
        return unsupported("all symbols are here, so nobody is asked for any");
    }
    let lines = std::fs::read_to_string(machine.path("lines")).expect("it is written");
    assert!(lines.contains(" write("), "{lines}");
}

#[test]
fn a_configuration_fifo_without_a_writer_does_not_block_rtrace() {
    let Some(machine) = Machine::shared() else { return };
    let script = "mkdir $dir/config $dir/config/rtrace; mkfifo $dir/config/rtrace/config.toml
        XDG_CONFIG_HOME=$dir/config $rtrace true & asleep $!; ends $! TERM";
    let run = run(&machine, script);
    assert!(["status 143\n", "status 125\n"].contains(&run.stdout.as_str()), "{}{}", run.stdout, run.stderr);
}

/// A shell without job control starts background commands with SIGINT ignored, and nohup(1) starts its command with
/// SIGHUP ignored.
#[test]
fn a_signal_that_the_caller_ignores_does_not_end_the_trace() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"nohup $rtrace $engine -e execve -o $dir/lines sh -c 'echo up; sleep 1; echo over' >$dir/out & said $dir/out up $!; ends $! HUP INT; cat $dir/out"#;
    let run = run(&machine, script);
    assert_eq!(run.stdout, "status 0\nup\nover\n", "{}", run.stderr);
}
