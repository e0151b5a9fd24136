use super::*;
use crate::beauty::row::{Syscall, Variant};
use crate::beauty::tables::SYSCALLS;

fn capture(name: &str, abi: Abi, choice: Option<u64>) -> Capture {
    let row = SYSCALLS.iter().find(|row| row.name == name).unwrap();
    let variant = choice.map(|value| row.variants.iter().find(|variant| variant.values.contains(&value)).unwrap());
    let signature = variant.map_or(row.signature(), Variant::signature);
    CaptureBuilder { abi, string_limit: 32, full: false, links: &mut Links::default() }.capture(signature)
}

fn of(name: &str) -> Vec<Op> {
    capture(name, Abi::X86_64, None).ops
}

fn op(arg: u8, kind: OpKind, when: u8, count: CountSource, size: u16, limit: u32) -> Op {
    Op {
        arg,
        kind,
        when,
        count,
        size,
        limit,
        room: NO_ARG,
        condition: (0, 0, 0),
        asks: 0,
        links: (0, 0),
        count_offset: 0,
        reads_tail: false,
    }
}

#[test]
fn rows_become_operations() {
    assert_eq!(of("openat"), [op(1, OpKind::String, AT_ENTRY, CountSource::One, 1, 4096)]);
    assert_eq!(of("read"), [Op { room: 2, ..op(1, OpKind::Bytes, AT_EXIT, CountSource::Return, 1, LIMIT_OF_SOCKET) }]);
    assert_eq!(of("write"), [op(1, OpKind::Bytes, AT_ENTRY, CountSource::Arg(2), 1, LIMIT_OF_SOCKET)]);
    assert_eq!(of("connect"), [op(1, OpKind::Bytes, AT_ENTRY | COUNT_32, CountSource::Arg(2), 1, 128)]);
    let accept =
        [op(1, OpKind::Bytes, AT_EXIT, CountSource::At(2), 1, 128), op(2, OpKind::Bytes, AT_ENTRY | AT_EXIT, CountSource::One, 4, 128)];
    assert_eq!(of("accept"), accept);
    assert_eq!(
        of("newfstatat"),
        [op(1, OpKind::String, AT_ENTRY, CountSource::One, 1, 4096), op(2, OpKind::Bytes, AT_EXIT, CountSource::One, 144, 144)]
    );
    assert_eq!(of("select")[0], op(1, OpKind::Files, AT_ENTRY | AT_EXIT | COUNT_32, CountSource::Arg(0), 8, 4096));
    let strings = |arg, limit| op(arg, OpKind::Strings, AT_ENTRY, CountSource::One, 8, limit);
    assert_eq!(of("execve"), [op(0, OpKind::String, AT_ENTRY, CountSource::One, 1, 4096), strings(1, 32), strings(2, 0)]);
    assert_eq!(of("writev"), [op(1, OpKind::Iovec, AT_ENTRY, CountSource::Arg(2), 8, 4096)]);
    assert_eq!(of("readv"), [op(1, OpKind::Iovec, AT_EXIT | FAILED, CountSource::Arg(2), 8, 4096)]);
    assert_eq!(of("recvmsg"), [op(1, OpKind::Msghdr, AT_ENTRY | AT_EXIT, CountSource::One, 8, 4096)]);
    assert_eq!(of("getpid"), []);
}

#[test]
fn strings_are_copied_as_far_as_the_kernel_reads_them() {
    let limit = |name: &str, choice: Option<u64>, string_limit| {
        let row = SYSCALLS.iter().find(|row| row.name == name).unwrap();
        let variant = choice.map(|value| row.variants.iter().find(|variant| variant.values.contains(&value)).unwrap());
        let signature = variant.map_or(row.signature(), Variant::signature);
        let builder = CaptureBuilder { abi: Abi::X86_64, string_limit, full: false, links: &mut Links::default() }.capture(signature);
        builder.ops.iter().find(|op| op.kind == OpKind::String).map(|op| op.limit)
    };
    let set_name = Some(libc::PR_SET_NAME as u64);
    assert_eq!([limit("prctl", set_name, 1000), limit("memfd_create", None, 1000), limit("reboot", None, 1000)], [15, 250, 255].map(Some));
    assert_eq!(limit("reboot", None, 32), Some(32));
}

#[test]
fn sizes_are_those_that_the_kernel_reads_or_writes() {
    assert_eq!(of("mincore"), [op(2, OpKind::Pages, AT_EXIT, CountSource::Arg(1), 1, 32)]);
    assert_eq!(of("set_mempolicy"), [op(1, OpKind::Nodes, AT_ENTRY, CountSource::Arg(2), 8, 4096)]);
    assert_eq!(of("msgsnd"), [op(1, OpKind::Tail, AT_ENTRY, CountSource::Arg(2), 8, 40)]);
    assert_eq!(of("msgrcv"), [Op { room: 2, ..op(1, OpKind::Tail, AT_EXIT, CountSource::Return, 8, 40) }]);
    assert_eq!(of("name_to_handle_at")[1], op(2, OpKind::Tail, AT_ENTRY | AT_EXIT | TOO_SMALL, CountSource::At(2), 8, 4096));
    let attr = op(1, OpKind::Bytes, AT_ENTRY | AT_EXIT | NOT_DONE | TOO_SMALL, CountSource::At(1), 1, 256);
    assert_eq!(of("sched_setattr"), [Op { room: 48, ..attr }], "0 stands for the length of the first version");
    assert_eq!(of("openat2")[1], op(2, OpKind::Bytes, AT_ENTRY, CountSource::Arg(3), 1, SIZED_MAX));
    let attr = op(0, OpKind::Bytes, AT_ENTRY | AT_EXIT | NOT_DONE | TOO_SMALL, CountSource::At(0), 1, SIZED_MAX);
    assert_eq!(of("perf_event_open"), [Op { count_offset: 4, room: 64, ..attr }], "the length is the second member");
    assert_eq!(of("io_submit"), [op(2, OpKind::Pointers, AT_ENTRY, CountSource::Arg(1), 8, 64)], "the requests have 64 bytes");
    assert_eq!(of("sched_yield"), []);
    let words = |name, abi| capture(name, abi, None).ops[0].size;
    assert_eq!([Abi::X86_64, Abi::I386, Abi::X32].map(|abi| words("select", abi)), [8, 4, 8]);
    assert_eq!([Abi::X86_64, Abi::I386, Abi::X32].map(|abi| words("writev", abi)), [8, 4, 4]);
}

#[test]
fn a_counting_return_is_bounded_by_the_size_argument() {
    let rooms = |name| of(name).iter().filter(|op| op.count == CountSource::Return).map(|op| (op.arg, op.room)).collect::<Vec<_>>();
    assert_eq!([rooms("recvfrom"), rooms("fgetxattr"), rooms("getgroups")], [[(1, 2)], [(2, 3)], [(1, 0)]]);
    assert_eq!([rooms("io_getevents"), rooms("sched_getaffinity"), rooms("lsm_list_modules")], [[(3, 2)], [(2, 1)], [(0, NO_ARG)]]);
}

#[test]
fn variants_have_operations_of_their_own() {
    let fcntl = |command| capture("fcntl", Abi::X86_64, Some(command));
    assert_eq!(fcntl(6).ops, [op(2, OpKind::Bytes, AT_ENTRY, CountSource::One, 32, 32)], "F_SETLK");
    assert_eq!(fcntl(5).ops, [op(2, OpKind::Bytes, AT_ENTRY | AT_EXIT, CountSource::One, 32, 32)], "F_GETLK");
    assert_eq!((fcntl(0).ops.len(), fcntl(0).opens), (0, true), "F_DUPFD");
    assert_eq!(
        capture("fcntl", Abi::X86_64, None),
        Capture { ops: vec![], descriptors: 1, indirect_fds: IndirectFds::None, opens: false, pids: 0, uids: 0, gids: 0 }
    );
    assert_eq!(capture("prctl", Abi::X86_64, Some(15)).ops, [op(1, OpKind::String, AT_ENTRY, CountSource::One, 1, 15)], "PR_SET_NAME");
}

#[test]
fn only_the_name_of_an_interface_is_copied_at_entry() {
    const SIOCGIFFLAGS: u64 = 0x8913;
    let parts = capture("ioctl", Abi::X86_64, Some(SIOCGIFFLAGS)).ops.iter().map(|op| (op.when, op.size)).collect::<Vec<_>>();
    assert_eq!(parts, [(AT_ENTRY, 16), (AT_EXIT, 40)]);
}

#[test]
fn the_keys_of_a_tls_connection_are_not_copied() {
    const SOL_TLS: u64 = 282;
    const TLS_TX: u64 = 1;
    for (name, when) in [("setsockopt", AT_ENTRY), ("getsockopt", AT_EXIT)] {
        let row = SYSCALLS.iter().find(|row| row.name == name).unwrap();
        let level = row.variants.iter().find(|variant| variant.values.contains(&SOL_TLS)).unwrap();
        let option = level.variants.iter().find(|variant| variant.values.contains(&TLS_TX)).unwrap();
        let captured =
            CaptureBuilder { abi: Abi::X86_64, string_limit: 4096, full: true, links: &mut Links::default() }.capture(option.signature());
        let value = captured.ops.iter().find(|op| op.arg == 3);
        assert_eq!(value, Some(&op(3, OpKind::Bytes, when, CountSource::One, 4, 4)), "{name}: the version and the cipher");
    }
}

#[test]
fn pointers_in_structs_are_followed() {
    let linked = |name: &str, at: usize| (of(name)[at].kind, of(name)[at].links.1);
    assert_eq!(linked("clone3", 0), (OpKind::Linked, 3));
    assert_eq!([linked("pselect6", 4), linked("io_pgetevents", 2), linked("setxattrat", 2)], [(OpKind::Linked, 1); 3]);
    assert_eq!(linked("process_vm_readv", 1), (OpKind::Bytes, 0), "that is another process's memory");
}

#[test]
fn descriptor_arguments_are_found() {
    let of = |name: &str| capture(name, Abi::X86_64, None).descriptors;
    assert_eq!([of("read"), of("renameat"), of("dup2"), of("getpid")], [0b1, 0b101, 0b11, 0]);
}

#[test]
fn descriptors_in_memory_and_of_other_processes_are_found() {
    let of = |name: &str, choice| capture(name, Abi::X86_64, choice).indirect_fds;
    assert_eq!([of("read", None), of("poll", None), of("ppoll", None)], [IndirectFds::None, IndirectFds::Polled, IndirectFds::Polled]);
    assert_eq!(of("pidfd_getfd", None), IndirectFds::Fetched);
    assert_eq!([of("pipe", None), of("pipe2", None), of("socketpair", None)], [IndirectFds::Pipe, IndirectFds::Pipe, IndirectFds::Pair]);
    assert_eq!(of("bpf", Some(15)), IndirectFds::First, "BPF_OBJ_GET_INFO_BY_FD");
    const KCMP_FILE: u64 = 0;
    const KCMP_EPOLL_TFD: u64 = 7;
    let kcmp = [Some(KCMP_FILE), None, Some(KCMP_EPOLL_TFD)].map(|kind| of("kcmp", kind));
    assert_eq!(kcmp, [IndirectFds::Compared, IndirectFds::None, IndirectFds::ComparedOne]);
}

/// The programs handle the descriptors of other processes in kcmp(2) and pidfd_getfd(2). No other call has such
/// arguments.
#[test]
fn the_programs_know_all_descriptors_of_other_processes() {
    for signature in SYSCALLS.iter().flat_map(Syscall::signatures) {
        let is_there = signature.args.iter().any(|arg| arg.fd_of.is_some());
        let is_known = matches!(IndirectFds::of(signature.args), IndirectFds::Compared | IndirectFds::ComparedOne | IndirectFds::Fetched);
        assert_eq!(is_there, is_known, "{:?}", signature.args);
    }
}

#[test]
fn the_programs_copy_as_many_elements_as_are_shown() {
    assert!(include_str!("../nested.h").contains(&format!("#define ELEMENTS_MAX {ELEMENTS_MAX}\n")));
}

#[test]
fn no_row_has_more_operations_than_fit_into_a_plan() {
    for row in SYSCALLS {
        let mut links = Links::default();
        let mut maker = CaptureBuilder { abi: Abi::X86_64, string_limit: 32, full: false, links: &mut links };
        for signature in row.signatures() {
            let with_memory = (0..signature.args.len()).filter(|at| maker.op(&signature, *at).is_some()).count();
            assert!(with_memory <= OPS_MAX, "{}", row.name);
        }
    }
}
