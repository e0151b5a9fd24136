//! Calls about objects of the kernel: BPF programs, perf events, filters, rings, keys, traced tasks. The structs that
//! they pass depend on a command, on a type, or on flags.

use crate::line;
use crate::machine::Machine;
use crate::trace::{Trace, workload};
use regex::Regex;

/// Traces calls of a scene of `workload`. Returns them, with `ADDRESS` in place of each address and without the files
/// behind descriptors.
pub fn calls(machine: &Machine, engine: &str, names: &str, scene: &str) -> (Trace, Vec<String>) {
    let options = ["--engine", engine, "--full", "-e", names];
    let trace = workload(machine, &options, scene).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let [file, address] = ["([fF]d: [0-9]+)<[^>]*>", "0x[0-9a-f]{9,}"].map(|text| Regex::new(text).expect("it is one"));
    let lines = trace.lines();
    let plain = |args: &str| address.replace_all(&file.replace_all(args, "$1"), "ADDRESS").into_owned();
    let calls = line::calls(&lines).into_iter().map(|(_, call)| format!("{}({})", call.name, plain(&call.args))).collect();
    (trace, calls)
}

/// Compares the calls of a scene in both engines: the BPF programs copy structs, and the tracepoints have their
/// addresses.
pub fn assert_calls(names: &str, scene: &str, expected: &[(&str, &str, &str)]) {
    let of = |calls: Vec<String>, value: fn(&(&str, &str, &str)) -> String| {
        let wanted: Vec<String> = expected.iter().map(value).collect();
        assert_eq!(calls.len(), wanted.len(), "{calls:#?}");
        calls.into_iter().zip(wanted).for_each(|(call, wanted)| assert_eq!(call, wanted));
    };
    if let Some(machine) = Machine::shared_with_bpf() {
        of(calls(&machine, "bpf", names, scene).1, |(before, memory, after)| format!("{before}{memory}{after}"));
    }
    let Some(machine) = Machine::shared() else { return };
    of(calls(&machine, "tracepoint", names, scene).1, |(before, memory, after)| {
        format!("{before}{}{after}", if memory.is_empty() { "" } else { "ADDRESS" })
    });
}

#[test]
fn the_command_of_bpf_says_what_the_attributes_are() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (trace, calls) = calls(&machine, "bpf", "bpf", "kernel-objects bpf");
    let loaded =
        trace.stdout.lines().find_map(|line| line.strip_prefix("loaded ")).unwrap_or_else(|| panic!("{}", trace.stdout)).to_owned();
    let log = Regex::new(r#"\.log_buf: "([^"]*)"(\.\.\.)?"#).expect("it is one");
    let load = &calls[2];
    assert!(log.captures(load).is_some_and(|found| found[1].contains("processed") || found[1].starts_with("func#0")), "{load}");
    let expected = [
        "bpf(cmd: MAP_CREATE, uattr: {.map_type: ARRAY, .key_size: 5, .value_size: 8, .max_entries: 77, .map_flags: NUMA_NODE|RDONLY, \
         .inner_map_fd: 0, .numa_node: 9, .map_name: \"objects\"}, size: 44)"
            .to_owned(),
        "bpf(cmd: MAP_UPDATE_ELEM, uattr: {.map_fd: 997, .key: 0x11111111, .value: 0x22222222, .flags: NOEXIST}, size: 32)".to_owned(),
        "bpf(cmd: PROG_LOAD, uattr: {.prog_type: SOCKET_FILTER, .insn_cnt: 2, .insns: [{.code: ALU64|MOV|K, .regs: {.dst_reg: 0, .src_reg: \
         0}, .off: 0, .imm: 42}, {.code: JMP|EXIT|K, .regs: {.dst_reg: 0, .src_reg: 0}, .off: 0, .imm: 0}], .license: \"Dual BSD/GPL\", \
         .log_level: LEVEL1, .log_size: 4096, LOG, .kern_version: 0, .prog_flags: 0, .prog_name: \"forty_two\"}, size: 64)"
            .to_owned(),
        "bpf(cmd: OBJ_GET, uattr: {.pathname: \"/nonexistent/objects\", .bpf_fd: 0, .file_flags: RDONLY}, size: 16)".to_owned(),
        "bpf(cmd: PROG_ATTACH, uattr: {.target_fd: 71, .attach_bpf_fd: 72, .attach_type: CGROUP_SOCK_OPS, .attach_flags: ALLOW_MULTI|REPLACE, \
         .replace_bpf_fd: 73}, size: 20)"
            .to_owned(),
        "bpf(cmd: RAW_TRACEPOINT_OPEN, uattr: {.name: \"no_such_event\", .prog_fd: 997}, size: 16)".to_owned(),
        "bpf(cmd: MAP_FREEZE, uattr: {.map_fd: 997, .tail: \"\\x00\\x00\\x00\\x00tail\"}, size: 12)".to_owned(),
        "bpf(cmd: LINK_CREATE, uattr: {.prog_fd: 997, .target_fd: 0, .attach_type: TRACE_UPROBE_MULTI, .flags: 0, .uprobe_multi: {.path: \
         \"/nonexistent/program\", .offsets: [17, 34], .ref_ctr_offsets: NULL, .cookies: NULL, .cnt: 2, .flags: RETURN, .pid: 0}}, size: 64)"
            .to_owned(),
        "bpf(cmd: LINK_CREATE, uattr: {.prog_fd: 997, .target_ifindex: 7, .attach_type: TCX_INGRESS, .flags: 0, .tcx: {.relative_fd: 74, \
         .expected_revision: 75}}, size: 32)"
            .to_owned(),
        format!("bpf(cmd: OBJ_GET_INFO_BY_FD, uattr: {{.bpf_fd: {loaded}, .info_len: 16, .info: {{.type: SOCKET_FILTER, .id: ID, .tag: TAG}}}}, size: 16)"),
        "bpf(cmd: 0x270f, uattr: ADDRESS, size: 8)".to_owned(),
    ];
    let info = Regex::new(r#"\.id: [0-9]+, \.tag: ".*"\}\}"#).expect("it is one");
    for (call, expected) in calls.iter().zip(&expected) {
        let call = log.replace(call, "LOG");
        assert_eq!(info.replace(&call, ".id: ID, .tag: TAG}}"), *expected);
    }
    assert_eq!(calls.len(), expected.len(), "{calls:#?}");
    let Some(machine) = Machine::shared() else { return };
    let (_, calls) = self::calls(&machine, "tracepoint", "bpf", "kernel-objects bpf");
    assert_eq!(calls[0], "bpf(cmd: MAP_CREATE, uattr: ADDRESS, size: 44)");
    assert_eq!(calls.len(), expected.len());
}

#[test]
fn the_type_of_a_perf_event_says_what_its_configuration_is() {
    let (before, after) = ("perf_event_open(attr_uptr: ", ", pid: -1, cpu: -1, group_fd: -1");
    let samples = ".sample_type: IP|TID, .read_format: GROUP";
    let plain = ".branch_sample_type: 0";
    let attributes = [
        (
            format!(
                "{{.type: HARDWARE, .size: VER0, .config: INSTRUCTIONS, .sample_period: 1000, {samples}, .flags: disabled|exclude_kernel, \
                 .wakeup_events: 0, .config1: 0}}"
            ),
            ", flags: FD_CLOEXEC)",
        ),
        (
            format!(
                "{{.type: SOFTWARE, .size: VER1, .config: PAGE_FAULTS, .sample_freq: 4999, {samples}, .flags: requested_skid_0|freq, \
                 .wakeup_events: 17, .config1: 0, .config2: 0}}"
            ),
            ")",
        ),
        (
            format!(
                "{{.type: TRACEPOINT, .size: VER0, .config: 321, .sample_period: 0, {samples}, .flags: watermark, .wakeup_watermark: 4096, \
                 .config1: 0}}"
            ),
            ")",
        ),
        (
            format!(
                "{{.type: HW_CACHE, .size: VER0, .config: {{.cache: L1D, .op: WRITE, .result: MISS}}, .sample_period: 0, {samples}, .flags: \
                 disabled, .wakeup_events: 0, .config1: 0}}"
            ),
            ")",
        ),
        (
            format!(
                "{{.type: BREAKPOINT, .size: VER1, .config: 0, .sample_period: 0, {samples}, .flags: disabled, .wakeup_events: 0, .bp_type: RW, \
                 .bp_addr: 0x12345678, .bp_len: 4}}"
            ),
            ")",
        ),
        (
            format!(
                "{{.type: 0x2a, .size: VER1, .config: 0xabc, .sample_period: 0, {samples}, .flags: 0, .wakeup_events: 0, .config1: 0xdef, \
                 .config2: 0x123}}"
            ),
            ")",
        ),
        (
            format!(
                "{{.type: SOFTWARE, .size: VER0, .config: CPU_CLOCK, .sample_period: 0, {samples}, .flags: 0, .wakeup_events: 0, .config1: 0}}"
            ),
            ", flags: PID_CGROUP)",
        ),
    ];
    assert!(attributes.iter().all(|(text, _)| !text.contains(plain)), "attributes of the first versions");
    let after: Vec<String> = attributes.iter().map(|(_, flags)| format!("{after}{flags}")).collect();
    let expected: Vec<(&str, &str, &str)> =
        attributes.iter().zip(&after).map(|((memory, _), after)| (before, &**memory, &**after)).collect();
    assert_calls("perf_event_open", "kernel-objects perf", &expected);
}

#[test]
fn filters_show_their_instructions() {
    let filter = |last: &str| {
        format!(
            "{{.len: 4, .filter: [{{.code: LD|W|ABS, .jt: 0, .jf: 0, .k: 0}}, {{.code: JMP|JEQ|K, .jt: 0, .jf: 1, .k: 0x27}}, {{.code: RET|K, .jt: \
             0, .jf: 0, .k: {last}}}]}}"
        )
    };
    let seccomp = filter("ALLOW}, {.code: RET|K, .jt: 0, .jf: 0, .k: ERRNO|0x1");
    let socket = filter("0x7fff0000}, {.code: RET|K, .jt: 0, .jf: 0, .k: 0x50001");
    let expected = [
        ("seccomp(op: SET_MODE_FILTER, flags: 0x40000000, uargs: ", &*seccomp, ")"),
        ("seccomp(op: GET_ACTION_AVAIL, uargs: ", "[LOG]", ")"),
        ("seccomp(op: GET_NOTIF_SIZES, uargs: ", "{.seccomp_notif: 80, .seccomp_notif_resp: 24, .seccomp_data: 64}", ")"),
        ("setsockopt(fd: -1, level: SOCKET, optname: ATTACH_FILTER, optval: ", &*socket, ", optlen: 16)"),
    ];
    assert_calls("seccomp,setsockopt", "kernel-objects filter", &expected);
}

#[test]
fn registrations_of_io_uring_have_their_structs() {
    let register = "io_uring_register(fd: 997, opcode: ";
    let register = |opcode: &str| format!("{register}REGISTER_{opcode}, arg: ");
    let opcodes = ["FILES2", "FILES_UPDATE2", "BUFFERS2", "RESTRICTIONS", "SYNC_CANCEL", "PBUF_STATUS", "NAPI", "CLOCK", "CLONE_BUFFERS"];
    let registers: Vec<String> = opcodes.iter().chain(&["MEM_REGION"]).map(|opcode| register(opcode)).collect();
    let offsets = "{.head: 0, .tail: 0, .ring_mask: 0, .ring_entries: 0, ";
    let params = format!(
        "{{.sq_entries: 0, .cq_entries: 9, .flags: SQPOLL|SQ_AFF|0x80000000, .sq_thread_cpu: 1, .sq_thread_idle: 55, .sq_off: {offsets}.flags: 0, \
         .dropped: 0, .array: 0, .user_addr: NULL}}, .cq_off: {offsets}.overflow: 0, .cqes: 0, .flags: 0, .user_addr: NULL}}}}"
    );
    let enter = "io_uring_enter(fd: 997, to_submit: 1, min_complete: 2, flags: GETEVENTS";
    let [extended, plain, registered] =
        ["|EXT_ARG, argp: ", ", argp: ", "|EXT_ARG|EXT_ARG_REG, argp: 0x80"].map(|flags| format!("{enter}{flags}"));
    let expected = [
        ("io_uring_setup(entries: 3, params: ", &*params, ")"),
        (&*extended, "{.sigmask: [USR1], .sigmask_sz: 8, .min_wait_usec: 44, .ts: {.tv_sec: 5, .tv_nsec: 6}}", ", argsz: 24)"),
        (&*plain, "[USR1]", ", argsz: 8)"),
        (&*registered, "", ", argsz: 64)"),
        (&*registers[0], "{.nr: 2, .flags: 0, .data: [3, -1], .tags: [97, 98]}", ", nr_args: 32)"),
        (&*registers[1], "{.offset: 7, .data: [3, -1], .tags: NULL, .nr: 2}", ", nr_args: 32)"),
        (&*registers[2], "{.nr: 1, .flags: 0, .data: [{.iov_base: 0x70000000, .iov_len: 4096}], .tags: NULL}", ", nr_args: 32)"),
        (
            &*registers[3],
            "[{.opcode: REGISTER_OP, .register_op: REGISTER_FILES}, {.opcode: SQE_OP, .sqe_op: READV}, {.opcode: SQE_FLAGS_ALLOWED, .sqe_flags: \
             IO_LINK|ASYNC}]",
            ", nr_args: 3)",
        ),
        (&*registers[4], "{.addr: 0x4321, .fd: -1, .flags: ALL|OP, .timeout: {.tv_sec: 1, .tv_nsec: 2}, .opcode: ACCEPT}", ", nr_args: 1)"),
        (&*registers[5], "{.buf_group: 6}", ", nr_args: 1)"),
        (&*registers[6], "{.busy_poll_to: 50, .prefer_busy_poll: 1, .opcode: REGISTER_OP, .op_param: STATIC}", ", nr_args: 1)"),
        (&*registers[7], "{.clockid: BOOTTIME}", ", nr_args: 0)"),
        (&*registers[8], "{.src_fd: 997, .flags: DST_REPLACE, .src_off: 1, .dst_off: 2, .nr: 3}", ", nr_args: 1)"),
        (
            &*registers[9],
            "{.region_uptr: {.user_addr: 0x70000000, .size: 8192, .flags: USER, .id: 0, .mmap_offset: 0}, .flags: REG_WAIT_ARG}",
            ", nr_args: 1)",
        ),
    ];
    assert_calls("io_uring_setup,io_uring_enter,io_uring_register", "kernel-objects ring", &expected);
}

#[test]
fn a_tracer_reads_registers_and_calls() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let options = ["--engine", "bpf", "--full", "-e", "ptrace"];
    let trace = workload(&machine, &options, "kernel-objects trace").succeeded();
    let told =
        trace.stdout.lines().find_map(|line| line.strip_prefix("registers ")).unwrap_or_else(|| panic!("{}", trace.stdout)).to_owned();
    let [length, ip, sp] = *told.split(' ').collect::<Vec<_>>() else { panic!("{told}") };
    let lines = trace.lines();
    let calls: Vec<String> = line::calls(&lines).into_iter().map(|(_, call)| call.args).collect();
    let [regs_ip, regs_sp] = if cfg!(target_arch = "x86_64") { [".rip: ", ".rsp: "] } else { [".pc: ", ".sp: "] };
    let get = calls.iter().find(|args| args.contains("request: GETREGSET")).unwrap_or_else(|| panic!("{calls:#?}"));
    assert!(get.contains(&format!("{regs_ip}{ip}")) && get.contains(&format!("{regs_sp}{sp}")), "{get}: {told}");
    assert!(get.contains("addr: PRSTATUS, data: {.iov_base: {") && get.ends_with(&format!(".iov_len: 512 => {length}}}")), "{get}");
    let set = calls.iter().find(|args| args.contains("request: SETREGSET")).unwrap_or_else(|| panic!("{calls:#?}"));
    let bytes = r#"addr: 0x7777, data: {.iov_base: "\x11\x11\x00\x00\x00\x00\x00\x00\"\"\x00\x00\x00\x00\x00\x00", .iov_len: 16}"#;
    assert!(set.ends_with(bytes), "{set}");
    let infos: Vec<&String> = calls.iter().filter(|args| args.contains("request: GET_SYSCALL_INFO")).collect();
    let arch = if cfg!(target_arch = "x86_64") { "X86_64" } else { "AARCH64" };
    assert!(infos[0].contains(&format!("addr: 88, data: {{.op: NONE, .arch: {arch}, .instruction_pointer: {ip}, ")), "{}", infos[0]);
    let next = "{.op: ENTRY, .arch: ";
    let exit_group = format!(".entry: {{.nr: {}, .args: [0, ", libc::SYS_exit_group);
    assert!(infos[1].contains(next) && infos[1].contains(&exit_group), "{}", infos[1]);
    assert!(calls.iter().any(|args| args.contains("request: SETOPTIONS") && args.ends_with("data: TRACESYSGOOD|EXITKILL")), "{calls:#?}");
}

#[test]
fn structs_of_newer_kernels_show_the_bytes_that_follow() {
    let expected = [
        (
            "keyctl(option: DH_COMPUTE, arg2: ",
            "{.priv: 0x65, .prime: 0x66, .base: 0x67}, arg3: ADDRESS, arg4: 8, arg5: {.hashname: \"sha256\", .otherinfo: \"info\", .otherinfolen: 4}",
            ")",
        ),
        (
            "keyctl(option: PKEY_SIGN, arg2: ",
            "{.key_id: 0x68, .in_len: 5, .out_len: 6}, arg3: \"enc=pkcs1\", arg4: 0x11111111, arg5: 0x22222222",
            ")",
        ),
        ("keyctl(option: SETPERM, arg2: 0x69, arg3: USR_VIEW|POS_VIEW|POS_READ|POS_WRITE|POS_SEARCH|POS_LINK|POS_SETATTR", "", ")"),
        (
            "quotactl(cmd: {.cmd: SETQUOTA, .type: GRPQUOTA}, special: ",
            "\"/nonexistent/device\", id: 77, addr: {.dqb_bhardlimit: 10, .dqb_bsoftlimit: 11, .dqb_curspace: 12, .dqb_ihardlimit: 13, .dqb_isoftlimit: \
             14, .dqb_curinodes: 15, .dqb_btime: 16, .dqb_itime: 17, .dqb_valid: BLIMITS|ILIMITS}",
            ")",
        ),
        (
            "rseq(rseq: ",
            "{.cpu_id_start: 0x1, .cpu_id: 0x2, .rseq_cs: 0x33333333, .flags: 0, .node_id: 0, .mm_cid: 0, .slice_ctrl: \
             {.request: 0, .granted: 0, .__reserved: 0}}",
            ", rseq_len: 32, flags: 0x40000000, sig: 0x53053053)",
        ),
        (
            "openat2(dfd: CWD, filename: \"/nonexistent/file\", how: ",
            "{.flags: RDONLY|CLOEXEC, .mode: 0, .resolve: BENEATH, .tail: \"how tail\"}",
            ", usize: 32)",
        ),
        (
            "openat2(dfd: CWD, filename: \"/nonexistent/file\", how: ",
            "{.flags: RDONLY|CLOEXEC, .mode: 0, .resolve: BENEATH}",
            ", usize: 32)",
        ),
        (
            "mount_setattr(dfd: CWD, path: \"/nonexistent/mount\", uattr: ",
            "{.attr_set: NOATIME|RDONLY, .attr_clr: _ATIME, .propagation: 0, .userns_fd: 0, .tail: \"end\"}",
            ", usize: 35)",
        ),
        ("sched_setattr(pid: 0, uattr: ", "SCHEDULE", ", flags: 0)"),
        ("clone3(uargs: ", "CLONE", ", size: 93)"),
    ];
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let names = "keyctl,quotactl,rseq,openat2,mount_setattr,sched_setattr,clone3";
    let (_, calls) = calls(&machine, "bpf", names, "kernel-objects other");
    // The C library and the runtime have registered their own rseq and opened files before.
    let own: Vec<&String> = calls.iter().skip_while(|call| !call.contains("DH_COMPUTE")).collect();
    assert_eq!(own.len(), expected.len(), "{calls:#?}");
    for (call, (before, memory, after)) in own.iter().zip(expected) {
        match memory {
            "SCHEDULE" => {
                assert!(call.contains(".size: 64 => 56, .sched_policy: FIFO, ") && call.contains(".tail: \"schedule\""), "{call}");
            }
            "CLONE" => assert!(call.contains("{.flags: PIDFD_AUTOKILL, ") && call.contains(".tail: \"clone\"}"), "{call}"),
            _ => assert_eq!(**call, format!("{before}{memory}{after}")),
        }
    }
}
