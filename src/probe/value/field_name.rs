//! Names of an event's fields, derived from the expressions that are fetched.

use crate::probe::grammar::ARG_NAME_BYTES_MAX;

/// Returns a name that the kernel accepts for a fetch argument: letters, digits and underscores, no digit first. For
/// example, `req->path` becomes `req_path`.
pub fn of(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        name.push('_');
    }
    for character in text.chars() {
        let kept = if character.is_ascii_alphanumeric() { character } else { '_' };
        // A sequence of other characters becomes a single underscore.
        if kept != '_' || character == '_' || !name.ends_with('_') {
            name.push(kept);
        }
    }
    name.truncate(ARG_NAME_BYTES_MAX);
    let bare = name.trim_end_matches('_').len();
    if bare > 0 && !text.ends_with('_') {
        name.truncate(bare);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_for_the_kernel() {
        assert_eq!(of("len"), "len");
        assert_eq!(of("__count"), "__count");
        assert_eq!(of("req->list[3].name"), "req_list_3_name");
        assert_eq!((of("3way"), of("end_"), of("é")), ("_3way".to_owned(), "end_".to_owned(), "_".to_owned()));
        assert_eq!(of(&"x".repeat(100)).len(), 32);
    }
}
