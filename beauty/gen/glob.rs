//! Glob patterns of constant names, like `FSMOUNT_*`: `*` matches any text and `?` any single character.

/// Returns whether the pattern matches the whole name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to resume after a mismatch: the last star in the pattern, and the end of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((star_p, star_n)) = star else { return false };
                star = Some((star_p, star_n + 1));
                p = star_p + 1;
                n = star_n + 1;
            }
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// Returns whether the pattern contains a wildcard.
pub fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_name() {
        for (pattern, name, expected) in [
            ("O_*", "O_RDONLY", true),
            ("O_*", "FOO_RDONLY", false),
            ("*_MAX", "SEEK_MAX", true),
            ("*_MAX", "SEEK_MAXI", false),
            ("A*B*C", "AxBxBxC", true),
            ("A*B*C", "AxBxBx", false),
            ("SIG?", "SIGX", true),
            ("SIG?", "SIG", false),
            ("X", "X", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
