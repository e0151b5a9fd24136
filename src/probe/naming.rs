//! Names of fields, made from what was asked for.

/// `MAX_ARG_NAME_LEN`, less the zero (kernel/trace/trace.h).
const FIELD_NAME_MAX: usize = 31;

/// A name that the kernel takes for a fetch argument: letters, digits and underscores, no digit first; `req->path` becomes `req_path`.
pub fn field(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        name.push('_');
    }
    for character in text.chars() {
        let kept = if character.is_ascii_alphanumeric() { character } else { '_' };
        // What stands between two words of a name is one underscore, however it is written.
        if kept != '_' || character == '_' || !name.ends_with('_') {
            name.push(kept);
        }
    }
    name.truncate(FIELD_NAME_MAX);
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
    fn what_the_kernel_takes() {
        assert_eq!(field("len"), "len");
        assert_eq!(field("__count"), "__count");
        assert_eq!(field("req->list[3].name"), "req_list_3_name");
        assert_eq!((field("3way"), field("end_"), field("é")), ("_3way".to_owned(), "end_".to_owned(), "_".to_owned()));
        assert_eq!(field(&"x".repeat(100)).len(), 31);
    }
}
