//! Tests of structs that depend on a command, a type or a length: unions, and structs that are longer than their rows.

use super::*;

#[test]
fn the_command_of_bpf_selects_the_member_of_the_union() {
    let map = [bytes![1u32, 4u32, 8u32, 16u32, 0u32, 0u32, 0u32], b"map\0".to_vec(), vec![0; 12]].concat();
    native("bpf", &[0, 0x1000, 44], 3).entry(1, &map).prints(
        "cmd: MAP_CREATE, uattr: {.map_type: HASH, .key_size: 4, .value_size: 8, .max_entries: 16, .map_flags: 0, .inner_map_fd: 0, \
         .map_name: \"map\"}, size: 44",
    );
    native("bpf", &[0, 0x1000, 44], 3).entry(1, &map).prints_briefly(
        "cmd: MAP_CREATE, uattr: {.map_type: HASH, .key_size: 4, .value_size: 8, .max_entries: 16, .map_name: \"map\", ...}, size: 44",
    );
    let link = |attach_type: u32, flags: u32| bytes![5u32, 6u32, attach_type, flags, 7u32, 0u32, 8u64];
    native("bpf", &[28, 0x1000, 32], 3).entry(1, &link(46, 8)).prints(
        "cmd: LINK_CREATE, uattr: {.prog_fd: 5, .target_ifindex: 6, .attach_type: TCX_INGRESS, .flags: BEFORE, .tcx: {.relative_fd: 7, \
         .expected_revision: 8}}, size: 32",
    );
    native("bpf", &[28, 0x1000, 32], 3).entry(1, &link(24, 0)).prints(
        "cmd: LINK_CREATE, uattr: {.prog_fd: 5, .target_fd: 6, .attach_type: TRACE_FENTRY, .flags: 0, .tracing: {.target_btf_id: 7, .cookie: \
         0x8}}, size: 32",
    );
    let attach = |flags: u32| bytes![5u32, 6u32, 0u32, flags, 7u32, 8u32];
    native("bpf", &[8, 0x1000, 24], 0).entry(1, &attach(0x24)).prints(
        "cmd: PROG_ATTACH, uattr: {.target_fd: 5, .attach_bpf_fd: 6, .attach_type: CGROUP_INET_INGRESS, .attach_flags: REPLACE|ID, \
         .replace_bpf_fd: 7, .relative_id: 8}, size: 24",
    );
    native("bpf", &[8, 0x1000, 24], 0).entry(1, &attach(0)).prints(
        "cmd: PROG_ATTACH, uattr: {.target_fd: 5, .attach_bpf_fd: 6, .attach_type: CGROUP_INET_INGRESS, .attach_flags: 0, .relative_fd: 8}, \
         size: 24",
    );
}

#[test]
fn the_lengths_that_the_kernel_writes_are_those_of_its_output() {
    let query = |count: u32, ids: u64| bytes![3u32, 0u32, 0u32, 0u32, ids, count];
    native("bpf", &[16, 0x1000, 28], 0)
        .entry(1, &query(8, 0x2000))
        .exit(1, &query(2, 0x2000))
        .at(1, PieceTime::Exit, 0x2000, &bytes![41u32, 42u32])
        .prints(
            "cmd: PROG_QUERY, uattr: {.target_fd: 3, .attach_type: CGROUP_INET_INGRESS, .query_flags: 0, .attach_flags: 0, .prog_ids: [41, 42], \
             .prog_cnt: 8 => 2}, size: 28",
        );
}

#[test]
fn bytes_behind_the_members_are_shown_if_they_are_not_zero() {
    let freeze = |bytes: &[u8]| native("bpf", &[22, 0x1000, bytes.len() as u64], 0).entry(1, bytes);
    freeze(&bytes![9u32]).prints("cmd: MAP_FREEZE, uattr: {.map_fd: 9}, size: 4");
    freeze(&bytes![9u32, 0u32]).prints_briefly("cmd: MAP_FREEZE, uattr: {.map_fd: 9}, size: 8");
    freeze(&bytes![9u32, 0x4142u32]).prints("cmd: MAP_FREEZE, uattr: {.map_fd: 9, .tail: \"BA\\x00\\x00\"}, size: 8");
    freeze(&bytes![9u32, 0u32]).with_length(400).prints("cmd: MAP_FREEZE, uattr: {.map_fd: 9, ...}, size: 8");
    native("openat2", &[3, 0, 0x1000, 32], 4)
        .entry(2, &bytes![0o2000000u64, 0u64, 0u64, 7u64])
        .prints("dfd: 3, filename: NULL, how: {.flags: RDONLY|CLOEXEC, .mode: 0, .resolve: 0, .tail: \"\\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"}, usize: 32");
}

#[test]
fn the_type_of_a_perf_event_selects_its_configuration() {
    let attr = |of: u32, config: u64, flags: u64| bytes![of, 72u32, config, 9u64, 1u64, 0u64, flags, 5u32, 1u32, 0x4000u64, 8u64];
    let open = |attr: &[u8]| native("perf_event_open", &[0x1000, 1, 2, 3, 0], 5).entry(0, attr);
    open(&attr(0, 0x4_0000_0000, 0x1_8421)).prints(
        "attr_uptr: {.type: HARDWARE, .size: VER1, .config: CPU_CYCLES|0x400000000, .sample_freq: 9, .sample_type: IP, .read_format: 0, .flags: \
         skid_0|disabled|exclude_kernel|freq, .wakeup_events: 5, .config1: 0x4000, .config2: 0x8}, pid: 1, cpu: 2, group_fd: 3",
    );
    open(&attr(5, 0, 0x4000)).prints_briefly(
        "attr_uptr: {.type: BREAKPOINT, .config: 0, .sample_period: 9, .sample_type: IP, .flags: watermark, .wakeup_watermark: 5, .bp_type: R, \
         .bp_addr: 0x4000, .bp_len: 8, ...}, pid: 1, cpu: 2, group_fd: 3",
    );
    open(&attr(3, 0x1_0203, 0)).prints_briefly(
        "attr_uptr: {.type: HW_CACHE, .config: {.cache: DTLB, .op: PREFETCH, .result: MISS}, .sample_period: 9, .sample_type: IP, \
         .wakeup_events: 5, .config1: 0x4000, .config2: 0x8, ...}, pid: 1, cpu: 2, group_fd: 3",
    );
}

#[test]
fn filters_are_followed_in_every_abi() {
    let instructions = bytes![0x20u16, 0u8, 0u8, 4u32, 0x15u16, 0u8, 1u8, 0xc000_003eu32, 6u16, 0u8, 0u8, 0x7fff_0000u32];
    let shown = "{.len: 3, .filter: [{.code: LD|W|ABS, .jt: 0, .jf: 0, .k: 0x4}, {.code: JMP|JEQ|K, .jt: 0, .jf: 1, .k: 0xc000003e}, {.code: RET|K, \
                 .jt: 0, .jf: 0, .k: ALLOW}]}";
    let wide = native("seccomp", &[1, 0, 0x1000], 0).entry(2, &bytes![3u16, 0u16, 0u32, 0x2000u64]);
    wide.at(2, PieceTime::Entry, 0x2000, &instructions).prints(&format!("op: SET_MODE_FILTER, uargs: {shown}"));
    let narrow = compat("seccomp", &[1, 0, 0x1000], 0).entry(2, &bytes![3u16, 0u16, 0x2000u32]);
    narrow.at(2, PieceTime::Entry, 0x2000, &instructions).prints(&format!("op: SET_MODE_FILTER, uargs: {shown}"));
}

#[test]
fn the_length_of_registers_tells_their_abi() {
    let get = |length: u64, registers: &[u8]| {
        native("ptrace", &[0x4204, 5, 1, 0x1000], 0).entry(3, &bytes![0x2000u64, 512u64]).exit(3, &bytes![0x2000u64, length]).at(
            3,
            PieceTime::Exit,
            0x2000,
            registers,
        )
    };
    let wide: Vec<u8> = (1..=27u64).flat_map(u64::to_le_bytes).collect();
    get(216, &wide).prints_briefly(
        "request: GETREGSET, pid: 5, addr: PRSTATUS, data: {.iov_base: {.rax: 0xb, .orig_rax: 0x10, .rip: 0x11, .rsp: 0x14, ...}, .iov_len: 512 => \
         216}",
    );
    let narrow: Vec<u8> = (1..=17u32).flat_map(u32::to_le_bytes).collect();
    get(68, &narrow).prints_briefly(
        "request: GETREGSET, pid: 5, addr: PRSTATUS, data: {.iov_base: {.eax: 0x7, .orig_eax: 0xc, .eip: 0xd, .esp: 0x10, ...}, .iov_len: 512 => 68}",
    );
    let info = [bytes![1u8, 0u8, 0u16, 0xc000_003eu32, 0x40u64, 0x50u64, 39u64], bytes![1u64, 2u64, 3u64, 4u64, 5u64, 6u64]].concat();
    native("ptrace", &[0x420e, 5, 80, 0x1000], 80).exit(3, &info).prints(
        "request: GET_SYSCALL_INFO, pid: 5, addr: 80, data: {.op: ENTRY, .arch: X86_64, .instruction_pointer: 0x40, .stack_pointer: 0x50, .entry: \
         {.nr: 39, .args: [0x1, 0x2, 0x3, 0x4, 0x5, 0x6]}}",
    );
}

#[test]
fn the_flags_of_io_uring_enter_say_what_its_argument_is() {
    let enter = |flags: u64, size: u64| native("io_uring_enter", &[3, 1, 2, flags, 0x1000, size], 0);
    enter(1, 8).entry(4, &bytes![0x200u64]).prints("fd: 3, to_submit: 1, min_complete: 2, flags: GETEVENTS, argp: [USR1], argsz: 8");
    enter(9, 24)
        .entry(4, &bytes![0u64, 8u32, 7u32, 0u64])
        .prints("fd: 3, to_submit: 1, min_complete: 2, flags: GETEVENTS|EXT_ARG, argp: {.sigmask: NULL, .sigmask_sz: 8, .min_wait_usec: 7, .ts: NULL}, argsz: 24");
    enter(0x49, 64).prints("fd: 3, to_submit: 1, min_complete: 2, flags: GETEVENTS|EXT_ARG|EXT_ARG_REG, argp: 0x1000, argsz: 64");
}

#[test]
fn the_command_of_quotactl_is_selected_for_each_type_of_quota() {
    for (group, name) in [(0, "USRQUOTA"), (2, "PRJQUOTA")] {
        native("quotactl", &[0x8000_0500 | group, 0, 0, 0x1000], 0).exit(3, &bytes![1u64, 2u64, 1u32, 3u32]).prints(&format!(
            "cmd: {{.cmd: GETINFO, .type: {name}}}, special: NULL, addr: {{.dqi_bgrace: 1, .dqi_igrace: 2, .dqi_flags: ROOT_SQUASH, .dqi_valid: \
             BGRACE|IGRACE}}"
        ));
    }
}

#[test]
fn capabilities_are_those_of_the_version_in_the_header() {
    let capset = |version: u32, sets: &[u8]| native("capset", &[0x1000, 0x2000], 0).entry(0, &bytes![version, 7u32]).entry(1, sets);
    let sets = bytes![3u32, 4u32, 0u32, 1u32, 0u32, 0u32];
    let last = "{.effective: [CHOWN, DAC_OVERRIDE, MAC_OVERRIDE], .permitted: [DAC_READ_SEARCH], .inheritable: []}";
    capset(0x2008_0522, &sets).prints(&format!("header: {{.version: 3, .pid: 7 (x)}}, data: {last}"));
    let first = "{.effective: [CHOWN, DAC_OVERRIDE], .permitted: [DAC_READ_SEARCH], .inheritable: []}";
    capset(0x1998_0330, &sets[..12]).prints(&format!("header: {{.version: 1, .pid: 7 (x)}}, data: {first}"));
    let most = bytes![u32::MAX, u32::MAX - 1, 0u32, 0x1ffu32, 0x1ffu32, 1u32 << 31];
    capset(0x2008_0522, &most)
        .prints_briefly("header: {.version: 3, .pid: 7 (x)}, data: {.effective: ~[], .permitted: ~[CHOWN], .inheritable: [0x3f]}");
    capset(0x2008_0522, &sets[..12]).with_length(24).prints("header: {.version: 3, .pid: 7 (x)}, data: {...}");
    capset(77, b"abcd").prints("header: {.version: 0x4d, .pid: 7 (x)}, data: \"abcd\"");
}

#[test]
fn information_about_a_bpf_object_is_that_of_the_kind_of_its_file() {
    let info = |name: &str, bytes: &[u8]| {
        let attr = bytes![4u32, bytes.len() as u32, 0x2000u64];
        let mut sample = native("bpf", &[15, 0x1000, 16], 0).entry(1, &attr).exit(1, &attr).at(1, PieceTime::Exit, 0x2000, bytes);
        let file = crate::event::File::Anonymous(name.as_bytes().into());
        sample.call.files.push(crate::event::CallFile { place: FdPlace::Inside { arg: 1, fd: 4 }, file });
        sample
    };
    let shown = |name: &str, length: usize, info: &str| {
        format!("cmd: OBJ_GET_INFO_BY_FD, uattr: {{.bpf_fd: 4<anon_inode:{name}>, .info_len: {length}, .info: {info}}}, size: 16")
    };
    let map = [&bytes![2u32, 77u32, 4u32, 8u32, 9u32, 0u32][..], b"a_map\0\0\0\0\0\0\0\0\0\0\0"].concat();
    let of_map = "{.type: ARRAY, .id: 77, .key_size: 4, .value_size: 8, .max_entries: 9, .map_flags: 0, .name: \"a_map\"}";
    info("bpf-map", &map).prints(&shown("bpf-map", 40, of_map));
    let link = bytes![3u32, 5u32, 6u32, 0u32, 1234u64, 1u32, 0u32];
    let of_link = "{.type: CGROUP, .id: 5, .prog_id: 6, .cgroup_id: 1234, .attach_type: CGROUP_INET_EGRESS}";
    info("bpf_link", &link).prints(&shown("bpf_link", 32, of_link));
    info("something", b"bytes").prints(&shown("something", 5, "\"bytes\""));
    let program = |jited: u32, translated: u32| [&bytes![1u32, 7u32][..], b"somehash", &bytes![jited, translated, 0u64, 0u64]].concat();
    let of_program = "{.type: SOCKET_FILTER, .id: 7, .tag: \"somehash\", .jited_prog_len: 0 => 23, .xlated_prog_len: 0 => 16, \
                      .jited_prog_insns: NULL, .xlated_prog_insns: NULL}";
    let sample = info("bpf-prog", &program(23, 16)).at(1, PieceTime::Entry, 0x2000, &program(0, 0));
    sample.prints(&shown("bpf-prog", 40, of_program));
}

#[test]
fn pointers_to_requests_are_shown_as_the_requests() {
    let request = bytes![0x11u64, 0u64, 1u16, 0u16, 3u32, 0x5000u64, 64u64, 8u64, 0u64, 0u64];
    native("io_submit", &[0x7000, 2, 0x1000], 2).entry(2, &bytes![0x2000u64, 0x3000u64]).at(2, PieceTime::Entry, 0x2000, &request).prints(
        "ctx_id: 0x7000, nr: 2, iocbpp: [{.aio_data: 0x11, .aio_key: 0, .aio_rw_flags: 0, .aio_lio_opcode: PWRITE, .aio_reqprio: 0, \
             .aio_fildes: 3, .aio_buf: 0x5000, .aio_nbytes: 64, .aio_offset: 8, .aio_flags: 0, .aio_resfd: 0}, 0x3000]",
    );
}

#[test]
fn a_probe_of_rings_has_as_many_operations_as_the_call_says() {
    let probe = [&bytes![62u8, 2u8, 0u16, 0u32, 0u32, 0u32][..], &bytes![0u8, 0u8, 1u16, 0u32, 1u8, 0u8, 0u16, 0u32]].concat();
    native("io_uring_register", &[3, 8, 0x1000, 2], 0)
        .exit(2, &probe)
        .prints("fd: 3, opcode: REGISTER_PROBE, arg: {.last_op: PIPE, .ops_len: 2, .ops: [{.op: NOP, .flags: SUPPORTED}, {.op: READV, .flags: 0}]}, nr_args: 2");
}

#[test]
fn what_the_kernel_can_do_with_keys_has_names() {
    native("keyctl", &[31, 0x1000, 8], 2)
        .exit(1, &[0x81, 6])
        .prints("option: CAPABILITIES, arg2: {.caps0: CAPABILITIES|MOVE, .caps1: NS_KEY_TAG|NOTIFICATIONS}, arg3: 8");
}
