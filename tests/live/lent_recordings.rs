//! What the recordings of a member of the group have of programs that are not the member's own (see `lent.rs`).

use crate::lent::{DAC_READ_SEARCH, MEMBER, as_member, executes, file_capabilities, give, machine_with_lent, mode, run};
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::shell;
use std::fs;

/// Returns whether a file in the test's directory whose name begins like this has this text.
fn any_has(machine: &Machine, begin: &str, text: &str) -> bool {
    let (directory, name) = begin.rsplit_once('/').unwrap_or((".", begin));
    let files = fs::read_dir(machine.path(directory)).expect("the test's directory can be read").flatten();
    let of_name = files.filter(|file| file.file_name().to_string_lossy().starts_with(name));
    let contents: Vec<Vec<u8>> = of_name.map(|file| fs::read(file.path()).expect("root reads every file")).collect();
    assert!(!contents.is_empty(), "there is no {begin}*");
    contents.iter().any(|bytes| bytes.windows(text.len()).any(|some| some == text.as_bytes()))
}

/// Which tasks a recording is about is decided in the kernel, even for a process with so many threads that root's
/// rtrace reads the records of all tasks.
#[test]
fn recordings_have_no_records_of_other_users() {
    let Some(machine) = machine_with_lent() else { return };
    machine.copy_of(&machine::workload(), "workload");
    shell(&machine, "cp $(command -v sleep) $dir/notmembers").succeeded();
    let target = r#"rm -f own/in own/armed said; mkfifo own/in own/armed; chmod 666 own/in own/armed
        $member ./workload attach 200 <own/in >said & target=$!; export target
        exec 9>own/in; until grep -q ready said; do sleep .05; done;"#;
    let what = "--call-graph dwarf,1024 -e lseek";
    for (mode, recording) in [("", "own/plain"), ("--snapshot-at-end", "own/snapshot")] {
        let record = format!(
            r#"{target}
            $lent record {mode} {what} -o {recording} -p $target -- sh -c 'echo >own/armed; while [ -d /proc/$target ]; do sleep .1; done' & tracer=$!
            read armed <own/armed; ./notmembers 0; echo >&9; exec 9>&-; wait $target; wait $tracer"#
        );
        let recorded = run(&machine, &record).succeeded();
        let shown = shell(&machine, &format!("for file in $dir/{recording}*; do $rtrace -i $file 2>&1; done")).succeeded();
        assert_eq!(shown.stdout.matches("lseek(").count(), 5, "{mode}: {}{}{}", recorded.stderr, shown.stdout, shown.stderr);
        assert!(!any_has(&machine, recording, "notmembers"), "{mode}: {}", recorded.stderr);
    }
    run(&machine, &format!("$rtrace record {what} -o own/roots -a -- ./notmembers 0")).succeeded();
    assert!(any_has(&machine, "own/roots", "notmembers"), "it is there to be seen");
    let few = run(
        &machine,
        &format!("{target} ulimit -n 200; $lent record {what} -o own/few -p $target; status=$?; kill $target; exec 9>&-; exit $status"),
    );
    assert!(few.status == 125 && few.stderr.contains("only 200 files may be open at once"), "{few:?}");
}

/// rtrace waits for the reader of its output after it has checked the target, and before it opens events on it.
#[test]
fn a_program_with_more_rights_that_starts_after_the_check_is_not_recorded() {
    let Some(machine) = machine_with_lent() else { return };
    if machine.lacks(&[Need::Program("perl")]) {
        return;
    }
    let script = "open(GO, '<', 'own/map'); <GO>; require POSIX; print POSIX::floor(1.5), qq(\n);\n";
    fs::write(machine.path("load.pl"), script).expect("the test's directory is writable");
    let perl = machine.path("privileged");
    for (rights, bits) in
        [("its caller's", 0o755), ("set-user-ID", 0o4755), ("set-group-ID", 0o2755), ("capabilities", 0o755), ("unreadable", 0o711)]
    {
        let _ = fs::remove_file(&perl);
        shell(&machine, "cp $(command -v perl) $dir/privileged").succeeded();
        mode(&perl, bits);
        if rights == "capabilities" {
            let Some(()) = give(&perl, &file_capabilities(true, DAC_READ_SEARCH)) else { return };
        }
        for option in ["-p", "-t"] {
            let steps = format!(
                r#"rm -f own/*; mkfifo own/go own/map own/lines; chmod 666 own/go own/map; chown {MEMBER} own/lines
                $member sh -c 'read go <own/go; exec ./privileged load.pl' & other=$!; export other
                ($lent --call-graph dwarf,1024 --record own/recording -o own/lines {option} $other \
                    -- sh -c '>own/armed; while [ -d /proc/$other ]; do sleep .1; done' 2>said; echo $? >status) &
                until [ -e own/recording ]; do sleep .05; done
                echo >own/go; {}
                cat own/lines >/dev/null & until [ -e own/armed ] || [ -s status ]; do sleep .05; done
                echo >own/map; wait; cat said >&2; rm said; exit $(cat status; rm status)"#,
                executes("privileged")
            );
            let traced = shell(&machine, &as_member(&steps));
            assert_eq!(traced.stdout, "1\n", "{rights}, {option}: the program ran\n{}", traced.stderr);
            let is_own = rights == "its caller's";
            assert_eq!(any_has(&machine, "own/recording", "POSIX.so"), is_own, "{rights}, {option}: {}", traced.stderr);
            if is_own {
                traced.succeeded();
            } else {
                let why = "(privileged): its users and groups are not all yours, it has capabilities, or it hides its memory";
                assert!(traced.status == 125 && traced.stderr.contains(why), "{rights}, {option}: {traced:?}");
            }
        }
    }
}

/// The kernel closes the events on a task that executes such a program.
#[test]
fn a_program_with_more_rights_has_no_mappings_in_a_recording() {
    let Some(machine) = machine_with_lent() else { return };
    if machine.lacks(&[Need::Program("perl")]) {
        return;
    }
    fs::write(machine.path("load.pl"), "require POSIX; print POSIX::floor(1.5), qq(\n);\n").expect("the test's directory is writable");
    for bits in [0o755, 0o4755, 0o2755] {
        let perl = machine.path("privileged");
        let _ = fs::remove_file(&perl);
        shell(&machine, "cp $(command -v perl) $dir/privileged").succeeded();
        mode(&perl, bits);
        let record = "$lent record --call-graph dwarf,1024 -e lseek -o own/recording -- sh -c './privileged load.pl; cat own/file'";
        let recorded = run(&machine, record).succeeded();
        assert_eq!(recorded.stdout, "1\nmine\n", "{bits:o}: {}", recorded.stderr);
        assert_eq!(any_has(&machine, "own/recording", "POSIX.so"), bits == 0o755, "{bits:o}: {}", recorded.stderr);
        assert!(any_has(&machine, "own/recording", "cat\0"), "{bits:o}: the programs after it are recorded\n{}", recorded.stderr);
        fs::remove_file(machine.path("own/recording")).expect("it was written");
    }
}
