//! Names of events and of their fields, made from what was asked for.

/// `MAX_EVENT_NAME_LEN`, less the zero (kernel/trace/trace.h).
const EVENT_NAME_MAX: usize = 63;

/// A name that the kernel takes for an event.
pub fn event(text: &str) -> String {
    identifier(text, EVENT_NAME_MAX)
}

/// C's idea of a name: letters, digits and underscores, no digit first.
fn identifier(text: &str, most: usize) -> String {
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
    name.truncate(most);
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
        assert_eq!(event("handle"), "handle");
        assert_eq!(event("__libc_start_main"), "__libc_start_main");
        assert_eq!(event("ns::Class<int>::method(char const*)"), "ns_Class_int_method_char_const");
        assert_eq!(event("3way"), "_3way");
        assert_eq!((event("end_"), event("é")), ("end_".to_owned(), "_".to_owned()));
        assert_eq!(event(&"x".repeat(100)).len(), 63);
    }
}
