//! Arguments that have parts: sets of capabilities, controls of processors, values of rare socket options, and the
//! objects behind descriptors.

use crate::kernel_objects::{assert_calls, calls};
use crate::machine::Machine;
use crate::trace::workload;

#[test]
fn controls_of_processors_have_the_parts_of_their_numbers() {
    let mut expected = vec![
        ("prctl(option: SET_PDEATHSIG, arg2: USR1)", "", ""),
        ("prctl(option: GET_PDEATHSIG, arg2: ", "[USR1]", ")"),
        ("prctl(option: SET_MM, arg2: MAP_SIZE, arg3: ", "[104]", ")"),
        ("prctl(option: SVE_SET_VL, arg2: {.vl: 32, .flags: VL_INHERIT})", "", ""),
        ("prctl(option: SME_SET_VL, arg2: {.vl: 64, .flags: SET_VL_ONEXEC})", "", ""),
        (
            "prctl(option: SET_TAGGED_ADDR_CTRL, arg2: {.flags: TAGGED_ADDR_ENABLE|MTE_TCF_SYNC, .tags: 0xfffe, .pmlen: 0}, arg3: 0x5)",
            "",
            "",
        ),
        ("prctl(option: RISCV_V_SET_CONTROL, arg2: {.cur: ON, .next: OFF, .flags: INHERIT})", "", ""),
        ("prctl(option: SET_CFI, arg2: BRANCH_LANDING_PADS, arg3: ENABLE|LOCK)", "", ""),
    ];
    if cfg!(target_arch = "x86_64") {
        let descriptor = "{.entry_number: 3, .base_addr: 0x1000, .limit: 0xfff, .flags: data|seg_32bit|limit_in_pages|useable}";
        expected.push(("modify_ldt(func: 17, ptr: ", descriptor, ", bytecount: 16)"));
    }
    assert_calls("prctl,modify_ldt", "arguments controls", &expected);
}

#[test]
fn capabilities_are_sets_of_names_in_both_versions() {
    let expected = [
        ("3", "{.effective: [DAC_OVERRIDE, SYS_ADMIN, WAKE_ALARM], .permitted: [DAC_READ_SEARCH], .inheritable: [CHECKPOINT_RESTORE]}"),
        ("1", "{.effective: [DAC_OVERRIDE, SYS_ADMIN], .permitted: [DAC_READ_SEARCH], .inheritable: []}"),
    ];
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, full) = calls(&machine, "bpf", "capset", "arguments capabilities");
    assert_eq!(full.len(), 3, "{full:#?}");
    for (call, (version, sets)) in full.iter().zip(expected) {
        let header = format!("capset(header: {{.version: {version}, .pid: 1");
        assert!(call.starts_with(&header) && call.ends_with(&format!("data: {sets})")), "{call}");
    }
    let names = full[2].split(", .permitted").next().map_or(0, |effective| effective.matches(", ").count());
    assert!(names > 30, "--full has all names: {}", full[2]);
    // Lines have the complement of a set with most capabilities.
    let trace = workload(&machine, &["--engine", "bpf", "-e", "capset"], "arguments capabilities").succeeded();
    assert!(trace.text.contains("data: {.effective: ~[MAC_ADMIN], .permitted: ~[], .inheritable: []}"), "{}", trace.text);
}

#[test]
fn values_that_are_rare_have_their_names() {
    let expected = [
        ("dup3(oldfd: -1, newfd: 998, flags: TRUNC|CLOEXEC)", "", ""),
        ("seccomp(op: SET_MODE_STRICT, uargs: 0x5)", "", ""),
        ("ioprio_set(which: PROCESS, who: 0, ioprio: {.class: BE, .level: 4})", "", ""),
        ("ioprio_get(which: PROCESS, who: 0)", "", ""),
        ("connect(fd: -1, uservaddr: ", "{.svm_family: VSOCK, .svm_port: ANY, .svm_cid: 77, .svm_flags: 0}", ", addrlen: 16)"),
        (
            "rt_sigqueueinfo(pid: 2147483632, sig: USR1, uinfo: ",
            "{.si_signo: USR1, .si_errno: ENOENT, .si_code: SI_QUEUE, .si_pid: 1, .si_uid: 2, .si_value: 0x3}",
            ")",
        ),
    ];
    let names = "dup3,seccomp,ioprio_set,ioprio_get,connect,rt_sigqueueinfo";
    assert_calls(names, "arguments flags", &expected);
    for engine in ["tracepoint", "bpf"] {
        let machine = if engine == "bpf" { Machine::shared_with_bpf() } else { Machine::shared() };
        let Some(machine) = machine else { continue };
        let trace = workload(&machine, &["--engine", engine, "-e", "ioprio_get"], "arguments flags").succeeded();
        assert!(trace.text.contains("= {.class: BE, .level: 4}\n"), "{engine}: {}", trace.text);
    }
}

#[test]
fn a_length_of_zero_is_that_of_the_first_version() {
    let attr = "{.type: SOFTWARE, .size: 0, .config: PAGE_FAULTS, .sample_period: 4999, .sample_type: 0, .read_format: 0, .flags: 0, \
                .wakeup_events: 0, .config1: 0}";
    let schedule = "{.size: 0, .sched_policy: 0x63, .sched_flags: 0, .sched_nice: 5, .sched_priority: 0, .sched_runtime: 0, .sched_deadline: \
                    0, .sched_period: 0}";
    let expected =
        [("perf_event_open(attr_uptr: ", attr, ", pid: -1, cpu: -1, group_fd: -1)"), ("sched_setattr(pid: 0, uattr: ", schedule, ")")];
    assert_calls("perf_event_open,sched_setattr", "arguments lengths", &expected);
}

#[test]
fn socket_options_of_rare_families_have_structs() {
    let calls = [
        ("SOCKET, optname: MARK", "[0xbeef]", 4),
        ("IP, optname: LOCAL_PORT_RANGE", "{.low: 40000, .high: 41000}", 4),
        (
            "IP, optname: MRT_ADD_VIF",
            "{.vifc_vifi: 2, .vifc_flags: USE_IFINDEX, .vifc_threshold: 1, .vifc_rate_limit: 0, .vifc_lcl_ifindex: 7, .vifc_rmt_addr: \
             127.0.0.1}",
            16,
        ),
        (
            "IP, optname: IPT_SO_SET_REPLACE",
            "{.name: \"filter\", .valid_hooks: 0xe, .num_entries: 4, .size: 640, .hook_entry: [0, 0, 0, 0, 0], .underflow: [0, 0, 0, 0, 0], \
             .num_counters: 0, .counters: NULL}",
            96,
        ),
        (
            "IPV6, optname: MRT6_ADD_MIF",
            "{.mif6c_mifi: 2, .mif6c_flags: REGISTER, .vifc_threshold: 1, .mif6c_pifi: 9, .vifc_rate_limit: 0}",
            12,
        ),
        (
            "TCP, optname: AO_ADD_KEY",
            "{.addr: {.sin_family: INET, .sin_port: 0, .sin_addr: 127.0.0.1}, .alg_name: \"hmac(sha1)\", .ifindex: 3, .flags: set_rnext, \
             .prefix: 24, .sndid: 7, .rcvid: 8, .maclen: 12, .keyflags: IFINDEX, .keylen: 4, \
             .key: \"four\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\
             \\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"...}",
            288,
        ),
        ("TCP, optname: FASTOPEN_KEY", "\"sixteen bytes...\"", 16),
        (
            "SCTP, optname: PEER_ADDR_PARAMS",
            "{.spp_assoc_id: 5, .spp_address: {.sin_family: INET, .sin_port: 0, .sin_addr: 127.0.0.1}, .spp_hbinterval: 3000, \
             .spp_pathmaxrxt: 5, .spp_pathmtu: 1500, .spp_sackdelay: 200, .spp_flags: HB_ENABLE|PMTUD_ENABLE, .spp_ipv6_flowlabel: 0, \
             .spp_dscp: 0}",
            156,
        ),
        ("SCTP, optname: STREAM_SCHEDULER", "{.assoc_id: 5, .assoc_value: PRIO}", 8),
        ("SCTP, optname: EVENT", "{.se_assoc_id: 5, .se_type: ASSOC_CHANGE, .se_on: 1}", 8),
        (
            "CAN_ISOTP, optname: OPTS",
            "{.flags: EXTEND_ADDR|TX_PADDING, .frame_txtime: 50000, .ext_address: 0x11, .txpad_content: 0xcc, .rxpad_content: 0xdd, \
             .rx_ext_address: 0x22}",
            12,
        ),
        ("BLUETOOTH, optname: SECURITY", "{.level: MEDIUM, .key_size: 16}", 2),
        ("RXRPC, optname: MIN_SECURITY_LEVEL", "[AUTH]", 4),
        ("RDS, optname: GET_MR", "{.vec: {.addr: 0x1000, .bytes: 4096}, .cookie_addr: 0x2000, .flags: READWRITE|USE_ONCE}", 32),
    ];
    let rows = calls
        .map(|(option, value, length)| (format!("setsockopt(fd: -1, level: {option}, optval: "), value, format!(", optlen: {length})")));
    let expected: Vec<(&str, &str, &str)> = rows.iter().map(|(before, value, after)| (&**before, *value, &**after)).collect();
    assert_calls("setsockopt", "arguments options", &expected);
}

#[test]
fn requests_behind_pointers_are_shown() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (trace, calls) = calls(&machine, "bpf", "io_submit,io_uring_register", "arguments requests");
    let request = "[{.aio_data: 0x1111, .aio_key: 0, .aio_rw_flags: 0, .aio_lio_opcode: PREAD, .aio_reqprio: 0, .aio_fildes: 997, .aio_buf: \
                   0x7000, .aio_nbytes: 40, .aio_offset: 8, .aio_flags: 0, .aio_resfd: 0}]";
    assert!(calls[0].ends_with(&format!("nr: 1, iocbpp: {request})")), "{}", calls[0]);
    let told = trace.stdout.lines().find_map(|line| line.strip_prefix("probe ")).unwrap_or_else(|| panic!("{}", trace.stdout));
    // Rings may be forbidden on the machine.
    if told.starts_with("0 ") {
        let probe = ".ops_len: 2, .ops: [{.op: NOP, .flags: SUPPORTED}, {.op: READV, .flags: SUPPORTED}]}, nr_args: 2)";
        assert!(calls[1].contains("opcode: REGISTER_PROBE, arg: {.last_op: ") && calls[1].ends_with(probe), "{}", calls[1]);
    }
}

#[test]
fn information_about_a_bpf_object_depends_on_its_kind() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = workload(&machine, &["--engine", "bpf", "--full", "-e", "bpf"], "arguments objects").succeeded();
    let told = |what: &str| {
        let line = trace.stdout.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_else(|| panic!("{}", trace.stdout));
        line.trim().split_once(' ').map(|(fd, id)| (fd.to_owned(), id.to_owned())).expect("a descriptor and an id")
    };
    let [(map, map_id), (program, program_id)] = ["map", "program"].map(told);
    let expected = [
        format!(
            "{{.bpf_fd: {map}<anon_inode:bpf-map>, .info_len: 88, .info: {{.type: ARRAY, .id: {map_id}, .key_size: 4, .value_size: 8, \
             .max_entries: 77, .map_flags: 0, .name: \"seventy_seven\", "
        ),
        format!("{{.bpf_fd: {program}<anon_inode:bpf-prog>, .info_len: 64, .info: {{.type: SOCKET_FILTER, .id: {program_id}, .tag: "),
        ".kern_version: {.major: 6, .minor: 1, .patch: 9}, ".to_owned(),
        "{.bpf_fd: -1, .info_len: 64, .info: 0x".to_owned(),
    ];
    for expected in expected {
        assert!(trace.text.contains(&expected), "{expected}: {}", trace.text);
    }
}
