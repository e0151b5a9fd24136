//! Calls about objects of the kernel (BPF programs, perf events, filters, rings, keys, traced tasks) with known values.
//! Most of them fail: what counts is what they pass.

use crate::told::{self, Argument, place, room};

/// A descriptor that is not open.
const NO_FD: u64 = 997;

/// The bytes of a struct, in the machine's byte order.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(self, number: u16) -> Bytes {
        self.bytes(&number.to_ne_bytes())
    }

    fn u32(self, number: u32) -> Bytes {
        self.bytes(&number.to_ne_bytes())
    }

    fn u64(self, number: u64) -> Bytes {
        self.bytes(&number.to_ne_bytes())
    }

    fn bytes(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds zeros up to a size.
    fn upto(mut self, size: usize) -> Bytes {
        self.0.resize(size, 0);
        self
    }

    fn address(&self) -> u64 {
        told::address(&self.0)
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }
}

fn call(number: i64, args: [u64; 6]) -> i64 {
    unsafe { told::call(number, &args.map(Argument::from)) }
}

/// Returns the address of a copy of a text. Its page has been touched, so that it can be read before the call.
fn text(text: &std::ffi::CStr) -> u64 {
    told::address(Box::leak(text.to_owned().into_boxed_c_str()).to_bytes_with_nul())
}

/// Makes the calls of a family: `bpf`, `perf`, `filter`, `ring`, `trace` or `other`.
pub fn run(family: &str) {
    match family {
        "bpf" => bpf(),
        "perf" => perf(),
        "filter" => filter(),
        "ring" => ring(),
        "trace" => trace(),
        "other" => other(),
        _ => panic!("{family} is no family of calls"),
    }
}

fn bpf() {
    const MAP_CREATE: u64 = 0;
    const MAP_UPDATE_ELEM: u64 = 2;
    const PROG_LOAD: u64 = 5;
    const OBJ_GET: u64 = 7;
    const PROG_ATTACH: u64 = 8;
    const OBJ_GET_INFO_BY_FD: u64 = 15;
    const RAW_TRACEPOINT_OPEN: u64 = 17;
    const MAP_FREEZE: u64 = 22;
    const LINK_CREATE: u64 = 28;
    let bpf = |cmd: u64, attr: &Bytes| call(libc::SYS_bpf, [cmd, attr.address(), attr.size(), 0, 0, 0]);
    // An array has keys of four bytes.
    let flags = 4 | 8;
    bpf(MAP_CREATE, &Bytes::default().u32(2).u32(5).u32(8).u32(77).u32(flags).u32(0).u32(9).bytes(b"objects").upto(44));
    bpf(MAP_UPDATE_ELEM, &Bytes::default().u32(NO_FD as u32).u32(0).u64(0x1111_1111).u64(0x2222_2222).u64(1));
    // r0 = 42; exit
    let program = Bytes::default().bytes(&[0xb7, 0, 0, 0]).u32(42).bytes(&[0x95, 0, 0, 0]).u32(0);
    let mut log = vec![0u8; 4096];
    let load = Bytes::default().u32(1).u32(2).u64(program.address()).u64(text(c"Dual BSD/GPL")).u32(1).u32(4096);
    let load = load.u64(room(&mut log)).u32(0).u32(0).bytes(b"forty_two").upto(64);
    let loaded = bpf(PROG_LOAD, &load);
    println!("loaded {loaded}");
    bpf(OBJ_GET, &Bytes::default().u64(text(c"/nonexistent/objects")).u32(0).u32(8));
    let replaces_and_multi = 4 | 2;
    bpf(PROG_ATTACH, &Bytes::default().u32(71).u32(72).u32(3).u32(replaces_and_multi).u32(73));
    bpf(RAW_TRACEPOINT_OPEN, &Bytes::default().u64(text(c"no_such_event")).u32(NO_FD as u32).upto(16));
    bpf(MAP_FREEZE, &Bytes::default().u32(NO_FD as u32).u32(0).bytes(b"tail"));
    let offsets = Bytes::default().u64(0x11).u64(0x22);
    let multi = Bytes::default().u32(NO_FD as u32).u32(0).u32(48).u32(0).u64(text(c"/nonexistent/program")).u64(offsets.address());
    bpf(LINK_CREATE, &multi.u64(0).u64(0).u32(2).u32(1).u32(0).upto(64));
    bpf(LINK_CREATE, &Bytes::default().u32(NO_FD as u32).u32(7).u32(46).u32(0).u32(74).u32(0).u64(75));
    let mut info = vec![0xffu8; 16];
    bpf(OBJ_GET_INFO_BY_FD, &Bytes::default().u32(loaded as u32).u32(16).u64(room(&mut info)));
    // A command that does not exist.
    bpf(9999, &Bytes::default().u64(1));
}

fn perf() {
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const FREQ: u64 = 1 << 10;
    const WATERMARK: u64 = 1 << 14;
    const PRECISE_2: u64 = 2 << 15;
    let [hardware, software, tracepoint, cache, breakpoint] = [0, 1, 2, 3, 5];
    // No task has the pid -1 on the CPU -1.
    let size = |attr: &Bytes| u32::from_ne_bytes([attr.0[4], attr.0[5], attr.0[6], attr.0[7]]) as usize;
    let open = |attr: &Bytes, flags: u64| {
        let attr = told::address(&attr.0[..size(attr)]);
        call(libc::SYS_perf_event_open, [attr, u64::MAX, u64::MAX, u64::MAX, flags, 0])
    };
    let attr = |of: u32, size: u32, config: u64, period: u64, flags: u64| {
        Bytes::default().u32(of).u32(size).u64(config).u64(period).u64(3).u64(8).u64(flags)
    };
    open(&attr(hardware, 64, 1, 1000, DISABLED | EXCLUDE_KERNEL).upto(64), 8);
    open(&attr(software, 72, 2, 4999, FREQ | PRECISE_2).u32(17).upto(72), 0);
    open(&attr(tracepoint, 64, 321, 0, WATERMARK).u32(4096).upto(64), 0);
    open(&attr(cache, 64, 0x1_0100, 0, DISABLED).upto(64), 0);
    // HW_BREAKPOINT_RW, four bytes
    open(&attr(breakpoint, 72, 0, 0, DISABLED).u32(0).u32(3).u64(0x1234_5678).u64(4), 0);
    open(&attr(42, 72, 0xabc, 0, 0).u32(0).u32(0).u64(0xdef).u64(0x123), 0);
    // What follows the struct is not part of it.
    open(&attr(software, 64, 0, 0, 0).upto(64).u64(u64::MAX), 4);
}

/// The instructions of a classic BPF program: load a word, jump if it equals 39, return 0x7fff0000 or 0x00050001.
fn instructions() -> Bytes {
    let instruction = |bytes: Bytes, code: u16, jt: u8, jf: u8, k: u32| bytes.u16(code).bytes(&[jt, jf]).u32(k);
    let program = instruction(Bytes::default(), 0x20, 0, 0, 0);
    let program = instruction(program, 0x15, 0, 1, 39);
    let program = instruction(program, 0x06, 0, 0, 0x7fff_0000);
    instruction(program, 0x06, 0, 0, 0x0005_0001)
}

fn filter() {
    const SET_MODE_FILTER: u64 = 1;
    const GET_ACTION_AVAIL: u64 = 2;
    const GET_NOTIF_SIZES: u64 = 3;
    // The kernel knows no such flag.
    const NO_FLAG: u64 = 1 << 30;
    let program = instructions();
    let fprog = Bytes::default().u16(4).upto(8).u64(program.address());
    call(libc::SYS_seccomp, [SET_MODE_FILTER, NO_FLAG, fprog.address(), 0, 0, 0]);
    let action = Bytes::default().u32(0x7ffc_0000);
    call(libc::SYS_seccomp, [GET_ACTION_AVAIL, 0, action.address(), 0, 0, 0]);
    let mut sizes = [0u16; 3];
    call(libc::SYS_seccomp, [GET_NOTIF_SIZES, 0, room(&mut sizes), 0, 0, 0]);
    told::note(program.0.as_slice());
    let args = [u64::MAX, libc::SOL_SOCKET as u64, libc::SO_ATTACH_FILTER as u64, fprog.address(), 16, 0];
    call(libc::SYS_setsockopt, args);
}

fn ring() {
    const SETUP: i64 = 425;
    const ENTER: i64 = 426;
    const REGISTER: i64 = 427;
    let register = |opcode: u64, arg: &Bytes, count: u64| call(REGISTER, [NO_FD, opcode, arg.address(), count, 0, 0]);
    // SQPOLL, SQ_AFF, and a flag that the kernel does not know.
    let params = Bytes::default().u32(0).u32(9).u32(2 | 4 | 1 << 31).u32(1).u32(55).upto(120);
    call(SETUP, [3, params.address(), 0, 0, 0, 0]);
    let (mask, time) = (Bytes::default().u64(1 << 9), Bytes::default().u64(5).u64(6));
    let arg = Bytes::default().u64(mask.address()).u32(8).u32(44).u64(time.address());
    call(ENTER, [NO_FD, 1, 2, 1 | 8, arg.address(), arg.size()]);
    call(ENTER, [NO_FD, 1, 2, 1, mask.address(), 8]);
    call(ENTER, [NO_FD, 1, 2, 1 | 8 | 64, 128, 64]);
    let (files, tags) = (Bytes::default().u32(3).u32(u32::MAX), Bytes::default().u64(0x61).u64(0x62));
    register(13, &Bytes::default().u32(2).u32(0).u64(0).u64(files.address()).u64(tags.address()), 32);
    register(14, &Bytes::default().u32(7).u32(0).u64(files.address()).u64(0).u32(2).u32(0), 32);
    let buffer = Bytes::default().u64(0x7000_0000).u64(4096);
    register(15, &Bytes::default().u32(1).u32(0).u64(0).u64(buffer.address()).u64(0), 32);
    // Only REGISTER_FILES, only READV, and the flags ASYNC and IO_LINK.
    let restriction = |bytes: Bytes, opcode: u16, value: u8| bytes.u16(opcode).bytes(&[value; 1]).bytes(&[0; 13]);
    register(11, &restriction(restriction(restriction(Bytes::default(), 0, 2), 1, 1), 2, 0x14), 3);
    register(24, &Bytes::default().u64(0x4321).u32(u32::MAX).u32(1 | 32).u64(1).u64(2).bytes(&[13]).upto(64), 1);
    register(26, &Bytes::default().u32(6).upto(40), 1);
    register(27, &Bytes::default().u32(50).bytes(&[1, 0, 0, 0]).u32(1).u32(0), 1);
    register(29, &Bytes::default().u32(7).upto(16), 0);
    register(30, &Bytes::default().u32(NO_FD as u32).u32(2).u32(1).u32(2).u32(3).upto(32), 1);
    let region = Bytes::default().u64(0x7000_0000).u64(8192).u32(1).upto(64);
    register(34, &Bytes::default().u64(region.address()).u64(1).upto(32), 1);
}

/// Traces a child that has stopped itself.
fn trace() {
    const GETREGSET: u64 = 0x4204;
    const SETREGSET: u64 = 0x4205;
    const GET_SYSCALL_INFO: u64 = 0x420e;
    const NT_PRSTATUS: u64 = 1;
    let child = unsafe { libc::fork() };
    if child == 0 {
        call(libc::SYS_ptrace, [0; 6]);
        call(libc::SYS_kill, [std::process::id().into(), libc::SIGSTOP as u64, 0, 0, 0, 0]);
        unsafe { libc::_exit(0) };
    }
    let wait = || assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    wait();
    let ptrace = |request: u64, addr: u64, data: u64| call(libc::SYS_ptrace, [request, child as u64, addr, data, 0, 0]);
    let mut registers = Bytes::default().upto(512);
    let mut set = Bytes::default().u64(room(&mut registers.0)).u64(512);
    ptrace(GETREGSET, NT_PRSTATUS, place(&mut set.0));
    let length = u64::from_ne_bytes(set.0[8..].try_into().expect("eight bytes"));
    let number = |at: usize| u64::from_ne_bytes(registers.0[at..at + 8].try_into().expect("eight bytes"));
    // The instruction pointer and the stack pointer.
    let [ip, sp] = if cfg!(target_arch = "x86_64") { [number(128), number(152)] } else { [number(256), number(248)] };
    println!("registers {length} {ip:#x} {sp:#x}");
    // The kernel knows no such set.
    let pair = Bytes::default().u64(0x1111).u64(0x2222);
    let other = Bytes::default().u64(pair.address()).u64(16);
    ptrace(SETREGSET, 0x7777, other.address());
    let mut info = Bytes::default().upto(88);
    ptrace(GET_SYSCALL_INFO, 88, room(&mut info.0));
    // PTRACE_SETOPTIONS: TRACESYSGOOD and EXITKILL; PTRACE_SYSCALL up to the next call, which is the last one.
    ptrace(0x4200, 0, 1 | 1 << 20);
    ptrace(24, 0, 0);
    wait();
    ptrace(GET_SYSCALL_INFO, 88, room(&mut info.0));
    ptrace(7, 0, 0);
    wait();
}

fn other() {
    const DH_COMPUTE: u64 = 23;
    const PKEY_SIGN: u64 = 27;
    const SETPERM: u64 = 5;
    const Q_SETQUOTA_OF_GROUP: u64 = 0x8000_0801;
    let keys = Bytes::default().u32(101).u32(102).u32(103);
    let derive = Bytes::default().u64(text(c"sha256")).u64(text(c"info")).u32(4).upto(56);
    let mut out = [0u8; 8];
    call(libc::SYS_keyctl, [DH_COMPUTE, keys.address(), room(&mut out), 8, derive.address(), 0]);
    let params = Bytes::default().u32(104).u32(5).u32(6).upto(40);
    call(libc::SYS_keyctl, [PKEY_SIGN, params.address(), text(c"enc=pkcs1"), 0x1111_1111, 0x2222_2222, 0]);
    call(libc::SYS_keyctl, [SETPERM, 105, 0x3f01_0000, 0, 0, 0]);
    let quota = Bytes::default().u64(10).u64(11).u64(12).u64(13).u64(14).u64(15).u64(16).u64(17).u32(5).u32(0);
    call(libc::SYS_quotactl, [Q_SETQUOTA_OF_GROUP, text(c"/nonexistent/device"), 77, quota.address(), 0, 0]);
    let rseq = Bytes::default().u32(1).u32(2).u64(0x3333_3333).u32(0).upto(32);
    call(libc::SYS_rseq, [rseq.address(), 32, 1 << 30, 0x5305_3053, 0, 0]);
    // A newer kernel's structs: this one refuses bytes that it does not know.
    let how = Bytes::default().u64(libc::O_CLOEXEC as u64).u64(0).u64(8).bytes(b"how tail");
    call(libc::SYS_openat2, [libc::AT_FDCWD as u64, text(c"/nonexistent/file"), how.address(), how.size(), 0, 0]);
    let zeros = Bytes::default().u64(libc::O_CLOEXEC as u64).u64(0).u64(8).u64(0);
    call(libc::SYS_openat2, [libc::AT_FDCWD as u64, text(c"/nonexistent/file"), zeros.address(), zeros.size(), 0, 0]);
    let attributes = Bytes::default().u64(1 | 0x10).u64(0x70).u64(0).u64(0).bytes(b"end");
    call(libc::SYS_mount_setattr, [libc::AT_FDCWD as u64, text(c"/nonexistent/mount"), 0, attributes.address(), attributes.size(), 0]);
    let mut policy = Bytes::default().u32(64).u32(1).upto(56).bytes(b"schedule");
    call(libc::SYS_sched_setattr, [0, place(&mut policy.0), 0, 0, 0, 0]);
    // CLONE_PIDFD_AUTOKILL
    let clone = Bytes::default().u64(1 << 36).upto(88).bytes(b"clone");
    call(libc::SYS_clone3, [clone.address(), clone.size(), 0, 0, 0, 0]);
}
