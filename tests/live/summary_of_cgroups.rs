//! `--summary-mode cgroup`: a call is counted in the cgroup in which its task was.

use crate::cgroup::Cgroup;
use crate::machine::Machine;
use crate::summary::row;
use crate::trace::{Trace, shell_with_engine};

/// Returns calls and errors of a syscall by the cgroup in the head of a table.
fn in_cgroup(trace: &Trace, cgroup: &str, name: &str) -> (u64, u64) {
    let head = format!(" cgroup {cgroup},");
    let table = trace.text.lines().skip_while(|line| !line.starts_with(&head)).skip(1).take_while(|line| !line.starts_with(" cgroup "));
    row(&Trace { text: table.map(|line| format!("{line}\n")).collect(), stdout: String::new(), stderr: String::new(), ..*trace }, name)
}

#[test]
fn children_are_in_the_cgroup_of_their_parent() {
    let Some(machine) = Machine::alone() else { return };
    let group = Cgroup::new(&machine, "a");
    let (dir, path) = (group.dir.display(), &group.path);
    let script = format!(
        "sh -c 'echo $$ > {dir}/cgroup.procs; exec \"$rtrace\" -v -s --summary-mode cgroup $engine -o \"$dir/lines\" \"$workload\" forks 50'; cat \"$dir/lines\""
    );
    let trace = shell_with_engine(&machine, &script);
    assert_eq!(in_cgroup(&trace, path, "lseek"), (50, 50), "{}", trace.text);
    assert!(!trace.text.contains("cgroup ?"), "{}", trace.text);
}

#[test]
fn calls_belong_to_the_cgroup_of_their_task_at_that_moment() {
    let Some(machine) = Machine::alone() else { return };
    let (one, two) = (Cgroup::new(&machine, "a"), Cgroup::new(&machine, "b"));
    // One process moves itself, and an untraced process moves the other one.
    let script = format!(
        "\"$rtrace\" -v -S --summary-mode cgroup $engine -e lseek -o \"$dir/lines\" sh -c '
            echo $$ > {}/cgroup.procs; \"$workload\" forks 7
            echo $$ > {}/cgroup.procs; \"$workload\" forks 5'; cat \"$dir/lines\"",
        one.dir.display(),
        two.dir.display()
    );
    let trace = shell_with_engine(&machine, &script);
    assert_eq!([&one, &two].map(|group| in_cgroup(&trace, &group.path, "lseek").0), [7, 5], "{}", trace.text);
    assert!(!trace.text.contains("cgroup ?"), "{}", trace.text);
}

/// In a cgroup namespace, cgroups have the names that /proc shows in it.
#[test]
fn cgroups_have_the_names_of_the_cgroup_namespace() {
    let Some(machine) = Machine::alone() else { return };
    let (one, two) = (Cgroup::new(&machine, "a"), Cgroup::new(&machine, "b"));
    let inside = one.below("x");
    let script = |unshare: &str| {
        format!(
            "sh -c 'echo $$ > {}/cgroup.procs; exec unshare -C {unshare} \"$rtrace\" -v -S --summary-mode cgroup $engine -e lseek -o \"$dir/lines\" \\
                sh \"$dir/moves\"'; cat \"$dir/lines\"",
            one.dir.display(),
        )
    };
    let moves = |new: &str| {
        let dirs = [&inside, &two].map(|group| group.dir.display().to_string());
        let later = format!("{}/later", one.dir.display());
        format!(
            "echo $$ > {}/cgroup.procs; \"$workload\" forks 7\necho $$ > {}/cgroup.procs; \"$workload\" forks 5\n\
             mkdir {later}{new}; echo $$ > {later}{new}/cgroup.procs; \"$workload\" forks 3\n",
            dirs[0], dirs[1]
        )
    };
    std::fs::write(machine.path("moves"), moves("1")).expect("the test's directory is writable");
    let trace = shell_with_engine(&machine, &script(""));
    let outside = format!("/..{}", two.path);
    assert_eq!(["/x", &outside, "/later1"].map(|path| in_cgroup(&trace, path, "lseek").0), [7, 5, 3], "{}", trace.text);
    assert!(!trace.text.contains("cgroup ?"), "{}", trace.text);
    // In a pid namespace, the moved task has another number in the event. A cgroup that is unknown then is not shown as
    // the old one.
    std::fs::write(machine.path("moves"), moves("2")).expect("the test's directory is writable");
    let trace = shell_with_engine(&machine, &script("--pid --fork --mount-proc"));
    let begun = trace.text.split(" cgroup ").skip(1).filter(|table| table.starts_with("/,"));
    assert!(!begun.flat_map(str::lines).any(|line| line.trim_start().starts_with("lseek ")), "{}", trace.text);
}

/// If the kernel sums up the calls, a sum belongs to all cgroups in which its task was.
#[test]
fn a_process_that_moves_into_the_traced_cgroup_is_traced() {
    let Some(machine) = Machine::alone() else { return };
    let group = Cgroup::new(&machine, "a");
    let (dir, path) = (group.dir.display(), &group.path);
    let script = format!(
        "\"$rtrace\" -v -s --summary-mode cgroup $engine -e lseek -o \"$dir/lines\" -G {dir} \\
            sh -c '(sh -c \"echo \\$PPID\" > {dir}/cgroup.procs; exec \"$workload\" forks 20); :'; cat \"$dir/lines\""
    );
    let trace = shell_with_engine(&machine, &script);
    assert_eq!(in_cgroup(&trace, path, "lseek"), (20, 20), "{}", trace.text);
    assert!(!trace.text.contains("cgroup ?"), "{}", trace.text);
}
