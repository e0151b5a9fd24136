//! Addresses of rarer families of sockets, and structs of mounts and of i386's oldest calls.

use super::*;

#[test]
fn addresses_of_rarer_families_are_printed_by_member() {
    let connect = |address: &[u8], expected: &str| {
        let call = native("connect", &[3, 0x1000, address.len() as u64], 0).entry(1, address);
        call.prints(&format!("fd: 3, uservaddr: {expected}, addrlen: {}", address.len()));
    };
    connect(
        &bytes![29u16, 0u16, 4u32, 0x123u32, 0x456u32, 0u64],
        "{.can_family: CAN, .can_ifindex: 4, .tp: {.rx_id: 0x123, .tx_id: 0x456}, .j1939: {.name: 0x45600000123, .pgn: 0, .addr: 0}}",
    );
    connect(
        &bytes![30u16, 2u8, 2u8, 18888u32, 17u32, 0u32],
        "{.family: TIPC, .addrtype: SERVICE_ADDR, .scope: CLUSTER_SCOPE, .name: {.type: 18888, .instance: 17, .domain: 0}}",
    );
    connect(
        &bytes![30u16, 3u8, 3u8, 5u32, 6u32, 0u32],
        "{.family: TIPC, .addrtype: SOCKET_ADDR, .scope: NODE_SCOPE, .id: {.ref: 5, .node: 6}}",
    );
    connect(&bytes![42u16, 0u16, 1u32, 0x4000u32], "{.sq_family: QIPCRTR, .sq_node: 1, .sq_port: 0x4000}");
    let inet = [&bytes![2u16][..], &[27, 89, 127, 0, 0, 1], &[0; 20]].concat();
    connect(
        &[&bytes![33u16, 52u16, 2u16, 16u16][..], &inet].concat(),
        "{.srx_family: RXRPC, .srx_service: 52, .transport_type: DGRAM, .transport_len: 16, \
         .transport: {.sin_family: INET, .sin_port: 7001, .sin_addr: 127.0.0.1}}",
    );
    connect(
        &[&bytes![24u16, 0u32][..], &[0, 5, 2, 3, 4, 5, 6, 7], b"eth0", &[0; 12]].concat(),
        "{.sa_family: PPPOX, .sa_protocol: OE, .pppoe: {.sid: 5, .remote: \"\\x02\\x03\\x04\\x05\\x06\\x07\", .dev: \"eth0\"}}",
    );
    connect(
        &bytes![26u16, 1u16, 0u8, 0u8, 0u8, 0x42u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 0u16],
        "{.sllc_family: LLC, .sllc_arphrd: ETHER, .sllc_test: 0, .sllc_xid: 0, .sllc_ua: 0, .sllc_sap: BSPAN, \
         .sllc_mac: \"\\x01\\x02\\x03\\x04\\x05\\x06\"}",
    );
}

#[test]
fn the_protocol_of_a_socket_is_named_by_its_family() {
    native("socket", &[24, 1, 1], 3).prints("family: PPPOX, type: STREAM, protocol: OL2TP");
    native("socket", &[43, 1, 1], 3).prints("family: SMC, type: STREAM, protocol: SMC6");
    native("socket", &[33, 2, 10], 3).prints("family: RXRPC, type: DGRAM, protocol: INET6");
}

#[test]
fn mounts_are_printed_with_what_was_asked_and_what_the_kernel_knew() {
    let request = bytes![32u32, 0u32, 7u64, 0x21u64, 0u64];
    let head = bytes![520u32, 0u32, 0x21u64, 8u32, 1u32, 0xef53u64, 1u32, 0u32];
    let answer = [&head[..], &[0; 472], b"ext4\0\0\0\0"].concat();
    native("statmount", &[0x1000, 0x2000, 520, 0], 0).entry(0, &request).exit(1, &answer).prints_briefly(
        "req: {.mnt_id: 0x7, .param: SB_BASIC|FS_TYPE, ...}, \
         buf: {.mask: SB_BASIC|FS_TYPE, .sb_magic: EXT4_SUPER_MAGIC, .str: \"ext4\\x00\\x00\\x00\\x00\", ...}, bufsize: 520",
    );
    native("listmount", &[0x1000, 0x2000, 4, 0], 1)
        .entry(0, &bytes![32u32, 0u32, u64::MAX, 0u64, 0u64])
        .exit(1, &bytes![5u64])
        .prints_briefly("req: {.mnt_id: ROOT, .param: 0, ...}, mnt_ids: [5], nr_mnt_ids: 4");
}

#[test]
fn the_oldest_calls_of_i386_have_structs() {
    let stat = bytes![0x801u16, 5u16, 0o100644u16, 1u16, 1000u16, 1000u16, 0u16, 0u16, 12u32, 1u32, 2u32, 3u32];
    compat("oldfstat", &[3, 0x1000], 0)
        .exit(1, &stat)
        .prints_briefly("fd: 3, statbuf: {.st_mode: IFREG|0644, .st_uid: 1000, .st_gid: 1000, .st_size: 12, ...}");
    compat("sigprocmask", &[0, 0x1000, 0], 0).entry(1, &bytes![1u32 << 1]).prints("how: BLOCK, nset: [INT]");
    compat("sigaction", &[2, 0x1000, 0], 0)
        .entry(1, &bytes![1u32, 1u32 << 9, 0x10000000u32, 0u32])
        .prints("sig: INT, act: {.sa_handler: IGN, .sa_mask: [USR1], .sa_flags: RESTART, .sa_restorer: NULL}");
    compat("socketcall", &[1, 0x1000], 3)
        .entry(1, &bytes![2u32, 1u32, 6u32])
        .prints("call: SOCKET, args: {.family: INET, .type: STREAM, .protocol: 6}");
    compat("ipc", &[1, 7, 1, 0, 0x1000, 0], 0)
        .entry(4, &bytes![0u16, -1i16, 0u16])
        .prints("call: SEMOP, first: 7, second: 1, ptr: [{.sem_num: 0, .sem_op: -1, .sem_flg: 0}]");
    compat("fcntl64", &[3, 1035, 0x1000], 0).exit(2, &bytes![2u64]).prints("fd: 3, cmd: GET_RW_HINT, arg: [SHORT]");
}
