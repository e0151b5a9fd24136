//! Decoders of numbers that a row cannot describe, mostly because they pack several values.
//!
//! Each function gets the argument registers, the index of the register to decode, and the ABI. The functions read no
//! memory and never fail: an unknown value stays a number.

use super::command;
use super::row::ConstantTable;
use super::tables::constants;
use super::value::{Value, WaitStatus};
use crate::event::{Abi, Port};
use std::net::Ipv4Addr;

/// The bits of a BPF instruction's code that are its class.
const BPF_CLASS: u32 = 7;
/// `PR_SVE_VL_LEN_MASK`
const VECTOR_LENGTH: u64 = 0xffff;

fn symbol(table: &'static ConstantTable, value: u32) -> Value<'static> {
    Value::Symbol { table, value: u64::from(value) }
}

fn flags(table: &'static ConstantTable, bits: u32) -> Value<'static> {
    Value::Flags { table, bits: u64::from(bits) }
}

fn packed(name: &'static str, raw: u32, members: Vec<(&'static str, Value<'static>)>) -> Value<'static> {
    Value::Packed { name, raw: u64::from(raw), members }
}

/// `mode` of mknod: file type and permissions. The type 0 means a regular file.
pub fn node_mode(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    Value::FileMode(args[index] as u32 & 0xffff)
}

/// `st_mode` of the stat calls: file type and permissions.
pub fn file_mode(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    Value::FileMode(args[index] as u32)
}

/// A limit of getrlimit and setrlimit, as wide as the ABI's word. All bits set means that there is no limit.
pub fn limit(args: &[u64; 6], index: usize, abi: Abi) -> Value<'static> {
    match (args[index], abi) {
        (0xffff_ffff, Abi::I386) => limit64(&[u64::MAX; 6], 0, abi),
        _ => limit64(args, index, abi),
    }
}

/// A limit of prlimit64, which has 64 bits in every ABI.
pub fn limit64(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    match args[index] {
        value @ u64::MAX => Value::Symbol { table: &constants::RLIMIT_VALUE, value },
        value => Value::Uint(value),
    }
}

/// `tv_nsec` of utimensat, where two values are not nanoseconds (UTIME_NOW, UTIME_OMIT).
pub fn utime_nsec(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    match args[index] {
        value if constants::UTIME_NSEC.name(value).is_some() => Value::Symbol { table: &constants::UTIME_NSEC, value },
        value => Value::Int(value as i64),
    }
}

/// The status of a child that wait4 writes (man 2 wait).
pub fn wait_status(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    Value::WaitStatus(WaitStatus::new(args[index] as u32))
}

/// A number of 32 bits in hexadecimal.
pub fn hex32(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    Value::Hex(u64::from(args[index] as u32))
}

/// A signal number of which the kernel reads 64 bits (PR_SET_PDEATHSIG).
pub fn wide_signal(args: &[u64; 6], index: usize, abi: Abi) -> Value<'static> {
    match args[index] {
        number if abi == Abi::I386 || number <= u64::from(u32::MAX) => Value::Signal(number as i32),
        number => Value::Hex(number),
    }
}

/// An IPv4 address, as a number in the machine's byte order.
pub fn ipv4(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    Value::Ip(Ipv4Addr::from(args[index] as u32).into())
}

/// `msgflg` of msgget and `semflg` of semget: permissions in the lower nine bits, IPC_* flags above.
pub fn ipc_get(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    flags_and_permissions("ipc_get", &constants::IPC_GET_FLAGS, args[index] as u32)
}

/// `shmflg` of shmget: like [`ipc_get`], with additional flags.
pub fn shm_get(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    flags_and_permissions("shm_get", &constants::SHM_GET_FLAGS, args[index] as u32)
}

fn flags_and_permissions(name: &'static str, table: &'static ConstantTable, value: u32) -> Value<'static> {
    let permissions = Value::Octal(u64::from(value & 0o777));
    match value & !0o777 {
        0 => permissions,
        rest => packed(name, value, vec![("flags", flags(table, rest)), ("mode", permissions)]),
    }
}

/// The argument of personality: 0xffffffff only queries the current personality.
pub fn personality(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    match args[index] as u32 {
        u32::MAX => Value::Hex(u64::from(u32::MAX)),
        persona => flags(&constants::PERSONALITY, persona),
    }
}

/// `ioprio` of ioprio_set (linux/ioprio.h): three bits of class, ten of hint, three of level.
pub fn ioprio(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let value = args[index] as u32;
    let (class, hint, level) = (value >> 13, value >> 3 & 0x3ff, value & 7);
    let mut members = vec![("class", symbol(&constants::IOPRIO_CLASS, class)), ("level", Value::Uint(u64::from(level)))];
    if hint != 0 {
        members.push(("hint", symbol(&constants::IOPRIO_HINT, hint)));
    }
    packed("ioprio", value, members)
}

/// `code` of an instruction of classic BPF (linux/bpf_common.h, linux/filter.h).
pub fn bpf_filter_code(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let code = args[index] as u32;
    flags(
        match code & BPF_CLASS {
            0..=3 => &constants::BPF_FILTER_LOAD,
            4 => &constants::BPF_FILTER_ALU,
            5 => &constants::BPF_FILTER_JMP,
            6 => &constants::BPF_FILTER_RET,
            _ => &constants::BPF_FILTER_MISC,
        },
        code,
    )
}

/// `code` of an instruction of a BPF program (linux/bpf.h).
pub fn bpf_insn_code(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let code = args[index] as u32;
    flags(
        match code & BPF_CLASS {
            0..=3 => &constants::BPF_INSN_LOAD,
            4 | 7 => &constants::BPF_INSN_ALU,
            _ => &constants::BPF_INSN_JMP,
        },
        code,
    )
}

/// `config` of a perf event of a hardware cache (linux/perf_event.h): eight bits each of cache, operation and result.
pub fn perf_cache(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let config = args[index];
    if config > 0xff_ffff {
        return Value::Hex(config);
    }
    let part = |table, shift: u32| symbol(table, (config >> shift) as u32 & 0xff);
    let members = vec![
        ("cache", part(&constants::PERF_CACHE, 0)),
        ("op", part(&constants::PERF_CACHE_OP, 8)),
        ("result", part(&constants::PERF_CACHE_RESULT, 16)),
    ];
    packed("perf_cache", config as u32, members)
}

/// The registers of an instruction of a BPF program: four bits of the destination, four of the source.
pub fn bpf_registers(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let registers = args[index] as u32;
    let register = |bits: u32| symbol(&constants::BPF_REGISTER, bits & 0xf);
    packed("bpf_registers", registers, vec![("dst_reg", register(registers)), ("src_reg", register(registers >> 4))])
}

/// The sixth byte of struct tcp_info, counted from 0: the scale of the window that is sent, and of the one that is
/// received, with four bits each.
pub fn tcp_window_scales(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let scales = args[index] as u32;
    let scale = |bits: u32| Value::Uint(u64::from(bits & 0xf));
    packed("tcp_window_scales", scales, vec![("tcpi_snd_wscale", scale(scales)), ("tcpi_rcv_wscale", scale(scales >> 4))])
}

/// The seventh byte of struct tcp_info: a bit that says whether the application limits the rate, and two bits with the
/// reason for which the connection could not begin with data.
pub fn tcp_limits(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let limits = args[index] as u32;
    let members = vec![
        ("tcpi_delivery_rate_app_limited", Value::Uint(u64::from(limits & 1))),
        ("tcpi_fastopen_client_fail", symbol(&constants::TCP_FASTOPEN_CLIENT_FAIL, limits >> 1 & 3)),
    ];
    packed("tcp_limits", limits, members)
}

/// `kern_version` of a BPF program (KERNEL_VERSION in linux/version.h): major and minor number and patch level. Most
/// programs have none.
pub fn kernel_version(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let version = args[index] as u32;
    if version == 0 {
        return Value::Uint(0);
    }
    let part = |shift: u32, mask: u32| Value::Uint(u64::from(version >> shift & mask));
    packed("kernel_version", version, vec![("major", part(16, 0xffff)), ("minor", part(8, 0xff)), ("patch", part(0, 0xff))])
}

/// The length of the vectors of SVE, in bytes, and its flags (PR_SVE_SET_VL in linux/prctl.h).
pub fn sve_vector_length(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    vector_length(&constants::PRCTL_SVE_FLAGS, args[index])
}

/// The length of the vectors of SME, like [`sve_vector_length`].
pub fn sme_vector_length(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    vector_length(&constants::PRCTL_SME_FLAGS, args[index])
}

fn vector_length(table: &'static ConstantTable, raw: u64) -> Value<'static> {
    let (length, bits) = (Value::Uint(raw & VECTOR_LENGTH), raw & !VECTOR_LENGTH);
    if bits == 0 {
        return length;
    }
    Value::Packed { name: "vector_length", raw, members: vec![("vl", length), ("flags", Value::Flags { table, bits })] }
}

/// The control of tagged addresses (PR_SET_TAGGED_ADDR_CTRL in linux/prctl.h): flags, the tags that IRG may generate
/// (arm64), and the number of masked bits (RISC-V).
pub fn tagged_address(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    const TAGS: u64 = 0xffff << 3;
    const MASKED_BITS: u64 = 0x7f << 24;
    let raw = args[index];
    let flags = Value::Flags { table: &constants::PRCTL_TAGGED_ADDR, bits: raw & !(TAGS | MASKED_BITS) };
    if raw & (TAGS | MASKED_BITS) == 0 {
        return flags;
    }
    let members = vec![("flags", flags), ("tags", Value::Hex((raw & TAGS) >> 3)), ("pmlen", Value::Uint((raw & MASKED_BITS) >> 24))];
    Value::Packed { name: "tagged_address", raw, members }
}

/// The control of RISC-V's vectors (PR_RISCV_V_SET_CONTROL in linux/prctl.h): for this program and for the next one.
pub fn riscv_vector(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let raw = args[index];
    let state = |shift: u32| Value::Symbol { table: &constants::PRCTL_RISCV_V, value: raw >> shift & 3 };
    let flags = Value::Flags { table: &constants::PRCTL_RISCV_V_FLAGS, bits: raw & !0xf };
    Value::Packed { name: "riscv_vector", raw, members: vec![("cur", state(0)), ("next", state(2)), ("flags", flags)] }
}

/// The port in the address of a vsock socket, where one value is any port (linux/vm_sockets.h).
pub fn vsock_port(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    known_or(&constants::VSOCK_PORT, args[index] as u32, |port| Value::Port(Port(port)))
}

/// The context ID in the address of a vsock socket, which is that of a virtual machine or has a name.
pub fn vsock_cid(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    known_or(&constants::VSOCK_CID, args[index] as u32, |cid| Value::Uint(u64::from(cid)))
}

fn known_or(table: &'static ConstantTable, value: u32, other: fn(u32) -> Value<'static>) -> Value<'static> {
    if table.name(u64::from(value)).is_some() { symbol(table, value) } else { other(value) }
}

/// `cmd` of quotactl (linux/quota.h): the type of the quota in the lowest byte, the command above.
pub fn quota_cmd(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let value = args[index] as u32;
    packed(
        "quota_cmd",
        value,
        vec![("cmd", symbol(&constants::QUOTA_CMD, value >> 8)), ("type", symbol(&constants::QUOTA_TYPE, value & 0xff))],
    )
}

/// `val3` of futex for FUTEX_WAKE_OP (linux/futex.h): the operation on the word at `uaddr2`, and the comparison of its
/// old value that decides whether waiters there are woken.
pub fn futex_wake_op(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    let value = args[index] as u32;
    // Both operands are signed and have twelve bits.
    let operand = i64::from((value << 8) as i32 >> 20);
    let compared = i64::from((value << 20) as i32 >> 20);
    let operand = match value >> 31 {
        0 => Value::Int(operand),
        // FUTEX_OP_OPARG_SHIFT: the operand is the number of a bit.
        _ => Value::Hex(1u64 << (operand & 31)),
    };
    let members = vec![
        ("op", symbol(&constants::FUTEX_WAKE_OP, value >> 28 & 7)),
        ("oparg", operand),
        ("cmp", symbol(&constants::FUTEX_WAKE_COMPARE, value >> 24 & 15)),
        ("cmparg", Value::Int(compared)),
    ];
    packed("futex_wake_op", value, members)
}

/// `cmd` of ioctl for a file that is not known. See [`super::command`] for known files.
pub fn ioctl_cmd(args: &[u64; 6], index: usize, abi: Abi) -> Value<'static> {
    command::of_any_file(args[index] as u32, abi)
}

/// `protocol` of socket for AF_PACKET: an Ethernet protocol in network byte order.
pub fn packet_protocol(args: &[u64; 6], index: usize, _: Abi) -> Value<'static> {
    match u16::try_from(args[index] as u32) {
        Ok(protocol) => symbol(&constants::ETHERNET_PROTOCOL, u32::from(protocol.swap_bytes())),
        Err(_) => Value::Hex(args[index] & u64::from(u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Custom = fn(&[u64; 6], usize, Abi) -> Value<'static>;

    /// Returns a short form of the value that the function decodes from a register.
    fn decoded(custom: Custom, value: u64) -> String {
        let mut args = [0; 6];
        args[3] = value;
        short(&custom(&args, 3, Abi::X86_64))
    }

    fn short(value: &Value) -> String {
        match value {
            Value::Int(value) => value.to_string(),
            Value::Uint(value) => value.to_string(),
            Value::Hex(value) => format!("{value:#x}"),
            Value::Octal(value) => format!("0{value:o}"),
            Value::Symbol { table, value } => match table.entries.iter().find(|entry| entry.value == *value) {
                Some(entry) => entry.name.to_string(),
                None => format!("{}({value:#x})", table.name),
            },
            Value::Flags { table, bits } => format!("{}({bits:#x})", table.name),
            Value::FileMode(mode) => format!("mode 0{mode:o}"),
            Value::Packed { members, .. } => {
                members.iter().map(|(name, value)| format!("{name}={}", short(value))).collect::<Vec<_>>().join(" ")
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn node_modes_keep_type_and_permissions() {
        assert_eq!(decoded(node_mode, u64::from(libc::S_IFCHR | 0o620)), "mode 020620");
        assert_eq!(decoded(node_mode, u64::from(libc::S_IFIFO)), "mode 010000");
        assert_eq!(decoded(node_mode, 0o644), "mode 0644");
        assert_eq!(decoded(node_mode, 0o030_001), "mode 030001");
    }

    #[test]
    fn ipc_flags_are_split_from_permissions() {
        assert_eq!(decoded(ipc_get, (libc::IPC_CREAT | libc::IPC_EXCL | 0o600) as u64), "flags=ipc_get_flags(0x600) mode=0600");
        assert_eq!(decoded(ipc_get, 0), "00");
        assert_eq!(decoded(shm_get, (libc::IPC_CREAT | libc::SHM_HUGETLB | 0o644) as u64), "flags=shm_get_flags(0xa00) mode=0644");
    }

    #[test]
    fn the_query_of_a_personality_is_not_flags() {
        assert_eq!(decoded(personality, 0xffff_ffff), "0xffffffff");
        assert_eq!(decoded(personality, libc::ADDR_NO_RANDOMIZE as u64), "personality(0x40000)");
    }

    #[test]
    fn io_priorities_are_split_into_class_level_and_hint() {
        assert_eq!(decoded(ioprio, 2 << 13 | 4), "class=IOPRIO_CLASS_BE level=4");
        assert_eq!(decoded(ioprio, 1 << 13 | 7 << 3), "class=IOPRIO_CLASS_RT level=0 hint=IOPRIO_HINT_DEV_DURATION_LIMIT_7");
        assert_eq!(decoded(ioprio, 0), "class=IOPRIO_CLASS_NONE level=0");
    }

    #[test]
    fn quota_commands_are_split_into_command_and_type() {
        assert_eq!(decoded(quota_cmd, 0x0080_0007 << 8), "cmd=Q_GETQUOTA type=USRQUOTA");
        assert_eq!(decoded(quota_cmd, (u64::from(b'X') << 8 | 1) << 8 | 2), "cmd=Q_XQUOTAON type=PRJQUOTA");
        assert_eq!(decoded(quota_cmd, 0x0100), "cmd=quota_cmd(0x1) type=USRQUOTA");
    }

    #[test]
    fn futex_operations_are_split_into_their_operands() {
        // glibc's condition variables used FUTEX_OP(SET, 0, GT, 1).
        assert_eq!(decoded(futex_wake_op, 4 << 24 | 1), "op=FUTEX_OP_SET oparg=0 cmp=FUTEX_OP_CMP_GT cmparg=1");
        assert_eq!(decoded(futex_wake_op, 0x1fff_ffff), "op=FUTEX_OP_ADD oparg=-1 cmp=futex_wake_compare(0xf) cmparg=-1");
        assert_eq!(decoded(futex_wake_op, 0xa000_5000), "op=FUTEX_OP_OR oparg=0x20 cmp=FUTEX_OP_CMP_EQ cmparg=0");
    }

    #[test]
    fn numbers_have_the_width_that_the_kernel_reads() {
        assert_eq!(decoded(hex32, 0xbad_0000_5305), "0x5305");
        assert_eq!(decoded(wide_signal, 0xbad_0000_0009), "0xbad00000009");
        assert_eq!(wide_signal(&[0xbad_0000_0009; 6], 0, Abi::X86_64), Value::Hex(0xbad_0000_0009));
        assert_eq!(wide_signal(&[9; 6], 0, Abi::X86_64), Value::Signal(9));
    }

    #[test]
    fn processor_controls_are_split_into_their_parts() {
        assert_eq!(decoded(sve_vector_length, 32), "32");
        assert_eq!(decoded(sve_vector_length, 1 << 18 | 64), "vl=64 flags=prctl_sve_flags(0x40000)");
        assert_eq!(decoded(sme_vector_length, 1 << 17), "vl=0 flags=prctl_sme_flags(0x20000)");
        assert_eq!(decoded(tagged_address, 3), "prctl_tagged_addr(0x3)");
        assert_eq!(decoded(tagged_address, 7 << 24 | 0xfffe << 3 | 5), "flags=prctl_tagged_addr(0x5) tags=0xfffe pmlen=7");
        let vector = decoded(riscv_vector, 0b1_1001);
        assert_eq!(vector, "cur=PR_RISCV_V_VSTATE_CTRL_OFF next=PR_RISCV_V_VSTATE_CTRL_ON flags=prctl_riscv_v_flags(0x10)");
    }

    #[test]
    fn versions_and_registers_of_bpf_programs_are_split() {
        assert_eq!(decoded(kernel_version, 0), "0");
        assert_eq!(decoded(kernel_version, 6 << 16 | 18 << 8 | 44), "major=6 minor=18 patch=44");
        assert_eq!(decoded(bpf_registers, 0xa1), "dst_reg=BPF_REG_1 src_reg=BPF_REG_10");
    }

    #[test]
    fn bit_fields_of_tcp_connections_are_split() {
        assert_eq!(decoded(tcp_window_scales, 0x97), "tcpi_snd_wscale=7 tcpi_rcv_wscale=9");
        assert_eq!(decoded(tcp_limits, 1), "tcpi_delivery_rate_app_limited=1 tcpi_fastopen_client_fail=TFO_STATUS_UNSPEC");
        assert_eq!(decoded(tcp_limits, 6), "tcpi_delivery_rate_app_limited=0 tcpi_fastopen_client_fail=TFO_SYN_RETRANSMITTED");
    }

    #[test]
    fn ports_of_vsock_have_a_name_if_they_are_any_port() {
        assert_eq!(decoded(vsock_port, u64::from(u32::MAX)), "VMADDR_PORT_ANY");
        assert_eq!(vsock_port(&[0xffff_fffe; 6], 0, Abi::X86_64), Value::Port(Port(0xffff_fffe)));
        assert_eq!([2, 77].map(|cid| decoded(vsock_cid, cid)), ["VMADDR_CID_HOST", "77"]);
    }

    #[test]
    fn packet_protocols_are_in_network_byte_order() {
        assert_eq!(decoded(packet_protocol, u64::from(3u16.to_be())), "ETH_P_ALL");
        assert_eq!(decoded(packet_protocol, u64::from(0x86ddu16.to_be())), "ETH_P_IPV6");
        assert_eq!(decoded(packet_protocol, 0x1_0000), "0x10000");
    }
}
