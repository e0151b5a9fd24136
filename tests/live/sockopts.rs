//! Socket options: the level and the option determine the type of the value.

use crate::line;
use crate::machine::Machine;
use crate::trace::workload;
use regex::Regex;

/// Returns the calls of `workload sockopts`, with complete structs, without the files behind descriptors, and with
/// `ADDRESS` in place of each address.
fn calls(machine: &Machine, engine: &str) -> Vec<String> {
    let trace = workload(machine, &["--engine", engine, "--full", "-e", "getsockopt,setsockopt"], "sockopts").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let [file, pid, address] =
        ["(fd: -?[0-9]+)<.*>, level", r"\.pid: [0-9]+[^,]*", "0x[0-9a-f]{7,}"].map(|text| Regex::new(text).expect("it is one"));
    let lines = trace.lines();
    let plain = |args: &str| {
        let args = file.replace(args, "$1, level");
        let args = pid.replace(&args, ".pid: PID");
        address.replace_all(&args, "ADDRESS").into_owned()
    };
    line::calls(&lines).into_iter().map(|(_, call)| format!("{}({})", call.name, plain(&call.args))).collect()
}

/// The calls in the order of the program: the syscall, the descriptor, the level and the option, the value, and its
/// length.
fn expected(value: impl Fn(&'static str) -> &'static str) -> Vec<String> {
    const TCP: u32 = 3;
    const UDP: u32 = 4;
    const UNIX: u32 = 5;
    let made = |name: &str, fd: String, option: &str, own: &'static str, length: &str| {
        format!("{name}(fd: {fd}, {option}, optval: {}, optlen: {length})", value(own))
    };
    let set = |fd: u32, option: &str, own: &'static str, length: u32| made("setsockopt", fd.to_string(), option, own, &length.to_string());
    let get =
        |fd: u32, option: &str, own: &'static str, length: &'static str| made("getsockopt", fd.to_string(), option, own, value(length));
    let timeout = "{.tv_sec: 5, .tv_usec: 0}";
    vec![
        set(TCP, "level: SOCKET, optname: REUSEADDR", "[1]", 4),
        get(TCP, "level: SOCKET, optname: REUSEADDR", "[1]", "[4]"),
        set(TCP, "level: SOCKET, optname: LINGER", "{.l_onoff: 1, .l_linger: 30}", 8),
        get(TCP, "level: SOCKET, optname: LINGER", "{.l_onoff: 1, .l_linger: 30}", "[8]"),
        set(TCP, "level: SOCKET, optname: RCVTIMEO_OLD", timeout, 16),
        get(TCP, "level: SOCKET, optname: RCVTIMEO_OLD", timeout, "[16]"),
        get(TCP, "level: SOCKET, optname: TYPE", "[STREAM]", "[4]"),
        get(TCP, "level: SOCKET, optname: PROTOCOL", "[TCP]", "[4]"),
        get(TCP, "level: SOCKET, optname: DOMAIN", "[INET]", "[4]"),
        get(TCP, "level: SOCKET, optname: ERROR", "[0]", "[4]"),
        get(UNIX, "level: SOCKET, optname: PEERCRED", "{.pid: PID, .uid: 0, .gid: 0}", "[12]"),
        set(TCP, "level: SOCKET, optname: BINDTODEVICE", "\"lo\"", 3),
        get(TCP, "level: SOCKET, optname: BINDTODEVICE", "\"lo\"", "[16 => 3]"),
        set(TCP, "level: SOCKET, optname: TIMESTAMPING_OLD", "{.flags: RX_SOFTWARE|SOFTWARE}", 4),
        set(TCP, "level: SOCKET, optname: TIMESTAMPING_OLD", "{.flags: RX_SOFTWARE|SOFTWARE}", 8),
        set(TCP, "level: TCP, optname: NODELAY", "[1]", 4),
        set(TCP, "level: TCP, optname: CONGESTION", "\"reno\"", 4),
        get(TCP, "level: TCP, optname: CONGESTION", "\"reno\"", "[16]"),
        get(
            TCP,
            "level: TCP, optname: INFO",
            "{.tcpi_state: CLOSE, .tcpi_ca_state: Open, .tcpi_retransmits: 0, .tcpi_probes: 0, .tcpi_backoff: 0, .tcpi_options: 0, \
             .tcpi_wscale: {.tcpi_snd_wscale: 0, .tcpi_rcv_wscale: 0}, .tcpi_limits: {.tcpi_delivery_rate_app_limited: 1, \
             .tcpi_fastopen_client_fail: STATUS_UNSPEC}}",
            "[8]",
        ),
        set(UDP, "level: IP, optname: TTL", "[9]", 4),
        set(UDP, "level: IP, optname: MULTICAST_IF", "[127.0.0.1]", 4),
        set(UDP, "level: IP, optname: MULTICAST_IF", "{.imr_multiaddr: 0.0.0.0, .imr_interface: 127.0.0.1}", 8),
        set(UDP, "level: IP, optname: MULTICAST_IF", "{.imr_multiaddr: 0.0.0.0, .imr_address: 127.0.0.1, .imr_ifindex: 0}", 12),
        get(UDP, "level: IP, optname: MULTICAST_IF", "[127.0.0.1]", "[4]"),
        set(UDP, "level: IP, optname: ADD_MEMBERSHIP", "{.imr_multiaddr: 224.0.0.99, .imr_address: 127.0.0.1}", 8),
        set(
            UDP,
            "level: IP, optname: MCAST_JOIN_GROUP",
            "{.gr_interface: 1, .gr_group: {.sin_family: INET, .sin_port: 0, .sin_addr: 224.0.0.98}}",
            136,
        ),
        made("setsockopt", "-1".to_owned(), "level: PACKET, optname: VERSION", "[V3]", "4"),
        made("getsockopt", "-1".to_owned(), "level: SOCKET, optname: LINGER", "ADDRESS", value("[8]")),
        set(TCP, "level: SOCKET, optname: LINGER", "\"\\x01\\x00\\x00\\x00\"", 4),
        set(TCP, "level: TCP, optname: 0x270f", "\"abc\"", 3),
    ]
}

#[test]
fn level_and_option_decide_what_the_value_is() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    assert_eq!(calls(&machine, "bpf"), expected(|value| value));
}

/// Without BPF, rtrace reads no memory, but names the options of each level.
#[test]
fn the_level_decides_what_the_option_is_called() {
    let Some(machine) = Machine::shared() else { return };
    assert_eq!(calls(&machine, "tracepoint"), expected(|_| "ADDRESS"));
}

#[test]
fn a_filter_compares_the_name_and_the_value_of_an_option() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let matching = |filter: &str| {
        let trace = workload(&machine, &["--engine", "bpf", "-e", "setsockopt", "--filter", filter], "sockopts").succeeded();
        assert_eq!(trace.conserved().lost, 0);
        let lines = trace.lines();
        let calls = line::calls(&lines)
            .into_iter()
            .map(|(_, call)| (call.arg("optname").map(str::to_owned), call.arg("optval").map(str::to_owned)));
        calls.collect::<Vec<_>>()
    };
    let call = |option: &str, value: &str| (Some(option.to_owned()), Some(value.to_owned()));
    assert_eq!(matching("optval ~ \"l*\""), [call("BINDTODEVICE", "\"lo\"")]);
    assert_eq!(matching("optval == \"lo\""), [call("BINDTODEVICE", "\"lo\"")]);
    assert_eq!(matching("level == SOL_TCP && optname == TCP_NODELAY"), [call("NODELAY", "[1]")]);
}
