//! The conditions under which a call uses an argument, as the programs test them: `test`, `test_arg` and `test_mask` of
//! `struct op`.

use crate::beauty::row::{BitTest, Comparison, Condition};

/// `enum op_test`
const NONE: u8 = 0;
const ANY: u8 = 1;
const NO: u8 = 2;
pub(super) const IS: u8 = 3;
const IS_NOT: u8 = 4;

/// A test of the programs: its code, the index of the argument, and a mask or a value.
pub(super) type CodedTest = (u8, u8, u32);

/// Returns the test that the programs make before they copy an argument's memory; `None` if the call never uses the
/// argument. A condition for which the programs have no test is encoded as none, so that more is copied than is shown.
pub(super) fn coded(condition: &Condition) -> Option<CodedTest> {
    match condition {
        Condition::Never => None,
        Condition::If { any: [test], .. } => Some(of_test(test).unwrap_or((NONE, 0, 0))),
        Condition::Always | Condition::If { .. } => Some((NONE, 0, 0)),
    }
}

fn of_test(test: &BitTest) -> Option<CodedTest> {
    let (code, mask) = match test.comparison {
        Comparison::SomeBit => (ANY, test.mask),
        Comparison::NoBit => (NO, test.mask),
        Comparison::OneOf([value]) if test.mask == u32::MAX => (IS, *value),
        Comparison::NoneOf([value]) if test.mask == u32::MAX => (IS_NOT, *value),
        Comparison::OneOf(_) | Comparison::NoneOf(_) => return None,
    };
    Some((code, test.arg, mask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::row::Syscall;
    use crate::beauty::tables::SYSCALLS;

    /// Computes what `passes` of `plan.h` does.
    fn holds((code, arg, mask): CodedTest, args: &[u64; 6]) -> bool {
        let low = args[usize::from(arg)] as u32;
        match code {
            ANY => low & mask != 0,
            NO => low & mask == 0,
            IS => low == mask,
            IS_NOT => low != mask,
            _ => true,
        }
    }

    /// Returns samples in which all registers have the same value: small numbers, single bits, all bits, and the magic
    /// numbers of some calls.
    fn samples() -> impl Iterator<Item = [u64; 6]> {
        let numbers = (0..1024).chain((0..64).map(|bit| 1u64 << bit)).chain([u64::MAX, 0xa1b2_c3d4, 0xffff_ffff_a1b2_c3d4]);
        numbers.map(|number| [number; 6])
    }

    #[test]
    fn memory_is_copied_under_the_conditions_of_the_rows() {
        let signatures = || SYSCALLS.iter().flat_map(Syscall::signatures);
        let of_memory = signatures().flat_map(|signature| signature.args).filter(|arg| !arg.kind.is_in_register());
        for arg in of_memory {
            let Some(coded) = coded(&arg.used) else { continue };
            for args in samples() {
                assert_eq!(holds(coded, &args), arg.used.holds(&args), "{} {:?}: {:#x}", arg.name, arg.used, args[0]);
            }
        }
    }
}
