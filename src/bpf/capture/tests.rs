use super::*;
use crate::beauty::row::Syscall;
use crate::beauty::tables::SYSCALLS;

fn capture(name: &str, abi: Abi, choice: Option<u64>) -> Capture {
    let row = SYSCALLS.iter().find(|row| row.name == name).unwrap();
    let variant = choice.map(|value| row.variants.iter().find(|variant| variant.values.contains(&value)).unwrap());
    let signature = variant.map_or(row.signature(), |variant| Signature { args: variant.args, returns: variant.returns });
    Maker { abi, string_limit: 32, links: &mut Links::default() }.capture(signature)
}

fn of(name: &str) -> Vec<Op> {
    capture(name, Abi::X86_64, None).ops
}

fn op(arg: u8, what: What, when: u8, count: Count, size: u16, limit: u32) -> Op {
    Op { arg, what, when, count, size, limit, room: NO_ARG, condition: (0, 0, 0), asks: 0, links: (0, 0) }
}

#[test]
fn rows_become_operations() {
    assert_eq!(of("openat"), [op(1, What::String, AT_ENTRY, Count::One, 1, 4096)]);
    assert_eq!(of("read"), [Op { room: 2, ..op(1, What::Bytes, AT_EXIT, Count::Return, 1, 32) }]);
    assert_eq!(of("write"), [op(1, What::Bytes, AT_ENTRY, Count::Arg(2), 1, 32)]);
    assert_eq!(of("connect"), [op(1, What::Bytes, AT_ENTRY | COUNT_32, Count::Arg(2), 1, 128)]);
    let accept = [op(1, What::Bytes, AT_EXIT, Count::At(2), 1, 128), op(2, What::Bytes, AT_ENTRY | AT_EXIT, Count::One, 4, 128)];
    assert_eq!(of("accept"), accept);
    assert_eq!(of("newfstatat"), [op(1, What::String, AT_ENTRY, Count::One, 1, 4096), op(2, What::Bytes, AT_EXIT, Count::One, 144, 144)]);
    assert_eq!(of("select")[0], op(1, What::Bits, AT_ENTRY | AT_EXIT | COUNT_32, Count::Arg(0), 8, 4096));
    let strings = |arg, limit| op(arg, What::Strings, AT_ENTRY, Count::One, 8, limit);
    assert_eq!(of("execve"), [op(0, What::String, AT_ENTRY, Count::One, 1, 4096), strings(1, 32), strings(2, 0)]);
    assert_eq!(of("writev"), [op(1, What::Iovec, AT_ENTRY, Count::Arg(2), 8, 4096)]);
    assert_eq!(of("readv"), [op(1, What::Iovec, AT_EXIT | FAILED, Count::Arg(2), 8, 4096)]);
    assert_eq!(of("recvmsg"), [op(1, What::Msghdr, AT_ENTRY | AT_EXIT, Count::One, 8, 4096)]);
    assert_eq!(of("getpid"), []);
}

#[test]
fn sizes_are_those_that_the_kernel_takes() {
    assert_eq!(of("mincore"), [op(2, What::Pages, AT_EXIT, Count::Arg(1), 1, 32)]);
    assert_eq!(of("set_mempolicy"), [op(1, What::Nodes, AT_ENTRY, Count::Arg(2), 8, 4096)]);
    assert_eq!(of("msgsnd"), [op(1, What::Tail, AT_ENTRY, Count::Arg(2), 8, 40)]);
    assert_eq!(of("msgrcv"), [Op { room: 2, ..op(1, What::Tail, AT_EXIT, Count::Return, 8, 40) }]);
    assert_eq!(of("name_to_handle_at")[1], op(2, What::Tail, AT_ENTRY | AT_EXIT, Count::At(2), 8, 4096));
    assert_eq!(of("sched_setattr"), [op(1, What::Bytes, AT_ENTRY | AT_EXIT | FAILED, Count::At(1), 1, 56)]);
    assert_eq!(of("openat2")[1], op(2, What::Bytes, AT_ENTRY, Count::Arg(3), 1, 24));
    assert_eq!(of("perf_event_open"), [], "nobody has said yet what is in it");
    let words = |name, abi| capture(name, abi, None).ops[0].size;
    assert_eq!([Abi::X86_64, Abi::I386, Abi::X32].map(|abi| words("select", abi)), [8, 4, 8]);
    assert_eq!([Abi::X86_64, Abi::I386, Abi::X32].map(|abi| words("writev", abi)), [8, 4, 4]);
}

#[test]
fn the_return_counts_no_more_than_there_is_room_for() {
    let rooms = |name| of(name).iter().filter(|op| op.count == Count::Return).map(|op| (op.arg, op.room)).collect::<Vec<_>>();
    assert_eq!([rooms("recvfrom"), rooms("fgetxattr"), rooms("getgroups")], [[(1, 2)], [(2, 3)], [(1, 0)]]);
    assert_eq!([rooms("io_getevents"), rooms("sched_getaffinity"), rooms("lsm_list_modules")], [[(3, 2)], [(2, 1)], [(0, NO_ARG)]]);
}

#[test]
fn variants_have_operations_of_their_own() {
    let fcntl = |command| capture("fcntl", Abi::X86_64, Some(command));
    assert_eq!(fcntl(6).ops, [op(2, What::Bytes, AT_ENTRY, Count::One, 32, 32)], "F_SETLK");
    assert_eq!(fcntl(5).ops, [op(2, What::Bytes, AT_ENTRY | AT_EXIT, Count::One, 32, 32)], "F_GETLK");
    assert_eq!((fcntl(0).ops.len(), fcntl(0).opens), (0, true), "F_DUPFD");
    assert_eq!(
        capture("fcntl", Abi::X86_64, None),
        Capture { ops: vec![], descriptors: 1, elsewhere: Elsewhere::Nowhere, opens: false, pids: 0, uids: 0, gids: 0 }
    );
    assert_eq!(capture("prctl", Abi::X86_64, Some(15)).ops, [op(1, What::String, AT_ENTRY, Count::One, 1, 15)], "PR_SET_NAME");
}

#[test]
fn of_an_interface_only_the_name_is_asked() {
    const SIOCGIFFLAGS: u64 = 0x8913;
    let parts = capture("ioctl", Abi::X86_64, Some(SIOCGIFFLAGS)).ops.iter().map(|op| (op.when, op.size)).collect::<Vec<_>>();
    assert_eq!(parts, [(AT_ENTRY, 16), (AT_EXIT, 40)]);
}

#[test]
fn pointers_in_structs_are_followed() {
    let linked = |name: &str, at: usize| (of(name)[at].what, of(name)[at].links.1);
    assert_eq!(linked("clone3", 0), (What::Linked, 3));
    assert_eq!([linked("pselect6", 4), linked("io_pgetevents", 2), linked("setxattrat", 2)], [(What::Linked, 1); 3]);
    assert_eq!(linked("process_vm_readv", 1), (What::Bytes, 0), "that is another process's memory");
}

#[test]
fn descriptors_are_found() {
    let of = |name: &str| capture(name, Abi::X86_64, None).descriptors;
    assert_eq!([of("read"), of("renameat"), of("dup2"), of("getpid")], [0b1, 0b101, 0b11, 0]);
}

#[test]
fn descriptors_are_found_elsewhere() {
    let of = |name: &str, choice| capture(name, Abi::X86_64, choice).elsewhere;
    assert_eq!([of("read", None), of("poll", None), of("ppoll", None)], [Elsewhere::Nowhere, Elsewhere::Polled, Elsewhere::Polled]);
    assert_eq!(of("pidfd_getfd", None), Elsewhere::Fetched);
    const KCMP_FILE: u64 = 0;
    const KCMP_EPOLL_TFD: u64 = 7;
    let kcmp = [Some(KCMP_FILE), None, Some(KCMP_EPOLL_TFD)].map(|kind| of("kcmp", kind));
    assert_eq!(kcmp, [Elsewhere::Compared, Elsewhere::Nowhere, Elsewhere::ComparedOne]);
}

/// The programs know where kcmp(2) and pidfd_getfd(2) have descriptors of other processes, and no other place.
#[test]
fn descriptors_of_other_processes_are_where_the_programs_look() {
    for signature in SYSCALLS.iter().flat_map(Syscall::signatures) {
        let is_there = signature.args.iter().any(|arg| arg.fd_of.is_some());
        let is_known = matches!(Elsewhere::of(signature.args), Elsewhere::Compared | Elsewhere::ComparedOne | Elsewhere::Fetched);
        assert_eq!(is_there, is_known, "{:?}", signature.args);
    }
}

#[test]
fn the_programs_follow_as_many_elements_as_are_shown() {
    assert!(include_str!("../nested.h").contains(&format!("#define ELEMENTS_MAX {ELEMENTS_MAX}\n")));
}

#[test]
fn no_row_has_more_operations_than_a_plan() {
    for row in SYSCALLS {
        let mut links = Links::default();
        let mut maker = Maker { abi: Abi::X86_64, string_limit: 32, links: &mut links };
        for signature in row.signatures() {
            let with_memory = (0..signature.args.len()).filter(|at| maker.op(&signature, *at).is_some()).count();
            assert!(with_memory <= OPS_MAX, "{}", row.name);
        }
    }
}
