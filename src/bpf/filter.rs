//! The part of `--filter` that the BPF programs decide, in conjunctive form: a call must satisfy all clauses, and a
//! clause holds if any of its tests does.
//!
//! The programs drop only calls that certainly do not match. If a test cannot be decided in the kernel, the call passes
//! and the filter is evaluated again in user space.

use crate::beauty::access::Place;
use crate::beauty::resolve::{Width, Word};
use rustc_hash::FxHashSet;

/// The maximum number of tests for one syscall.
pub const TESTS_MAX: usize = 8;
/// The maximum number of different filters that the kernel decides.
pub const FILTERS_MAX: usize = 32;
/// The maximum number of texts that the kernel compares.
pub const TEXTS_MAX: usize = 32;
/// `sizeof(struct test)`
#[cfg(feature = "bpf")]
pub const TEST_BYTES: usize = 16;
/// The size of a text; longer texts are not compared in the kernel.
pub const TEXT_BYTES: usize = 64;
/// Numbers in memory are compared if their offset is below this.
pub const OFFSET_MAX: u32 = 1 << 24;

/// A disjunction of tests. A test that cannot be decided counts as true in a filter, and as false in the condition for
/// a snapshot.
pub type Clause = Vec<Test>;

/// Returns whether the programs have room for all of these conditions.
pub fn fit<'a>(conditions: impl Iterator<Item = &'a [Clause]>) -> bool {
    let different: FxHashSet<&[Clause]> = conditions.collect();
    let tests = || different.iter().flat_map(|clauses| clauses.iter().flatten());
    let texts: FxHashSet<&[u8]> =
        tests().filter_map(|test| if let With::Text(text) = &test.with { Some(text.as_slice()) } else { None }).collect();
    let is_short = |clauses: &&[Clause]| clauses.iter().map(Vec::len).sum::<usize>() <= TESTS_MAX;
    different.len() < FILTERS_MAX && texts.len() <= TEXTS_MAX && different.iter().all(is_short)
}

/// A comparison of one value of a call with a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Test {
    /// The value of the call, the left side of the comparison.
    pub subject: Subject,
    /// The comparison. Those from [`Op::Is`] on are for texts, the others for numbers.
    pub op: Op,
    /// The constant, the right side of the comparison.
    pub with: With,
}

impl Test {
    /// A test that holds for no call.
    pub const NEVER: Test = Test { subject: Subject::Tid, op: Op::AnyBit, with: With::Number(0) };
}

/// The value that a test compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    Argument(Word),
    Ret,
    Errno,
    /// Nanoseconds.
    Duration,
    Pid,
    Tid,
    Comm,
    /// The string that this register points to.
    Text {
        register: u8,
    },
    /// A number in the memory that this register points to. It is read after the call if the call writes the memory.
    Memory {
        register: u8,
        place: Place,
        is_written: bool,
    },
}

/// `enum filter_op` in `filter_settings.h`: the comparison of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    Equal = 0,
    NotEqual = 1,
    Less = 2,
    LessOrEqual = 3,
    Greater = 4,
    GreaterOrEqual = 5,
    AnyBit = 6,
    AllBits = 7,
    /// Comparisons of texts.
    Is = 8,
    IsNot = 9,
    BeginsWith = 10,
    BeginsOtherwise = 11,
}

impl Op {
    /// Returns whether the operation compares a prefix.
    pub fn is_of_beginning(self) -> bool {
        matches!(self, Op::BeginsWith | Op::BeginsOtherwise)
    }
}

/// The constant with which a test compares the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum With {
    /// A number in the subject's width, as bits.
    Number(u64),
    Text(Vec<u8>),
}

impl Subject {
    /// Returns whether the value is known only when the call returns.
    pub fn is_of_return(self) -> bool {
        matches!(self, Subject::Ret | Subject::Errno | Subject::Duration | Subject::Memory { is_written: true, .. })
    }

    /// Returns whether the value is known only when the call begins, because the memory may change during the call.
    pub fn is_of_entry(self) -> bool {
        matches!(self, Subject::Memory { is_written: false, .. })
    }

    /// Returns the width in which the value is compared.
    pub fn width(self) -> Width {
        match self {
            Subject::Argument(word) => word.width,
            Subject::Ret => Width::Signed64,
            Subject::Errno | Subject::Pid | Subject::Tid => Width::Signed32,
            Subject::Memory { place: Place { signed: true, .. }, .. } => Width::Signed64,
            Subject::Duration | Subject::Comm | Subject::Text { .. } | Subject::Memory { .. } => Width::Unsigned64,
        }
    }
}
