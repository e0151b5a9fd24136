//! Tests of the plans for command lines, with a folder of files in the place of tracefs.

use super::traced_by;
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::plan::{self, PathNameEvents, PathNameSource, Plan};
use crate::probe::run_events::RunEvents;
use crate::request::Engine;
use crate::session::Role;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the format file of an event with these fields of 8 bytes.
fn write_event(root: &Path, event: &str, fields: &[&str]) {
    let folder = root.join("events").join(event);
    fs::create_dir_all(&folder).unwrap();
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
    let field = |(at, name): (usize, &&str)| format!("\tfield:unsigned long {name};\toffset:{};\tsize:8;\tsigned:0;\n", 8 + 8 * at);
    let fields: String = fields.iter().enumerate().map(field).collect();
    fs::write(folder.join("format"), format!("name: x\nID: 600\nformat:\n{common}{fields}\nprint fmt: \"\"\n")).unwrap();
}

/// Returns a folder with the files of a kernel that has kprobes, histograms and the events of openat(2).
fn tracefs() -> (tempfile::TempDir, Tracefs) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for event in ["sys_enter_read", "sys_exit_read", "sys_enter_openat", "sys_exit_openat"] {
        write_event(root, &format!("syscalls/{event}"), &["__syscall_nr", "dfd", "filename", "flags", "mode"]);
    }
    write_event(root, "raw_syscalls/sys_exit", &["id", "ret"]);
    fs::write(root.join("events/raw_syscalls/sys_exit/hist"), "").unwrap();
    fs::create_dir(root.join("instances")).unwrap();
    for file in ["kprobe_events", "dynamic_events", "synthetic_events", "error_log"] {
        fs::write(root.join(file), "").unwrap();
    }
    let tracefs = Tracefs::at(root).unwrap();
    (folder, tracefs)
}

/// Returns all files below a folder with their contents.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(contents(&path)) } else { found.push((path.clone(), fs::read(path).unwrap())) }
    }
    found.sort();
    found
}

fn planned(tracefs: &Tracefs, words: &str) -> Plan {
    plan::build(&traced_by(words), tracefs, &RunEvents::default(), &[], Engine::Tracepoint).unwrap()
}

/// Returns the line of `-v` about path names.
fn way(plan: &Plan) -> String {
    plan.to_string().lines().find_map(|line| line.strip_prefix("plan: path names ")).unwrap().to_owned()
}

#[test]
fn a_plan_describes_the_events_for_path_names_and_creates_none_of_them() {
    let (folder, tracefs) = tracefs();
    let before = contents(folder.path());
    let mut plan = planned(&tracefs, "--engine tracepoint -e openat true");
    assert!(contents(folder.path()) == before, "planning writes to tracefs");
    let names = plan.path_names.as_mut().unwrap();
    let PathNameSource::Getname(probes) = names.source() else { panic!("{:?}", names.source()) };
    assert!(probes.iter().all(|probe| probe.to_string().starts_with("r512:getname ")), "{probes:?}");
    names.refuse(anyhow::anyhow!("it is refused")).unwrap();
    assert!(matches!(names.source(), PathNameSource::AtExit(_)));
    let cost = "it slows down each such call on this machine";
    let no_copies = "the syscalls: events of this kernel have no strings (Linux 6.19 adds them)";
    assert_eq!(
        way(&plan),
        format!("by an event probe when calls return, because no probe can be made: it is refused; {no_copies}; {cost}")
    );
}

#[test]
fn the_events_for_path_names_come_last_in_the_plan() {
    let (folder, tracefs) = tracefs();
    let mut plan = planned(&tracefs, "--engine tracepoint -e openat true");
    let before = plan.events.len();
    write_event(folder.path(), "rtrace_1_2/getname", &["name"]);
    plan.add_path_names(&tracefs, PathNameEvents::of_probe(EventName::new("rtrace_1_2", "getname"))).unwrap();
    let added = &plan.events[before].spec;
    assert_eq!(
        (plan.events.len(), added.name.as_str(), added.role, added.shown),
        (before + 1, "rtrace_1_2:getname", Role::PathName, false)
    );
    assert!(plan.to_string().contains("plan: event rtrace_1_2:getname (needed, not shown)\n"), "{plan}");
}
