//! Values at the edges of what the kernel reads: widths of arguments, arguments that must be 0, memory that a failed
//! call wrote, and text that ends at the end of a mapping.

use crate::line;
use crate::machine::Machine;
use crate::trace::{Trace, workload};
use regex::Regex;

const CALLS: &str = "prctl,arch_prctl,futex,rseq,modify_ldt,fsconfig,kcmp,name_to_handle_at,sched_setattr,lsm_list_modules,memfd_create,\
                     execve,ioctl,pselect6,setsockopt,getsockopt";

/// Runs a scene, and returns its own calls, with complete structs: `NAME(ARGS) = RESULT`, with `ADDRESS` for addresses,
/// and without the texts of errors, tasks and the files behind descriptors.
fn calls(machine: &Machine, engine: &str, scene: &str, more: &[&str]) -> (Trace, Vec<String>) {
    let options = [&["--engine", engine, "--full", "--string-limit", "300", "-e", CALLS], more].concat();
    let trace = workload(machine, &options, &format!("edge-values {scene}")).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let patterns = [
        ("0x[0-9a-f]{12}", "ADDRESS"),
        (r" \([A-Z][a-z].*\)$", ""),
        (r"(pid[12]: )[0-9]+[^,]*", "${1}PID"),
        ("(fd: -?[0-9]+)<[^,]*>,", "$1,"),
    ];
    let patterns = patterns.map(|(pattern, with)| (Regex::new(pattern).expect("the pattern is right"), with));
    let lines = trace.lines();
    let plain = |text: String| patterns.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned());
    let all: Vec<String> = line::calls(&lines).into_iter().map(|(_, call)| plain(call.returned())).collect();
    // The program's own start makes calls of these kinds as well.
    let begin = all.iter().position(|call| call.contains(first_of(scene))).unwrap_or_else(|| panic!("{}", trace.text));
    (trace, all[begin..].to_vec())
}

/// Returns a part of the first call of a scene.
fn first_of(scene: &str) -> &'static str {
    match scene {
        "widths" => "SET_DUMPABLE",
        "checked" => "SET_NO_NEW_PRIVS",
        "outputs" => "memfd_create(",
        "strings" => "SET_NAME",
        _ => "pselect6(",
    }
}

/// Returns the numbers of a line that the program printed.
fn told(trace: &Trace, what: &str) -> Option<Vec<i64>> {
    let line = trace.stdout.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(' '))?;
    Some(line.split(' ').map(|number| number.parse().expect("it is a number")).collect())
}

fn engines() -> impl Iterator<Item = (Machine, &'static str)> {
    let machines = [(Machine::shared(), "tracepoint"), (Machine::shared_with_bpf(), "bpf")];
    machines.into_iter().filter_map(|(machine, engine)| Some((machine?, engine)))
}

/// The high half of a register is 0xbad.
#[test]
fn a_value_has_the_width_that_the_kernel_reads() {
    for (machine, engine) in engines() {
        let (_, calls) = calls(&machine, engine, "widths", &[]);
        let mut expected = vec![
            "prctl(option: SET_DUMPABLE, arg2: 0xbad00000001) = -1 EINVAL",
            "prctl(option: SET_KEEPCAPS, arg2: 12837657247745) = -1 EINVAL",
            "prctl(option: CAPBSET_READ, arg2: 0xbad00000000) = -1 EINVAL",
            "prctl(option: SET_PDEATHSIG, arg2: 0xbad00000009) = -1 EINVAL",
            "futex(uaddr: ADDRESS, op: WAKE_BITSET, val: 1, val3: 0x3) = 0",
            "futex(uaddr: ADDRESS, op: WAKE_BITSET, val: 1, val3: MATCH_ANY) = 0",
            "rseq(rseq_len: 7, flags: 0x4, sig: 0x5305) = -1 EINVAL",
        ];
        if cfg!(target_arch = "x86_64") {
            expected.push("modify_ldt(func: 119, ptr: NULL, bytecount: 0) = -1 ENOSYS");
        }
        let without: Vec<&str> = calls.iter().map(String::as_str).filter(|call| !call.starts_with("arch_prctl")).collect();
        assert_eq!(without, expected, "{engine}");
        let cpuid = calls.iter().find(|call| call.starts_with("arch_prctl"));
        assert!(cpuid.is_none_or(|call| call.contains("arg2: 12837657247744")), "{engine}: {cpuid:?}");
    }
}

#[test]
fn arguments_that_must_be_zero_are_shown_if_they_are_not() {
    for (machine, engine) in engines() {
        let (_, calls) = calls(&machine, engine, "checked", &[]);
        let key = if engine == "bpf" { "\"ro\"" } else { "ADDRESS" };
        let flag = format!("fsconfig(fd: -1, cmd: SET_FLAG, _key: {key}, _value: 0x12) = -1 EINVAL");
        let expected = [
            "prctl(option: SET_NO_NEW_PRIVS, arg2: 1, arg5: 0x5) = -1 EINVAL",
            "prctl(option: GET_NO_NEW_PRIVS, arg3: 0xbad00000000) = -1 EINVAL",
            "prctl(option: GET_NO_NEW_PRIVS) = 0",
            "prctl(option: GET_DUMPABLE) = USER",
            "prctl(option: CAP_AMBIENT, arg2: CLEAR_ALL, arg3: 0x6) = -1 EINVAL",
            "prctl(option: CAP_AMBIENT, arg2: IS_SET, arg3: CHOWN, arg4: 0x8) = -1 EINVAL",
            "fsconfig(fd: -1, cmd: CMD_CREATE, _key: 0x11, aux: 3) = -1 EINVAL",
            "fsconfig(fd: -1, cmd: CMD_CREATE) = -1 EINVAL",
            &flag,
            "futex(uaddr: ADDRESS, op: 0x7e, val: 1, utime: 0x2, uaddr2: 0x3, val3: 0x4) = -1 ENOSYS",
            "kcmp(pid1: PID, pid2: PID, type: 0x63, idx1: 0x5, idx2: 0x6) = -1 EINVAL",
            "kcmp(pid1: PID, pid2: PID, type: FILES) = 0",
        ];
        assert_eq!(calls, expected, "{engine}");
    }
}

#[test]
fn memory_that_a_failed_call_wrote_is_shown_and_no_other() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (trace, calls) = calls(&machine, "bpf", "outputs", &[]);
    let [bytes, kind] = told(&trace, "handle").expect("the program says it")[..] else { panic!("{}", trace.stdout) };
    let [mount] = told(&trace, "mount").expect("the program says it")[..] else { panic!("{}", trace.stdout) };
    let [attributes] = told(&trace, "attributes").expect("the program says it")[..] else { panic!("{}", trace.stdout) };
    assert_eq!(
        calls[1],
        format!(
            "name_to_handle_at(dfd: {}, name: \"\", handle: {{.handle_bytes: 0 => {bytes}, .handle_type: 0 => {kind}, .f_handle: \"\"}}, \
             mnt_id: [{mount}], flag: EMPTY_PATH) = -1 EOVERFLOW",
            calls[0].split_once(" = ").and_then(|(_, fd)| fd.split('<').next()).unwrap_or_default()
        )
    );
    let refused = "name_to_handle_at(dfd: -1, name: \"\", handle: {.handle_bytes: 0, .handle_type: 5, .f_handle: \"\"}, mnt_id: ADDRESS, flag: \
                   EMPTY_PATH) = -1 EBADF";
    assert_eq!(calls[2], refused);
    let size = format!("uattr: {{.size: 10 => {attributes}, .sched_policy: ");
    assert!(calls[3].contains(&size) && calls[3].ends_with("E2BIG"), "{}", calls[3]);
    if let Some(modules) = told(&trace, "modules") {
        assert_eq!(calls[4], format!("lsm_list_modules(size: [0 => {}]) = -1 E2BIG", modules[0]));
    }
}

#[test]
fn text_is_read_as_far_as_the_kernel_reads_it() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = calls(&machine, "bpf", "strings", &[]);
    let expected = [
        "prctl(option: SET_NAME, arg2: \"fifteen-letters\"...) = 0".to_owned(),
        "prctl(option: SET_NAME, arg2: ADDRESS) = -1 EFAULT".to_owned(),
        format!("memfd_create(uname: \"{}\"...) = -1 EINVAL", "m".repeat(250)),
        "execve(filename: \"/bin/true\", argv: [\"one\", \"two\", ...], envp: NULL) = -1 EFAULT".to_owned(),
        "execve(filename: \"/bin/true\", argv: [\"one\"], envp: [\"one\", \"two\", ...]) = -1 EFAULT".to_owned(),
        "ioctl(fd: -1, cmd: PERF_EVENT_IOC_SET_FILTER, arg: \"common_pid != 7\") = -1 EBADF".to_owned(),
    ];
    assert_eq!(calls, expected);
}

#[test]
fn lengths_have_the_unit_of_the_kernel() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = calls(&machine, "bpf", "lengths", &[]);
    let calls: Vec<&str> = calls.iter().map(String::as_str).filter(|call| !call.starts_with("setsockopt")).collect();
    let of = |call: &str| call.split_once("optname: ").map_or_else(|| call.to_owned(), |(_, rest)| rest.to_owned());
    let expected = [
        "pselect6(n: 2147483647, outp: [1], tsp: {.tv_sec: 0, .tv_nsec: 0}) = 1",
        "pselect6(n: -1, outp: ADDRESS, tsp: {.tv_sec: 0, .tv_nsec: 0}) = -1 EINVAL",
        "GET_FILTER, optval: [{.code: LD|W|LEN, .jt: 0, .jf: 0, .k: 0}, {.code: RET|A, .jt: 0, .jf: 0, .k: 0}], optlen: [2]) = 0",
        "GET_FILTER, optval: [], optlen: [0 => 2]) = 0",
    ];
    assert_eq!(calls.into_iter().map(of).collect::<Vec<_>>(), expected);
}
