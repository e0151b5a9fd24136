//! Decoders of numbers that a row cannot describe, mostly because they pack several values.
//!
//! Each function gets the argument registers, the index of the register to decode, and the ABI. The functions read no
//! memory and never fail: an unknown value stays a number.

use super::command;
use super::row::ConstantTable;
use super::tables::constants;
use super::value::{Value, WaitStatus};
use crate::event::Abi;
use std::net::Ipv4Addr;

/// The bits of a BPF instruction's code that are its class.
const BPF_CLASS: u32 = 7;

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
    let number = |register: u32| Value::Uint(u64::from(register & 0xf));
    packed("bpf_registers", registers, vec![("dst_reg", number(registers)), ("src_reg", number(registers >> 4))])
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
    fn packet_protocols_are_in_network_byte_order() {
        assert_eq!(decoded(packet_protocol, u64::from(3u16.to_be())), "ETH_P_ALL");
        assert_eq!(decoded(packet_protocol, u64::from(0x86ddu16.to_be())), "ETH_P_IPV6");
        assert_eq!(decoded(packet_protocol, 0x1_0000), "0x10000");
    }
}
