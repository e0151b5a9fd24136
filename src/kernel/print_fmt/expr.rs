//! Expressions of a print format, and their values.
//!
//! Numbers are exact (`i128`), and truncated only by casts to a type of known width. Constants are folded while
//! parsing. Depth and length of other expressions are bounded, so that no text makes the parser, or the drop of its
//! tree, run out of stack.

use super::token::{Token, split_at_commas};
use crate::kernel::ctype::CType;
use crate::kernel::field::sign_extend;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Number(i128),
    Text(String),
    /// `REC->name`
    Field(String),
    /// `REC->name[N]`
    Element(String),
    Cast(CType, Box<Expr>),
    Unary(Unary, Box<Expr>),
    Binary(Box<Expr>, &'static str, Box<Expr>),
    Condition(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `__print_flags`, with the separator of names.
    Flags {
        value: Box<Expr>,
        between: String,
        names: Vec<(u64, String)>,
    },
    /// `__print_symbolic`
    Symbolic {
        value: Box<Expr>,
        names: Vec<(u64, String)>,
    },
    /// `__print_hex` of a field.
    HexBytes(String),
    /// An expression that the parser does not understand.
    Opaque,
}

/// A unary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Minus,
    Not,
    Complement,
}

/// The greatest nesting of parentheses.
const DEPTH_MAX: u32 = 64;
/// The greatest number of consecutive operators of one precedence that are not folded.
const CHAIN_MAX: u32 = 8;

/// Binary operators by precedence, the lowest first.
const RANKS: [&[&str]; 10] =
    [&["||"], &["&&"], &["|"], &["^"], &["&"], &["==", "!="], &["<=", ">=", "<", ">"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

/// Parses tokens. The result is [`Expr::Opaque`] if they are not an expression, or not one that is understood.
pub fn parse(tokens: &[Token]) -> Expr {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    parser.expression().filter(|_| parser.at == tokens.len()).unwrap_or(Expr::Opaque)
}

impl Expr {
    /// Evaluates the expression. `field` returns the values of fields. The result is `None` if a part cannot be
    /// evaluated.
    pub fn value(&self, field: &dyn Fn(&str) -> Option<i128>) -> Option<i128> {
        match self {
            Expr::Number(number) => Some(*number),
            Expr::Field(name) => field(name),
            Expr::Cast(ctype, inner) => Some(cast(*ctype, inner.value(field)?)),
            Expr::Unary(operator, inner) => unary(*operator, inner.value(field)?),
            Expr::Binary(left, operator, right) => binary(left.value(field)?, operator, right.value(field)?),
            Expr::Condition(condition, yes, no) => if condition.value(field)? != 0 { yes } else { no }.value(field),
            _ => None,
        }
    }

    /// Returns the field, if the expression is a field or a cast of one.
    pub fn plain_field(&self) -> Option<&str> {
        match self {
            Expr::Field(name) => Some(name),
            Expr::Cast(_, inner) => inner.plain_field(),
            _ => None,
        }
    }

    /// Returns the field, if the expression is a field, a cast of one, or an element of one.
    pub fn of_field(&self) -> Option<&str> {
        match self {
            Expr::Element(name) => Some(name),
            other => other.plain_field(),
        }
    }

    /// Whether `passes` holds for all fields in the expression. It is false for expressions that are not plain
    /// arithmetic.
    pub fn fields_all(&self, passes: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Expr::Field(name) => passes(name),
            Expr::Cast(_, inner) | Expr::Unary(_, inner) => inner.fields_all(passes),
            Expr::Binary(left, _, right) => left.fields_all(passes) && right.fields_all(passes),
            Expr::Condition(a, b, c) => a.fields_all(passes) && b.fields_all(passes) && c.fields_all(passes),
            Expr::Number(_) | Expr::Text(_) => true,
            Expr::Element(_) | Expr::Flags { .. } | Expr::Symbolic { .. } | Expr::HexBytes(_) | Expr::Opaque => false,
        }
    }
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    depth: u32,
}

impl<'t, 'a> Parser<'t, 'a> {
    fn expression(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let condition = self.binary(0)?;
        let found = if self.take("?") {
            let yes = self.expression()?;
            let no = self.take(":").then(|| self.expression())??;
            match condition {
                Expr::Number(number) => Some(if number != 0 { yes } else { no }),
                condition => Some(Expr::Condition(condition.into(), yes.into(), no.into())),
            }
        } else {
            Some(condition)
        };
        self.depth -= 1;
        found
    }

    fn binary(&mut self, rank: usize) -> Option<Expr> {
        let Some(operators) = RANKS.get(rank) else { return self.unary() };
        let mut left = self.binary(rank + 1)?;
        let mut chain = 0;
        while let Some(operator) = operators.iter().find(|operator| self.take(operator)) {
            let right = self.binary(rank + 1)?;
            left = match (&left, &right) {
                (Expr::Number(a), Expr::Number(b)) => Expr::Number(binary(*a, operator, *b)?),
                _ => Expr::Binary(left.into(), operator, right.into()),
            };
            chain += u32::from(!matches!(left, Expr::Number(_)));
            if chain > CHAIN_MAX {
                return None;
            }
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        let mut operators = Vec::new();
        loop {
            operators.push(match self.tokens.get(self.at)? {
                Token::Mark("-") => Some(Unary::Minus),
                Token::Mark("!") => Some(Unary::Not),
                Token::Mark("~") => Some(Unary::Complement),
                Token::Mark("+") => None,
                _ => break,
            });
            self.at += 1;
            if operators.len() > CHAIN_MAX as usize {
                return None;
            }
        }
        let inner = self.primary()?;
        operators.into_iter().rev().flatten().try_fold(inner, |inner, operator| match inner {
            Expr::Number(number) => unary(operator, number).map(Expr::Number),
            inner => Some(Expr::Unary(operator, inner.into())),
        })
    }

    fn primary(&mut self) -> Option<Expr> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token {
            Token::Number(number) => Some(Expr::Number(*number)),
            Token::Text(text) => {
                let mut text = text.clone();
                while let Some(Token::Text(more)) = self.tokens.get(self.at) {
                    text.push_str(more);
                    self.at += 1;
                }
                Some(Expr::Text(text))
            }
            Token::Mark("(") => match self.cast_type() {
                Some(ctype) => {
                    self.depth += 1;
                    let inner = if self.depth > DEPTH_MAX { None } else { self.unary() }?;
                    self.depth -= 1;
                    Some(match inner {
                        Expr::Number(number) => Expr::Number(cast(ctype, number)),
                        inner => Expr::Cast(ctype, inner.into()),
                    })
                }
                None => {
                    let inner = self.expression()?;
                    self.take(")").then_some(inner)
                }
            },
            Token::Name("REC") if self.take("->") => {
                let Some(Token::Name(name)) = self.tokens.get(self.at) else { return None };
                self.at += 1;
                if let [Token::Mark("["), Token::Number(_), Token::Mark("]"), ..] = &self.tokens[self.at..] {
                    self.at += 3;
                    return Some(Expr::Element((*name).to_owned()));
                }
                // An element or a member is not the field itself.
                let part = matches!(self.tokens.get(self.at), Some(Token::Mark("[" | "." | "->" | "(" | "++" | "--")));
                (!part).then(|| Expr::Field((*name).to_owned()))
            }
            Token::Name(name) if self.take("(") => self.call(name),
            _ => None,
        }
    }

    /// Parses the type of a cast behind its opening parenthesis, and the closing one. Consumes nothing if there is no
    /// type.
    fn cast_type(&mut self) -> Option<CType> {
        let end = self.at + self.tokens[self.at..].iter().position(|token| *token == Token::Mark(")"))?;
        let mut words = Vec::new();
        for token in &self.tokens[self.at..end] {
            match token {
                Token::Name("__force") => {}
                Token::Name(word) => words.push(*word),
                Token::Mark("*") if !words.is_empty() => words.push("*"),
                _ => return None,
            }
        }
        let first = *words.first()?;
        // `(NAME * 4)` is a product. It is a pointer type only if the name is that of a type.
        let is_type =
            matches!(first, "enum" | "struct" | "union" | "void" | "const") || first.ends_with("_t") || CType::of(first) != CType::Other;
        let ctype = CType::of(&words.join(" "));
        is_type.then(|| {
            self.at = end + 1;
            ctype
        })
    }

    /// Parses a call behind its opening parenthesis.
    fn call(&mut self, name: &str) -> Option<Expr> {
        let start = self.at;
        let mut depth = 1;
        while depth > 0 {
            match self.tokens.get(self.at)? {
                Token::Mark("(" | "{" | "[") => depth += 1,
                Token::Mark(")" | "}" | "]") => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        let arguments = split_at_commas(&self.tokens[start..self.at - 1]);
        let nested = |tokens: &[Token]| {
            let mut parser = Parser { tokens, at: 0, depth: self.depth + 1 };
            parser.expression().filter(|_| parser.at == tokens.len()).unwrap_or(Expr::Opaque)
        };
        if self.depth >= DEPTH_MAX {
            return None;
        }
        Some(match (name, arguments.as_slice()) {
            ("__print_flags" | "__print_flags_u64", [value, between, names @ ..]) => match nested(between) {
                Expr::Text(between) => Expr::Flags { value: nested(value).into(), between, names: pairs(names, &nested) },
                _ => Expr::Opaque,
            },
            ("__print_symbolic" | "__print_symbolic_u64", [value, names @ ..]) => {
                Expr::Symbolic { value: nested(value).into(), names: pairs(names, &nested) }
            }
            ("__print_hex" | "__print_hex_str", [bytes, _]) => {
                nested(bytes).plain_field().map_or(Expr::Opaque, |f| Expr::HexBytes(f.to_owned()))
            }
            ("__builtin_expect", [value, _]) => nested(value),
            _ => Expr::Opaque,
        })
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Mark(next)) if *next == mark);
        self.at += usize::from(found);
        found
    }
}

/// Parses the `{ value, "name" }` pairs. A pair is left out if its value is not a constant (an enumerator that the
/// kernel left unresolved), or its name has control characters, which may come from a user's own event.
fn pairs(tokens: &[&[Token]], parse: &dyn Fn(&[Token]) -> Expr) -> Vec<(u64, String)> {
    let pair = |tokens: &&[Token]| {
        let [Token::Mark("{"), inner @ .., Token::Mark("}")] = *tokens else { return None };
        let &[value, name] = split_at_commas(inner).as_slice() else { return None };
        match (parse(value), parse(name)) {
            (Expr::Number(value), Expr::Text(name)) if !name.is_empty() && !name.contains(char::is_control) => Some((value as u64, name)),
            _ => None,
        }
    };
    tokens.iter().filter_map(pair).collect()
}

fn cast(ctype: CType, number: i128) -> i128 {
    match ctype {
        CType::Char | CType::Signed(1) => i128::from(number as i8),
        CType::Signed(bytes) => i128::from(sign_extend(number as u64, bytes)),
        CType::Unsigned(bytes) => i128::from(number as u64 & (u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8))))),
        CType::Bool => i128::from(number != 0),
        CType::Pointer | CType::Other => number,
    }
}

fn unary(operator: Unary, number: i128) -> Option<i128> {
    match operator {
        Unary::Minus => number.checked_neg(),
        Unary::Not => Some(i128::from(number == 0)),
        Unary::Complement => Some(!number),
    }
}

fn binary(a: i128, operator: &str, b: i128) -> Option<i128> {
    let shift = || u32::try_from(b).ok().filter(|bits| *bits < 64);
    Some(match operator {
        "||" => i128::from(a != 0 || b != 0),
        "&&" => i128::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i128::from(a == b),
        "!=" => i128::from(a != b),
        "<=" => i128::from(a <= b),
        ">=" => i128::from(a >= b),
        "<" => i128::from(a < b),
        ">" => i128::from(a > b),
        "<<" => a.checked_mul(1i128 << shift()?)?,
        ">>" => a >> shift()?,
        "+" => a.checked_add(b)?,
        "-" => a.checked_sub(b)?,
        "*" => a.checked_mul(b)?,
        "/" => a.checked_div(b)?,
        "%" => a.checked_rem(b)?,
        _ => return None,
    })
}
