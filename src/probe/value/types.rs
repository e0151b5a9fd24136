//! What is asked of type information.

/// Descriptions of types.
pub trait Types {
    /// A type's number.
    type Id: Copy;

    /// What a type is made of; names of types and qualifiers are seen through.
    fn shape(&self, id: Self::Id) -> Shape<Self::Id>;

    /// Of a struct or union, in its order; none of anything else.
    fn members(&self, id: Self::Id) -> Vec<Member<Self::Id>>;

    /// 8, or 4 in a 32-bit program.
    fn pointer_bytes(&self) -> u8;

    /// In bytes; `None` if it is not known.
    fn size(&self, id: Self::Id) -> Option<u64> {
        // Arrays of arrays: a damaged file could have one of itself.
        const DEPTH_MAX: usize = 16;
        let (mut id, mut count) = (id, 1u64);
        for _ in 0..DEPTH_MAX {
            let bytes: u64 = match self.shape(id) {
                Shape::Number { bytes, .. } | Shape::Float { bytes } => bytes.into(),
                Shape::Pointer { .. } => self.pointer_bytes().into(),
                Shape::Aggregate { bytes, .. } => bytes?,
                Shape::Other(_) => return None,
                Shape::Array { of, count: elements } => {
                    (id, count) = (of, count.checked_mul(elements?)?);
                    continue;
                }
            };
            return bytes.checked_mul(count);
        }
        None
    }
}

/// What a type is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape<Id> {
    /// Integers, enumerations, characters, truth values.
    Number {
        bytes: u8,
        is_signed: bool,
        is_character: bool,
    },
    Float {
        bytes: u8,
    },
    /// `user`: into user memory, as the kernel's own types know it. What it points to may be nothing that is known (`void *`).
    Pointer {
        to: Option<Id>,
        user: bool,
    },
    Array {
        of: Id,
        count: Option<u64>,
    },
    /// A struct, union or class.
    Aggregate {
        /// For sentences: `struct file`, `a union without a name`.
        name: String,
        bytes: Option<u64>,
    },
    /// What no fetch argument can be, as words for a sentence.
    Other(&'static str),
}

/// A member of a struct or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<Id> {
    /// Those without are structs whose members count as the outer one's.
    pub name: Option<String>,
    /// In bits from the beginning.
    pub offset: u64,
    /// Of a bit field: its width.
    pub width: Option<u8>,
    pub of: Id,
}

/// Bits of what is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    pub width: u8,
    /// From the least significant one.
    pub offset: u8,
    /// How many are read: 8, 16, 32 or 64.
    pub container: u8,
}
