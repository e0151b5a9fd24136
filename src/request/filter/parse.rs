//! Parses the text of conditions.

use super::ast::{Comparison, Expr, Name, Op, Value};
use crate::text::caret::SyntaxError;
use crate::text::quantity;

type Parsed<T> = Result<T, SyntaxError>;

/// The maximum depth of nested parentheses and `!`, so that no text can exhaust the stack.
const DEPTH_MAX: usize = 100;

/// Parses a condition.
///
/// # Errors
/// The text has a syntax error.
pub fn parse(text: &str) -> Parsed<Expr> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expr = parser.expr()?;
    parser.skip_blanks();
    if parser.at < text.len() { Err(parser.unexpected()) } else { Ok(expr) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn expr(&mut self) -> Parsed<Expr> {
        self.chain("||", Parser::and, Expr::Or)
    }

    fn and(&mut self) -> Parsed<Expr> {
        self.chain("&&", Parser::unary, Expr::And)
    }

    fn chain(&mut self, between: &str, part: fn(&mut Self) -> Parsed<Expr>, all: fn(Vec<Expr>) -> Expr) -> Parsed<Expr> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.take(between) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { all(parts) })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        self.skip_blanks();
        if self.depth == DEPTH_MAX {
            return Err(self.wrong(self.at, self.at, "the condition is nested too deeply"));
        }
        self.depth += 1;
        let open = self.at;
        let expr = if self.take("!") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.take("(") {
            let inner = self.expr()?;
            if !self.take(")") {
                return Err(if self.at < self.text.len() {
                    self.unexpected()
                } else {
                    self.wrong(open, open + 1, "this parenthesis is not closed")
                });
            }
            inner
        } else {
            Expr::Test(self.comparison()?)
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn comparison(&mut self) -> Parsed<Comparison> {
        let start = self.at;
        let head = self.word();
        if head.is_empty() {
            return Err(self.missing(start, "a name"));
        }
        while self.rest().starts_with('[') {
            self.element()?;
            self.word();
        }
        let name = &self.text[start..self.at];
        let mut words = name.split('.').map(|part| part.split('[').next().unwrap_or_default());
        let elements_end = name.split(']').skip(1).all(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        if !words.all(is_name) || !elements_end {
            return Err(self.wrong(
                start,
                self.at,
                format!("`{name}` is not a name; a condition consists of a name, an operator and a value, like fd == 3"),
            ));
        }
        let name = Name(name.to_owned());
        let op = self.op(&name)?;
        let value = self.value(&name, op)?;
        Ok(Comparison { name, op, value })
    }

    /// Parses the index of an array element, in brackets.
    fn element(&mut self) -> Parsed<()> {
        let start = self.at;
        let Some(end) = self.rest().find(']') else { return Err(self.wrong(start, start + 1, "this bracket is not closed")) };
        let index = &self.rest()[1..end];
        self.at += end + 1;
        match index == "*" || (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) && index.parse::<u32>().is_ok()) {
            true => Ok(()),
            false => Err(self.wrong(
                start,
                self.at,
                format!("`[{index}]` is not an element; write [0] for the first one and so on, or [*] for any"),
            )),
        }
    }

    fn op(&mut self, name: &Name) -> Parsed<Op> {
        self.skip_blanks();
        let rest = self.rest();
        let start = self.at;
        if let Some((op, text)) = Op::ALL.iter().find(|(_, text)| rest.starts_with(text)).filter(|_| !rest.starts_with("&&")) {
            self.at += text.len();
            return Ok(*op);
        }
        let message = if rest.starts_with('=') {
            "use == to test for equality".to_owned()
        } else if rest.starts_with("&&") || rest.starts_with("||") || rest.is_empty() || rest.starts_with(')') {
            format!("`{name}` has no operator and no value; to test for a number other than 0, write {name} != 0")
        } else {
            "an operator is missing (== != < <= > >= & ~ !~)".to_owned()
        };
        Err(self.wrong(start, start, message))
    }

    fn value(&mut self, name: &Name, op: Op) -> Parsed<Value> {
        self.skip_blanks();
        let start = self.at;
        let first = self.part(name)?;
        let mut parts = vec![first];
        while self.peek_bar() {
            self.take("|");
            self.skip_blanks();
            parts.push(self.part(name)?);
        }
        if parts.len() > 1 && parts.iter().any(|part| matches!(part, Value::Text(_))) {
            return Err(self.wrong(start, self.at, "strings cannot be combined with |; write two conditions and join them with ||"));
        }
        let value = if parts.len() == 1 { parts.swap_remove(0) } else { Value::AnyOf(parts) };
        match (op, &value) {
            (Op::Like | Op::Unlike, Value::Number(_) | Value::AnyOf(_)) => {
                Err(self.wrong(start, self.at, "a pattern must be a string in quotes"))
            }
            (Op::Like | Op::Unlike, Value::Symbol(word)) => {
                let message = format!("a pattern must be a string in quotes: {name} {} \"{word}\"", op.text());
                Err(self.wrong(start, self.at, message))
            }
            (Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual | Op::Bits, Value::Text(_)) => {
                Err(self.wrong(start, self.at, "strings can only be compared with == != ~ !~"))
            }
            _ => Ok(value),
        }
    }

    /// Returns whether a single bar follows, and not `||`.
    fn peek_bar(&mut self) -> bool {
        self.skip_blanks();
        self.rest().starts_with('|') && !self.rest().starts_with("||")
    }

    fn part(&mut self, name: &Name) -> Parsed<Value> {
        let start = self.at;
        if let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '"' | '\'')) {
            return self.string(quote);
        }
        let negative = self.rest().starts_with('-');
        self.at += usize::from(negative);
        let word = self.word();
        if word.is_empty() {
            return Err(self.missing(start, "a value"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = number(word, name.is_duration()).map_err(|message| self.wrong(start, self.at, message))?;
            return Ok(Value::Number(if negative { -number } else { number }));
        }
        let whole = &self.text[start..self.at];
        if !is_name(word) {
            return Err(self.wrong(start, self.at, format!("`{whole}` is not a value; strings need quotes")));
        }
        // A minus is part of the symbol: `ret == -ENOENT`.
        Ok(Value::Symbol(whole.to_owned()))
    }

    /// Parses a string in quotes. The escapes are `\"` `\'` `\\` `\n` `\t` `\xNN`; before other characters, a backslash
    /// is kept, because patterns use it.
    fn string(&mut self, quote: char) -> Parsed<Value> {
        let start = self.at;
        self.next();
        let mut bytes = Vec::new();
        loop {
            let c = self.next().ok_or_else(|| self.wrong(start, self.text.len(), "this string has no closing quote"))?;
            if c == quote {
                return Ok(Value::Text(bytes));
            }
            if c == '\\' { self.escape(&mut bytes)? } else { push(&mut bytes, c) }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Parsed<()> {
        let start = self.at - 1;
        match self.next() {
            Some(c @ ('"' | '\'' | '\\')) => push(bytes, c),
            Some('n') => bytes.push(b'\n'),
            Some('t') => bytes.push(b'\t'),
            Some('x') => {
                let byte = self.rest().get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
                bytes.push(byte.ok_or_else(|| self.wrong(start, self.at, "\\x needs two hexadecimal digits"))?);
                self.at += 2;
            }
            Some(c) => {
                bytes.push(b'\\');
                push(bytes, c);
            }
            None => {}
        }
        Ok(())
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn take(&mut self, wanted: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn wrong(&self, start: usize, end: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.text, start..end, message)
    }

    fn missing(&self, at: usize, thing: &str) -> SyntaxError {
        match self.text[at..].chars().next() {
            None => self.wrong(at, at, format!("{thing} is missing at the end")),
            Some(c) => self.wrong(at, at + c.len_utf8(), format!("{thing} is missing before `{}`", c.escape_default())),
        }
    }

    fn unexpected(&self) -> SyntaxError {
        let c = self.rest().chars().next().unwrap_or(' ');
        let message = match c {
            ')' => "this closing parenthesis has no opening one".to_owned(),
            '&' => "use A|B to test several bits, and && to join conditions".to_owned(),
            _ => "&& or || is missing between two conditions".to_owned(),
        };
        self.wrong(self.at, self.at + c.len_utf8(), message)
    }
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Parses a number in the syntax of C (0x1f, 0644, 42), or with a unit of time or size (10ms, 4K). A duration without a
/// unit is milliseconds.
fn number(word: &str, duration: bool) -> Result<i128, String> {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (bare, unit) = word.split_at(word.len() - digits.len());
    let in_range = |value: u64| i128::from(value);
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).map(in_range).map_err(|_| format!("`{word}` is not a hexadecimal number of at most 64 bits"));
    }
    if duration {
        return quantity::duration(word).map(in_range);
    }
    if unit.is_empty() && bare.len() > 1 && bare.starts_with('0') && !bare.contains('.') {
        return u64::from_str_radix(bare, 8)
            .map(in_range)
            .map_err(|_| format!("`{word}` is not an octal number (a leading 0 means octal)"));
    }
    let scale = match unit {
        "" => Some(1),
        _ => quantity::size_scale(unit).or_else(|| quantity::time_scale(unit)),
    };
    let scale = scale.ok_or_else(|| format!("`{unit}` is not a unit (of time: ns us ms s m h; of size: K M G)"))?;
    quantity::scaled(bare, scale).map(in_range)
}

#[cfg(test)]
mod tests;
