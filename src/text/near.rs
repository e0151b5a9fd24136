//! Finds names that are similar to a mistyped one.

/// Returns at most `most` of the names that are similar to `word`, the most similar first. Names that contain the word,
/// or that it contains, are similar, too.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let word = word.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = names.into_iter().filter_map(|name| Some((distance(&word, name)?, name))).collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(most);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Returns `; similar: a, b` to append to an error about an unknown name, or an empty text if there are no names.
pub fn hint(near: &[impl AsRef<str>]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = near.iter().map(AsRef::as_ref).collect();
    format!("; similar: {}", names.join(", "))
}

/// Returns a rank of the similarity, or `None` if the two are not similar. The rank is the number of edits between
/// them, up to a limit. Names of which one contains the other rank after those.
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
    fn names_with_a_typing_error_are_similar() {
        assert_eq!(nearest("opnat", NAMES, 2), ["openat"]);
        assert_eq!(nearest("clsoe", NAMES, 3), ["close"]);
        assert_eq!(nearest("OPEN", NAMES, 1), ["open"]);
    }

    #[test]
    fn names_that_contain_each_other_are_similar() {
        assert_eq!(nearest("getevents", NAMES, 3), ["io_pgetevents"]);
        assert_eq!(nearest("sys_close", NAMES, 3), ["close"]);
    }

    #[test]
    fn unrelated_names_are_not_similar() {
        assert!(nearest("xyzzy", NAMES, 3).is_empty());
        assert_eq!(hint(&nearest("xyzzy", NAMES, 3)), "");
        assert_eq!(hint(&["a", "b"]), "; similar: a, b");
    }
}
