//! Lookup of rows and names of syscalls by number, and of rows by name. Requests of io_uring have numbers of their own
//! ([`requests`]).

pub mod requests;

use super::row::Syscall;
use super::tables::{BY_NUMBER, OTHER_NAMES, SYSCALLS};
use crate::event::Abi;
use rustc_hash::FxHashMap;

/// Returns the index in [`SYSCALLS`] of the row for a syscall number.
pub fn index(abi: Abi, nr: i64) -> Option<u16> {
    let index = *BY_NUMBER[abi as usize].get(usize::try_from(nr).ok()?)?;
    (usize::from(index) < SYSCALLS.len()).then_some(index)
}

/// Returns the number of syscall numbers of an ABI that may have rows: 0 up to this number.
pub fn numbers(abi: Abi) -> usize {
    BY_NUMBER[abi as usize].len()
}

/// Returns the row for the number of a syscall or of a request.
pub fn row(abi: Abi, nr: i64) -> Option<&'static Syscall> {
    match index(abi, nr) {
        Some(index) => SYSCALLS.get(usize::from(index)),
        None => requests::row(nr),
    }
}

/// Returns the name that the user gave to a syscall; `names` is by the name of the row.
pub fn user_name(names: &FxHashMap<String, String>, abi: Abi, nr: i64) -> Option<&str> {
    // Users seldom give names, and this is asked for each line.
    if names.is_empty() { None } else { names.get(row(abi, nr)?.name).map(String::as_str) }
}

/// Returns the index in [`SYSCALLS`], which is sorted by name, of the row with this name.
pub fn index_by_name(name: &str) -> Option<u16> {
    SYSCALLS.binary_search_by_key(&name, |row| row.name).ok().map(|index| index as u16)
}

/// Returns the name of a syscall number that has no row, if the name is known.
pub fn other_name(abi: Abi, nr: i64) -> Option<&'static str> {
    let key = (abi, u32::try_from(nr).ok()?);
    OTHER_NAMES.binary_search_by_key(&key, |&(abi, nr, _)| (abi, nr)).ok().map(|index| OTHER_NAMES[index].2)
}

/// Returns the name of a syscall, which may be one that has no row.
pub fn name(row: Option<&Syscall>, abi: Abi, nr: i64) -> Option<&'static str> {
    row.map(|row| row.name).or_else(|| other_name(abi, nr))
}

/// Writes the name of a syscall as in the kernel's table, or `syscall_N` for a number without a known name. The name of
/// a request is `io_uring:` and that of its opcode.
pub fn write_name(out: &mut Vec<u8>, row: Option<&Syscall>, abi: Abi, nr: i64) {
    if let Some(opcode) = requests::opcode(nr) {
        return requests::write_name(out, opcode);
    }
    match name(row, abi, nr) {
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
    fn numbers_without_a_row_have_a_name() {
        for &(abi, nr, name) in OTHER_NAMES {
            assert_eq!((row(abi, i64::from(nr)).is_none(), other_name(abi, i64::from(nr))), (true, Some(name)));
        }
    }

    #[test]
    fn unknown_numbers_are_written_as_syscall_n() {
        for nr in [-1, 4095, i64::MAX, i64::MIN] {
            assert!(row(Abi::X86_64, nr).is_none());
            let mut name = Vec::new();
            write_name(&mut name, None, Abi::X86_64, nr);
            assert_eq!(String::from_utf8(name).unwrap(), format!("syscall_{nr}"));
        }
    }
}
