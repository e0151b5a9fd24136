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

pub static NODE_MODE: &[PackedField] = &[masked(&constants::FILE_TYPE, 0o170_000)];
pub static FILE_MODE: &[PackedField] = NODE_MODE;
pub static LIMIT: &[PackedField] = &[whole(&constants::RLIMIT_VALUE)];
pub static LIMIT64: &[PackedField] = LIMIT;
pub static UTIME_NSEC: &[PackedField] = &[whole(&constants::UTIME_NSEC)];
pub static WAIT_STATUS: &[PackedField] = &[];
pub static IPV4: &[PackedField] = &[];
pub static HEX32: &[PackedField] = &[];
pub static WIDE_SIGNAL: &[PackedField] = &[whole(&constants::SIGNAL)];
pub static IPC_GET: &[PackedField] = &[whole(&constants::IPC_GET_FLAGS)];
pub static SHM_GET: &[PackedField] = &[whole(&constants::SHM_GET_FLAGS)];
pub static PERSONALITY: &[PackedField] = &[whole(&constants::PERSONALITY)];
pub static IOPRIO: &[PackedField] =
    &[shifted(&constants::IOPRIO_CLASS, 7 << 13, |class| class << 13), shifted(&constants::IOPRIO_HINT, 0x3ff << 3, |hint| hint << 3)];
pub static QUOTA_CMD: &[PackedField] =
    &[shifted(&constants::QUOTA_CMD, 0xffff_ff00, |command| command << 8 & 0xffff_ffff), masked(&constants::QUOTA_TYPE, 0xff)];
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

pub static PACKET_PROTOCOL: &[PackedField] =
    &[shifted(&constants::ETHERNET_PROTOCOL, 0, |protocol| u64::from((protocol as u16).swap_bytes()))];
pub static BPF_FILTER_CODE: &[PackedField] = &[
    whole(&constants::BPF_FILTER_LOAD),
    whole(&constants::BPF_FILTER_ALU),
    whole(&constants::BPF_FILTER_JMP),
    whole(&constants::BPF_FILTER_RET),
    whole(&constants::BPF_FILTER_MISC),
];
pub static BPF_INSN_CODE: &[PackedField] =
    &[whole(&constants::BPF_INSN_LOAD), whole(&constants::BPF_INSN_ALU), whole(&constants::BPF_INSN_JMP)];
pub static BPF_REGISTERS: &[PackedField] =
    &[masked(&constants::BPF_REGISTER, 0xf), shifted(&constants::BPF_REGISTER, 0xf0, |register| register << 4)];
pub static TCP_WINDOW_SCALES: &[PackedField] = &[];
pub static TCP_LIMITS: &[PackedField] = &[shifted(&constants::TCP_FASTOPEN_CLIENT_FAIL, 6, |reason| reason << 1)];
pub static KERNEL_VERSION: &[PackedField] = &[];
pub static SVE_VECTOR_LENGTH: &[PackedField] = &[whole(&constants::PRCTL_SVE_FLAGS)];
pub static SME_VECTOR_LENGTH: &[PackedField] = &[whole(&constants::PRCTL_SME_FLAGS)];
pub static TAGGED_ADDRESS: &[PackedField] = &[whole(&constants::PRCTL_TAGGED_ADDR)];
pub static RISCV_VECTOR: &[PackedField] = &[masked(&constants::PRCTL_RISCV_V, 3), whole(&constants::PRCTL_RISCV_V_FLAGS)];
pub static VSOCK_PORT: &[PackedField] = &[whole(&constants::VSOCK_PORT)];
pub static VSOCK_CID: &[PackedField] = &[whole(&constants::VSOCK_CID)];
pub static PERF_CACHE: &[PackedField] = &[
    masked(&constants::PERF_CACHE, 0xff),
    shifted(&constants::PERF_CACHE_OP, 0xff00, |op| op << 8),
    shifted(&constants::PERF_CACHE_RESULT, 0xff_0000, |result| result << 16),
];
