//! The calls and events that `--filter` lets through: arguments that only some of the traced calls have, and constants
//! by the names that lines print.

use crate::machine::{self, Machine};
use crate::trace::{plain, shell, trace, workload};
use regex::Regex;

/// Returns the calls of a run without time stamp, task and column, and with N in place of process numbers.
fn calls(text: &str) -> Vec<String> {
    let head = Regex::new(r"^.*?\): (?:\S+/\d+ )?").expect("the pattern is right");
    let blanks = Regex::new(r"\) += ").expect("the pattern is right");
    let pids = Regex::new(r"pid: \d+ ").expect("the pattern is right");
    let lines = text.lines().filter(|line| line.contains('(') && line.contains(" = "));
    lines.map(|line| pids.replace_all(&blanks.replace(&head.replace(line, ""), ") = "), "pid: N ").into_owned()).collect()
}

fn traced(machine: &Machine, options: &[&str], command: &[&str]) -> Vec<String> {
    calls(&trace(machine, options, command).succeeded().text)
}

/// A shell line that opens, writes and closes a file; the shell makes no other such calls with these words.
const WRITER: [&str; 3] = ["sh", "-c", "echo hello > /dev/null; echo hi >&2; exec 3< /etc/hostname"];

#[test]
fn a_filter_on_an_argument_of_some_calls_is_about_those() {
    let Some(machine) = Machine::shared() else { return };
    let of = |filter: &str| traced(&machine, &["-e", "write,openat", "--filter", filter], &WRITER);
    let of_writes = of("count > 4");
    assert_eq!(of_writes.len(), 1, "{of_writes:?}");
    assert!(of_writes[0].starts_with("write(fd: 1") && of_writes[0].ends_with("count: 6) = 6"), "{of_writes:?}");
    let of_others = of("!(count > 4)");
    assert!(of_others.iter().any(|call| call.ends_with("count: 3) = 3")), "{of_others:?}");
    assert!(of_others.iter().any(|call| call.starts_with("openat(")), "{of_others:?}");
    assert!(!of_others.iter().any(|call| call.contains("count: 6")), "{of_others:?}");
    let either = of("count == 6 || flags & O_CREAT");
    let names: Vec<&str> = either.iter().map(|call| &call[..call.find('(').expect("a call")]).collect();
    assert_eq!(names, ["openat", "write"], "{either:?}");
}

/// The filter comes before all events, or behind one list. It applies to each call and event by the arguments that it
/// has.
#[test]
fn a_filter_on_a_field_of_some_events_is_about_those() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["--filter", "prev_prio >= 0 || count == 6", "-e", "write,sched:sched_process_exec"];
    let run = trace(&machine, &options, &WRITER);
    assert!(run.stderr.contains("no traced syscall or event has an argument or field `prev_prio`"), "{}", run.stderr);
    let options = ["--filter", "filename ~ \"*/sh\" || count == 6", "-e", "write,sched:sched_process_exec"];
    let run = trace(&machine, &options, &WRITER).succeeded();
    assert!(run.text.contains("sched:sched_process_exec(filename: \"/"), "{}", run.text);
    assert_eq!(run.count("write"), 1, "{}", run.text);
}

#[test]
fn alternatives_apply_where_a_call_has_one_of_two_arguments() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"$rtrace $engine -o - -e openat,fchdir,renameat2,readlink --filter 'oldname ~ "*x*" || filename ~ "*hostname*" || fd == 77' \
        -- sh -c 'exec 3< /etc/hostname; mv /nonexistent/x /nonexistent/y' 2> /dev/null"#;
    let engine = crate::machine::engine_asked_for().map(|engine| format!("engine='--engine {engine}'; ")).unwrap_or_default();
    let run = shell(&machine, &format!("{engine}{script}"));
    let seen = calls(&run.stdout);
    if crate::machine::engine() == "bpf" {
        assert!(seen.iter().any(|call| call.starts_with("openat(dfd: CWD, filename: \"/etc/hostname\"")), "{seen:?}");
        assert!(seen.iter().any(|call| call.starts_with("renameat2(") && call.contains("/nonexistent/x")), "{seen:?}");
        assert_eq!(seen.len(), 2, "{seen:?}");
    }
}

const KILLER: [&str; 3] = ["sh", "-c", "trap : USR1 TERM; kill -USR1 $$; kill -TERM $$; kill -0 $$"];

#[test]
fn constants_have_the_names_that_lines_print() {
    let Some(machine) = Machine::shared() else { return };
    let of = |events: &str, filter: &str, command: &[&str]| traced(&machine, &["-e", events, "--filter", filter], command);
    assert_eq!(of("kill", "sig == USR1", &KILLER), ["kill(pid: N (sh), sig: USR1) = 0"]);
    assert_eq!(of("kill", "sig == SIGTERM && pid > 0", &KILLER), ["kill(pid: N (sh), sig: TERM) = 0"]);
    let children = ["sh", "-c", "(true); (true); wait"];
    let forked = of("clone,clone3,vfork", "clone_flags & CHLD && clone_flags & CHILD_CLEARTID", &children);
    assert!(!forked.is_empty() && forked.iter().all(|call| call.contains("CHLD") && call.contains("CHILD_CLEARTID")), "{forked:?}");
    let missing = ["sh", "-c", "cat /nonexistent/one /etc/hostname; true"];
    for filter in ["ret == ENOENT", "ret == -ENOENT", "errno == ENOENT"] {
        let failed = of("openat", &format!("{filter} && dfd == CWD"), &missing);
        assert!(
            !failed.is_empty() && failed.iter().all(|call| call.contains("dfd: CWD") && call.contains("ENOENT")),
            "{filter}: {failed:?}"
        );
    }
    let reading = of("openat", "flags & RDONLY && ret >= 0", &["sh", "-c", "exec 3> /dev/null 4< /etc/hostname"]);
    assert!(!reading.is_empty() && !reading.iter().any(|call| call.contains("WRONLY")), "{reading:?}");
    let asked = of("ioctl", "cmd == TCGETS", &["sh", "-c", "test -t 1; test -t 0; true"]);
    assert!(!asked.is_empty() && asked.iter().all(|call| call.contains("cmd: TCGETS")), "{asked:?}");
}

#[test]
fn constants_of_event_fields_have_names() {
    let Some(machine) = Machine::shared() else { return };
    let signals = trace(&machine, &["-e", "signal:signal_generate", "--filter", "sig == USR1"], &KILLER).succeeded();
    let lines: Vec<&str> = signals.text.lines().filter(|line| line.contains("signal:signal_generate(")).collect();
    assert!(lines.len() == 1 && lines[0].contains("sig: USR1"), "{}", signals.text);
    let options = ["-e", "sched:sched_switch", "--filter", "prev_state == S"];
    let sleeping = trace(&machine, &options, &["sleep", "0.05"]).succeeded();
    let lines: Vec<&str> = sleeping.text.lines().filter(|line| line.contains("sched:sched_switch(")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("prev_state: S,")), "{}", sleeping.text);
}

#[test]
fn an_unknown_argument_or_constant_is_refused_with_similar_names() {
    let Some(machine) = Machine::shared() else { return };
    for (options, sentence) in [
        (
            ["-e", "write,openat", "--filter", "cuont > 1"],
            "rtrace: --filter 'cuont > 1': no traced syscall or event has an argument or field `cuont`; similar: count\n",
        ),
        (
            ["-e", "kill", "--filter", "sig == USR11"],
            "rtrace: --filter 'sig == USR11': `USR11` is not a known value of sig; similar: USR1\n",
        ),
        (
            ["-e", "openat", "--filter", "flags & CREATE"],
            "rtrace: --filter 'flags & CREATE': `CREATE` is not a known value of flags; similar: CREAT\n",
        ),
        (
            ["-e", "read", "--filter", "ret == ENOENTT"],
            "rtrace: --filter 'ret == ENOENTT': `ENOENTT` is not a known value of ret; similar: ENOENT, ENONET\n",
        ),
        (
            ["-e", "read,write", "--filter", "fd == \"x\""],
            "rtrace: --filter 'fd == \"x\"': fd is a number and cannot be compared with a string\n",
        ),
    ] {
        let run = plain(&machine, &[&options[..], &["--", "echo", "started"]].concat());
        assert_eq!((run.status, run.stderr.as_str(), run.stdout.as_str()), (125, sentence, ""));
    }
}

/// The type of an argument may depend on another argument, and the type decides how many bits of the register count.
#[test]
fn filters_compare_arguments_as_lines_show_them() {
    let Some(machine) = Machine::shared() else { return };
    let shown = |filter: &str| {
        let options = ["-e", "fcntl,openat,mkdirat,fsconfig", "--filter", filter];
        calls(&workload(&machine, &options, "meanings").succeeded().text)
    };
    for (filter, line) in [
        ("arg == -1", "fcntl(fd: -1, cmd: SETOWN, arg: -1) = -1 EBADF"),
        ("arg == 7", "fcntl(fd: -1, cmd: DUPFD, arg: 7) = -1 EBADF"),
        ("mode == 0641", "flags: RDONLY|CREAT|EXCL, mode: 0641) = -1 ENOENT"),
        ("mode == 0712", "mode: 0712) = -1 ENOENT"),
        ("aux == 5", "aux: 5) = -1 E"),
    ] {
        let lines = shown(filter);
        assert!(matches!(&lines[..], [one] if one.contains(line)), "{filter}: {lines:?}");
    }
    if machine::engine() == "bpf" {
        let lines = shown("_value ~ \"a-*\"");
        assert!(
            matches!(&lines[..], [one] if one.starts_with("fsconfig(fd: -1, cmd: SET_STRING, _key: \"key\", _value: \"a-value\")")),
            "{lines:?}"
        );
    }
}
