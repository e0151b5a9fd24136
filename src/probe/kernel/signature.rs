//! The arguments of the kernel's functions and tracepoints, by its type information.

use crate::kernel::btf::{Made, Sort, Types as Btf};
use crate::probe::grammar::Fetch;
use crate::probe::value::{Member, Place, Scope, Shape, Types};
use crate::text::near;
use anyhow::{anyhow, bail};

/// What a function takes and returns.
pub struct Signature<'t, 'a> {
    types: &'t Btf<'a>,
    name: String,
    returned: u32,
    /// Names, empty where there is none, and types.
    parameters: Vec<(String, u32)>,
}

/// How the functions are called that call those who listen to a tracepoint (`__DEFINE_TRACE_EXT` in linux/tracepoint.h).
pub const TRACEPOINT: &str = "__traceiter_";

/// Names of types of names of types: no deeper.
const DEPTH_MAX: usize = 32;

impl<'t, 'a> Signature<'t, 'a> {
    /// Of a function; `None` if there is no such one.
    pub fn of_function(name: &str, types: &'t Btf<'a>) -> Option<Signature<'t, 'a>> {
        let Made::Function { signature } = types.made(types.named(Sort::Function, name)?) else { return None };
        Signature::read(name, signature, 0, types)
    }

    /// Of a tracepoint: what its callers give it. The function that calls those who listen has the same arguments, with names.
    pub fn of_tracepoint(name: &str, types: &'t Btf<'a>) -> Option<Signature<'t, 'a>> {
        let Made::Function { signature } = types.made(types.named(Sort::Function, &format!("{TRACEPOINT}{name}"))?) else { return None };
        // The first is the data of who listens.
        Signature::read(name, signature, 1, types)
    }

    fn read(name: &str, signature: u32, passed_over: usize, types: &'t Btf<'a>) -> Option<Signature<'t, 'a>> {
        let (returned, parameters) = types.signature(signature)?;
        let parameters = parameters.into_iter().skip(passed_over);
        let parameters = parameters.map(|(name, of)| (String::from_utf8_lossy(name).into_owned(), of)).collect();
        Some(Signature { types, name: name.to_owned(), returned, parameters })
    }

    /// What the names of types stand for.
    fn bare(&self, mut id: u32) -> u32 {
        for _ in 0..DEPTH_MAX {
            match self.types.made(id) {
                Made::Alias { of } | Made::Tag { of } => id = of,
                _ => break,
            }
        }
        id
    }

    /// The same, and where a struct is only declared, its definition.
    fn defined(&self, id: u32) -> u32 {
        let bare = self.bare(id);
        match self.types.made(bare) {
            Made::Forward => {
                str::from_utf8(self.types.name(bare)).ok().and_then(|name| self.types.named(Sort::Struct, name)).unwrap_or(bare)
            }
            _ => bare,
        }
    }

    /// What it points to is user memory, as the kernel's sources mark it.
    fn is_user(&self, mut to: u32) -> bool {
        for _ in 0..DEPTH_MAX {
            match self.types.made(to) {
                Made::Tag { .. } if self.types.name(to) == b"user" => return true,
                Made::Alias { of } | Made::Tag { of } => to = of,
                _ => break,
            }
        }
        false
    }

    fn called(&self, keyword: &str, id: u32) -> String {
        match self.types.name(id) {
            b"" => format!("a {keyword} without a name"),
            name => format!("{keyword} {}", String::from_utf8_lossy(name)),
        }
    }

    fn list(&self) -> String {
        match self.parameters.len() {
            0 => "it has none".to_owned(),
            _ => format!("it has {}", self.parameters.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Types for Signature<'_, '_> {
    type Id = u32;

    fn shape(&self, id: u32) -> Shape<u32> {
        let id = self.defined(id);
        match self.types.made(id) {
            Made::Integer { bytes, is_signed } => Shape::Number { bytes, is_signed, is_character: self.types.name(id) == b"char" },
            Made::Enumeration { bytes, is_signed } => Shape::Number { bytes, is_signed, is_character: false },
            Made::Float { bytes } => Shape::Float { bytes },
            Made::Pointer { to } => {
                let is_nothing = self.types.made(self.bare(to)) == Made::Nothing;
                Shape::Pointer { to: (!is_nothing).then_some(to), user: self.is_user(to) }
            }
            Made::Array { of, count } => Shape::Array { of, count: Some(count.into()) },
            Made::Struct { bytes } => Shape::Aggregate { name: self.called("struct", id), bytes: Some(bytes.into()) },
            Made::Union { bytes } => Shape::Aggregate { name: self.called("union", id), bytes: Some(bytes.into()) },
            Made::Forward => Shape::Aggregate { name: self.called("struct", id), bytes: None },
            Made::Function { .. } | Made::Signature => Shape::Other("a function"),
            Made::Alias { .. } | Made::Tag { .. } | Made::Nothing => Shape::Other("nothing"),
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
    fn variable(&self, name: &str) -> anyhow::Result<(Place, u32)> {
        let Some(number) = self.parameters.iter().position(|(known, _)| known == name) else {
            let named = self.parameters.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty());
            let near = near::nearest(name, named, 2);
            let hint = if near.is_empty() { format!("; {}", self.list()) } else { near::hint(&near) };
            bail!("{} has no argument {}{hint}", self.name.escape_debug(), name.escape_debug());
        };
        // Each takes one register, or one place on the stack, but for those that do not.
        for (before, of) in &self.parameters[..=number] {
            if !matches!(self.shape(*of), Shape::Number { bytes: 1..=8, .. } | Shape::Pointer { .. }) {
                bail!(
                    "the argument {} of {} cannot be located, for {} is neither a number nor a pointer; fetch registers instead",
                    name.escape_debug(),
                    self.name.escape_debug(),
                    before.escape_debug()
                );
            }
        }
        Ok((Place::Value(Fetch::Argument(number as u32 + 1)), self.parameters[number].1))
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
        Some(self.returned).filter(|of| self.types.made(self.bare(*of)) != Made::Nothing)
    }

    fn data(&self, svma: u64) -> anyhow::Result<Fetch> {
        bail!("the kernel's data at {svma:#x} is not described")
    }
}
