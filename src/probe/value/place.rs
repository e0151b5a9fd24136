//! Where a value is, as far as fetch arguments have words for it.

use crate::probe::grammar::Fetch;

/// A value's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The fetch argument is the value.
    Value(Fetch),
    Constant(i64),
    /// The value is so many bytes from a base.
    Memory {
        base: Base,
        offset: i64,
    },
    /// The value *is* the address so many bytes from a base, which the kernel cannot compute by itself, but can look behind.
    Address {
        base: Base,
        offset: i64,
    },
}

/// What a place in memory is counted from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// What is fetched. `user`: it points into user memory, from the kernel.
    Of { fetch: Fetch, user: bool },
    /// The addresses that the probed file states: data of its own.
    Image,
}

impl Base {
    pub fn register(name: &str) -> Base {
        Base::Of { fetch: Fetch::Register(name.to_owned()), user: false }
    }
}

impl Place {
    /// So many bytes on, in what is there. `None` for what is no memory.
    pub fn moved(self, bytes: i64) -> Option<Place> {
        match self {
            Place::Memory { base, offset } => Some(Place::Memory { base, offset: offset.checked_add(bytes)? }),
            _ => None,
        }
    }
}
