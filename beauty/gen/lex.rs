//! A lexer for the C tokens that occur in constant expressions.

use super::int::Int;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Name(String),
    Number(Int),
    /// An operator or a parenthesis.
    Sign(&'static str),
    /// A character of a token that no integer expression contains: a string, a semicolon, a brace, a float.
    Other(char),
}

/// The longest operators come first, so that `<<` is not read as two `<`.
const SIGNS: [&str; 25] =
    ["<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "(", ")", "<", ">", "&", "|", "^", "~", "!", "?", ":", ","];

pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length;
        if first.is_ascii_digit() {
            length = word_length(rest);
            tokens.push(number(&rest[..length]).map_or(Token::Other(first), Token::Number));
        } else if first.is_ascii_alphabetic() || first == '_' {
            length = word_length(rest);
            tokens.push(Token::Name(rest[..length].to_string()));
        } else if let Some((value, used)) = character(rest) {
            length = used;
            tokens.push(Token::Number(Int::signed(value)));
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            length = sign.len();
            tokens.push(Token::Sign(sign));
        } else {
            length = first.len_utf8();
            tokens.push(Token::Other(first));
        }
        rest = rest[length..].trim_start();
    }
    tokens
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Parses an integer literal, like `0x1fUL`, with its C type.
fn number(word: &str) -> Option<Int> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = &word[digits.len()..];
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, &lower[..]),
    };
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let asked_unsigned = suffix.contains(['u', 'U']);
    let may_be_unsigned = asked_unsigned || radix != 10;
    let wide = suffix.contains(['l', 'L']) || value > i128::from(u32::MAX) || (!may_be_unsigned && value > i128::from(i32::MAX));
    let signed_max = if wide { i128::from(i64::MAX) } else { i128::from(i32::MAX) };
    Some(Int::new(value, asked_unsigned || value > signed_max, wide))
}

/// Parses a character literal, like `'T'`, `'\n'`, `'\0'` or `'\x7f'`. Returns its value and its length in bytes.
fn character(text: &str) -> Option<(i64, usize)> {
    let inner = text.strip_prefix('\'')?;
    let end = inner
        .char_indices()
        .skip(1)
        .find(|&(at, c)| c == '\'' && !inner[..at].ends_with('\\') || inner[..at] == *"\\\\")
        .map(|(at, _)| at)?;
    let value = match inner[..end].strip_prefix('\\') {
        None => {
            let mut chars = inner[..end].chars();
            let only = chars.next()?;
            if chars.next().is_some() {
                return None;
            }
            i64::from(u32::from(only))
        }
        Some("n") => 10,
        Some("t") => 9,
        Some("r") => 13,
        Some("\\") => 92,
        Some("'") => 39,
        Some(hex) if hex.starts_with('x') => i64::from_str_radix(&hex[1..], 16).ok()?,
        Some(octal) => i64::from_str_radix(octal, 8).ok()?,
    };
    Some((value, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_number(text: &str) -> Int {
        match &tokens(text)[..] {
            [Token::Number(number)] => *number,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn integer_literals_have_their_c_types() {
        assert_eq!(only_number("10"), Int::new(10, false, false));
        assert_eq!(only_number("010"), Int::new(8, false, false));
        assert_eq!(only_number("0x80000000"), Int::new(0x8000_0000, true, false));
        assert_eq!(only_number("2147483648"), Int::new(0x8000_0000, false, true));
        assert_eq!(only_number("1ULL"), Int::new(1, true, true));
        assert_eq!(only_number("0xffffffffffffffff"), Int::new(u64::MAX.into(), true, true));
        assert_eq!(only_number("0"), Int::signed(0));
    }

    #[test]
    fn character_literals_are_numbers() {
        assert_eq!(only_number("'T'"), Int::signed(84));
        assert_eq!(only_number("'\\0'"), Int::signed(0));
        assert_eq!(only_number("'\\''"), Int::signed(39));
        assert_eq!(only_number("'\\\\'"), Int::signed(92));
    }

    #[test]
    fn tokens_without_a_meaning_in_expressions_are_kept() {
        assert_eq!(tokens("\"a\"")[0], Token::Other('"'));
        assert_eq!(tokens("1.5").len(), 3);
        assert_eq!(tokens("089"), [Token::Other('0')]);
        assert_eq!(tokens("a<<2"), [Token::Name("a".into()), Token::Sign("<<"), Token::Number(Int::signed(2))]);
    }
}
