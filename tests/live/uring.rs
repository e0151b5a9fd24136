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

/// Returns the arguments that every request has, without those of its own.
fn of_all(args: &str) -> &str {
    args.find("user_data:").map_or(args, |at| &args[at..])
}

/// Returns the requests in the lines: `NAME(ARGUMENTS) = RESULT`, with the arguments that every request has, and
/// without the texts of errors and the paths of descriptors; or `NAME(ARGUMENTS)` with ` silent` or ` open` behind it.
/// A request in flight when the program ends is completed by a worker of the kernel.
fn requests(trace: &Trace) -> Vec<String> {
    let error = Regex::new(r" \([A-Z][^()]*\)$").expect("it is one");
    let path = Regex::new(r"<.*>$").expect("it is one");
    let lines = trace.lines();
    let one = |(line, call): (&line::Line, line::Call)| {
        let name = call.name.strip_prefix("io_uring:")?.to_owned();
        Some(match &call.result {
            Result::Returned(result) => format!("{name}({}) = {}", of_all(&call.args), path.replace(&error.replace(result, ""), "")),
            Result::Never if line.text.ends_with("= ? (no completion asked)") => format!("{name}({}) silent", of_all(&call.args)),
            Result::Never if line.text.ends_with("= ? (exit not seen)") => format!("{name}({}) open", of_all(&call.args)),
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

/// Returns the end of the sentence on requests that were not traced.
fn untraced(trace: &Trace) -> Option<&str> {
    trace.stderr.lines().find_map(|line| line.strip_prefix("rtrace: the programs also made requests of io_uring: "))
}

#[test]
fn requests_like_the_selected_syscalls_are_counted_if_none_is_traced() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    for name in ["plain", "polled"] {
        let of = |options: &[&str]| scene(&machine, "bpf", name, options);
        let trace = of(&["-e", "openat"]);
        let count = |trace: &Trace, name: &str| trace.stdout.matches(&format!("request {name}(")).count();
        let opened = format!("{} openat (-e %io_uring shows requests)", count(&trace, "openat"));
        assert_eq!((untraced(&trace), count(&trace, "openat")), (Some(&*opened), 2), "{}", trace.stderr);
        for options in [&["-s", "-e", "openat"][..], &["-s", "-a", "-e", "openat", "--filter", "pid == 1"]] {
            assert_eq!(
                untraced(&of(options)).map(|text| text.ends_with("openat (-e %io_uring shows requests)")),
                Some(true),
                "{options:?}"
            );
        }
        let trace = of(&["-e", "read,close"]);
        let both = format!("{} close, {} read (-e %io_uring shows requests)", count(&trace, "close"), count(&trace, "read"));
        assert_eq!(untraced(&trace), Some(&*both), "{}", trace.stderr);
        for options in [&["-e", "%io_uring,openat"][..], &["-e", "io_uring:nop,openat"], &["-e", "getppid"], &["-q", "-e", "openat"]] {
            assert_eq!(untraced(&of(options)), None, "{options:?}");
        }
    }
}

#[test]
fn json_counts_the_requests_that_are_not_traced() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = scene(&machine, "bpf", "plain", &["-e", "openat", "--json"]);
    let end: serde_json::Value = serde_json::from_str(trace.text.lines().last().unwrap_or_default()).expect("it is JSON");
    assert_eq!(end["untraced_requests"], serde_json::json!([{ "name": "io_uring:openat", "count": 2 }]));
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

/// The syscall that does the same work as a request, where it has another name.
const TWINS: [(&str, &str); 9] = [
    ("read", "pread64"),
    ("write", "pwrite64"),
    ("readv", "preadv2"),
    ("writev", "pwritev2"),
    ("fadvise", "fadvise64"),
    ("accept", "accept4"),
    ("renameat", "renameat2"),
    ("send", "sendto"),
    ("recv", "recvfrom"),
];

/// The program does the same work by a syscall and right after that by a request.
#[test]
fn a_request_shows_what_the_syscall_with_the_same_arguments_shows() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let calls = "openat,openat2,pread64,pwrite64,preadv2,pwritev2,fsync,fadvise64,sync_file_range,fallocate,statx,mkdirat,unlinkat,\
                 symlinkat,linkat,renameat2,fsetxattr,setxattr,fgetxattr,getxattr,socket,connect,accept4,sendto,recvfrom,sendmsg,\
                 recvmsg,epoll_ctl,shutdown";
    let trace = scene(&machine, "bpf", "twins", &["-e", calls, "-e", "%io_uring"]);
    assert_eq!(trace.conserved().lost, 0);
    let lines = trace.lines();
    let calls: Vec<line::Call> = line::calls(&lines).into_iter().map(|(_, call)| call).collect();
    // Sockets have inodes of their own.
    let inodes = Regex::new(r"\[[0-9][^\]]*\]").expect("it is one");
    let mut compared = Vec::new();
    for pair in calls.windows(2) {
        let [syscall, request] = pair else { continue };
        let Some(name) = request.name.strip_prefix("io_uring:") else { continue };
        let twin = TWINS.iter().find(|(of, _)| *of == name).map_or(name, |(_, twin)| twin);
        assert_eq!(syscall.name, twin, "{}", trace.text);
        // The offset is in one register and not in two, and there is no address for what is received.
        let expected = syscall.args.replace("pos_l: ", "pos: ").replace(", pos_h: 0", "");
        let expected = if name == "recv" { expected.split(", addr").next().unwrap_or_default().to_owned() } else { expected };
        let own = request.args.split(", user_data: ").next().unwrap_or_default();
        let [own, expected] = [own, &expected].map(|args| inodes.replace_all(args, "[]").into_owned());
        let [result, expected_result] = [request, syscall].map(|call| inodes.replace_all(&format!("{:?}", call.result), "[]").into_owned());
        assert_eq!((own, result), (expected, expected_result), "{}", trace.text);
        compared.push(name.to_owned());
    }
    assert_eq!(compared.len(), 29, "{compared:?}");
}

#[test]
fn requests_that_are_polled_or_done_by_workers_have_their_arguments() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    for name in ["plain", "polled"] {
        let trace = scene(&machine, "bpf", name, &["-e", "%io_uring"]);
        let args = |wanted: &str| -> Vec<String> {
            let lines = trace.lines();
            line::calls(&lines).into_iter().filter(|(_, call)| call.name == wanted).map(|(_, call)| call.args.clone()).collect()
        };
        let file = machine.file("eleven", 11);
        let opened = &args("io_uring:openat");
        assert!(opened[0].starts_with(&format!("dfd: CWD, filename: \"{file}\", flags: RDONLY")), "{}", trace.text);
        assert!(opened[1].starts_with("dfd: CWD, filename: \"/nonexistent/file\""), "{}", trace.text);
        let read = &args("io_uring:read");
        let bytes = String::from_utf8(std::fs::read(&file).expect("it is there")).expect("it is text");
        for (line, (text, rest)) in read.iter().zip([(&bytes[..11], "count: 11, pos: 0"), (&bytes[1..8], "count: 7, pos: 1")]) {
            let expected = format!("<{file}>, buf: \"{text}\", {rest}, user_data:");
            assert!(line.contains(&expected), "{expected}: {}", trace.text);
        }
        assert!(args("io_uring:timeout")[0].starts_with("ts: {.tv_sec: 0, .tv_nsec: 1000000}"), "{}", trace.text);
        assert!(trace.text.contains(&format!("<{file}>\n")), "the path of what was opened: {}", trace.text);
    }
}

#[test]
fn arguments_of_requests_can_be_filtered() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace =
        scene(&machine, "bpf", "plain", &["-e", "io_uring:openat,io_uring:read", "--filter", "filename ~ \"*nonexistent*\" || count == 7"]);
    let lines = trace.lines();
    let names: Vec<String> = line::calls(&lines).into_iter().map(|(_, call)| call.name.clone()).collect();
    assert_eq!(names, ["io_uring:openat", "io_uring:read"], "{}", trace.text);
}

/// fio counts the requests that it makes, and makes them in several ways.
#[test]
fn the_requests_of_fio_are_those_that_it_counts() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    if std::process::Command::new("fio").arg("--version").output().is_err() {
        eprintln!("SKIPPED: fio is not installed (apt-get install fio); its requests were not compared");
        return;
    }
    let file = machine.path("fio.dat");
    let job = ["fio", "--name=test", "--ioengine=io_uring", "--size=4M", "--bs=4k", "--rw=randrw", "--iodepth=16", "--number_ios=300"];
    let first = format!("fd: [0-9]+<{file}>, ");
    let registered = format!("file_index: 0<{file}>, ");
    for (option, requests, args) in [
        ("--thread=1", ["read", "write"], &*first),
        ("--fixedbufs=1", ["read_fixed", "write_fixed"], &*first),
        ("--registerfiles=1", ["read", "write"], &*registered),
        ("--sqthread_poll=1", ["read", "write"], &*registered),
        ("--nonvectored=0", ["readv", "writev"], &*first),
    ] {
        let (name, counts) = (format!("--filename={file}"), machine.path("fio.json"));
        let output = format!("--output={counts}");
        let command = [&job[..], &[&name, option, "--output-format=json", &output]].concat();
        let trace = crate::trace::trace(&machine, &["--engine", "bpf", "-e", "%io_uring"], &command).succeeded();
        assert_eq!(trace.conserved().lost, 0, "{option}");
        let counts: serde_json::Value = serde_json::from_slice(&std::fs::read(&counts).expect("fio has written it")).expect("it is JSON");
        let counts = ["read", "write"].map(|kind| counts["jobs"][0][kind]["total_ios"].as_u64().expect("fio counts them"));
        let lines = trace.lines();
        let calls: Vec<line::Call> = line::calls(&lines).into_iter().map(|(_, call)| call).collect();
        let all = |name: &str| calls.iter().filter(|call| call.name == format!("io_uring:{name}")).collect::<Vec<_>>();
        let [reads, writes] = requests.map(all);
        assert_eq!([reads.len() as u64, writes.len() as u64], counts, "{option}: {}", trace.text);
        assert_eq!(counts[0] + counts[1], 300, "{option}");
        let memory = r#"(buf: "|vec: \[\{\.iov_base: ")"#;
        let whole = Regex::new(&format!("^{args}{memory}")).expect("it is one");
        for call in reads.iter().chain(&writes) {
            assert!(whole.is_match(&call.args), "{option}: {}", call.args);
            assert!(matches!(&call.result, Result::Returned(bytes) if bytes == "4096"), "{option}: {:?}", call.result);
        }
    }
}
