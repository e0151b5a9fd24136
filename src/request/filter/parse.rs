//! From text to a condition.

use super::ast::{Comparison, Expr, Name, Op, Value};
use crate::text::caret::Misplaced;
use crate::text::units;

type Parsed<T> = Result<T, Misplaced>;

/// Parentheses and `!` deeper than this are refused, so that no text can exhaust the stack.
const DEPTH_MAX: usize = 100;

/// A condition.
///
/// # Errors
/// A mistake in the text, with its place.
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
            return Err(self.wrong(self.at, self.at, "the condition is nested too deep"));
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
        let name = self.word();
        if name.is_empty() {
            return Err(self.missing(start, "a name"));
        }
        if !name.split('.').all(is_name) {
            return Err(self.wrong(
                start,
                self.at,
                format!("`{name}` is no name; a condition begins with the name of an argument, then operator and value"),
            ));
        }
        let name = Name(name.to_owned());
        let op = self.op(&name)?;
        let value = self.value(&name, op)?;
        Ok(Comparison { name, op, value })
    }

    fn op(&mut self, name: &Name) -> Parsed<Op> {
        self.skip_blanks();
        let rest = self.rest();
        let start = self.at;
        if let Some((op, text)) = Op::ALL.iter().find(|(_, text)| rest.starts_with(text)).filter(|_| !rest.starts_with("&&")) {
            self.at += text.len();
            return Ok(*op);
        }
        let what = if rest.starts_with('=') {
            "equality is written ==".to_owned()
        } else if rest.starts_with("&&") || rest.starts_with("||") || rest.is_empty() || rest.starts_with(')') {
            format!("`{name}` is compared with nothing; for a number that is not zero write {name} != 0")
        } else {
            "an operator is missing here (== != < <= > >= & ~ !~)".to_owned()
        };
        Err(self.wrong(start, start, what))
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
            return Err(self.wrong(start, self.at, "strings cannot be combined with |; write two conditions with || between them"));
        }
        let value = if parts.len() == 1 { parts.swap_remove(0) } else { Value::AnyOf(parts) };
        match (op, &value) {
            (Op::Like | Op::Unlike, Value::Number(_) | Value::AnyOf(_)) => {
                Err(self.wrong(start, self.at, "a pattern is a string: put it in quotes"))
            }
            (Op::Like | Op::Unlike, Value::Symbol(word)) => {
                let what = format!("a pattern is a string: {name} {} \"{word}\"", op.text());
                Err(self.wrong(start, self.at, what))
            }
            (Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual | Op::Bits, Value::Text(_)) => {
                Err(self.wrong(start, self.at, "strings can be compared with == != ~ and !~ only"))
            }
            _ => Ok(value),
        }
    }

    /// Whether a single bar follows, not `||`.
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
            let number = number(word, name.is_duration()).map_err(|what| self.wrong(start, self.at, what))?;
            return Ok(Value::Number(if negative { -number } else { number }));
        }
        let whole = &self.text[start..self.at];
        if !is_name(word) {
            return Err(self.wrong(start, self.at, format!("`{whole}` is no value; strings need quotes")));
        }
        // A minus belongs to the symbol: `ret == -ENOENT`.
        Ok(Value::Symbol(whole.to_owned()))
    }

    /// A string in quotes, with `\"` `\'` `\\` `\n` `\t` `\xNN`; before anything else a backslash is itself (patterns use it).
    fn string(&mut self, quote: char) -> Parsed<Value> {
        let start = self.at;
        self.next();
        let mut bytes = Vec::new();
        loop {
            let c = self.next().ok_or_else(|| self.wrong(start, self.text.len(), "this string is not closed"))?;
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
                bytes.push(byte.ok_or_else(|| self.wrong(start, self.at, "\\x wants two hexadecimal digits"))?);
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

    fn wrong(&self, start: usize, end: usize, what: impl Into<String>) -> Misplaced {
        Misplaced::new(self.text, start..end, what)
    }

    fn missing(&self, at: usize, thing: &str) -> Misplaced {
        match self.text[at..].chars().next() {
            None => self.wrong(at, at, format!("{thing} is missing at the end")),
            Some(c) => self.wrong(at, at + c.len_utf8(), format!("{thing} is missing before `{}`", c.escape_default())),
        }
    }

    fn unexpected(&self) -> Misplaced {
        let c = self.rest().chars().next().unwrap_or(' ');
        let what = match c {
            ')' => "this parenthesis closes nothing".to_owned(),
            '&' => "two bits in one condition are written A|B; to join conditions write &&".to_owned(),
            _ => "here && or || should join two conditions".to_owned(),
        };
        self.wrong(self.at, self.at + c.len_utf8(), what)
    }
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A number as C writes it (0x1f, 0644, 42), or with a unit of time or size (10ms, 4K); where a duration is meant, a bare one is milliseconds.
fn number(word: &str, duration: bool) -> Result<i128, String> {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (bare, unit) = word.split_at(word.len() - digits.len());
    let in_range = |value: u64| i128::from(value);
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).map(in_range).map_err(|_| format!("`{word}` is no hexadecimal number of 64 bits"));
    }
    if duration {
        return units::duration(word).map(in_range);
    }
    if unit.is_empty() && bare.len() > 1 && bare.starts_with('0') && !bare.contains('.') {
        return u64::from_str_radix(bare, 8).map(in_range).map_err(|_| format!("`{word}` is no octal number (it begins with 0)"));
    }
    let scale = match unit {
        "" => Some(1),
        _ => units::size_scale(unit).or_else(|| units::time_scale(unit)),
    };
    let scale = scale.ok_or_else(|| format!("`{unit}` is no unit (time: ns us ms s m h; size: K M G)"))?;
    units::scaled(bare, scale).map(in_range)
}

#[cfg(test)]
mod tests;
