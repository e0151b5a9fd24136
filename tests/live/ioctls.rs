//! ioctl: the command determines the name, the direction and the type of the data.

use crate::line;
use crate::machine::Machine;
use crate::trace::workload;
use regex::Regex;

/// Returns the commands, the data and the results of `workload ioctls`, with `ADDRESS` in place of each address.
fn calls(machine: &Machine, engine: &str) -> Vec<String> {
    let trace = workload(machine, &["--engine", engine, "--full", "-e", "ioctl"], "ioctls").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let address = Regex::new("0x[0-9a-f]{9,}").expect("it is one");
    let lines = trace.lines();
    let calls = line::calls(&lines).into_iter().map(|(_, call)| {
        let (command, data) = call.args.split_once(", cmd: ").and_then(|(_, rest)| rest.split_once(", arg: ")).expect("a command and data");
        format!("{command}: {}", address.replace_all(data, "ADDRESS"))
    });
    calls.collect()
}

/// The data of the call that has a number instead of an address.
const BY_VALUE: &str = "TCIOFLUSH";

/// The calls in the order of the program.
const CALLS: [(&str, &str); 34] = [
    ("SIOCGIFMTU", r#"{.ifr_name: "lo", .ifr_mtu: 65536}"#),
    ("SIOCSIFMTU", r#"{.ifr_name: "lo", .ifr_mtu: 1600}"#),
    ("SIOCGIFMTU", r#"{.ifr_name: "lo", .ifr_mtu: 1600}"#),
    ("SIOCGIFINDEX", r#"{.ifr_name: "lo", .ifr_ifindex: 1}"#),
    ("SIOCSIFTXQLEN", r#"{.ifr_name: "lo", .ifr_qlen: 77}"#),
    ("SIOCGIFTXQLEN", r#"{.ifr_name: "lo", .ifr_qlen: 77}"#),
    ("SIOCGIFHWADDR", r#"{.ifr_name: "lo", .ifr_hwaddr: {.sa_family: LOOPBACK, .sa_data: "\x00\x00\x00\x00\x00\x00"}}"#),
    ("SIOCSIFHWADDR", r#"{.ifr_name: "lo", .ifr_hwaddr: {.sa_family: ETHER, .sa_data: "\x02\x03\x04\x05\x06\x07"}}"#),
    ("SIOCSIFADDR", r#"{.ifr_name: "lo", .ifr_addr: {.sin_family: INET, .sin_port: 0, .sin_addr: 10.1.2.3}}"#),
    ("SIOCGIFADDR", r#"{.ifr_name: "lo", .ifr_addr: {.sin_family: INET, .sin_port: 0, .sin_addr: 10.1.2.3}}"#),
    ("SIOCSIFNETMASK", r#"{.ifr_name: "lo", .ifr_netmask: {.sin_family: INET, .sin_port: 0, .sin_addr: 255.255.255.0}}"#),
    ("SIOCGIFNETMASK", r#"{.ifr_name: "lo", .ifr_netmask: {.sin_family: INET, .sin_port: 0, .sin_addr: 255.255.255.0}}"#),
    ("SIOCSIFBRDADDR", r#"{.ifr_name: "lo", .ifr_broadaddr: {.sin_family: INET, .sin_port: 0, .sin_addr: 10.1.2.255}}"#),
    ("SIOCGIFBRDADDR", r#"{.ifr_name: "lo", .ifr_broadaddr: {.sin_family: INET, .sin_port: 0, .sin_addr: 10.1.2.255}}"#),
    ("SIOCGIFDSTADDR", r#"{.ifr_name: "lo", .ifr_dstaddr: {.sin_family: INET, .sin_port: 0, .sin_addr: 10.1.2.3}}"#),
    ("SIOCSIFFLAGS", r#"{.ifr_name: "lo", .ifr_flags: UP}"#),
    ("SIOCGIFFLAGS", r#"{.ifr_name: "lo", .ifr_flags: UP|LOOPBACK|RUNNING}"#),
    ("TCSETS2", "{.c_iflag: 0, .c_oflag: NL0|CR0|TAB0|BS0|VT0|FF0, .c_cflag: "),
    ("FS_IOC_FIEMAP", "{.fm_start: 1, .fm_length: 4096, .fm_flags: SYNC, .fm_mapped_extents: 0, .fm_extent_count: 0"),
    ("BLKPG", "{.op: DEL_PARTITION, .flags: 9, .datalen: 152, .data: {.start: 3, .length: 512, .pno: 7"),
    ("LOOP_SET_STATUS64", "{.lo_device: "),
    (
        "RTC_SET_TIME",
        "{.tm_sec: 1, .tm_min: 2, .tm_hour: 3, .tm_mday: 4, .tm_mon: 5, .tm_year: 126, .tm_wday: 6, .tm_yday: 7, .tm_isdst: 0}",
    ),
    ("DRM_IOCTL_VERSION", "{.version_major: 0, .version_minor: 0, .version_patchlevel: 0, .name_len: 0, .name: NULL"),
    ("VIDIOC_REQBUFS", "{.count: 4, .type: VIDEO_CAPTURE, .memory: MMAP"),
    ("TUNSETIFF", r#"{.ifr_name: "tap0", .ifr_flags: TAP|NO_PI}"#),
    ("USBDEVFS_CONTROL", "{.bRequestType: TYPE_STANDARD|RECIP_DEVICE|DIR_IN, .bRequest: GET_DESCRIPTOR, .wValue: 256, .wIndex: 0"),
    ("SPI_IOC_MESSAGE(1)", "{.messages: [{.tx_buf: 0x7000, .rx_buf: 0x8000, .len: 4, .speed_hz: 500000"),
    ("EVIOCSABS(Y)", "{.value: 5, .minimum: 0, .maximum: 255"),
    ("FS_IOC_SETFLAGS", "[IMMUTABLE_FL|APPEND_FL]"),
    ("FIDEDUPERANGE", "{.src_offset: 1, .src_length: 2, .dest_count: 1, .info: [{.dest_fd: 77, .dest_offset: 4096"),
    ("TCFLSH", BY_VALUE),
    ("TCSETS", "{.c_iflag: 0"),
    ("SIOCGETSGCNT or SIOCGETSGCNT_IN6 or SIOCKCMUNATTACH or ", ""),
    ("0xc0de4242", r#""unknown"#),
];

/// Asserts that each call has the command, and data that begins as expected.
fn check(calls: &[String], expected: impl Fn(&'static str) -> &'static str) {
    let begins = |(call, (command, data)): &(&String, (&str, &'static str))| {
        let (own, rest) = call.split_once(": ").unwrap_or_default();
        own.starts_with(command) && rest.starts_with(expected(data))
    };
    let wrong = calls.iter().zip(CALLS).filter(|call| !begins(call));
    let wrong: Vec<String> = wrong.map(|(call, (command, data))| format!("{call}\n  expected: {command}: {}", expected(data))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(calls.len(), CALLS.len(), "{calls:#?}");
}

#[test]
fn the_command_decides_what_the_data_is() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    check(&calls(&machine, "bpf"), |data| data);
}

/// Without BPF, rtrace reads no memory, but names the commands.
#[test]
fn commands_have_names_without_bpf() {
    let Some(machine) = Machine::shared() else { return };
    check(&calls(&machine, "tracepoint"), |data| if data == BY_VALUE { data } else { "ADDRESS" });
}

#[test]
fn a_filter_compares_the_command_and_a_member_of_its_data() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let matching = |filter: &str| {
        let trace = workload(&machine, &["--engine", "bpf", "-e", "ioctl", "--filter", filter], "ioctls").succeeded();
        assert_eq!(trace.conserved().lost, 0);
        let lines = trace.lines();
        line::calls(&lines).into_iter().map(|(_, call)| call.arg("cmd").unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(matching("cmd == SIOCSIFMTU || cmd == BLKPG"), ["SIOCSIFMTU", "BLKPG"]);
    assert_eq!(matching("cmd == SIOCSIFMTU && arg.ifr_mtu > 1500"), ["SIOCSIFMTU"]);
}
