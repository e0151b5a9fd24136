//! Binds conditions to the arguments or fields of one kind of event, and evaluates them.
//!
//! Evaluation has three results. If the condition depends on unknown data, the result is [`Verdict::Unknown`]; the
//! caller counts such an event instead of printing it as if it matched.

use super::ast::{Comparison, Expr, Name, Op, Value};
use super::bindings::Bindings;
use crate::beauty::access::Step;
use crate::kernel::constant::Constant;
use crate::text::glob;
use std::borrow::Cow;

/// A number for a name, which the scope chooses.
pub type NameId = u16;

/// The names and constants of one kind of event: a syscall with its arguments, or a tracepoint with its fields.
pub trait Scope {
    /// Returns the number of a name, for [`Subject::value`], and the type of its values. `None` if the name does not
    /// exist in this scope.
    fn name(&self, name: &Name) -> Option<(NameId, ValueType)>;
    /// Returns the text that a name has in every event of this scope, if there is one. The scope then resolves the name
    /// as a text.
    fn fixed_text(&self, _name: &Name) -> Option<&str> {
        None
    }
    /// Returns the value of a constant that the name can be compared with. The symbol is given with or without the
    /// prefix of its table.
    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant>;
    /// Returns all names that exist in this scope, for the suggestions in errors.
    fn names(&self) -> Vec<String>;
    /// Returns all constants that the name can be compared with, for the suggestions in errors.
    fn constants(&self, name: &Name) -> Vec<String>;
}

/// The type of a name's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Number,
    Text,
    /// Numbers in some events, and text in others.
    Either,
}

/// A name that was resolved in a scope, and the path into its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The number that the scope has for the name.
    pub name: NameId,
    /// The path behind the name, as it was written; empty if there is none.
    pub steps: Vec<Step>,
}

/// A call or an event, as an object of evaluation.
pub trait Subject {
    /// Returns the value of a name that is not followed by a path.
    fn value(&self, name: NameId) -> Operand<'_>;

    /// Passes the operand that a reference stands for to `test`, and returns its verdict. If the reference stands for
    /// every element of an array, the result is yes if `test` returns yes for one of them. `as_text` says whether the
    /// operand is compared as text.
    fn test(&self, reference: &Reference, _as_text: bool, test: &dyn Fn(Operand<'_>) -> Verdict) -> Verdict {
        test(self.value(reference.name))
    }
}

/// The value of a name in one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand<'a> {
    /// A number with the sign of its type: a negative int is negative.
    Number(i128),
    Text(Cow<'a, [u8]>),
    /// The beginning of a text whose rest was not copied.
    Beginning(&'a [u8]),
    /// The event does not have a value of this name. A comparison with it is always false.
    Nothing,
    /// A number that is still growing, and its current value: the duration of a call in flight.
    AtLeast(i128),
    /// The value was not recorded or could not be read.
    Unknown,
}

/// The result of evaluating a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
    /// It depends on an unknown value.
    Unknown,
}

impl Verdict {
    fn of(yes: bool) -> Verdict {
        if yes { Verdict::Yes } else { Verdict::No }
    }

    /// Returns the verdict of a disjunction.
    pub fn or(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Yes, _) | (_, Verdict::Yes) => Verdict::Yes,
            (Verdict::Unknown, _) | (_, Verdict::Unknown) => Verdict::Unknown,
            (Verdict::No, Verdict::No) => Verdict::No,
        }
    }

    fn not(self) -> Verdict {
        match self {
            Verdict::Yes => Verdict::No,
            Verdict::No => Verdict::Yes,
            Verdict::Unknown => Verdict::Unknown,
        }
    }
}

/// The reason why a comparison cannot be resolved in a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbound {
    #[error("no traced syscall or event has an argument or field `{0}`")]
    Name(Name),
    #[error("`{symbol}` is not a known value of {name}")]
    Symbol { name: Name, symbol: String },
    #[error("{0} is a number and cannot be compared with a string")]
    NotText(Name),
    #[error("{0} is a string and can only be compared with a string, by == != ~ or !~")]
    NotNumber(Name),
}

/// A condition whose names and symbols were resolved in a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The result is the same for all events of this kind, because comparisons with names that they do not have are
    /// false.
    Constant(bool),
    Or(Vec<Bound>),
    And(Vec<Bound>),
    Not(Box<Bound>),
    Compare {
        name: Reference,
        op: Op,
        with: i128,
    },
    /// At least one of the masks matches.
    Bits {
        name: Reference,
        masks: Vec<Mask>,
    },
    Text {
        name: Reference,
        op: Op,
        with: Vec<u8>,
    },
}

/// The bits that `&` tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// At least one of these bits must be set.
    Any(u64),
    /// Of the bits `of`, exactly `bits` must be set. `of` are the bits of a flag, or those of a field that contains one
    /// of several values.
    Exactly { bits: u64, of: u64 },
}

impl Expr {
    /// Resolves names and symbols in a scope. A comparison that cannot be resolved is false. `bindings` records which
    /// comparisons could be resolved.
    pub fn bind(&self, scope: &dyn Scope, bindings: &mut Bindings) -> Bound {
        self.bind_from(&mut 0, scope, bindings)
    }

    /// `index` is that of the next comparison.
    fn bind_from(&self, index: &mut usize, scope: &dyn Scope, bindings: &mut Bindings) -> Bound {
        match self {
            Expr::Or(parts) => simplified(parts.iter().map(|part| part.bind_from(index, scope, bindings)).collect(), true),
            Expr::And(parts) => simplified(parts.iter().map(|part| part.bind_from(index, scope, bindings)).collect(), false),
            Expr::Not(inner) => match inner.bind_from(index, scope, bindings) {
                Bound::Constant(holds) => Bound::Constant(!holds),
                bound => Bound::Not(Box::new(bound)),
            },
            Expr::Test(comparison) => {
                *index += 1;
                match comparison.bind(scope) {
                    Ok(bound) => {
                        bindings.bound(*index - 1);
                        bound
                    }
                    Err(error) => {
                        bindings.failed(*index - 1, error, scope);
                        Bound::Constant(false)
                    }
                }
            }
        }
    }
}

/// Simplifies a disjunction (`decisive` is true) or a conjunction (`decisive` is false): a part that is always
/// `decisive` decides the result, and other constant parts are removed.
fn simplified(mut parts: Vec<Bound>, decisive: bool) -> Bound {
    if parts.contains(&Bound::Constant(decisive)) {
        return Bound::Constant(decisive);
    }
    parts.retain(|part| !matches!(part, Bound::Constant(_)));
    match (parts.len(), decisive) {
        (0, _) => Bound::Constant(!decisive),
        (1, _) => parts.swap_remove(0),
        (_, true) => Bound::Or(parts),
        (_, false) => Bound::And(parts),
    }
}

impl Comparison {
    fn bind(&self, scope: &dyn Scope) -> Result<Bound, Unbound> {
        let textual = matches!(self.op, Op::Equal | Op::NotEqual | Op::Like | Op::Unlike);
        if let Some((fixed, with)) = scope.fixed_text(&self.name).zip(self.value.as_text()).filter(|_| textual) {
            let holds = compare_text(fixed.as_bytes(), self.op, with.as_bytes());
            // In this scope the comparison is false. If it is so in all others too, the text is a mistake.
            let is_other = !holds && matches!(self.op, Op::Equal | Op::Like);
            let unknown = || Unbound::Symbol { name: self.name.clone(), symbol: with.to_owned() };
            return if is_other { Err(unknown()) } else { Ok(Bound::Constant(holds)) };
        }
        let (name, kind) = scope.name(&self.name).ok_or_else(|| Unbound::Name(self.name.clone()))?;
        let name = Reference { name, steps: self.name.steps() };
        match (kind, &self.value) {
            (ValueType::Text | ValueType::Either, Value::Text(with)) if textual => {
                Ok(Bound::Text { name, op: self.op, with: with.clone() })
            }
            // Users of perf write `comm == bash`, without quotes.
            (ValueType::Text, Value::Symbol(word)) if textual => Ok(Bound::Text { name, op: self.op, with: word.clone().into_bytes() }),
            (ValueType::Text, _) => Err(Unbound::NotNumber(self.name.clone())),
            (ValueType::Number | ValueType::Either, Value::Text(_)) => Err(Unbound::NotText(self.name.clone())),
            (ValueType::Number | ValueType::Either, value) if self.op == Op::Bits => {
                Ok(Bound::Bits { name, masks: self.masks(value, scope)? })
            }
            (ValueType::Number | ValueType::Either, value) => Ok(Bound::Compare { name, op: self.op, with: self.number(value, scope)? }),
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
    /// Evaluates the condition for one event.
    pub fn verdict(&self, subject: &dyn Subject) -> Verdict {
        match self {
            Bound::Constant(holds) => Verdict::of(*holds),
            Bound::Or(parts) => any(parts, subject, Verdict::Yes),
            Bound::And(parts) => any(parts, subject, Verdict::No),
            Bound::Not(inner) => inner.verdict(subject).not(),
            Bound::Compare { name, op, with } => subject.test(name, false, &|operand| match operand {
                Operand::Number(number) => Verdict::of(compare(number, *op, *with)),
                Operand::AtLeast(least) => compare_growing(least, *op, *with),
                Operand::Nothing | Operand::Text(_) | Operand::Beginning(_) => Verdict::No,
                Operand::Unknown => Verdict::Unknown,
            }),
            Bound::Bits { name, masks } => subject.test(name, false, &|operand| match operand {
                Operand::Number(number) => Verdict::of(masks.iter().any(|mask| mask.is_in(number as u64))),
                Operand::Nothing | Operand::Text(_) | Operand::Beginning(_) => Verdict::No,
                Operand::AtLeast(_) | Operand::Unknown => Verdict::Unknown,
            }),
            Bound::Text { name, op, with } => subject.test(name, true, &|operand| match operand {
                Operand::Text(text) => Verdict::of(compare_text(&text, *op, with)),
                Operand::Beginning(beginning) => compare_beginning(beginning, *op, with),
                Operand::Nothing | Operand::Number(_) | Operand::AtLeast(_) => Verdict::No,
                Operand::Unknown => Verdict::Unknown,
            }),
        }
    }
}

/// Returns `decisive` if the verdict of a part is that, and otherwise its opposite if all verdicts are known.
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
        // These are bound to `Bits` and `Text`.
        Op::Bits | Op::Like | Op::Unlike => false,
    }
}

/// Compares a number that is at least `least`. The result is known only if it is the same for all larger numbers.
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

/// Compares a text of which only the beginning is known. The result is known only if the rest cannot change it.
fn compare_beginning(beginning: &[u8], op: Op, with: &[u8]) -> Verdict {
    let verdict = match op {
        // The text is longer than `beginning`.
        Op::Equal | Op::NotEqual => match with.len() > beginning.len() && with.starts_with(beginning) {
            true => Verdict::Unknown,
            false => Verdict::No,
        },
        _ => {
            let plain = &with[..with.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(with.len())];
            let both = plain.len().min(beginning.len());
            let is_open = with.ends_with(b"*") && !with.ends_with(b"\\*") && !with.contains(&b'[');
            match is_open && glob::matches(with, beginning) {
                true => Verdict::Yes,
                false if plain[..both] != beginning[..both] => Verdict::No,
                false => Verdict::Unknown,
            }
        }
    };
    if matches!(op, Op::NotEqual | Op::Unlike) { verdict.not() } else { verdict }
}

#[cfg(test)]
mod tests;
