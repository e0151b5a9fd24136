//! What the name of a constant stands for, in the kernel's headers or in what it prints of an event.

/// What one name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// The number, as the argument's type has it: -100 for AT_FDCWD.
    pub value: i128,
    /// The bits of a number that the name speaks of: those of the flag itself, those of the field that it is a value
    /// of, or all.
    pub mask: u64,
}

impl Constant {
    /// A flag, whose own bits are meant; where it is 0, the whole number.
    pub fn of_bits(bits: u64) -> Constant {
        Constant { value: bits.into(), mask: if bits == 0 { u64::MAX } else { bits } }
    }

    /// A whole number.
    pub fn whole(value: i32) -> Constant {
        Constant { value: value.into(), mask: u64::MAX }
    }
}
