//! The constants that the functions of [`super::custom`] print, and the positions of their tables' values in the
//! number.
//!
//! Each static has the name of its function in capitals. The code that is generated for a row names both, so a function
//! without its static does not compile.

use super::constant::PackedField;
use super::row::ConstantTable;
use super::tables::{COMMAND_TABLES, constants};

/// The whole number consists of the table's constants.
const fn whole(table: &'static ConstantTable) -> PackedField {
    PackedField { table, mask: 0, put: |value| value }
}

/// The bits of the mask are a value of the table; the table's values are not shifted.
const fn masked(table: &'static ConstantTable, mask: u64) -> PackedField {
    PackedField { table, mask, put: |value| value }
}

/// The bits of the mask, or all bits if it is 0, are the result of `put` for a value of the table.
const fn shifted(table: &'static ConstantTable, mask: u64, put: fn(u64) -> u64) -> PackedField {
    PackedField { table, mask, put }
}

/// The types of files (`S_IFMT` in inode(7)) in the mode of mknod. Permissions have no names.
pub static NODE_MODE: &[PackedField] = &[masked(&constants::FILE_TYPE, 0o170_000)];
/// The types of files in `st_mode`, as in [`NODE_MODE`].
pub static FILE_MODE: &[PackedField] = NODE_MODE;
/// `RLIM64_INFINITY` (linux/resource.h), the only limit with a name.
pub static LIMIT: &[PackedField] = &[whole(&constants::RLIMIT_VALUE)];
/// The name of a limit of prlimit64, as in [`LIMIT`].
pub static LIMIT64: &[PackedField] = LIMIT;
/// `UTIME_NOW` and `UTIME_OMIT` of utimensat(2). All other values are nanoseconds.
pub static UTIME_NSEC: &[PackedField] = &[whole(&constants::UTIME_NSEC)];
/// Empty: in a condition, a wait status is a number.
pub static WAIT_STATUS: &[PackedField] = &[];
/// Empty: an address has no constants.
pub static IPV4: &[PackedField] = &[];
/// Empty: the number has no constants.
pub static HEX32: &[PackedField] = &[];
/// The signals, as values of the whole number.
pub static WIDE_SIGNAL: &[PackedField] = &[whole(&constants::SIGNAL)];
/// The flags `IPC_*` of msgget(2) and semget(2). The permissions below them have no names.
pub static IPC_GET: &[PackedField] = &[whole(&constants::IPC_GET_FLAGS)];
/// The flags of shmget(2), and the sizes of huge pages among them. The permissions have no names.
pub static SHM_GET: &[PackedField] = &[whole(&constants::SHM_GET_FLAGS)];
/// The flags of personality(2), and the domains (`PER_LINUX32`) in the lowest byte.
pub static PERSONALITY: &[PackedField] = &[whole(&constants::PERSONALITY)];
/// The class in bits 13 to 15, and the hint in bits 3 to 12 (linux/ioprio.h). The level below is a number.
pub static IOPRIO: &[PackedField] =
    &[shifted(&constants::IOPRIO_CLASS, 7 << 13, |class| class << 13), shifted(&constants::IOPRIO_HINT, 0x3ff << 3, |hint| hint << 3)];
/// The command in the upper 24 bits, and the type of the quota in the lowest byte (`QCMD` in linux/quota.h).
pub static QUOTA_CMD: &[PackedField] =
    &[shifted(&constants::QUOTA_CMD, 0xffff_ff00, |command| command << 8 & 0xffff_ffff), masked(&constants::QUOTA_TYPE, 0xff)];
/// The operation in bits 28 to 30, and the comparison in bits 24 to 27 (`FUTEX_OP` in linux/futex.h). The operands have
/// no names.
pub static FUTEX_WAKE_OP: &[PackedField] = &[
    shifted(&constants::FUTEX_WAKE_OP, 7 << 28, |op| op << 28),
    shifted(&constants::FUTEX_WAKE_COMPARE, 15 << 24, |compare| compare << 24),
];
/// The tables of all ioctl commands.
pub static IOCTL_CMD: &[PackedField] = &commands();

const fn commands() -> [PackedField; COMMAND_TABLES.len()] {
    let mut fields = [whole(COMMAND_TABLES[0].table); COMMAND_TABLES.len()];
    let mut at = 1;
    while at < fields.len() {
        fields[at] = whole(COMMAND_TABLES[at].table);
        at += 1;
    }
    fields
}

/// The Ethernet protocols (linux/if_ether.h), whose 16 bits are in network byte order.
pub static PACKET_PROTOCOL: &[PackedField] =
    &[shifted(&constants::ETHERNET_PROTOCOL, 0, |protocol| u64::from((protocol as u16).swap_bytes()))];
/// The parts of an instruction's code in classic BPF (linux/bpf_common.h). Which table a code is printed by depends on
/// its class; a name is looked up in all of them.
pub static BPF_FILTER_CODE: &[PackedField] = &[
    whole(&constants::BPF_FILTER_LOAD),
    whole(&constants::BPF_FILTER_ALU),
    whole(&constants::BPF_FILTER_JMP),
    whole(&constants::BPF_FILTER_RET),
    whole(&constants::BPF_FILTER_MISC),
];
/// The parts of an instruction's code in a BPF program (linux/bpf.h), likewise by its class.
pub static BPF_INSN_CODE: &[PackedField] =
    &[whole(&constants::BPF_INSN_LOAD), whole(&constants::BPF_INSN_ALU), whole(&constants::BPF_INSN_JMP)];
/// The destination in the lower four bits, and the source in the upper four (`struct bpf_insn` in linux/bpf.h). Both
/// have the same names, so a name in a condition stands for the destination.
pub static BPF_REGISTERS: &[PackedField] =
    &[masked(&constants::BPF_REGISTER, 0xf), shifted(&constants::BPF_REGISTER, 0xf0, |register| register << 4)];
/// Empty: both scales are numbers.
pub static TCP_WINDOW_SCALES: &[PackedField] = &[];
/// The reason for which the connection could not begin with data, in bits 1 and 2 (`tcpi_fastopen_client_fail` of
/// struct tcp_info in linux/tcp.h).
pub static TCP_LIMITS: &[PackedField] = &[shifted(&constants::TCP_FASTOPEN_CLIENT_FAIL, 6, |reason| reason << 1)];
/// Empty: all parts of a version are numbers.
pub static KERNEL_VERSION: &[PackedField] = &[];
/// The flags of PR_SVE_SET_VL (linux/prctl.h). The length in the lower 16 bits is a number.
pub static SVE_VECTOR_LENGTH: &[PackedField] = &[whole(&constants::PRCTL_SVE_FLAGS)];
/// The flags of PR_SME_SET_VL (linux/prctl.h), beside a length as in [`SVE_VECTOR_LENGTH`].
pub static SME_VECTOR_LENGTH: &[PackedField] = &[whole(&constants::PRCTL_SME_FLAGS)];
/// The flags of PR_SET_TAGGED_ADDR_CTRL (linux/prctl.h). The tags and the number of masked bits have no names.
pub static TAGGED_ADDRESS: &[PackedField] = &[whole(&constants::PRCTL_TAGGED_ADDR)];
/// The state for this program in the lower two bits, and the flags (PR_RISCV_V_SET_CONTROL in linux/prctl.h). The state
/// for the next program has the same names, which conditions do not compare it with.
pub static RISCV_VECTOR: &[PackedField] = &[masked(&constants::PRCTL_RISCV_V, 3), whole(&constants::PRCTL_RISCV_V_FLAGS)];
/// `VMADDR_PORT_ANY` (linux/vm_sockets.h), the only port with a name.
pub static VSOCK_PORT: &[PackedField] = &[whole(&constants::VSOCK_PORT)];
/// The context IDs that have a name, such as `VMADDR_CID_HOST` (linux/vm_sockets.h).
pub static VSOCK_CID: &[PackedField] = &[whole(&constants::VSOCK_CID)];
/// The cache, the operation and the result, in this order from the lowest byte (PERF_TYPE_HW_CACHE in
/// perf_event_open(2)).
pub static PERF_CACHE: &[PackedField] = &[
    masked(&constants::PERF_CACHE, 0xff),
    shifted(&constants::PERF_CACHE_OP, 0xff00, |op| op << 8),
    shifted(&constants::PERF_CACHE_RESULT, 0xff_0000, |result| result << 16),
];
