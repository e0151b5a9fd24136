//! Where a value is, as far as fetch arguments can express it.

use crate::probe::grammar::Fetch;

/// The location of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueLocation {
    /// The fetch argument yields the value itself, as for a register.
    Value(Fetch),
    Constant(i64),
    /// The value is in memory, `offset` bytes behind a base.
    Memory {
        base: LocationBase,
        offset: i64,
    },
    /// The value is the address `offset` bytes behind a base (`DW_OP_stack_value`). A fetch argument cannot compute
    /// that address, but it can read the memory there.
    Address {
        base: LocationBase,
        offset: i64,
    },
}

/// The address from which a location in memory is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocationBase {
    /// The address that a fetch argument yields. `user`: it is the address of user memory, in a probe of the kernel.
    Of { fetch: Fetch, user: bool },
    /// Address 0 of the probed file: the offset is an address that its headers and symbols state, of static data.
    Image,
}

impl LocationBase {
    /// Returns the base that is the value of a register. `name` is the kernel's name of it, without `%`.
    pub fn register(name: &str) -> LocationBase {
        LocationBase::Of { fetch: Fetch::Register(name.to_owned()), user: false }
    }
}

impl ValueLocation {
    /// Returns the location `bytes` bytes further in memory; `None` if the value is not in memory.
    pub fn moved(self, bytes: i64) -> Option<ValueLocation> {
        match self {
            ValueLocation::Memory { base, offset } => Some(ValueLocation::Memory { base, offset: offset.checked_add(bytes)? }),
            _ => None,
        }
    }
}
