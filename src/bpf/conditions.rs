//! When a call uses an argument at all, for the programs: the predicates of `crate::beauty::used` as facts.
//!
//! A function cannot be told to the kernel, so each has its twin here; a test holds the two together.

use crate::beauty::row::Arg;

/// What another argument's lower half must be: its place, and a mask or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    Any(u8, u32),
    None(u8, u32),
    Is(u8, u32),
    IsNot(u8, u32),
    /// The lower seven bits are the number of a bit of this mask.
    Among(u8, u32),
}

impl Condition {
    /// `test`, `test_arg` and `test_mask` of `struct op`.
    pub fn coded(self) -> (u8, u8, u32) {
        match self {
            Condition::Always => (0, 0, 0),
            Condition::Any(arg, mask) => (1, arg, mask),
            Condition::None(arg, mask) => (2, arg, mask),
            Condition::Is(arg, value) => (3, arg, value),
            Condition::IsNot(arg, value) => (4, arg, value),
            Condition::Among(arg, mask) => (5, arg, mask),
        }
    }
}

const CONDITIONS: &[(&str, &str, Condition)] = &[
    ("clock_nanosleep", "rmtp", Condition::None(1, 1)),
    ("clock_nanosleep_time64", "rmtp", Condition::None(1, 1)),
    ("clone", "parent_tidptr", Condition::Any(0, 0x10_1000)),
    ("epoll_ctl", "event", Condition::IsNot(1, 2)),
    ("futex", "utime", FUTEX_WAITS),
    ("futex_time64", "utime", FUTEX_WAITS),
    ("getgroups", "grouplist", HAS_ROOM),
    ("getgroups32", "grouplist", HAS_ROOM),
    ("mq_open", "u_attr", Condition::Any(1, 0o100)),
    ("reboot", "arg", Condition::Is(2, 0xa1b2_c3d4)),
];

const FUTEX_WAITS: Condition = Condition::Among(1, 1 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 13);
const HAS_ROOM: Condition = Condition::Any(0, u32::MAX);

/// When this argument of the row is used.
pub(super) fn of(row: &str, arg: &Arg) -> Condition {
    let said = CONDITIONS.iter().find(|(of, name, _)| (*of, *name) == (row, arg.name) && arg.used.is_some());
    said.map_or(Condition::Always, |(_, _, condition)| *condition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::row::Kind;
    use crate::beauty::tables::SYSCALLS;

    fn holds(condition: Condition, args: &[u64; 6]) -> bool {
        let low = |arg: u8| args[usize::from(arg)] as u32;
        match condition {
            Condition::Always => true,
            Condition::Any(arg, mask) => low(arg) & mask != 0,
            Condition::None(arg, mask) => low(arg) & mask == 0,
            Condition::Is(arg, value) => low(arg) == value,
            Condition::IsNot(arg, value) => low(arg) != value,
            Condition::Among(arg, mask) => low(arg) & 0x7f < 32 && mask >> (low(arg) & 0x1f) & 1 == 1,
        }
    }

    /// Registers that all hold the same: small numbers, single bits, all bits, and what some calls look for.
    fn samples() -> impl Iterator<Item = [u64; 6]> {
        let numbers = (0..1024).chain((0..64).map(|bit| 1u64 << bit)).chain([u64::MAX, 0xa1b2_c3d4, 0xffff_ffff_a1b2_c3d4]);
        numbers.map(|number| [number; 6])
    }

    #[test]
    fn memory_is_copied_under_the_conditions_that_rows_name() {
        for row in SYSCALLS {
            let variants = row.variants.iter().flat_map(|variant| variant.args);
            for arg in row.args.iter().chain(variants) {
                let Some(used) = arg.used else { continue };
                let is_memory = !matches!(
                    arg.kind,
                    Kind::Int
                        | Kind::Uint
                        | Kind::Ulong
                        | Kind::Hex
                        | Kind::Fd
                        | Kind::Offset
                        | Kind::Pid
                        | Kind::Mode
                        | Kind::Dev
                        | Kind::Address
                        | Kind::Table(_)
                );
                for args in samples().filter(|_| is_memory) {
                    assert_eq!(holds(of(row.name, arg), &args), used(&args), "{} {}: {:#x}", row.name, arg.name, args[0]);
                }
            }
        }
    }

    #[test]
    fn no_condition_is_idle() {
        for (name, arg, condition) in CONDITIONS {
            let row = SYSCALLS.iter().find(|row| row.name == *name).unwrap();
            assert_eq!(of(name, row.args.iter().find(|known| known.name == *arg).unwrap()), *condition, "{name} {arg}");
        }
    }
}
