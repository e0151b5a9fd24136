//! The path behind a descriptor is the file that the call truly read, or it is not printed. A read of 11 bytes was one of the file `eleven`.

use crate::line;
use crate::machine::{self, Machine};
#[cfg(feature = "bpf")]
use crate::needs::Need;
use crate::trace::{Trace, overrun, shell, workload};

/// How the reads of one run came out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Score {
    right: u64,
    wrong: u64,
    unknown: u64,
}

/// What a read of so many bytes was of: how the path ends, or all of it from the test's directory on.
fn truth(count: u64) -> Option<&'static [&'static str]> {
    Some(match count {
        11 => &["/eleven"],
        22 => &["/twenty-two"],
        33 => &["/first/moved", "/first/a/b/moved"],
        44 => &["/elsewhere/moved", "/elsewhere/a/b/moved"],
        55 => &["/elsewhere/moved (deleted)"],
        66 => &["/name (deleted)"],
        77 => &["/name"],
        // By another root, or on a mount that is no part of the tree.
        88 => &["=/eleven"],
        87 => &["/moved/twenty-two"],
        86 => &["=/twenty-two"],
        99 => &["/first/moved", "/elsewhere/moved"],
        _ => return None,
    })
}

fn is_one_of(path: &str, truth: &[&str]) -> bool {
    truth.iter().any(|end| end.strip_prefix('=').map_or_else(|| path.ends_with(end), |whole| path == whole))
}

fn score(trace: &Trace) -> Score {
    let lines = trace.lines();
    let mut score = Score::default();
    for (line, call) in line::calls(&lines) {
        let Some(truth) = call.number("count").filter(|_| call.name == "read").and_then(truth) else { continue };
        let fd = call.arg("fd").unwrap_or_else(|| panic!("a read without its descriptor: {}", line.text));
        match fd.split_once('<') {
            None => score.unknown += 1,
            Some((_, path)) if is_one_of(path.trim_end_matches('>'), truth) => score.right += 1,
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

/// Runs a scene in the engine that knows a file by what it is called at the call, not by the name under which it was opened; returns how many reads were right, which all were.
#[cfg(feature = "bpf")]
fn all_right(scene: &str, rounds: u64) -> u64 {
    let score = as_called(scene, rounds);
    assert_eq!((score.wrong, score.unknown), (0, 0), "{scene}: {score:?}");
    score.right
}

#[cfg(feature = "bpf")]
fn as_called(scene: &str, rounds: u64) -> Score {
    let Some(machine) = Machine::alone_with_bpf() else { return Score::default() };
    machine.file("eleven", 4096);
    machine.file("twenty-two", 4096);
    let trace =
        workload(&machine, &["--engine", "bpf", "-e", "read"], &format!("fds {scene} {rounds} {}", machine.dir().display())).succeeded();
    let score = score(&trace);
    println!("{scene}: {score:?}");
    score
}

#[cfg(feature = "bpf")]
#[test]
fn files_and_directories_that_are_renamed_while_open() {
    assert!([0, 600].contains(&all_right("renamed", 200)));
}

#[cfg(feature = "bpf")]
#[test]
fn another_file_under_the_same_name() {
    assert!([0, 1000].contains(&all_right("replaced", 500)));
}

#[cfg(feature = "bpf")]
#[test]
fn another_tree_in_the_same_memory() {
    assert!([0, 2000].contains(&all_right("recycled", 1000)));
}

#[cfg(feature = "bpf")]
#[test]
fn directories_that_exchange_their_names_meanwhile() {
    let score = as_called("swapped", 200);
    // In the middle of a change nobody knows.
    assert!(score == Score::default() || score.right > 200 && score.wrong == 0, "{score:?}");
}

#[cfg(feature = "bpf")]
#[test]
fn paths_are_those_of_the_tasks_root_and_mounts() {
    assert!([0, 402].contains(&all_right("rooted", 100)));
}

#[cfg(feature = "bpf")]
#[test]
fn descriptors_in_arrays_and_of_other_processes() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::TasksByNumber]) {
        return;
    }
    let (eleven, twenty_two) = (machine.file("eleven", 64), machine.file("twenty-two", 64));
    let options = ["--engine", "bpf", "-e", "poll,kcmp,pidfd_getfd"];
    let trace = workload(&machine, &options, &format!("fds elsewhere 1 {}", machine.dir().display())).succeeded();
    let has = |parts: &[&str]| trace.text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    let [here, there] = [format!(".fd: 100<{twenty_two}>"), format!(".fd: 101<{eleven}>")];
    assert!(has(&["poll(", &here, &there, ".fd: -1, "]), "{}", trace.text);
    assert!(has(&["kcmp(", &format!("idx1: 100<{eleven}>, idx2: 100<{twenty_two}>")]), "{}", trace.text);
    assert!(has(&["pidfd_getfd(", "<pid:", &format!("fd: 102<{eleven}>"), &format!("<{eleven}>")]), "{}", trace.text);
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
    let trace = overrun(&machine, &["-m", "8K"], &format!("fds alternate 20000 {}", machine.dir().display())).succeeded();
    assert!(trace.verdict().lost > 0, "the ring held everything");
    let score = score(&trace);
    assert_eq!(score.wrong, 0, "{score:?}");
}
