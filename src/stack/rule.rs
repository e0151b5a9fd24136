//! A rule by which the caller of a frame is found, in eight bytes. Nearly all functions of all programs need no more.
//!
//! The rule of any other function is [`Rule::Full`], and its [`FullRow`](super::full_row::FullRow) is looked up.

use gimli::{CfaRule, Register, RegisterRule, UnwindTableRow};

use crate::stack::registers::Layout;

/// The rule by which the caller of a frame is found. The CFA (canonical frame address) is the caller's stack pointer
/// after the return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No table covers the address.
    Unknown,
    /// The return address is undefined: the function has no caller.
    Root,
    /// The row has expressions or needs other registers, or the frame is a signal frame.
    Full,
    Plain {
        base: CfaBase,
        /// The distance from the base to the CFA, in words.
        cfa: i16,
        return_address: Slot,
        frame_pointer: Slot,
    },
}

const _: () = assert!(size_of::<Rule>() == 8);

/// The register that the CFA is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfaBase {
    StackPointer,
    FramePointer,
}

/// The place of the caller's value of a register: still in the register, or on the stack at a number of words from the
/// CFA (negative: below it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(i16);

impl Slot {
    /// The register still has the caller's value. No slot on the stack has this distance from the CFA, because `at`
    /// refuses it.
    pub const KEPT: Self = Self(i16::MIN);

    /// Returns the distance from the CFA in words, or `None` if the register still has the value.
    #[inline]
    pub fn words(self) -> Option<i64> {
        (self != Self::KEPT).then_some(i64::from(self.0))
    }

    fn at(bytes: i64, layout: &Layout) -> Option<Self> {
        words(bytes, layout).map(Self).filter(|slot| *slot != Self::KEPT)
    }
}

impl Rule {
    /// Compiles a row of a function that is not a signal trampoline. `return_column` is the return address register of
    /// its CIE.
    pub fn of_row(row: &UnwindTableRow<usize>, return_column: Register, layout: &Layout) -> Self {
        Self::plain(row, return_column, layout).unwrap_or(Self::Full)
    }

    fn plain(row: &UnwindTableRow<usize>, return_column: Register, layout: &Layout) -> Option<Self> {
        let return_address = match row.register(return_column) {
            Some(RegisterRule::Undefined) => return Some(Self::Root),
            Some(RegisterRule::Offset(bytes)) => Slot::at(bytes, layout)?,
            None | Some(RegisterRule::SameValue) if layout.link_register.is_some_and(|link| u16::from(link) == return_column.0) => {
                Slot::KEPT
            }
            _ => return None,
        };
        let frame_pointer = match row.register(Register(layout.frame_pointer.into())) {
            None | Some(RegisterRule::SameValue) => Slot::KEPT,
            Some(RegisterRule::Offset(bytes)) => Slot::at(bytes, layout)?,
            _ => return None,
        };
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let base = match u8::try_from(register.0).ok()? {
            number if number == layout.stack_pointer => CfaBase::StackPointer,
            number if number == layout.frame_pointer => CfaBase::FramePointer,
            _ => return None,
        };
        let stack_pointer_is_cfa = row.register(Register(layout.stack_pointer.into())).is_none();
        stack_pointer_is_cfa.then_some(Self::Plain { base, cfa: words(offset, layout)?, return_address, frame_pointer })
    }
}

fn words(bytes: i64, layout: &Layout) -> Option<i16> {
    let word = i64::from(layout.word_bytes);
    (bytes % word == 0).then(|| i16::try_from(bytes / word).ok()).flatten()
}
