use super::*;
use crate::beauty::decode::{Context, Decoded};
use crate::beauty::perf::value;
use crate::beauty::{lookup, samples};
use crate::event::{CallFile, PieceState, PieceTime, Socket};
use proptest::prelude::*;
use std::sync::Arc;

/// `NETLINK_*`
const ROUTE: u32 = 0;
const SOCK_DIAG: u32 = 4;
const XFRM: u32 = 6;
const AUDIT: u32 = 9;
const NETFILTER: u32 = 12;
const KOBJECT_UEVENT: u32 = 15;
const GENERIC: u32 = 16;

/// Returns the value of the data of a sendto on a netlink socket of the protocol, as lines print it.
fn sent(protocol: u32, bytes: &[u8], is_brief: bool) -> String {
    sent_of(protocol, bytes, bytes.len(), is_brief)
}

/// The same for data of which only the first bytes were copied.
fn sent_of(protocol: u32, bytes: &[u8], wanted: usize, is_brief: bool) -> String {
    let call = sent_call(protocol, bytes, wanted);
    let decoded = Decoded::new(&call, Context::new(&samples::comms, 32).brief(is_brief));
    let argument = decoded.args().nth(1).expect("it has six").values();
    let mut out = Vec::new();
    value::write(&mut out, argument.entry().expect("it is an input"), false);
    String::from_utf8(out).expect("lines are text")
}

/// Returns a sendto on a netlink socket of the protocol.
fn sent_call(protocol: u32, bytes: &[u8], wanted: usize) -> Call {
    let row = lookup::index_by_name("sendto").map(|at| &crate::beauty::tables::SYSCALLS[usize::from(at)]).expect("it has a row");
    let mut call = Call { nr: i64::from(row.numbers[0].expect("x86-64 has it")), ..samples::call([3, 0x1000, wanted as u64, 0, 0, 0], 1) };
    call = samples::with_memory(call, 1, PieceTime::Entry, 0x1000, bytes, PieceState::Ok);
    if let Some(last) = call.pieces.last_mut() {
        last.wanted = wanted as u64;
    }
    let socket = Socket { family: 16, ends: SocketAddresses::Netlink { protocol, port: Default::default() }, ..Socket::default() };
    call.files.push(CallFile { place: FdPlace::Arg(0), file: File::Socket(Arc::new(socket)) });
    call
}

fn full(protocol: u32, bytes: &[u8]) -> String {
    sent(protocol, bytes, false)
}

/// Returns a message with its header; `nlmsg_seq` is 1.
fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend([kind.to_le_bytes(), flags.to_le_bytes()].concat());
    bytes.extend([1u32.to_le_bytes(), 0u32.to_le_bytes()].concat());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [(4 + payload.len() as u16).to_le_bytes(), kind.to_le_bytes()].concat();
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns a struct ifinfomsg of this interface.
fn link(index: u8) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes[4] = index;
    bytes
}

#[test]
fn a_link_has_its_attributes_nested_to_the_end() {
    let kind = attribute(1, b"vlan\0");
    let data = attribute(2, &attribute(1, &7u16.to_le_bytes()));
    let info = attribute(18 | NESTED, &[kind, data].concat());
    let payload =
        [link(2), attribute(3, b"lo\0"), attribute(4, &1500u32.to_le_bytes()), attribute(1, &[0xaa, 1, 2, 3, 4, 5]), info].concat();
    let expected = "[{.nlmsg_len: 84, .nlmsg_type: NEWLINK, .nlmsg_flags: REQUEST|ACK|CREATE, .nlmsg_seq: 1, .nlmsg_pid: 0, \
        .payload: {.ifi_family: UNSPEC, .ifi_type: NETROM, .ifi_index: 2, .ifi_flags: 0, .ifi_change: 0}, \
        .attributes: [{.nla_len: 7, .nla_type: IFNAME, .data: \"lo\"}, {.nla_len: 8, .nla_type: MTU, .data: 1500}, \
        {.nla_len: 10, .nla_type: ADDRESS, .data: aa:01:02:03:04:05}, \
        {.nla_len: 28, .nla_type: LINKINFO|NESTED, .data: [{.nla_len: 9, .nla_type: KIND, .data: \"vlan\"}, \
        {.nla_len: 12, .nla_type: DATA, .data: [{.nla_len: 6, .nla_type: ID, .data: 7}]}]}]}]";
    let bytes = message(16, 0x405, &payload);
    assert_eq!(full(ROUTE, &bytes), expected.replace(".nlmsg_len: 84", &format!(".nlmsg_len: {}", bytes.len())));
}

const NESTED: u16 = 0x8000;

#[test]
fn the_type_decides_what_the_flags_mean() {
    assert_eq!(
        full(ROUTE, &message(18, 0x301, &[0])),
        "[{.nlmsg_len: 17, .nlmsg_type: GETLINK, .nlmsg_flags: REQUEST|DUMP, \
        .nlmsg_seq: 1, .nlmsg_pid: 0, .payload: {.ifi_family: UNSPEC}}]"
    );
    let deleted = full(ROUTE, &message(17, 0x205, &link(3)));
    assert!(deleted.contains("DELLINK, .nlmsg_flags: REQUEST|ACK|BULK"), "{deleted}");
}

#[test]
fn an_error_has_the_message_that_caused_it_and_its_attributes() {
    let cause = message(16, 5, &link(9));
    let text = attribute(1, b"no such link\0");
    let error = |flags: u16, code: i32, cause: &[u8], after: &[u8]| message(2, flags, &[&code.to_le_bytes()[..], cause, after].concat());
    let whole = full(ROUTE, &error(HAS_ATTRIBUTES, -19, &cause, &text));
    assert!(
        whole.contains(".payload: {.error: -ENODEV, .msg: {.nlmsg_len: 32, .nlmsg_type: NEWLINK, .nlmsg_flags: REQUEST|ACK, "),
        "{whole}"
    );
    assert!(whole.ends_with(".attributes: [{.nla_len: 17, .nla_type: MSG, .data: \"no such link\"}]}]"), "{whole}");
    let capped = full(ROUTE, &error(CAPPED | HAS_ATTRIBUTES, 0, &cause[..16], &text));
    assert!(capped.contains(".nlmsg_flags: CAPPED|ACK_TLVS"), "{capped}");
    assert!(capped.contains(".payload: {.error: 0, .msg: {"), "{capped}");
    assert!(capped.ends_with(".data: \"no such link\"}]}]"), "{capped}");
    let done = full(ROUTE, &message(3, 2, &0u32.to_le_bytes()));
    assert!(done.contains(".nlmsg_type: DONE, .nlmsg_flags: MULTI, ") && done.ends_with(".payload: 0}]"), "{done}");
}

#[test]
fn a_reply_about_sockets_begins_with_another_struct_than_its_request() {
    let mut request = vec![0u8; 56];
    (request[0], request[1], request[4]) = (2, 6, 2);
    let asked = full(SOCK_DIAG, &message(20, 0x301, &request));
    assert!(
        asked.contains(".payload: {.sdiag_family: INET, .sdiag_protocol: TCP, .idiag_ext: 0, .idiag_states: ESTABLISHED, .id: {"),
        "{asked}"
    );
    let mut reply = vec![0u8; 72];
    (reply[0], reply[1]) = (2, 10);
    reply[4..8].copy_from_slice(&[0, 80, 0, 0]);
    reply[8..12].copy_from_slice(&[127, 0, 0, 1]);
    let told = full(SOCK_DIAG, &message(20, 2, &[reply, attribute(4, b"reno\0")].concat()));
    assert!(told.contains(".payload: {.idiag_family: INET, .idiag_state: LISTEN, "), "{told}");
    assert!(told.contains(".id: {.idiag_sport: 80, .idiag_dport: 0, .idiag_src: 127.0.0.1, "), "{told}");
    assert!(told.ends_with(".attributes: [{.nla_len: 9, .nla_type: CONG, .data: \"reno\"}]}]"), "{told}");
}

#[test]
fn families_without_rows_have_numbered_attributes() {
    let control = full(GENERIC, &message(0x10, 1, &[&[3, 1, 0, 0][..], &attribute(2, b"nl80211\0")].concat()));
    assert!(control.contains(".nlmsg_type: CTRL, .nlmsg_flags: REQUEST, "), "{control}");
    assert!(
        control.ends_with(
            ".payload: {.cmd: GETFAMILY, .version: 1}, .attributes: [{.nla_len: 12, .nla_type: FAMILY_NAME, .data: \"nl80211\"}]}]"
        ),
        "{control}"
    );
    let other = full(GENERIC, &message(0x1c, 1, &[&[5, 0, 0, 0][..], &attribute(3 | NESTED, &attribute(1, b"ab"))].concat()));
    let expected = ".attributes: [{.nla_len: 12, .nla_type: NESTED|0x3, .data: [{.nla_len: 6, .nla_type: 1, .data: \"ab\"}]}]}]";
    assert!(other.contains(".nlmsg_type: 0x1c") && other.ends_with(expected), "{other}");
    let route = full(ROUTE, &message(0x7f, 1, b"\x02ab"));
    assert!(route.contains(".nlmsg_type: 0x7f, ") && route.ends_with(".payload: {.family: INET, .data: \"ab\"}}]"), "{route}");
}

#[test]
fn other_protocols_have_their_headers() {
    let table = [&[2, 0, 0, 0][..], &attribute(1, b"filter\0")].concat();
    let netfilter = full(NETFILTER, &message(0xa00, 0x401, &table));
    let expected =
        ".payload: {.nfgen_family: INET, .version: V0, .res_id: 0}, .attributes: [{.nla_len: 11, .nla_type: NAME, .data: \"filter\"}]}]";
    assert!(
        netfilter.contains(".nlmsg_type: {.subsystem: NFTABLES, .message: NEWTABLE}, ") && netfilter.ends_with(expected),
        "{netfilter}"
    );
    let audit = full(AUDIT, &message(1000, 5, &[]));
    assert!(audit.ends_with(".nlmsg_type: GET, .nlmsg_flags: REQUEST|ACK, .nlmsg_seq: 1, .nlmsg_pid: 0}]"), "{audit}");
}

#[test]
fn netfilter_has_expressions_by_name_and_numbered_elements() {
    let of = |kind: u16, attributes: &[u8]| full(NETFILTER, &message(kind, 0x401, &[&[2, 0, 0, 0][..], attributes].concat()));
    // NFT_MSG_NEWRULE: NFTA_RULE_EXPRESSIONS, NFTA_LIST_ELEM, and an expression with a register and a verdict.
    let verdict = attribute(2, &attribute(2, &attribute(1, &1u32.to_be_bytes())));
    let immediate = [attribute(1, &0u32.to_be_bytes()), verdict].concat();
    let expression = [attribute(1, b"immediate\0"), attribute(2, &immediate)].concat();
    let rule = of(0xa06, &attribute(4, &attribute(1, &expression)));
    assert!(rule.contains(".nla_type: DREG, .data: REG_VERDICT}"), "{rule}");
    assert!(rule.contains(".nla_type: CODE, .data: NF_ACCEPT}"), "{rule}");
    // NFT_MSG_NEWSETELEM: the second element of a list, with NFTA_SET_ELEM_TIMEOUT.
    let elements = of(0xa0c, &attribute(3, &attribute(2, &attribute(4, &1000u64.to_be_bytes()))));
    assert!(elements.contains(".nla_type: 2, .data: [{.nla_len: 12, .nla_type: TIMEOUT, .data: 1000}]"), "{elements}");
    // IPSET_CMD_ADD: IPSET_ATTR_NAME has the number that IPSET_ATTR_HASHSIZE has in IPSET_CMD_CREATE.
    let entry = of(0x609, &attribute(7, &attribute(18, b"other\0")));
    assert!(entry.contains(".nla_type: NAME, .data: \"other\"}"), "{entry}");
}

#[test]
fn keys_of_ipsec_are_not_shown() {
    // XFRM_MSG_NEWSA: a struct xfrm_usersa_info, and XFRMA_ALG_CRYPT with a key.
    let mut algorithm = b"cbc(aes)".to_vec();
    algorithm.resize(64, 0);
    algorithm.extend([&32u32.to_le_bytes()[..], b"kkkk"].concat());
    let told = full(XFRM, &message(16, 5, &[&[0; 224][..], &attribute(2, &algorithm)].concat()));
    assert!(told.contains(".data: {.alg_name: \"cbc(aes)\", .alg_key_len: 32}}") && !told.contains("kk"), "{told}");
}

#[test]
fn attributes_contain_structs_with_attributes_and_numbered_ones() {
    // RTM_GETMDB: MDBA_MDB, MDBA_MDB_ENTRY, MDBA_MDB_ENTRY_INFO with a struct br_mdb_entry and MDBA_MDB_EATTR_TIMER.
    let mut entry = vec![0; 28];
    (entry[0], entry[4]) = (3, 1);
    entry.extend(attribute(1, &7u32.to_le_bytes()));
    let nested = attribute(1, &attribute(1, &attribute(1, &entry)));
    let groups = full(ROUTE, &message(84, 2, &[&[7, 0, 0, 0, 2, 0, 0, 0][..], &nested].concat()));
    assert!(groups.contains(".payload: {.family: BRIDGE, .ifindex: 2}"), "{groups}");
    assert!(groups.contains(".nla_type: INFO, .data: {.ifindex: 3, .state: PERMANENT, "), "{groups}");
    assert!(groups.contains(", .attributes: [{.nla_len: 8, .nla_type: TIMER, .data: 7}]}}"), "{groups}");
    // RTM_NEWACTION: TCA_ROOT_TAB has numbered actions.
    let action = attribute(1, &attribute(2, &attribute(1, b"gact\0")));
    let actions = full(ROUTE, &message(48, 5, &[&[0; 4][..], &action].concat()));
    assert!(actions.contains(".nla_type: 2, .data: [{.nla_len: 9, .nla_type: KIND, .data: \"gact\"}]"), "{actions}");
}

#[test]
fn contents_depend_on_the_family_and_on_other_attributes() {
    let flags = attribute(26, &attribute(0, &2u16.to_le_bytes()));
    let of_family = |family: u8| full(ROUTE, &message(16, 5, &[&[family][..], &[0; 15], &flags].concat()));
    assert!(of_family(7).contains(".nla_type: AF_SPEC, .data: [{.nla_len: 6, .nla_type: FLAGS, .data: SELF}]"), "{}", of_family(7));
    assert!(!of_family(0).contains("SELF"), "{}", of_family(0));
    // RTA_ENCAP before RTA_ENCAP_TYPE: LWTUNNEL_ENCAP_IP
    let encap = [attribute(22, &attribute(4, &[64])), attribute(21, &2u16.to_le_bytes())].concat();
    let route = full(ROUTE, &message(24, 5, &[&[2, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0][..], &encap].concat()));
    assert!(route.contains(".nla_type: ENCAP, .data: [{.nla_len: 5, .nla_type: TTL, .data: 64}]"), "{route}");
    assert!(route.contains(".nla_type: ENCAP_TYPE, .data: IP}"), "{route}");
}

/// Returns a recvfrom on a netlink socket of the protocol: the kernel's answer that a family has this number.
fn family_answer(protocol: u32, name: &[u8], number: u16) -> Call {
    let answer = [attribute(2, name), attribute(1, &number.to_le_bytes())].concat();
    let row = lookup::index_by_name("recvfrom").map(|at| &crate::beauty::tables::SYSCALLS[usize::from(at)]).expect("it has a row");
    let nr = i64::from(row.numbers[0].expect("x86-64 has it"));
    let bytes = message(0x10, 0, &[&[1, 2, 0, 0][..], &answer].concat());
    let call = Call { nr, ..samples::call([3, 0x1000, bytes.len() as u64, 0, 0, 0], bytes.len() as i64) };
    let mut call = samples::with_memory(call, 1, PieceTime::Exit, 0x1000, &bytes, PieceState::Ok);
    let socket = Socket { family: 16, ends: SocketAddresses::Netlink { protocol, port: Default::default() }, ..Socket::default() };
    call.files.push(CallFile { place: FdPlace::Arg(0), file: File::Socket(Arc::new(socket)) });
    call
}

/// Returns the value of the data of a sendto on a generic netlink socket, as lines print it.
fn sent_to_family(families: &Families, bytes: &[u8]) -> String {
    let call = sent_call(GENERIC, bytes, bytes.len());
    let decoded = Decoded::new(&call, Context::new(&samples::comms, 32).families(families));
    let mut out = Vec::new();
    value::write(&mut out, decoded.args().nth(1).expect("it has six").values().entry().expect("it is an input"), false);
    String::from_utf8(out).expect("lines are text")
}

#[test]
fn families_have_the_numbers_that_the_kernel_told() {
    let mut families = Families::default();
    families.learn(&family_answer(ROUTE, b"ethtool\0", 21));
    assert_eq!(families.name(21), None, "the socket is of another protocol");
    families.learn(&family_answer(GENERIC, b"ethtool\0", 21));
    assert_eq!((families.name(21), families.name(22)), (Some("ethtool"), None));
    // 14 is ETHTOOL_MSG_PRIVFLAGS_SET of a program, and ETHTOOL_MSG_PRIVFLAGS_GET_REPLY of the kernel.
    for (flags, command) in [(1u16, "PRIVFLAGS_SET"), (0, "PRIVFLAGS_GET_REPLY")] {
        let device = attribute(1 | NESTED, &attribute(1, &7u32.to_le_bytes()));
        let text = sent_to_family(&families, &message(21, flags, &[&[14, 1, 0, 0][..], &device].concat()));
        assert!(text.contains(&format!(".nlmsg_type: ethtool, .nlmsg_flags: {}, ", if flags == 0 { "0" } else { "REQUEST" })), "{text}");
        assert!(text.contains(&format!(".payload: {{.cmd: {command}, .version: 1}}, ")), "{text}");
        assert!(text.contains(".nla_type: HEADER|NESTED, .data: [{.nla_len: 8, .nla_type: DEV_INDEX, .data: 7}]"), "{text}");
    }
}

#[test]
fn keys_are_not_shown() {
    let mut families = Families::default();
    families.learn(&family_answer(GENERIC, b"wireguard\0", 22));
    // WGDEVICE_A_PRIVATE_KEY and WGDEVICE_A_PUBLIC_KEY, sent with WG_CMD_SET_DEVICE.
    let keys = [attribute(3, &[b'k'; 32]), attribute(4, &[b'p'; 32])].concat();
    let text = sent_to_family(&families, &message(22, 1, &[&[1, 1, 0, 0][..], &keys].concat()));
    assert!(text.contains(".nla_type: PRIVATE_KEY, .data: {...}}, ") && !text.contains("kk"), "{text}");
    assert!(text.contains(".nla_type: PUBLIC_KEY, .data: ") && text.contains("pp"), "{text}");
    // TIPC_NLA_NODE with TIPC_NLA_NODE_ADDR and TIPC_NLA_NODE_KEY, sent with TIPC_NL_KEY_SET.
    families.learn(&family_answer(GENERIC, b"TIPCv2\0", 23));
    let node = attribute(6, &[attribute(1, &7u32.to_le_bytes()), attribute(4, &[b'k'; 32])].concat());
    let text = sent_to_family(&families, &message(23, 1, &[&[23, 1, 0, 0][..], &node].concat()));
    assert!(text.contains(".payload: {.cmd: KEY_SET, .version: 1}") && text.contains(".nla_type: ADDR, .data: 0x7}"), "{text}");
    assert!(text.contains(".nla_type: KEY, .data: {...}}") && !text.contains("kk"), "{text}");
}

#[test]
fn the_brief_form_has_the_type_and_the_first_attributes() {
    let many: Vec<u8> = (0..9).flat_map(|_| attribute(4, &1u32.to_le_bytes())).collect();
    let brief = sent(ROUTE, &message(16, 5, &[link(2), many].concat()), true);
    let one = "{.nla_type: MTU, .data: 1}, ";
    assert_eq!(
        brief,
        format!(
            "[{{.nlmsg_type: NEWLINK, .nlmsg_flags: REQUEST|ACK, .payload: {{.ifi_index: 2, ...}}, .attributes: [{}...], ...}}]",
            one.repeat(6)
        )
    );
}

#[test]
fn other_bytes_stay_bytes() {
    assert_eq!(full(ROUTE, b"hello"), "\"hello\"");
    assert_eq!(full(77, b"hello"), "\"hello\"", "the protocol has no rows");
    assert_eq!(full(KOBJECT_UEVENT, b"add@/devices/x\0ACTION=add\0"), "[\"add@/devices/x\", \"ACTION=add\"]");
    let short = full(ROUTE, &message(16, 5, &link(2))[..20]);
    assert_eq!(
        short, "\" \\x00\\x00\\x00\\x10\\x00\\x05\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"",
        "the length is too large"
    );
}

#[test]
fn values_that_were_not_copied_completely_are_not_shown_as_whole() {
    // RTM_NEWADDR with IFA_ADDRESS: four bytes of an IPv6 address are no IPv4 address.
    let address = attribute(1, b"abcdefghijklmnop");
    let bytes = message(20, 5, &[&[10, 64, 0, 0, 2, 0, 0, 0][..], &address].concat());
    let cut = sent_of(ROUTE, &bytes[..32], bytes.len(), false);
    assert!(cut.contains(".nla_len: 20, .nla_type: ADDRESS, .data: \"abcd\"...}"), "{cut}");
    let uevent = sent_of(KOBJECT_UEVENT, b"add@/devices/x\0ACTI", 26, false);
    assert_eq!(uevent, "[\"add@/devices/x\", \"ACTI\"..., ...]");
}

#[test]
fn bytes_that_are_no_record_are_shown_after_the_records() {
    let one = message(16, 5, &[link(2), attribute(4, &7u32.to_le_bytes()), vec![3, 0]].concat());
    let (header, behind) = (&one[..], [9, 0, 0, 0, 1]);
    let whole = full(ROUTE, &[header, &behind].concat());
    assert!(
        whole.ends_with(".attributes: [{.nla_len: 8, .nla_type: MTU, .data: 7}, \"\\x03\\x00\"]}, \"\\t\\x00\\x00\\x00\\x01\"]"),
        "{whole}"
    );
    let brief = sent(ROUTE, &[header, &behind].concat(), true);
    assert!(brief.ends_with(".attributes: [{.nla_type: MTU, .data: 7}, ...], ...}, ...]"), "{brief}");
}

/// Returns the attribute `RTA_MULTIPATH` with next hops that contain each other.
fn hops(levels: u32) -> Vec<u8> {
    let inner = if levels == 1 { Vec::new() } else { hops(levels - 1) };
    let length = (8 + inner.len() as u16).to_le_bytes();
    attribute(9, &[&length[..], &[0, 1, 2, 0, 0, 0], &inner].concat())
}

#[test]
fn next_hops_are_decoded_to_a_limited_depth() {
    let route = |hops: &[u8]| full(ROUTE, &message(24, 0x405, &[&[0; 12][..], hops].concat()));
    let three = route(&hops(3));
    assert!(three.matches(".rtnh_len").count() == 3 && three.ends_with(".rtnh_ifindex: 2}]}]}]}]}]}]}]"), "{three}");
    let deep = route(&hops(1000));
    assert_eq!(deep.matches(".rtnh_len").count(), 7, "{deep}");
    let beyond = route(&attribute(9, &[9, 0, 0, 1, 2, 0, 0, 0]));
    assert!(beyond.ends_with(".nla_type: MULTIPATH, .data: \"\\t\\x00\\x00\\x01\\x02\\x00\\x00\\x00\"}]}]"), "{beyond}");
}

/// Returns messages of several protocols, with everything that the other tests have.
fn samples_of_all() -> Vec<(u32, Vec<u8>)> {
    let nested = attribute(18, &[attribute(1, b"bridge\0"), attribute(2, &attribute(5, &[1, 0, 0, 0]))].concat());
    let route = message(16, 5, &[link(2), attribute(3, b"lo\0"), nested].concat());
    let multipath = attribute(9, &[&[16, 0, 0, 1, 2, 0, 0, 0][..], &attribute(5, &[10, 0, 0, 1])].concat());
    let hops = message(24, 0x405, &[vec![2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0], multipath].concat());
    let error = message(2, 0x200, &[&(-17i32).to_le_bytes()[..], &route, &attribute(1, b"text\0")].concat());
    let operations = attribute(6, &attribute(1, &attribute(1, &3u32.to_le_bytes())));
    let control = message(0x10, 0, &[&[1, 2, 0, 0][..], &operations].concat());
    let mut reply = vec![0u8; 72];
    reply[0] = 10;
    vec![(ROUTE, [route, hops].concat()), (ROUTE, error), (GENERIC, control), (SOCK_DIAG, message(20, 2, &reply))]
}

#[test]
fn messages_may_be_cut_at_every_length() {
    for (protocol, bytes) in samples_of_all() {
        let whole = full(protocol, &bytes);
        assert!(whole.starts_with("[{.nlmsg_len: ") && !whole.contains("..."), "{whole}");
        for (length, is_brief) in (0..bytes.len()).flat_map(|length| [(length, false), (length, true)]) {
            // Only padding may be missing without a mark.
            let cut = sent_of(protocol, &bytes[..length], bytes.len(), is_brief);
            assert!(cut.contains("...") || cut == sent(protocol, &bytes, is_brief), "{length}: {cut}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever the bytes are, the value is printable and not much longer than the bytes.
    #[test]
    fn any_bytes_have_a_bounded_value(
        of in 0usize..4, changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12), is_brief in any::<bool>(),
    ) {
        let (protocol, mut bytes) = samples_of_all().swap_remove(of);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let text = sent(protocol, &bytes, is_brief);
        prop_assert!(!text.contains(char::is_control) && text.len() < 64 * bytes.len() + 4096, "{}", text.len());
    }
}

mod parts;
mod values;
