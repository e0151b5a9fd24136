//! Socket addresses, messages, socket options, and ioctls of terminals.

use super::*;

#[test]
fn socket_addresses_are_printed_by_their_family() {
    let connect = |address: &[u8]| native("connect", &[3, 0x1000, address.len() as u64], 0).entry(1, address);
    let inet = [&bytes![2u16][..], &[0, 80, 127, 0, 0, 1], &[0; 8]].concat();
    connect(&inet).prints("fd: 3, uservaddr: {.sin_family: INET, .sin_port: 80, .sin_addr: 127.0.0.1}, addrlen: 16");
    compat("connect", &[3, 0x1000, 16], 0)
        .entry(1, &inet)
        .prints("fd: 3, uservaddr: {.sin_family: INET, .sin_port: 80, .sin_addr: 127.0.0.1}, addrlen: 16");
    let mut inet6 = [&bytes![10u16][..], &[1, 187, 0, 0, 0, 1], &[0; 16], &bytes![2u32]].concat();
    (inet6[8], inet6[9], inet6[23]) = (0xfe, 0x80, 1);
    connect(&inet6)
        .prints("fd: 3, uservaddr: {.sin6_family: INET6, .sin6_port: 443, .sin6_flowinfo: 0x1, .sin6_addr: fe80::1, .sin6_scope_id: 2}, addrlen: 28");
    connect(b"\x01\0/run/x\0").prints("fd: 3, uservaddr: {.sun_family: UNIX, .sun_path: \"/run/x\"}, addrlen: 9");
    connect(b"\x01\0\0a\0b").prints("fd: 3, uservaddr: {.sun_family: UNIX, .sun_path: \"\\x00a\\x00b\"}, addrlen: 6");
    connect(b"\x01\0").prints("fd: 3, uservaddr: {.sun_family: UNIX}, addrlen: 2");
    connect(&bytes![16u16, 0u16, 7u32, 0x11u32])
        .prints("fd: 3, uservaddr: {.nl_family: NETLINK, .nl_pid: 7, .nl_groups: 0x11}, addrlen: 12");
    connect(&[&bytes![17u16, 0x0008u16, 2u32, 1u16, 0u8, 6u8][..], &[0xaa, 1, 2, 3, 4, 5, 0, 0]].concat()).prints(
        "fd: 3, uservaddr: {.sll_family: PACKET, .sll_protocol: IP, .sll_ifindex: 2, .sll_hatype: ETHER, .sll_pkttype: HOST, .sll_halen: 6, \
         .sll_addr: \"\\xaa\\x01\\x02\\x03\\x04\\x05\\x00\\x00\"}, addrlen: 20",
    );
    connect(&bytes![40u16, 0u16, 99u32, 2u32, 0u32])
        .prints("fd: 3, uservaddr: {.svm_family: VSOCK, .svm_port: 99, .svm_cid: HOST, .svm_flags: 0}, addrlen: 16");
    connect(&bytes![99u16, 0x6261u16]).prints("fd: 3, uservaddr: {.sa_family: 0x63, .sa_data: \"ab\"}, addrlen: 4");
    connect(&[2]).prints("fd: 3, uservaddr: \"\\x02\", addrlen: 1");
    connect(&[&bytes![38u16][..], b"hash\0\0\0\0\0\0\0\0\0\0", &[0; 8], b"sha256", &[0; 58]].concat()).prints(
        "fd: 3, uservaddr: {.salg_family: ALG, .salg_type: \"hash\", .salg_feat: 0, .salg_mask: 0, .salg_name: \"sha256\"}, addrlen: 88",
    );
    connect(&inet[..6]).with_length(16).prints("fd: 3, uservaddr: {.sin_family: INET, .sin_port: 80, ...}, addrlen: 6");
    native("accept", &[3, 0x1000, 0x2000], 4)
        .exit(1, &inet)
        .entry(2, &bytes![128u32])
        .exit(2, &bytes![16u32])
        .prints("fd: 3, upeer_sockaddr: {.sin_family: INET, .sin_port: 80, .sin_addr: 127.0.0.1}, upeer_addrlen: [128 => 16]");
}

#[test]
fn buffers_and_messages_are_printed_with_their_data() {
    let entry = PieceTime::Entry;
    native("writev", &[1, 0x1000, 3], 5)
        .entry(1, &bytes![0x5000u64, 3u64, 0x6000u64, 2u64, 0x7000u64, 0u64])
        .at(1, entry, 0x6000, b"de")
        .at(1, entry, 0x5000, b"abc")
        .prints(
            "fd: 1, vec: [{.iov_base: \"abc\", .iov_len: 3}, {.iov_base: \"de\", .iov_len: 2}, {.iov_base: \"\", .iov_len: 0}], vlen: 3",
        );
    compat("writev", &[1, 0x1000, 1], 5)
        .entry(1, &bytes![0x5000u32, 3u32])
        .at(1, entry, 0x5000, b"abc")
        .prints("fd: 1, vec: [{.iov_base: \"abc\", .iov_len: 3}], vlen: 1");
    native("readv", &[0, 0x1000, 2], 3)
        .exit(1, &bytes![0x5000u64, 3u64, 0x6000u64, 2u64])
        .at(1, PieceTime::Exit, 0x5000, b"abc")
        .prints("fd: 0, vec: [{.iov_base: \"abc\", .iov_len: 3}, {.iov_base: 0x6000, .iov_len: 2}], vlen: 2");
    native("sendmsg", &[3, 0x1000, 0x4000], 5)
        .entry(1, &bytes![0x5000u64, 9u64, 0x6000u64, 1u64, 0x7000u64, 4u64, 0u64])
        .at(1, entry, 0x5000, b"\x01\0/run/x\0")
        .at(1, entry, 0x6000, &bytes![0x8000u64, 5u64])
        .at(1, entry, 0x8000, b"hello")
        .at(1, entry, 0x7000, b"\x01\x02\x03\x04")
        .prints(
            "fd: 3, msg: {.msg_name: {.sun_family: UNIX, .sun_path: \"/run/x\"}, .msg_namelen: 9, .msg_iov: [{.iov_base: \"hello\", .iov_len: 5}], \
             .msg_iovlen: 1, .msg_control: \"\\x01\\x02\\x03\\x04\", .msg_controllen: 4, .msg_flags: 0}, flags: NOSIGNAL",
        );
    let header = |name: u32, flags: u32| bytes![0x5000u32, name, 0x6000u32, 1u32, 0u32, 0u32, flags];
    compat("recvmsg", &[3, 0x1000, 0], 5)
        .entry(1, &header(16, 0))
        .exit(1, &header(12, 0x20))
        .at(1, PieceTime::Exit, 0x5000, &bytes![16u16, 0u16, 0u32, 0u32])
        .at(1, entry, 0x6000, &bytes![0x8000u32, 5u32])
        .at(1, PieceTime::Exit, 0x8000, b"hello")
        .prints(
            "fd: 3, msg: {.msg_name: {.nl_family: NETLINK, .nl_pid: 0, .nl_groups: 0}, .msg_namelen: 16 => 12, \
             .msg_iov: [{.iov_base: \"hello\", .iov_len: 5}], .msg_iovlen: 1, .msg_control: NULL, .msg_controllen: 0, .msg_flags: 0 => TRUNC}",
        );
}

#[test]
fn socket_options_and_terminal_ioctls_are_printed() {
    let set = |option: u64, value: &[u8]| native("setsockopt", &[3, 1, option, 0x1000, value.len() as u64], 0).entry(3, value);
    set(2, &bytes![1u32]).prints("fd: 3, level: SOCKET, optname: REUSEADDR, optval: [1], optlen: 4");
    set(13, &bytes![1u32, 30u32]).prints("fd: 3, level: SOCKET, optname: LINGER, optval: {.l_onoff: 1, .l_linger: 30}, optlen: 8");
    set(25, b"eth0\0").prints("fd: 3, level: SOCKET, optname: BINDTODEVICE, optval: \"eth0\", optlen: 5");
    set(13, &bytes![1u32]).prints("fd: 3, level: SOCKET, optname: LINGER, optval: \"\\x01\\x00\\x00\\x00\", optlen: 4");
    set(2, b"\x01").prints("fd: 3, level: SOCKET, optname: REUSEADDR, optval: \"\\x01\", optlen: 1");
    set(37, &bytes![0x18u32]).prints("fd: 3, level: SOCKET, optname: TIMESTAMPING_OLD, optval: {.flags: RX_SOFTWARE|SOFTWARE}, optlen: 4");
    set(37, &bytes![0x18u32, 3u32])
        .prints("fd: 3, level: SOCKET, optname: TIMESTAMPING_OLD, optval: {.flags: RX_SOFTWARE|SOFTWARE}, optlen: 8");
    set(37, &bytes![0x8010u32, 3u32])
        .prints("fd: 3, level: SOCKET, optname: TIMESTAMPING_OLD, optval: {.flags: SOFTWARE|BIND_PHC, .bind_phc: 3}, optlen: 8");
    set(47, &bytes![u32::MAX]).prints("fd: 3, level: SOCKET, optname: MAX_PACING_RATE, optval: [4294967295], optlen: 4");
    set(47, &bytes![1u64 << 40]).prints("fd: 3, level: SOCKET, optname: MAX_PACING_RATE, optval: [1099511627776], optlen: 8");
    set(66, &bytes![5u64, 250u64]).prints("fd: 3, level: SOCKET, optname: RCVTIMEO_NEW, optval: {.tv_sec: 5, .tv_usec: 250}, optlen: 16");
    set(80, &bytes![1u32, 2u32, 3u32, 4u32]).prints(
        "fd: 3, level: SOCKET, optname: DEVMEM_DONTNEED, optval: [{.token_start: 1, .token_count: 2}, {.token_start: 3, .token_count: 4}], \
         optlen: 16",
    );
    let multicast = |value: &[u8]| native("setsockopt", &[3, 0, 32, 0x1000, value.len() as u64], 0).entry(3, value);
    multicast(&[127, 0, 0, 1]).prints("fd: 3, level: IP, optname: MULTICAST_IF, optval: [127.0.0.1], optlen: 4");
    multicast(&[0, 0, 0, 0, 10, 0, 0, 1])
        .prints("fd: 3, level: IP, optname: MULTICAST_IF, optval: {.imr_multiaddr: 0.0.0.0, .imr_interface: 10.0.0.1}, optlen: 8");
    native("setsockopt", &[3, 0, 50, 0x1000, 4], 0)
        .entry(3, &[0, 0, 0, 2])
        .prints("fd: 3, level: IP, optname: UNICAST_IF, optval: [2], optlen: 4");
    let label = bytes![0u64, 1u64 << 56, 7u32 << 24, 0u8, 1u8, 3u16, 60u16, 6u16, 0u32];
    native("setsockopt", &[3, 41, 32, 0x1000, 32], 0).entry(3, &label).prints(
        "fd: 3, level: IPV6, optname: FLOWLABEL_MGR, optval: {.flr_dst: ::1, .flr_label: 0x7, .flr_action: GET, .flr_share: EXCL, \
         .flr_flags: CREATE|EXCL, .flr_expires: 60, .flr_linger: 6}, optlen: 32",
    );
    native("setsockopt", &[3, 6, 13, 0x1000, 4], 0)
        .entry(3, b"reno")
        .prints("fd: 3, level: TCP, optname: CONGESTION, optval: \"reno\", optlen: 4");
    native("getsockopt", &[3, 1, 59, 0x1000, 0x2000], 0)
        .exit(3, &bytes![0u32, 27u32])
        .entry(4, &bytes![8u32])
        .exit(4, &bytes![8u32])
        .prints("fd: 3, level: SOCKET, optname: PEERGROUPS, optval: [0, 27], optlen: [8]");
    native("getsockopt", &[3, 1, 4, 0x1000, 0x2000], 0)
        .exit(3, &bytes![111u32])
        .entry(4, &bytes![4u32])
        .exit(4, &bytes![4u32])
        .prints("fd: 3, level: SOCKET, optname: ERROR, optval: [ECONNREFUSED], optlen: [4]");
    native("ioctl", &[1, 0x5413, 0x1000], 0)
        .exit(2, &bytes![24u16, 80u16, 0u16, 0u16])
        .prints("fd: 1, cmd: TIOCGWINSZ, arg: {.ws_row: 24, .ws_col: 80, .ws_xpixel: 0, .ws_ypixel: 0}");
    compat("ioctl", &[1, 0x5401, 0x1000], 0).exit(2, &[&bytes![0x500u32, 5u32, 0xbfu32, 0x8a3bu32, 0u8][..], &[0; 19]].concat()).prints(
        &format!(
            "fd: 1, cmd: TCGETS, arg: {{.c_iflag: ICRNL|IXON, .c_oflag: NL0|CR0|TAB0|BS0|VT0|FF0|OPOST|ONLCR, \
             .c_cflag: B38400|CS8|CREAD, .c_lflag: ISIG|ICANON|ECHO|ECHOE|ECHOK|ECHOCTL|ECHOKE|IEXTEN, .c_line: TTY, .c_cc: {{{}}}}}",
            [
                "VINTR", "VQUIT", "VERASE", "VKILL", "VEOF", "VTIME", "VMIN", "VSWTC", "VSTART", "VSTOP", "VSUSP", "VEOL", "VREPRINT",
                "VDISCARD", "VWERASE", "VLNEXT", "VEOL2"
            ]
            .map(|name| format!(".{name}: 0"))
            .join(", ")
        ),
    );
    native("ioctl", &[1, 0x541b, 0x1000], 0).exit(2, &bytes![9u32]).prints("fd: 1, cmd: FIONREAD, arg: [9]");
    native("ioctl", &[1, 0x541b, 0x1000], -25).prints("fd: 1, cmd: FIONREAD, arg: 0x1000");
}
