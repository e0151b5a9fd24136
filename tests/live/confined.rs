//! rtrace in real containers of runc and bubblewrap, with as few rights as docker's containers have; and traces of a
//! container from the host.
//!
//! The container has the host's programs: its /usr is mounted into the container, and so is the directory of the build.

use crate::cgroup::unified;
use crate::machine::{self, Machine, engine};
use crate::needs::Need;
use crate::trace::{Trace, shell, start_shell, trace};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The capabilities of root in docker's containers.
const OF_DOCKER: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// The system calls that docker's seccomp profile refuses to containers without further capabilities, as far as rtrace
/// needs them.
const REFUSED_BY_DOCKER: [&str; 18] = [
    "bpf",
    "perf_event_open",
    "ptrace",
    "process_vm_readv",
    "mount",
    "umount2",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "move_mount",
    "open_tree",
    "unshare",
    "setns",
    "lookup_dcookie",
    "userfaultfd",
    "kexec_load",
    "add_key",
];

/// The rights of a container.
#[derive(Clone, Copy, Default)]
struct Rights<'a> {
    /// The capabilities beyond docker's default ones.
    capabilities: &'a [&'a str],
    is_filtered: bool,
    has_tracefs: bool,
}

const ALL: Rights = Rights { capabilities: &["CAP_SYS_ADMIN"], is_filtered: false, has_tracefs: false };

/// A container of runc, which is deleted when the value is dropped.
struct Runc<'m> {
    machine: &'m Machine,
    id: String,
    /// The shell line that runs it and waits for its end.
    run: String,
}

impl<'m> Runc<'m> {
    /// Prepares a container that will run a shell script. The script has the variables `$rtrace`, `$workload` and
    /// `$engine`, and `/out` is the test's directory.
    fn new(machine: &'m Machine, rights: Rights, script: &str) -> Runc<'m> {
        let id = crate::containers::id(machine, 0);
        make_root(machine);
        let build = Path::new(machine::rtrace()).parent().expect("it is in a directory");
        let engine = machine::engine_asked_for().map(|engine| format!("--engine {engine}")).unwrap_or_default();
        let setup = format!("rtrace=/build/rtrace; workload=/build/examples/workload; engine='{engine}'\n");
        fs::write(machine.path("inside"), setup + script).expect("the test's directory is writable");
        shell(machine, "cd $dir && rm -f config.json lines && runc spec").succeeded();
        let file = machine.path("config.json");
        let text = fs::read_to_string(&file).expect("runc has written it");
        let mut config: Value = serde_json::from_str(&text).expect("it is JSON");
        config["process"]["terminal"] = json!(false);
        config["process"]["args"] = json!(["sh", "/out/inside"]);
        let capabilities: Vec<&str> = OF_DOCKER.iter().chain(rights.capabilities).copied().collect();
        config["process"]["capabilities"] = json!({ "bounding": capabilities, "effective": capabilities, "permitted": capabilities });
        config["root"] = json!({ "path": "root", "readonly": true });
        config["linux"]["namespaces"].as_array_mut().expect("a list").push(json!({ "type": "cgroup" }));
        config["linux"]["cgroupsPath"] = json!(format!("/docker-{id}.scope"));
        if rights.is_filtered {
            let refused = json!({ "names": REFUSED_BY_DOCKER, "action": "SCMP_ACT_ERRNO", "errnoRet": libc::EPERM });
            config["linux"]["seccomp"] = json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refused] });
        }
        let mounts = config["mounts"].as_array_mut().expect("a list");
        let mut bind = |from: &str, to: &str, how: &str| {
            mounts.push(json!({ "destination": to, "source": from, "type": "none", "options": ["rbind", how] }));
        };
        bind("/usr", "/usr", "ro");
        bind("/etc", "/etc", "ro");
        bind(build.to_str().expect("the target directory's name is UTF-8"), "/build", "ro");
        bind(machine.dir().to_str().expect("the temporary directory's name is UTF-8"), "/out", "rw");
        if rights.has_tracefs {
            bind("/sys/kernel/tracing", "/sys/kernel/tracing", "rw");
        }
        fs::write(file, config.to_string()).expect("the test's directory is writable");
        let run = format!("cd \"$dir\" && exec runc --root \"$dir/runc\" run {id} < /dev/null");
        Runc { machine, id, run }
    }

    fn finish(&self) -> Trace {
        let run = shell(self.machine, &self.run);
        Trace { text: fs::read_to_string(self.machine.path("lines")).unwrap_or_default(), ..run }
    }
}

/// Creates a root directory into which the host's programs are mounted.
fn make_root(machine: &Machine) {
    let root = machine.path("root");
    for dir in ["usr", "etc", "proc", "sys", "dev", "tmp", "run", "out", "build"] {
        fs::create_dir_all(format!("{root}/{dir}")).expect("the test's directory is writable");
    }
    for link in ["bin", "lib", "lib64", "sbin"] {
        let _ = std::os::unix::fs::symlink(format!("usr/{link}"), format!("{root}/{link}"));
    }
}

impl Drop for Runc<'_> {
    fn drop(&mut self) {
        shell(self.machine, &format!("runc --root \"$dir/runc\" delete --force {} 2>&1", self.id));
    }
}

/// Runs a script in a container, and returns rtrace's output and exit status.
fn inside(machine: &Machine, rights: Rights, script: &str) -> Trace {
    Runc::new(machine, rights, script).finish()
}

/// Whether the program that creates containers is installed.
fn has(machine: &Machine, program: &'static str) -> bool {
    !machine.lacks(&[Need::Program(program)])
}

/// A shell script, and the check of its results.
type Case = (&'static str, fn(&Trace));

/// The basic uses of a tracer.
const CORE: [Case; 6] = [
    (r#""$rtrace" $engine -v -o /out/lines -- true"#, |run| {
        run.conserved();
        assert!(run.count("execve") == 1 && run.count("mmap") > 2, "{}", run.text);
    }),
    (r#""$rtrace" $engine -v -o /out/lines -e openat cat /etc/hostname"#, |run| {
        assert!(run.conserved().printed == run.count("openat") && run.count("openat") > 2, "{}", run.text);
        assert!(engine() != "bpf" || run.text.contains("\"/etc/hostname\""), "{}", run.text);
    }),
    (r#""$rtrace" $engine -v -o /out/lines -e lseek "$workload" forks 20"#, |run| {
        assert_eq!((run.conserved().issued, run.tags()), (20, (1..=20).collect()), "{}", run.stderr);
    }),
    (r#""$rtrace" $engine -v -s -e lseek -o /out/lines "$workload" forks 20"#, |run| {
        let row = run.text.lines().find(|line| line.trim_start().starts_with("lseek ")).map(|line| line.split_whitespace().nth(1));
        assert_eq!(row, Some(Some("20")), "{}\n{}", run.text, run.stderr);
        let verdict = run.verdict();
        assert_eq!((verdict.issued, verdict.printed, verdict.lost), (20, 20, 0), "{}", run.stderr);
    }),
    (
        r#"mkfifo /out/fifo; { read go; "$workload" tag 8001; : > /out/tagged; } < /out/fifo & exec 3> /out/fifo
        "$rtrace" $engine -v -o /out/lines -e lseek -p $! sh -c 'echo go >&3; until [ -e /out/tagged ]; do sleep .05; done'
        rm /out/fifo /out/tagged"#,
        |run| {
            run.conserved();
            assert_eq!(run.tags(), [8001], "{}", run.stderr);
        },
    ),
    (r#""$rtrace" $engine -v -o /out/lines -e lseek --call-graph dwarf "$workload" tag 8001"#, |run| {
        assert!(run.text.contains("workload::main") && run.verdict().printed == 1, "{}\n{}", run.text, run.stderr);
    }),
];

/// Runs the basic uses and checks their results.
fn core_holds(of: impl Fn(&str) -> Trace) {
    for (script, check) in CORE {
        let run = of(script);
        assert_eq!(run.status, 0, "{script}\n{}", run.stderr);
        check(&run);
    }
}

#[test]
fn cap_sys_admin_suffices_in_a_container() {
    let Some(machine) = Machine::shared() else { return };
    if !has(&machine, "runc") {
        return;
    }
    core_holds(|script| inside(&machine, ALL, script));
    let run = inside(&machine, ALL, r#""$rtrace" $engine -v -o /out/lines --signals -e kill sh -c 'kill -USR1 $$'"#);
    assert_eq!((run.status, run.conserved().printed), (138, 1), "{}", run.stderr);
    let signal = run.text.lines().find(|line| line.contains("--- SIGUSR1 ")).unwrap_or_default();
    assert!(signal.contains("(sh)") || engine() != "bpf", "{}", run.text);
}

/// Without tracefs, these two capabilities are enough to trace system calls.
#[test]
fn cap_bpf_and_cap_perfmon_suffice_for_system_calls() {
    let Some(machine) = Machine::shared() else { return };
    if engine() != "bpf" || !has(&machine, "runc") {
        return;
    }
    let rights = Rights { capabilities: &["CAP_BPF", "CAP_PERFMON"], ..Rights::default() };
    core_holds(|script| inside(&machine, rights, script));
}

/// The error is one sentence with the missing right and the remedy.
#[test]
fn errors_name_the_missing_rights_and_the_remedies() {
    let Some(machine) = Machine::shared() else { return };
    if !has(&machine, "runc") {
        return;
    }
    let tracefs = "rtrace: raw_syscalls:sys_enter: tracefs is not mounted, and ";
    let cases: [(Rights, String); 6] = [
        (Rights::default(), format!("{tracefs}using it without a mount needs CAP_SYS_ADMIN, which this process does not have: start the container with `--cap-add SYS_ADMIN`")),
        (Rights { is_filtered: true, ..Rights::default() }, format!("{tracefs}using it without a mount needs CAP_SYS_ADMIN, ")),
        (
            Rights { is_filtered: true, ..ALL },
            format!("{tracefs}a seccomp filter does not let rtrace use it without a mount: start the container with `--security-opt seccomp=unconfined`"),
        ),
        (
            Rights { has_tracefs: true, ..Rights::default() },
            "rtrace: cannot open side band on CPU 0: Permission denied (this is root without CAP_PERFMON: start the container with `--cap-add SYS_ADMIN`, or `--cap-add PERFMON --cap-add BPF`".to_owned(),
        ),
        (
            Rights { has_tracefs: true, is_filtered: true, ..Rights::default() },
            "rtrace: cannot open side band on CPU 0: Operation not permitted (this is root without CAP_PERFMON: start the container with `--cap-add SYS_ADMIN`".to_owned(),
        ),
        (
            Rights { has_tracefs: true, is_filtered: true, ..ALL },
            "rtrace: cannot open side band on CPU 0: Operation not permitted (the capabilities are there, so a seccomp filter refuses perf_event_open: \
             start the container with `--security-opt seccomp=unconfined`"
                .to_owned(),
        ),
    ];
    for (rights, sentence) in cases {
        // This tests the default engine's fallback and its reason, whatever engine the other tests use.
        let run = inside(&machine, rights, r#""$rtrace" true"#);
        let last = run.stderr.lines().last().unwrap_or_default();
        assert!(run.status == 125 && last.starts_with(&sentence), "{}\nand not {sentence}", run.stderr);
        assert_eq!(run.stderr.lines().filter(|line| line.contains("(docker, podman)")).count(), 1, "{}", run.stderr);
    }
    let bpf = Rights { is_filtered: true, has_tracefs: true, ..ALL };
    let run = inside(&machine, bpf, r#""$rtrace" --engine bpf true"#);
    let sentence = "rtrace: the kernel refuses the BPF programs: Operation not permitted (the capabilities are there, so a seccomp filter refuses bpf: ";
    assert!(run.status == 125 && run.stderr.starts_with(sentence), "{}", run.stderr);
    let two = Rights { capabilities: &["CAP_BPF", "CAP_PERFMON"], is_filtered: true, has_tracefs: false };
    let run = inside(&machine, two, r#""$rtrace" true"#);
    let both = run.stderr.starts_with(tracefs)
        && run.stderr.contains("; the BPF engine needs no tracefs, but ")
        && run.stderr.contains("a seccomp filter refuses bpf");
    assert!(both, "{}", run.stderr);
    let check = inside(&machine, bpf, r#""$rtrace" check"#);
    assert!(check.stdout.contains("a seccomp filter refuses perf_event_open: ") && !check.stdout.contains("--setup"), "{}", check.stdout);
}

/// bubblewrap creates a user namespace, whose root has no capabilities outside of it.
#[test]
fn capabilities_in_a_user_namespace_do_not_suffice() {
    let Some(machine) = Machine::shared() else { return };
    if !has(&machine, "bwrap") {
        return;
    }
    let wrapped = |words: &str| {
        let bwrap = "bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev";
        shell(&machine, &format!("{bwrap} \"$rtrace\" {words}"))
    };
    let advice = "must be held in the initial user namespace, and this process is in another one: start the container with \
                  `--userns=host --cap-add SYS_ADMIN` (docker, podman, as root)";
    for words in ["true", "-s -- true", "-p 1 -- sleep 1", "-a -- true"] {
        let run = wrapped(words);
        let error = run.stderr.lines().find(|line| line.starts_with("rtrace: cannot open ")).unwrap_or_default();
        assert!(run.status == 125 && error.contains(&format!("(CAP_PERFMON {advice}")), "{words}: {}", run.stderr);
        assert_eq!(run.stderr.matches("initial user namespace").count(), 1, "{words}: {}", run.stderr);
    }
    let run = wrapped("--engine bpf true");
    assert!(run.status == 125 && run.stderr.contains(&format!("(CAP_BPF and CAP_PERFMON {advice}")), "{}", run.stderr);
    let check = wrapped("check").stdout;
    assert!(check.contains(advice) && !check.contains("--setup"), "{check}");
}

/// The container has all other namespaces, and capabilities in the initial user namespace.
#[test]
fn namespaces_other_than_a_user_namespace_do_not_prevent_tracing() {
    let Some(machine) = Machine::shared() else { return };
    if !has(&machine, "bwrap") {
        return;
    }
    let engine = machine::engine_asked_for().map(|engine| format!("--engine {engine}")).unwrap_or_default();
    core_holds(|script| {
        let script = format!("engine='{engine}'\n{}", script.replace("/out/", "$dir/"));
        fs::write(machine.path("inside"), script).expect("the test's directory is writable");
        let unshare = "--unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup --die-with-parent --cap-add ALL";
        let places = "--ro-bind / / --proc /proc --dev /dev --bind \"$dir\" \"$dir\"";
        let run = shell(&machine, &format!("bwrap {unshare} {places} sh \"$dir/inside\""));
        Trace { text: fs::read_to_string(machine.path("lines")).unwrap_or_default(), ..run }
    });
}

/// The container is selected by each of the options that can name it from outside.
#[test]
fn a_container_is_traced_from_the_host() {
    let Some(machine) = Machine::shared() else { return };
    if !has(&machine, "runc") {
        return;
    }
    for whom in ["--container", "-G", "-p"] {
        for file in ["go", "done", "ready"] {
            let _ = fs::remove_file(machine.path(file));
        }
        let script = r#"
            : > /out/ready
            until [ -e /out/go ]; do sleep .05; done
            "$workload" tag 8001; sh -c '"$1" tag 8002; "$1" forks 3' sh "$workload"
            : > /out/done"#;
        let container = Runc::new(&machine, Rights { is_filtered: true, ..Rights::default() }, script);
        let cgroup = unified().join(format!("docker-{}.scope", container.id));
        let running = start_shell(&machine, &container.run);
        let wait = "until [ -e $dir/ready ]; do sleep .05; done";
        shell(&machine, wait).succeeded();
        let first = || {
            let all = fs::read_to_string(cgroup.join("cgroup.procs")).expect("the container runs");
            all.lines().next().expect("somebody is in it").to_owned()
        };
        let named = match whom {
            "--container" => container.id[..14].to_owned(),
            "-G" => cgroup.to_str().expect("UTF-8").to_owned(),
            _ => first(),
        };
        let timer = ["sh", "-c", r#": > "$dir/go"; until [ -e "$dir/done" ]; do sleep .05; done"#];
        let run = trace(&machine, &[whom, &named, "-e", "lseek"], &timer).succeeded();
        assert_eq!(run.tags(), [1, 2, 3, 8001, 8002], "{whom} {named}: {}\n{}", run.text, run.stderr);
        let verdict = run.conserved();
        assert_eq!((verdict.issued, verdict.lost), (5, 0), "{whom}: {}", run.stderr);
        assert!(run.text.lines().filter(|line| line.contains(" lseek(")).all(|line| line.contains(" workload/")), "{}", run.text);
        running.finish().succeeded();
    }
}

/// podman records the names itself, in directories that are mounted for this test only.
#[test]
fn a_container_of_podman_is_found_by_its_name() {
    let Some(machine) = Machine::shared() else { return };
    if !has(&machine, "podman") {
        return;
    }
    make_root(&machine);
    let id = crate::containers::id(&machine, 0);
    let name = format!("test{}", &id[..12]);
    let engine = machine::engine_asked_for().map(|engine| format!("--engine {engine}")).unwrap_or_default();
    let script = format!(
        r#"set -e
        mount -t tmpfs none /run; mkdir -p /var/lib/containers; mount -t tmpfs none /var/lib/containers
        build=$(dirname "$rtrace")
        podman() {{ command podman --runtime runc --cgroup-manager cgroupfs "$@"; }}
        # conmon ends a little later.
        tidy() {{ for i in 1 2 3 4 5 6 7 8 9; do rmdir /sys/fs/cgroup/*/libpod_parent/conmon /sys/fs/cgroup/*/libpod_parent 2>/dev/null && break; sleep .1; done; }}
        trap 'podman rm -f -t 0 {name} kept{name} >&2; tidy' EXIT
        for name in {name} kept{name}; do
            podman run -d --name $name --network none --ulimit nofile=1000:1000 --ulimit nproc=1000:1000 -v /usr:/usr:ro -v "$build:/build:ro" -v "$dir:/out" \
                --rootfs "$dir/root" sh -c 'until [ -e /out/go-'$name' ]; do sleep .05; done; /build/examples/workload tag 8001; : > /out/done-'$name'; sleep 1000' >&2
        done
        "$rtrace" {engine} -v -o "$dir/lines" -e lseek --container {name} sh -c ': > "$dir/go-{name}"; until [ -e "$dir/done-{name}" ]; do sleep .05; done'
        podman stop -t 0 {name} >&2
        "$rtrace" {engine} --container {name} true || echo status $?"#
    );
    fs::write(machine.path("script"), script).expect("the test's directory is writable");
    let run = shell(&machine, "unshare --mount sh \"$dir/script\"");
    let run = Trace { text: fs::read_to_string(machine.path("lines")).unwrap_or_default(), ..run };
    assert_eq!((run.status, run.tags()), (0, vec![8001]), "{}\n{}", run.text, run.stderr);
    run.conserved();
    assert_eq!(run.stdout, "status 125\n", "{}", run.stderr);
    assert!(
        run.stderr.contains(&format!("rtrace: container {name} (")) && run.stderr.contains(") is not running: it has no cgroup"),
        "{}",
        run.stderr
    );
}
