//! Pids of another pid namespace belong to other tasks here, so they are translated, or shown without names.

use crate::line;
use crate::machine::{self, Machine};
use crate::needs::unsupported;
use crate::trace::{Trace, start_shell, trace};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The shell has pid 1 and its child pid 2 in the namespace. Outside, pids 1 and 2 are other tasks, which always have
/// names.
const INSIDE: [&str; 6] = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c"];
const SENDS: &str = "sleep 30 & kill -0 1; kill -0 2; kill -TERM 2; wait";

pub fn can_unshare() -> bool {
    let can = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).status().is_ok_and(|status| status.success());
    if !can {
        unsupported("no pid namespace can be made here (unshare)");
    }
    can
}

/// Returns the arguments of all calls of kill, in order.
fn kills(trace: &Trace) -> Vec<String> {
    line::calls(&trace.lines()).into_iter().filter(|(_, call)| call.name == "kill").map(|(_, call)| call.args).collect()
}

/// Returns the tids of the tasks that have lines, as rtrace sees them.
fn tids(trace: &Trace) -> Vec<i32> {
    trace.lines().iter().map(|line| line.tid).collect()
}

/// Splits an argument or a return into the number in the call and rtrace's own number for the same task.
fn translated(text: &str) -> Option<(i32, i32)> {
    let (number, task) = text.split_once(' ')?;
    let (_, here) = task.strip_prefix('(')?.strip_suffix(')')?.rsplit_once("here ")?;
    Some((number.parse().ok()?, here.parse().ok()?))
}

/// The shell and the programs that it starts are traced. With BPF, the task behind every number is known; without, only
/// the children of the caller are.
#[test]
fn numbers_of_another_pid_namespace_are_translated_at_the_call() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let is_bpf = machine::engine() == "bpf";
    for options in [&["-e", "kill,clone,clone3,fork,vfork,wait4,getpid"][..], &[]] {
        let command = [&INSIDE[..], &[SENDS]].concat();
        let trace = trace(&machine, options, &command).succeeded();
        let tids = tids(&trace);
        let kills = kills(&trace);
        let firsts: Vec<_> = kills.iter().map(|args| args.split_once(", sig: ").expect("two arguments").0.replace("pid: ", "")).collect();
        let [shell, child, again] = &firsts[..] else { panic!("{kills:?}\n{}", trace.text) };
        match translated(shell) {
            Some((1, here)) if is_bpf => assert!(tids.contains(&here) && shell.contains("(sh, "), "{shell}\n{}", trace.text),
            other => assert_eq!((other, is_bpf, shell.as_str()), (None, false, "1"), "{}", trace.text),
        }
        for child in [child, again] {
            let (number, here) = translated(child).unwrap_or_else(|| panic!("{child}\n{}", trace.text));
            assert_eq!(number, 2, "{}", trace.text);
            assert!(tids.contains(&here), "{here}\n{}", trace.text);
        }
        let lines = trace.lines();
        let returned = |names: &[&str]| -> Vec<_> {
            let calls = line::calls(&lines).into_iter().filter(|(line, call)| line.comm == "sh" && names.contains(&call.name.as_str()));
            calls.filter_map(|(_, call)| if let line::Result::Returned(text) = call.result { translated(&text) } else { None }).collect()
        };
        let here = translated(again).expect("it was").1;
        assert_eq!(returned(&["clone", "clone3", "fork", "vfork"]), [(2, here)], "{}", trace.text);
        assert_eq!(returned(&["wait4"]), [(2, here)], "the child is gone by then\n{}", trace.text);
        let named = |name: &str| trace.text.lines().find(|line| line.contains(name) && !line.contains("+++")).map(str::to_owned);
        assert_eq!((named("(kthreadd"), named("1 (systemd"), named("1 (init")), (None, None, None), "{options:?}");
    }
}

/// The task behind the number is not traced, so the stream knows only the caller.
#[test]
fn a_task_that_nobody_follows_is_named_where_the_kernel_can_be_asked() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let trace =
        trace(&machine, &["-e", "kill"], &[&INSIDE[..], &["kill -0 1; unshare --pid --fork sh -c 'kill -0 1; kill -0 2'"]].concat());
    let kills = kills(&trace);
    if machine::engine() == "bpf" {
        let tasks: Vec<_> =
            kills.iter().map(|args| translated(args.split_once(", sig: ").expect("two").0.trim_start_matches("pid: "))).collect();
        let [Some((1, outer)), Some((1, inner)), None] = tasks[..] else { panic!("{}", trace.text) };
        assert_ne!(outer, inner, "the same number is another task's in each namespace\n{}", trace.text);
    } else {
        assert!(kills.iter().all(|args| !args.contains('(')), "{kills:?}");
    }
}

#[test]
fn numbers_of_the_same_pid_namespace_have_their_names() {
    let Some(machine) = Machine::shared() else { return };
    let script = "sleep 30 & kill -TERM $!; wait $!; sh -c 'kill -0 $PPID; :'";
    let trace = trace(&machine, &[], &["sh", "-c", script]);
    let kills = kills(&trace);
    assert_eq!(kills.len(), 2, "{}", trace.text);
    assert!(kills[0].ends_with(" (sh), sig: TERM") || kills[0].ends_with(" (sleep), sig: TERM"), "{kills:?}");
    assert!(kills[1].contains(" (sh"), "a child's child: {kills:?}");
}

/// Tasks that existed before the trace are read from /proc.
#[test]
fn a_process_of_another_pid_namespace_that_was_there_before() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let flag = machine.path("go");
    let script = format!("until [ -e {flag} ]; do sleep 0.05; done; kill -0 2; kill -0 1");
    // Dropping the value kills the process, however this test ends.
    let outside = start_shell(&machine, &format!("exec {} '{script}'", INSIDE.join(" ")));
    let unshare = outside.pid().as_raw_nonzero();
    let shell = loop {
        let children = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap_or_default();
        if let Some(shell) = children.split_whitespace().next() {
            break shell.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let mut run = crate::trace::start(&machine, &["-p", &shell, "-e", "kill,wait4,clone,vfork"], &[]);
    run.wait_for("a line", |lines| !lines.is_empty());
    std::fs::write(&flag, "").expect("the test's directory is writable");
    outside.finish();
    let trace = run.finish();
    let kills = kills(&trace);
    let last = kills.last().expect("the last kill was awaited");
    if machine::engine() == "bpf" {
        assert_eq!(last, &format!("pid: 1 (sh, here {shell}), sig: 0"), "{}", trace.text);
    } else {
        assert_eq!(last, "pid: 1, sig: 0", "{}", trace.text);
        assert!(kills.iter().all(|args| !args.contains('(')), "{kills:?}");
    }
}

/// The files that such a process creates have another owner than the one that the call names.
#[test]
fn users_of_another_user_namespace_are_translated_at_the_call() {
    let Some(machine) = Machine::shared() else { return };
    let inside = ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups", "unshare", "--user", "--map-root-user", "sh", "-c"];
    if !Command::new(inside[0]).args(&inside[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        return unsupported("no user namespace can be made here (unshare)");
    }
    // The file belongs to root, so that none of these calls succeeds.
    let file = machine.file("owned", 1);
    std::fs::set_permissions(machine.dir(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let command = [&inside[..], &["chown 0:0 $0; chown 1:1 $0; id -u; id -g", &file]].concat();
    let trace = trace(&machine, &["-e", "fchownat,chown,getuid,geteuid,getgid,getegid"], &command);
    let lines = trace.lines();
    let calls: Vec<_> = line::calls(&lines).into_iter().filter(|(line, _)| ["chown", "id"].contains(&line.comm.as_str())).collect();
    let is_bpf = machine::engine() == "bpf";
    let [user, group] = if is_bpf { ["0 (here 65534)", "0 (here 65533)"] } else { ["0", "0"] };
    // The namespace has no user ID 1.
    let owners = [format!("user: {user}, group: {group})"), "user: 1, group: 1)".to_owned()];
    let changes: Vec<_> = trace.text.lines().filter(|line| line.contains("chown(") || line.contains("fchownat(")).collect();
    assert!(changes.len() == 2 && changes.iter().zip(&owners).all(|(line, owner)| line.contains(owner)), "{}", trace.text);
    for (names, number) in [(["getuid", "geteuid"], user), (["getgid", "getegid"], group)] {
        let returned: Vec<_> = calls.iter().filter(|(_, call)| names.contains(&call.name.as_str())).map(|(_, call)| &call.result).collect();
        assert!(
            !returned.is_empty() && returned.iter().all(|result| **result == line::Result::Returned(number.to_owned())),
            "{returned:?}"
        );
    }
}
