//! The stacks that the programs' records have: the counterpart of `stacks.h`.

use crate::sys::perf::StackFields;
use rustc_hash::FxHashMap;

/// `STACKS_MAX`
const STACKS_MAX: usize = 16;
/// The `STACKS_FITTED` sizes of stack copies; the smallest one that holds the stack is used. The last size and the
/// largest record of the programs together fill one perf record (64 KiB).
const SIZES: [u32; 5] = [512, 2 << 10, 8 << 10, 24 << 10, 56 << 10];

/// The size that is used where the depth of the stack is not known; few stacks are deeper.
const USUAL: u32 = 8 << 10;

/// The kinds of records with stacks, and the calls that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The kinds. Each of them is one event on every CPU.
    pub kinds: Vec<StackFields>,
    /// The kinds of each call by the index of its row, counted from 1.
    rows: FxHashMap<u16, Kinds>,
    /// The kinds of calls without a row.
    pub nameless: Kinds,
    /// The kinds of delivered signals.
    pub signals: Kinds,
}

/// A range of kinds, of which the smallest that holds the stack is used. If both ends are 0, no stack is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// The kind with the smallest copy of the stack, as an index in [`Stacks::kinds`] counted from 1.
    pub first: u8,
    /// The kind with the largest copy; `first` if there is only one, as for records without a copy.
    pub last: u8,
    /// The kind that is used where the depth of the stack is not known.
    pub usual: u8,
}

impl Stacks {
    /// Records stacks with these fields for the calls of a row. Without a bound in bytes, the whole stack is copied.
    pub fn add_row(&mut self, row: u16, fields: StackFields, bounded: bool) {
        let kinds = self.kinds_of(fields, bounded);
        self.rows.insert(row, kinds);
    }

    /// Records stacks with these fields for the calls without a row. `bounded` is as in [`Stacks::add_row`].
    pub fn set_nameless(&mut self, fields: StackFields, bounded: bool) {
        self.nameless = self.kinds_of(fields, bounded);
    }

    /// Records stacks with these fields for delivered signals. `bounded` is as in [`Stacks::add_row`].
    pub fn set_signals(&mut self, fields: StackFields, bounded: bool) {
        self.signals = self.kinds_of(fields, bounded);
    }

    /// Returns the kinds of the calls of a row.
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
        // A size that the user chose is always copied.
        let usual = if bounded { None } else { all.iter().position(|kind| kind.bytes >= USUAL) };
        Kinds { first, last: kind(all.len() - 1), usual: kind(usual.unwrap_or(all.len() - 1)) }
    }

    /// Returns the index, counted from 1, at which these kinds follow each other; 0 if no room is left for them.
    fn place_of(&mut self, wanted: &[StackFields]) -> u8 {
        let known = self.kinds.windows(wanted.len()).position(|kinds| kinds == wanted);
        let place = known.unwrap_or_else(|| {
            self.kinds.extend(wanted);
            self.kinds.len() - wanted.len()
        });
        if place + wanted.len() < STACKS_MAX { place as u8 + 1 } else { 0 }
    }

    /// Returns whether more kinds were added than the programs support.
    pub fn is_over(&self) -> bool {
        self.kinds.len() >= STACKS_MAX
    }

    /// Returns the bytes of `stack_bytes`.
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
    fn bounded_stacks_have_all_sizes_up_to_the_bound() {
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
    fn the_number_of_kinds_is_bounded() {
        let mut stacks = Stacks::default();
        for size in 0..20 {
            stacks.add_row(size as u16, StackFields { bytes: 20_000 + 8 * size, ..DUMP }, true);
        }
        assert!(stacks.is_over() && stacks.bytes().len() == 64);
        assert_eq!((stacks.of_row(0).first, stacks.of_row(19).first), (1, 0));
    }
}
