//! The arguments of the kernel's functions and tracepoints, by BTF.

use crate::kernel::btf::{LookupKind, TypeKind, Types as Btf};
use crate::probe::grammar::Fetch;
use crate::probe::value::{Member, Scope, Shape, Types, ValueLocation};
use crate::text::near;
use anyhow::{anyhow, bail};

/// The parameters and the return type of a function.
pub struct Signature<'t, 'a> {
    types: &'t Btf<'a>,
    name: String,
    returned: u32,
    /// The names of the parameters (empty if they have none) and their types.
    parameters: Vec<(String, u32)>,
}

/// The prefix of the functions that call a tracepoint's probes (`__DEFINE_TRACE_EXT` in linux/tracepoint.h).
/// linux/tracepoint.h).
pub const TRACEPOINT: &str = "__traceiter_";

/// The maximum length of a chain of typedefs and qualifiers.
const DEPTH_MAX: usize = 32;

impl<'t, 'a> Signature<'t, 'a> {
    /// Reads the signature of a function; returns `None` if there is no such function.
    pub fn of_function(name: &str, types: &'t Btf<'a>) -> Option<Signature<'t, 'a>> {
        let TypeKind::Function { signature } = types.type_kind(types.named(LookupKind::Function, name)?) else { return None };
        Signature::read(name, signature, 0, types)
    }

    /// Reads the arguments of a tracepoint. The function that calls its probes has the same arguments, with names.
    /// names.
    pub fn of_tracepoint(name: &str, types: &'t Btf<'a>) -> Option<Signature<'t, 'a>> {
        let TypeKind::Function { signature } = types.type_kind(types.named(LookupKind::Function, &format!("{TRACEPOINT}{name}"))?) else {
            return None;
        };
        // The first parameter is the private data of the tracepoint's probe.
        Signature::read(name, signature, 1, types)
    }

    fn read(name: &str, signature: u32, skipped: usize, types: &'t Btf<'a>) -> Option<Signature<'t, 'a>> {
        let (returned, parameters) = types.signature(signature)?;
        let parameters = parameters.into_iter().skip(skipped);
        let parameters = parameters.map(|(name, of)| (String::from_utf8_lossy(name).into_owned(), of)).collect();
        Some(Signature { types, name: name.to_owned(), returned, parameters })
    }

    /// Returns the type behind typedefs and qualifiers.
    fn bare(&self, mut id: u32) -> u32 {
        for _ in 0..DEPTH_MAX {
            match self.types.type_kind(id) {
                TypeKind::Alias { of } | TypeKind::Tag { of } => id = of,
                _ => break,
            }
        }
        id
    }

    /// Returns the type behind typedefs and qualifiers, and the definition of a struct that is only declared.
    fn defined(&self, id: u32) -> u32 {
        let bare = self.bare(id);
        match self.types.type_kind(bare) {
            TypeKind::Forward => {
                str::from_utf8(self.types.name(bare)).ok().and_then(|name| self.types.named(LookupKind::Struct, name)).unwrap_or(bare)
            }
            _ => bare,
        }
    }

    /// Returns whether a pointer to this type points to user memory, which the kernel's sources mark by `__user`.
    fn is_user(&self, mut to: u32) -> bool {
        for _ in 0..DEPTH_MAX {
            match self.types.type_kind(to) {
                TypeKind::Tag { .. } if self.types.name(to) == b"user" => return true,
                TypeKind::Alias { of } | TypeKind::Tag { of } => to = of,
                _ => break,
            }
        }
        false
    }

    fn type_name(&self, keyword: &str, id: u32) -> String {
        match self.types.name(id) {
            b"" => format!("a {keyword} without a name"),
            name => format!("{keyword} {}", String::from_utf8_lossy(name)),
        }
    }

    fn argument_list(&self) -> String {
        match self.parameters.len() {
            0 => "it has no arguments".to_owned(),
            _ => format!("its arguments are {}", self.parameters.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Types for Signature<'_, '_> {
    type Id = u32;

    fn shape(&self, id: u32) -> Shape<u32> {
        let id = self.defined(id);
        match self.types.type_kind(id) {
            TypeKind::Integer { bytes, is_signed } => Shape::Number { bytes, is_signed, is_character: self.types.name(id) == b"char" },
            TypeKind::Enumeration { bytes, is_signed } => Shape::Number { bytes, is_signed, is_character: false },
            TypeKind::Float { bytes } => Shape::Float { bytes },
            TypeKind::Pointer { to } => {
                let is_nothing = self.types.type_kind(self.bare(to)) == TypeKind::Nothing;
                Shape::Pointer { to: (!is_nothing).then_some(to), user: self.is_user(to) }
            }
            TypeKind::Array { of, count } => Shape::Array { of, count: Some(count.into()) },
            TypeKind::Struct { bytes } => Shape::Aggregate { name: self.type_name("struct", id), bytes: Some(bytes.into()) },
            TypeKind::Union { bytes } => Shape::Aggregate { name: self.type_name("union", id), bytes: Some(bytes.into()) },
            TypeKind::Forward => Shape::Aggregate { name: self.type_name("struct", id), bytes: None },
            TypeKind::Function { .. } | TypeKind::Signature => Shape::Other("a function"),
            TypeKind::Alias { .. } | TypeKind::Tag { .. } | TypeKind::Nothing => Shape::Other("nothing"),
        }
    }

    fn members(&self, id: u32) -> Vec<Member<u32>> {
        let named = |name: &[u8]| (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
        let members = self.types.members(self.defined(id)).into_iter();
        members
            .map(|member| Member { name: named(member.name), offset: member.offset.into(), width: member.width, of: member.of })
            .collect()
    }

    fn pointer_bytes(&self) -> u8 {
        size_of::<usize>() as u8
    }
}

impl Scope for Signature<'_, '_> {
    fn variable(&self, name: &str) -> anyhow::Result<(ValueLocation, u32)> {
        let Some(number) = self.parameters.iter().position(|(known, _)| known == name) else {
            let named = self.parameters.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty());
            let near = near::nearest(name, named, 2);
            let hint = if near.is_empty() { format!("; {}", self.argument_list()) } else { near::hint(&near) };
            bail!("{} has no argument {}{hint}", self.name.escape_debug(), name.escape_debug());
        };
        // $argN assumes that each argument takes one register or one word on the stack, which holds for numbers and
        // pointers only.
        for (before, of) in &self.parameters[..=number] {
            if !matches!(self.shape(*of), Shape::Number { bytes: 1..=8, .. } | Shape::Pointer { .. }) {
                bail!(
                    "the argument {} of {} cannot be located, because {} is neither a number nor a pointer; fetch registers instead",
                    name.escape_debug(),
                    self.name.escape_debug(),
                    before.escape_debug()
                );
            }
        }
        Ok((ValueLocation::Value(Fetch::Argument(number as u32 + 1)), self.parameters[number].1))
    }

    fn arguments(&self) -> anyhow::Result<Vec<String>> {
        let named = self.parameters.iter().filter(|(name, of)| !(name.is_empty() && *of == 0)).map(|(name, _)| name.clone());
        let names: Vec<String> = named.collect();
        match names.iter().any(String::is_empty) {
            true => Err(anyhow!("not all arguments of {} have names; fetch them by $arg1, $arg2", self.name.escape_debug())),
            false => Ok(names),
        }
    }

    fn returned(&self) -> Option<u32> {
        Some(self.returned).filter(|of| self.types.type_kind(self.bare(*of)) != TypeKind::Nothing)
    }

    fn data(&self, svma: u64) -> anyhow::Result<Fetch> {
        bail!("BTF does not describe the kernel's data at {svma:#x}")
    }
}
