//! Names that are near to a mistyped one.

/// At most `most` of the names that resemble `word`, the nearest first; names that contain it, or that it contains, count as near.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let word = word.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = names.into_iter().filter_map(|name| Some((distance(&word, name)?, name))).collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(most);
    near.into_iter().map(|(_, name)| name).collect()
}

/// `; near: a, b`, or nothing: to be put behind a sentence about an unknown name.
pub fn hint(near: &[impl AsRef<str>]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = near.iter().map(AsRef::as_ref).collect();
    format!("; near: {}", names.join(", "))
}

/// Edits between the two, `None` when that is too many to be a slip; a contained word is worth two edits at most.
fn distance(word: &str, name: &str) -> Option<usize> {
    let lower = name.to_ascii_lowercase();
    let edits = strsim::damerau_levenshtein(word, &lower);
    let allowed = (word.chars().count().max(2) / 3).max(1);
    if edits <= allowed {
        return Some(edits);
    }
    let contained = word.len() >= 3 && lower.contains(word) || lower.len() >= 4 && word.contains(&lower);
    contained.then_some(allowed + edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 8] = ["open", "openat", "openat2", "close", "epoll_wait", "pread64", "read", "io_pgetevents"];

    #[test]
    fn slips() {
        assert_eq!(nearest("opnat", NAMES, 2), ["openat"]);
        assert_eq!(nearest("clsoe", NAMES, 3), ["close"]);
        assert_eq!(nearest("OPEN", NAMES, 1), ["open"]);
    }

    #[test]
    fn parts() {
        assert_eq!(nearest("getevents", NAMES, 3), ["io_pgetevents"]);
        assert_eq!(nearest("sys_close", NAMES, 3), ["close"]);
    }

    #[test]
    fn nothing_near() {
        assert!(nearest("xyzzy", NAMES, 3).is_empty());
        assert_eq!(hint(&nearest("xyzzy", NAMES, 3)), "");
        assert_eq!(hint(&["a", "b"]), "; near: a, b");
    }
}
