//! The names of values in attributes.

use super::*;

#[test]
fn values_of_attributes_have_names() {
    // RTM_NEWLINK: IFLA_BOND_MODE is BOND_MODE_8023AD.
    let info = [attribute(1, b"bond\0"), attribute(2, &attribute(1, &[4]))].concat();
    let bond = full(ROUTE, &message(16, 5, &[link(2), attribute(18, &info)].concat()));
    assert!(bond.contains(".nla_type: MODE, .data: 8023AD}"), "{bond}");
    // RTM_NEWNEXTHOP: NHA_BLACKHOLE has no content.
    let hole = full(ROUTE, &message(104, 5, &[&[2, 0, 0, 0, 0, 0, 0, 0][..], &attribute(4, &[])].concat()));
    assert!(hole.contains("{.nla_len: 4, .nla_type: BLACKHOLE}"), "{hole}");
    // XFRM_MSG_GETSA: the family follows the address.
    let state = [&[192, 0, 2, 1][..], &[0; 12], &[0, 0, 1, 0, 2, 0, 50, 0]].concat();
    let asked = full(XFRM, &message(18, 5, &state));
    assert!(asked.contains(".payload: {.daddr: 192.0.2.1, .spi: 0x100, .family: INET, .proto: ESP}"), "{asked}");
}

#[test]
fn values_in_netfilter_depend_on_the_family_and_on_other_attributes() {
    // NFT_MSG_NEWCHAIN: NFTA_CHAIN_HOOK with NFTA_HOOK_HOOKNUM of IPv4 and of a device.
    let hook = attribute(4, &attribute(1, &0u32.to_be_bytes()));
    let of_family = |family: u8| full(NETFILTER, &message(0xa03, 0x401, &[&[family, 0, 0, 0][..], &hook].concat()));
    assert!(of_family(2).contains(".nla_type: HOOKNUM, .data: PRE_ROUTING}"), "{}", of_family(2));
    assert!(of_family(5).contains(".nla_type: HOOKNUM, .data: INGRESS}"), "{}", of_family(5));
    // IPCTNL_MSG_CT_NEW: CTA_TUPLE_ORIG and CTA_TUPLE_PROTO with CTA_PROTO_ICMP_TYPE and CTA_PROTO_ICMP_CODE.
    let protocol = [attribute(5, &[3]), attribute(6, &[1])].concat();
    let tuple = attribute(1, &attribute(2, &protocol));
    let connection = full(NETFILTER, &message(0x100, 0x401, &[&[2, 0, 0, 0][..], &tuple].concat()));
    assert!(connection.contains(".nla_type: ICMP_TYPE, .data: DEST_UNREACH}"), "{connection}");
    assert!(connection.contains(".nla_type: ICMP_CODE, .data: HOST_UNREACH}"), "{connection}");
}

#[test]
fn options_of_traffic_control_depend_on_the_kind_and_the_message() {
    // A struct tcmsg, TCA_KIND and TCA_OPTIONS.
    let of = |message_type: u16, kind: &[u8], options: &[u8]| {
        let attributes = [attribute(1, kind), attribute(2, options)].concat();
        full(ROUTE, &message(message_type, 5, &[&[0; 20][..], &attributes].concat()))
    };
    // RTM_NEWTCLASS: TCA_HFSC_RSC. RTM_NEWQDISC: a struct tc_hfsc_qopt.
    let class = of(40, b"hfsc\0", &attribute(1, &[1u32, 2, 3].map(u32::to_le_bytes).concat()));
    assert!(class.ends_with(".nla_type: OPTIONS, .data: [{.nla_len: 16, .nla_type: RSC, .data: {.m1: 1, .d: 2, .m2: 3}}]}]}]"), "{class}");
    let discipline = of(36, b"hfsc\0", &[7, 0]);
    assert!(discipline.ends_with(".nla_type: OPTIONS, .data: {.defcls: 0x7}}]}]"), "{discipline}");
    // RTM_NEWTFILTER: the kernel reads TCA_FLOWER_KEY_VLAN_ID in the order of the machine, and TCA_FLOWER_KEY_TCP_SRC
    // not.
    let filter = of(44, b"flower\0", &[attribute(23, &[1, 0]), attribute(18, &[0, 80])].concat());
    assert!(filter.contains(".nla_type: KEY_VLAN_ID, .data: 1}") && filter.contains(".nla_type: KEY_TCP_SRC, .data: 80}"), "{filter}");
}

#[test]
fn codes_of_wireless_networks_have_names() {
    let mut families = Families::default();
    families.learn(&family_answer(GENERIC, b"nl80211\0", 22));
    // NL80211_CMD_CONNECT: NL80211_ATTR_CIPHER_SUITE_GROUP, and NL80211_ATTR_PRIVACY without content.
    let attributes = [attribute(74, &0x000f_ac04_u32.to_le_bytes()), attribute(70, &[])].concat();
    let text = sent_to_family(&families, &message(22, 1, &[&[46, 1, 0, 0][..], &attributes].concat()));
    assert!(text.contains(".nla_type: CIPHER_SUITE_GROUP, .data: CCMP}"), "{text}");
    assert!(text.contains("{.nla_len: 4, .nla_type: PRIVACY}"), "{text}");
}
