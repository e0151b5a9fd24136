//! The parameters of the kernel's functions.

use super::shape::{Shape, Shaped};
use super::{Btf, kind};

/// The greatest length of a chain of typedefs, pointers and qualifiers. No kernel's is as long.
const NAMES_MAX: u32 = 32;

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name, empty if the kernel's source has none.
    pub name: String,
    /// The type in C. All pointers are `void *`.
    pub type_name: String,
    /// The size of the value in bytes; 8 for pointers, and for types that are not numbers.
    pub bytes: u8,
    /// Whether the value is a signed number; false for pointers, and for types that are not numbers.
    pub signed: bool,
}

impl Btf<'_> {
    /// Returns the parameters of a function, and its return value unless that is void. The type may also be a typedef
    /// of a pointer to a function, such as `btf_trace_NAME`. Returns `None` for other types.
    pub fn parameters(&self, id: u32) -> Option<(Vec<Parameter>, Option<Parameter>)> {
        let prototype = (0..NAMES_MAX).try_fold(id, |id, _| match self.get(id)? {
            of if of.kind() == kind::FUNC_PROTO => Some(id),
            of if matches!(of.kind(), kind::FUNC | kind::TYPEDEF | kind::PTR | kind::CONST) => Some(of.word),
            _ => None,
        });
        let of = self.get(prototype?).filter(|of| of.kind() == kind::FUNC_PROTO)?;
        let parameters = of.parameters().map(|(name, of)| self.parameter(name, of));
        Some((parameters.collect(), (of.word != 0).then(|| self.parameter(0, of.word))))
    }

    fn parameter(&self, name: u32, of: u32) -> Parameter {
        let Shaped { alias, shape } = self.shape(of);
        let (own, bytes, signed) = match shape {
            Shape::Number { name, bytes, signed } => (name, bytes, signed),
            Shape::Enum { name, bytes, signed, .. } => (format!("enum {name}"), bytes, signed),
            Shape::Pointer(_) => return Parameter { name: self.text(name), type_name: "void *".to_owned(), bytes: 8, signed: false },
            _ => ("u64".to_owned(), 8, false),
        };
        Parameter { name: self.text(name), type_name: alias.unwrap_or(own), bytes: bytes as u8, signed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LookupKind, of_the_kernel};
    use super::*;
    use rustc_hash::FxHashSet;

    #[test]
    fn parameters_of_functions_of_this_kernel_are_read() {
        let Ok(blob) = of_the_kernel() else {
            eprintln!("SKIPPED: this kernel has no BTF; nothing was tested");
            return;
        };
        let btf = Btf::parse(&blob).unwrap();
        let of = |kind, name| {
            let (_, id) = btf.named(kind, &FxHashSet::from_iter([name]))[0];
            btf.parameters(id).unwrap()
        };
        let (parameters, returned) = of(LookupKind::Function, "vfs_read");
        let names: Vec<&str> = parameters.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["file", "buf", "count", "pos"]);
        assert_eq!((parameters[0].type_name.as_str(), parameters[2].type_name.as_str(), parameters[2].bytes), ("void *", "size_t", 8));
        let returned = returned.unwrap();
        assert_eq!((returned.type_name.as_str(), returned.bytes, returned.signed), ("ssize_t", 8, true));
        let (parameters, returned) = of(LookupKind::Typedef, "btf_trace_sys_enter");
        assert_eq!((parameters.len(), parameters[2].bytes, parameters[2].signed, returned.is_none()), (3, 8, true, true));
        assert_eq!(btf.parameters(0), None);
    }
}
