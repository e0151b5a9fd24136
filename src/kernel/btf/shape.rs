//! The shapes of types, without typedefs and qualifiers: numbers, pointers, arrays, structs.

use super::{Btf, RawMember, Type, kind, word};

/// The greatest length of a chain of typedefs and qualifiers. No kernel's is as long.
const NAMES_MAX: usize = 32;

/// A type without its qualifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaped {
    /// The name of the outermost typedef.
    pub alias: Option<String>,
    /// The shape of the type behind all typedefs and qualifiers.
    pub shape: Shape,
}

/// The shape of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Number {
        name: String,
        bytes: u32,
        signed: bool,
    },
    /// A pointer to the type with this ID.
    Pointer(u32),
    Array {
        element: u32,
        count: u32,
    },
    Struct {
        bytes: u32,
        members: Vec<Member>,
    },
    Union {
        bytes: u32,
    },
    Enum {
        name: String,
        bytes: u32,
        signed: bool,
        /// Values and names. A negative value of a signed enum is extended to 64 bits.
        values: Vec<(u64, String)>,
    },
    /// A type without values: a function, void, a declaration without a definition.
    Other,
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name; empty for an anonymous struct or union, whose members are accessed like the outer struct's.
    pub name: String,
    /// The ID of its type.
    pub of: u32,
    /// In bytes from the struct's start; `None` for a bit field.
    pub offset: Option<u32>,
}

impl Btf<'_> {
    /// Returns the shape of a type. It is [`Shape::Other`] if there is no type with this ID.
    pub fn shape(&self, id: u32) -> Shaped {
        let (mut id, mut alias) = (id, None);
        for _ in 0..NAMES_MAX {
            let Some(of) = self.get(id) else { break };
            match of.kind() {
                kind::TYPEDEF => alias = alias.or_else(|| Some(self.text(of.name))),
                kind::CONST | kind::VOLATILE | kind::RESTRICT | kind::TYPE_TAG => {}
                _ => return Shaped { alias, shape: self.plain(&of) },
            }
            id = of.word;
        }
        Shaped { alias, shape: Shape::Other }
    }

    fn plain(&self, of: &Type) -> Shape {
        let (name, bytes, signed) = (|| self.text(of.name), of.word, of.is_signed());
        match of.kind() {
            kind::INT => Shape::Number { name: name(), bytes, signed },
            kind::PTR => Shape::Pointer(of.word),
            kind::ARRAY => Shape::Array { element: word(of.rest, 0), count: word(of.rest, 8) },
            kind::STRUCT => Shape::Struct { bytes, members: self.members_of(of) },
            kind::UNION => Shape::Union { bytes },
            kind::ENUM => {
                let number = |raw: u32| if signed { i64::from(raw.cast_signed()).cast_unsigned() } else { u64::from(raw) };
                let value = |one: &[u8]| (number(word(one, 4)), self.text(word(one, 0)));
                Shape::Enum { name: name(), bytes, signed, values: of.rest.chunks_exact(8).map(value).collect() }
            }
            kind::ENUM64 => {
                let value = |one: &[u8]| (u64::from(word(one, 4)) | u64::from(word(one, 8)) << 32, self.text(word(one, 0)));
                Shape::Enum { name: name(), bytes, signed, values: of.rest.chunks_exact(12).map(value).collect() }
            }
            _ => Shape::Other,
        }
    }

    fn members_of(&self, of: &Type) -> Vec<Member> {
        let member =
            |RawMember { name, of, offset, width }| Member { name: self.text(name), of, offset: width.is_none().then_some(offset / 8) };
        of.members().map(member).collect()
    }

    /// Returns the type of a global variable by its name.
    pub fn variable(&self, name: &str) -> Option<u32> {
        let all = (1..self.starts.len() as u32).filter_map(|id| self.get(id));
        all.into_iter().find(|of| of.kind() == kind::VAR && self.string(of.name) == name.as_bytes()).map(|of| of.word)
    }

    /// Returns the size in bytes of a value of a type, or `None` if the type has no values.
    pub fn size(&self, id: u32) -> Option<u32> {
        let mut count = 1u32;
        let mut id = id;
        for _ in 0..NAMES_MAX {
            return match self.shape(id).shape {
                Shape::Number { bytes, .. } | Shape::Struct { bytes, .. } | Shape::Union { bytes } | Shape::Enum { bytes, .. } => {
                    bytes.checked_mul(count)
                }
                Shape::Pointer(_) => count.checked_mul(8),
                Shape::Array { element, count: more } => {
                    (count, id) = (count.checked_mul(more)?, element);
                    continue;
                }
                Shape::Other => None,
            };
        }
        None
    }

    pub(super) fn text(&self, at: u32) -> String {
        String::from_utf8_lossy(self.string(at)).into_owned()
    }
}
