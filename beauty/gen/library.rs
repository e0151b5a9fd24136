//! All headers that were asked for, and the values of their constants.
//!
//! A table sees the constants of the headers it names; what these refer to is looked for in their includes as well.

use super::expression::evaluate;
use super::header::{Body, Header, Target};
use super::int::{Int, Names};
use super::preprocess::read;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// The text of a header, by its name in `#include`; `None` if the build machine does not have it.
pub type Load<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// How many constants may stand behind one another before it is taken for a circle.
const DEPTH_MAX: u32 = 64;

pub struct Library<'a> {
    load: &'a Load<'a>,
    /// For whom the headers' conditions are decided.
    conditions: Target,
    /// Whose types and values are meant.
    pub target: Target,
    headers: Rc<RefCell<HashMap<String, Option<Rc<Header>>>>>,
    /// Constants that stand before the headers' (an ABI's own values).
    laid_over: BTreeMap<String, String>,
    /// Constants that stand behind them (those that headers may lack).
    laid_under: BTreeMap<String, String>,
    /// Bytes of structs by name.
    sizes: HashMap<String, u64>,
    /// The structs whose bytes a constant needed (ioctl commands carry them).
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
            laid_over: BTreeMap::new(),
            laid_under: BTreeMap::new(),
            sizes,
            sized: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    /// The same headers, under the same conditions, with the types of another ABI.
    pub fn with_types_of(&self, target: Target, sizes: HashMap<String, u64>) -> Library<'a> {
        let headers = Rc::clone(&self.headers);
        Library {
            target,
            headers,
            laid_under: self.laid_under.clone(),
            conditions: self.conditions,
            ..Library::new(self.load, target, sizes)
        }
    }

    /// Makes a constant known that is used instead of a header's.
    pub fn lay_over(&mut self, name: &str, value: &str) {
        self.laid_over.insert(name.to_string(), value.to_string());
    }

    /// Makes a constant known that is used where no header has it.
    pub fn lay_under(&mut self, name: &str, value: &str) {
        self.laid_under.insert(name.to_string(), value.to_string());
    }

    /// The structs whose sizes were asked for since the last time.
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

    /// The value of a constant as the header says it, whatever an overlay says. What it refers to may also stand in the other headers.
    pub fn in_header(&self, header: &str, name: &str, others: &[String]) -> Option<Result<Int, String>> {
        let found = self.header(header)?;
        let constant = found.constant(name)?;
        Some(self.body(&constant.body, &Scope { library: self, header, others }))
    }

    /// The value of an expression whose names are looked up from the header on.
    pub fn evaluate(&self, text: &str, header: &str, others: &[String]) -> Result<Int, String> {
        evaluate(text, &Scope { library: self, header, others })
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

    /// The scope's header, the nearest of its includes, or the nearest of the scope's other headers, for which the closure has an answer.
    fn search<T>(&self, scope: &Scope, mut look: impl FnMut(&Header, &str) -> Option<T>) -> Option<T> {
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
                if let Some(found) = look(&header, &name) {
                    return Some(found);
                }
                queue.extend(header.includes.iter().cloned());
            }
        }
        None
    }
}

/// Names as one header sees them, or a table that reads it beside others.
struct Scope<'a> {
    library: &'a Library<'a>,
    header: &'a str,
    others: &'a [String],
}

impl Names for Scope<'_> {
    fn value(&self, name: &str) -> Result<Int, String> {
        let library = self.library;
        let own = |text: &String| library.body(&Body::Expression(text.clone()), self);
        if let Some(text) = library.laid_over.get(name) {
            return own(text);
        }
        let found = library.search(self, |header, at| header.constant(name).map(|constant| (constant.body.clone(), at.to_string())));
        if let Some((body, at)) = found {
            return library.body(&body, &Scope { header: &at, ..*self });
        }
        match (library.laid_under.get(name), library.target.predefined(name)) {
            (Some(text), _) => own(text),
            (None, Some(value)) => Ok(Int::signed(value)),
            (None, None) => Err(format!("needs {name}, which no header read defines")),
        }
    }

    fn function(&self, name: &str) -> Option<(Vec<String>, String)> {
        self.library.search(self, |header, _| header.function(name).cloned())
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
        assert!(library.in_header("a.h", "B", &[]).is_none(), "includes are no part of a header");
        assert!(library.in_header("c.h", "B", &[]).is_none());
    }

    #[test]
    fn overlays_stand_before_headers() {
        let mut library = library();
        library.lay_over("C", "2");
        assert_eq!(value(&library, "A"), Ok(33));
    }

    #[test]
    fn overlays_and_other_headers_help_where_a_header_does_not() {
        let mut library = library();
        library.lay_under("NONE", "C | 8");
        library.lay_under("C", "4");
        assert_eq!(library.evaluate("NONE", "kernel.tbl", &[]).map(|int| int.value), Ok(12));
        assert_eq!(library.evaluate("NONE", "kernel.tbl", &["b.h".into()]).map(|int| int.value), Ok(9));
    }

    #[test]
    fn circles_are_errors() {
        assert_eq!(value(&library(), "R"), Err("refers to itself".into()));
    }
}
