//! Structs and directory entries in lines: their brief form by default, and all members with `--full`.

use crate::line;
use crate::machine::Machine;
use crate::trace::{Trace, workload};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

const CALLS: &str = "newfstatat,statx,getdents64";

/// Runs the program, and returns its calls on its own files and on `/dev/full`, to which no other program writes:
/// `NAME(ARGS) = RESULT`.
fn calls(machine: &Machine, more: &[&str]) -> (Trace, Vec<String>) {
    let dir = machine.dir().display().to_string();
    let options = [&["--engine", "bpf", "-e", CALLS], more].concat();
    let trace = workload(machine, &options, &format!("structs {dir}")).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let lines = trace.lines();
    let own = line::calls(&lines).into_iter().filter(|(_, call)| call.args.contains(&dir) || call.args.contains("\"/dev/full\""));
    let calls = own.map(|(_, call)| call.returned()).collect();
    (trace, calls)
}

fn metadata(path: &str) -> Metadata {
    std::fs::metadata(path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// Returns the members for the owner and the group that are not root: `.st_uid: 1234, `.
fn owner(of: &Metadata) -> String {
    let members = [("st_uid", of.uid()), ("st_gid", of.gid())].into_iter().filter(|(_, id)| *id != 0);
    members.map(|(name, id)| format!(".{name}: {id}, ")).collect()
}

/// Returns the number of bytes and the names that the program read from its directory.
fn entries(trace: &Trace) -> (String, Vec<String>) {
    let told = trace.stdout.lines().find_map(|line| line.strip_prefix("entries ")).unwrap_or_else(|| panic!("{}", trace.stdout));
    let mut words = told.split(' ').map(str::to_owned);
    (words.next().unwrap_or_default(), words.collect())
}

#[test]
fn lines_show_what_people_look_for_and_dots() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (trace, calls) = calls(&machine, &[]);
    let file = machine.path("seven");
    let of = metadata(&file);
    let time = format!("{{.tv_sec: {}, .tv_nsec: {}}}", of.mtime(), of.mtime_nsec());
    let (bytes, names) = entries(&trace);
    assert_eq!(names.len(), 10, "{names:?}");
    let first: Vec<String> = names[..6].iter().map(|name| format!("\"{name}\"")).collect();
    let fds = |call: &String| call.split_once("fd: ").and_then(|(_, rest)| rest.split_once('<')).map(|(fd, _)| fd.to_owned());
    let directory = format!("{}<{}>", calls.iter().rev().find_map(fds).unwrap_or_default(), machine.path("entries"));
    let full = metadata("/dev/full");
    let full_time = format!("{{.tv_sec: {}, .tv_nsec: {}}}", full.mtime(), full.mtime_nsec());
    let expected = [
        format!("newfstatat(dfd: CWD, filename: \"{file}\", statbuf: {{.st_mode: IFREG|0640, {}.st_size: 7, ...}}) = 0", owner(&of)),
        format!("statx(dfd: CWD, filename: \"{file}\", mask: MODE|SIZE, buffer: {{.stx_mode: IFREG|0640, .stx_size: 7, ...}}) = 0"),
        format!(
            "statx(dfd: CWD, filename: \"{file}\", mask: TYPE|NLINK|UID|MTIME, buffer: {{.stx_nlink: 1, .stx_uid: {}, .stx_mode: IFREG|0640, \
             .stx_mtime: {time}, ...}}) = 0",
            of.uid()
        ),
        "newfstatat(dfd: CWD, filename: \"/dev/full\", statbuf: {.st_mode: IFCHR|0666, .st_rdev: 1:7, .st_size: 0, ...}) = 0".to_owned(),
        "statx(dfd: CWD, filename: \"/dev/full\", mask: MODE|SIZE, buffer: {.stx_mode: IFCHR|0666, .stx_size: 0, .stx_rdev_major: 1, \
         .stx_rdev_minor: 7, ...}) = 0"
            .to_owned(),
        format!(
            "statx(dfd: CWD, filename: \"/dev/full\", mask: TYPE|NLINK|UID|MTIME, buffer: {{.stx_nlink: 1, .stx_uid: 0, .stx_mode: IFCHR|0666, \
             .stx_mtime: {full_time}, .stx_rdev_major: 1, .stx_rdev_minor: 7, ...}}) = 0"
        ),
        format!("getdents64(fd: {directory}, dirent: [10 entries: {}, ...], count: 4096) = {bytes}", first.join(", ")),
        format!("getdents64(fd: {directory}, dirent: [], count: 4096) = 0"),
    ];
    assert_eq!(without_attributes(&calls), expected);
}

/// Removes `.stx_attributes`, which some file systems set.
fn without_attributes(calls: &[String]) -> Vec<String> {
    let attributes = regex::Regex::new(r"\.stx_attributes: [A-Z_|]+, ").expect("the pattern is right");
    calls.iter().map(|call| attributes.replace(call, "").into_owned()).collect()
}

#[test]
fn full_lines_have_all_members_and_entries() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (trace, calls) = calls(&machine, &["--full"]);
    let file = machine.path("seven");
    let of = metadata(&file);
    let device = format!("{}:{}", rustix::fs::major(of.dev()), rustix::fs::minor(of.dev()));
    let (mode, links) = (".st_mode: IFREG|0640", ".st_nlink: 1");
    let mode = if cfg!(target_arch = "aarch64") { format!("{mode}, {links}") } else { format!("{links}, {mode}") };
    let times = [("atime", of.atime(), of.atime_nsec()), ("mtime", of.mtime(), of.mtime_nsec()), ("ctime", of.ctime(), of.ctime_nsec())];
    let times = times.map(|(name, seconds, rest)| format!(".st_{name}: {seconds}, .st_{name}_nsec: {rest}")).join(", ");
    assert_eq!(
        calls[0],
        format!(
            "newfstatat(dfd: CWD, filename: \"{file}\", statbuf: {{.st_dev: {device}, .st_ino: {}, {mode}, .st_uid: {}, .st_gid: {}, \
             .st_rdev: 0:0, .st_size: 7, .st_blksize: {}, .st_blocks: {}, {times}}}) = 0",
            of.ino(),
            of.uid(),
            of.gid(),
            of.blksize(),
            of.blocks()
        )
    );
    assert!(calls[1].contains("{.stx_mask: ") && calls[1].contains(".stx_atomic_write_unit_max_opt: "), "{}", calls[1]);
    let (_, names) = entries(&trace);
    let listed: Vec<&str> = calls[6].split(".d_name: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(listed, names);
    assert_eq!(calls[6].matches("{.d_ino: ").count(), 10, "{}", calls[6]);
    assert!(calls.iter().all(|call| !call.contains("...")), "{calls:#?}");
}

#[test]
fn json_has_all_members_without_full() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let dir = machine.dir().display().to_string();
    let trace = workload(&machine, &["--engine", "bpf", "--json", "-e", CALLS], &format!("structs {dir}")).succeeded();
    let of_file = |name: &str| {
        let line = trace.text.lines().find(|line| line.contains(&format!("\"{name}\"")) && line.contains("/seven"));
        line.unwrap_or_else(|| panic!("{}", trace.text)).to_owned()
    };
    assert!(of_file("newfstatat").contains("\"st_blksize\""), "{}", of_file("newfstatat"));
    assert!(of_file("statx").contains("\"stx_attributes_mask\""), "{}", of_file("statx"));
    assert_eq!(trace.text.matches("\"d_reclen\"").count(), 10, "{}", trace.text);
}
