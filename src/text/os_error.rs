//! Formatting of operating system errors.

/// Removes the `(os error N)` that Rust appends to errors, because the text before it names the error.
pub fn without_error_numbers(message: &str) -> String {
    const MARK: &str = " (os error ";
    let mut parts = message.split(MARK);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => plain.push_str(rest),
            _ => {
                plain.push_str(MARK);
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

    #[test]
    fn error_numbers_are_removed_and_other_text_is_kept() {
        let refused = Error::from_raw_os_error(13);
        assert_eq!(without_error_numbers(&format!("x: {refused}; y: {refused}.")), "x: Permission denied; y: Permission denied.");
        assert_eq!(without_error_numbers("a file called z (os error x)"), "a file called z (os error x)");
        assert_eq!(without_error_numbers(""), "");
    }
}
