//! Messages in several parts of memory.

use super::*;

/// Returns a call of sendmsg on a netlink socket whose message is in parts of these lengths, the last one with the
/// rest.
fn in_parts(protocol: u32, bytes: &[u8], lengths: &[usize]) -> Call {
    let row = lookup::index_by_name("sendmsg").map(|at| &crate::beauty::tables::SYSCALLS[usize::from(at)]).expect("it has a row");
    let mut call = Call { nr: i64::from(row.numbers[0].expect("x86-64 has it")), ..samples::call([3, 0x1000, 0, 0, 0, 0], 1) };
    let (mut rest, mut array, mut parts) = (bytes, Vec::new(), Vec::new());
    for (at, length) in lengths.iter().copied().chain([usize::MAX]).enumerate() {
        let (part, after) = rest.split_at(length.min(rest.len()));
        let address = 0x10_000 * (at as u64 + 1);
        array.extend([address.to_le_bytes(), (part.len() as u64).to_le_bytes()].concat());
        parts.push((address, part));
        rest = after;
    }
    let count = parts.len() as u64;
    let header = [0, 0, 0x2000, count, 0, 0, 0].map(u64::to_le_bytes).concat();
    let memory = [(0x1000, &header[..]), (0x2000, &array[..])].into_iter().chain(parts);
    for (address, bytes) in memory {
        call = samples::with_memory(call, 1, PieceTime::Entry, address, bytes, PieceState::Ok);
    }
    let socket = Socket { family: 16, ends: SocketAddresses::Netlink { protocol, port: Default::default() }, ..Socket::default() };
    call.files.push(CallFile { place: FdPlace::Arg(0), file: File::Socket(Arc::new(socket)) });
    call
}

fn sent_in_parts(bytes: &[u8], lengths: &[usize]) -> String {
    printed(&in_parts(ROUTE, bytes, lengths), &Families::default())
}

fn printed(call: &Call, families: &Families) -> String {
    let joined = Joined::default();
    let decoded = Decoded::new(call, Context::new(&samples::comms, 64).families(families).joined(&joined));
    let mut out = Vec::new();
    value::write(&mut out, decoded.args().nth(1).expect("it has three").values().entry().expect("it is an input"), false);
    String::from_utf8(out).expect("lines are text")
}

#[test]
fn a_message_in_parts_is_whole_where_it_begins() {
    let bytes = [message(18, 1, &[link(2), attribute(3, b"lo\0")].concat()), message(22, 1, &[2, 0, 0, 0, 0, 0, 0, 0])].concat();
    let first = "{.nlmsg_len: 40, .nlmsg_type: GETLINK, .nlmsg_flags: REQUEST, .nlmsg_seq: 1, .nlmsg_pid: 0, .payload: {.ifi_family: UNSPEC, \
        .ifi_type: NETROM, .ifi_index: 2, .ifi_flags: 0, .ifi_change: 0}, .attributes: [{.nla_len: 7, .nla_type: IFNAME, .data: \"lo\"}]}";
    let second = ".nlmsg_type: GETADDR, ";
    for lengths in [&[16usize][..], &[16, 16], &[4, 1, 30], &[34], &[36], &[40], &[60]] {
        let text = sent_in_parts(&bytes, lengths);
        assert!(text.contains(&format!(".msg_iov: [{{.iov_base: [{first}")), "{lengths:?}: {text}");
        assert_eq!((text.matches("nlmsg_len").count(), text.matches(second).count()), (2, 1), "{lengths:?}: {text}");
    }
    let text = sent_in_parts(&bytes, &[16, 24]);
    assert!(text.contains(".iov_len: 16}, {.iov_base: \"\"..., .iov_len: 24}, {.iov_base: [{.nlmsg_len: 24, "), "{text}");
    // The message is longer than all parts.
    let text = sent_in_parts(&bytes[..36], &[16]);
    assert!(!text.contains("nlmsg_len"), "{text}");
}

#[test]
fn keys_are_in_no_part() {
    let mut families = Families::default();
    families.learn(&family_answer(GENERIC, b"wireguard\0", 22));
    // WG_CMD_SET_DEVICE with WGDEVICE_A_PRIVATE_KEY.
    let bytes = message(22, 1, &[&[1, 1, 0, 0][..], &attribute(3, &[b'k'; 32])].concat());
    for lengths in [&[16usize][..], &[20], &[24], &[16, 8, 16]] {
        let text = printed(&in_parts(GENERIC, &bytes, lengths), &families);
        assert!(text.contains(".nla_type: PRIVATE_KEY, .data: {...}}") && !text.contains("kk"), "{lengths:?}: {text}");
    }
}
