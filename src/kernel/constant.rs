//! The number that the name of a constant stands for, in the kernel's headers or in the print format of an event.

/// The number of a named constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// The number in the argument's type: -100 for AT_FDCWD.
    pub value: i128,
    /// The bits of a number that the name refers to: those of the flag itself, those of the bit field that it is a
    /// value of, or all.
    pub mask: u64,
}

impl Constant {
    /// Creates the constant of a flag, which refers to its own bits, or to the whole number if it is 0.
    pub fn of_bits(bits: u64) -> Constant {
        Constant { value: bits.into(), mask: if bits == 0 { u64::MAX } else { bits } }
    }

    /// Creates a constant that refers to the whole number.
    pub fn whole(value: i32) -> Constant {
        Constant { value: value.into(), mask: u64::MAX }
    }
}
