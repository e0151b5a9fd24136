//! The path behind a descriptor is the file that the call truly read, or it is not printed. A read of 11 bytes was one of the file `eleven`.

use crate::line;
use crate::machine::{self, Machine};
use crate::trace::{Trace, shell, workload};

/// How the reads of one run came out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Score {
    right: u64,
    wrong: u64,
    unknown: u64,
}

fn score(trace: &Trace) -> Score {
    let lines = trace.lines();
    let mut score = Score::default();
    for (line, call) in line::calls(&lines) {
        let truth = match (call.name.as_str(), call.number("count")) {
            ("read", Some(11)) => "/eleven",
            ("read", Some(22)) => "/twenty-two",
            ("read", Some(33)) => "/first/moved",
            ("read", Some(44)) => "/elsewhere/moved",
            ("read", Some(55)) => "/elsewhere/moved (deleted)",
            _ => continue,
        };
        let fd = call.arg("fd").unwrap_or_else(|| panic!("a read without its descriptor: {}", line.text));
        match fd.split_once('<') {
            None => score.unknown += 1,
            Some((_, path)) if path.trim_end_matches('>').ends_with(truth) => score.right += 1,
            Some(_) => score.wrong += 1,
        }
    }
    score
}

/// Runs a scene with every syscall selected and with as few as paths need, and holds that no path is wrong.
fn scene(name: &str, rounds: u64, reads: u64) -> Vec<Score> {
    let Some(machine) = Machine::alone() else { return Vec::new() };
    machine.file("eleven", 4096);
    machine.file("twenty-two", 4096);
    let words = format!("fds {name} {rounds} {}", machine.dir().display());
    let scores = [&[][..], &["-e", "read", "--fd-paths"]].map(|options| {
        let trace = workload(&machine, options, &words).succeeded();
        assert_eq!(trace.verdict().lost, 0, "{}", trace.stderr);
        let score = score(&trace);
        println!("{name} {options:?}: {score:?}");
        assert_eq!(score.wrong, 0, "{name} {options:?}: {score:?}");
        assert_eq!(score.right + score.unknown, reads, "{name} {options:?}: {score:?}");
        assert!(machine::engine() != "bpf" || score.unknown == 0, "the kernel knows them all: {score:?}");
        score
    });
    scores.into()
}

#[test]
fn opened_read_and_closed_in_turn() {
    scene("alternate", 3000, 6000);
}

#[test]
fn one_number_for_two_files_by_dup2() {
    scene("dup2", 3000, 6000);
}

#[test]
fn one_number_for_two_files_in_parent_and_child() {
    scene("fork", 3000, 12_000);
}

#[test]
fn two_threads_that_share_numbers() {
    scene("threads", 3000, 6000);
}

#[test]
fn one_number_for_two_files_by_close_on_exec() {
    scene("cloexec", 3000, 6000);
}

#[test]
fn descriptors_sent_over_a_socket() {
    scene("passed", 1000, 1000);
}

/// Other engines know a file by the name under which it was opened.
#[cfg(feature = "bpf")]
#[test]
fn files_and_directories_that_are_renamed_while_open() {
    let Some(machine) = Machine::alone() else { return };
    machine.file("eleven", 4096);
    let trace = workload(&machine, &["--engine", "bpf"], &format!("fds renamed 200 {}", machine.dir().display())).succeeded();
    assert_eq!(score(&trace), Score { right: 600, wrong: 0, unknown: 0 });
}

#[test]
fn files_that_stay_open_are_known() {
    for score in scene("held", 20, 40) {
        assert!(score.right >= 20, "there was time to look: {score:?}");
    }
}

#[test]
fn what_the_command_inherits_is_known() {
    let Some(machine) = Machine::shared() else { return };
    machine.file("eleven", 4096);
    let script = r#""$rtrace" -o "$dir/lines" -e read --fd-paths -- head -c 5 <"$dir/eleven" >"$dir/out""#;
    let ran = shell(&machine, script).succeeded();
    let text = std::fs::read_to_string(machine.path("lines")).unwrap_or_default();
    let path = format!("read(fd: 0<{}>", machine.path("eleven"));
    assert!(text.contains(&path), "no {path} in\n{text}{}", ran.stderr);
}

#[test]
fn after_a_gap_paths_are_right_or_absent() {
    let Some(machine) = Machine::alone() else { return };
    machine.file("eleven", 4096);
    machine.file("twenty-two", 4096);
    let trace = workload(&machine, &["-m", "8K"], &format!("fds alternate 20000 {}", machine.dir().display())).succeeded();
    assert!(trace.verdict().lost > 0, "the ring held everything");
    let score = score(&trace);
    assert_eq!(score.wrong, 0, "{score:?}");
}
