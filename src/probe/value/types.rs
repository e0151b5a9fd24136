//! The interface to type information (DWARF or BTF).

/// A source of type descriptions.
pub trait Types {
    /// Identifies a type.
    type Id: Copy;

    /// Returns the structure of a type, with typedefs and qualifiers resolved.
    fn shape(&self, id: Self::Id) -> Shape<Self::Id>;

    /// Returns the members of a struct or union in order; no members for other types.
    fn members(&self, id: Self::Id) -> Vec<Member<Self::Id>>;

    /// Returns the size of a pointer: 8, or 4 in a 32-bit program.
    fn pointer_bytes(&self) -> u8;

    /// Returns the size of a type in bytes; `None` if it is not known.
    fn size(&self, id: Self::Id) -> Option<u64> {
        // The depth of nested arrays is limited because in a damaged file an array could contain itself.
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

/// The structure of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape<Id> {
    /// Integers, enumerations, characters, booleans.
    Number {
        bytes: u8,
        is_signed: bool,
        is_character: bool,
    },
    Float {
        bytes: u8,
    },
    /// `user`: it points to user memory, which only the kernel's own types mark (`__user`). `to` is `None` if the type
    /// behind it is not known (`void *`).
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
        /// The name for messages: `struct file`, `a union without a name`.
        name: String,
        bytes: Option<u64>,
    },
    /// A type that cannot be fetched, as words for a message.
    Other(&'static str),
}

/// A member of a struct or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<Id> {
    /// `None`: an anonymous struct or union, whose members are accessed as those of the outer type.
    pub name: Option<String>,
    /// The offset in bits from the beginning of the struct.
    pub offset: u64,
    /// The width in bits, if it is a bit field.
    pub width: Option<u8>,
    /// The type of the member, by which its own members are found.
    pub of: Id,
}

/// A bit field within the bytes at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The number of bits that the field has.
    pub width: u8,
    /// The distance in bits from the least significant bit.
    pub offset: u8,
    /// The number of bits that are read: 8, 16, 32 or 64.
    pub container: u8,
}
