//! Control messages and netlink messages, decoded by their levels, protocols and types.

use crate::line;
use crate::machine::Machine;
use crate::trace::{Trace, workload};
use regex::Regex;

/// Runs a scene, and returns its calls: `NAME(ARGS) = RESULT`.
fn scene(machine: &Machine, name: &str, options: &[&str]) -> (Trace, Vec<String>) {
    let trace = workload(machine, options, &format!("messages {name}")).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let lines = trace.lines();
    let calls = line::calls(&lines).into_iter().map(|(_, call)| call.returned()).collect();
    (trace, calls)
}

/// Returns the only call that contains a text.
fn with<'a>(calls: &'a [String], text: &str) -> &'a str {
    let all: Vec<&String> = calls.iter().filter(|call| call.contains(text)).collect();
    assert_eq!(all.len(), 1, "{text}: {calls:#?}");
    all[0]
}

fn control(machine: &Machine, engine: &str) -> (Trace, Vec<String>) {
    scene(machine, "control", &["--engine", engine, "--full", "-e", "sendmsg,recvmsg"])
}

#[test]
fn passed_descriptors_have_their_files_on_both_sides() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (trace, calls) = control(&machine, "bpf");
    let own = trace.stdout.lines().find_map(|line| line.strip_prefix("own ")).expect("the program says it");
    let [pid, uid, gid] = own.split(' ').collect::<Vec<_>>()[..] else { panic!("{own}") };
    let rights =
        Regex::new(r"\.cmsg_len: 24, \.cmsg_level: SOCKET, \.cmsg_type: RIGHTS, \.cmsg_data: \[([0-9]+)</dev/null>, ([0-9]+)<UNIX")
            .expect("it is one");
    let credentials = Regex::new(&format!(
        r"\.cmsg_len: 28, \.cmsg_level: SOCKET, \.cmsg_type: CREDENTIALS, \.cmsg_data: \{{\.pid: {pid}( [^,]*)?, \.uid: {uid}, \.gid: {gid}\}}"
    ))
    .expect("it is one");
    let [sent, received] = ["sendmsg(", "recvmsg("].map(|name| {
        let found = calls.iter().find(|call| call.starts_with(name) && call.contains("\"rights\"")).expect("it was made");
        assert!(credentials.is_match(found), "{found}");
        rights.captures(found).unwrap_or_else(|| panic!("{found}"))[1].to_owned()
    });
    assert_ne!(sent, received, "the receiver has descriptors of its own");
    let received = with(&calls, "recvmsg(fd: 4");
    assert!(received.contains(".msg_controllen: 512 => 56"), "{received}");
}

#[test]
fn a_datagram_has_its_time_and_its_addresses() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = control(&machine, "bpf");
    let calls: Vec<String> = calls.into_iter().filter(|call| call.contains("\"datagram\"")).collect();
    let sent = calls.iter().find(|call| call.starts_with("sendmsg(")).expect("it was sent");
    assert!(sent.contains(".msg_control: [{.cmsg_len: 20, .cmsg_level: IP, .cmsg_type: TTL, .cmsg_data: 9}]"), "{sent}");
    let received = calls.iter().find(|call| call.starts_with("recvmsg(")).expect("it was received");
    let time = Regex::new(r"\.cmsg_type: SO_TIMESTAMPNS_OLD, \.cmsg_data: \{\.tv_sec: 1[0-9]{9}, \.tv_nsec: [0-9]+\}").expect("it is one");
    assert!(time.is_match(received), "{received}");
    for part in [
        ".cmsg_level: IP, .cmsg_type: PKTINFO, .cmsg_data: {.ipi_ifindex: 1, .ipi_spec_dst: 127.0.0.1, .ipi_addr: 127.0.0.1}}",
        ".cmsg_level: IP, .cmsg_type: TTL, .cmsg_data: 9}",
        ".cmsg_len: 17, .cmsg_level: IP, .cmsg_type: TOS, .cmsg_data: 0",
    ] {
        assert!(received.contains(part), "{part}: {received}");
    }
}

/// Without BPF, rtrace reads no memory.
#[test]
fn without_bpf_messages_are_addresses() {
    let Some(machine) = Machine::shared() else { return };
    let (_, calls) = control(&machine, "tracepoint");
    let address = Regex::new(r", msg: 0x[0-9a-f]+\) = ").expect("it is one");
    assert!(calls.len() >= 4 && calls.iter().all(|call| address.is_match(call)), "{calls:#?}");
    let (_, calls) = scene(&machine, "netlink", &["--engine", "tracepoint", "-e", "sendto"]);
    let address = Regex::new(r", buff: 0x[0-9a-f]+, len: [0-9]+\) = ").expect("it is one");
    assert!(calls.len() == 3 && calls.iter().all(|call| address.is_match(call)), "{calls:#?}");
}

const NETLINK_CALLS: &str = "sendto,recvfrom,sendmsg,recvmsg,write,read";

fn netlink(machine: &Machine) -> Vec<String> {
    let (_, calls) = scene(machine, "netlink", &["--engine", "bpf", "--full", "-e", NETLINK_CALLS]);
    calls
}

#[test]
fn links_and_addresses_are_decoded_in_both_directions() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let calls = netlink(&machine);
    let head = |kind: &str, flags: &str| format!(".nlmsg_type: {kind}, .nlmsg_flags: {flags}, .nlmsg_seq: 77, ");
    let asked = with(&calls, ".nlmsg_type: GETLINK");
    assert!(asked.starts_with("sendto(fd: 3<NETLINK:[ROUTE:") && asked.contains(&head("GETLINK", "REQUEST|DUMP")), "{asked}");
    assert!(asked.contains(".attributes: [{.nla_len: 8, .nla_type: EXT_MASK, .data: VF}]}], len: 40"), "{asked}");
    let told = calls.iter().find(|call| call.contains(&head("NEWLINK", "MULTI"))).unwrap_or_else(|| panic!("{calls:#?}"));
    assert!(told.starts_with("recvmsg(") && told.contains(".ifi_type: LOOPBACK, .ifi_index: 1, .ifi_flags: UP|LOOPBACK|RUNNING"), "{told}");
    assert!(told.contains(".nla_type: IFNAME, .data: \"lo\"}") && told.contains(".nla_type: ADDRESS, .data: 00:00:00:00:00:00}"), "{told}");
    assert!(told.contains(".nla_type: STATS64, .data: {.rx_packets: "), "{told}");
    let asked = with(&calls, ".nlmsg_type: GETADDR");
    assert!(asked.starts_with("sendmsg(") && asked.contains(".payload: {.ifa_family: INET, "), "{asked}");
    let told = calls.iter().find(|call| call.contains(&head("NEWADDR", "MULTI"))).unwrap_or_else(|| panic!("{calls:#?}"));
    assert!(told.contains(".ifa_scope: HOST, .ifa_index: 1}, .attributes: [{.nla_len: 8, .nla_type: ADDRESS, .data: 127.0.0.1}"), "{told}");
    assert!(told.contains(".nla_type: LABEL, .data: \"lo\"}") && told.contains(".nla_type: FLAGS, .data: PERMANENT}"), "{told}");
    assert!(
        calls.iter().any(|call| call.contains(".nlmsg_type: DONE, .nlmsg_flags: MULTI") && call.contains(".payload: 0}")),
        "{calls:#?}"
    );
}

#[test]
fn an_error_is_explained_by_the_kernel() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let calls = netlink(&machine);
    let is_asked =
        |call: &&String| call.starts_with("sendto(") && call.contains(".nlmsg_type: NEWLINK, .nlmsg_flags: REQUEST|ACK|EXCL|CREATE, ");
    let asked = calls.iter().find(is_asked).unwrap_or_else(|| panic!("{calls:#?}"));
    assert!(asked.contains(".nla_type: IFNAME, .data: \"rtrace9\"}"), "{asked}");
    assert!(asked.contains(".nla_type: LINKINFO, .data: [{.nla_len: 14, .nla_type: KIND, .data: \"rtracekind\"}]}"), "{asked}");
    let told = with(&calls, ".nlmsg_type: ERROR");
    assert!(told.contains(".payload: {.error: -EOPNOTSUPP, .msg: {"), "{told}");
    assert!(told.contains("ACK_TLVS") && told.contains(".nla_type: MSG, .data: \"Unknown device type\"}"), "{told}");
}

#[test]
fn sockets_and_generic_families_are_decoded() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let calls = netlink(&machine);
    let asked = calls
        .iter()
        .find(|call| call.starts_with("write(") && call.contains("SOCK_DIAG_BY_FAMILY"))
        .unwrap_or_else(|| panic!("{calls:#?}"));
    assert!(
        asked.contains(".payload: {.sdiag_family: UNIX, .sdiag_protocol: 0, .udiag_states: LISTEN, .udiag_ino: 0, .udiag_show: NAME, "),
        "{asked}"
    );
    let told: Vec<&String> = calls.iter().filter(|call| call.starts_with("read(") && call.contains("SOCK_DIAG_BY_FAMILY")).collect();
    let is_named = |call: &&String| call.contains(".udiag_state: LISTEN, ") && call.contains(".nla_type: NAME, .data: \"");
    assert!(told.iter().any(is_named), "{told:#?}");
    let asked = with(&calls, ".nlmsg_type: CTRL, .nlmsg_flags: REQUEST, ");
    assert!(
        asked
            .contains(".payload: {.cmd: GETFAMILY, .version: 1}, .attributes: [{.nla_len: 11, .nla_type: FAMILY_NAME, .data: \"nlctrl\"}]"),
        "{asked}"
    );
    let told = with(&calls, ".cmd: NEWFAMILY");
    assert!(told.contains(".nla_type: FAMILY_ID, .data: 16}") && told.contains(".nla_type: OPS, .data: [{"), "{told}");
    assert!(told.contains(".nla_type: ID, .data: GETFAMILY}"), "{told}");
}

/// The limit for strings does not cut messages, and that for structs does.
#[test]
fn messages_have_a_limit_of_their_own() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let of = |limit: &str| {
        let options = ["--engine", "bpf", "--full", "--string-limit", "4", "--struct-limit", limit, "-e", "sendto"];
        let (_, calls) = scene(&machine, "netlink", &options);
        with(&calls, "GETLINK").to_owned()
    };
    assert!(of("4096").contains(".nla_type: EXT_MASK, .data: VF}]}], len: 40"), "{}", of("4096"));
    let cut = of("36");
    assert!(cut.contains(".ifi_family: UNSPEC") && cut.contains("...") && !cut.contains("VF}"), "{cut}");
}

#[test]
fn a_filter_compares_the_type_of_a_message() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = scene(&machine, "netlink", &["--engine", "bpf", "-e", "sendto", "--filter", "buff[0].nlmsg_type == 18"]);
    assert!(calls.len() == 1 && calls[0].contains("GETLINK"), "{calls:#?}");
}

/// The calls of a scene that creates interfaces, queueing disciplines and tables in a network namespace of its own.
fn kernel(machine: &Machine) -> (Trace, Vec<String>) {
    scene(machine, "kernel", &["--engine", "bpf", "--full", "-e", NETLINK_CALLS])
}

/// Asserts that one of the calls has all parts, and returns it.
fn one_has<'a>(calls: &'a [String], parts: &[&str]) -> &'a str {
    let found = calls.iter().find(|call| parts.iter().all(|part| call.contains(part)));
    found.unwrap_or_else(|| panic!("{parts:?}: {calls:#?}"))
}

#[test]
fn kinds_of_interfaces_and_queues_have_their_options() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = kernel(&machine);
    one_has(
        &calls,
        &[
            ".nlmsg_type: NEWLINK, ",
            ".nla_type: KIND, .data: \"veth\"}",
            ".nla_type: PEER, .data: {.ifi_family: UNSPEC, ",
            ".ifi_change: 0, .attributes: [{.nla_len: 12, .nla_type: IFNAME, .data: \"rtrace1\"}]}}",
        ],
    );
    one_has(&calls, &[".data: \"bridge\"}", ".nla_type: FORWARD_DELAY, .data: 1500}"]);
    one_has(&calls, &[".nlmsg_type: GETMDB, ", ".payload: {.family: BRIDGE, .ifindex: 0}"]);
    one_has(&calls, &[".nlmsg_type: NEWQDISC, .nlmsg_flags: REQUEST|ACK|EXCL|CREATE, ", ".nla_type: OPTIONS, .data: {.limit: 77}}"]);
    let told = one_has(&calls, &["recvfrom(", ".nlmsg_type: NEWQDISC, .nlmsg_flags: MULTI, ", ".data: \"pfifo\"}"]);
    assert!(told.contains(".nla_type: OPTIONS, .data: {.limit: 77}}") && told.contains(".nla_type: STATS2, .data: [{"), "{told}");
    one_has(&calls, &[".data: \"tbf\"}", ".nla_type: PARMS, .data: "]);
    one_has(&calls, &["recvfrom(", ".nlmsg_type: ERROR, ", ".payload: {.error: -EINVAL, .msg: {"]);
    one_has(&calls, &[".nlmsg_type: NEWSTATS, ", ".nla_type: LINK_64, .data: {.rx_packets: 0, "]);
    one_has(&calls, &[".nlmsg_type: NEWNEXTHOP, ", ".nla_type: ID, .data: 7}", ".nla_type: GATEWAY, .data: 192.0.2.1}"]);
}

/// The program asks for the numbers of two generic families; after the kernel's answers, rtrace knows them, too.
#[test]
fn generic_families_are_known_once_the_kernel_told_their_numbers() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = kernel(&machine);
    let asked = one_has(&calls, &["sendto(", ".nlmsg_type: ethtool, ", ".cmd: FEATURES_GET, "]);
    assert!(asked.contains(".nla_type: HEADER|NESTED, .data: [{.nla_len: 7, .nla_type: DEV_NAME, .data: \"lo\"}]}"), "{asked}");
    let told = one_has(&calls, &["recvfrom(", ".nlmsg_type: ethtool, ", ".cmd: FEATURES_GET_REPLY, "]);
    assert!(told.contains(".nla_type: DEV_INDEX, .data: 1}") && told.contains(".nla_type: ACTIVE|NESTED, "), "{told}");
    let asked = one_has(&calls, &["sendto(", ".nlmsg_type: TASKSTATS, ", ".cmd: GET, "]);
    assert!(Regex::new(r"\.nla_type: PID, \.data: [0-9]+").expect("it is one").is_match(asked), "{asked}");
}

#[test]
fn subsystems_of_netfilter_have_messages_of_their_own() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = kernel(&machine);
    let asked = one_has(&calls, &["sendto(", ".nlmsg_type: BEGIN, ", ".nlmsg_type: END, "]);
    let table = ".nla_type: NAME, .data: \"rtracetable\"}";
    assert!(asked.contains(".nlmsg_type: {.subsystem: NFTABLES, .message: NEWTABLE}, ") && asked.contains(table), "{asked}");
    let told = one_has(&calls, &["recvfrom(", ".message: NEWTABLE}, ", table]);
    assert!(Regex::new(r"\.nla_type: HANDLE, \.data: [1-9][0-9]*\}").expect("it is one").is_match(told), "{told}");
}

#[test]
fn internet_sockets_have_their_extensions() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = kernel(&machine);
    let told = one_has(&calls, &["recvfrom(", ".idiag_family: INET, .idiag_state: LISTEN, ", ".idiag_sport: 7, "]);
    for part in [".nla_type: MEMINFO, .data: {.idiag_rmem: ", ".nla_type: CONG, .data: \"", ".nla_type: INFO, .data: {.tcpi_state: "] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// An error in a message is a number with a name in JSON, as that of a call is.
#[test]
fn json_has_the_errors_in_messages() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = workload(&machine, &["--engine", "bpf", "--json", "-e", "recvfrom"], "messages kernel").succeeded();
    assert!(trace.text.contains(r#""error":{"errno":22,"name":"EINVAL"}"#), "{}", trace.text);
}
