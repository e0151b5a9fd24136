use super::*;
use crate::kernel::tracefs::NoMount;
use serde_json::{Value, json};

fn support() -> TracingSupport {
    TracingSupport {
        release: "6.18.0".into(),
        is_locked_down: false,
        tracefs: Ok(Some("/sys/kernel/tracing".into())),
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

fn reported(support: &TracingSupport, try_open: TryOpen) -> (String, ExitCode) {
    let report = report(support, try_open);
    (report.items.iter().map(Item::line).collect(), report.exit_code())
}

/// Returns the object of an item.
fn object(support: &TracingSupport, try_open: TryOpen, item: &str) -> Value {
    let items = report(support, try_open).items;
    let objects = items.iter().map(|item| serde_json::to_value(item).unwrap());
    objects.into_iter().find(|object| object["item"] == item).unwrap()
}

fn line<'t>(text: &'t str, thing: &str) -> &'t str {
    text.lines().find(|line| line.get(9..).is_some_and(|rest| rest.starts_with(thing))).unwrap()
}

#[test]
fn root_can_trace_everything() {
    let (text, code) = reported(&support(), &|_| Ok(()));
    assert_eq!(code, ExitCode::Success);
    assert_eq!(line(&text, "own commands"), "ok       own commands     perf_event_open works");
    assert_eq!(line(&text, "ring memory"), "ok       ring memory      unlimited");
    assert_eq!(line(&text, "kprobes"), "missing  kprobes          this kernel was built without CONFIG_KPROBE_EVENTS");
    assert!(line(&text, "engine").starts_with("ok       engine           bpf"));
    let (text, _) = reported(&TracingSupport { bpf: Err("no BPF here (os error 1)".into()), ..support() }, &|_| Ok(()));
    let without = "limited  engine           tracepoint: addresses instead of strings; bpf: no BPF here";
    assert_eq!(line(&text, "engine"), without);
}

#[test]
fn an_object_has_the_numbers_of_the_finding_and_the_remedy() {
    let mut support = support();
    support.privileges = Privileges { capabilities: 0, uid: 1000, paranoid: Some(1), ..support.privileges };
    let refused = |_| Err(io::Error::from_raw_os_error(13));
    let object = |item: &str| object(&support, &refused, item);
    let expected = json!({
        "type": "check_item",
        "item": "own commands",
        "state": "missing",
        "finding": "perf_event_open: Permission denied",
        "facts": {"errno": 13},
        "command": "rtrace check --setup"
    });
    assert_eq!(object("own commands"), expected);
    assert_eq!(object("perf events")["facts"], json!({"cap_perfmon": false, "perf_event_paranoid": 1}));
    assert_eq!(object("descriptors")["facts"], json!({"limit": 4096, "needed": 112, "syscalls_by_name": 498}));
    assert_eq!(object("ring memory")["facts"], json!({"bytes_per_cpu": 2564 * 1024}));
    assert_eq!(object("kprobes")["facts"], json!({"option": "CONFIG_KPROBE_EVENTS"}));
    assert_eq!((&object("kernel")["state"], &object("uprobes")["state"]), (&json!("ok"), &json!("ok")));
    assert_eq!(object("path names")["facts"], json!({"methods": []}));
}

#[test]
fn root_in_a_container_gets_advice_in_a_member_of_its_own() {
    let mut support = support();
    (support.privileges.is_in_user_namespace, support.bpf) = (true, Err("no BPF here (os error 1)".into()));
    let own = object(&support, &|_| Err(io::Error::from_raw_os_error(1)), "own commands");
    assert!(own["advice"].as_str().unwrap().contains("`--userns=host --cap-add SYS_ADMIN`") && own["command"].is_null(), "{own}");
    assert_eq!(own["finding"], "perf_event_open: Operation not permitted");
    assert_eq!(object(&support, &|_| Ok(()), "engine")["facts"], json!({"bpf": "no BPF here", "engine": "tracepoint"}));
}

#[test]
fn a_user_without_capabilities_may_trace_own_commands() {
    let mut support = support();
    support.privileges = Privileges { capabilities: 0, uid: 1000, paranoid: Some(1), ..support.privileges };
    let only_own = |attempt| match attempt {
        Attempt::OwnTask { event: 443 } => Ok(()),
        _ => Err(io::Error::from_raw_os_error(13)),
    };
    let (text, code) = reported(&support, &only_own);
    assert_eq!(code, ExitCode::Success);
    assert!(line(&text, "whole machine").starts_with("missing  whole machine    perf_event_open: Permission denied"), "{text}");
    assert!(line(&text, "whole machine").ends_with("; run: rtrace check --setup"), "{text}");
    assert!(line(&text, "ring memory").starts_with("limited  ring memory      2564 KiB per CPU"), "{text}");
    assert!(line(&text, "BPF").starts_with("missing  BPF              no cap_bpf; run: rtrace check --setup"), "{text}");
}

#[test]
fn with_lent_privileges_only_own_commands_can_be_traced() {
    let mut support = support();
    let denied = TracefsError::NoPermission { path: "/sys/kernel/tracing".into(), mode: 0o700, uid: 0, gid: 0 };
    (support.tracefs, support.raw_syscalls, support.syscall_events, support.is_lent) = (Err(denied), None, 0, true);
    let (text, code) = reported(&support, &|attempt| panic!("{attempt:?} was tried"));
    assert_eq!(code, ExitCode::Success);
    assert_eq!(
        line(&text, "tracefs"),
        "ok       tracefs          this user may not read /sys/kernel/tracing, and does not need to on this kernel"
    );
    assert!(line(&text, "whole machine").ends_with("only for programs of the caller (man rtrace, SECURITY); run: sudo rtrace"), "{text}");
}

#[test]
fn root_in_a_container_gets_advice_instead_of_a_command() {
    let mut support = support();
    let refused = |_| Err(io::Error::from_raw_os_error(1));
    support.privileges.is_in_user_namespace = true;
    let (text, _) = reported(&support, &refused);
    for thing in ["own commands", "whole machine", "BPF", "perf events"] {
        let line = line(&text, thing);
        assert!(line.contains("`--userns=host --cap-add SYS_ADMIN`") && !line.contains("; run:"), "{line}");
    }
    (support.privileges.is_in_user_namespace, support.privileges.capabilities) = (false, 0);
    let (text, _) = reported(&support, &refused);
    for thing in ["own commands", "whole machine", "BPF", "perf events"] {
        let line = line(&text, thing);
        assert!(line.contains("`--cap-add SYS_ADMIN`") && !line.contains("; run:"), "{line}");
    }
    (support.privileges.is_filtered, support.privileges.capabilities) = (true, u64::MAX);
    support.bpf = Err("the kernel refuses the BPF programs: Operation not permitted (os error 1)".to_owned());
    let (text, _) = reported(&support, &refused);
    assert!(line(&text, "own commands").contains("a seccomp filter refuses perf_event_open"), "{text}");
    assert!(
        line(&text, "BPF").starts_with("missing  BPF              the capabilities are there, so a seccomp filter refuses bpf"),
        "{text}"
    );
}

#[test]
fn without_tracefs_nothing_is_tried() {
    let mut support = support();
    (support.tracefs, support.raw_syscalls, support.syscall_events) = (Err(TracefsError::NotMounted(NoMount::NotRoot)), None, 0);
    support.bpf = Err("no cap_bpf".to_owned());
    let (text, code) = reported(&support, &|attempt| panic!("{attempt:?} was tried"));
    assert_eq!(code, ExitCode::Failed);
    assert_eq!(line(&text, "tracefs"), "missing  tracefs          not mounted; run: sudo mount -t tracefs tracefs /sys/kernel/tracing");
    assert_eq!(line(&text, "engine"), "missing  engine           none works for this user");
    support.tracefs = Err(TracefsError::NotMounted(NoMount::NoCapability));
    let (text, _) = reported(&support, &|attempt| panic!("{attempt:?} was tried"));
    assert!(
        line(&text, "tracefs").starts_with("missing  tracefs          not mounted, and using it without a mount needs CAP_SYS_ADMIN"),
        "{text}"
    );
}

#[test]
fn without_tracefs_syscalls_are_traced_by_bpf() {
    let mut support = support();
    (support.tracefs, support.raw_syscalls, support.syscall_events) = (Err(TracefsError::NotMounted(NoMount::NoCapability)), None, 0);
    support.bpf = Ok(());
    let (text, code) = reported(&support, &|attempt| panic!("{attempt:?} was tried"));
    assert_eq!(code, ExitCode::Success);
    assert_eq!(line(&text, "engine"), "limited  engine           bpf: only syscalls, no signals and no other events");
}

#[test]
fn missing_kernel_options_and_low_limits_are_named() {
    let mut support = support();
    (support.syscall_events, support.privileges.files) = (0, (Some(64), Some(64)));
    support.privileges.paranoid = None;
    let (text, _) = reported(&support, &|_| Ok(()));
    assert!(line(&text, "syscalls events").contains("CONFIG_FTRACE_SYSCALLS: rtrace uses raw_syscalls for all calls"), "{text}");
    assert_eq!(
        line(&text, "descriptors"),
        "missing  descriptors      RLIMIT_NOFILE is at most 64, a trace on 4 CPUs needs 112; run: ulimit -n 112"
    );
    assert!(line(&text, "perf events").contains("CONFIG_PERF_EVENTS"), "{text}");
}

#[test]
#[ignore = "needs root and tracefs"]
fn this_machine_can_trace() {
    let support = TracingSupport::gather().unwrap();
    let (text, code) = reported(&support, &|_| Ok(()));
    assert_eq!(code, ExitCode::Success);
    assert!(line(&text, "kernel").contains(&support.release) && line(&text, "tracefs").starts_with("ok"), "{text}");
    assert!(support.cpus > 0 && support.raw_syscalls.is_some());
}

#[test]
fn methods_for_path_names_are_listed_best_first() {
    let reported_methods = |support: TracingSupport| line(&reported(&support, &|_| Ok(())).0, "path names").to_owned();
    assert!(reported_methods(support()).starts_with("missing  path names       without BPF only addresses"));
    assert_eq!(
        reported_methods(TracingSupport { copied_bytes: Some(63), ..support() }),
        "limited  path names       without BPF: events (cut to 63 bytes)"
    );
    let both = TracingSupport { copied_bytes: Some(63), vfs_getname: true, ..support() };
    assert_eq!(reported_methods(both), "ok       path names       without BPF: vfs_getname, events (cut to 63 bytes)");
    let probes = TracingSupport { features: Features { kprobes: true, ..support().features }, ..support() };
    assert_eq!(reported_methods(probes), "ok       path names       without BPF: getname");
    let at_exit = Features { eprobes: true, synthetic: true, histograms: true, ..support().features };
    assert_eq!(reported_methods(TracingSupport { features: at_exit, ..support() }), "ok       path names       without BPF: eprobe");
    assert!(reported_methods(TracingSupport { features: Features { histograms: false, ..at_exit }, ..support() }).starts_with("missing"));
}

/// A locked-down kernel shows neither events nor types, so lines about them would mislead.
#[test]
fn on_a_locked_down_kernel_only_the_lockdown_is_reported() {
    let (text, code) = reported(&TracingSupport { is_locked_down: true, ..support() }, &|_| Ok(()));
    assert_eq!(code, ExitCode::Failed);
    assert_eq!(
        text,
        "ok       kernel           6.18.0\n\
         missing  engine           the kernel is locked down for confidentiality and lets nobody trace it, root included: \
         boot it without lockdown=confidentiality, or see kernel_lockdown(7)\n"
    );
}
