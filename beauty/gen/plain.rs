//! The first steps of preprocessing a header: comments are removed and continued lines are joined.

/// Returns the logical lines, each with the number of its first line. A line that ends in a backslash is joined with
/// the next one.
pub fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (at, line) in text.lines().enumerate() {
        let (body, continues) = match line.trim_end().strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        match lines.last_mut() {
            Some((_, last)) if is_continued => last.push_str(body),
            _ => lines.push((at + 1, body.to_string())),
        }
        is_continued = continues;
    }
    lines
}

/// Returns the text with each comment replaced by one blank. Line ends inside comments are kept, so that line numbers
/// stay the same.
pub fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("/*") {
            let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
            plain.push(' ');
            plain.extend(rest[..length].chars().filter(|&c| c == '\n'));
            length
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else {
            let length = if rest.starts_with('"') { string_length(rest) } else { 1 };
            plain.push_str(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}

/// Returns the length in bytes of a string literal with its quotes. An unterminated literal ends at the end of its
/// line.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}
