//! What the programs decide of `--filter`: tests, any of which a clause asks for, all clauses of which a call must fulfil.
//!
//! They only leave out what is certain not to be shown: what cannot be known in the kernel passes, and is decided here again.

use crate::beauty::resolve::{Width, Word};

/// No more tests of one syscall's calls are decided in the kernel, and no more different sets of clauses or texts.
pub const TESTS_MAX: usize = 8;
pub const FILTERS_MAX: usize = 32;
pub const TEXTS_MAX: usize = 32;
/// `sizeof(struct test)`
pub const TEST_BYTES: usize = 16;
/// Longer texts are not compared in the kernel.
pub const TEXT_BYTES: usize = 64;

/// One of these must hold; any of them if it cannot be decided.
pub type Clause = Vec<Test>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Test {
    pub subject: Subject,
    pub op: Op,
    pub with: With,
}

impl Test {
    /// It holds for no call.
    pub const NEVER: Test = Test { subject: Subject::Tid, op: Op::AnyBit, with: With::Number(0) };
}

/// What a test is about.
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
}

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
    /// Of texts.
    Is = 8,
    IsNot = 9,
    BeginsWith = 10,
    BeginsOtherwise = 11,
}

impl Op {
    /// Only a text's beginning is compared.
    pub fn is_of_beginning(self) -> bool {
        matches!(self, Op::BeginsWith | Op::BeginsOtherwise)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum With {
    /// Of the subject's width, as bits.
    Number(u64),
    Text(Vec<u8>),
}

impl Subject {
    /// It is known only when the call returns.
    pub fn is_of_return(self) -> bool {
        matches!(self, Subject::Ret | Subject::Errno | Subject::Duration)
    }

    /// How its value is compared.
    pub fn width(self) -> Width {
        match self {
            Subject::Argument(word) => word.width,
            Subject::Ret => Width::Signed64,
            Subject::Errno | Subject::Pid | Subject::Tid => Width::Signed32,
            Subject::Duration | Subject::Comm | Subject::Text { .. } => Width::Unsigned64,
        }
    }
}
