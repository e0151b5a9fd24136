//! The syntax tree of a condition.

use crate::beauty::access::Step;
use std::fmt;

/// A condition. `And` and `Or` have at least two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Or(Vec<Expr>),
    And(Vec<Expr>),
    Not(Box<Expr>),
    Test(Comparison),
}

/// A comparison: a name, an operator and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The left side, whose value comes from the event.
    pub name: Name,
    /// How the two sides are compared.
    pub op: Op,
    /// The right side, as the user wrote it.
    pub value: Value,
}

/// The name of an argument, a field, or another property of the event (`ret`, `duration`). A path into its value may
/// follow: members after dots, and elements in brackets (`fd.path`, `argv[1]`, `events[*].data`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub String);

impl Name {
    /// Returns the part before the path.
    pub fn head(&self) -> &str {
        self.0.split(['.', '[']).next().unwrap_or_default()
    }

    /// Returns the path into the value.
    pub fn steps(&self) -> Vec<Step> {
        let mut rest = &self.0[self.head().len()..];
        let mut steps = Vec::new();
        while let Some(first) = rest.chars().next() {
            let end = match first {
                '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
                _ => rest[1..].find(['.', '[']).map_or(rest.len(), |end| end + 1),
            };
            steps.push(match (first, rest[1..end].trim_end_matches(']')) {
                ('[', "*") => Step::AnyElement,
                ('[', index) => Step::Element(index.parse().unwrap_or(u32::MAX)),
                (_, member) => Step::Member(member.into()),
            });
            rest = &rest[end..];
        }
        steps
    }

    /// Returns whether values are durations, which are compared in nanoseconds and printed with units.
    pub(super) fn is_duration(&self) -> bool {
        self.0 == "duration"
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `&`: bits are set. With a symbol, all of its bits must be set; with a number, at least one (as in the kernel's
    /// filters); with `A|B`, one of the parts must hold.
    Bits,
    /// `~`: a text matches a pattern.
    Like,
    /// `!~`: a text does not match a pattern.
    Unlike,
}

impl Op {
    /// All operators. An operator comes before those that are its prefix.
    pub(super) const ALL: [(Op, &'static str); 9] = [
        (Op::Equal, "=="),
        (Op::NotEqual, "!="),
        (Op::LessOrEqual, "<="),
        (Op::GreaterOrEqual, ">="),
        (Op::Unlike, "!~"),
        (Op::Less, "<"),
        (Op::Greater, ">"),
        (Op::Bits, "&"),
        (Op::Like, "~"),
    ];

    /// Returns the operator that holds exactly where this one does not, if there is one.
    pub fn opposite(self) -> Option<Op> {
        Some(match self {
            Op::Equal => Op::NotEqual,
            Op::NotEqual => Op::Equal,
            Op::Less => Op::GreaterOrEqual,
            Op::LessOrEqual => Op::Greater,
            Op::Greater => Op::LessOrEqual,
            Op::GreaterOrEqual => Op::Less,
            Op::Like => Op::Unlike,
            Op::Unlike => Op::Like,
            Op::Bits => return None,
        })
    }

    /// Returns the operator as it is written in a condition.
    pub fn text(self) -> &'static str {
        Op::ALL.iter().find(|(op, _)| *op == self).map_or("", |(_, text)| text)
    }
}

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A signed or unsigned 64-bit number. Times are in nanoseconds, sizes in bytes.
    Number(i128),
    /// A string. It consists of bytes, because paths do.
    Text(Vec<u8>),
    /// A constant of the argument's table, with or without the table's prefix.
    Symbol(String),
    /// `A|B`: at least two numbers or symbols.
    AnyOf(Vec<Value>),
}

impl Value {
    /// Returns the value as a text, whether it was written in quotes or as a word.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => std::str::from_utf8(text).ok(),
            Value::Symbol(word) => Some(word),
            Value::Number(_) | Value::AnyOf(_) => None,
        }
    }
}

impl Expr {
    /// Returns all comparisons, from left to right.
    pub fn comparisons(&self) -> Vec<&Comparison> {
        match self {
            Expr::Or(parts) | Expr::And(parts) => parts.iter().flat_map(Expr::comparisons).collect(),
            Expr::Not(inner) => inner.comparisons(),
            Expr::Test(comparison) => vec![comparison],
        }
    }

    /// Joins two conditions by `&&`; without a first one, returns the second. The result is not nested, so that the
    /// kernel can evaluate the parts separately.
    pub fn both(first: Option<Expr>, second: Expr) -> Expr {
        match first {
            None => second,
            Some(Expr::And(mut parts)) => {
                parts.push(second);
                Expr::And(parts)
            }
            Some(first) => Expr::And(vec![first, second]),
        }
    }
}
