//! Conditions that were held against what there is, and their evaluation.
//!
//! What is not known decides nothing: an event whose condition comes out [`Verdict::Unknown`] is for the caller to count, not to print as if it matched.

use super::ast::{Comparison, Expr, Name, Op, Value};
use super::fit::Fit;
use crate::kernel::constant::Constant;
use crate::text::glob;
use std::borrow::Cow;

/// A name's number within its scope, chosen by the scope.
pub type NameId = u16;

/// What names and symbols mean: a syscall with its arguments, or a tracepoint with its fields.
pub trait Scope {
    /// The number by which [`Subject::value`] will be asked for a name; `None` when nothing of that name exists here.
    fn name(&self, name: &Name) -> Option<(NameId, Kind)>;
    /// What a constant of that name stands for here, with or without the prefix of its table.
    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant>;
    /// All names that exist here, for whoever mistyped one.
    fn names(&self) -> Vec<String>;
    /// All constants that a name can be compared with here.
    fn constants(&self, name: &Name) -> Vec<String>;
}

/// What values of a name are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number,
    Text,
    /// Numbers in some events, text in others.
    Either,
}

/// One call or event.
pub trait Subject {
    fn value(&self, name: NameId) -> Operand<'_>;
}

/// The value of a name in one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand<'a> {
    /// As its type has it: a negative int is negative here.
    Number(i128),
    Text(Cow<'a, [u8]>),
    /// This event has nothing of that name: comparing it with anything is false.
    Nothing,
    /// A number that is still growing, and is this much already: how long a call has been in flight.
    AtLeast(i128),
    /// It was not seen, or could not be read.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
    /// It depends on something that is not known.
    Unknown,
}

impl Verdict {
    fn of(yes: bool) -> Verdict {
        if yes { Verdict::Yes } else { Verdict::No }
    }

    fn not(self) -> Verdict {
        match self {
            Verdict::Yes => Verdict::No,
            Verdict::No => Verdict::Yes,
            Verdict::Unknown => Verdict::Unknown,
        }
    }
}

/// Why a condition cannot hold in a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbound {
    #[error("nothing that is traced has a `{0}`")]
    Name(Name),
    #[error("`{symbol}` is no value of {name}")]
    Symbol { name: Name, symbol: String },
    #[error("{0} is a number: a string cannot be compared with it")]
    NotText(Name),
    #[error("{0} is a string: it can be compared with strings only, with == != ~ !~")]
    NotNumber(Name),
}

/// A condition whose names and symbols are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is the same for all events of this kind: what they do not have is compared with nothing, which is false.
    Known(bool),
    Or(Vec<Bound>),
    And(Vec<Bound>),
    Not(Box<Bound>),
    Compare {
        name: NameId,
        op: Op,
        with: i128,
    },
    /// Any of the masks: all of its bits, or one of its bits.
    Bits {
        name: NameId,
        masks: Vec<Mask>,
    },
    Text {
        name: NameId,
        op: Op,
        with: Vec<u8>,
    },
}

/// Bits that `&` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// One of them is enough.
    Any(u64),
    /// Among the bits `of`, these must be set and no others: a flag's own bits, or those of a field with one of its
    /// values.
    Exactly { bits: u64, of: u64 },
}

impl Expr {
    /// Holds names and symbols against a scope. A comparison that means nothing there is false; `fit` learns which
    /// mean something.
    pub fn bind(&self, scope: &dyn Scope, fit: &mut Fit) -> Bound {
        self.bind_from(&mut 0, scope, fit)
    }

    /// `at` counts the comparisons.
    fn bind_from(&self, at: &mut usize, scope: &dyn Scope, fit: &mut Fit) -> Bound {
        match self {
            Expr::Or(parts) => decided(parts.iter().map(|part| part.bind_from(at, scope, fit)).collect(), true),
            Expr::And(parts) => decided(parts.iter().map(|part| part.bind_from(at, scope, fit)).collect(), false),
            Expr::Not(inner) => match inner.bind_from(at, scope, fit) {
                Bound::Known(holds) => Bound::Known(!holds),
                bound => Bound::Not(Box::new(bound)),
            },
            Expr::Test(comparison) => {
                *at += 1;
                match comparison.bind(scope) {
                    Ok(bound) => {
                        fit.fits(*at - 1);
                        bound
                    }
                    Err(why) => {
                        fit.refuse(*at - 1, why, scope);
                        Bound::Known(false)
                    }
                }
            }
        }
    }
}

/// What is left of alternatives, or of a conjunction (which one part that is known to be false decides).
fn decided(mut parts: Vec<Bound>, decisive: bool) -> Bound {
    if parts.contains(&Bound::Known(decisive)) {
        return Bound::Known(decisive);
    }
    parts.retain(|part| !matches!(part, Bound::Known(_)));
    match (parts.len(), decisive) {
        (0, _) => Bound::Known(!decisive),
        (1, _) => parts.swap_remove(0),
        (_, true) => Bound::Or(parts),
        (_, false) => Bound::And(parts),
    }
}

impl Comparison {
    fn bind(&self, scope: &dyn Scope) -> Result<Bound, Unbound> {
        let (name, kind) = scope.name(&self.name).ok_or_else(|| Unbound::Name(self.name.clone()))?;
        let textual = matches!(self.op, Op::Equal | Op::NotEqual | Op::Like | Op::Unlike);
        match (kind, &self.value) {
            (Kind::Text | Kind::Either, Value::Text(with)) if textual => Ok(Bound::Text { name, op: self.op, with: with.clone() }),
            // `comm == bash` is what perf's users write.
            (Kind::Text, Value::Symbol(word)) if textual => Ok(Bound::Text { name, op: self.op, with: word.clone().into_bytes() }),
            (Kind::Text, _) => Err(Unbound::NotNumber(self.name.clone())),
            (Kind::Number | Kind::Either, Value::Text(_)) => Err(Unbound::NotText(self.name.clone())),
            (Kind::Number | Kind::Either, value) if self.op == Op::Bits => Ok(Bound::Bits { name, masks: self.masks(value, scope)? }),
            (Kind::Number | Kind::Either, value) => Ok(Bound::Compare { name, op: self.op, with: self.number(value, scope)? }),
        }
    }

    fn masks(&self, value: &Value, scope: &dyn Scope) -> Result<Vec<Mask>, Unbound> {
        match value {
            Value::AnyOf(parts) => parts.iter().map(|part| Ok(self.masks(part, scope)?[0])).collect(),
            Value::Symbol(symbol) => {
                let constant = self.constant(symbol, scope)?;
                Ok(vec![Mask::Exactly { bits: constant.value as u64, of: constant.mask }])
            }
            one => Ok(vec![Mask::Any(self.number(one, scope)? as u64)]),
        }
    }

    fn number(&self, value: &Value, scope: &dyn Scope) -> Result<i128, Unbound> {
        match value {
            Value::Number(number) => Ok(*number),
            Value::Symbol(symbol) => Ok(self.constant(symbol, scope)?.value),
            Value::AnyOf(parts) => parts.iter().try_fold(0, |sum, part| Ok(sum | self.number(part, scope)?)),
            Value::Text(_) => Err(Unbound::NotText(self.name.clone())),
        }
    }

    fn constant(&self, symbol: &str, scope: &dyn Scope) -> Result<Constant, Unbound> {
        let unbound = || Unbound::Symbol { name: self.name.clone(), symbol: symbol.to_owned() };
        scope.constant(&self.name, symbol).ok_or_else(unbound)
    }
}

impl Bound {
    /// Whether the condition holds for one event.
    pub fn verdict(&self, subject: &dyn Subject) -> Verdict {
        match self {
            Bound::Known(holds) => Verdict::of(*holds),
            Bound::Or(parts) => any(parts, subject, Verdict::Yes),
            Bound::And(parts) => any(parts, subject, Verdict::No),
            Bound::Not(inner) => inner.verdict(subject).not(),
            Bound::Compare { name, op, with } => match subject.value(*name) {
                Operand::Number(number) => Verdict::of(compare(number, *op, *with)),
                Operand::AtLeast(least) => compare_growing(least, *op, *with),
                Operand::Nothing | Operand::Text(_) => Verdict::No,
                Operand::Unknown => Verdict::Unknown,
            },
            Bound::Bits { name, masks } => match subject.value(*name) {
                Operand::Number(number) => Verdict::of(masks.iter().any(|mask| mask.is_in(number as u64))),
                Operand::Nothing | Operand::Text(_) => Verdict::No,
                Operand::AtLeast(_) | Operand::Unknown => Verdict::Unknown,
            },
            Bound::Text { name, op, with } => match subject.value(*name) {
                Operand::Text(text) => Verdict::of(compare_text(&text, *op, with)),
                Operand::Nothing | Operand::Number(_) | Operand::AtLeast(_) => Verdict::No,
                Operand::Unknown => Verdict::Unknown,
            },
        }
    }
}

/// The verdict `decisive` as soon as one part has it; otherwise its opposite, if all parts are known.
fn any(parts: &[Bound], subject: &dyn Subject, decisive: Verdict) -> Verdict {
    let mut all = decisive.not();
    for part in parts {
        match part.verdict(subject) {
            verdict if verdict == decisive => return decisive,
            Verdict::Unknown => all = Verdict::Unknown,
            _ => {}
        }
    }
    all
}

impl Mask {
    fn is_in(self, number: u64) -> bool {
        match self {
            Mask::Any(bits) => number & bits != 0,
            Mask::Exactly { bits, of } => number & of == bits,
        }
    }
}

fn compare(number: i128, op: Op, with: i128) -> bool {
    match op {
        Op::Equal => number == with,
        Op::NotEqual => number != with,
        Op::Less => number < with,
        Op::LessOrEqual => number <= with,
        Op::Greater => number > with,
        Op::GreaterOrEqual => number >= with,
        // These bind to other kinds of test.
        Op::Bits | Op::Like | Op::Unlike => false,
    }
}

/// Compares a number that is `least` or more. It can only be decided where growing does not change the answer.
fn compare_growing(least: i128, op: Op, with: i128) -> Verdict {
    let passed = least > with;
    match op {
        Op::Greater | Op::NotEqual if passed => Verdict::Yes,
        Op::GreaterOrEqual if least >= with => Verdict::Yes,
        Op::LessOrEqual | Op::Equal if passed => Verdict::No,
        Op::Less if least >= with => Verdict::No,
        _ => Verdict::Unknown,
    }
}

fn compare_text(text: &[u8], op: Op, with: &[u8]) -> bool {
    match op {
        Op::Equal => text == with,
        Op::NotEqual => text != with,
        Op::Like => glob::matches(with, text),
        Op::Unlike => !glob::matches(with, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
