//! Netlink messages in a network namespace of the process: what it asks the kernel for is known, and so are the
//! answers.

use crate::messages::{attribute, check, drain, message, netlink, received, send_to};
use crate::told;

/// `NLM_F_REQUEST`, `NLM_F_ACK`, `NLM_F_DUMP`, and `NLM_F_CREATE` with `NLM_F_EXCL`
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
const CREATE: u16 = 0x600;
/// `NLA_F_NESTED`
const NESTED: u16 = 0x8000;

pub fn run() {
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }.into(), "unshare");
    links();
    traffic();
    statistics();
    next_hops();
    families();
    netfilter();
    internet_sockets();
    parts();
}

/// Sends a message that the kernel acknowledges.
fn ask(socket: i32, kind: u16, flags: u16, payload: &[&[u8]]) {
    send_to(socket, &message(kind, REQUEST | ACK | flags, &payload.concat()));
    received(socket, 4096);
}

/// Creates a pair of virtual interfaces (`RTM_NEWLINK` with `IFLA_LINKINFO`), and a bridge, and shows the links of the
/// bridge and its multicast groups.
fn links() {
    let socket = netlink(libc::NETLINK_ROUTE);
    let peer = [&[0; 16][..], &attribute(3, b"rtrace1\0")].concat();
    let data = [attribute(1, b"veth\0"), attribute(2, &attribute(1, &peer))].concat();
    ask(socket, 16, CREATE, &[&[0; 16], &attribute(3, b"rtrace0\0"), &attribute(18, &data)]);
    let data = [attribute(1, b"bridge\0"), attribute(2, &attribute(1, &1500u32.to_ne_bytes()))].concat();
    ask(socket, 16, CREATE, &[&[0; 16], &attribute(3, b"rtracebr\0"), &attribute(18, &data)]);
    // RTM_GETMDB with a struct br_port_msg
    send_to(socket, &message(86, REQUEST | DUMP, &[libc::AF_BRIDGE as u8, 0, 0, 0, 0, 0, 0, 0]));
    drain(|| received(socket, 32 << 10));
}

/// Replaces the queueing discipline of an interface, and reads all of them.
fn traffic() {
    let socket = netlink(libc::NETLINK_ROUTE);
    let name = c"rtrace0";
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    // struct tcmsg: tcm_ifindex, tcm_handle, tcm_parent (TC_H_ROOT)
    let head = [0, index, 0x10000, u32::MAX, 0].map(u32::to_ne_bytes).concat();
    // TCA_KIND, and TCA_OPTIONS with a struct tc_fifo_qopt
    ask(socket, 36, CREATE, &[&head, &attribute(1, b"pfifo\0"), &attribute(2, &77u32.to_ne_bytes())]);
    // NLM_F_CREATE | NLM_F_REPLACE; TCA_OPTIONS with TCA_TBF_PARMS, a struct tc_tbf_qopt that is too short
    ask(socket, 36, 0x500, &[&head, &attribute(1, b"tbf\0"), &attribute(2, &attribute(1, &[0; 4]))]);
    send_to(socket, &message(38, REQUEST | DUMP, &[0; 20]));
    drain(|| received(socket, 32 << 10));
}

/// Asks for the statistics of the loopback interface (`RTM_GETSTATS` with a struct if_stats_msg).
fn statistics() {
    let socket = netlink(libc::NETLINK_ROUTE);
    send_to(socket, &message(94, REQUEST, &[0u32, 1, 1].map(u32::to_ne_bytes).concat()));
    received(socket, 4096);
}

/// Asks for a next hop by an address in a network that is not there (`RTM_NEWNEXTHOP` with a struct nhmsg).
fn next_hops() {
    let socket = netlink(libc::NETLINK_ROUTE);
    ask(
        socket,
        104,
        CREATE,
        &[&[libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, 0], &attribute(1, &7u32.to_ne_bytes()), &attribute(6, &[192, 0, 2, 1])],
    );
}

/// Asks for the number of a generic family, which is told to this program here for the first time.
fn number_of(socket: i32, name: &[u8]) -> u16 {
    send_to(socket, &message(16, REQUEST, &[&[3, 1, 0, 0][..], &attribute(2, name)].concat()));
    let answer = received(socket, 8192);
    let attributes = &answer[20..];
    let mut at = 0;
    while let [a, b, c, d, e, f, ..] = attributes[at..] {
        if u16::from_ne_bytes([c, d]) == 1 {
            return u16::from_ne_bytes([e, f]);
        }
        at += usize::from(u16::from_ne_bytes([a, b])).next_multiple_of(4);
    }
    panic!("there is no number in {answer:?}");
}

/// Asks ethtool for the features of the loopback interface, and for the statistics of this task.
fn families() {
    let socket = netlink(libc::NETLINK_GENERIC);
    // ETHTOOL_MSG_FEATURES_GET with ETHTOOL_A_HEADER_DEV_NAME
    let device = attribute(1 | NESTED, &attribute(2, b"lo\0"));
    let ethtool = number_of(netlink(libc::NETLINK_GENERIC), b"ethtool\0");
    send_to(socket, &message(ethtool, REQUEST, &[&[11, 1, 0, 0][..], &device].concat()));
    received(socket, 8192);
    let statistics = number_of(socket, b"TASKSTATS\0");
    // TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID
    let own = attribute(1, &std::process::id().to_ne_bytes());
    send_to(socket, &message(statistics, REQUEST, &[&[1, 1, 0, 0][..], &own].concat()));
    received(socket, 8192);
}

/// Creates a table in a batch, and asks for it (`NFT_MSG_NEWTABLE`, `NFT_MSG_GETTABLE`).
fn netfilter() {
    let socket = netlink(libc::NETLINK_NETFILTER);
    let head = |family: u8, subsystem: u8| [family, 0, 0, subsystem];
    let table = [&head(libc::AF_INET as u8, 0)[..], &attribute(1, b"rtracetable\0")].concat();
    let batch = [message(16, REQUEST, &head(0, 10)), message(0xa00, REQUEST | 0x400, &table), message(17, REQUEST, &head(0, 10))];
    send_to(socket, &batch.concat());
    send_to(socket, &message(0xa01, REQUEST, &table));
    received(socket, 4096);
}

/// Asks for the listening TCP sockets of the namespace with the attributes of each (`struct inet_diag_req_v2`).
fn internet_sockets() {
    let listener = std::net::TcpListener::bind("0.0.0.0:7").expect("it is free");
    let socket = netlink(4);
    // INET_DIAG_MEMINFO, INET_DIAG_INFO, INET_DIAG_CONG and INET_DIAG_SKMEMINFO; TCPF_LISTEN
    let request = [&[libc::AF_INET as u8, libc::IPPROTO_TCP as u8, 0x4b, 0][..], &0x400u32.to_ne_bytes(), &[0; 48]].concat();
    send_to(socket, &message(20, REQUEST | DUMP, &request));
    drain(|| received(socket, 32 << 10));
    drop(listener);
}

/// Sends a message whose header, struct and attributes are in memory of their own (`struct iovec`).
fn parts() {
    let socket = netlink(libc::NETLINK_ROUTE);
    let whole = message(18, REQUEST, &[&[0; 16][..], &attribute(3, b"lo\0")].concat());
    let parts: Vec<Vec<u8>> = [&whole[..16], &whole[16..34], &whole[34..]].map(<[u8]>::to_vec).to_vec();
    let mut of_parts: Vec<libc::iovec> =
        parts.iter().map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() }).collect();
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (of_parts.as_mut_ptr(), of_parts.len() as _);
    told::note(&of_parts[..]);
    parts.iter().for_each(|part| told::note(&part[..]));
    check(unsafe { told::syscall!(libc::SYS_sendmsg, socket, &raw const header, 0) }, "sendmsg");
    received(socket, 4096);
}
