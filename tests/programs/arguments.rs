//! Calls whose arguments have parts: sets of capabilities, controls of processors, values of rare socket options. Most
//! of the calls fail: what counts is what they pass.

use crate::told::{self, Argument, address, place, room};

const NO_FD: u64 = u64::MAX;

fn call(number: i64, args: [u64; 6]) -> i64 {
    unsafe { told::call(number, &args.map(Argument::from)) }
}

/// Returns the bytes of 32-bit numbers, in memory that was touched.
fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.map(u32::to_ne_bytes).concat()
}

/// Makes the calls of a scene: `controls`, `capabilities`, `flags`, `lengths`, `options`, `requests` or `objects`.
pub fn run(scene: &str) {
    match scene {
        "controls" => controls(),
        "capabilities" => capabilities(),
        "flags" => flags(),
        "lengths" => lengths(),
        "options" => options(),
        "requests" => requests(),
        "objects" => objects(),
        _ => panic!("{scene} is no scene"),
    }
}

/// Options of prctl, those of other processors too.
fn controls() {
    const SET_MM: u64 = 35;
    const SET_MM_MAP_SIZE: u64 = 15;
    const SVE_SET_VL: u64 = 50;
    const SET_TAGGED_ADDR_CTRL: u64 = 55;
    const SME_SET_VL: u64 = 63;
    const RISCV_V_SET_CONTROL: u64 = 69;
    const SET_CFI: u64 = 81;
    let prctl = |option: u64, args: [u64; 4]| call(libc::SYS_prctl, [option, args[0], args[1], args[2], args[3], 0]);
    let mut number = [0u32; 2];
    prctl(libc::PR_SET_PDEATHSIG as u64, [libc::SIGUSR1 as u64, 0, 0, 0]);
    prctl(libc::PR_GET_PDEATHSIG as u64, [room(&mut number), 0, 0, 0]);
    prctl(SET_MM, [SET_MM_MAP_SIZE, room(&mut number), 0, 0]);
    prctl(SVE_SET_VL, [1 << 17 | 32, 0, 0, 0]);
    prctl(SME_SET_VL, [1 << 18 | 64, 0, 0, 0]);
    prctl(SET_TAGGED_ADDR_CTRL, [0xfffe << 3 | 3, 5, 0, 0]);
    prctl(RISCV_V_SET_CONTROL, [0b1_0110, 0, 0, 0]);
    prctl(SET_CFI, [0, 5, 0, 0]);
    #[cfg(target_arch = "x86_64")]
    {
        let descriptor = words([3, 0x1000, 0xfff, 0x51]);
        call(libc::SYS_modify_ldt, [0x11, address(&descriptor), 16, 0, 0, 0]);
    }
}

/// Capabilities of both versions. A process cannot set those of another.
fn capabilities() {
    const VERSION_1: u32 = 0x1998_0330;
    const VERSION_3: u32 = 0x2008_0522;
    let init = 1;
    let [first, last] = [words([VERSION_1, init]), words([VERSION_3, init])];
    let sets = words([1 << 1 | 1 << 21, 1 << 2, 0, 1 << 3, 0, 1 << 8]);
    let most = words([u32::MAX, u32::MAX, 0, 0x1fd, 0x1ff, 0]);
    call(libc::SYS_capset, [address(&last), address(&sets), 0, 0, 0, 0]);
    call(libc::SYS_capset, [address(&first), address(&sets[..12]), 0, 0, 0, 0]);
    call(libc::SYS_capset, [address(&last), address(&most), 0, 0, 0, 0]);
}

/// Flags and values that have names only beside others.
fn flags() {
    call(libc::SYS_dup3, [NO_FD, 998, (libc::O_TRUNC | libc::O_CLOEXEC) as u64, 0, 0, 0]);
    let set_mode_strict = 0;
    call(libc::SYS_seccomp, [set_mode_strict, 0, 5, 0, 0, 0]);
    let [process, best_effort_4] = [1, 2 << 13 | 4];
    call(libc::SYS_ioprio_set, [process, 0, best_effort_4, 0, 0, 0]);
    call(libc::SYS_ioprio_get, [process, 0, 0, 0, 0, 0]);
    // An address of AF_VSOCK: any port, and an ID of a virtual machine without a name.
    let vsock = words([40, u32::MAX, 77, 0]);
    call(libc::SYS_connect, [NO_FD, address(&vsock), 16, 0, 0, 0]);
    // A signal that somebody sent, with an error.
    let mut info = words([libc::SIGUSR1 as u32, libc::ENOENT as u32, libc::SI_QUEUE as u32, 0, 1, 2, 3, 0]);
    info.resize(128, 0);
    call(libc::SYS_rt_sigqueueinfo, [0x7fff_fff0, libc::SIGUSR1 as u64, address(&info), 0, 0, 0]);
}

/// Structs whose length 0 is that of their first version.
fn lengths() {
    let mut attr = words([1, 0, 2, 0, 4999, 0]);
    attr.resize(128, 0);
    // No task has the pid -1 on the CPU -1.
    call(libc::SYS_perf_event_open, [address(&attr), u64::MAX, u64::MAX, u64::MAX, 0, 0]);
    let mut schedule = words([0, 99, 0, 0, 5]);
    schedule.resize(64, 0);
    call(libc::SYS_sched_setattr, [0, address(&schedule), 0, 0, 0, 0]);
}

/// Socket options that few programs have, on no socket.
fn options() {
    let [ip, ipv6, tcp, sctp]: [u64; 4] = [0, 41, 6, 132];
    let [can_isotp, rxrpc, bluetooth, rds]: [u64; 4] = [106, 272, 274, 276];
    let set = |level: u64, option: u64, value: &[u8]| {
        call(libc::SYS_setsockopt, [NO_FD, level, option, address(value), value.len() as u64, 0]);
    };
    let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
    set(libc::SOL_SOCKET as u64, 36, &words([0xbeef]));
    set(ip, 51, &words([40_000 | 41_000 << 16]));
    // A virtual interface for multicast routing: the number 2, with VIFF_USE_IFINDEX.
    set(ip, 202, &words([2 | 8 << 16 | 1 << 24, 0, 7, loopback]));
    let mut table = b"filter".to_vec();
    table.resize(32, 0);
    set(ip, 64, &[&table[..], &words([0xe, 4, 640]), &[0; 52]].concat());
    set(ipv6, 202, &words([2 | 1 << 16 | 1 << 24, 9, 0]));
    let mut address_of_peer = words([2, loopback]);
    address_of_peer.resize(128, 0);
    let mut key = [&address_of_peer[..], b"hmac(sha1)", &[0; 54], &words([3, 2]), &[0, 0, 24, 7, 8, 12, 1, 4], b"four"].concat();
    key.resize(288, 0);
    set(tcp, 38, &key);
    set(tcp, 33, b"sixteen bytes...");
    set(sctp, 9, &[&words([5])[..], &address_of_peer, &words([3000]), &[5, 0], &words([1500, 200, 1 | 8])[..], &[0; 6]].concat());
    set(sctp, 123, &words([5, 1]));
    set(sctp, 127, &words([5, 0x8001 | 1 << 16]));
    set(can_isotp, 1, &[&words([2 | 4, 50_000])[..], &[0x11, 0xcc, 0xdd, 0x22]].concat());
    set(bluetooth, 4, &[2, 16]);
    set(rxrpc, 4, &words([1]));
    set(rds, 2, &[0x1000u64, 4096, 0x2000, 9].map(u64::to_ne_bytes).concat());
}

/// Requests that are in memory, behind pointers.
fn requests() {
    const REGISTER_PROBE: u64 = 8;
    let mut context = [0u64];
    call(libc::SYS_io_setup, [1, place(&mut context), 0, 0, 0, 0]);
    // A pread of a descriptor that is not open.
    let request = [0x1111u64, 0, 997 << 32, 0x7000, 40, 8, 0, 0].map(u64::to_ne_bytes).concat();
    let list = [address(&request)];
    call(libc::SYS_io_submit, [context[0], 1, address(&list), 0, 0, 0]);
    let mut parameters = vec![0u8; 120];
    let ring = call(libc::SYS_io_uring_setup, [2, place(&mut parameters), 0, 0, 0, 0]);
    let mut probe = vec![0u8; 16 + 2 * 8];
    let result = call(libc::SYS_io_uring_register, [ring as u64, REGISTER_PROBE, place(&mut probe), 2, 0, 0]);
    println!("probe {result} {}", probe[0]);
}

/// A map, a program and a link of BPF, and what the kernel says about them.
fn objects() {
    let [map_create, prog_load, obj_get_info_by_fd]: [u64; 3] = [0, 5, 15];
    let bpf = |cmd: u64, attr: &[u8]| call(libc::SYS_bpf, [cmd, address(attr), attr.len() as u64, 0, 0, 0]);
    let of_map = [&words([2, 4, 8, 77, 0, 0, 0])[..], b"seventy_seven\0\0\0"].concat();
    let map = bpf(map_create, &of_map);
    // r0 = 42; exit
    let instructions = [&[0xb7, 0, 0, 0][..], &words([42]), &[0x95, 0, 0, 0], &words([0])].concat();
    let license = *b"GPL\0";
    let pointers = [address(&instructions), address(&license)].map(u64::to_ne_bytes).concat();
    let of_program = [&words([1, 2])[..], &pointers, &words([0, 0, 0, 0, 6 << 16 | 1 << 8 | 9, 0]), b"forty_two\0\0\0\0\0\0\0"].concat();
    let program = bpf(prog_load, &of_program);
    for (name, fd, size) in [("map", map, 88u32), ("program", program, 64), ("none", -1, 64)] {
        let mut info = vec![0u8; size as usize];
        let attr = [&words([fd as u32, size])[..], &place(&mut info).to_ne_bytes()].concat();
        bpf(obj_get_info_by_fd, &attr);
        println!("{name} {fd} {}", u32::from_ne_bytes([info[4], info[5], info[6], info[7]]));
    }
}
