//! A header's text made plain: no comments, and each logical line in one piece.

/// Lines with their numbers, those that end in a backslash joined.
pub fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let (body, more) = match line.trim_end().strip_suffix('\\') {
            Some(body) => (body, true),
            None => (line, false),
        };
        match lines.last_mut() {
            Some((_, last)) if goes_on => last.push_str(body),
            _ => lines.push((at + 1, body.to_string())),
        }
        goes_on = more;
    }
    lines
}

/// The text with each comment as one blank, line ends kept.
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

/// A string's length with its quotes; it ends with its line at the latest.
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
