//! The contents of the values that the functions in [`super::decoders`] return. A condition names parts of a value
//! before there is a call, so the functions cannot provide this information.

use super::row::{ArgumentKind, Struct};
use super::tables::{constants, structs};

/// The contents of a value that a function decodes.
pub enum Contents {
    /// A struct that has these members, and also the members of one of these structs.
    Members(&'static [(&'static str, ArgumentKind)], &'static [&'static Struct]),
    /// An array of one of these structs.
    Structs(&'static [&'static Struct]),
    /// An array of numbers of this kind.
    Numbers(ArgumentKind),
    Text,
}

static SIGINFO: [&Struct; 11] = [
    &structs::SIGINFO_KILL,
    &structs::SIGINFO_TIMER,
    &structs::SIGINFO_QUEUE,
    &structs::SIGINFO_CHILD,
    &structs::SIGINFO_FAULT,
    &structs::SIGINFO_MACHINE_CHECK,
    &structs::SIGINFO_BOUNDS,
    &structs::SIGINFO_KEY,
    &structs::SIGINFO_PERF,
    &structs::SIGINFO_POLL,
    &structs::SIGINFO_SYS,
];
/// The members of every siginfo_t, which the decoder adds.
static SIGINFO_HEAD: [(&str, ArgumentKind); 3] =
    [("si_signo", ArgumentKind::Signal), ("si_errno", ArgumentKind::Int), ("si_code", ArgumentKind::Int)];
static USER_REGS: [&Struct; 3] = [&structs::USER_REGS_X86_64, &structs::USER_REGS_I386, &structs::USER_REGS_AARCH64];
static USER_FPREGS: [&Struct; 3] = [&structs::USER_FPREGS_FXSAVE, &structs::USER_FPREGS_FSAVE, &structs::USER_FPREGS_SIMD];
static CONTROL_MESSAGES: [&Struct; 1] = [&structs::CONTROL_MESSAGE];
static CONTROL_HEAD: [&Struct; 1] = [&structs::CMSGHDR];
static CONTROL_DATA: [(&str, ArgumentKind); 1] = [("cmsg_data", ArgumentKind::Bytes)];
static NETLINK_MESSAGES: [&Struct; 1] = [&structs::NETLINK_MESSAGE];
static NETLINK_HEAD: [&Struct; 1] = [&structs::NLMSGHDR];
/// What follows the header depends on the message. Conditions compare it with a number or with text.
static NETLINK_DATA: [(&str, ArgumentKind); 2] = [("payload", ArgumentKind::Bytes), ("attributes", ArgumentKind::Bytes)];
static NEXTHOPS: [&Struct; 1] = [&structs::RTNEXTHOP];
static BPF_INFOS: [&Struct; 4] = [&structs::BPF_PROG_INFO, &structs::BPF_MAP_INFO, &structs::BPF_LINK_INFO, &structs::BPF_BTF_INFO];
const CAPABILITY_SET: ArgumentKind = ArgumentKind::Struct(&structs::CAPABILITY_SET);
static CAPABILITIES: [(&str, ArgumentKind); 3] =
    [("effective", CAPABILITY_SET), ("permitted", CAPABILITY_SET), ("inheritable", CAPABILITY_SET)];
static DIRENTS: [&Struct; 1] = [&structs::DIRENT];
static DIRENTS64: [&Struct; 1] = [&structs::DIRENT64];

/// Returns the contents of a struct whose row names a function; `None` for other structs. The names of structs are here
/// because a row says only which function decodes the struct, and not what the function returns.
pub fn contents(of: &Struct) -> Option<Contents> {
    Some(match of.name {
        "sun_path" | "in6_addr" | "ioctl_data" | "ioctl_text" | "net_address" | "interface_address" | "ethernet_address" => Contents::Text,
        "control_messages" => Contents::Structs(&CONTROL_MESSAGES),
        "control_message" => Contents::Members(&CONTROL_DATA, &CONTROL_HEAD),
        "netlink_messages" => Contents::Structs(&NETLINK_MESSAGES),
        "netlink_message" => Contents::Members(&NETLINK_DATA, &NETLINK_HEAD),
        "nexthops" => Contents::Structs(&NEXTHOPS),
        "bpf_info" => Contents::Members(&[], &BPF_INFOS),
        "capabilities" => Contents::Members(&CAPABILITIES, &[]),
        "siginfo" => Contents::Members(&SIGINFO_HEAD, &SIGINFO),
        "user_regs" => Contents::Members(&[], &USER_REGS),
        "user_fpregs" => Contents::Members(&[], &USER_FPREGS),
        "linux_dirent64" => Contents::Structs(&DIRENTS64),
        "linux_dirent" => Contents::Structs(&DIRENTS),
        "capability_set" => Contents::Numbers(ArgumentKind::Table(&constants::CAPABILITY)),
        "sigset" | "old_sigset" => Contents::Numbers(ArgumentKind::Signal),
        "input_event_types" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_EVENT_TYPE)),
        "input_keys" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_KEY)),
        "input_relative_axes" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_RELATIVE_AXIS)),
        "input_absolute_axes" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_ABSOLUTE_AXIS)),
        "input_miscellaneous_bits" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_MISCELLANEOUS)),
        "input_leds" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_LED)),
        "input_sounds" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_SOUND)),
        "input_switches" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_SWITCH)),
        "input_effects" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_EFFECT)),
        "input_properties" => Contents::Numbers(ArgumentKind::Table(&constants::INPUT_PROPERTY)),
        "fd_set" | "cpumask" | "nodemask" | "page_bytes" => Contents::Numbers(ArgumentKind::Uint),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::row::StructLayout;
    use super::super::tables::STRUCTS;
    use super::*;

    #[test]
    fn every_struct_that_a_function_decodes_has_contents() {
        for of in STRUCTS {
            assert_eq!(contents(of).is_some(), matches!(of.layout, StructLayout::Decoder(_)), "{}", of.name);
        }
    }
}
