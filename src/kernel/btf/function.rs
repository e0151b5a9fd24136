//! What functions of the kernel are called with.

use super::shape::{Shape, Shaped};
use super::{Btf, kind};

/// Names of names of types: no kernel's go as deep.
const NAMES_MAX: u32 = 32;

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Empty where the kernel's source has none.
    pub name: String,
    /// As C has it; of pointers only that they are some (`void *`).
    pub type_name: String,
    /// Of the value; 8 for pointers, and for what is no number.
    pub bytes: u8,
    pub signed: bool,
}

impl Btf<'_> {
    /// The parameters of a function, or of those that a typedef like `btf_trace_NAME` is a pointer to; and what it returns, if it returns something. `None` if it is neither.
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
    use super::super::{Sort, of_the_kernel};
    use super::*;
    use rustc_hash::FxHashSet;

    #[test]
    fn functions_of_the_kernel_have_parameters() {
        let Ok(blob) = of_the_kernel() else {
            eprintln!("SKIPPED: this kernel does not show its types; nothing was tested");
            return;
        };
        let btf = Btf::parse(&blob).unwrap();
        let of = |sort, name| {
            let (_, id) = btf.named(sort, &FxHashSet::from_iter([name]))[0];
            btf.parameters(id).unwrap()
        };
        let (parameters, returned) = of(Sort::Function, "vfs_read");
        let names: Vec<&str> = parameters.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["file", "buf", "count", "pos"]);
        assert_eq!((parameters[0].type_name.as_str(), parameters[2].type_name.as_str(), parameters[2].bytes), ("void *", "size_t", 8));
        let returned = returned.unwrap();
        assert_eq!((returned.type_name.as_str(), returned.bytes, returned.signed), ("ssize_t", 8, true));
        let (parameters, returned) = of(Sort::Typedef, "btf_trace_sys_enter");
        assert_eq!((parameters.len(), parameters[2].bytes, parameters[2].signed, returned.is_none()), (3, 8, true, true));
        assert_eq!(btf.parameters(0), None);
    }
}
