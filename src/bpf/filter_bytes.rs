//! Encodes filters as constants of the BPF programs, in the layout of `plan.h`.

use super::filter::{Clause, FILTERS_MAX, Subject, TEST_BYTES, TESTS_MAX, TEXT_BYTES, TEXTS_MAX, Test, With};
use super::settings::{NR_COUNT, Settings};
use crate::beauty::access::Place;
use crate::beauty::lookup;
use crate::event::Abi;
use rustc_hash::FxHashMap;

/// `sizeof(struct filter)`
pub(super) const FILTER_BYTES: usize = 8 + TESTS_MAX * TEST_BYTES;

/// `FILTER_*`
const RET: u8 = 6;
const ERRNO: u8 = 7;
const DURATION: u8 = 8;
const PID: u8 = 9;
const TID: u8 = 10;
const COMM: u8 = 11;
const TEXT: u8 = 16;
const MEMORY: u8 = 32;
const ENDS_CLAUSE: u8 = 1;
const AT_EXIT: u8 = 2;
/// `filter_test.length` of a number in memory: `FILTER_SIZE_SHIFT`, `FILTER_SIGNED`, `FILTER_BIG_ENDIAN`
const SIZE_SHIFT: u32 = 24;
const SIGNED: u32 = 1 << 28;
const BIG_ENDIAN: u32 = 1 << 29;

/// The bytes of the constants.
#[derive(Debug)]
pub(super) struct Filters {
    /// `filters`, `filter_of`, `texts`
    pub filters: Vec<u8>,
    /// `filter_of`: for each number of each ABI, and at the end for all other numbers, the index of the filter; 0 if
    /// there is none.
    pub of: Vec<u8>,
    /// `condition_of`: the same for the conditions for snapshots.
    pub condition_of: Vec<u8>,
    /// `texts`: the compared texts, each filled up with zeros to [`TEXT_BYTES`].
    pub texts: Vec<u8>,
}

impl Filters {
    /// Encodes the filters of the settings. Filters that do not fit are not decided in the kernel.
    pub fn new(settings: &Settings) -> Filters {
        let mut new = Filters {
            filters: vec![0; FILTERS_MAX * FILTER_BYTES],
            of: vec![0; Abi::ALL.len() * NR_COUNT + 1],
            condition_of: vec![0; Abi::ALL.len() * NR_COUNT + 1],
            texts: vec![0; TEXTS_MAX * TEXT_BYTES],
        };
        let (mut next, mut texts) = (1, FxHashMap::default());
        // Conditions come first: all of them must fit (`fit`), and calls that a filter does not exclude here are
        // excluded in user space.
        if let Some(of) = new.put_all(&settings.conditions, 0, &mut next, &mut texts) {
            new.condition_of = of;
        }
        if let Some(of) = new.put_all(&settings.filters, 1, &mut next, &mut texts) {
            new.of = of;
        }
        new
    }

    /// Encodes the filters of these rows, each once. Returns the index of each number's filter, if there are any.
    fn put_all<'a>(
        &mut self,
        filters: &'a [(u16, Abi, Vec<Clause>)],
        undecided: u32,
        next: &mut usize,
        texts: &mut FxHashMap<&'a [u8], usize>,
    ) -> Option<Vec<u8>> {
        let mut known: FxHashMap<&[Clause], u8> = FxHashMap::default();
        let mut of_row: FxHashMap<(u16, Abi), u8> = FxHashMap::default();
        for (row, abi, clauses) in filters {
            let at = match known.get(clauses.as_slice()) {
                Some(at) => *at,
                None if *next < FILTERS_MAX && self.put(*next, clauses, undecided, texts) => {
                    *next += 1;
                    *next as u8 - 1
                }
                None => continue,
            };
            known.insert(clauses, at);
            of_row.insert((*row, *abi), at);
        }
        (!of_row.is_empty()).then(|| filter_of(&of_row))
    }

    fn put<'a>(&mut self, at: usize, clauses: &'a [Clause], undecided: u32, texts: &mut FxHashMap<&'a [u8], usize>) -> bool {
        let mut tests = Vec::new();
        for clause in clauses {
            let at_exit = clause.iter().any(|test| test.subject.is_of_return());
            for (i, test) in clause.iter().enumerate() {
                let with = match &test.with {
                    With::Number(number) => *number,
                    With::Text(text) => match self.text(text, texts) {
                        Some(number) => number as u64,
                        None => return false,
                    },
                };
                let flags = if i + 1 == clause.len() { ENDS_CLAUSE } else { 0 } | if at_exit { AT_EXIT } else { 0 };
                tests.extend(test_bytes(test, flags, with));
            }
        }
        let place = &mut self.filters[at * FILTER_BYTES..][..FILTER_BYTES];
        let Some(room) = place.get_mut(8..8 + tests.len()) else { return false };
        room.copy_from_slice(&tests);
        place[..4].copy_from_slice(&((tests.len() / TEST_BYTES) as u32).to_ne_bytes());
        place[4..8].copy_from_slice(&undecided.to_ne_bytes());
        true
    }

    fn text<'a>(&mut self, text: &'a [u8], texts: &mut FxHashMap<&'a [u8], usize>) -> Option<usize> {
        let next = texts.len();
        let at = *texts.entry(text).or_insert(next);
        self.texts.get_mut(at * TEXT_BYTES..)?.get_mut(..text.len())?.copy_from_slice(text);
        (at < TEXTS_MAX && text.len() < TEXT_BYTES).then_some(at)
    }
}

/// Returns the index of the filter of each syscall number in each ABI.
fn filter_of(rows: &FxHashMap<(u16, Abi), u8>) -> Vec<u8> {
    let numbers = Abi::ALL.into_iter().flat_map(|abi| (0..NR_COUNT as i64).map(move |nr| (abi, nr)));
    let of = |(abi, nr)| lookup::index(abi, nr).and_then(|row| rows.get(&(row, abi))).copied().unwrap_or_default();
    numbers.map(of).chain([0]).collect()
}

fn test_bytes(test: &Test, flags: u8, with: u64) -> Vec<u8> {
    let what = match test.subject {
        Subject::Argument(word) => word.register,
        Subject::Ret => RET,
        Subject::Errno => ERRNO,
        Subject::Duration => DURATION,
        Subject::Pid => PID,
        Subject::Tid => TID,
        Subject::Comm => COMM,
        Subject::Text { register } => TEXT + register,
        Subject::Memory { register, .. } => MEMORY + register,
    };
    let length = match (&test.with, test.subject) {
        (With::Text(text), _) if test.op.is_of_beginning() => text.len() as u32,
        (_, Subject::Memory { place, .. }) => place_bits(place),
        _ => 0,
    };
    let mut bytes = vec![what, test.op as u8, test.subject.width() as u8, flags];
    bytes.extend(length.to_ne_bytes());
    bytes.extend(with.to_ne_bytes());
    bytes
}

fn place_bits(place: Place) -> u32 {
    let Place { offset, bytes, signed, big_endian } = place;
    offset | u32::from(bytes) << SIZE_SHIFT | if signed { SIGNED } else { 0 } | if big_endian { BIG_ENDIAN } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::filter::Op;
    use super::*;
    use crate::beauty::resolve::{Width, Word};

    #[test]
    fn tests_are_encoded_as_struct_filter_test() {
        let number =
            Test { subject: Subject::Argument(Word { register: 2, width: Width::Unsigned32 }), op: Op::AllBits, with: With::Number(5) };
        assert_eq!(test_bytes(&number, ENDS_CLAUSE, 5), [2, 7, 1, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        let text = Test { subject: Subject::Text { register: 1 }, op: Op::BeginsWith, with: With::Text(b"/etc/".to_vec()) };
        assert_eq!(test_bytes(&text, AT_EXIT, 3), [17, 10, 3, 2, 5, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        let place = Place { offset: 0x102, bytes: 8, signed: true, big_endian: false };
        let inside = Test { subject: Subject::Memory { register: 2, place, is_written: true }, op: Op::Less, with: With::Number(9) };
        assert_eq!(test_bytes(&inside, AT_EXIT, 9), [34, 2, 2, 2, 2, 1, 0, 0x18, 9, 0, 0, 0, 0, 0, 0, 0]);
    }
}
