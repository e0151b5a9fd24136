//! The kernel's type information (BTF): structs and their members, functions and their parameters.
//!
//! The format is that of Documentation/bpf/btf.rst and include/uapi/linux/btf.h, in the machine's own byte order. Any
//! bytes yield types or an error, never a panic.

#[cfg(any(feature = "bpf", test))]
mod excerpt;
#[cfg(any(feature = "bpf", test))]
pub mod function;
#[cfg(any(feature = "bpf", test))]
pub mod shape;
mod sources;
mod types;

#[cfg(any(feature = "bpf", test))]
pub use sources::VMLINUX;
pub use sources::{Blob, modules, of_a_module, of_the_kernel};
pub use types::{TypeKind, Types};

use rustc_hash::FxHashSet;

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// `struct btf_type`
const TYPE_BYTES: usize = 12;
/// `struct btf_member`
const MEMBER_BYTES: usize = 12;
/// `struct btf_param`
const PARAMETER_BYTES: usize = 8;
/// `BTF_INT_SIGNED`
const INT_SIGNED: u32 = 1;

/// BTF that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the type information is damaged: {0}")]
pub struct Damaged(&'static str);

/// `BTF_KIND_*`
mod kind {
    /// An integer, `bool` or `char`: a word with sign and width follows.
    pub const INT: u8 = 1;
    /// A pointer to another type.
    pub const PTR: u8 = 2;
    /// An array: the types of its elements and of its index, and the number of elements follow.
    pub const ARRAY: u8 = 3;
    /// A struct: its members follow.
    pub const STRUCT: u8 = 4;
    /// A union: its members follow.
    pub const UNION: u8 = 5;
    /// An enumeration whose values have at most 32 bits: names and values follow.
    pub const ENUM: u8 = 6;
    /// A struct or union that is declared and not defined.
    pub const FWD: u8 = 7;
    /// Another name of a type.
    pub const TYPEDEF: u8 = 8;
    /// A type with the qualifier `volatile`.
    pub const VOLATILE: u8 = 9;
    /// A type with the qualifier `const`.
    pub const CONST: u8 = 10;
    /// A pointer type with the qualifier `restrict`.
    pub const RESTRICT: u8 = 11;
    /// A function with a name, which refers to its prototype.
    pub const FUNC: u8 = 12;
    /// The prototype of functions: the type of the return value, and the parameters that follow.
    pub const FUNC_PROTO: u8 = 13;
    /// A global or static variable: its linkage follows.
    pub const VAR: u8 = 14;
    /// A section of an object file: its variables, with their offsets and sizes, follow.
    pub const DATASEC: u8 = 15;
    /// A floating-point number, of which only the size is known.
    pub const FLOAT: u8 = 16;
    /// A text that the source attaches to a declaration: the index of the member or parameter follows.
    pub const DECL_TAG: u8 = 17;
    /// A text that the source attaches to a type (`user`, `percpu`).
    pub const TYPE_TAG: u8 = 18;
    /// An enumeration whose values have up to 64 bits: names and values in two halves follow.
    pub const ENUM64: u8 = 19;
}

/// The kinds of types that can be looked up by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LookupKind {
    Struct = kind::STRUCT,
    Typedef = kind::TYPEDEF,
    Function = kind::FUNC,
}

const LOOKUP_KINDS: [LookupKind; 3] = [LookupKind::Struct, LookupKind::Typedef, LookupKind::Function];

/// The types of a BTF blob.
#[derive(Debug)]
pub struct Btf<'a> {
    strings: &'a [u8],
    types: &'a [u8],
    /// The offset of each type, by its ID. The first (0) is void.
    starts: Vec<u32>,
    /// The IDs of the types of each [`LookupKind`].
    by_kind: [Vec<u32>; LOOKUP_KINDS.len()],
}

/// A type: `struct btf_type` and the data behind it.
#[derive(Clone, Copy, Debug)]
struct Type<'a> {
    name: u32,
    info: u32,
    /// `size` or `type`, depending on the kind.
    word: u32,
    /// The data that follow, whose format depends on the kind.
    rest: &'a [u8],
}

impl<'a> Type<'a> {
    fn kind(&self) -> u8 {
        kind_of(self.info)
    }

    /// Whether an integer or an enum is signed.
    fn is_signed(&self) -> bool {
        match self.kind() {
            kind::INT => word(self.rest, 0) >> 24 & INT_SIGNED != 0,
            _ => self.info >> 31 == 1,
        }
    }

    /// Returns the members of a struct or union. Other types have none.
    fn members(&self) -> impl Iterator<Item = RawMember> + use<'a> {
        let is_one = matches!(self.kind(), kind::STRUCT | kind::UNION);
        let has_bit_fields = self.info >> 31 == 1;
        let rest = if is_one { self.rest } else { &[] };
        rest.chunks_exact(MEMBER_BYTES).map(move |member| {
            let place = word(member, 8);
            // If the struct has bit fields, the upper byte is the width of a bit field, 0 for other members.
            let (offset, width) = if has_bit_fields { (place & 0x00ff_ffff, (place >> 24) as u8) } else { (place, 0) };
            RawMember { name: word(member, 0), of: word(member, 4), offset, width: (width > 0).then_some(width) }
        })
    }

    /// Returns the parameters of a function prototype: the offset of the name and the ID of the type. Other types have
    /// none.
    fn parameters(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let rest = if self.kind() == kind::FUNC_PROTO { self.rest } else { &[] };
        rest.chunks_exact(PARAMETER_BYTES).map(|parameter| (word(parameter, 0), word(parameter, 4)))
    }
}

/// A member of a struct.
#[derive(Clone, Copy, Debug)]
struct RawMember {
    /// The offset of its name.
    name: u32,
    /// The ID of its type.
    of: u32,
    /// In bits from the struct's start.
    offset: u32,
    /// The width of a bit field in bits.
    width: Option<u8>,
}

fn kind_of(info: u32) -> u8 {
    (info >> 24 & 0x1f) as u8
}

/// Returns the number of bytes that follow a `struct btf_type`, or `None` for an unknown kind.
fn rest_bytes(info: u32) -> Option<usize> {
    let count = (info & 0xffff) as usize;
    Some(match kind_of(info) {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
        kind::ENUM | kind::FUNC_PROTO => 8 * count,
        // PTR, FWD, TYPEDEF, qualifiers, FUNC, FLOAT, TYPE_TAG
        2 | kind::FWD..=kind::FUNC | kind::FLOAT | kind::TYPE_TAG => 0,
        _ => return None,
    })
}

impl<'a> Btf<'a> {
    /// Parses a BTF blob.
    ///
    /// # Errors
    /// Fails if it is not BTF in this byte order, or truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Btf<'a>, Damaged> {
        if bytes.len() < HEADER_BYTES || u16::from_ne_bytes([bytes[0], bytes[1]]) != MAGIC {
            return Err(Damaged("it does not begin with BTF's magic number"));
        }
        let body = bytes.get(word(bytes, 4) as usize..).ok_or(Damaged("its header is longer than the data"))?;
        let section = |at: usize| {
            let (start, len) = (word(bytes, at) as usize, word(bytes, at + 4) as usize);
            body.get(start..start.checked_add(len)?)
        };
        let (types, strings) = section(8).zip(section(16)).ok_or(Damaged("a section is out of bounds"))?;
        let (mut starts, mut by_kind) = (vec![0], [const { Vec::new() }; LOOKUP_KINDS.len()]);
        let mut at = 0;
        while at < types.len() {
            let head = types.get(at..at + TYPE_BYTES).ok_or(Damaged("the last type is truncated"))?;
            let info = word(head, 4);
            if let Some(index) = LOOKUP_KINDS.iter().position(|kind| *kind as u8 == kind_of(info)) {
                by_kind[index].push(starts.len() as u32);
            }
            starts.push(at as u32);
            at += TYPE_BYTES + rest_bytes(info).ok_or(Damaged("it has a type of an unknown kind"))?;
        }
        if at > types.len() {
            return Err(Damaged("the last type is truncated"));
        }
        Ok(Btf { strings, types, starts, by_kind })
    }

    fn get(&self, id: u32) -> Option<Type<'a>> {
        let start = *self.starts.get(id as usize).filter(|_| id != 0)? as usize;
        let head = self.types.get(start..start + TYPE_BYTES)?;
        let info = word(head, 4);
        let rest = self.types.get(start + TYPE_BYTES..)?.get(..rest_bytes(info)?)?;
        Some(Type { name: word(head, 0), info, word: word(head, 8), rest })
    }

    fn string(&self, at: u32) -> &'a [u8] {
        let behind = self.strings.get(at as usize..).unwrap_or_default();
        &behind[..memchr::memchr(0, behind).unwrap_or(behind.len())]
    }

    /// Returns the IDs of all types of a kind, in ascending order.
    fn ids(&self, kind: LookupKind) -> impl Iterator<Item = u32> {
        LOOKUP_KINDS.iter().zip(&self.by_kind).filter(move |(of, _)| **of == kind).flat_map(|(_, ids)| ids).copied()
    }

    /// Returns the IDs of the types of a kind that have one of these names.
    pub fn named<'n>(&self, kind: LookupKind, names: &FxHashSet<&'n str>) -> Vec<(&'n str, u32)> {
        // Comparing the first four bytes is enough to reject most names.
        let beginnings: FxHashSet<[u8; 4]> = names.iter().map(|name| beginning(name.as_bytes())).collect();
        let of_kind = self.ids(kind).map(|id| (word(self.types, self.starts[id as usize] as usize), id));
        let behind = |at: u32| self.strings.get(at as usize..).unwrap_or_default();
        let candidates = of_kind.filter(|(name, _)| beginnings.contains(&beginning(behind(*name))));
        candidates.filter_map(|(name, id)| Some((*names.get(str::from_utf8(self.string(name)).ok()?)?, id))).collect()
    }
}

/// Returns the first four bytes of a name, filled up with zeros from its NUL on.
fn beginning(name: &[u8]) -> [u8; 4] {
    let first = name.first_chunk().copied().unwrap_or_else(|| {
        let mut short = [0; 4];
        short[..name.len()].copy_from_slice(name);
        short
    });
    match first {
        [0, ..] => [0; 4],
        [a, 0, ..] => [a, 0, 0, 0],
        [a, b, 0, _] => [a, b, 0, 0],
        whole => whole,
    }
}

/// Returns the word at an offset, or 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u32::from_ne_bytes)
}

#[cfg(test)]
mod tests;
