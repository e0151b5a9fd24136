//! The conversion specifications (`%s`, `%08lx`, `%pI4`) of a print format's text.

use super::Hint;

/// A conversion specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The index of the argument that it prints, from 0 on.
    pub argument: usize,
    /// Whether it follows the previous conversion without text between them.
    pub adjacent: bool,
    /// What the conversion says about the argument; `None` if it says no more than the type (`%d`, `%s`), or is not
    /// known.
    pub hint: Option<Hint>,
}

/// Returns the conversions of a text, in their order.
pub fn conversions(text: &str) -> Vec<Conversion> {
    let mut found = Vec::new();
    let mut argument = 0;
    let mut rest = text;
    let mut between = true;
    while let Some(at) = rest.find('%') {
        between |= at > 0;
        let spec = &rest[at + 1..];
        if let Some(after) = spec.strip_prefix('%') {
            (rest, between) = (after, true);
            continue;
        }
        let letter_at = spec.find(|c: char| !"-+ #0123456789.*hlLzjt".contains(c)).unwrap_or(spec.len());
        // A `*` consumes an argument.
        argument += spec[..letter_at].matches('*').count();
        let letters = &spec[letter_at..];
        let (hint, length) = match letters.chars().next() {
            Some('x' | 'X') => (Some(Hint::Hex), 1),
            Some('o') => (Some(Hint::Octal), 1),
            Some('c') => (Some(Hint::Char), 1),
            Some('p') => pointer(letters),
            Some(other) => (None, other.len_utf8()),
            None => break,
        };
        found.push(Conversion { argument, adjacent: !between && !found.is_empty(), hint });
        argument += 1;
        (rest, between) = (&letters[length..], false);
    }
    found
}

/// Parses `%p` and the letters that belong to it (Documentation/core-api/printk-formats.rst). Returns the hint and the
/// length in bytes.
fn pointer(letters: &str) -> (Option<Hint>, usize) {
    const KNOWN: [(&str, Option<Hint>); 22] = [
        ("pISpfsc", Some(Hint::SocketAddress)),
        ("pISpsc", Some(Hint::SocketAddress)),
        ("pISpfc", Some(Hint::SocketAddress)),
        ("pISpc", Some(Hint::SocketAddress)),
        ("pISc", Some(Hint::SocketAddress)),
        ("pISp", Some(Hint::SocketAddress)),
        ("pIS", Some(Hint::SocketAddress)),
        ("pI4", Some(Hint::Ip4)),
        ("pI6c", Some(Hint::Ip6)),
        ("pI6", Some(Hint::Ip6)),
        ("pM", Some(Hint::Mac)),
        // %pU with another byte order, %pi and %pm print other texts, so they yield no hint.
        ("pUb", Some(Hint::Uuid)),
        ("pUl", None),
        ("pUL", None),
        ("pUB", None),
        ("pU", Some(Hint::Uuid)),
        ("pS", Some(Hint::Code)),
        ("ps", Some(Hint::Code)),
        ("pB", Some(Hint::Code)),
        ("px", Some(Hint::Address)),
        ("pK", Some(Hint::Address)),
        ("pF", Some(Hint::Code)),
    ];
    if let Some((name, hint)) = KNOWN.iter().find(|(name, _)| letters.starts_with(name)) {
        return (*hint, name.len());
    }
    let length = letters.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(letters.len());
    (if length == 1 { Some(Hint::Address) } else { None }, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_have_arguments_and_hints() {
        let of = |text: &str| conversions(text).iter().map(|c| (c.argument, c.adjacent, c.hint)).collect::<Vec<_>>();
        assert_eq!(of("a=%s%s b=%08lx %%"), [(0, false, None), (1, true, None), (2, false, Some(Hint::Hex))]);
        assert_eq!(of("%*pbl %.*s"), [(1, false, None), (3, false, None)]);
        assert_eq!(of("%pI4:%pI6c %p"), [(0, false, Some(Hint::Ip4)), (1, false, Some(Hint::Ip6)), (2, false, Some(Hint::Address))]);
        assert_eq!(of("%%%d"), [(0, false, None)]);
        assert_eq!(of("%"), []);
        assert_eq!(of("%é %d"), [(0, false, None), (1, false, None)]);
    }
}
