//! Tracing without a mounted tracefs: in a mount namespace, in a chroot, and without the capability that a detached
//! mount needs.

use crate::machine::{Machine, engine};
use crate::needs::Need;
use crate::trace::{Trace, plain, shell};

/// The beginning of a script in a mount namespace, after which neither tracefs nor debugfs is mounted there.
const UNMOUNTED: &str = r#"
    set -e
    mount --make-rprivate /
    for mount in /sys/kernel/debug/tracing /sys/kernel/tracing /sys/kernel/debug; do
        while umount -l "$mount" 2>/dev/null; do :; done
    done
    ! grep -w tracefs /proc/self/mounts
"#;

/// Runs a script after [`UNMOUNTED`], with the option for the engine under test in `$engine`.
fn unmounted(machine: &Machine, script: &str) -> Trace {
    let path = machine.path("script");
    std::fs::write(&path, format!("engine={}\n{UNMOUNTED}\n{script}", engine())).expect("the test's directory is writable");
    shell(machine, &format!("exec unshare -m sh {path}"))
}

/// Returns the lines of stderr without time stamps, durations, and the text after the return.
fn lines(run: &Trace) -> Vec<String> {
    let event = |line: &str| {
        let (task, rest) = line.split_once(": ")?.1.split_once(' ')?;
        let (call, _) = rest.split_once(" = ").unwrap_or((rest, ""));
        Some(format!("{} {}", task.split('/').next()?, call.trim_end()))
    };
    run.stderr.lines().map(|line| event(line).unwrap_or_else(|| line.to_owned())).collect()
}

#[test]
fn both_engines_trace_calls_and_events_without_a_mount() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        "$rtrace" --engine "$engine" -e write,sched:sched_process_exec -- env echo started
        "$rtrace" list sched:sched_process_exec
        "$rtrace" check | grep -w tracefs
        cat /proc/self/mounts | grep -cw tracefs || true
    "#;
    let run = unmounted(&machine, script).succeeded();
    let lines = lines(&run);
    let has = |begin: &str| lines.iter().any(|line| line.starts_with(begin));
    assert!(has("env sched:sched_process_exec(filename: \"/") && has("echo write(fd: 1"), "{}", run.stderr);
    let said = "started\nsched:sched_process_exec\n\
                ok       tracefs          not mounted; rtrace mounts it for itself, where nobody else sees it\n0\n";
    assert_eq!(run.stdout, said, "{}", run.stderr);
}

#[test]
fn probes_are_created_and_removed_without_a_mount() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let script = r#"
        "$rtrace" --engine "$engine" --probe "p:begun $workload:main" -- "$workload" int80 0 &
        wait $!
        "$rtrace" probe list | grep -c "rtrace_$!_" || true
    "#;
    let run = unmounted(&machine, script);
    assert!(run.stderr.contains(":begun()"), "{}", run.stderr);
    assert!(run.stdout.ends_with("0\n"), "{}", run.stdout);
}

/// A program finds the file of user events without the help of rtrace, by its own mount.
#[test]
fn programs_write_marks_without_a_mount() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        "$workload" mark rtrace_unmounted 3 2>&1 || true
        cp "$workload" "$dir/workload"; chmod 755 "$dir" "$dir/workload"
        # By its path: busybox has one of its own, which knows no users.
        /usr/bin/setpriv --reuid=65534 --clear-groups "$dir/workload" mark rtrace_unmounted 1 2>&1 || true
        grep -cw tracefs /proc/self/mounts || true
    "#;
    let run = unmounted(&machine, script).succeeded();
    let as_root = if Need::UserEvents.is_met() { "set 0\n" } else { "this kernel has no user events (CONFIG_USER_EVENTS)" };
    let (root, user) = run.stdout.split_once("tracefs is not mounted").unwrap_or_else(|| panic!("{}", run.stdout));
    assert!(root.contains(as_root) && !root.contains("mount it for itself"), "{}", run.stdout);
    let why =
        ", and this program may not mount it for itself (Operation not permitted (os error 1)): as root, run `mount -t tracefs tracefs";
    assert!(user.starts_with(why) && user.ends_with("\n0\n"), "{}", run.stdout);
}

/// A minimal system has only programs and their libraries. Without /proc, the BPF programs cannot be loaded.
#[test]
fn a_chroot_works_with_and_without_proc() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        mkdir "$dir/root"
        cd "$dir/root"
        mount -t tmpfs none .
        for part in /usr /bin /lib /lib64 /sys /dev; do
            [ -e "$part" ] || continue
            mkdir -p ".$part"
            mount --rbind "$part" ".$part"
        done
        cp "$rtrace" rtrace
        chroot . /rtrace --engine tracepoint -e write,sched:sched_process_exec -- echo started
        mkdir proc
        mount -t proc proc proc
        chroot . /rtrace --engine "$engine" -e write,sched:sched_process_exec -- echo started
    "#;
    let run = unmounted(&machine, script).succeeded();
    let lines = lines(&run);
    let count = |begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
    assert_eq!((count("echo sched:sched_process_exec(filename: \"/"), count("echo write(fd: 1")), (2, 2), "{}", run.stderr);
    assert_eq!(run.stdout, "started\nstarted\n");
}

/// Where debugfs is mounted, any access to its directory `tracing` would mount tracefs visibly.
#[test]
fn rtrace_mounts_nothing_below_debugfs() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"
        mount -t debugfs debugfs /sys/kernel/debug
        cat /proc/self/mounts >"$dir/before"
        "$rtrace" --engine "$engine" -e write -- echo started
        cmp /proc/self/mounts "$dir/before" && echo same
    "#;
    let run = unmounted(&machine, script).succeeded();
    assert_eq!(run.stdout, "started\nsame\n", "{}", run.stderr);
}

const WHY: &str = "tracefs is not mounted, and using it without a mount needs CAP_SYS_ADMIN, which this process does not have: start the container \
                   with `--cap-add SYS_ADMIN` or `-v /sys/kernel/tracing:/sys/kernel/tracing` (docker, podman), or give its securityContext \
                   the capability SYS_ADMIN or a hostPath volume of /sys/kernel/tracing (kubernetes)";

/// Root in a container often has no CAP_SYS_ADMIN; CAP_BPF and CAP_PERFMON are enough to trace syscalls.
#[test]
fn without_the_capability_bpf_traces_syscalls_and_names_what_is_missing() {
    let Some(machine) = Machine::shared() else { return };
    let run = unmounted(&machine, r#"exec setpriv --bounding-set=-sys_admin "$rtrace" --engine "$engine" -e write -- echo started"#);
    if engine() == "bpf" {
        let run = run.succeeded();
        assert_eq!(run.stderr.lines().next(), Some(&*format!("rtrace: only syscalls are traced, without signals and other events: {WHY}")));
        assert!(run.stderr.contains("write(fd: 1"), "{}", run.stderr);
        assert_eq!(run.stdout, "started\n");
        let run = unmounted(&machine, r#"exec setpriv --bounding-set=-sys_admin "$rtrace" -e sched:sched_switch -- echo started"#);
        assert_eq!((run.status, &*run.stdout), (125, ""));
        assert_eq!(run.stderr, format!("rtrace: sched:sched_switch: {WHY}\n"));
    } else {
        assert_eq!((run.status, &*run.stdout), (125, ""));
        assert!(run.stderr.ends_with(&format!(": {WHY}\n")), "{}", run.stderr);
    }
}

#[test]
fn check_names_what_is_missing() {
    let Some(machine) = Machine::shared() else { return };
    let run = unmounted(&machine, r#"exec setpriv --bounding-set=-sys_admin "$rtrace" check"#);
    let line = |thing: &str| run.stdout.lines().find(|line| line.split_whitespace().nth(1) == Some(thing)).unwrap_or_default();
    assert!(
        line("tracefs").starts_with("missing  tracefs          not mounted, and using it without a mount needs CAP_SYS_ADMIN"),
        "{}",
        run.stdout
    );
    // The result does not depend on the engine under test.
    let works = plain(&machine, &["check"]).stdout.contains(" engine           bpf:");
    assert_eq!(run.status, if works { 0 } else { 125 }, "{}", run.stdout);
    assert_eq!(line("engine").starts_with("limited  engine           bpf: only syscalls"), works, "{}", run.stdout);
}
