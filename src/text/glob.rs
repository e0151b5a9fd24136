//! Glob patterns over bytes: `*`, `?`, `[a-z]`, `[!a-z]` and `\`.
//!
//! The syntax is that of `~` in the kernel's event filters (lib/glob.c), so that a pattern means the same in the kernel
//! and in rtrace: `*` matches slashes, and braces are ordinary characters.

/// Returns whether the pattern matches the whole text. The time is linear in practice, because matching is retried only
/// from the last `*`.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
            continue;
        }
        if let Some(&byte) = text.get(t) {
            if let Some(next) = step(pattern, p, byte) {
                (p, t) = (next, t + 1);
                continue;
            }
        } else if p >= pattern.len() {
            return true;
        }
        match &mut retry {
            Some((after_star, from)) if *from < text.len() => {
                *from += 1;
                (p, t) = (*after_star, *from);
            }
            _ => return false,
        }
    }
}

/// Returns whether the word contains a wildcard.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Matches one byte against the element at `p`. Returns the position after the element, or `None` if it does not match.
fn step(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => match class(pattern, p + 1, byte) {
            Some((true, next)) => Some(next),
            Some((false, _)) => None,
            // Without a closing bracket, this is an ordinary character.
            None => (byte == b'[').then_some(p + 1),
        },
        b'\\' => match pattern.get(p + 1) {
            Some(&escaped) => (escaped == byte).then_some(p + 2),
            None => (byte == b'\\').then_some(p + 1),
        },
        plain => (plain == byte).then_some(p + 1),
    }
}

/// Matches one byte against a class; `p` is the position after its `[`. Returns whether it matches, and the position
/// after the class, or `None` if the class has no end. A `]` at the beginning is a member of the class.
fn class(pattern: &[u8], mut p: usize, byte: u8) -> Option<(bool, usize)> {
    let inverted = pattern.get(p) == Some(&b'!');
    p += usize::from(inverted);
    let first = p;
    let mut inside = false;
    loop {
        let low = *pattern.get(p)?;
        if low == b']' && p > first {
            return Some((inside != inverted, p + 1));
        }
        let high = match (pattern.get(p + 1), pattern.get(p + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                p += 2;
                high
            }
            _ => low,
        };
        p += 1;
        inside |= (low..=high).contains(&byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "/etc/passwd", true),
            ("/etc/*", "/etc/passwd", true),
            ("/etc/*", "/usr/etc/", false),
            ("*.so*", "/lib/libc.so.6", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("epoll_?wait", "epoll_pwait", true),
            ("epoll_?wait", "epoll_wait", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[!a-c]x", "ax", false),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("[ab", "[ab", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("\\", "\\", true),
            ("{a,b}", "{a,b}", true),
            ("{a,b}", "a", false),
            ("**", "x", true),
            ("a*", "", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_match() {
        assert!(matches(b"/tmp/*\xff", b"/tmp/a\xfe\xff"));
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let text = vec![b'a'; 20_000];
        assert!(!matches(b"a*a*a*a*a*a*a*a*a*b", &text));
    }
}
