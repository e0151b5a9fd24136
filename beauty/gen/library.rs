//! All headers that tables name, and the values of their constants.
//!
//! A table selects among the constants of the headers that it names. Names in their definitions are also looked up in
//! the included headers.

use super::expression::{evaluate, parameters_of};
use super::header::{Body, Header, Target};
use super::int::{Int, Names};
use super::preprocess::read;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Returns the text of a header by its name in `#include`, or `None` if the build machine does not have the header.
pub type Load<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The length of a chain of constants beyond which they are reported as referring to each other in a circle.
const DEPTH_MAX: u32 = 64;

pub struct Library<'a> {
    load: &'a Load<'a>,
    /// The ABI for which the headers' `#if` directives are evaluated.
    conditions: Target,
    /// The ABI whose types and values are used.
    pub target: Target,
    headers: Rc<RefCell<HashMap<String, Option<Rc<Header>>>>>,
    /// Values that replace those of the headers (an ABI's own values), by name.
    overrides: BTreeMap<String, String>,
    /// Values of constants that older headers lack, by name.
    fallbacks: BTreeMap<String, String>,
    /// Sizes of structs in bytes, by name.
    sizes: HashMap<String, u64>,
    /// The structs whose sizes were part of an evaluated constant (ioctl commands contain them).
    sized: RefCell<BTreeSet<String>>,
    depth: Cell<u32>,
}

impl<'a> Library<'a> {
    pub fn new(load: &'a Load<'a>, target: Target, sizes: HashMap<String, u64>) -> Library<'a> {
        Library {
            load,
            conditions: target,
            target,
            headers: Rc::default(),
            overrides: BTreeMap::new(),
            fallbacks: BTreeMap::new(),
            sizes,
            sized: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    /// Returns a library of the same headers, preprocessed in the same way, with the types of another ABI.
    pub fn with_types_of(&self, target: Target, sizes: HashMap<String, u64>) -> Library<'a> {
        let headers = Rc::clone(&self.headers);
        Library {
            target,
            headers,
            fallbacks: self.fallbacks.clone(),
            conditions: self.conditions,
            ..Library::new(self.load, target, sizes)
        }
    }

    /// Adds a constant that replaces the one of the headers.
    pub fn add_override(&mut self, name: &str, value: &str) {
        self.overrides.insert(name.to_string(), value.to_string());
    }

    /// Adds a constant that is used if no header has it.
    pub fn add_fallback(&mut self, name: &str, value: &str) {
        self.fallbacks.insert(name.to_string(), value.to_string());
    }

    /// Returns the structs whose sizes were used since the last call.
    pub fn take_sized(&self) -> BTreeSet<String> {
        self.sized.take()
    }

    pub fn header(&self, name: &str) -> Option<Rc<Header>> {
        if let Some(known) = self.headers.borrow().get(name) {
            return known.clone();
        }
        let header = (self.load)(name).map(|text| Rc::new(read(&text, self.conditions)));
        self.headers.borrow_mut().insert(name.to_string(), header.clone());
        header
    }

    /// Returns the value of a constant that the header itself defines; an override of this name is ignored. The names
    /// in its definition are also looked up in the other headers. `None` if the header does not define the constant.
    pub fn in_header(&self, header: &str, name: &str, others: &[String]) -> Option<Result<Int, String>> {
        let found = self.header(header)?;
        let constant = found.constant(name)?;
        Some(self.body(&constant.body, &Scope { library: self, header, others }))
    }

    /// Returns the value of an expression. Its names are looked up in the header, its includes, and the other headers.
    pub fn evaluate(&self, text: &str, header: &str, others: &[String]) -> Result<Int, String> {
        evaluate(text, &Scope { library: self, header, others })
    }

    /// Calls the closure with the names of the header, its includes, and the other headers.
    pub fn with_names<T>(&self, header: &str, others: &[String], of: impl FnOnce(&dyn Names) -> T) -> T {
        of(&Scope { library: self, header, others })
    }

    fn body(&self, body: &Body, scope: &Scope) -> Result<Int, String> {
        if self.depth.get() > DEPTH_MAX {
            return Err("refers to itself".into());
        }
        self.depth.set(self.depth.get() + 1);
        let value = match body {
            Body::Expression(text) => evaluate(text, scope),
            Body::Enumerator { base, offset } => {
                let base = base.as_ref().map_or(Ok(Int::signed(0)), |base| evaluate(base, scope));
                base.map(|base| Int::new(base.value + i128::from(*offset), base.unsigned, base.wide))
            }
        };
        self.depth.set(self.depth.get() - 1);
        value
    }

    /// Calls the closure for the scope's header, its includes (breadth first), and the scope's other headers with
    /// theirs. Returns the first result that is not `None`.
    fn search<T>(&self, scope: &Scope, mut find: impl FnMut(&Header, &str) -> Option<T>) -> Option<T> {
        let mut seen: HashSet<String> = HashSet::new();
        for start in std::iter::once(scope.header).chain(scope.others.iter().map(String::as_str)) {
            let mut queue = vec![start.to_string()];
            let mut at = 0;
            while let Some(name) = queue.get(at).cloned() {
                at += 1;
                if !seen.insert(name.clone()) {
                    continue;
                }
                let Some(header) = self.header(&name) else { continue };
                if let Some(found) = find(&header, &name) {
                    return Some(found);
                }
                queue.extend(header.includes.iter().cloned());
            }
        }
        None
    }
}

/// The headers in which the names of an expression are looked up: a header, and the others that the same table names.
struct Scope<'a> {
    library: &'a Library<'a>,
    header: &'a str,
    others: &'a [String],
}

impl Names for Scope<'_> {
    fn value(&self, name: &str) -> Result<Int, String> {
        let library = self.library;
        let own = |text: &String| library.body(&Body::Expression(text.clone()), self);
        if let Some(text) = library.overrides.get(name) {
            return own(text);
        }
        let found = library.search(self, |header, at| header.constant(name).map(|constant| (constant.body.clone(), at.to_string())));
        if let Some((body, at)) = found {
            return library.body(&body, &Scope { header: &at, ..*self });
        }
        match (library.fallbacks.get(name), library.target.predefined(name)) {
            (Some(text), _) => own(text),
            (None, Some(value)) => Ok(Int::signed(value)),
            (None, None) => Err(format!("needs {name}, which no header defines")),
        }
    }

    fn function(&self, name: &str) -> Option<(Vec<String>, String)> {
        let other_name = |header: &Header| {
            let Some(Body::Expression(text)) = header.constant(name).map(|constant| &constant.body) else { return None };
            // A macro may be another name of `_IOR`.
            let parameters: Vec<String> = (0..parameters_of(text.trim())?).map(|at| format!("p{at}")).collect();
            let body = format!("{text}({})", parameters.join(","));
            Some((parameters, body))
        };
        self.library.search(self, |header, _| header.function(name).cloned().or_else(|| other_name(header)))
    }

    fn definition(&self, name: &str) -> Option<String> {
        self.library.search(self, |header, _| match header.constant(name).map(|constant| &constant.body) {
            Some(Body::Expression(text)) => Some(text.clone()),
            _ => None,
        })
    }

    fn defined(&self, name: &str) -> bool {
        self.value(name).is_ok()
    }

    fn size(&self, type_name: &str) -> Option<u64> {
        let size = self.library.sizes.get(type_name).copied()?;
        self.library.sized.borrow_mut().insert(type_name.to_string());
        Some(size)
    }

    fn word(&self) -> u64 {
        self.library.target.word()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str) -> Option<String> {
        let text = match name {
            "a.h" => {
                "#include <b.h>\n#define A (B | 1)\n#define R R2\n#define R2 R\n#define S _IOR('T', 1, struct s)\nenum { E = B, F };\n"
            }
            "b.h" => "#include <a.h>\n#define B (C << 4)\n#define C 1\n",
            _ => return None,
        };
        Some(text.into())
    }

    fn library() -> Library<'static> {
        Library::new(&load, Target::X86_64, HashMap::from([("s".to_string(), 12)]))
    }

    fn value(library: &Library, name: &str) -> Result<i128, String> {
        library.in_header("a.h", name, &[]).expect(name).map(|int| int.value)
    }

    #[test]
    fn references_are_followed_through_includes() {
        let library = library();
        assert_eq!(value(&library, "A"), Ok(17));
        assert_eq!(value(&library, "F"), Ok(17));
        assert_eq!(value(&library, "S"), Ok(0x800c_5401));
        assert!(library.in_header("a.h", "B", &[]).is_none(), "constants of included headers do not belong to the header");
        assert!(library.in_header("c.h", "B", &[]).is_none());
    }

    #[test]
    fn overrides_replace_values_of_headers() {
        let mut library = library();
        library.add_override("C", "2");
        assert_eq!(value(&library, "A"), Ok(33));
    }

    #[test]
    fn fallbacks_are_used_after_the_other_headers() {
        let mut library = library();
        library.add_fallback("NONE", "C | 8");
        library.add_fallback("C", "4");
        assert_eq!(library.evaluate("NONE", "kernel.tbl", &[]).map(|int| int.value), Ok(12));
        assert_eq!(library.evaluate("NONE", "kernel.tbl", &["b.h".into()]).map(|int| int.value), Ok(9));
    }

    #[test]
    fn circular_definitions_are_errors() {
        assert_eq!(value(&library(), "R"), Err("refers to itself".into()));
    }
}
