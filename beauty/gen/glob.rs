//! `FSMOUNT_*`: patterns of constant names, with `*` for any text and `?` for any character.

/// Whether the whole name fits the pattern.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and up to where it eats.
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

/// Whether the pattern is more than a plain name.
pub fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_fit() {
        for (pattern, name, fits) in [
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
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
