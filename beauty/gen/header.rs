//! The constants, macros and includes of one UAPI header, preprocessed for one ABI. Values are computed in `library`.

use super::expression::is_numeric;
use super::fault::is_name;
use std::collections::HashMap;

/// The ABI for which a header's `#if` directives are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    X86_64,
    I386,
    X32,
    Aarch64,
}

impl Target {
    /// Returns the value of a macro that a compiler for the target predefines. Covers the macros that UAPI headers
    /// test.
    pub fn predefined(self, name: &str) -> Option<i64> {
        let wide = matches!(self, Target::X86_64 | Target::Aarch64);
        let defined = match name {
            // asm-generic/ioctl.h, which headers with ioctl commands need not include.
            "_IOC_NONE" => return Some(0),
            "_IOC_WRITE" => return Some(1),
            "_IOC_READ" => return Some(2),
            "__BITS_PER_LONG" | "__WORDSIZE" => return Some(if wide { 64 } else { 32 }),
            "__x86_64__" => matches!(self, Target::X86_64 | Target::X32),
            "__i386__" => self == Target::I386,
            "__ILP32__" => self == Target::X32,
            "__LP64__" => wide,
            "__aarch64__" => self == Target::Aarch64,
            // linux/ioctl.h, on which linux/soundcard.h relies without including it.
            "_IOWR" => true,
            "__linux__" | "__LITTLE_ENDIAN" | "__LITTLE_ENDIAN_BITFIELD" | "__GNUC__" => true,
            // linux/libc-compat.h: the header's own definitions, not the C library's.
            _ => name.starts_with("__UAPI_DEF_"),
        };
        defined.then_some(1)
    }

    /// Returns the size in bytes of a long and of a pointer.
    pub fn word(self) -> u64 {
        if matches!(self, Target::X86_64 | Target::Aarch64) { 8 } else { 4 }
    }
}

/// The definition of a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Expression(String),
    /// An enumerator: the last explicit value before it in its enum (`None` stands for 0), and the distance to it.
    Enumerator {
        base: Option<String>,
        offset: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub name: String,
    pub line: usize,
    pub body: Body,
}

/// Parameters and body of a function-like macro.
pub(super) type Function = (Vec<String>, String);

#[derive(Debug, Default)]
pub struct Header {
    /// In the header's order.
    pub constants: Vec<Constant>,
    /// The headers that it includes, as written between the angle brackets.
    pub includes: Vec<String>,
    by_name: HashMap<String, usize>,
    pub(super) functions: HashMap<String, Function>,
    /// Names of macros whose values are not numbers, for example include guards.
    pub(super) others: HashMap<String, ()>,
}

impl Header {
    pub fn constant(&self, name: &str) -> Option<&Constant> {
        self.by_name.get(name).map(|&at| &self.constants[at])
    }

    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    pub fn add(&mut self, name: &str, line: usize, body: Body) {
        let constant = Constant { name: name.to_string(), line, body };
        match self.by_name.get(name) {
            Some(&at) => self.constants[at] = constant,
            None => {
                self.by_name.insert(name.to_string(), self.constants.len());
                self.constants.push(constant);
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.functions.remove(name);
        self.others.remove(name);
        if let Some(at) = self.by_name.remove(name) {
            self.constants.remove(at);
            self.by_name.values_mut().filter(|later| **later > at).for_each(|later| *later -= 1);
        }
    }

    pub(super) fn define(&mut self, rest: &str, line: usize) {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, body) = rest.split_at(end);
        if let Some(inner) = body.strip_prefix('(') {
            let Some((parameters, body)) = inner.split_once(')') else { return };
            let parameters = parameters.split(',').map(|parameter| parameter.trim().to_string()).collect();
            self.functions.insert(name.to_string(), (parameters, body.trim().to_string()));
            return;
        }
        let body = body.trim();
        // `#define IPPROTO_IP IPPROTO_IP` only makes an enum's name visible to the preprocessor.
        if body == name || !is_name(name) {
            return;
        }
        if is_numeric(body) {
            self.add(name, line, Body::Expression(body.to_string()));
        } else {
            self.others.insert(name.to_string(), ());
        }
    }
}
