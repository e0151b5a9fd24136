//! Requests of io_uring. The program prints what it submitted and which completions it got.

use crate::line::{self, Result};
use crate::machine::Machine;
use crate::trace::{Trace, overrun, workload};
use regex::Regex;

fn engines() -> impl Iterator<Item = (Machine, &'static str)> {
    let machines = [(Machine::shared(), "tracepoint"), (Machine::shared_with_bpf(), "bpf")];
    machines.into_iter().filter_map(|(machine, engine)| Some((machine?, engine)))
}

/// Runs a scene of `workload uring` with these options.
fn scene(machine: &Machine, engine: &str, scene: &str, more: &[&str]) -> Trace {
    let file = machine.file("eleven", 11);
    let options = [&["--engine", engine][..], more].concat();
    workload(machine, &options, &format!("uring {scene} {file}")).succeeded()
}

/// Returns the requests in the lines: `NAME(ARGUMENTS) = RESULT`, without the texts of errors; or `NAME(ARGUMENTS)`
/// with ` silent` or ` open` behind it. A request in flight when the program ends is completed by a worker of the
/// kernel.
fn requests(trace: &Trace) -> Vec<String> {
    let error = Regex::new(r" \([A-Z][^()]*\)$").expect("it is one");
    let lines = trace.lines();
    let one = |(line, call): (&line::Line, line::Call)| {
        let name = call.name.strip_prefix("io_uring:")?.to_owned();
        Some(match &call.result {
            Result::Returned(result) => format!("{name}({}) = {}", call.args, error.replace(result, "")),
            Result::Never if line.text.ends_with("= ? (no completion asked)") => format!("{name}({}) silent", call.args),
            Result::Never if line.text.ends_with("= ? (exit not seen)") => format!("{name}({}) open", call.args),
            Result::Pending | Result::Never => panic!("{}", line.text),
        })
    };
    line::calls(&lines).into_iter().filter_map(one).collect()
}

/// Returns what the program printed, in the same form. A request in flight when the program ends may have been canceled
/// by then.
fn told(trace: &Trace, requests: &[String]) -> Vec<String> {
    let one = |line: &str| match line.split_once(' ')? {
        ("request", rest) => Some(rest.to_owned()),
        ("silent", rest) => Some(format!("{rest} silent")),
        ("open", rest) => {
            let canceled = format!("{rest} = -1 ECANCELED");
            Some(if requests.contains(&canceled) { canceled } else { format!("{rest} open") })
        }
        _ => None,
    };
    trace.stdout.lines().filter_map(one).collect()
}

/// Compares the lines of a scene with what its program printed.
fn assert_requests(name: &str, more: &[&str]) {
    for (machine, engine) in engines() {
        let trace = scene(&machine, engine, name, more);
        assert_eq!(trace.conserved().lost, 0);
        let mut requests = requests(&trace);
        let mut told = told(&trace, &requests);
        requests.sort();
        told.sort();
        assert_eq!(requests, told, "{engine}: {}", trace.text);
        assert!(!told.is_empty(), "{}", trace.stdout);
    }
}

#[test]
fn each_request_is_a_line_with_its_result() {
    assert_requests("plain", &["-e", "%io_uring"]);
}

#[test]
fn requests_appear_beside_syscalls() {
    assert_requests("plain", &["-e", "%io_uring,io_uring_enter,openat"]);
}

#[test]
fn requests_without_a_completion_are_marked() {
    assert_requests("chains", &["-e", "%io_uring"]);
}

#[test]
fn a_request_that_completes_repeatedly_has_a_line_each_time() {
    assert_requests("multishot", &["-e", "%io_uring"]);
}

#[test]
fn completions_that_find_no_room_are_shown() {
    assert_requests("full", &["-e", "%io_uring"]);
}

#[test]
fn requests_that_the_kernel_takes_by_itself_are_shown() {
    assert_requests("polled", &["-e", "%io_uring"]);
}

#[test]
fn completions_that_another_ring_posts_are_shown() {
    assert_requests("messages", &["-e", "%io_uring"]);
}

#[test]
fn requests_are_selected_by_name_and_by_filter() {
    let Some(machine) = Machine::shared() else { return };
    let names = |options: &[&str]| -> Vec<String> {
        let trace = scene(&machine, crate::machine::engine(), "plain", options);
        trace.conserved();
        requests(&trace).iter().filter_map(|request| Some(request.split_once('(')?.0.to_owned())).collect()
    };
    assert_eq!(names(&["-e", "io_uring:openat"]), ["openat"; 2]);
    assert_eq!(names(&["-e", "io_uring:openat", "--failure"]), ["openat"]);
    assert_eq!(names(&["-e", "io_uring:poll_*,io_uring:close"]).len(), 4);
    assert_eq!(names(&["-e", "%io_uring,!io_uring:nop", "--filter", "user_data <= 0x1002"]), ["openat"]);
    assert_eq!(names(&["-e", "%io_uring", "--filter", "errno == EBADF"]), ["close"]);
    assert_eq!(names(&["-e", "openat"]), [""; 0], "only with %io_uring or io_uring:");
}

#[test]
fn requests_that_were_not_asked_for_are_not_in_the_account() {
    for (machine, engine) in engines() {
        let verdict = scene(&machine, engine, "plain", &["-e", "io_uring:nop"]).conserved();
        assert_eq!((verdict.issued, verdict.printed, verdict.lost), (3, 3, 0), "{engine}");
    }
}

#[test]
fn the_summary_counts_requests() {
    for (machine, engine) in engines() {
        let trace = scene(&machine, engine, "plain", &["-e", "%io_uring,getppid", "-s"]);
        assert!(trace.verdict().adds_up(), "{}", trace.stderr);
        let row = |name: &str| trace.text.lines().find(|line| line.contains(name)).map(str::to_owned).unwrap_or_default();
        assert!(row("io_uring:nop").split_whitespace().any(|word| word == "3"), "{}", trace.text);
        assert!(row("io_uring:openat").split_whitespace().any(|word| word == "2"), "{}", trace.text);
    }
}

/// Some records are lost: what is shown and what the kernel counted as lost are all.
#[test]
fn requests_are_conserved_when_records_are_lost() {
    const COUNT: u64 = 100_000;
    for (machine, engine) in engines() {
        let options = ["--engine", engine, "-m", "8K", "-e", "io_uring:nop"];
        let trace = overrun(&machine, &options, &format!("uring-many {COUNT}")).succeeded();
        assert!(trace.stdout.contains(&format!("completed {COUNT}")), "{}", trace.stdout);
        let verdict = trace.conserved();
        assert_eq!(verdict.issued, COUNT);
        let wrong = trace
            .lines()
            .iter()
            .filter(|line| line.call().is_some_and(|call| matches!(&call.result, Result::Returned(ret) if ret != "0")))
            .count();
        assert_eq!(wrong, 0);
    }
}

#[test]
fn json_has_requests_as_calls() {
    let Some(machine) = Machine::shared() else { return };
    let trace = scene(&machine, crate::machine::engine(), "plain", &["-e", "io_uring:openat", "--json"]);
    let objects: Vec<serde_json::Value> = trace.text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let calls: Vec<_> = objects.iter().filter(|object| object["type"] == "call").collect();
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0]["name"], &calls[0]["abi"], &calls[0]["number"]), (&"io_uring:openat".into(), &"io_uring".into(), &18.into()));
    assert_eq!(calls[1]["return"]["name"], "ENOENT");
}

#[test]
fn an_unknown_request_is_refused_with_similar_names() {
    let Some(machine) = Machine::shared() else { return };
    let trace = crate::trace::plain(&machine, &["-e", "io_uring:opena", "true"]);
    assert_ne!(trace.status, 0);
    assert!(trace.stderr.contains("io_uring has no request opena; similar: io_uring:openat"), "{}", trace.stderr);
}
