//! The types of the kernel, or of a module and the kernel.
//!
//! A module's BTF is split BTF: its type IDs and string offsets continue the kernel's.

use super::{Btf, LookupKind, RawMember, Type, kind, word};
use rustc_hash::FxHashSet;

/// The kernel's types, or a module's and the kernel's.
#[derive(Debug)]
pub struct Types<'a> {
    kernel: Btf<'a>,
    module: Option<Btf<'a>>,
}

/// A type's kind (`BTF_KIND_*`), and what it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    Integer {
        bytes: u8,
        is_signed: bool,
    },
    Pointer {
        to: u32,
    },
    Array {
        of: u32,
        count: u32,
    },
    Struct {
        bytes: u32,
    },
    Union {
        bytes: u32,
    },
    /// A struct or union that is declared but not defined.
    Forward,
    Enumeration {
        bytes: u8,
        is_signed: bool,
    },
    Float {
        bytes: u8,
    },
    /// A typedef or qualifier of another type.
    Alias {
        of: u32,
    },
    /// A `BTF_KIND_TYPE_TAG` (`user`) on the type that a pointer points to.
    Tag {
        of: u32,
    },
    Function {
        signature: u32,
    },
    Signature,
    /// `void`, a variable, or an unknown kind.
    Nothing,
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The name; empty for an anonymous struct or union.
    pub name: &'a [u8],
    /// In bits from the struct's start.
    pub offset: u32,
    /// The width of a bit field in bits.
    pub width: Option<u8>,
    /// The ID of its type.
    pub of: u32,
}

/// A parameter of a function: its name, empty if it has none, and the ID of its type.
pub type Parameter<'a> = (&'a [u8], u32);

impl<'a> Types<'a> {
    /// Creates the types of the kernel alone.
    pub fn of_kernel(kernel: Btf<'a>) -> Types<'a> {
        Types { kernel, module: None }
    }

    /// Creates the types of a module together with the kernel's, which the module's types refer to.
    pub fn of_module(kernel: Btf<'a>, module: Btf<'a>) -> Types<'a> {
        Types { kernel, module: Some(module) }
    }

    /// Returns the type with an ID.
    fn get(&self, id: u32) -> Option<Type<'a>> {
        // The length counts void, the kernel's type 0, which a module does not have again.
        let own = self.kernel.starts.len() as u32;
        match &self.module {
            Some(module) if id >= own => module.get(id - own + 1),
            _ => self.kernel.get(id),
        }
    }

    fn string(&self, at: u32) -> &'a [u8] {
        let own = self.kernel.strings.len() as u32;
        match &self.module {
            Some(module) if at >= own => module.string(at - own),
            _ => self.kernel.string(at),
        }
    }

    /// Returns the ID of the type with a kind and name. The module's types take precedence.
    pub fn named(&self, kind: LookupKind, name: &str) -> Option<u32> {
        let names = FxHashSet::from_iter([name]);
        let own = self.kernel.starts.len() as u32;
        let in_module = self.module.as_ref().and_then(|module| {
            let mut ids = module.ids(kind).map(|id| id + own - 1);
            ids.find(|id| self.name(*id) == name.as_bytes())
        });
        in_module.or_else(|| self.kernel.named(kind, &names).first().map(|(_, id)| *id))
    }

    /// Returns the names of all types of a kind.
    pub fn names(&self, kind: LookupKind) -> impl Iterator<Item = &'a [u8]> {
        let own = self.kernel.starts.len() as u32;
        let of_module = self.module.iter().flat_map(move |module| module.ids(kind)).map(move |id| id + own - 1);
        self.kernel.ids(kind).chain(of_module).map(|id| self.name(id))
    }

    /// Returns the name of a type. It is empty if the type has none.
    pub fn name(&self, id: u32) -> &'a [u8] {
        self.get(id).map_or(&[], |of| self.string(of.name))
    }

    /// Returns the kind of a type.
    pub fn type_kind(&self, id: u32) -> TypeKind {
        let Some(of) = self.get(id) else { return TypeKind::Nothing };
        let bytes = u8::try_from(of.word).unwrap_or(u8::MAX);
        match of.kind() {
            kind::INT => TypeKind::Integer { bytes, is_signed: of.is_signed() },
            kind::PTR => TypeKind::Pointer { to: of.word },
            kind::ARRAY => TypeKind::Array { of: word(of.rest, 0), count: word(of.rest, 8) },
            kind::STRUCT => TypeKind::Struct { bytes: of.word },
            kind::UNION => TypeKind::Union { bytes: of.word },
            kind::FWD => TypeKind::Forward,
            kind::ENUM | kind::ENUM64 => TypeKind::Enumeration { bytes, is_signed: of.is_signed() },
            kind::FLOAT => TypeKind::Float { bytes },
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT => TypeKind::Alias { of: of.word },
            kind::TYPE_TAG => TypeKind::Tag { of: of.word },
            kind::FUNC => TypeKind::Function { signature: of.word },
            kind::FUNC_PROTO => TypeKind::Signature,
            _ => TypeKind::Nothing,
        }
    }

    /// Returns the members of a struct or union.
    pub fn members(&self, id: u32) -> Vec<Member<'a>> {
        let members = self.get(id).into_iter().flat_map(|of| of.members());
        members.map(|RawMember { name, of, offset, width }| Member { name: self.string(name), offset, width, of }).collect()
    }

    /// Returns the type of a function prototype's return value, and its parameters. A last parameter of type 0 stands
    /// for `...`.
    pub fn signature(&self, id: u32) -> Option<(u32, Vec<Parameter<'a>>)> {
        let of = self.get(id).filter(|of| of.kind() == kind::FUNC_PROTO)?;
        Some((of.word, of.parameters().map(|(name, of)| (self.string(name), of)).collect()))
    }
}
