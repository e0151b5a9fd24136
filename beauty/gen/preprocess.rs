//! Reads the text of one UAPI header: `#define NAME expression` and `enum { A, B = 3, C }`.
//!
//! Includes are recorded, not followed. `#if` directives are evaluated as for a user-space program of one ABI.

use super::enums::EnumReader;
use super::expression::evaluate;
use super::header::{Body, Function, Header, Target};
use super::int::{Int, Names};
use super::lex::{Token, tokens};
use super::plain::{logical_lines, without_comments};

/// Preprocesses the text of a header for the target.
pub fn read(text: &str, target: Target) -> Header {
    let mut header = Header::default();
    let mut conditions: Vec<Condition> = Vec::new();
    let mut code = EnumReader::default();
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

/// An `#if` whose `#endif` has not been read yet.
struct Condition {
    taken: bool,
    was_taken: bool,
}

fn holds(word: &str, rest: &str, header: &Header, target: Target) -> bool {
    let names = DirectiveNames { header, target };
    match word {
        "ifdef" => names.defined(rest),
        "ifndef" => !names.defined(rest),
        // A condition that cannot be evaluated is false; in C, unknown names are 0 in conditions.
        _ => evaluate(rest, &names).is_ok_and(|value| value.value != 0),
    }
}

/// The names that an `#if` can test: those that the header has defined so far, and the target's predefined macros.
struct DirectiveNames<'a> {
    header: &'a Header,
    target: Target,
}

impl Names for DirectiveNames<'_> {
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
