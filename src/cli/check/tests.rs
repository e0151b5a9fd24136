use super::*;
use crate::kernel::tracefs::NoMount;

fn facts() -> Facts {
    Facts {
        release: "6.18.0".into(),
        is_locked_down: false,
        tracefs: Ok("/sys/kernel/tracing".into()),
        raw_syscalls: Some(443),
        syscall_events: 360,
        vfs_getname: false,
        copied_bytes: None,
        privileges: Privileges {
            capabilities: u64::MAX,
            uid: 0,
            paranoid: Some(2),
            mlock_kb: Some(516),
            memlock: Some(8 << 20),
            files: (Some(1024), Some(4096)),
            ..Privileges::default()
        },
        cpus: 4,
        features: Features { uprobes: true, btf: true, ..Features::default() },
        bpf: Ok(()),
        is_lent: false,
    }
}

fn reported(facts: &Facts, try_open: TryOpen) -> (String, ExitCode) {
    let mut out = Vec::new();
    let code = report(facts, try_open, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), code)
}

fn line<'t>(text: &'t str, thing: &str) -> &'t str {
    text.lines().find(|line| line.get(9..).is_some_and(|rest| rest.starts_with(thing))).unwrap()
}

#[test]
fn all_is_well_for_root() {
    let (text, code) = reported(&facts(), &|_| Ok(()));
    assert_eq!(code, ExitCode::Success);
    assert_eq!(line(&text, "own commands"), "ok       own commands     perf_event_open works");
    assert_eq!(line(&text, "ring memory"), "ok       ring memory      unlimited");
    assert_eq!(line(&text, "kprobes"), "missing  kprobes          this kernel was built without CONFIG_KPROBE_EVENTS");
    assert!(line(&text, "engine").starts_with("ok       engine           bpf"));
    let (text, _) = reported(&Facts { bpf: Err("no BPF here (os error 1)".into()), ..facts() }, &|_| Ok(()));
    let without = "limited  engine           tracepoint: addresses instead of strings; bpf: no BPF here";
    assert_eq!(line(&text, "engine"), without);
}

#[test]
fn a_user_who_may_trace_own_commands_only() {
    let mut facts = facts();
    facts.privileges = Privileges { capabilities: 0, uid: 1000, paranoid: Some(1), ..facts.privileges };
    let only_own = |attempt| match attempt {
        Attempt::OwnTask { event: 443 } => Ok(()),
        _ => Err(io::Error::from_raw_os_error(13)),
    };
    let (text, code) = reported(&facts, &only_own);
    assert_eq!(code, ExitCode::Success);
    assert!(line(&text, "whole machine").starts_with("missing  whole machine    perf_event_open: Permission denied"), "{text}");
    assert!(line(&text, "whole machine").ends_with("; run: rtrace check --setup"), "{text}");
    assert!(line(&text, "ring memory").starts_with("limited  ring memory      2564 KiB per CPU"), "{text}");
    assert!(line(&text, "BPF").starts_with("missing  BPF              no cap_bpf; run: rtrace check --setup"), "{text}");
}

#[test]
fn a_user_to_whom_privileges_are_lent() {
    let mut facts = facts();
    let denied = TracefsError::NoPermission { path: "/sys/kernel/tracing".into(), mode: 0o700, uid: 0, gid: 0 };
    (facts.tracefs, facts.raw_syscalls, facts.syscall_events, facts.is_lent) = (Err(denied), None, 0, true);
    let (text, code) = reported(&facts, &|attempt| panic!("{attempt:?} was tried"));
    assert_eq!(code, ExitCode::Success);
    assert_eq!(line(&text, "tracefs"), "ok       tracefs          /sys/kernel/tracing is not for this user, who needs it for nothing here");
    assert!(line(&text, "whole machine").ends_with("for a caller's own programs alone (man rtrace, SECURITY); run: sudo rtrace"), "{text}");
}

#[test]
fn root_in_a_container() {
    let mut facts = facts();
    let refused = |_| Err(io::Error::from_raw_os_error(1));
    facts.privileges.is_in_user_namespace = true;
    let (text, _) = reported(&facts, &refused);
    for thing in ["own commands", "whole machine", "BPF", "perf events"] {
        let line = line(&text, thing);
        assert!(line.contains("`--userns=host --cap-add SYS_ADMIN`") && !line.contains("; run:"), "{line}");
    }
    (facts.privileges.is_in_user_namespace, facts.privileges.capabilities) = (false, 0);
    let (text, _) = reported(&facts, &refused);
    for thing in ["own commands", "whole machine", "BPF", "perf events"] {
        let line = line(&text, thing);
        assert!(line.contains("`--cap-add SYS_ADMIN`") && !line.contains("; run:"), "{line}");
    }
    (facts.privileges.is_filtered, facts.privileges.capabilities) = (true, u64::MAX);
    facts.bpf = Err("the kernel does not take the BPF programs: Operation not permitted (os error 1)".to_owned());
    let (text, _) = reported(&facts, &refused);
    assert!(line(&text, "own commands").contains("a seccomp filter refuses perf_event_open"), "{text}");
    assert!(
        line(&text, "BPF").starts_with("missing  BPF              the capabilities are there, so a seccomp filter refuses bpf"),
        "{text}"
    );
}

#[test]
fn without_tracefs_nothing_is_tried() {
    let mut facts = facts();
    (facts.tracefs, facts.raw_syscalls, facts.syscall_events) = (Err(TracefsError::NotMounted(NoMount::NotRoot)), None, 0);
    facts.bpf = Err("no cap_bpf".to_owned());
    let (text, code) = reported(&facts, &|attempt| panic!("{attempt:?} was tried"));
    assert_eq!(code, ExitCode::Failed);
    assert_eq!(line(&text, "tracefs"), "missing  tracefs          not mounted; run: sudo mount -t tracefs tracefs /sys/kernel/tracing");
    assert_eq!(line(&text, "engine"), "missing  engine           none works for this user");
    facts.tracefs = Err(TracefsError::NotMounted(NoMount::NoCapability));
    let (text, _) = reported(&facts, &|attempt| panic!("{attempt:?} was tried"));
    assert!(
        line(&text, "tracefs").starts_with("missing  tracefs          not mounted, and without a mount it takes CAP_SYS_ADMIN"),
        "{text}"
    );
}

#[test]
fn without_tracefs_syscalls_are_traced_by_bpf() {
    let mut facts = facts();
    (facts.tracefs, facts.raw_syscalls, facts.syscall_events) = (Err(TracefsError::NotMounted(NoMount::NoCapability)), None, 0);
    facts.bpf = Ok(());
    let (text, code) = reported(&facts, &|attempt| panic!("{attempt:?} was tried"));
    assert_eq!(code, ExitCode::Success);
    assert_eq!(line(&text, "engine"), "limited  engine           bpf: only syscalls, no signals and no other events");
}

#[test]
fn kernels_that_lack_something() {
    let mut facts = facts();
    (facts.syscall_events, facts.privileges.files) = (0, (Some(64), Some(64)));
    facts.privileges.paranoid = None;
    let (text, _) = reported(&facts, &|_| Ok(()));
    assert!(line(&text, "syscalls events").contains("CONFIG_FTRACE_SYSCALLS: all goes through raw_syscalls"), "{text}");
    assert_eq!(
        line(&text, "descriptors"),
        "missing  descriptors      RLIMIT_NOFILE is at most 64, a trace on 4 CPUs needs 112; run: ulimit -n 112"
    );
    assert!(line(&text, "perf events").contains("CONFIG_PERF_EVENTS"), "{text}");
}

#[test]
#[ignore = "needs root and tracefs"]
fn this_machine() {
    let facts = Facts::gather().unwrap();
    let (text, code) = reported(&facts, &|_| Ok(()));
    assert_eq!(code, ExitCode::Success);
    assert!(line(&text, "kernel").contains(&facts.release) && line(&text, "tracefs").starts_with("ok"), "{text}");
    assert!(facts.cpus > 0 && facts.raw_syscalls.is_some());
}

#[test]
fn path_names_without_bpf() {
    let says = |facts: Facts| line(&reported(&facts, &|_| Ok(())).0, "path names").to_owned();
    assert!(says(facts()).starts_with("missing  path names       without BPF only addresses"));
    assert_eq!(says(Facts { copied_bytes: Some(63), ..facts() }), "limited  path names       without BPF: events (cut to 63 bytes)");
    let both = Facts { copied_bytes: Some(63), vfs_getname: true, ..facts() };
    assert_eq!(says(both), "ok       path names       without BPF: vfs_getname, events (cut to 63 bytes)");
    let probes = Facts { features: Features { kprobes: true, ..facts().features }, ..facts() };
    assert_eq!(says(probes), "ok       path names       without BPF: getname");
    let at_exit = Features { eprobes: true, synthetic: true, histograms: true, ..facts().features };
    assert_eq!(says(Facts { features: at_exit, ..facts() }), "ok       path names       without BPF: eprobe");
    assert!(says(Facts { features: Features { histograms: false, ..at_exit }, ..facts() }).starts_with("missing"));
}

/// A locked-down kernel shows neither events nor types, and what would be said of them would mislead.
#[test]
fn a_locked_down_kernel_is_named_in_place_of_all_that_it_hides() {
    let (text, code) = reported(&Facts { is_locked_down: true, ..facts() }, &|_| Ok(()));
    assert_eq!(code, ExitCode::Failed);
    assert_eq!(
        text,
        "ok       kernel           6.18.0\n\
         missing  engine           the kernel is locked down for confidentiality and lets nobody trace it, root included: \
         boot it without lockdown=confidentiality, or see kernel_lockdown(7)\n"
    );
}
