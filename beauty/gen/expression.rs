//! An evaluator for C integer constant expressions, as they occur in `#define` and `#if`.

use super::ctype::{Type, type_of};
use super::int::{Int, Names};
use super::lex::{Token, tokens};

/// The depth of nested macro calls beyond which macros are reported as calling each other in a circle.
const DEPTH_MAX: u32 = 32;

/// The macros of `asm-generic/ioctl.h` that make a command, each with the number of its parameters.
const MACROS: [(&str, usize); 8] =
    [("_IO", 2), ("_IOR", 3), ("_IOW", 3), ("_IOWR", 3), ("_IOC", 4), ("_IOR_BAD", 3), ("_IOW_BAD", 3), ("_IOWR_BAD", 3)];

/// Returns the number of parameters of a macro that makes a command.
pub fn parameters_of(name: &str) -> Option<usize> {
    MACROS.iter().find(|(known, _)| *known == name).map(|(_, count)| *count)
}

pub fn evaluate(text: &str, names: &dyn Names) -> Result<Int, String> {
    evaluate_tokens(&tokens(text), names, 0)
}

/// Returns whether the text may be an integer expression. A string, a statement and an empty text are not.
pub fn is_numeric(text: &str) -> bool {
    let tokens = tokens(text);
    !tokens.is_empty() && !tokens.iter().any(|token| matches!(token, Token::Other(sign) if !"[]".contains(*sign)))
}

fn evaluate_tokens(tokens: &[Token], names: &dyn Names, depth: u32) -> Result<Int, String> {
    if depth > DEPTH_MAX {
        return Err("calls macros in a circle".into());
    }
    let mut parser = Parser { tokens, at: 0, names, depth };
    let value = parser.choice()?;
    match parser.peek() {
        None => Ok(value),
        Some(token) => Err(format!("has {} after the end of its expression", show(token))),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    names: &'a dyn Names,
    depth: u32,
}

/// Binary operators by precedence, the lowest first.
const LEVELS: [&[&str]; 10] =
    [&["||"], &["&&"], &["|"], &["^"], &["&"], &["==", "!="], &["<", ">", "<=", ">="], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) { Ok(()) } else { Err(format!("has {} where `{sign}` is expected", self.peek().map_or("its end".into(), show))) }
    }

    fn choice(&mut self) -> Result<Int, String> {
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.choice()?;
        self.expect(":")?;
        let no = self.choice()?;
        Ok(if condition.value != 0 { yes } else { no })
    }

    fn binary(&mut self, level: usize) -> Result<Int, String> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(Token::Sign(sign)) = self.peek()
            && signs.contains(sign)
        {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = apply(sign, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Int, String> {
        for sign in ["-", "+", "~", "!"] {
            if self.take(sign) {
                let of = self.unary()?;
                return Ok(match sign {
                    "-" => Int::new(-of.value, of.unsigned, of.wide),
                    "~" => Int::new(!of.value, of.unsigned, of.wide),
                    "!" => Int::signed((of.value == 0).into()),
                    _ => of,
                });
            }
        }
        if let Some(cast) = self.cast() {
            let of = self.unary()?;
            let narrow = match (cast.bytes, cast.signed) {
                (1, true) => i128::from(of.value as i8),
                (1, false) => i128::from(of.value as u8),
                (2, true) => i128::from(of.value as i16),
                (2, false) => i128::from(of.value as u16),
                _ => of.value,
            };
            return Ok(Int::new(narrow, !cast.signed, cast.bytes == 8));
        }
        self.primary()
    }

    /// Parses a cast, `(type)`. Without an operand behind it, the parentheses are no cast.
    fn cast(&mut self) -> Option<Type> {
        if !matches!(self.peek(), Some(Token::Sign("("))) {
            return None;
        }
        let close = self.tokens[self.at..].iter().position(|token| *token == Token::Sign(")"))? + self.at;
        let cast = type_of(&self.tokens[self.at + 1..close], self.names)?;
        self.tokens.get(close + 1)?;
        self.at = close + 1;
        Some(cast)
    }

    fn primary(&mut self) -> Result<Int, String> {
        let token = self.peek().ok_or("ends where a value is expected")?;
        self.at += 1;
        match token {
            Token::Number(number) => Ok(*number),
            Token::Sign("(") => {
                let value = self.choice()?;
                self.expect(")")?;
                Ok(value)
            }
            Token::Name(name) if name == "defined" => self.defined(),
            Token::Name(name) if matches!(self.peek(), Some(Token::Sign("("))) => {
                let arguments = self.arguments()?;
                self.call(name, &arguments)
            }
            Token::Name(name) => self.names.value(name),
            other => Err(format!("has {} where a value is expected", show(other))),
        }
    }

    /// Parses the operand of `defined X` or `defined(X)`.
    fn defined(&mut self) -> Result<Int, String> {
        let bracket = self.take("(");
        let Some(Token::Name(name)) = self.peek() else { return Err("has `defined` without a name".into()) };
        self.at += 1;
        if bracket {
            self.expect(")")?;
        }
        Ok(Int::signed(self.names.defined(name).into()))
    }

    /// Parses the parenthesized arguments of a call.
    fn arguments(&mut self) -> Result<Vec<&'a [Token]>, String> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        let (mut from, mut depth) = (self.at, 0);
        loop {
            match self.peek().ok_or("has no closing parenthesis")? {
                Token::Sign("(") => depth += 1,
                Token::Sign(")") if depth == 0 => break,
                Token::Sign(")") => depth -= 1,
                Token::Sign(",") if depth == 0 => {
                    arguments.push(&self.tokens[from..self.at]);
                    from = self.at + 1;
                }
                _ => {}
            }
            self.at += 1;
        }
        arguments.push(&self.tokens[from..self.at]);
        self.at += 1;
        Ok(arguments)
    }

    fn call(&self, name: &str, arguments: &[&[Token]]) -> Result<Int, String> {
        match (name, arguments) {
            ("sizeof", [of]) => Ok(Int::new(self.size(of)?.into(), true, true)),
            ("_BITUL" | "_BITULL" | "BIT" | "BIT_ULL" | "__BIT", [bit]) => apply("<<", Int::new(1, true, true), self.evaluate(bit)?),
            ("_UL" | "_ULL", [number]) => Ok(Int::new(self.evaluate(number)?.value, true, true)),
            ("_AC" | "__AC", [number, [Token::Name(suffix)]]) => {
                let number = self.evaluate(number)?;
                let upper = suffix.to_ascii_uppercase();
                Ok(Int::new(number.value, upper.contains('U') || number.unsigned, upper.contains('L') || number.wide))
            }
            ("_IO", [kind, number]) => self.ioctl(0, kind, number, 0),
            ("_IOW" | "_IOW_BAD", [kind, number, of]) => self.ioctl(1, kind, number, self.size(of)?),
            ("_IOR" | "_IOR_BAD", [kind, number, of]) => self.ioctl(2, kind, number, self.size(of)?),
            ("_IOWR" | "_IOWR_BAD", [kind, number, of]) => self.ioctl(3, kind, number, self.size(of)?),
            ("_IOC", [direction, kind, number, size]) => {
                self.ioctl(self.evaluate(direction)?.value as u64, kind, number, self.evaluate(size)?.value as u64)
            }
            _ => self.expand(name, arguments),
        }
    }

    fn evaluate(&self, tokens: &[Token]) -> Result<Int, String> {
        evaluate_tokens(tokens, self.names, self.depth + 1)
    }

    /// Evaluates a call of a macro of the headers, with the arguments substituted for the parameters.
    fn expand(&self, name: &str, arguments: &[&[Token]]) -> Result<Int, String> {
        let (parameters, body) = self.names.function(name).ok_or_else(|| format!("calls {name}(), which no header defines"))?;
        if parameters.len() != arguments.len() {
            return Err(format!("calls {name}() with {} arguments, but the macro takes {}", arguments.len(), parameters.len()));
        }
        let mut expanded = Vec::new();
        for token in tokens(&body) {
            match parameters.iter().position(|parameter| matches!(&token, Token::Name(name) if name == parameter)) {
                Some(at) => expanded.extend_from_slice(arguments[at]),
                None => expanded.push(token),
            }
        }
        self.evaluate(&expanded)
    }

    /// Returns an ioctl command as asm-generic/ioctl.h encodes it: direction << 30 | size << 16 | kind << 8 | number.
    fn ioctl(&self, direction: u64, kind: &[Token], number: &[Token], size: u64) -> Result<Int, String> {
        let (kind, number) = (self.evaluate(kind)?.value, self.evaluate(number)?.value);
        Ok(Int::new(i128::from(direction << 30 | size << 16) | kind << 8 | number, true, false))
    }

    fn size(&self, of: &[Token]) -> Result<u64, String> {
        let open = of.iter().position(|token| *token == Token::Other('['));
        let (of, times) = match (open, of) {
            (Some(open), [.., Token::Other(']')]) => (&of[..open], self.evaluate(&of[open + 1..of.len() - 1])?.value as u64),
            _ => (of, 1),
        };
        type_of(of, self.names).map(|of| of.bytes * times).ok_or_else(|| {
            let words: Vec<String> = of.iter().map(text_of).collect();
            format!("needs the size of `{}`, which is not known: add the struct to beauty/structs/", words.join(" "))
        })
    }
}

fn apply(sign: &str, left: Int, right: Int) -> Result<Int, String> {
    let wide = left.wide || right.wide;
    let unsigned = match (left.wide, right.wide) {
        (true, false) => left.unsigned,
        (false, true) => right.unsigned,
        _ => left.unsigned || right.unsigned,
    };
    let (a, b) = (Int::new(left.value, unsigned, wide).value, Int::new(right.value, unsigned, wide).value);
    let truth = |yes: bool| Ok(Int::signed(yes.into()));
    let value = match sign {
        "<<" | ">>" => {
            let bits = u32::try_from(right.value).ok().filter(|&bits| bits < if left.wide { 64 } else { 32 });
            let bits = bits.ok_or_else(|| format!("shifts by {}", right.value))?;
            let value = if sign == "<<" { left.value << bits } else { left.value >> bits };
            return Ok(Int::new(value, left.unsigned, left.wide));
        }
        "||" => return truth(left.value != 0 || right.value != 0),
        "&&" => return truth(left.value != 0 && right.value != 0),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(a < b),
        ">" => return truth(a > b),
        "<=" => return truth(a <= b),
        ">=" => return truth(a >= b),
        "/" | "%" if b == 0 => return Err("divides by 0".into()),
        "/" => a / b,
        "%" => a % b,
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "+" => a + b,
        "-" => a - b,
        _ => a * b,
    };
    Ok(Int::new(value, unsigned, wide))
}

fn text_of(token: &Token) -> String {
    match token {
        Token::Name(name) => name.clone(),
        Token::Number(number) => number.value.to_string(),
        Token::Sign(sign) => (*sign).to_string(),
        Token::Other(sign) => sign.to_string(),
    }
}

fn show(token: &Token) -> String {
    format!("`{}`", text_of(token))
}

#[cfg(test)]
mod tests;
