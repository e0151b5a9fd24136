//! Numbers of tasks in another pid namespace are of other tasks here: they have no names.

use crate::line;
use crate::machine::Machine;
use crate::needs::unsupported;
use crate::trace::{Trace, start_shell, trace};
use std::process::Command;

/// Its shell is number 1 and its child number 2 there; here they are others, of which 1 and 2 always have names.
const INSIDE: [&str; 6] = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c"];
const SENDS: &str = "sleep 30 & kill -0 1; kill -0 2; kill -TERM 2; wait";

pub fn can_unshare() -> bool {
    let can = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).status().is_ok_and(|status| status.success());
    if !can {
        unsupported("no pid namespace can be made here (unshare)");
    }
    can
}

/// The arguments of all calls of kill, in order.
fn kills(trace: &Trace) -> Vec<String> {
    line::calls(&trace.lines()).into_iter().filter(|(_, call)| call.name == "kill").map(|(_, call)| call.args).collect()
}

#[test]
fn numbers_of_another_pid_namespace_have_no_names() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    for options in [&["-e", "kill"][..], &["-e", "kill,clone,clone3,fork,vfork,wait4,getpid"], &[]] {
        let command = [&INSIDE[..], &[SENDS]].concat();
        let trace = trace(&machine, options, &command).succeeded();
        assert_eq!(kills(&trace), ["pid: 1, sig: 0", "pid: 2, sig: 0", "pid: 2, sig: TERM"], "{options:?}\n{}", trace.text);
        let named = |name: &str| trace.text.lines().find(|line| line.contains(name) && !line.contains("+++")).map(str::to_owned);
        assert_eq!((named("(kthreadd)"), named("1 (systemd)"), named("1 (init)")), (None, None, None), "{options:?}");
        if options.len() > 1 && options[1] != "kill" {
            let lines = trace.lines();
            let returns = |comm: &str| -> Vec<_> {
                let calls = line::calls(&lines).into_iter();
                let made =
                    calls.filter(|(line, call)| line.comm == comm && ["clone", "clone3", "fork", "vfork"].contains(&call.name.as_str()));
                made.map(|(_, call)| call.result).collect()
            };
            assert!(returns("sh").contains(&line::Result::Returned("2".into())), "{options:?}\n{}", trace.text);
        }
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

/// Who was there before is looked at.
#[test]
fn a_process_of_another_pid_namespace_that_was_there_before() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let flag = machine.path("go");
    let script = format!("until [ -e {flag} ]; do sleep 0.05; done; kill -0 2; kill -0 1");
    // It is killed with its value, however this test ends.
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
    assert_eq!(kills.last().map(String::as_str), Some("pid: 1, sig: 0"), "{}", trace.text);
    assert!(kills.iter().all(|args| !args.contains('(')), "{kills:?}");
}
