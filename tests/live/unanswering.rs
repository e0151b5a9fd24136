//! A file system that does not answer blocks the programs that use it, and not rtrace.

use crate::compiled::compiled;
use crate::machine::{self, Machine};
use crate::needs::unsupported;
use crate::trace::{Trace, shell_with_engine};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts a FUSE file system in the test's own mount namespace: the files of `$dir/real` are also in `$dir/mount`.
const MOUNTED: &str = "
    mkdir -p $dir/real $dir/mount && cp $(command -v sleep) $dir/real/sleeper && cp $(command -v sh) $dir/real/shell
    bindfs -f $dir/real $dir/mount & server=$!
    until [ -x $dir/mount/shell ]; do sleep .05; done
    ";
/// Starts a sleeping program and a program that makes calls from that file system, and then stops its server.
const STOPPED: &str = r#"
    $dir/mount/sleeper 1000 & sleeper=$!
    $dir/mount/shell -c 'while :; do sleep .1; done' & caller=$!
    until grep -q sleeper /proc/$sleeper/comm && grep -q wait /proc/$caller/wchan; do sleep .05; done
    sleep .5; kill -STOP $server
    "#;
/// Continues and ends everything that is still there.
const ENDED: &str = "
    kill -CONT $server; kill $sleeper $caller 2>/dev/null; wait $sleeper $caller 2>/dev/null; cd /; umount -l $dir/mount; kill -KILL $server; wait; rm -r $dir/real $dir/mount
    ";

/// Runs a script with such a file system, if one can be created. The standard output of the script takes the place of
/// the lines.
fn with_mount(machine: &Machine, between: &str, script: &str) -> Option<Trace> {
    in_namespaces(machine, "-m", &format!("{between} {script} {ENDED}"))
}

/// Does the same in these namespaces, with the commands that follow the mount.
fn in_namespaces(machine: &Machine, namespaces: &str, script: &str) -> Option<Trace> {
    if Command::new("bindfs").arg("--version").output().is_err() || !std::path::Path::new("/dev/fuse").exists() {
        unsupported("no FUSE, or no bindfs");
        return None;
    }
    std::fs::write(machine.path("script"), format!("{MOUNTED} {script}")).expect("the test's directory is writable");
    Some(shell_with_engine(machine, &format!("unshare {namespaces} sh $dir/script 2>$dir/said; cat $dir/said >&2")))
}

#[test]
fn a_program_on_an_unanswering_mount_does_not_block_rtrace() {
    let Some(machine) = Machine::shared() else { return };
    for target in ["-a", "-u root", "-p $sleeper"] {
        let script = format!("timeout -s KILL 60 $rtrace $engine {target} -e lseek -o $dir/lines true; echo status $?;");
        let Some(run) = with_mount(&machine, STOPPED, &script) else { return };
        assert_eq!(run.stdout, "status 0\n", "{target}: {}", run.stderr);
    }
}

/// Frames in files of that file system are shown as file names and offsets; frames in other files have the names of
/// their functions.
#[test]
fn frames_in_unanswering_files_have_the_files_names() {
    let Some(machine) = Machine::shared() else { return };
    for target in ["-a", "-p $caller"] {
        let script = format!(
            "timeout -s KILL 100 $rtrace $engine {target} -v -e wait4 --call-graph dwarf -o $dir/lines sleep 8; echo status $?
             echo shell $caller $dir/mount/shell; cat $dir/lines;"
        );
        let Some(run) = with_mount(&machine, STOPPED, &script) else { return };
        assert!(run.stdout.starts_with("status 0\n"), "{target}: {}", run.stderr);
        let file = machine.path("mount/shell");
        let caller = run.stdout.lines().find_map(|line| line.strip_prefix("shell ")?.split(' ').next()).expect("the script says it");
        let lines: Vec<&str> = run.stdout.lines().collect();
        let calls = lines.iter().enumerate().filter(|(_, line)| line.contains(&format!("/{caller} wait4(")));
        let frames: Vec<&str> = calls
            .flat_map(|(at, _)| lines[at + 1..].iter().take_while(|line| line.starts_with(&" ".repeat(38))))
            .map(|line| line.trim())
            .collect();
        assert!(
            frames.iter().any(|frame| frame.contains("wait") && frame.ends_with("/libc.so.6)")),
            "{target}: {frames:?}\n{}",
            run.stdout
        );
        let (prefix, number) = (format!("{file}+0x"), |text: &str| u64::from_str_radix(text, 16));
        assert!(
            frames.iter().any(|frame| frame.strip_prefix(&prefix).is_some_and(|at| number(at).is_ok())),
            "{target}: {frames:?}\n{}",
            run.stdout
        );
        let said =
            run.stderr.lines().filter(|line| line.contains("because the file systems of these files do not answer: ")).collect::<Vec<_>>();
        assert!(
            matches!(said[..], [line] if line.starts_with("rtrace: stacks lack names and callers") && line.contains(&file)),
            "{target}: {}",
            run.stderr
        );
        assert!(run.verdict().adds_up(), "{target}: {}", run.stderr);
    }
}

/// The directory for debug files may be on a network file system.
#[test]
fn unanswering_debug_files_do_not_block_call_graphs() {
    let Some(machine) = Machine::shared() else { return };
    let between = format!("mount --bind $dir/mount /usr/lib/debug; {STOPPED}");
    let script = "timeout -s KILL 100 $rtrace $engine -v -e clock_nanosleep --call-graph dwarf -o $dir/lines sleep 0.1; echo status $?; cat $dir/lines;";
    if !std::path::Path::new("/usr/lib/debug").is_dir() {
        return unsupported("no /usr/lib/debug to mount something on");
    }
    let Some(run) = with_mount(&machine, &between, script) else { return };
    assert!(run.stdout.starts_with("status 0\n"), "{}", run.stderr);
    assert!(
        run.stdout.contains("clock_nanosleep (") && run.stdout.contains("/libc.so.6)"),
        "the names that are in the file itself are there\n{}",
        run.stdout
    );
    let said = run
        .stderr
        .lines()
        .filter(|line| line.contains("because the file systems of these files do not answer: /usr/lib/debug/.build-id/"))
        .count();
    assert_eq!(said, 1, "{}", run.stderr);
}

/// A signal ends the trace although the helper process that reads files is blocked. The helper process ends when the
/// file system answers again.
#[test]
fn an_interrupt_ends_a_call_graph_of_unanswering_files() {
    let Some(machine) = Machine::shared() else { return };
    let traced = "timeout -s INT -k 60 2 $rtrace $engine -v -p $caller -e wait4 --call-graph dwarf -o $dir/lines; echo status $?;";
    let alone = "while grep -qs rtrace-reader /proc/[0-9]*/comm; do sleep .1; done; echo alone";
    // In its own pid namespace, the test sees no processes of other tests.
    let script = format!("{STOPPED} {traced} {ENDED} {alone}");
    let Some(run) = in_namespaces(&machine, "-m -p -f --mount-proc", &script) else { return };
    assert_eq!(run.stdout, "status 124\nalone\n", "timeout sent one signal, and no second one: {}", run.stderr);
    assert!(run.verdict().adds_up(), "{}", run.stderr);
}

/// As long as such a file system answers, its files are read like all others, and no helper process is left.
#[test]
fn call_graphs_through_files_on_answering_mounts_are_complete() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2", "-g"], "stacks/chain.c", "chain") else { return };
    let between = format!("cp {program} $dir/real/chain;");
    let script = r#"for program in $dir/mount/chain $dir/real/chain; do
        unshare -p -f --mount-proc sh -c '
            $rtrace $engine -v -e lseek --call-graph dwarf --lines -o $dir/lines $0 plain 4711 >/dev/null; echo status $?; cat /proc/[0-9]*/comm | grep rtrace-reader' $program
        grep "^ \{38\}" $dir/lines | sed 's,/mount/,/real/,'
        done; true & sleeper=$! caller=$!;"#;
    let Some(run) = with_mount(&machine, &between, script) else { return };
    let parts: Vec<&str> = run.stdout.split("status 0\n").collect();
    let ["", mounted, real] = parts[..] else { panic!("{}\n{}", run.stdout, run.stderr) };
    assert_eq!(mounted, real, "{}", run.stderr);
    assert!(real.contains("/real/chain) ") && real.contains("chain.c:"), "{real}");
}

/// Any user could start a privileged rtrace as the helper process, and would get the content of files that the user may
/// not read.
#[test]
fn the_helper_process_of_a_privileged_program_serves_nobody_else() {
    let Some(machine) = Machine::shared() else { return };
    let program = machine.copy_of(machine::rtrace(), "rtrace");
    for (mode, reads) in [(0o755, true), (0o4755, false)] {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        let (mut ours, theirs) = UnixStream::pair().expect("there are descriptors left");
        let mut command = Command::new(&program);
        command.arg0("rtrace-reader").uid(65534).gid(65534).stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut child = command.spawn().expect("anybody may execute it");
        drop(command);
        let mut message = [0; 64];
        let length = ours.read(&mut message).expect("it says something, or ends");
        assert_eq!(length > 0, reads, "{mode:o}: {}", String::from_utf8_lossy(&message[..length]));
        drop(ours);
        assert_eq!(child.wait().expect("it is ours").success(), reads, "{mode:o}");
    }
}
