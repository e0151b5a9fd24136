//! The constants that each function of [`super::custom`] prints, by the function's name: where their tables' values
//! stand in the number.
//!
//! A row that names a function names these with it, so a function without them does not compile.

use super::constant::Place;
use super::row::Table;
use super::tables::constants;

/// The whole number is one of the table's values.
const fn whole(table: &'static Table) -> Place {
    Place { table, mask: 0, put: |value| value }
}

/// These bits, as they are in the number, are one of the table's values.
const fn masked(table: &'static Table, mask: u64) -> Place {
    Place { table, mask, put: |value| value }
}

const fn shifted(table: &'static Table, mask: u64, put: fn(u64) -> u64) -> Place {
    Place { table, mask, put }
}

pub static NODE_MODE: &[Place] = &[masked(&constants::FILE_TYPE, 0o170_000)];
pub static FILE_MODE: &[Place] = NODE_MODE;
pub static LIMIT: &[Place] = &[whole(&constants::RLIMIT_VALUE)];
pub static LIMIT64: &[Place] = LIMIT;
pub static UTIME_NSEC: &[Place] = &[whole(&constants::UTIME_NSEC)];
pub static WAIT_STATUS: &[Place] = &[];
pub static IPV4: &[Place] = &[];
pub static IPC_GET: &[Place] = &[whole(&constants::IPC_GET_FLAGS)];
pub static SHM_GET: &[Place] = &[whole(&constants::SHM_GET_FLAGS)];
pub static PERSONALITY: &[Place] = &[whole(&constants::PERSONALITY)];
pub static IOPRIO: &[Place] =
    &[shifted(&constants::IOPRIO_CLASS, 7 << 13, |class| class << 13), shifted(&constants::IOPRIO_HINT, 0x3ff << 3, |hint| hint << 3)];
pub static QUOTA_CMD: &[Place] =
    &[shifted(&constants::QUOTA_CMD, 0xffff_ff00, |command| command << 8 & 0xffff_ffff), masked(&constants::QUOTA_TYPE, 0xff)];
pub static FUTEX_WAKE_OP: &[Place] = &[
    shifted(&constants::FUTEX_WAKE_OP, 7 << 28, |op| op << 28),
    shifted(&constants::FUTEX_WAKE_COMPARE, 15 << 24, |compare| compare << 24),
];
/// In the order in which [`super::custom::ioctl_cmd`] looks commands up.
pub static IOCTL_CMD: &[Place] = &[
    whole(&constants::IOCTL_TTY),
    whole(&constants::IOCTL_FS),
    whole(&constants::IOCTL_SOCKET),
    whole(&constants::IOCTL_TUN),
    whole(&constants::IOCTL_CONSOLE),
    whole(&constants::IOCTL_NAMESPACE),
    whole(&constants::IOCTL_NOTIFY),
    whole(&constants::IOCTL_PERF),
    whole(&constants::IOCTL_USERFAULTFD),
    whole(&constants::IOCTL_RANDOM),
    whole(&constants::IOCTL_LOOP),
    whole(&constants::IOCTL_DM),
    whole(&constants::IOCTL_BTRFS),
    whole(&constants::IOCTL_DISK),
    whole(&constants::IOCTL_CDROM),
    whole(&constants::IOCTL_SYNC),
    whole(&constants::IOCTL_CLOCK),
    whole(&constants::IOCTL_INPUT),
    whole(&constants::IOCTL_USB),
];
pub static PACKET_PROTOCOL: &[Place] = &[shifted(&constants::ETHERNET_PROTOCOL, 0, |protocol| u64::from((protocol as u16).swap_bytes()))];
