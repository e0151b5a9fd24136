//! From a call's number to its row or name, and from a name to its row.

use super::row::Syscall;
use super::tables::{BY_NUMBER, OTHER_NAMES, SYSCALLS};
use crate::event::Abi;

/// The place of a call's row in [`SYSCALLS`].
pub fn index(abi: Abi, nr: i64) -> Option<u16> {
    let index = *BY_NUMBER[abi as usize].get(usize::try_from(nr).ok()?)?;
    (usize::from(index) < SYSCALLS.len()).then_some(index)
}

/// A call's row.
pub fn row(abi: Abi, nr: i64) -> Option<&'static Syscall> {
    SYSCALLS.get(usize::from(index(abi, nr)?))
}

/// The place of a name's row in [`SYSCALLS`], which stand in the order of their names.
pub fn index_by_name(name: &str) -> Option<u16> {
    SYSCALLS.binary_search_by_key(&name, |row| row.name).ok().map(|index| index as u16)
}

/// The name of a number that has no row, where it is known.
pub fn other_name(abi: Abi, nr: i64) -> Option<&'static str> {
    let key = (abi, u32::try_from(nr).ok()?);
    OTHER_NAMES.binary_search_by_key(&key, |&(abi, nr, _)| (abi, nr)).ok().map(|index| OTHER_NAMES[index].2)
}

/// Writes what a call is named: as in the kernel's table, or `syscall_N` for a number nobody knows.
pub fn write_name(out: &mut Vec<u8>, row: Option<&Syscall>, abi: Abi, nr: i64) {
    match row.map(|row| row.name).or_else(|| other_name(abi, nr)) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => {
            out.extend_from_slice(b"syscall_");
            crate::text::number::int(out, nr);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_numbers_and_its_name() {
        for row in SYSCALLS {
            assert!(index_by_name(row.name).is_some_and(|index| std::ptr::eq(&SYSCALLS[usize::from(index)], row)), "{}", row.name);
            for abi in Abi::ALL {
                let Some(nr) = row.numbers[abi as usize] else { continue };
                assert!(super::row(abi, i64::from(nr)).is_some_and(|found| std::ptr::eq(found, row)), "{} in {abi:?}", row.name);
            }
        }
    }

    #[test]
    fn numbers_without_a_row_have_their_names() {
        for &(abi, nr, name) in OTHER_NAMES {
            assert_eq!((row(abi, i64::from(nr)).is_none(), other_name(abi, i64::from(nr))), (true, Some(name)));
        }
    }

    #[test]
    fn numbers_outside_the_tables_have_no_row_but_a_name() {
        for nr in [-1, 4095, i64::MAX, i64::MIN] {
            assert!(row(Abi::X86_64, nr).is_none());
            let mut name = Vec::new();
            write_name(&mut name, None, Abi::X86_64, nr);
            assert_eq!(String::from_utf8(name).unwrap(), format!("syscall_{nr}"));
        }
    }
}
