//! What types are made of: functions and their parameters, structs and their members.
//!
//! A module's types stand on the kernel's: they are numbered on from its, and so are its strings.

use super::{Btf, RawMember, Sort, Type, kind, word};
use rustc_hash::FxHashSet;

/// The kernel's types, or a module's and the kernel's.
#[derive(Debug)]
pub struct Types<'a> {
    kernel: Btf<'a>,
    module: Option<Btf<'a>>,
}

/// What a type is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
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
    /// Declared only.
    Forward,
    Enumeration {
        bytes: u8,
        is_signed: bool,
    },
    Float {
        bytes: u8,
    },
    /// The name of another.
    Alias {
        of: u32,
    },
    /// `tag`: a mark on what is pointed to (`user`).
    Tag {
        of: u32,
    },
    Function {
        signature: u32,
    },
    Signature,
    /// `void`, and what is no type of data.
    Nothing,
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Empty for a struct or union without a name.
    pub name: &'a [u8],
    /// In bits from the beginning.
    pub offset: u32,
    /// Of a bit field.
    pub width: Option<u8>,
    pub of: u32,
}

/// Of a function: its name, empty where it has none, and its type.
pub type Parameter<'a> = (&'a [u8], u32);

impl<'a> Types<'a> {
    pub fn of_kernel(kernel: Btf<'a>) -> Types<'a> {
        Types { kernel, module: None }
    }

    pub fn of_module(kernel: Btf<'a>, module: Btf<'a>) -> Types<'a> {
        Types { kernel, module: Some(module) }
    }

    /// The type with this number.
    fn get(&self, id: u32) -> Option<Type<'a>> {
        // The first of the kernel's is void.
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

    /// What is of this sort and has the name: the module's first.
    pub fn named(&self, sort: Sort, name: &str) -> Option<u32> {
        let names = FxHashSet::from_iter([name]);
        let own = self.kernel.starts.len() as u32;
        let in_module = self.module.as_ref().and_then(|module| {
            let mut ids = module.ids(sort).map(|id| id + own - 1);
            ids.find(|id| self.name(*id) == name.as_bytes())
        });
        in_module.or_else(|| self.kernel.named(sort, &names).first().map(|(_, id)| *id))
    }

    /// Every name of this sort.
    pub fn names(&self, sort: Sort) -> impl Iterator<Item = &'a [u8]> {
        let own = self.kernel.starts.len() as u32;
        let of_module = self.module.iter().flat_map(move |module| module.ids(sort)).map(move |id| id + own - 1);
        self.kernel.ids(sort).chain(of_module).map(|id| self.name(id))
    }

    /// Empty where it has none.
    pub fn name(&self, id: u32) -> &'a [u8] {
        self.get(id).map_or(&[], |of| self.string(of.name))
    }

    pub fn made(&self, id: u32) -> Made {
        let Some(of) = self.get(id) else { return Made::Nothing };
        let bytes = u8::try_from(of.word).unwrap_or(u8::MAX);
        match of.kind() {
            kind::INT => Made::Integer { bytes, is_signed: of.is_signed() },
            kind::PTR => Made::Pointer { to: of.word },
            kind::ARRAY => Made::Array { of: word(of.rest, 0), count: word(of.rest, 8) },
            kind::STRUCT => Made::Struct { bytes: of.word },
            kind::UNION => Made::Union { bytes: of.word },
            kind::FWD => Made::Forward,
            kind::ENUM | kind::ENUM64 => Made::Enumeration { bytes, is_signed: of.is_signed() },
            kind::FLOAT => Made::Float { bytes },
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT => Made::Alias { of: of.word },
            kind::TYPE_TAG => Made::Tag { of: of.word },
            kind::FUNC => Made::Function { signature: of.word },
            kind::FUNC_PROTO => Made::Signature,
            _ => Made::Nothing,
        }
    }

    /// Of a struct or union.
    pub fn members(&self, id: u32) -> Vec<Member<'a>> {
        let members = self.get(id).into_iter().flat_map(|of| of.members());
        members.map(|RawMember { name, of, offset, width }| Member { name: self.string(name), offset, width, of }).collect()
    }

    /// What a function's signature returns, and its parameters; a last one without a type stands for any more.
    pub fn signature(&self, id: u32) -> Option<(u32, Vec<Parameter<'a>>)> {
        let of = self.get(id).filter(|of| of.kind() == kind::FUNC_PROTO)?;
        Some((of.word, of.parameters().map(|(name, of)| (self.string(name), of)).collect()))
    }
}
