//! A condition, as it was written.

use std::fmt;

/// A condition. `And` and `Or` have two parts or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Or(Vec<Expr>),
    And(Vec<Expr>),
    Not(Box<Expr>),
    Test(Comparison),
}

/// One comparison: name, operator, value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub name: Name,
    pub op: Op,
    pub value: Value,
}

/// What a condition is about: an argument or field, or what rtrace knows of the event; members behind dots (`addr.port`, `fd.path`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub String);

impl Name {
    /// The part before the first dot.
    pub fn head(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }

    /// What stands behind the first dot.
    pub fn member(&self) -> Option<&str> {
        self.0.split_once('.').map(|(_, member)| member)
    }

    /// Durations are compared in nanoseconds, and written with units.
    pub(super) fn is_duration(&self) -> bool {
        self.0 == "duration"
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `&`: bits are set. A symbol asks for all of its bits, a number for any of them (as in the kernel's filters), `A|B` for either.
    Bits,
    /// `~`: a text matches a pattern.
    Like,
    /// `!~`: it does not.
    Unlike,
}

impl Op {
    /// All operators, longer ones before those they begin with.
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

    pub fn text(self) -> &'static str {
        Op::ALL.iter().find(|(op, _)| *op == self).map_or("", |(_, text)| text)
    }
}

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Any 64-bit number, signed or not; times are nanoseconds, sizes bytes.
    Number(i128),
    /// A string. Bytes, because paths are.
    Text(Vec<u8>),
    /// A constant of the argument's table, with or without its prefix.
    Symbol(String),
    /// `A|B`: two numbers or symbols, or more.
    AnyOf(Vec<Value>),
}

impl Expr {
    /// Every comparison in it, from left to right.
    pub fn comparisons(&self) -> Vec<&Comparison> {
        match self {
            Expr::Or(parts) | Expr::And(parts) => parts.iter().flat_map(Expr::comparisons).collect(),
            Expr::Not(inner) => inner.comparisons(),
            Expr::Test(comparison) => vec![comparison],
        }
    }

    /// Both of them; what is there alone is taken as it is. A conjunction stays flat, so that the kernel can take its parts.
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
