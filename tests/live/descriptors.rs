//! The path behind a descriptor is the file that the call really read, or it is not printed. The size of each file is
//! in its name, so a read that returned 11 bytes was from the file `eleven`.

use crate::line;
use crate::machine::{self, Machine};
#[cfg(feature = "bpf")]
use crate::needs::Need;
use crate::trace::{Trace, overrun, plain, shell, workload};
use regex::Regex;

/// The numbers of right, wrong and missing paths of one run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Score {
    right: u64,
    wrong: u64,
    unknown: u64,
}

/// The file that a read of a number of bytes was from: the end of its path, or the whole path from the test's directory
/// on.
fn truth(count: u64) -> Option<&'static [&'static str]> {
    Some(match count {
        11 => &["/eleven"],
        22 => &["/twenty-two"],
        33 => &["/first/moved", "/first/a/b/moved"],
        44 => &["/elsewhere/moved", "/elsewhere/a/b/moved"],
        55 => &["/elsewhere/moved (deleted)"],
        66 => &["/name (deleted)"],
        77 => &["/name"],
        // These are paths below another root, or on a mount that is not part of the tree.
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

/// Runs a scene with every syscall selected, and with as few as paths need, and checks that no path is wrong.
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
fn a_descriptor_has_its_path_at_each_of_open_read_and_close() {
    scene("alternate", 3000, 6000);
}

#[test]
fn dup2_gives_a_descriptor_another_path() {
    scene("dup2", 3000, 6000);
}

#[test]
fn parent_and_child_have_different_files_under_one_number() {
    scene("fork", 3000, 12_000);
}

#[test]
fn threads_share_one_table_of_descriptors() {
    scene("threads", 3000, 6000);
}

#[test]
fn close_on_exec_frees_a_descriptor_for_another_file() {
    scene("cloexec", 3000, 6000);
}

#[test]
fn descriptors_that_are_sent_over_a_socket_have_their_paths() {
    scene("passed", 1000, 1000);
}

/// Runs a scene in the BPF engine, which walks the path of a file at each call instead of remembering the name that it
/// was opened with. Checks that all reads have the right path, and returns their number.
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
fn renamed_open_files_have_their_new_path() {
    assert!([0, 600].contains(&all_right("renamed", 200)));
}

#[cfg(feature = "bpf")]
#[test]
fn a_new_file_of_the_same_name_is_told_from_the_old_one() {
    assert!([0, 1000].contains(&all_right("replaced", 500)));
}

#[cfg(feature = "bpf")]
#[test]
fn a_tree_in_reused_kernel_memory_has_its_own_paths() {
    assert!([0, 2000].contains(&all_right("recycled", 1000)));
}

#[cfg(feature = "bpf")]
#[test]
fn directories_that_exchange_their_names_have_their_new_paths() {
    let score = as_called("swapped", 200);
    // While the directories change, either path may be right.
    assert!(score == Score::default() || score.right > 200 && score.wrong == 0, "{score:?}");
}

#[cfg(feature = "bpf")]
#[test]
fn paths_begin_at_the_tasks_root_and_follow_its_mounts() {
    assert!([0, 402].contains(&all_right("rooted", 100)));
}

#[cfg(feature = "bpf")]
#[test]
fn descriptors_in_arrays_and_of_other_processes_have_their_paths() {
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
fn descriptors_that_a_call_opens_in_memory_have_their_files() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let opened = |call: &str, scene: &[&str]| {
        let options = ["strace", "--engine", "bpf", "-qq", "-a1", "-y", "-e", call];
        plain(&machine, &[&options[..], &[&*machine::workload()], scene].concat()).stderr
    };
    let pipes = opened("pipe2", &["signals", "interrupted"]);
    let line = Regex::new(r"(?m)^pipe2\(\[\d+<(pipe:\[\d+\])>, \d+<(pipe:\[\d+\])>\], 0\) = 0$").expect("it is one");
    assert!(line.captures(&pipes).is_some_and(|ends| ends[1] == ends[2]), "{pipes}");
    let sockets = opened("socketpair", &["sockopts"]);
    let line = Regex::new(r"(?m)^socketpair\(AF_UNIX, SOCK_STREAM, 0, \[\d+<(socket:\[\d+\])>, \d+<(socket:\[\d+\])>\]\) = 0$");
    assert!(line.expect("it is one").captures(&sockets).is_some_and(|ends| ends[1] != ends[2]), "{sockets}");
}

#[test]
fn files_that_were_open_before_the_trace_have_their_paths() {
    for score in scene("held", 20, 40) {
        assert!(score.right >= 20, "there was time to look: {score:?}");
    }
}

#[test]
fn descriptors_that_the_command_inherits_have_their_paths() {
    let Some(machine) = Machine::shared() else { return };
    machine.file("eleven", 4096);
    let script = r#""$rtrace" -o "$dir/lines" -e read --fd-paths -- head -c 5 <"$dir/eleven" >"$dir/out""#;
    let ran = shell(&machine, script).succeeded();
    let text = std::fs::read_to_string(machine.path("lines")).unwrap_or_default();
    let path = format!("read(fd: 0<{}>", machine.path("eleven"));
    assert!(text.contains(&path), "no {path} in\n{text}{}", ran.stderr);
}

#[test]
fn paths_after_a_gap_are_right_or_absent() {
    let Some(machine) = Machine::alone() else { return };
    machine.file("eleven", 4096);
    machine.file("twenty-two", 4096);
    let trace = overrun(&machine, &["-m", "8K"], &format!("fds alternate 20000 {}", machine.dir().display())).succeeded();
    assert!(trace.verdict().lost > 0, "the ring held everything");
    let score = score(&trace);
    assert_eq!(score.wrong, 0, "{score:?}");
}
