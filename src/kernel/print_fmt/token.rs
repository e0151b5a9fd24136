//! The tokens of a print format's C code.

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token<'a> {
    Name(&'a str),
    Number(i128),
    /// A string literal, with its escapes decoded.
    Text(String),
    /// An operator, parenthesis, bracket or other punctuation.
    Mark(&'a str),
}

/// Operators of more than one character, longest first.
const LONG_MARKS: [&str; 11] = ["->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--"];

/// Splits a text into tokens. Returns `None` if a part is not a token (an unterminated string, a number that is too
/// large, a character that C does not have).
pub fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '"' => string(rest)?,
            '\'' => character(rest)?,
            '0'..='9' => number(rest)?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = word_length(rest);
                (Token::Name(&rest[..length]), length)
            }
            _ if first.is_ascii_punctuation() => {
                let length = LONG_MARKS.iter().find(|mark| rest.starts_with(**mark)).map_or(1, |mark| mark.len());
                (Token::Mark(&rest[..length]), length)
            }
            _ => return None,
        };
        found.push(token);
        rest = rest[length..].trim_start();
    }
    Some(found)
}

/// Splits tokens at the commas that are not within parentheses, brackets or braces.
pub fn split_at_commas<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0i64);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark("(" | "[" | "{") => depth += 1,
            Token::Mark(")" | "]" | "}") => depth -= 1,
            Token::Mark(",") if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len())
}

fn string(text: &str) -> Option<(Token<'_>, usize)> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Token::Text(value), at + 1)),
            '\\' => value.push(escape(characters.next()?.1)),
            other => value.push(other),
        }
    }
    None
}

fn character(text: &str) -> Option<(Token<'_>, usize)> {
    let mut characters = text.char_indices().skip(1);
    let value = match characters.next()?.1 {
        '\\' => escape(characters.next()?.1),
        other => other,
    };
    let (at, end) = characters.next()?;
    (end == '\'').then_some((Token::Number(i128::from(u32::from(value))), at + 1))
}

/// Decodes the character after a backslash. Octal and hexadecimal escapes do not occur.
fn escape(character: char) -> char {
    match character {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        other => other,
    }
}

/// Parses a C integer with its suffix. Its type is dropped, because numbers are exact.
fn number(text: &str) -> Option<(Token<'_>, usize)> {
    let length = word_length(text);
    let digits = text[..length].trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => u64::from_str_radix(&digits[2..], 2),
        [b'0', _, ..] => u64::from_str_radix(&digits[1..], 8),
        _ => digits.parse(),
    };
    Some((Token::Number(i128::from(value.ok()?)), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_into_tokens() {
        let found = tokens("\"a\\\"b\\n\" , REC->x<<0x1fUL 017 'a' __y").unwrap();
        use Token::*;
        let wanted = [
            Text("a\"b\n".into()),
            Mark(","),
            Name("REC"),
            Mark("->"),
            Name("x"),
            Mark("<<"),
            Number(31),
            Number(15),
            Number(97),
            Name("__y"),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn malformed_tokens_are_refused() {
        for bad in ["\"open", "'a", "é", "0x", "99999999999999999999999", "\\\"\\", "12ab"] {
            assert_eq!(tokens(bad), None, "{bad}");
        }
    }

    #[test]
    fn commas_in_brackets_do_not_split() {
        let found = tokens("a, f(b, c), {d, e}").unwrap();
        assert_eq!(split_at_commas(&found).len(), 3);
    }
}
