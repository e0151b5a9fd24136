//! The installation that lets the members of a group trace without root (`rtrace check --setup`): the file of rtrace
//! has capabilities, and its caller has none.
//!
//! The tests create such a file and run it as a user of their own. Before a test checks that something is hidden from
//! that user, it checks that it exists: by a trace of root, or by the output of the program.

use crate::line;
use crate::machine::{self, Machine};
use crate::needs::{Need, unsupported};
use crate::trace::{Trace, shell, start_shell};
use rustix::fs::XattrFlags;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// The member of the group: a user ID and a group ID that nothing else on the machine has.
pub const MEMBER: u32 = 61_234;

/// Returns a struct vfs_cap_data of version 2: the lower halves of the permitted and the inheritable set, then the
/// upper halves.
pub fn file_capabilities(effective: bool, permitted: u64) -> Vec<u8> {
    [0x0200_0000 | u32::from(effective), permitted as u32, 0, (permitted >> 32) as u32, 0].map(u32::to_le_bytes).concat()
}

const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;
pub const DAC_READ_SEARCH: u64 = 1 << 2;

pub fn mode(path: &str, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap_or_else(|e| panic!("{path}: {e}"));
}

/// Creates an rtrace with capabilities in the test's directory, and the directory `own` of the member. If that is
/// impossible, reports so and returns `None`.
pub fn machine_with_lent() -> Option<Machine> {
    let machine = Machine::shared()?;
    if machine::engine() != "bpf" {
        unsupported("only the BPF engine traces for whom privileges are lent");
        return None;
    }
    mode(&machine.path("."), 0o755);
    machine.copy_of(machine::rtrace(), "rtrace");
    give(&machine.path("rtrace"), &file_capabilities(false, PERFMON_AND_BPF))?;
    fs::create_dir(machine.path("own")).expect("the test's directory is writable");
    fs::write(machine.path("own/file"), "mine\n").expect("the test's directory is writable");
    fs::write(machine.path("secret"), "precious\n").expect("the test's directory is writable");
    mode(&machine.path("secret"), 0o600);
    chown(machine.path("own"), Some(MEMBER), Some(MEMBER)).expect("root gives away what is his");
    Some(machine)
}

pub fn give(path: &str, capabilities: &[u8]) -> Option<()> {
    match rustix::fs::setxattr(Path::new(path), "security.capability", capabilities, XattrFlags::empty()) {
        Ok(()) => Some(()),
        Err(error) => {
            unsupported(&format!("no file capabilities: {error}"));
            None
        }
    }
}

/// The beginning of a shell line in which `$lent` runs rtrace and `$member` runs any program, as the member.
/// (setpriv(1) itself keeps capabilities until it executes the program.)
pub fn as_member(script: &str) -> String {
    format!(
        r#"cd "$dir"; export HOME="$dir/own"; member="setpriv --reuid={MEMBER} --regid={MEMBER} --clear-groups env"; lent="$member $dir/rtrace"; export member lent
        {script}"#
    )
}

/// Returns such a shell line with a trace that goes to `own/lines`.
pub fn run(machine: &Machine, script: &str) -> Trace {
    let _ = fs::remove_file(machine.path("own/lines"));
    let run = shell(machine, &as_member(script));
    Trace { text: fs::read_to_string(machine.path("own/lines")).unwrap_or_default(), ..run }
}

/// Attaches to a shell of the member, which runs this script only then: the timer command of `-p` starts after arming.
fn attached(machine: &Machine, script: &str) -> Trace {
    let steps = format!(
        r#"mkfifo own/ready own/go 2>/dev/null; chmod 666 own/ready own/go
        $member sh -c 'echo >own/ready; read go <own/go; {script}' & target=$!
        read ready <own/ready; export target
        $lent -o own/lines -p $target -- sh -c 'echo go >own/go; while [ -d /proc/$target ]; do sleep 0.1; done'; wait"#
    );
    run(machine, &steps).succeeded()
}

#[test]
fn a_member_of_the_group_traces_own_programs() {
    let Some(machine) = machine_with_lent() else { return };
    let trace = run(&machine, "$lent -v -o own/lines cat own/file | cat").succeeded();
    let calls: Vec<String> = line::calls(&trace.lines()).into_iter().map(|(_, call)| format!("{}({})", call.name, call.args)).collect();
    let has = |begin: &str, with: &str| calls.iter().any(|call| call.starts_with(begin) && call.contains(with));
    assert!(has("execve(", "argv: [\"cat\", \"own/file\"]"), "{}", trace.text);
    assert!(has("openat(", "filename: \"own/file\"") && has("write(", "buf: \"mine\\n\""), "{}", trace.text);
    assert!(trace.verdict().adds_up() && trace.verdict().lost == 0, "{}", trace.stderr);
    assert!(!trace.stderr.contains("calls are not shown"), "{}", trace.stderr);
    let summary = run(&machine, "$lent -s -o own/lines cat own/file").succeeded();
    assert!(summary.text.contains("openat"), "{}", summary.text);
    let attached = attached(&machine, "cat own/file");
    assert!(attached.text.contains("filename: \"own/file\""), "{}", attached.text);
}

/// rtrace itself has the capabilities while it arms.
#[test]
fn programs_that_rtrace_starts_do_not_have_its_privileges() {
    let Some(machine) = machine_with_lent() else { return };
    let none = ["CapInh", "CapPrm", "CapEff", "CapAmb"].map(|set| format!("{set}:\t0000000000000000\n")).concat();
    let command = run(&machine, "$lent -o own/lines -- grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status").succeeded();
    assert_eq!(command.stdout, none);
    let reader =
        run(&machine, "$lent -o '|grep -E \"^Cap(Inh|Prm|Eff|Amb)\" /proc/self/status >own/caps; cat >/dev/null' true; cat own/caps");
    assert_eq!(reader.stdout, none, "{}", reader.stderr);
    let files = run(&machine, "$lent -o own/lines -- sh -c 'ls /proc/$$/fd' </dev/null").succeeded();
    let open: Vec<&str> = files.stdout.lines().filter(|fd| !["0", "1", "2"].contains(fd)).collect();
    let without = run(&machine, "$member sh -c 'ls /proc/$$/fd' </dev/null").succeeded();
    assert_eq!(files.stdout, without.stdout, "{open:?} are rtrace's");
}

#[test]
fn no_thread_keeps_privileges_after_arming() {
    let Some(machine) = machine_with_lent() else { return };
    let script = r#"
        mkfifo own/ready; chmod 666 own/ready
        $lent -o own/lines -- sh -c 'echo $PPID >own/ready; exec sleep 30' &
        read tracer <own/ready
        cat /proc/$tracer/task/*/comm; cat /proc/$tracer/task/*/status | grep -E '^Cap(Prm|Eff)'
        kill $tracer; wait"#;
    let seen = run(&machine, script);
    let (names, sets): (Vec<&str>, Vec<&str>) = seen.stdout.lines().partition(|line| !line.starts_with("Cap"));
    assert!(names.contains(&"rtrace") && names.contains(&"rtrace-worker"), "{}", seen.stdout);
    assert_eq!(sets.len(), names.len() * 2, "{}", seen.stdout);
    assert!(sets.iter().all(|set| set.ends_with("0000000000000000")), "{}", seen.stdout);
}

/// The words of a shell script that wait until the process `$other` has executed the program `name`.
pub fn executes(name: &str) -> String {
    format!("until grep -qx {name} /proc/$other/comm; do sleep .05; done; ")
}

#[test]
fn targets_of_other_users_are_refused() {
    let Some(machine) = machine_with_lent() else { return };
    let end = "and rtrace lends its privileges only for tracing the caller's own programs; root may do it (sudo rtrace ...)";
    let refused_after = |before: &str, words: &str, what: &str| {
        let trace = run(&machine, &format!("{before}$lent -o own/lines {words}; status=$?; kill $other 2>/dev/null; exit $status"));
        assert!(
            trace.status == 125 && trace.stderr.contains(what) && trace.stderr.contains(end) && trace.stderr.lines().count() == 1,
            "{words}: {trace:?}"
        );
        assert_eq!(trace.text, "", "{words}");
    };
    let refused = |words: &str, what: &str| refused_after("", words, what);
    for option in ["-a", "-u root", "-G /", "--container x", "-C 0"] {
        refused(&format!("{option} true"), option.split(' ').next().unwrap_or_default());
    }
    refused("--kernel-stack true", "kernel stacks show");
    refused("-F all true", "page faults are recorded");
    refused("--engine tracepoint true", "--engine tracepoint cannot check");
    refused("-e sched:sched_switch true", "events other than syscalls");
    refused("--probe 'p:x do_exit' true", "--probe changes the kernel");
    refused("-e own/x.bpf.c true", "BPF programs of -e");
    refused("-s --summary-mode cgroup true", "a summary by cgroup");
    for (other, name, what) in [
        ("sleep 30 & other=$!", "sleep", "(sleep): its users and groups are not all yours"),
        // The memory of a program that the caller may not read is not shown.
        (
            "cp --remove-destination $(command -v sleep) unreadable; chmod 711 unreadable; $member ./unreadable 30 & other=$!",
            "unreadable",
            "(unreadable)",
        ),
        ("setpriv --reuid=61234 --regid=0 --clear-groups sleep 30 & other=$!", "sleep", "(sleep)"),
    ] {
        for option in ["-p", "-t"] {
            refused_after(&format!("{other}; {}", executes(name)), &format!("{option} $other"), what);
        }
    }
}

/// The program runs with its own rights, and its calls with them are not shown.
#[test]
fn calls_of_a_program_with_more_rights_are_not_shown() {
    let Some(machine) = machine_with_lent() else { return };
    for more in ["set-user-ID", "set-group-ID", "capabilities"] {
        let program = machine.path("privileged");
        let _ = fs::remove_file(&program);
        shell(&machine, "cp $(command -v cat) $dir/privileged").succeeded();
        mode(&machine.path("secret"), if more == "set-group-ID" { 0o640 } else { 0o600 });
        match more {
            "set-user-ID" => mode(&program, 0o4755),
            "set-group-ID" => mode(&program, 0o2755),
            _ => {
                let Some(()) = give(&program, &file_capabilities(true, DAC_READ_SEARCH)) else { return };
            }
        }
        for options in ["-v", "-v -s", "-v --call-graph fp", "-v --pending", "-v --call-graph dwarf -e read,openat,execve"] {
            let trace = run(&machine, &format!("$lent {options} -o own/lines -- sh -c './privileged secret; cat own/file'")).succeeded();
            assert_eq!(trace.stdout, "precious\nmine\n", "{more}, {options}: it had its rights\n{}", trace.stderr);
            assert!(!trace.text.contains("precious") && !trace.text.contains("filename: \"secret\""), "{more}, {options}:\n{}", trace.text);
            assert!(
                trace.stderr.contains(" calls are neither shown nor counted, because you may not trace the programs that made them"),
                "{}",
                trace.stderr
            );
            assert!(trace.verdict().adds_up(), "{more}, {options}: {}", trace.stderr);
            if options.contains("-s") {
                continue;
            }
            let lines = trace.lines();
            let calls = line::calls(&lines);
            // The call that executed the program was the member's own, and so are the calls after the program.
            assert!(calls.iter().any(|(_, call)| call.name == "execve" && call.args.contains("./privileged")), "{more}:\n{}", trace.text);
            assert!(trace.text.contains("filename: \"own/file\""), "{more}, {options}:\n{}", trace.text);
            let its: Vec<_> = calls.iter().filter(|(line, call)| line.comm == "privileged" && call.name != "execve").collect();
            assert!(its.is_empty(), "{more}, {options}: {its:?}");
        }
        let attached = attached(&machine, "./privileged secret; cat own/file");
        assert_eq!(attached.stdout, "precious\nmine\n", "{}", attached.stderr);
        assert!(!attached.text.contains("precious") && !attached.text.contains("filename: \"secret\""), "{}", attached.text);
    }
}

/// A program may hide its memory at any time (PR_SET_DUMPABLE), as programs that hold keys do.
#[test]
fn calls_of_a_program_that_hides_its_memory_are_not_shown() {
    let Some(machine) = machine_with_lent() else { return };
    if machine.lacks(&[Need::Program("perl")]) {
        return;
    }
    let prctl = if cfg!(target_arch = "aarch64") { 167 } else { 157 };
    let program = format!(
        "open(F, 'own/file'); syscall({prctl}, 4, 0, 0, 0, 0); open(F, 'own/hidden'); syscall({prctl}, 4, 1, 0, 0, 0); open(F, 'own/shown');"
    );
    let trace = run(&machine, &format!(r#"$lent -o own/lines -- perl -e "{program}""#)).succeeded();
    let has = |name: &str| trace.text.contains(&format!("\"own/{name}\""));
    assert!(has("file") && !has("hidden") && has("shown"), "{}", trace.text);
    assert!(
        trace.stderr.contains(" calls are neither shown nor counted, because you may not trace the programs that made them"),
        "{}",
        trace.stderr
    );
}

/// The creator of a user namespace has all capabilities in it, and so do the programs that run there.
#[test]
fn calls_of_a_program_in_a_user_namespace_are_not_shown() {
    let Some(machine) = machine_with_lent() else { return };
    let inside = "unshare --user --map-root-user cat own/file";
    if run(&machine, &format!("$member {inside}")).status != 0 {
        return unsupported("this user can make no user namespace");
    }
    let trace = run(&machine, &format!("$lent -o own/lines -- sh -c '{inside}; cat own/file'")).succeeded();
    assert_eq!(trace.stdout, "mine\nmine\n");
    assert_eq!(trace.text.matches("filename: \"own/file\"").count(), 1, "{}", trace.text);
    assert!(
        trace.stderr.contains(" calls are neither shown nor counted, because you may not trace the programs that made them"),
        "{}",
        trace.stderr
    );
}

/// kcmp(2) and pidfd_getfd(2) name descriptors of other processes, which the BPF programs look up.
#[test]
fn calls_do_not_reveal_files_behind_descriptors_of_other_users() {
    let Some(machine) = machine_with_lent() else { return };
    if machine.lacks(&[Need::Program("perl"), Need::TasksByNumber]) {
        return;
    }
    let kcmp = if cfg!(target_arch = "aarch64") { 272 } else { 312 };
    let asks = format!(r#"-e kcmp -o own/lines -- perl -e "syscall({kcmp}, $other, $other, 0, 0, 0)"; kill $other"#);
    let by_root = run(&machine, &format!("sleep 30 <secret & other=$!; $rtrace {asks}"));
    assert!(by_root.text.contains("/secret>"), "it is there to be seen:\n{}", by_root.text);
    let by_member = run(&machine, &format!("rm own/lines; sleep 30 <secret & other=$!; $lent {asks}"));
    assert!(by_member.text.contains(" kcmp(") && !by_member.text.contains("secret"), "{}\n{}", by_member.text, by_member.stderr);
    let of_own = run(&machine, &format!("$member sh -c 'exec sleep 30 <own/file' & other=$!; {} $lent {asks}", executes("sleep")));
    assert!(of_own.text.contains("/own/file>"), "{}\n{}", of_own.text, of_own.stderr);
}

/// The same holds if the file has more capabilities than rtrace uses.
#[test]
fn files_are_opened_with_the_callers_own_rights() {
    let Some(machine) = machine_with_lent() else { return };
    let all_of_root = file_capabilities(true, PERFMON_AND_BPF | DAC_READ_SEARCH | 1 << 1 | 1 << 21);
    for capabilities in [file_capabilities(false, PERFMON_AND_BPF), all_of_root] {
        let Some(()) = give(&machine.path("rtrace"), &capabilities) else { return };
        fs::create_dir_all(machine.path("closed")).expect("the test's directory is writable");
        mode(&machine.path("closed"), 0o700);
        for output in ["-o closed/lines", "-o secret", "-o own/lines --folded closed/folded"] {
            let call_graph = if output.contains("folded") { "--call-graph fp" } else { "" };
            let trace = run(&machine, &format!("$lent {call_graph} {output} -- true"));
            assert!(trace.status == 125 && trace.stderr.contains("Permission denied"), "{output}: {trace:?}");
        }
        assert_eq!(fs::read_to_string(machine.path("secret")).unwrap_or_default(), "precious\n");
        let command = run(&machine, "$lent -o own/lines -- cat secret");
        assert!(command.status == 1 && command.stderr.contains("secret: Permission denied"), "{command:?}");
        let chdir = run(&machine, "$lent -o own/lines --chdir closed -- true");
        assert!(chdir.status != 0 && chdir.stderr.contains("Permission denied"), "{chdir:?}");
        let reader = run(&machine, "$lent -o '|cat >/dev/null; cat secret' -- true");
        assert!(reader.stderr.contains("secret: Permission denied") && reader.stdout.is_empty(), "{reader:?}");
    }
}

/// The command would otherwise have the rights of the file's owner.
#[test]
fn rtrace_does_not_run_as_a_set_user_id_program() {
    let Some(machine) = machine_with_lent() else { return };
    for (bits, effective) in [(0o4755, "0:61234"), (0o2755, "61234:0"), (0o6755, "0:0")] {
        mode(&machine.path("rtrace"), bits);
        for words in ["-- id -u", "check", "--version"] {
            let refused = run(&machine, &format!("$lent {words}"));
            let said = format!(
                "rtrace: this process has the effective user and group {effective}, but was started by 61234:61234: rtrace must not be set-user-ID"
            );
            assert!(refused.status == 125 && refused.stdout.is_empty() && refused.stderr.starts_with(&said), "{words}: {refused:?}");
        }
    }
}

/// A copy of rtrace has no capabilities, so it may only do what its owner may do.
#[test]
fn a_copy_of_the_program_has_no_privileges() {
    let Some(machine) = machine_with_lent() else { return };
    let copied = run(&machine, r#"$member cp rtrace own/rtrace; $member own/rtrace --engine bpf -o own/lines true"#);
    assert!(copied.status == 125 && copied.stderr.contains("give rtrace CAP_BPF and CAP_PERFMON"), "{copied:?}");
    let check = run(&machine, "$member own/rtrace check");
    assert!(check.stdout.contains("BPF              no cap_bpf; run: rtrace check --setup\n"), "{}", check.stdout);
    // The kernel gives no capabilities to a program whose caller has set no_new_privs.
    let wants_none = run(&machine, "setpriv --no-new-privs $lent --engine bpf -o own/lines true");
    assert_eq!(wants_none.status, 125, "{wants_none:?}");
    let _traced = start_shell(&machine, &as_member("$lent -o own/lines -- sleep 0.1")).finish().succeeded();
}

/// The test runs the printed commands as they are, with its own /etc. The command that lets members read tracefs
/// affects the whole machine, so it runs only on a machine that is reserved for tests.
#[test]
fn the_printed_commands_give_and_take_the_groups_privileges() {
    let Some(machine) = machine_with_lent() else { return };
    if shell(&machine, "for tool in groupadd useradd groupdel setcap getcap getent; do command -v $tool || exit 1; done").status != 0 {
        return unsupported("no tools for users and capabilities (passwd, libcap2-bin)");
    }
    let script = run(&machine, "$rtrace check --setup --group tracers --program \"$dir/rtrace\"").succeeded().stdout;
    if script.contains("mount") && std::env::var_os("RTRACE_TEST_VM").is_none() {
        return unsupported("it changes how tracefs is mounted for the whole machine; tests/vm/run does it");
    }
    fs::write(machine.path("script"), &script).expect("the test's directory is writable");
    let undo: Vec<&str> =
        script.split_once("undo all of this:\n").expect("it says so").1.lines().map(|line| line.trim_start_matches("#     ")).collect();
    fs::write(machine.path("undo"), undo.join("\n")).expect("the test's directory is writable");
    let steps = r#"set -e
        mount --make-rprivate /; cp -a /etc etc; mount --bind etc /etc
        setcap -r rtrace
        sh script
        useradd --user-group --groups tracers ada; useradd --user-group bob
        chown ada own
        as() { setpriv --reuid="$1" --regid="$1" --init-groups env HOME=/nonexistent "$dir/rtrace" -e openat -o own/lines cat own/file; }
        as ada; grep -c 'filename: "own/file"' own/lines
        as bob 2>&1 || echo "bob may not: $?"
        ls -l rtrace | cut -d' ' -f1,3,4; getcap rtrace
        sh undo
        ls -l rtrace | cut -d' ' -f1,3,4; getcap rtrace; getent group tracers || echo gone"#;
    fs::write(machine.path("steps"), steps).expect("the test's directory is writable");
    let done = run(&machine, "exec unshare -m sh steps").succeeded();
    let name = machine.path("rtrace");
    let said = format!(
        "mine\n1\nenv: '{name}': Permission denied\nbob may not: 126\n-rwxr-x--- root tracers\nrtrace cap_perfmon,cap_bpf=p\n-rwxr-xr-x root root\ngone\n"
    );
    let said = said.replace("env: '", "env: ‘").replace("': Perm", "’: Perm");
    assert_eq!(done.stdout.replace("env: '", "env: ‘").replace("': Perm", "’: Perm"), said, "{}", done.stderr);
}
