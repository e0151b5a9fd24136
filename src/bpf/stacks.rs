//! What of the stack comes with the programs' records: the mirror of `stacks.h`.

use crate::sys::perf::StackFields;
use rustc_hash::FxHashMap;

/// `STACKS_MAX`
const STACKS_MAX: usize = 16;
/// The sizes among which the smallest that holds the stack is taken: `STACKS_FITTED` of them. Together with the largest of the programs' records, the last one fills a record of perf's (64 KiB).
const SIZES: [u32; 5] = [512, 2 << 10, 8 << 10, 24 << 10, 56 << 10];

/// What is copied where it is not known how deep a stack is: few are deeper.
const USUAL: u32 = 8 << 10;

/// The kinds of records beside those without a stack, and which calls have which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Each is an event on every CPU.
    pub kinds: Vec<StackFields>,
    /// By the place of the call's row: the first and last kind, counted from 1.
    rows: FxHashMap<u16, Kinds>,
    /// The same of calls without a row.
    pub nameless: Kinds,
}

/// The smallest from the first kind to the last is taken that holds the stack; none, if both are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    pub first: u8,
    pub last: u8,
    /// Taken where it is not known how deep the stack is.
    pub usual: u8,
}

impl Stacks {
    /// Calls of this row have what these fields say; without a bound of bytes, as much as there is.
    pub fn add_row(&mut self, row: u16, fields: StackFields, bounded: bool) {
        let kinds = self.kinds_of(fields, bounded);
        self.rows.insert(row, kinds);
    }

    pub fn set_nameless(&mut self, fields: StackFields, bounded: bool) {
        self.nameless = self.kinds_of(fields, bounded);
    }

    /// What calls of a row have.
    pub fn of_row(&self, row: u16) -> Kinds {
        self.rows.get(&row).copied().unwrap_or_default()
    }

    fn kinds_of(&mut self, fields: StackFields, bounded: bool) -> Kinds {
        if fields.sample_type() == 0 {
            return Kinds::default();
        }
        if fields.bytes == 0 {
            let place = self.place_of(&[fields]);
            return Kinds { first: place, last: place, usual: place };
        }
        let most = if bounded { fields.bytes } else { SIZES[SIZES.len() - 1] };
        let smaller = SIZES.into_iter().filter(|bytes| *bytes < most);
        let all: Vec<StackFields> = smaller.chain([most]).map(|bytes| StackFields { bytes, ..fields }).collect();
        let first = self.place_of(&all);
        let kind = |at: usize| (first + at as u8).min(STACKS_MAX as u8 - 1);
        // Who says how much is to be copied has it.
        let usual = if bounded { None } else { all.iter().position(|kind| kind.bytes >= USUAL) };
        Kinds { first, last: kind(all.len() - 1), usual: kind(usual.unwrap_or(all.len() - 1)) }
    }

    /// Where these stand one after the other; 0 if there is no room any more.
    fn place_of(&mut self, wanted: &[StackFields]) -> u8 {
        let known = self.kinds.windows(wanted.len()).position(|kinds| kinds == wanted);
        let place = known.unwrap_or_else(|| {
            self.kinds.extend(wanted);
            self.kinds.len() - wanted.len()
        });
        if place + wanted.len() < STACKS_MAX { place as u8 + 1 } else { 0 }
    }

    /// More kinds were asked for than the programs know.
    pub fn is_over(&self) -> bool {
        self.kinds.len() >= STACKS_MAX
    }

    /// The bytes of `stack_bytes`.
    #[cfg(feature = "bpf")]
    pub(super) fn bytes(&self) -> Vec<u8> {
        let kinds = self.kinds.iter().take(STACKS_MAX - 1).map(|kind| kind.bytes);
        let mut bytes: Vec<u8> = std::iter::once(0).chain(kinds).flat_map(u32::to_ne_bytes).collect();
        bytes.resize(4 * STACKS_MAX, 0);
        bytes
    }
}

#[cfg(all(test, feature = "bpf"))]
mod tests {
    use super::*;

    const DUMP: StackFields = StackFields { kernel_chain: false, user_chain: false, registers: 1, bytes: 8192 };

    #[test]
    fn sizes_up_to_what_is_asked_for() {
        let mut stacks = Stacks::default();
        stacks.add_row(3, DUMP, false);
        stacks.add_row(4, DUMP, true);
        stacks.add_row(5, StackFields { kernel_chain: true, ..StackFields::default() }, false);
        stacks.add_row(6, DUMP, false);
        let bytes: Vec<u32> = stacks.kinds.iter().map(|kind| kind.bytes).collect();
        assert_eq!(bytes, [512, 2 << 10, 8 << 10, 24 << 10, 56 << 10, 0]);
        let of = |row| (stacks.of_row(row).first, stacks.of_row(row).last, stacks.of_row(row).usual);
        assert_eq!((of(3), of(4), of(5), of(6), of(7)), ((1, 5, 3), (1, 3, 3), (6, 6, 6), (1, 5, 3), (0, 0, 0)));
    }

    #[test]
    fn there_is_no_room_for_any_number_of_kinds() {
        let mut stacks = Stacks::default();
        for size in 0..20 {
            stacks.add_row(size as u16, StackFields { bytes: 20_000 + 8 * size, ..DUMP }, true);
        }
        assert!(stacks.is_over() && stacks.bytes().len() == 64);
        assert_eq!((stacks.of_row(0).first, stacks.of_row(19).first), (1, 0));
    }
}
