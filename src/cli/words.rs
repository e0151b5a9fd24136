//! Splits RTRACE_OPTS into words as a shell would, without expanding anything.

/// Returns the words of a text. They are separated by blanks, and '...', "..." and \ quote as in a shell.
///
/// # Errors
/// A quote is not closed.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' => quoted(c, &mut chars, word.get_or_insert_default())?,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Appends to `word` the text after an opening quote, up to the closing one. Within double quotes, a backslash quotes
/// only `"`, `\`, `$` and the backquote.
fn quoted(quote: char, chars: &mut std::str::Chars, word: &mut String) -> Result<(), String> {
    let mut next = || chars.next().ok_or_else(|| format!("a {quote} is not closed"));
    loop {
        match next()? {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_in_a_shell() {
        for (text, words) in [
            ("", vec![]),
            ("  -e openat\t-s\n", vec!["-e", "openat", "-s"]),
            (r#"--filter 'ret < 0' -e "%file,!statx""#, vec!["--filter", "ret < 0", "-e", "%file,!statx"]),
            (r#"a\ b '' "\"\n" x'y'"z""#, vec!["a b", "", r#""\n"#, "xyz"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        assert_eq!(split("-e 'open"), Err("a ' is not closed".to_owned()));
        assert_eq!(split("-e \"open\\"), Err("a \" is not closed".to_owned()));
    }
}
