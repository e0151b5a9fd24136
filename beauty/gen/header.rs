//! The constants of one UAPI header, read as text: `#define NAME expression` and `enum { A, B = 3, C }`.
//!
//! Includes are noted, not followed. Conditions are decided as for a user-space program of one ABI. Values are not computed here.

use super::enums::Code;
use super::expression::{Int, Names, evaluate, is_numeric};
use super::fault::is_name;
use super::lex::{Token, tokens};
use super::plain::{logical_lines, without_comments};
use std::collections::HashMap;

/// For whom conditions are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    X86_64,
    I386,
    X32,
    Aarch64,
}

impl Target {
    /// What a compiler for it defines, as far as UAPI headers ask.
    pub fn predefined(self, name: &str) -> Option<i64> {
        let wide = matches!(self, Target::X86_64 | Target::Aarch64);
        let defined = match name {
            "__BITS_PER_LONG" | "__WORDSIZE" => return Some(if wide { 64 } else { 32 }),
            "__x86_64__" => matches!(self, Target::X86_64 | Target::X32),
            "__i386__" => self == Target::I386,
            "__ILP32__" => self == Target::X32,
            "__LP64__" => wide,
            "__aarch64__" => self == Target::Aarch64,
            "__linux__" | "__LITTLE_ENDIAN" | "__LITTLE_ENDIAN_BITFIELD" | "__GNUC__" => true,
            // linux/libc-compat.h: the header's own definitions, not the C library's.
            _ => name.starts_with("__UAPI_DEF_"),
        };
        defined.then_some(1)
    }

    pub fn word(self) -> u64 {
        if matches!(self, Target::X86_64 | Target::Aarch64) { 8 } else { 4 }
    }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Expression(String),
    /// The value of an enum's last explicit expression (0 without), and how many names after it.
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
type Function = (Vec<String>, String);

#[derive(Debug, Default)]
pub struct Header {
    /// In the header's order.
    pub constants: Vec<Constant>,
    /// What it includes, as written between the brackets.
    pub includes: Vec<String>,
    by_name: HashMap<String, usize>,
    functions: HashMap<String, Function>,
    /// Names defined as something that is no number, include guards and the like.
    others: HashMap<String, ()>,
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

    fn remove(&mut self, name: &str) {
        self.functions.remove(name);
        self.others.remove(name);
        if let Some(at) = self.by_name.remove(name) {
            self.constants.remove(at);
            self.by_name.values_mut().filter(|later| **later > at).for_each(|later| *later -= 1);
        }
    }

    fn define(&mut self, rest: &str, line: usize) {
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

/// Reads a header's text as a program for the target sees it.
pub fn read(text: &str, target: Target) -> Header {
    let mut header = Header::default();
    let mut conditions: Vec<Condition> = Vec::new();
    let mut code = Code::default();
    for (line, text) in logical_lines(&without_comments(text)) {
        let text = text.trim_start();
        let active = conditions.iter().all(|condition| condition.taken);
        let Some(directive) = text.strip_prefix('#') else {
            if active {
                code.push(line, text, &mut header);
            }
            continue;
        };
        let directive = directive.trim();
        let (word, rest) = directive.split_at(directive.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(directive.len()));
        let rest = rest.trim();
        match word {
            "if" | "ifdef" | "ifndef" => {
                let taken = active && holds(word, rest, &header, target);
                conditions.push(Condition { taken, was_taken: taken || !active });
            }
            "elif" => {
                if let Some(last) = conditions.last_mut() {
                    last.taken = !last.was_taken && holds("if", rest, &header, target);
                    last.was_taken |= last.taken;
                }
            }
            "else" => {
                if let Some(last) = conditions.last_mut() {
                    last.taken = !last.was_taken;
                    last.was_taken = true;
                }
            }
            "endif" => drop(conditions.pop()),
            "define" if active => header.define(rest, line),
            "undef" if active => header.remove(rest),
            "include" if active => {
                header.includes.extend(rest.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(path, _)| path.to_string()))
            }
            _ => {}
        }
    }
    header
}

/// An open `#if`.
struct Condition {
    taken: bool,
    was_taken: bool,
}

fn holds(word: &str, rest: &str, header: &Header, target: Target) -> bool {
    let names = Seen { header, target };
    match word {
        "ifdef" => names.defined(rest),
        "ifndef" => !names.defined(rest),
        // What cannot be decided is taken as false, as an unknown name is in C.
        _ => evaluate(rest, &names).is_ok_and(|value| value.value != 0),
    }
}

/// What an `#if` can ask for: what the header itself has defined so far, and the target.
struct Seen<'a> {
    header: &'a Header,
    target: Target,
}

impl Names for Seen<'_> {
    fn value(&self, name: &str) -> Result<Int, String> {
        match self.header.constant(name).map(|constant| &constant.body) {
            Some(Body::Expression(text)) if !tokens(text).contains(&Token::Name(name.into())) => evaluate(text, self),
            _ => Ok(Int::signed(self.target.predefined(name).unwrap_or(0))),
        }
    }

    fn function(&self, name: &str) -> Option<Function> {
        self.header.function(name).cloned()
    }

    fn defined(&self, name: &str) -> bool {
        let header = self.header;
        let visible = header.constant(name).is_some_and(|constant| matches!(constant.body, Body::Expression(_)));
        visible || header.others.contains_key(name) || header.functions.contains_key(name) || self.target.predefined(name).is_some()
    }

    fn size(&self, _: &str) -> Option<u64> {
        None
    }

    fn word(&self) -> u64 {
        self.target.word()
    }
}

#[cfg(test)]
mod tests;
